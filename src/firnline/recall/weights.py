"""What each feature of an entry weighs. Made by ``tools/ranker/train.py``; change nothing by hand.

A score is a sum of features, each times its weight, so that it can be explained. There is a table
for each kind of evidence at hand; those with vectors lean less on words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LEXICAL: Final[Mapping[str, float]] = {
    "words": 1.83,
    "around": 6.82,
    "session": 2.48,
    "answer": 1.87,
    "before": 1.40,
    "speaker": 2.69,
    "date": 6.17,
    "asks": -0.46,
    "time": 2.69,
    "number": 0.98,
}
"""Words alone."""

MEANING: Final[Mapping[str, float]] = {
    "words": 1.14,
    "around": 6.18,
    "session": 2.38,
    "answer": 1.36,
    "before": 1.18,
    "speaker": 2.92,
    "date": 6.10,
    "asks": -0.42,
    "time": 2.89,
    "number": 0.91,
    "meaning": 3.94,
    "meaning_near": 8.19,
}
"""Words and sentence vectors."""

LATE: Final[Mapping[str, float]] = {
    "words": 0.00,
    "around": 3.54,
    "session": 2.73,
    "answer": 2.36,
    "before": 1.39,
    "speaker": 2.83,
    "date": 6.14,
    "asks": -0.39,
    "time": 2.70,
    "number": 0.82,
    "meaning": 1.24,
    "meaning_near": 7.13,
    "late": 8.47,
    "late_near": 0.63,
}
"""Words, sentence vectors and token vectors."""

LATE_ALONE: Final[Mapping[str, float]] = {
    "words": 0.00,
    "around": 3.55,
    "session": 2.78,
    "answer": 2.39,
    "before": 1.51,
    "speaker": 2.55,
    "date": 6.16,
    "asks": -0.45,
    "time": 2.64,
    "number": 0.81,
    "late": 9.22,
    "late_near": 2.94,
}
"""Words and token vectors."""


def of(*, meaning: bool, late: bool) -> Mapping[str, float]:
    """The table for what is at hand."""
    if late:
        return LATE if meaning else LATE_ALONE
    return MEANING if meaning else LEXICAL
