"""Search terms: the same analysis for stored text and for queries."""

from itertools import pairwise

import pytest
from hypothesis import given

from firnline import Message
from firnline.language.terms import fold, index_entry, index_terms, query_terms, wanted_words
from support.message_strategies import anything

pytestmark = pytest.mark.promise("search-total")


@given(anything)
def test_every_query_finds_the_text_it_was_taken_from(text):
    terms = index_terms(text)
    indexed = {(term,) for term in terms} | set(pairwise(terms))
    assert set(query_terms(text)) <= indexed


@given(anything)
def test_terms_hold_nothing_that_a_query_language_could_read(text):
    for term in index_terms(text):
        assert term
        assert not set(term) & set(" \"'()*:^-+{}\\\0")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Straße", "STRASSE"),
        ("Café", "cafe\u0301"),
        ("ﬁne", "FINE"),
        ("\uff34\uff4fkyo", "tokyo"),
        ("ガ", "カ"),
    ],
)
def test_what_a_reader_would_not_tell_apart_is_the_same(a, b):
    assert fold(a) == fold(b)


def test_unspaced_scripts_are_split():
    assert index_terms("I ❤ 東京x") == ["i", "❤", "東", "京", "x"]
    assert query_terms("東京都 Tower 東") == [("東", "京"), ("京", "都"), ("tower",), ("東",)]


def test_a_query_is_bounded():
    assert len(query_terms(" ".join(f"w{i}" for i in range(1000)))) == 64


def _found(text: str, query: str) -> bool:
    entry = index_entry(Message.user(text))
    return all(entry.have(word) for word in wanted_words(query))


SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Das Krankenhaus ist geschlossen", "Haus"),
        ("ein Hausmeister", "Haus"),
        ("die Straßenbahn", "Bahn"),
        ("Мы делаем перепланировку", "планировка"),
        ("Wettervorhersagen", "Vorhersage"),
        ("class OAuth2Token:", "oauth"),
        ("class OAuth2Token:", "OAuth2"),
        ("class OAuth2Token:", "token"),
        ("sha256sum failed", "sha256"),
        (f"fixed in {SHA}", SHA[:7]),
        (f"fixed in {SHA}", SHA[:12].upper()),
        (f"fixed in {SHA}", SHA),
    ],
)
def test_words_are_found_in_longer_ones(text, query):
    assert _found(text, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("thatched roofs", "that"),
        ("Krankenhausflur", "haus"),
        (f"fixed in {SHA}", SHA[:6]),
        (f"fixed in {SHA}", SHA[1:9]),
        ("a house", "Haus"),
    ],
)
def test_other_parts_of_words_are_not_found(text, query):
    assert not _found(text, query)
