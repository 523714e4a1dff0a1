"""Search terms: the same analysis for stored text and for queries."""

from itertools import pairwise

import pytest
from hypothesis import given

from firnline.language.terms import fold, index_terms, query_terms
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
