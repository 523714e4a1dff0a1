"""What each feature of an entry weighs. Made by ``tools/ranker/train.py``; change nothing by hand.

A score is a sum of features, each times its weight, so that it can be explained. There is a table
for each kind of evidence at hand; those with vectors lean less on words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LEXICAL: Final[Mapping[str, float]] = {
    "words": 1.86,
    "around": 6.71,
    "session": 2.57,
    "answer": 1.90,
    "before": 1.39,
    "speaker": 2.68,
    "date": 6.79,
    "asks": -0.45,
    "time": 2.69,
    "number": 0.98,
}
"""Words alone."""

MEANING: Final[Mapping[str, float]] = {
    "words": 1.18,
    "around": 6.11,
    "session": 2.48,
    "answer": 1.41,
    "before": 1.20,
    "speaker": 2.90,
    "date": 6.75,
    "asks": -0.41,
    "time": 2.89,
    "number": 0.90,
    "meaning": 4.09,
    "meaning_near": 8.39,
}
"""Words and sentence vectors."""

LATE: Final[Mapping[str, float]] = {
    "words": 0.00,
    "around": 3.47,
    "session": 2.81,
    "answer": 2.34,
    "before": 1.40,
    "speaker": 2.79,
    "date": 6.74,
    "asks": -0.38,
    "time": 2.70,
    "number": 0.81,
    "meaning": 1.35,
    "meaning_near": 7.06,
    "late": 8.44,
    "late_near": 0.84,
}
"""Words, sentence vectors and token vectors."""

LATE_ALONE: Final[Mapping[str, float]] = {
    "words": 0.00,
    "around": 3.49,
    "session": 2.86,
    "answer": 2.40,
    "before": 1.51,
    "speaker": 2.54,
    "date": 6.74,
    "asks": -0.43,
    "time": 2.61,
    "number": 0.80,
    "late": 9.16,
    "late_near": 2.77,
}
"""Words and token vectors."""


def of(*, meaning: bool, late: bool) -> Mapping[str, float]:
    """The table for what is at hand."""
    if late:
        return LATE if meaning else LATE_ALONE
    return MEANING if meaning else LEXICAL
