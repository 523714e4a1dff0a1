"""Quantizes vectors: 8 bits a number after one scale, or only the signs. Pure; needs no numpy.

An 8-bit code is a little-endian float32, the scale, and then one signed byte for each number.
The codes of a text's tokens may follow it, and then how many bytes they are; the highest bit of the
scale, which is never negative, says so. Vector and tokens are one value: written, copied and erased
together.

Sign codes have a bit for each number, 1 from zero up, the first number in the highest bit. To
compare many codes faster, ``numpy`` can be passed.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Sequence
from operator import mul
from types import ModuleType
from typing import Any, Final

from firnline.errors import InputError

STEPS: Final = 127
_SCALE: Final = struct.Struct("<f")
SCALE_BYTES: Final = _SCALE.size
_SIGN_AT: Final = _SCALE.size - 1
_SIGN: Final = 0x80
_SIZE: Final = struct.Struct("<H")
_SMALLEST: Final = 2.0**-126
"""Below it a float32 has too few digits for a scale; such vectors become zero."""


def pack(vector: Sequence[float]) -> bytes:
    """The 8-bit code. Each number is off by at most half the scale, the largest one / 127.

    So a dot product with a vector of length one is off by at most half the scale times the root of
    the dimension: 0.01 for 384 numbers of which the largest is 0.13.
    """
    largest = max(map(abs, vector), default=0.0)
    try:
        head = _SCALE.pack(largest / STEPS)
    except OverflowError:
        head = _SCALE.pack(math.inf)
    (scale,) = _SCALE.unpack(head)
    if not all(map(math.isfinite, (scale, *vector))):
        raise InputError("vector: a number is not finite, or too large for a float32")
    if scale < _SMALLEST:
        return bytes(_SCALE.size + len(vector))
    return head + array("b", [round(number / scale) for number in vector]).tobytes()


def unpack(code: bytes) -> array[float]:
    """The vector of an 8-bit code, as 32-bit floats."""
    (scale,) = _SCALE.unpack_from(code)
    return array("f", [scale * step for step in array("b", code[_SCALE.size :])])


def join_tokens(code: bytes, tokens: bytes) -> bytes:
    """An 8-bit code with the codes of tokens after it, at most 65,535 bytes."""
    if not tokens:
        return code
    scale = code[:_SIGN_AT] + bytes([code[_SIGN_AT] | _SIGN])
    return scale + code[_SCALE.size :] + tokens + _SIZE.pack(len(tokens))


def split_tokens(body: bytes) -> tuple[bytes, bytes]:
    """The 8-bit code and the codes of tokens, if there are any."""
    if len(body) < _SCALE.size + _SIZE.size or not body[_SIGN_AT] & _SIGN:
        return body, b""
    (size,) = _SIZE.unpack_from(body, len(body) - _SIZE.size)
    end = max(len(body) - _SIZE.size - size, _SCALE.size)
    scale = body[:_SIGN_AT] + bytes([body[_SIGN_AT] & ~_SIGN])
    return scale + body[_SCALE.size : end], body[end : -_SIZE.size]


def dots(
    vector: Sequence[float], codes: Sequence[bytes], numpy: ModuleType | None = None
) -> list[float]:
    """The dot products of a vector with 8-bit codes of its dimension."""
    if numpy is None or not codes:
        return [
            _SCALE.unpack_from(code)[0] * sum(map(mul, vector, array("b", code[_SCALE.size :])))
            for code in codes
        ]
    rows = numpy.frombuffer(b"".join(codes), dtype=numpy.int8).reshape(len(codes), -1)
    scales = rows[:, : _SCALE.size].copy().view("<f4")[:, 0]
    found = products(rows[:, _SCALE.size :], numpy.asarray(vector, numpy.float32), numpy)
    return list(map(float, found * scales))


def products(rows: Any, vector: Any, numpy: ModuleType) -> Any:
    """Each row of small integers times the vector, as arrays of 32-bit floats."""
    # One dot product for each row: a product of matrices would use all cores, and keep them busy.
    # The BLAS library sometimes raises floating-point flags for padding.
    with numpy.errstate(all="ignore"):
        return numpy.vecdot(rows.astype(numpy.float32), vector)


def signs(vector: Sequence[float]) -> bytes:
    """The sign code, padded with zeros to whole bytes."""
    size = -(-len(vector) // 8)
    bits = "".join("1" if number >= 0 else "0" for number in vector).ljust(size * 8, "0")
    return int(bits or "0", 2).to_bytes(size, "big")
