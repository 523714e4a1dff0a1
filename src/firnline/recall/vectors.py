"""Finds the entries whose vectors are nearest to a question's: exact search on quantized vectors.

Of every vector the signs of its numbers are cached, one bit each: 48 bytes for 384 numbers, 48 MB
for a million entries. A question is compared with all of them (differing bits); the best are
compared with the question's numbers, and the best of those by the stored 8-bit vectors. No index
has to be built, nothing is missed because of a graph, and new vectors are found at once. If the
store can compare signs itself, it does, and nothing is cached here.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from firnline.embedding.quantize import SCALE_BYTES, dots, products, split_tokens
from firnline.embedding.token_embedder import QuestionTokens
from firnline.log import limits
from firnline.log.entry import Key
from firnline.protocols import Store, Vector

_OVERSAMPLE: Final = 4
_WIDER: Final = 4  # candidates by differing bits for each candidate by sums
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
    """An optional protocol of a store that can compare vectors itself."""

    async def nearest(
        self, key: Key, model: str, vector: Sequence[float], limit: int
    ) -> list[Vector] | None:
        """The `limit` vectors whose signs differ least from this one's; None if it cannot."""
        ...


class NearestVectors:
    """Finds the nearest entries of any conversation of a store; caches the codes it has read."""

    def __init__(self, store: Store, *, bytes_max: int = limits.VECTOR_BYTES_REMEMBERED) -> None:
        self._store, self._bytes_max = store, bytes_max
        self._known: OrderedDict[tuple[Key, str], _Codes] = OrderedDict()

    async def find(
        self, key: Key, model: str, vector: Sequence[float], limit: int
    ) -> dict[int, float]:
        """The `limit` nearest entries with their cosines; of a long entry its best part counts."""
        question = np.asarray(vector, dtype=np.float32)
        stored = None
        if isinstance(self._store, SignSearch):
            stored = await self._store.nearest(key, model, vector, limit * _OVERSAMPLE * _WIDER)
        if stored is None:
            stored = await self._compared(key, model, question, limit * _OVERSAMPLE)
        cosines = _cosines(stored, question)
        ranked = sorted(cosines, key=lambda seq: (-cosines[seq], seq))[:limit]
        return {seq: cosines[seq] for seq in ranked}

    async def _compared(
        self, key: Key, model: str, question: NDArray[np.float32], wanted: int
    ) -> list[Vector]:
        """The vectors of about as many entries as `wanted`, the nearest by their signs."""
        stored: list[Vector] = []
        for _ in range(_COMPARE_ATTEMPTS):
            codes = await self._codes(key, model, len(question))
            if not len(codes.seqs):
                return []
            best = await asyncio.to_thread(_candidates, codes, question, wanted)
            stored = await self._store.vectors_at(key, model, best)
            if _are_current(codes, stored, best, len(question)):
                break
            self.forget(key)  # another process erased the conversation and created it again
        return stored

    async def compare(
        self,
        key: Key,
        model: str,
        question: QuestionTokens,
        weights: Sequence[float],
        seqs: Sequence[int],
    ) -> dict[int, float]:
        """How near the question's tokens, by weight, are to those of these entries, best first.

        If the entries are very long, only the first of them are compared.
        """
        by_seq = await self.parts(key, model, seqs)
        size, parts = 0, list[tuple[int, bytes, bytes]]()
        for seq in seqs:
            size += sum(len(codes) for _, codes in by_seq.get(seq, ()))
            if size > limits.TOKEN_CODES_COMPARED:
                break
            parts += ((seq, *part) for part in by_seq.get(seq, ()))
        return await asyncio.to_thread(token_scores, question, weights, parts)

    async def parts(
        self, key: Key, model: str, seqs: Sequence[int]
    ) -> dict[int, list[tuple[bytes, bytes]]]:
        """The vectors of the parts of these entries, each with the codes of its tokens."""
        by_seq: dict[int, list[tuple[bytes, bytes]]] = {}
        stored = await self._store.vectors_at(key, model, seqs)
        for vector in sorted(stored, key=lambda vector: (vector.seq, vector.part)):
            by_seq.setdefault(vector.seq, []).append(split_tokens(vector.body))
        return by_seq

    def scores(
        self,
        question: QuestionTokens,
        weights: Sequence[float],
        parts: Sequence[tuple[int, bytes, bytes]],
    ) -> dict[int, float]:
        """How near the question's tokens, by weight, are to those of numbered parts."""
        return token_scores(question, weights, parts)

    def forget(self, key: Key) -> None:
        """Drop the codes of an erased conversation."""
        for known in [known for known in self._known if known[0] == key]:
            del self._known[known]

    async def _codes(self, key: Key, model: str, dimension: int) -> _Codes:
        """The codes of all entries embedded so far."""
        codes = self._known.pop((key, model), None)
        reach = await self._store.embedded(key, model)
        if codes is None or codes.next_seq > reach:  # it was erased and created again
            codes = _codes([], dimension, 0)
        while codes.next_seq < reach:
            page = await self._store.vectors(key, model, codes.next_seq, limits.VECTOR_PAGE)
            end = page[-1].seq + 1 if len(page) >= limits.VECTOR_PAGE else reach
            end = min(end, reach)  # entries embedded meanwhile are for the next call
            known = [vector for vector in page if vector.seq < end]
            codes = _join_codes(codes, _codes(known, dimension, end))
        self._known[key, model] = codes
        while len(self._known) > 1 and sum(c.size for c in self._known.values()) > self._bytes_max:
            self._known.popitem(last=False)
        return codes


