"""The entries whose vectors are nearest to a question's: exact search on quantised vectors.

Of every vector the signs of its numbers are kept in memory, one bit each: 48 bytes for 384 numbers,
48 MB for a million entries. A question is compared with all of them (bits that differ); the best
are weighed by the question's own numbers, and of those the best by the stored 8-bit vectors. No
index has to be built, nothing is missed because a graph did not lead there, and what was embedded a
moment ago is found at once. A store that compares signs itself is asked, and nothing is kept here.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from firnline.embedding.quantize import dots, products
from firnline.log import limits
from firnline.log.entry import Key
from firnline.protocols import Store, Vector

_SCALE_BYTES: Final = 4
_OVERSAMPLE: Final = 4
_WIDER: Final = 4  # of so many more, chosen by bits that differ, the best by sums go on
_BLOCK: Final = 65_536
_COMPARE_ATTEMPTS: Final = 2

Bits: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class _Codes:
    """The signs of a conversation's vectors, and the entries they belong to."""

    seqs: NDArray[np.int64]
    bits: Bits
    next_seq: int

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.seqs.nbytes + self.bits.nbytes


@runtime_checkable
class SignSearch(Protocol):
    """What a store may have beside `Store`: it compares vectors where they lie."""

    async def nearest(
        self, key: Key, model: str, vector: Sequence[float], limit: int
    ) -> list[Vector] | None:
        """The `limit` vectors whose signs differ least from this one's; None if it cannot."""
        ...


class NearestVectors:
    """Finds the nearest entries of any conversation of a store; remembers the codes it has read."""

    def __init__(self, store: Store, *, bytes_max: int = limits.VECTOR_BYTES_REMEMBERED) -> None:
        self._store, self._bytes_max = store, bytes_max
        self._known: OrderedDict[tuple[Key, str], _Codes] = OrderedDict()

    async def find(
        self, key: Key, model: str, vector: Sequence[float], limit: int
    ) -> dict[int, float]:
        """The `limit` nearest entries with their cosines; of a long entry its best part counts."""
        asked = np.asarray(vector, dtype=np.float32)
        stored = None
        if isinstance(self._store, SignSearch):
            stored = await self._store.nearest(key, model, vector, limit * _OVERSAMPLE * _WIDER)
        if stored is None:
            stored = await self._compared(key, model, asked, limit * _OVERSAMPLE)
        cosines = _cosines(stored, asked)
        ranked = sorted(cosines, key=lambda seq: (-cosines[seq], seq))[:limit]
        return {seq: cosines[seq] for seq in ranked}

    async def _compared(
        self, key: Key, model: str, asked: NDArray[np.float32], wanted: int
    ) -> list[Vector]:
        """The vectors of about as many entries as `wanted`, the nearest by their signs."""
        stored: list[Vector] = []
        for _ in range(_COMPARE_ATTEMPTS):
            codes = await self._codes(key, model, len(asked))
            if not len(codes.seqs):
                return []
            best = await asyncio.to_thread(_candidates, codes, asked, wanted)
            stored = await self._store.vectors_at(key, model, best)
            if _are_current(codes, stored, best, len(asked)):
                break
            self.forget(key)  # another process erased the conversation, and it was begun anew
        return stored

    def forget(self, key: Key) -> None:
        """Let go of a conversation that is no more."""
        for known in [known for known in self._known if known[0] == key]:
            del self._known[known]

    async def _codes(self, key: Key, model: str, dimension: int) -> _Codes:
        """The codes of all that has been embedded up to now."""
        codes = self._known.pop((key, model), None)
        reach = await self._store.embedded(key, model)
        if codes is None or codes.next_seq > reach:  # it was erased, and begun anew
            codes = _codes([], dimension, 0)
        while codes.next_seq < reach:
            page = await self._store.vectors(key, model, codes.next_seq, limits.VECTOR_PAGE)
            end = page[-1].seq + 1 if len(page) >= limits.VECTOR_PAGE else reach
            end = min(end, reach)  # more may have come meanwhile; those are for the next time
            known = [vector for vector in page if vector.seq < end]
            codes = _join_codes(codes, _codes(known, dimension, end))
        self._known[key, model] = codes
        while len(self._known) > 1 and sum(c.size for c in self._known.values()) > self._bytes_max:
            self._known.popitem(last=False)
        return codes


