"""The signs of vectors' numbers, one bit each, and the rows of them that are nearest."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from firnline.embedding.quantize import products

WIDER: Final = 4
"""Candidates by differing bits for each candidate by sums."""
_BLOCK: Final = 65_536

Bits: TypeAlias = NDArray[np.uint64]


def sign_bits(signs: NDArray[np.bool_]) -> Bits:
    """Rows of signs as rows of whole machine words, filled up with zeros."""
    packed = np.packbits(signs, axis=1)
    words = np.zeros((len(packed), -(-signs.shape[1] // 64)), dtype=np.uint64)
    words.view(np.uint8)[:, : packed.shape[1]] = packed
    return words


def nearest_rows(bits: Bits, question: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
    """The rows whose signs are nearest to the question's numbers."""
    if not len(bits):
        return np.empty(0, np.intp)
    signs = sign_bits((question >= 0)[np.newaxis])
    blocks = range(0, len(bits), _BLOCK)
    differing = np.concatenate([_differing_bits(bits[at : at + _BLOCK], signs) for at in blocks])
    chosen = _smallest_places(differing, limit * WIDER)
    if len(chosen) > limit:  # a sign counts by the size of the question's number
        rows = np.unpackbits(bits[chosen].view(np.uint8), axis=1, count=len(question))
        chosen = chosen[_smallest_places(-products(rows, question, np), limit)]
    return chosen


def _smallest_places(numbers: NDArray[Any], limit: int) -> NDArray[np.intp]:
    """The places of the `limit` smallest numbers."""
    if len(numbers) <= limit:
        return np.arange(len(numbers))
    return np.argpartition(numbers, limit)[:limit]


def _differing_bits(bits: Bits, signs: Bits) -> NDArray[np.uint16]:
    counts: NDArray[np.uint16] = np.bitwise_count(bits ^ signs).sum(axis=1, dtype=np.uint16)
    return counts
