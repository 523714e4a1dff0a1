"""What is not text is counted by its provider's rule; damaged and lying files stay estimates."""

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline import Message, Part, count_tokens
from firnline.log import limits
from firnline.log.attachment import EncodedBytes, find_attachment, is_encoded
from firnline.log.audio_length import audio_seconds
from firnline.log.image_size import image_size
from firnline.log.media_rules import MEDIA_RULES, UNKNOWN_RULE, find_media_rule
from firnline.log.media_tokens import measure
from firnline.log.pdf_pages import read_pdf
from support import media
from support.media import data_url, encoded

pytestmark = [pytest.mark.promise("media-by-rule")]


def bytes_of(data: bytes) -> EncodedBytes:
    return EncodedBytes(encoded(data))


def image(data: bytes, **more) -> Part:
    return Part({"type": "image_url", "image_url": {"url": data_url("image/png", data), **more}})


def cost(part: Part, model: str = "gpt-4o") -> int:
    """What a part costs, without the message around it."""
    around = Message.user([Part.of_text("")])
    return count_tokens(Message.user([part]), model) - count_tokens(around, model)


# -- headers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1, 1), (640, 480), (4_032, 3_024), (16_383, 7)])
@pytest.mark.parametrize(
    "make",
    [
        media.png,
        media.jpeg,
        lambda w, h: media.jpeg(w, h, before=300_000, marker=0xC0),
        media.gif,
        media.bmp,
        media.webp,
        lambda w, h: media.webp(w, h, b"VP8L"),
        lambda w, h: media.webp(w, h, b"VP8 "),
    ],
)
def test_the_size_of_an_image_is_in_its_header(make, size):
    assert image_size(bytes_of(make(*size))) == size


@pytest.mark.parametrize("brand", [b"heic", b"avif"])
def test_the_largest_of_the_sizes_in_a_file_is_the_images(brand):
    assert image_size(bytes_of(media.heic(4_032, 3_024, brand))) == (4_032, 3_024)


def test_base64_is_read_in_lines_and_in_the_alphabet_of_urls():
    data = media.jpeg(640, 480, before=100_000)
    lines = "\r\n".join(encoded(data)[at : at + 76] for at in range(0, len(encoded(data)), 76))
    for text in (lines, encoded(data).replace("+", "-").replace("/", "_").rstrip("=")):
        assert image_size(EncodedBytes(text)) == (640, 480)
        assert EncodedBytes(text).read(0, 1 << 20) == data


@pytest.mark.parametrize("seconds", [0.5, 10, 61])
@pytest.mark.parametrize(
    "make",
    [
        media.wav,
        lambda s: media.wav(s, before=b"LIST\3\0\0\0abc\0"),
        lambda s: media.wav(s, size=0xFFFFFFFF),
        media.mp3,
        lambda s: media.mp3(s, tag=5_000),
        lambda s: media.mp3(s, frames=round(s * 44_100 / 1_152)),
        media.flac,
        media.ogg,
        lambda s: media.ogg(s, "vorbis", 44_100),
        media.m4a,
        lambda s: media.m4a(s, version=1, last=False),
    ],
)
def test_the_length_of_a_recording_is_in_its_headers(make, seconds):
    assert audio_seconds(bytes_of(make(seconds))) == pytest.approx(seconds, rel=0.03)


@pytest.mark.parametrize("pages", [1, 12, 300])
@pytest.mark.parametrize("packed", [False, True])
def test_the_pages_and_the_text_of_a_pdf(pages, packed):
    found = read_pdf(bytes_of(media.pdf(pages, packed=packed)))
    assert found == (pages, pages * 20 * len(media.LINE))


def test_pages_that_an_update_replaced_are_not_counted_again():
    assert read_pdf(bytes_of(media.pdf(5) + media.pdf(5))).pages == 5


# -- the rules, by the examples that the providers publish ------------------------------------


