"""Codes of token vectors: two bytes a token instead of 1,536.

The tokens of a text are near to its vector, which is stored anyway. So a code says only where a
token is from there: the nearest of 256 centers, and the nearest of 256 others to what is left. The
centers were learned from texts written for Firnline (``tools/codebook``). A question's tokens are
compared with all centers once; their cosines with the tokens of a text are then looked up. Needs
the extra ``firnline[recall]``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from itertools import accumulate
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from firnline.errors import ModelRefused

STAGES: Final = 2
CENTERS: Final = 256
DIMENSION: Final = 384
SHA256: Final = "8aef42c26f919dfc71d69f60e36ba85e25f85b58418719667aa944902aa9ad6b"
"""Of the file. If it changes, so must `firnline.embedding.minilm.CODES`."""

_FULL: Final = 255

Floats: TypeAlias = NDArray[np.float32]


class Codebook:
    """Makes codes of token vectors, and compares a question's tokens with them."""

    def __init__(self, centers: Floats) -> None:
        self._centers = centers
        self._halves = (centers**2).sum(axis=2) / 2
        crossed = products(centers[0], centers[1])
        self._squares = 2 * (self._halves[0][:, None] + self._halves[1] + crossed)

    def encode(self, vector: Floats, rows: Floats) -> bytes:
        """The codes of a text's tokens, after a byte for how near they are to its vector."""
        share, left = residuals(vector, rows)
        codes = np.empty((len(rows), STAGES), dtype=np.uint8)
        for stage in range(STAGES):
            nearest = (products(left, self._centers[stage]) - self._halves[stage]).argmax(axis=1)
            codes[:, stage] = nearest
            left = left - self._centers[stage][nearest]
        return bytes([share]) + codes.tobytes()

    def compare(self, asked: Floats, vectors: Floats, codes: Sequence[bytes]) -> Floats:
        """How near each of a question's tokens is to the nearest token of each text.

        `asked` are the question's token vectors, one row each; the result has a column for each
        text, given by its vector and its codes. A text without tokens is as near as its vector.
        """
        asked = unit(asked)
        shares = np.array([code[0] for code in codes], np.float32) / _FULL
        counts = [len(code) // STAGES for code in codes]
        packed = np.frombuffer(b"".join(code[1:] for code in codes), np.uint8)
        one, other = packed.reshape(-1, STAGES).T
        found = products(asked, self._centers[0]).take(one, axis=1)
        found += products(asked, self._centers[1]).take(other, axis=1)
        at_vectors = products(asked, vectors)
        of = np.repeat(np.arange(len(codes)), counts)
        found += (at_vectors * shares)[:, of]
        found /= np.sqrt(shares[of] ** 2 + self._squares[one, other])
        filled = [place for place, count in enumerate(counts) if count]
        starts = list(accumulate(counts, initial=0))
        at_vectors[:, filled] = np.maximum.reduceat(found, [starts[n] for n in filled], axis=1)
        return at_vectors


def residuals(vector: Floats, rows: Floats) -> tuple[int, Floats]:
    """How much of a text's vector its tokens have on average, of 255, and what else they have."""
    tokens = unit(rows)
    near = float(np.vecdot(tokens, vector).mean()) if len(rows) else 0.0
    share = round(min(max(near, 0.0), 1.0) * _FULL)
    left: Floats = tokens - np.float32(share / _FULL) * vector
    return share, left


def products(rows: Floats, others: Floats) -> Floats:
    """The dot product of each row with each of the others.

    Not a product of matrices: numpy would compute it on all cores, whose threads then wait for each
    other, and for more work, longer than it takes.
    """
    found: Floats = np.vecdot(rows[:, None], others)
    return found


def unit(rows: Any) -> Floats:
    """The rows at length one."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    scaled: Floats = np.divide(rows, np.maximum(lengths, np.float32(1e-12)), dtype=np.float32)
    return scaled


@cache
def codebook() -> Codebook:
    """The codebook of MiniLM: of each stage a scale, and its centers in 8 bits a number."""
    packed = resources.files("firnline.embedding").joinpath("codebook.bin").read_bytes()
    if hashlib.sha256(packed).hexdigest() != SHA256:
        text = "the codebook of MiniLM has a wrong checksum; reinstall firnline"
        raise ModelRefused(text, code="checksum")
    scales = np.frombuffer(packed, "<f4", STAGES)
    steps = np.frombuffer(packed, np.int8, offset=scales.nbytes)
    centers = steps.reshape(STAGES, CENTERS, DIMENSION) * scales[:, None, None]
    return Codebook(centers.astype(np.float32))
