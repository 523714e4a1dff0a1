"""Text is made storable once, visibly, and is otherwise unchanged."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline import Message
from firnline.errors import InputError
from firnline.language.terms import index_entry
from firnline.log import limits
from firnline.log.text import clean_json, clean_name, clean_text, normalize, slices, was_altered

pytestmark = pytest.mark.promise("byte-exact")


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_storable_text_is_not_touched(text):
    assert clean_text(text) is text


@given(st.text(st.characters()))
def test_any_text_becomes_storable_and_stays_so(text):
    cleaned = clean_text(text)
    assert "\0" not in cleaned
    cleaned.encode()
    assert clean_text(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\0b", "a␀b"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00b", "\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("x\ud83d\ud83d\ude00\0", "x\ufffd😀␀"),
    ],
)
def test_what_is_replaced_and_by_what(text, expected):
    assert clean_text(text) == expected


def test_json_keeps_the_order_of_keys_and_copies():
    given = {"b": [1, {"z": 1.5, "a": None}], "a": True}
    cleaned = clean_json(given)
    assert cleaned == given
    assert list(cleaned) == ["b", "a"]
    assert cleaned["b"] is not given["b"]


@pytest.mark.parametrize(
    "wrong",
    [float("nan"), float("inf"), 10**5000, object(), {1: 2}, b"bytes", {"a\0": 1, "a␀": 2}, {1, 2}],
    ids=range(8),
)
def test_what_is_not_json_is_rejected(wrong):
    with pytest.raises(InputError):
        clean_json({"x": [wrong]})


def test_nesting_is_bounded():
    deep = []
    for _ in range(60):
        deep = [deep]
    clean_json(deep)
    for _ in range(10):
        deep = [deep]
    with pytest.raises(InputError, match="nested"):
        clean_json(deep)


def test_altered_is_about_text_only():
    assert not was_altered({"a": (1, "x")}, clean_json({"a": (1, "x")}))
    assert was_altered({"a": (1, "x\0")}, clean_json({"a": (1, "x\0")}))
    assert was_altered({"\0": 1}, clean_json({"\0": 1}))


@pytest.mark.parametrize(
    "name", ["a", "user 42", "ticket/7", "é", "東京", "x" * 200, "a@b.c:1-2_3"]
)
def test_names_people_use(name):
    assert clean_name(name, "conversation") == name


@pytest.mark.parametrize(
    "name", ["", " a", "a ", "a\n", "a\0", "\ud800", "x" * 201, "a\u200b", 7, None]
)
def test_invisible_names_are_rejected(name):
    with pytest.raises(InputError, match="conversation"):
        clean_name(name, "conversation")


# -- long texts -------------------------------------------------------------------------------

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
WORDS = st.lists(st.text(max_size=6), max_size=20).map(" ".join)
"""Words shorter than a slice."""


@given(st.text(), st.sampled_from(FORMS))
def test_usual_text_is_normalized_as_unicode_says(text, form):
    assert normalize(form, text) == unicodedata.normalize(form, text)


@given(WORDS, st.sampled_from(FORMS))
def test_text_in_slices_is_normalized_as_a_whole(text, form):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "SLICE_CHARS", 16)
        assert normalize(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("mark", ["\u0301", "\u0f73", "\uff9e"])
def test_of_many_combining_marks_the_first_are_kept(mark):
    letters = f"a{mark * 500}b{mark * 30}"
    expected = f"a{mark * 30}b{mark * 30}"
    assert normalize("NFKD", letters) == unicodedata.normalize("NFKD", expected)


@given(WORDS | st.text())
def test_slices_are_the_text_and_are_short(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "SLICE_CHARS", 16)
        found = list(slices(text))
    assert "".join(found) == text
    assert all(len(part) <= 16 for part in found)


@given(WORDS)
def test_the_terms_of_slices_are_those_of_the_text(text):
    whole = index_entry(Message.user(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "SLICE_CHARS", 16)
        assert index_entry(Message.user(text)) == whole