@pytest.mark.parametrize(
    ("model", "size", "detail", "tokens"),
    [
        ("gpt-4o", (1_024, 1_024), "high", 765),
        ("gpt-4o", (2_048, 4_096), "high", 1_105),
        ("gpt-4o", (4_096, 8_192), "low", 85),
        ("gpt-4o", (128, 64), "auto", 255),
        ("gpt-4.1-2025-04-14", (1_024, 1_024), "", 765),
        ("openai/gpt-4o-mini", (128, 64), "high", 8_500),
        ("gpt-4o-mini", (128, 64), "low", 2_833),
        ("gpt-5", (1_024, 1_024), "", 630),
        ("o3-2025-04-16", (128, 64), "high", 225),
        ("gpt-4.1-mini", (1_024, 1_024), "high", 1_659),
        ("gpt-4.1-mini", (1_800, 2_400), "high", 2_353),  # 1,452 patches
        ("o4-mini", (1_800, 2_400), "high", 2_498),
        ("gpt-5-nano", (512, 512), "", 630),
        ("gpt-5-mini", (4_000, 4_000), "low", 415),
        ("gpt-5.4", (1_024, 1_024), "", 1_229),
        ("gpt-5.5", (4_032, 3_024), "", 11_868),
        ("gpt-6-astra", (4_032, 3_024), "auto", 14_364),
        ("gpt-6-astra", (1_920, 1_080), "high", 2_448),
        ("claude-sonnet-4-6", (1_000, 1_000), "", 1_296),
        ("claude-haiku-4-5", (3_840, 2_160), "", 1_568),
        ("anthropic/claude-opus-4.7", (1_920, 1_080), "", 2_691),
        ("us.anthropic.claude-opus-4-8-v1:0", (8_000, 8_000), "", 4_784),
        ("gemini-2.5-flash", (384, 384), "", 258),
        ("gemini-2.5-flash", (960, 540), "", 1_548),
        ("google/gemini-3-pro", (4_032, 3_024), "", 1_120),
        ("grok-4", (448, 448), "", 512),
    ],
)
def test_images_cost_what_the_providers_say(model, size, detail, tokens):
    assert cost(image(media.png(*size), detail=detail), model) == tokens


def test_a_family_is_found_in_any_spelling_of_a_models_name():
    for name in ("my-gpt-4o-mini-east", "ft:gpt-4o-mini-2024-07-18:acme::x", "GPT-4o-mini"):
        assert find_media_rule(name) == MEDIA_RULES["gpt-4o-mini"]
    assert find_media_rule("llama-3.2-vision") is UNKNOWN_RULE
    assert find_media_rule("proto1") is UNKNOWN_RULE  # not o1


@pytest.mark.parametrize(("model", "rate"), [("gpt-audio", 10), ("gemini-2.5-pro", 32)])
@pytest.mark.parametrize("make", [media.wav, media.mp3, media.ogg])
def test_sound_costs_what_the_providers_say(model, rate, make):
    sound = Part({"type": "input_audio", "input_audio": {"data": encoded(make(60)), "format": "x"}})
    assert cost(sound, model) == pytest.approx(60 * rate, rel=0.03)


def test_sound_without_a_header():
    sound = {"data": encoded(b"\0\1" * 24_000 * 30), "format": "pcm16"}
    assert cost(Part({"type": "input_audio", "input_audio": sound})) == 300


@pytest.mark.parametrize(
    ("model", "page", "text"),
    [
        ("gpt-4o", 85, 1),
        ("gpt-5-mini", 415, 1),
        ("claude-opus-4-6", 1_568, 1),
        ("gemini-3", 560, 0),
    ],
)
@pytest.mark.parametrize("hexadecimal", [False, True])
def test_pages_cost_their_picture_and_their_text(model, page, text, hexadecimal):
    data = media.pdf(10, lines=40, filler=300_000, hexadecimal=hexadecimal)
    part = Part({"type": "file", "file": {"file_data": data_url("application/pdf", data)}})
    words = count_tokens(media.LINE.decode() * 40) * text
    assert 10 * (page + words) <= cost(part, model) <= 2 * 10 * (page + words)


# -- what cannot be known ---------------------------------------------------------------------

