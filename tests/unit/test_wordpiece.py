"""WordPiece gives the numbers that the reference tokenizer gives, for any text."""

import gzip
import hashlib
import json
from importlib import resources
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.embedding import wordpiece as module
from firnline.embedding.wordpiece import UNKNOWN, wordpiece
from firnline.errors import ModelRefused

# What the package `tokenizers` 0.23.3 says, without its special tokens.
GOLDEN = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "wordpiece.jsonl").read_text().splitlines()
]
ANY_TEXT = st.text(st.characters())  # with lone surrogates


def ids(text):
    return [piece.id for piece in wordpiece().pieces(text)]


def packed():
    return resources.files("firnline.embedding").joinpath("vocabulary.txt.gz").read_bytes()


def test_there_are_many_golden_cases():
    assert len(GOLDEN) >= 200


@pytest.mark.parametrize(("text", "expected"), GOLDEN, ids=map(str, range(len(GOLDEN))))
def test_as_the_reference(text, expected):
    assert ids(text) == expected


def test_the_vocabulary_is_the_published_one():
    plain = gzip.decompress(packed())
    sha256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
    assert hashlib.sha256(plain).hexdigest() == sha256
    assert plain.count(b"\n") == 30_522


def test_another_vocabulary_is_rejected(monkeypatch):
    monkeypatch.setattr(module, "VOCABULARY_SHA256", "0" * 64)
    with pytest.raises(ModelRefused, match="reinstall firnline"):
        wordpiece.__wrapped__()


def test_what_looks_special_is_plain_text():
    assert not {101, 102, 103, 0} & set(ids("[CLS] [SEP] [MASK] [PAD]"))


def test_pieces_say_where_their_word_is():
    text = "  Unaffable\u3000café, 你好"
    found = {(p.start, p.end) for p in wordpiece().pieces(text)}
    assert {text[start:end] for start, end in found} == {"Unaffable", "café,", "你好"}


def test_a_word_is_read_only_if_it_is_asked_for():
    text = "word " * 1_000_000
    assert len(list(islice(wordpiece().pieces(text), 5))) == 5


@given(ANY_TEXT)
def test_any_text_has_pieces_of_the_vocabulary_in_order(text):
    pieces = list(wordpiece().pieces(text))
    assert all(0 <= p.id < 30_522 for p in pieces)
    assert [p.start for p in pieces] == sorted(p.start for p in pieces)
    assert all(0 <= p.start < p.end <= len(text) for p in pieces)


@given(ANY_TEXT, ANY_TEXT)
def test_words_do_not_depend_on_their_neighbours(first, second):
    assert ids(f"{first} {second}") == ids(first) + ids(second)


@given(st.text(st.characters(codec="ascii")))
def test_case_makes_no_difference(text):
    assert ids(text.upper()) == ids(text.lower())


@given(st.integers(101, 5_000))
def test_a_long_word_is_one_unknown_piece(length):
    assert ids("a" * length) == [UNKNOWN]