def token_scores(
    question: QuestionTokens, weights: Sequence[float], parts: Sequence[tuple[int, bytes, bytes]]
) -> dict[int, float]:
    """The mean of the cosines by weight; of a long entry its best part counts."""
    size = len(question.vector) + SCALE_BYTES
    usable = [part for part in parts if part[2] and len(part[1]) == size]
    if not usable or not any(weights):
        return {}
    numbers = b"".join(code[SCALE_BYTES:] for _, code, _ in usable)
    rows = np.frombuffer(numbers, np.int8).reshape(len(usable), -1).astype(np.float32)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    nearest = question.compare(rows, [codes for _, _, codes in usable])
    # A token that is near to something in every entry says little.
    share = np.asarray(weights, np.float32) * (1 - nearest.mean(axis=1))
    scores = np.einsum("q,qt->t", share / max(share.sum(), 1e-6), nearest)
    best: dict[int, float] = {}
    for (seq, _, _), score in zip(usable, scores.tolist(), strict=True):
        best[seq] = max(best.get(seq, score), score)
    return best


def _codes(vectors: Sequence[Vector], dimension: int, next_seq: int) -> _Codes:
    # If an embedder changed its dimension under the same name, old vectors cannot be compared.
    fitting = _with_dimension(vectors, dimension)
    seqs = np.array([v.seq for v in fitting], dtype=np.int64)
    numbers = b"".join(v.body[SCALE_BYTES:] for v in fitting)
    signs = np.frombuffer(numbers, dtype=np.int8).reshape(len(fitting), dimension) >= 0
    return _Codes(seqs, _bits(signs), next_seq)


def _with_dimension(vectors: Sequence[Vector], dimension: int) -> list[Vector]:
    plain = (vector._replace(body=split_tokens(vector.body)[0]) for vector in vectors)
    return [vector for vector in plain if len(vector.body) == dimension + SCALE_BYTES]


def _are_current(
    codes: _Codes, stored: Sequence[Vector], best: Sequence[int], dimension: int
) -> bool:
    """Whether the codes of the best entries match the stored vectors."""
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


def _candidates(codes: _Codes, question: NDArray[np.float32], limit: int) -> list[int]:
    """The entries whose signs differ least from the question's."""
    signs = _bits((question >= 0)[np.newaxis])
    blocks = range(0, len(codes.seqs), _BLOCK)
    differing = np.concatenate(
        [_differing_bits(codes.bits[at : at + _BLOCK], signs) for at in blocks]
    )
    chosen = _smallest_places(differing, limit * _WIDER)
    if len(chosen) > limit:  # a sign counts by the size of the question's number
        rows = np.unpackbits(codes.bits[chosen].view(np.uint8), axis=1, count=len(question))
        chosen = chosen[_smallest_places(-products(rows, question, np), limit)]
    return sorted({int(seq) for seq in codes.seqs[chosen]})


def _smallest_places(numbers: NDArray[Any], limit: int) -> NDArray[np.intp]:
    """The places of the `limit` smallest numbers."""
    if len(numbers) <= limit:
        return np.arange(len(numbers))
    return np.argpartition(numbers, limit)[:limit]


def _differing_bits(bits: Bits, signs: Bits) -> NDArray[np.uint16]:
    counts: NDArray[np.uint16] = np.bitwise_count(bits ^ signs).sum(axis=1, dtype=np.uint16)
    return counts


def _cosines(stored: Sequence[Vector], question: NDArray[np.float32]) -> dict[int, float]:
    fitting = _with_dimension(stored, len(question))
    length = float(np.linalg.norm(question)) or 1.0
    best: dict[int, float] = {}
    for vector, dot in zip(
        fitting, dots(question.tolist(), [v.body for v in fitting], np), strict=True
    ):
        best[vector.seq] = max(best.get(vector.seq, -1.0), dot / length)
    return best