REFERENCES = [
    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    {"type": "input_image", "file_id": "file-1"},
    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    {"type": "file", "file": {"file_id": "file-1"}},
    {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
    {"type": "input_audio", "input_audio": {}},
    {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}},
]


@pytest.mark.parametrize("fields", REFERENCES, ids=str)
@pytest.mark.parametrize("model", ["gpt-4o", "claude-opus-4-7", "gemini-2.5-pro", "own"])
def test_a_reference_is_estimated_high_but_not_absurdly(fields, model):
    counted = count_tokens(Message.user([Part(fields)]), model)
    assert not counted.exact
    assert 700 < counted < 20_000


def test_no_image_of_a_usual_shape_costs_more_than_one_of_unknown_size():
    for model in ("gpt-4o", "gpt-4o-mini", "gpt-5-mini", "gpt-5.4", "claude-opus-4-7", "grok-4"):
        unknown = cost(image(b""), model)
        for size in ((512, 512), (1_080, 1_920), (1_600, 1_200), (2_048, 2_048)):
            assert cost(image(media.png(*size)), model) <= unknown


def test_a_count_of_what_is_not_text_says_that_it_is_an_estimate():
    assert not count_tokens(Message.user([image(media.png(64, 64))])).exact


@pytest.mark.parametrize("size", [(2**32 - 1, 2**32 - 1), (2**32 - 1, 1), (1, 2**32 - 1)])
def test_a_lying_header_costs_no_more_than_the_largest_image(size):
    for rule in {*MEDIA_RULES.values(), UNKNOWN_RULE}:
        for detail in ("", "low", "high", "original"):
            assert 0 < rule.image.tokens(*size, detail) <= 50_000
    assert cost(image(media.png(*size))) <= 1_445


def test_a_lying_header_cannot_claim_more_sound_than_the_bytes_hold():
    long = media.wav(1).replace((32_000).to_bytes(4, "little"), b"\1\0\0\0", 1)
    for data in (long, media.flac(1).replace(b"\0\xac\x44", b"\xff\xff\xff"), media.m4a(9)[:200]):
        assert (audio_seconds(bytes_of(data)) or 0) <= len(data) / 750


def test_a_bomb_is_unpacked_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(limits, "PDF_UNPACKED_BYTES_MAX", 1 << 16)
    made = []
    unpacker = zlib.decompressobj

    class Watched:
        def __init__(self):
            self._real = unpacker()

        def decompress(self, data, most):
            made.append(len(found := self._real.decompress(data, most)))
            return found

        unconsumed_tail = property(lambda self: self._real.unconsumed_tail)

    monkeypatch.setattr(zlib, "decompressobj", Watched)
    found = read_pdf(bytes_of(media.pdf(20, lines=1_000)))
    assert sum(made) == 1 << 16
    assert found == (20, None)  # the text that was not read is assumed


@pytest.mark.parametrize("wrong", ["/Encrypt 5 0 R", "/LZWDecode"])
def test_text_that_cannot_be_read_is_assumed(wrong):
    data = media.pdf(4) + wrong.encode()
    assert read_pdf(bytes_of(data)) == (4, None)
    part = Part({"type": "document", "source": {"type": "base64", "data": encoded(data)}})
    assert cost(part) == 4 * (85 + limits.PAGE_TOKENS)


def test_a_pdf_that_claims_a_million_pages():
    data = b"%PDF-1.4\n" + b"/Type/Page " * 1_000_000
    assert read_pdf(bytes_of(data)).pages == limits.PDF_PAGES_MAX
    data = b"%PDF-1.4\n/Count 999999999"
    assert read_pdf(bytes_of(data)).pages == limits.PDF_PAGES_MAX


