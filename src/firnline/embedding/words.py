"""Vectors from the words of a text, without a model.

Texts that share words, in any form, are close; synonyms are not known.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby, pairwise
from typing import Final

import apsw

from firnline.embedding.model_thread import EMBED_CHARS_MAX, ModelThread, model_thread
from firnline.language.stop_words import CORE, ENGLISH_SPLIT
from firnline.language.terms import index_terms
from firnline.log import limits

NAME: Final = "words-1"
DIMENSION: Final = 256
BATCH_TEXTS_MAX: Final = 32
WORD_CHARS_MAX: Final = 64

_EMPTY: Final = CORE | ENGLISH_SPLIT | frozenset(("one", "us", "war", "pour"))
"""Ignored words. Stored vectors depend on them, so the set must not change: hence the four."""


class WordEmbedder:
    """An `Embedder` of stemmed content words, hashed to 256 numbers; never fails.

    Vectors have length one; that of a text without content words is all zeros. They are the same in
    every process.
    """

    def __init__(self) -> None:
        self._lane: ModelThread[WordVectors] | None = None

    def __repr__(self) -> str:
        return "WordEmbedder()"

    @property
    def name(self) -> str:
        """Kind and version."""
        return NAME

    async def embed(self, texts: Sequence[str]) -> list[array[float]]:
        """One vector of 256 numbers for each text; they are 32-bit floats."""
        self._lane = running = self._lane or model_thread(NAME, WordVectors)
        all_texts = list(texts)
        found: list[array[float]] = []
        for first in range(0, len(all_texts), BATCH_TEXTS_MAX):
            found += await running.run(_embed_each, all_texts[first : first + BATCH_TEXTS_MAX])
        return found

    async def close(self) -> None:
        """Release the cached words."""
        self._lane = None


class WordVectors:
    """Computes the vectors; for one thread at a time."""

    def __init__(self) -> None:
        self._stems = apsw.Connection(":memory:").fts5_tokenizer("porter", ["ascii"])
        self._stem = lru_cache(maxsize=limits.WORDS_REMEMBERED)(self._stemmed)

    def __call__(self, text: str) -> array[float]:
        """The vector of one text."""
        vector = [0.0] * DIMENSION
        for stem, count in Counter(map(self._stem, _features(text[:EMBED_CHARS_MAX]))).items():
            place, sign = _hash_stem(stem)
            # A word that occurs ten times counts more, but not ten times as much.
            vector[place] += sign * (1.0 + math.log(count))
        length = math.hypot(*vector) or 1.0
        return array("f", [number / length for number in vector])

    def _stemmed(self, word: str) -> str:
        if not word.isascii():
            return word
        how = apsw.FTS5_TOKENIZE_DOCUMENT
        stems = self._stems(
            word.encode(), how, None, include_offsets=False, include_colocated=False
        )
        return " ".join(map(str, stems))


@lru_cache(maxsize=limits.WORDS_REMEMBERED)
def _hash_stem(stem: str) -> tuple[int, float]:
    """The position and sign of a stem; collisions cancel out on average."""
    drawn = int.from_bytes(blake2b(stem.encode(), digest_size=8).digest(), "little")
    return drawn % DIMENSION, 1.0 if drawn >> 63 else -1.0


def _embed_each(words: WordVectors, texts: Sequence[str]) -> list[array[float]]:
    return [words(text) for text in texts]


def _features(text: str) -> Iterator[str]:
    """The content words; of scripts without spaces, pairs of neighbors."""
    for glyphs, terms in groupby(index_terms(text), _is_glyph):
        run = list(terms)
        if not glyphs:
            yield from (term[:WORD_CHARS_MAX] for term in run if term not in _EMPTY)
        elif len(run) == 1:
            yield run[0]
        else:
            yield from map("".join, pairwise(run))


def _is_glyph(term: str) -> bool:
    return len(term) == 1 and not term.isascii()