def _codes(vectors: Sequence[Vector], dimension: int, next_seq: int) -> _Codes:
    # Of an embedder that changed its dimension under the same name, nothing can be compared.
    fitting = _with_dimension(vectors, dimension)
    seqs = np.array([v.seq for v in fitting], dtype=np.int64)
    numbers = b"".join(v.body[_SCALE_BYTES:] for v in fitting)
    signs = np.frombuffer(numbers, dtype=np.int8).reshape(len(fitting), dimension) >= 0
    return _Codes(seqs, _bits(signs), next_seq)


def _with_dimension(vectors: Sequence[Vector], dimension: int) -> list[Vector]:
    return [vector for vector in vectors if len(vector.body) == dimension + _SCALE_BYTES]


def _are_current(
    codes: _Codes, stored: Sequence[Vector], best: Sequence[int], dimension: int
) -> bool:
    """Whether the codes of the best entries are those of what is stored for them now."""
    fitting = _with_dimension(stored, dimension)
    if {vector.seq for vector in fitting} != set(best):
        return False
    now = _codes(fitting, dimension, 0)
    parts = np.array([vector.part for vector in fitting], dtype=np.int64)
    places = np.searchsorted(codes.seqs, now.seqs) + parts
    return bool(places.max() < len(codes.seqs)) and np.array_equal(codes.bits[places], now.bits)


def _bits(signs: NDArray[np.bool_]) -> Bits:
    """Rows of signs as rows of whole machine words, filled up with zeros."""
    packed = np.packbits(signs, axis=1)
    words = np.zeros((len(packed), -(-signs.shape[1] // 64)), dtype=np.uint64)
    words.view(np.uint8)[:, : packed.shape[1]] = packed
    return words


def _join_codes(first: _Codes, second: _Codes) -> _Codes:
    seqs = np.concatenate([first.seqs, second.seqs])
    return _Codes(seqs, np.concatenate([first.bits, second.bits]), second.next_seq)


def _candidates(codes: _Codes, asked: NDArray[np.float32], limit: int) -> list[int]:
    """The entries whose signs differ least from the question's."""
    signs = _bits((asked >= 0)[np.newaxis])
    blocks = range(0, len(codes.seqs), _BLOCK)
    differing = np.concatenate(
        [_differing_bits(codes.bits[at : at + _BLOCK], signs) for at in blocks]
    )
    chosen = _smallest_places(differing, limit * _WIDER)
    if len(chosen) > limit:  # a sign counts as much as the question's number is large
        rows = np.unpackbits(codes.bits[chosen].view(np.uint8), axis=1, count=len(asked))
        chosen = chosen[_smallest_places(-products(rows, asked, np), limit)]
    return sorted({int(seq) for seq in codes.seqs[chosen]})


def _smallest_places(numbers: NDArray[Any], limit: int) -> NDArray[np.intp]:
    """The places of the `limit` smallest numbers."""
    if len(numbers) <= limit:
        return np.arange(len(numbers))
    return np.argpartition(numbers, limit)[:limit]


def _differing_bits(bits: Bits, signs: Bits) -> NDArray[np.uint16]:
    counts: NDArray[np.uint16] = np.bitwise_count(bits ^ signs).sum(axis=1, dtype=np.uint16)
    return counts


def _cosines(stored: Sequence[Vector], asked: NDArray[np.float32]) -> dict[int, float]:
    fitting = _with_dimension(stored, len(asked))
    length = float(np.linalg.norm(asked)) or 1.0
    best: dict[int, float] = {}
    for vector, dot in zip(
        fitting, dots(asked.tolist(), [v.body for v in fitting], np), strict=True
    ):
        best[vector.seq] = max(best.get(vector.seq, -1.0), dot / length)
    return best
