"""Counts equal the reference encoder's, on anything; what cannot be exact says so."""

import asyncio
import base64
import gzip
import os
from concurrent.futures import ThreadPoolExecutor
from importlib import resources

import pytest
import tiktoken
import tiktoken_ext.openai_public as published
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline import Memory, Message, Part, ToolCall, count_tokens
from firnline.errors import FirnlineError, InputError
from firnline.log import model_table, tokens
from firnline.log.entry import TOKENIZERS
from firnline.log.tokens import counter

pytestmark = [pytest.mark.promise("exact-tokens"), pytest.mark.requirement("A1")]

ENCODINGS = ("o200k_base", "cl100k_base")
EXAMPLES = 100_000 if os.environ.get("FIRNLINE_TORTURE") else 10_000
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|endofprompt|>"]


def _reference(name: str, monkeypatch: pytest.MonkeyPatch) -> tiktoken.Encoding:
    """The encoder as tiktoken itself builds it, its download replaced by the shipped file."""
    packed = resources.files("firnline.log").joinpath(f"vocabulary/{name}.tiktoken.gz").read_bytes()
    lines = (line.split() for line in gzip.decompress(packed).splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    monkeypatch.setattr(published, "load_tiktoken_bpe", lambda *_, **__: ranks)
    return tiktoken.Encoding(**getattr(published, name)())


@pytest.fixture(scope="module")
def reference():
    with pytest.MonkeyPatch.context() as monkeypatch:
        return {name: _reference(name, monkeypatch) for name in ENCODINGS}


texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text("aA'sStTlL\u017f\u212a 0123456789\u0663½\n\r\t\u00a0\u2028/", max_size=80),
    st.text("東京都こんにちは안녕하세요مرحبا สวัสดี", max_size=40),
    st.lists(st.sampled_from(["👩‍👩‍👧", "🏳️‍🌈", "🇯🇵", "e\u0301", "\u200d", " ", "x"])).map("".join),
    st.lists(st.sampled_from([*SPECIALS, " ", "a", "\n"])).map("".join),
    st.lists(
        st.sampled_from(
            [
                "def f(x):\n",
                "    return x\n",
                "```python\n",
                "{}",
                "=> ",
                "// ",
                "0x1F",
                "<div>",
                '"k": ',
            ]
        )
    ).map("".join),
)


