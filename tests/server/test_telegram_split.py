"""Long answers as Telegram messages: nothing lost, none too long, split at natural places."""

import regex
from hypothesis import example, given
from hypothesis import strategies as st

from firnline.server.limits import TELEGRAM_PARTS_MAX
from firnline.server.telegram.split import UNITS_MAX, parts_of, split, units

# All of Unicode, lone surrogates too, with what joins characters more often than by chance.
JOINING = "\u200d\u0301\ufe0f\U0001f3fd\U0001f1e9\U0001f1ea\U000e0067\u1161\U0001f468 \n.。"
TEXTS = st.text(st.one_of(st.characters(), st.sampled_from(JOINING)), max_size=400)


def utf16(text):
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@given(TEXTS, st.integers(2, 60))
@example("😀" * 50, 3)
@example("a" + "\u0301" * 200, 8)
def test_parts_fit_and_nothing_but_white_space_is_lost(text, most):
    parts = split(text, most)
    assert all(0 < utf16(part) <= most for part in parts)
    rest = text
    for part in parts:
        rest = rest.lstrip()
        assert rest.startswith(part)
        rest = rest.removeprefix(part)
    assert not rest.strip()


@given(TEXTS)
def test_units_are_counted_as_telegram_counts_them(text):
    assert units(text) == utf16(text)


@given(st.text(max_size=200), st.integers(2, 60))
def test_splitting_is_the_same_every_time_and_leaves_short_texts_unsplit(text, most):
    assert split(text, most) == split(text, most)
    if utf16(text) <= most:
        assert split(text, most) == [text.strip()][: bool(text.strip())]


GRAPHEMES = [
    "é",
    "e\u0301",
    "👨‍👩‍👧",
    "🇩🇪",
    "👍🏽",
    "🏴\U000e0067\U000e0062\U000e007f",
    "한",
    "न्",
    "x",
]


@given(st.lists(st.sampled_from(GRAPHEMES), min_size=1, max_size=80), st.integers(12, 40))
def test_no_cut_goes_through_what_is_seen_as_one_character(found, most):
    text = "".join(found)
    whole = regex.findall(r"\X", text)
    parts = [piece for part in split(text, most) for piece in regex.findall(r"\X", part)]
    assert parts == whole


def test_a_cut_is_made_between_paragraphs_then_lines_then_sentences_then_words():
    first, second = "a " * 20 + "end.", "b " * 20 + "end."
    assert split(f"{first} {second}\n\n{second}", 100) == [f"{first} {second}", second]
    assert split(f"{first}\n{second}", 60) == [first, second]
    assert split(f"{first} {second}", 60) == [first, second]
    assert split("one two three", 9) == ["one two", "three"]
    assert split("你好。" * 5, 8) == ["你好。你好。", "你好。你好。", "你好。"]


def test_a_paragraph_that_would_leave_a_part_nearly_empty_is_no_place_to_cut():
    parts = split("Hi\n\n" + "word " * 100, 60)
    assert len(parts[0]) > 30


def test_an_answer_has_a_bounded_number_of_parts_and_says_what_is_missing():
    text = "".join(f"{number:09} " for number in range(50_000))
    parts = parts_of(text)
    assert len(parts) == TELEGRAM_PARTS_MAX
    assert all(utf16(part) <= UNITS_MAX for part in parts)
    shown = text.index(parts[-2]) + len(parts[-2])
    assert parts[:-1] == split(text)[: TELEGRAM_PARTS_MAX - 1]
    assert parts[-1] == f"[{len(text) - shown:,} more characters are kept in the conversation.]"
    assert parts_of("short") == ["short"]
