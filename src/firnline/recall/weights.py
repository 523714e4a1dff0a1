"""What each feature of an entry weighs. Made by ``tools/ranker/train.py``; change nothing by hand.

A score is a sum of features, each times its weight, so that it can be explained. There is a table
for each kind of evidence at hand; the one with vectors leans less on words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LEXICAL: Final[Mapping[str, float]] = {
    "words": 1.76,
    "around": 6.81,
    "session": 2.13,
    "answer": 1.87,
    "before": 1.42,
    "speaker": 2.70,
    "date": 6.41,
    "asks": -0.49,
    "time": 2.75,
    "number": 1.06,
}
"""Words alone."""

MEANING: Final[Mapping[str, float]] = {
    "words": 1.09,
    "around": 6.04,
    "session": 2.08,
    "answer": 1.40,
    "before": 1.19,
    "speaker": 2.93,
    "date": 6.26,
    "asks": -0.45,
    "time": 2.94,
    "number": 0.99,
    "meaning": 4.26,
    "meaning_near": 8.52,
}
"""Words and sentence vectors."""


def of(*, meaning: bool) -> Mapping[str, float]:
    """The table for what is at hand."""
    return MEANING if meaning else LEXICAL
