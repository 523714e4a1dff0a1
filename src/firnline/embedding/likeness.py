"""The cosine that means the same subject, for each model.

Cosines of sentence models differ: with MiniLM two messages on one subject have about 0.35, on
different subjects 0.03; other models have higher ones. So each model has a **likeness**: the raw
cosine between a message and a topic's mean from which they usually belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LIKENESS: Final[Mapping[str, float]] = {
    "all-MiniLM-L6-v2-int8": 0.28,
    "universal-sentence-encoder-multilingual-3": 0.44,
    "words-1": 0.14,
}
"""By the name of the embedder; docs/strategies/topics.md has the measurements."""
LIKENESS_DEFAULT: Final = 0.45
"""For models that were not measured: between MiniLM's and those with high cosines."""


def likeness_of(model: str) -> float:
    """The likeness of a model."""
    return LIKENESS.get(model, LIKENESS_DEFAULT)