STARTS = [
    *(make(640, 480)[:30] for make in (media.png, media.jpeg, media.gif, media.bmp, media.webp)),
    *(make(1)[:60] for make in (media.wav, media.mp3, media.flac, media.ogg, media.m4a)),
    media.heic(1, 1)[:40],
    media.pdf(1),
    b"",
]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(STARTS),
    st.binary(min_size=1, max_size=400),
    st.integers(0, 60),
    st.binary(max_size=4),
)
def test_damaged_bytes_never_raise_and_never_cost_absurdly(start, rest, at, change):
    data = start[:at] + change + start[at + len(change) :] + rest
    for kind in ("image", "input_audio", "file", "video"):
        part = {"type": kind, "data": encoded(data), "media_type": ""}
        found = find_attachment(part)
        for model in ("gpt-4o", "claude-opus-4-7", "gemini-2.5-pro", "grok-4"):
            rule = find_media_rule(model)
            measured = measure(found, rule)
            bound = max(rule.image_tokens(None, ""), rule.image_tokens((2_048, 2_048), "")) * 2
            pages = data.count(b"Page") + data.count(b"Count") * limits.PDF_PAGES_MAX + 1
            assert 0 <= measured.tokens <= bound + pages * (rule.page + limits.PAGE_TOKENS_MAX)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.sampled_from(["image_url", "input_audio", "file", "document"]))
def test_any_text_in_place_of_data_never_raises(text, kind):
    for fields in ({"data": text}, {"url": f"data:{text}"}, {kind: {"file_data": text}}):
        assert count_tokens(Message.user([Part({"type": kind, **fields})])) >= 0


# -- base64 is never text ---------------------------------------------------------------------

_BIG = encoded(media.png(1_000, 1_000) + bytes(range(256)) * 1_200)
PLACES = [
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_BIG}"}},
    {"type": "input_image", "image_url": f"data:image/png;base64,{_BIG}"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _BIG}},
    {"type": "image", "base64": _BIG, "mime_type": "image/png"},
    {"type": "input_audio", "input_audio": {"data": _BIG, "format": "mp3"}},
    {"type": "file", "file": {"file_data": f"data:application/zip;base64,{_BIG}"}},
    {"type": "file", "inline_data": {"data": _BIG, "mime_type": "image/png"}},
    {"type": "media", "data": _BIG, "mime_type": "image/png"},
    {"type": "image_generation_call", "result": _BIG},
    {"type": "reasoning", "encrypted_content": _BIG},
    {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image", "data": _BIG}]},
    {
        "type": "document",
        "source": {
            "type": "content",
            "content": [{"type": "image", "source": {"type": "base64", "data": _BIG}}],
        },
    },
]


@pytest.mark.parametrize("fields", PLACES, ids=lambda fields: fields["type"])
def test_base64_is_never_counted_as_text(fields):
    as_text = count_tokens(_BIG)
    assert as_text > 100_000
    part = Part(fields)
    assert count_tokens(Message.user([part])) <= limits.FILE_TOKENS_MAX + 100
    assert count_tokens(Message.tool([part], tool_call_id="a")) <= limits.FILE_TOKENS_MAX + 100
    assert _BIG[:100] not in Message.user([part]).text


def test_an_answer_in_sound_is_counted_by_its_length():
    sound = {"id": "audio_1", "data": encoded(media.wav(30)), "transcript": "Good morning."}
    told = {"role": "assistant", "content": None, "audio": sound}
    counted = count_tokens(Message.from_openai(told))
    assert 300 <= counted <= 400
    plain = {**told, "audio": {**sound, "transcript": "Good morning. " * 50}}
    assert count_tokens(Message.from_openai(plain)) > counted + 100


def test_text_stays_text():
    words = {"type": "text", "text": "a" * 4_000}
    assert count_tokens(Message.user([Part(words)])) > 400
    document = {"type": "document", "source": {"type": "text", "data": "One two three. " * 90}}
    assert cost(Part(document)) == count_tokens("One two three. " * 90)
    data = data_url("text/plain", b"One two three. " * 90)
    file = {"type": "file", "file": {"file_data": data, "filename": "a.txt"}}
    words = count_tokens("One two three. " * 90)
    assert words < cost(Part(file)) < words + 10
    assert not is_encoded("several words " * 90)
    rows = [{"type": "file", "name": "a.py", "size": 12}] * 50
    assert cost(Part.tool_result("a", rows)) < 1_500
