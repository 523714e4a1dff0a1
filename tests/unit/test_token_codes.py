"""Comparing the tokens of a question with those of messages: weights, codes and the feature."""

import hashlib
from importlib import resources

import numpy as np
import pytest

from firnline.embedding import MiniLM
from firnline.embedding.codebook import SHA256, codebook, residuals, unit
from firnline.embedding.minilm import CODES, cut
from firnline.embedding.onnx import Session
from firnline.embedding.token_embedder import TokenEmbedder
from firnline.errors import ModelRefused
from firnline.recall.query import parse_question, token_weights
from firnline.recall.rank import token_feature

TEXTS = [
    "Ann: We booked a room at the Miramar for the second week of May.",
    "Ben: My daughter is allergic to peanuts, so no cake with nuts please.",
    "Ann: The invoice of the plumber is still unpaid, and he called twice.",
    "Ben: I would rather take the train to Lisbon than fly there again.",
    "Ann: Yes!",
    "Ben: My brother adopted a greyhound from the shelter last weekend.",
]


# -- weights and the feature --------------------------------------------------------------------


def _weights(question, names=()):
    spans, at = [], 0
    for word in question.split():
        at = question.index(word, at)
        spans.append((at, at + len(word)))
        at += len(word)
    return token_weights(question, spans, parse_question(question), names)


def test_rare_words_weigh_more_than_frequent_ones_and_every_token_something():
    what, did, buy, greyhound = _weights("What did buy greyhound?")
    assert greyhound > buy > what == did > 0


def test_names_of_speakers_weigh_no_more_than_other_words():
    assert _weights("Did Caroline swim?")[1] > 1
    assert _weights("Did Caroline swim?", ["Caroline"])[1] == _weights("Did Caroline swim?")[0]


def test_an_entry_without_codes_is_average_and_one_that_was_not_compared_the_worst():
    found = token_feature({1: 0.8, 2: 0.2}, compared=[1, 2, 3], pool=[1, 2, 3, 4])
    assert found == {1: 0.8, 2: 0.2, 3: 0.5, 4: 0.2}


# -- codes --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session():
    return Session.load()


async def test_codes_are_two_bytes_a_token_and_do_not_depend_on_the_batch():
    embedder = MiniLM()
    assert isinstance(embedder, TokenEmbedder)
    together = await embedder.encode(TEXTS)
    plain = await embedder.embed(TEXTS)
    for text, one, vector in zip(TEXTS, together, plain, strict=True):
        (alone,) = await embedder.encode([text])
        assert np.allclose(one.vector, vector, atol=1e-5)
        same = sum(a == b for a, b in zip(one.codes, alone.codes, strict=True))
        assert same >= 0.9 * len(one.codes), "up to the last digits"
    yes = together[4]
    assert len(yes.codes) == 1 + 2 * len(["ann", ":", "yes", "!"])
    assert [len(one.codes) for one in await embedder.encode(["", "   "])] == [1, 1]


async def test_what_codes_say_is_close_to_the_vectors_themselves(session):
    embedder = MiniLM()
    encoded = await embedder.encode(TEXTS)
    vectors = np.array([one.vector for one in encoded], np.float32)
    exact_and_found = []
    for number, question in enumerate(
        ("Which bill is unpaid?", "Who is allergic to nuts?", "Which dog does his brother have?")
    ):
        asked = await embedder.read_question(question)
        found = asked.compare(vectors, [one.codes for one in encoded])
        assert found.shape == (len(asked.spans), len(TEXTS))
        rows = [session.rows([_pieces(text)])[0] for text in (question, *TEXTS)]
        exact = [(unit(rows[0]) @ unit(text).T).max(axis=1) for text in rows[1:]]
        exact_and_found.append(np.corrcoef(np.array(exact).T.ravel(), found.ravel())[0, 1])
        assert found.mean(axis=0).argmax() == (2, 1, 5)[number], question
    assert min(exact_and_found) > 0.8


def _pieces(text):
    return cut(None, [text])[0]


def test_a_text_without_tokens_is_as_near_as_its_vector():
    asked = np.eye(3, 384, dtype=np.float32)
    vectors = np.eye(2, 384, dtype=np.float32)
    codes = [codebook().encode(vectors[0], vectors[:0]), codebook().encode(vectors[1], asked[1:])]
    found = codebook().compare(asked, vectors, codes)
    assert found[:, 0].tolist() == [1.0, 0.0, 0.0]
    assert codebook().compare(asked, vectors[:1], [b"\x00"])[:, 0].tolist() == [1.0, 0.0, 0.0]


def test_what_tokens_share_with_their_text_is_one_byte():
    vector = unit(np.ones((1, 384), np.float32))[0]
    share, left = residuals(vector, np.stack([vector * 7, -vector]))
    assert share == 0
    assert np.allclose(left, np.stack([vector, -vector]), atol=1e-6)
    share, left = residuals(vector, np.stack([vector, vector]))
    assert share == 255
    assert np.abs(left).max() < 1e-6


def test_the_codebook_is_the_one_that_its_version_names():
    packed = resources.files("firnline.embedding").joinpath("codebook.bin").read_bytes()
    assert hashlib.sha256(packed).hexdigest() == SHA256
    assert (CODES, SHA256[:8]) == ("tokens-1", "8aef42c2"), "another file needs another version"


def test_another_codebook_is_rejected(monkeypatch):
    monkeypatch.setattr("firnline.embedding.codebook.SHA256", "0" * 64)
    codebook.cache_clear()
    with pytest.raises(ModelRefused, match="checksum"):
        codebook()
    monkeypatch.undo()
    assert codebook() is not None
