"""What is read in a message before it is weighed: stems, concepts and a few plain facts.

Reading is the expensive part, and the same entries are weighed again and again, so what was read is
remembered by text. Nothing here knows the question.
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
from firnline.language.terms import index_terms
from firnline.log.regex import regex

FEATURE_CHARS_MAX: Final = 16_000
"""Characters of a message that are read; the index still finds what comes after them."""
PASSAGE_WORDS: Final = 80
"""Words that are weighed together: a long message counts as its best passage, not as its sum."""

_PREFIX_CHARS: Final = 5
_BEHIND: Final = " \t\r\n\"'*_)"
"""What may stand behind the last sign of a sentence."""
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
    """A part of a text: how often each stem is in it, what is akin to them, its length."""

    counts: Mapping[str, int]
    kin: frozenset[str]
    words: int


class TextFeatures(NamedTuple):
    """What was read in a text."""

    passages: tuple[Passage, ...]
    asks: bool
    """It ends with a question."""
    timely: bool
    """It has a word for a time."""
    counts: bool
    """It has a number."""


def prefix(stemmed: str) -> str:
    """The first letters of a stem, in a form that is no stem and no concept; or nothing."""
    return f"{stemmed[:_PREFIX_CHARS]}-" if len(stemmed) >= _PREFIX_CHARS else ""


@lru_cache(maxsize=65_536)
def _related_terms(stemmed: str) -> frozenset[str]:
    """Under what else a stem can be found."""
    return concepts(stemmed) | {prefix(stemmed)}


@lru_cache(maxsize=4_096)
def read_features(text: str) -> TextFeatures:
    """Read a text; of a very long one, its beginning."""
    text = text[:FEATURE_CHARS_MAX]
    terms = index_terms(text)
    words = frozenset(terms)
    parts = [terms[at : at + PASSAGE_WORDS] for at in range(0, len(terms), PASSAGE_WORDS)]
    return TextFeatures(
        passages=tuple(_passage(part) for part in parts),
        asks=_asks(text),
        timely=not _TIMELY.isdisjoint(words) or any(map(_YEAR.fullmatch, words)),
        counts=not _NUMBERS.isdisjoint(words) or _DIGIT.search(text) is not None,
    )


def _passage(terms: list[str]) -> Passage:
    counts = Counter(map(stem, terms))
    kin = _NOTHING.union(*map(_related_terms, counts))
    if not all(map(str.isascii, terms)):
        # Scripts without blanks: neighbours are asked for as pairs.
        pairs = (a + b for a, b in pairwise(terms) if len(a) == len(b) == 1 and not a.isascii())
        counts.update(pairs)
    return Passage(counts, kin, len(terms))


def _asks(text: str) -> bool:
    """Whether the last sentence is a question; a picture's description may follow it."""
    text = text.rstrip(_BEHIND)
    if text.endswith("]"):
        text = text[: text.rfind("[")].rstrip(_BEHIND)
    return text.endswith(("?", "？"))  # noqa: RUF001 - the full-width sign is meant
