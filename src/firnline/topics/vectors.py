"""Vectors as float32 bytes: dot product, norm and mean, in plain Python."""

from __future__ import annotations

import math
import operator
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Final

Floats = Sequence[float]


def _dot(a: Floats, b: Floats) -> float:
    return sum(map(operator.mul, a, b), 0.0)


dot: Final[Callable[[Floats, Floats], float]] = getattr(math, "sumprod", _dot)
"""The scalar product; exact and faster from Python 3.12 on."""


def norm(vector: Floats) -> float:
    """The length of a vector."""
    return math.hypot(*vector)


def unit(vector: Floats | None) -> array[float] | None:
    """The vector scaled to length 1; None if it is empty, all zero, or not finite."""
    length = norm(vector) if vector else 0.0
    if not vector or not 0 < length < math.inf:  # also false for NaN
        return None
    return array("f", (value / length for value in vector))


def pack(vector: Floats) -> bytes:
    """The vector as float32, little-endian on every machine."""
    return _little(array("f", vector)).tobytes()


def unpack(body: bytes) -> array[float]:
    """The inverse of `pack`."""
    values = array("f")
    values.frombytes(body)
    return _little(values)


def _little(values: array[float]) -> array[float]:
    if sys.byteorder != "little":  # pragma: no cover - no such machine here
        values.byteswap()
    return values


def mean(a: bytes, weight_a: int, b: Floats, weight_b: int) -> bytes:
    """The weighted mean of a packed vector and another of the same dimension."""
    total = weight_a + weight_b
    pairs = zip(unpack(a), b, strict=True)
    return pack([(x * weight_a + y * weight_b) / total for x, y in pairs])
