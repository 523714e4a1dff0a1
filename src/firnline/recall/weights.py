"""What each feature of an entry weighs. Made by ``tools/ranker/train.py``; change nothing by hand.

A score is a sum of features, each times its weight, so that it can be explained. There is a table
for each kind of evidence at hand; those with vectors lean less on words.
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

LATE: Final[Mapping[str, float]] = {
    "words": 0.00,
    "around": 3.35,
    "session": 2.52,
    "answer": 2.34,
    "before": 1.38,
    "speaker": 2.84,
    "date": 6.25,
    "asks": -0.40,
    "time": 2.74,
    "number": 0.86,
    "meaning": 1.27,
    "meaning_near": 7.09,
    "late": 8.62,
    "late_near": 0.94,
}
"""Words, sentence vectors and token vectors."""

LATE_ALONE: Final[Mapping[str, float]] = {
    "words": 0.00,
    "around": 3.37,
    "session": 2.57,
    "answer": 2.37,
    "before": 1.49,
    "speaker": 2.57,
    "date": 6.29,
    "asks": -0.46,
    "time": 2.68,
    "number": 0.85,
    "late": 9.36,
    "late_near": 3.26,
}
"""Words and token vectors."""


def of(*, meaning: bool, late: bool) -> Mapping[str, float]:
    """The table for what is at hand."""
    if late:
        return LATE if meaning else LATE_ALONE
    return MEANING if meaning else LEXICAL