@pytest.mark.long
def test_counts_equal_the_reference_encoder(reference):
    """10,000 random strings and more: all of Unicode, code, CJK, emoji, special tokens as text."""
    pairs = [(counter(encoding=name), reference[name]) for name in ENCODINGS]

    # Ten at a time: to begin an example takes longer than to make a string.
    @settings(max_examples=EXAMPLES // 10, deadline=None)
    @given(st.lists(texts, min_size=10, max_size=10))
    def check(strings):
        for text in strings:
            for count, encoder in pairs:
                counted = count.text(text)
                assert counted == len(encoder.encode(text, disallowed_special=()))
                assert counted.exact

    check()


def test_concurrent_callers_load_an_encoder_once():
    tokens._load_encoder.cache_clear()
    with ThreadPoolExecutor(8) as crowd:
        loaded = set(crowd.map(lambda _: tokens.reference_encoder("cl100k_base"), range(8)))
    assert len(loaded) == tokens._load_encoder.cache_info().misses == 1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_long_texts_are_cut_where_no_token_can_span(encoding, reference):
    count, encoder = counter(encoding=encoding), reference[encoding]
    words = "It's the 東京 tower's  view,\n\n\tisn't it? 12345 naïve <|endoftext|> a_b x/y\r\n"

    @settings(max_examples=20, deadline=None)
    @given(st.lists(st.sampled_from([words, words[::-1], "word " * 9, " " * 50]), min_size=30))
    def check(pieces):
        text = "".join(pieces) * 40
        counted = count.text(text)
        assert counted == len(encoder.encode_ordinary(text))
        assert counted.exact

    check()


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("unit", [" ", "a", "\n", "é", "😀", "東", "\t ", "=", "\u200b", "0"])
def test_a_megabyte_of_one_thing_is_counted_high_and_says_so(encoding, unit, reference):
    text = unit * (1_000_000 // len(unit))
    counted = counter(encoding=encoding).text(text)
    sample = reference[encoding].encode_ordinary(text[:50_000])
    truth = (
        len(sample) * len(text) // 50_000
    )  # it repeats; the encoder itself dies of some of these
    assert 0.99 * truth <= counted <= 1.05 * truth + 50
    assert not counted.exact
    assert counted.tokenizer == f"{encoding}~"


async def test_counting_a_megabyte_does_not_stop_the_event_loop():
    turns, stop = 0, False

    async def watch():
        nonlocal turns
        while not stop:
            await asyncio.sleep(0.001)
            turns += 1

    async with Memory.open("memory:") as memory:
        await memory.append("c", Message.user("warm up"))
        watching = asyncio.create_task(watch())
        for unit in " aé":
            before = turns
            await memory.append("c", Message.user(unit * 1_000_000))
            # Were it counted on the loop, nothing else would have its turn meanwhile.
            assert turns - before > 5
        stop = True
        await watching


class Panic(BaseException):
    """What a crash inside the encoder looks like: not even an Exception."""


@pytest.mark.parametrize("error", [Panic, ValueError, RuntimeError])
def test_a_broken_encoder_gives_an_over_estimate(error, monkeypatch):
    class Broken:
        def encode_ordinary(self, text):
            raise error

    monkeypatch.setattr(tokens, "reference_encoder", lambda name: Broken())
    count = tokens._counter.__wrapped__("o200k_base", 1.0)
    for text in ("Grüße 東京", "x" * 200_000):
        assert count.text(text) == len(text.encode()) + len(text) // 65_536
        assert count.text(text).tokenizer == "o200k_base~"
        assert count.message(Message.user(text)).tokenizer == "o200k_base~"


def test_a_message_of_which_only_the_role_could_be_counted_says_so(monkeypatch):
    class Moody:
        def encode_ordinary(self, text):
            if text != "user":
                raise ValueError
            return [1]

    monkeypatch.setattr(tokens, "reference_encoder", lambda name: Moody())
    count = tokens._counter.__wrapped__("o200k_base", 1.0)
    assert count.message(Message.user("hello")).tokenizer == "o200k_base~"


def test_an_interrupted_count_is_interrupted(monkeypatch):
    class Interrupted:
        def encode_ordinary(self, text):
            raise KeyboardInterrupt

    monkeypatch.setattr(tokens, "reference_encoder", lambda name: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        tokens._counter.__wrapped__("o200k_base", 1.0).text("x")


def test_lone_surrogates_are_counted_as_what_they_become():
    assert count_tokens("a\ud800b") == count_tokens("a\ufffdb")


def test_a_vocabulary_that_is_not_the_published_one_is_rejected(monkeypatch):
    wrong = tokens._VOCABULARIES["o200k_base"]._replace(sha256="0" * 64)
    monkeypatch.setattr(tokens, "_VOCABULARIES", {"o200k_base": wrong})
    with pytest.raises(FirnlineError, match="damaged"):
        tokens._load_encoder.__wrapped__("o200k_base")


def test_message_framing_follows_the_published_rule(reference):
    """Three tokens around each message, one for a name, three that prime the answer."""
    encoder = reference["o200k_base"]
    messages = [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "name": "Ana", "content": "Hello there"},
    ]
    expected = 3
    for message in messages:
        expected += 3 + sum(len(encoder.encode(value)) for value in message.values())
        expected += "name" in message
    assert count_tokens(messages) == expected
    assert count_tokens(messages).exact
    assert count_tokens(messages[0]) + count_tokens(messages[1]) + 3 == expected


def test_tool_calls_are_counted_with_their_arguments():
    arguments = '{"text": "' + "many words " * 4000 + '"}'
    message = Message.assistant(tool_calls=[ToolCall.of("c1", "write_file", arguments)])
    assert count_tokens(message) > count_tokens(arguments) + count_tokens("write_file")


def test_tokens_of_tools_are_counted_with_the_text():
    call = ToolCall.of("c1", "look", "{}")
    words = count_tokens("look") + count_tokens("{}")
    plain, calling = Message.assistant("So."), Message.assistant("So.", tool_calls=[call])
    assert count_tokens(calling) - count_tokens(plain) == words + tokens.CALL_TOKENS
    result = Message.tool("So.", tool_call_id="")
    roles = count_tokens("tool") - count_tokens("assistant")
    assert count_tokens(result) - count_tokens(plain) == roles + tokens.CALL_TOKENS
    assert [count_tokens(message).exact for message in (plain, calling, result)] == [
        True,
        *[False] * 2,
    ]


def test_parts_pictures_and_unknown_fields_are_counted():
    text = count_tokens(Message.user("hello"))
    assert count_tokens(Message.user([Part.of_text("hello")])) == text
    high = count_tokens(
        Message.user([Part.of_text("hello"), Part.image("data:image/png;base64,AAAA")])
    )
    low = count_tokens(Message.user([Part.of_text("hello"), Part.image("https://x", detail="low")]))
    assert (high - text, low - text) == (1445, 85)
    assert not high.exact
    unknown = Message.from_openai({"role": "user", "content": "hello", "audio": {"id": "a" * 40}})
    assert count_tokens(unknown) > text
    assert not count_tokens(unknown).exact


def test_tool_schemas_are_counted():
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    plain = count_tokens([Message.user("x")])
    assert count_tokens([Message.user("x")], tools=[tool]) > plain + 15
    assert count_tokens([Message.user("x")], tools=[tool, tool]) > plain + 30
    assert count_tokens("x", tools=[tool]) > count_tokens("x") + 15
    with pytest.raises(InputError):
        count_tokens([], tools=[{"x": object()}])


def test_models_without_a_public_tokenizer_are_over_estimated():
    text = "The quick brown fox jumps over the lazy dog. " * 20
    exact = count_tokens(text)
    for name in ("claude-opus-4", "gemini-3-pro", "somebody/unheard-of"):
        assert count_tokens(text, model=name) > exact
        assert not count_tokens(text, model=name).exact
        assert not count_tokens([Message.user(text)], model=name).exact


def test_an_unknown_encoding_is_a_clear_error():
    with pytest.raises(InputError, match="o200k_base"):
        count_tokens("x", encoding="p50k_base")


def test_every_tokenizer_is_known_to_the_log():
    names = {row.encoding for _, row in model_table._table()[0].values()}
    assert names == set(ENCODINGS) == set(tokens._VOCABULARIES)
    assert {f"{name}{mark}" for name in names for mark in ("", "~")} == set(TOKENIZERS)
