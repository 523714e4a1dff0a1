"""Features of a text, independent of the question: stems, concepts and a few plain facts.

Computing them is the expensive part, and the same entries are ranked again and again, so they are
cached by text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from firnline.language import lexicon
from firnline.language.concepts import concepts
from firnline.language.date_words import MONTHS, WEEKDAYS
from firnline.language.stems import stem
from firnline.language.terms import identifier_parts, index_terms
from firnline.log.regex import regex
from firnline.recall.limits import FEATURE_CHARS_MAX

PASSAGE_WORDS: Final = 80
"""Words of a passage: a long message is scored by its best passage."""

_PREFIX_CHARS: Final = 5
_BEHIND: Final = " \t\r\n\"'*_)"
"""Characters that may follow the end of a sentence."""
_DIGIT: Final = regex(r"\d")
_YEAR: Final = regex("(?:19|20)[0-9]{2}")
_TIMES: Final = """
yesterday today tonight tomorrow last next ago since week weeks weekend month months year years
day days recently morning night evening soon just 昨 今 明 去 周 月 年 日
"""
_TIMELY: Final = frozenset(MONTHS) | frozenset(WEEKDAYS) | frozenset(_TIMES.split())
_NUMBERS: Final = (
    frozenset(lexicon.SMALL_NUMBERS)
    | frozenset(lexicon.FOREIGN_NUMBERS)
    | frozenset(lexicon.TENS)
    | frozenset(("dozen", "few", "several", "hundred", "thousand", "million"))
)
_NOTHING: Final[frozenset[str]] = frozenset()


class Passage(NamedTuple):
    """A part of a text: the counts of its stems, their related terms, and its length."""

    counts: Mapping[str, int]
    kin: frozenset[str]
    words: int


class TextFeatures(NamedTuple):
    """The features of a text."""

    passages: tuple[Passage, ...]
    asks: bool
    """It ends with a question."""
    timely: bool
    """It mentions a time."""
    counts: bool
    """It mentions a number."""


def prefix(stemmed: str) -> str:
    """The first letters of a stem, marked so that it is no stem or concept; empty if too short."""
    return f"{stemmed[:_PREFIX_CHARS]}-" if len(stemmed) >= _PREFIX_CHARS else ""


@lru_cache(maxsize=65_536)
def _related_terms(stemmed: str) -> frozenset[str]:
    """Other terms by which a stem can be found."""
    return concepts(stemmed) | {prefix(stemmed)}


@lru_cache(maxsize=4_096)
def read_features(text: str) -> TextFeatures:
    """The features of a text; of a very long one, of its beginning."""
    text = text[:FEATURE_CHARS_MAX]
    terms = [*index_terms(text), *identifier_parts(text)]
    words = frozenset(terms)
    parts = [terms[at : at + PASSAGE_WORDS] for at in range(0, len(terms), PASSAGE_WORDS)]
    return TextFeatures(
        passages=tuple(read_passage(part) for part in parts),
        asks=_asks(text),
        timely=not _TIMELY.isdisjoint(words) or any(map(_YEAR.fullmatch, words)),
        counts=not _NUMBERS.isdisjoint(words) or _DIGIT.search(text) is not None,
    )


def read_passage(terms: list[str]) -> Passage:
    """The features of these words."""
    counts = Counter(map(stem, terms))
    for term in terms:
        if "_" in term:
            counts.update(map(stem, filter(None, term.split("_"))))
    kin = _NOTHING.union(*map(_related_terms, counts))
    if not all(map(str.isascii, terms)):
        # Scripts without spaces are searched by pairs of neighbors.
        pairs = (a + b for a, b in pairwise(terms) if len(a) == len(b) == 1 and not a.isascii())
        counts.update(pairs)
    return Passage(counts, kin, len(terms))


def _asks(text: str) -> bool:
    """Whether the last sentence is a question; an image description may follow it."""
    text = text.rstrip(_BEHIND)
    if text.endswith("]"):
        text = text[: text.rfind("[")].rstrip(_BEHIND)
    return text.endswith(("?", "？"))  # noqa: RUF001 - the full-width sign is meant
