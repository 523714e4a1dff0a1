"""The embedder without a model: texts that share words are near, on every platform."""

import asyncio
import hashlib
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.embedding import WordEmbedder, open_embedder
from firnline.embedding.words import DIMENSION, WordVectors

VECTOR = WordVectors()


def cosine(first, second):
    return sum(a * b for a, b in zip(VECTOR(first), VECTOR(second), strict=True))


@pytest.mark.parametrize(
    ("question", "near", "far"),
    [
        ("When did we connect the lamps?", "connecting a lamp", "The train leaves at nine."),
        ("running costs of the servers", "the server's cost runs high", "A cake with apples"),
        ("Welche Äpfel?", "apfel äpfel APFEL", "Der Zug fährt ab."),
        ("東京駅はどこ", "東京駅の近く", "猫が好きだ"),
        ("где мой паспорт", "паспорт в ящике", "завтра будет дождь"),
    ],
)
def test_texts_with_the_same_words_are_near(question, near, far):
    assert cosine(question, near) > cosine(question, far) + 0.1


def test_a_frequent_word_counts_more_but_does_not_dominate():
    once, often = "lamp train", "lamp lamp lamp lamp lamp lamp train"
    assert 0.8 < cosine(once, often) < 1.0


@pytest.mark.parametrize("text", ["", " \n", "!?", "the and of", "für das", "\ud800"])
def test_what_has_no_content_has_no_direction(text):
    assert list(VECTOR(text)) == [0.0] * DIMENSION


@given(st.text(st.characters()))
def test_any_text_has_a_vector_of_length_one_or_none(text):
    vector = VECTOR(text)
    length = sum(number * number for number in vector)
    assert len(vector) == DIMENSION
    assert length == pytest.approx(1.0, abs=1e-5) or length == 0.0
    assert WordVectors()(text) == vector


def test_a_huge_text_and_a_huge_word_are_no_trouble():
    assert VECTOR("lamp " * 1_000_000) == VECTOR("lamp " * 20_000)
    assert any(VECTOR("x" * 10_000_000))


def test_vectors_are_the_same_in_every_process():
    program = (
        "import hashlib; from firnline.embedding.words import WordVectors;"
        "v = WordVectors()('Running shoes, 東京駅, café, паспорт');"
        "print(hashlib.sha256(v.tobytes()).hexdigest())"
    )
    here = hashlib.sha256(VECTOR("Running shoes, 東京駅, café, паспорт").tobytes()).hexdigest()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == here


async def test_it_is_an_embedder():
    embedder = open_embedder("words")
    assert isinstance(embedder, WordEmbedder)
    assert embedder.name == "words-1"
    texts = [f"lamp {number}" for number in range(100)]
    found = await asyncio.gather(*(embedder.embed(texts) for _ in range(8)))
    assert all(vectors == [VECTOR(text) for text in texts] for vectors in found)
    await embedder.close()
    assert await embedder.embed(["lamp"]) == [VECTOR("lamp")]
    assert await embedder.embed([]) == []
