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
from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from firnline.embedding.quantize import SCALE_BYTES, dots, split_tokens
from firnline.embedding.token_embedder import QuestionTokens
from firnline.log import limits
from firnline.log.entry import Key, Scope
from firnline.protocols import EmbeddedTo, Store, Vector
from firnline.recall.passage_finder import NearEntry
from firnline.recall.reads import in_turn
from firnline.recall.signs import WIDER, Bits, nearest_rows, sign_bits
from firnline.recall.vector_pool import Pool, SignedEntry

_OVERSAMPLE: Final = 4
_OVERSAMPLE_WIDE: Final = 2  # of many conversations, each one is asked
_COMPARE_ATTEMPTS: Final = 2


class _PoolKey(NamedTuple):
    tenant: str
    model: str
    dimension: int
    project: str | None
    person: str | None


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

    async def nearest_in(
        self, tenant: str, model: str, vector: Sequence[float], limit: int, scope: Scope
    ) -> list[tuple[str, Vector]] | None:
        """The same among all conversations of a scope, with the conversation of each vector."""
        ...


class NearestVectors:
    """Finds the nearest entries of any conversation of a store; caches the codes it has read."""

    def __init__(self, store: Store, *, bytes_max: int = limits.VECTOR_BYTES_REMEMBERED) -> None:
        self._store, self._bytes_max = store, bytes_max
        self._known: OrderedDict[tuple[Key, str], _Codes] = OrderedDict()
        self._pools: OrderedDict[_PoolKey, Pool] = OrderedDict()

    async def find(
        self, key: Key, model: str, vector: Sequence[float], limit: int
    ) -> dict[int, float]:
        """The `limit` nearest entries with their cosines; of a long entry its best part counts."""
        question = np.asarray(vector, dtype=np.float32)
        stored = None
        if isinstance(self._store, SignSearch):
            stored = await self._store.nearest(key, model, vector, limit * _OVERSAMPLE * WIDER)
        if stored is None:
            stored = await self._compared(key, model, question, limit * _OVERSAMPLE)
        cosines = _cosines(stored, question)
        ranked = sorted(cosines, key=lambda seq: (-cosines[seq], seq))[:limit]
        return {seq: cosines[seq] for seq in ranked}

    async def find_in(
        self, tenant: str, model: str, vector: Sequence[float], limit: int, scope: Scope
    ) -> list[NearEntry]:
        """The `limit` nearest entries of all conversations in scope, by one scan of all vectors.

        Only the scope's project and person count.
        """
        question = np.asarray(vector, dtype=np.float32)
        stored = None
        if isinstance(self._store, SignSearch):
            wanted = limit * _OVERSAMPLE * WIDER
            stored = await self._store.nearest_in(tenant, model, vector, wanted, scope)
        if stored is None:
            stored = await self._compared_in(tenant, model, question, limit, scope)
        by_name: dict[str, list[Vector]] = {}
        for name, found in stored:
            by_name.setdefault(name, []).append(found)
        near = [
            NearEntry(name, seq, cosine)
            for name, vectors in by_name.items()
            for seq, cosine in _cosines(vectors, question).items()
        ]
        return sorted(near, key=lambda item: (-item.cosine, item.conversation, item.seq))[:limit]

    async def _compared_in(
        self, tenant: str, model: str, question: NDArray[np.float32], limit: int, scope: Scope
    ) -> list[tuple[str, Vector]]:
        """The vectors of about as many entries as `limit`, the nearest by their signs."""
        stored: list[tuple[str, Vector]] = []
        for _ in range(_COMPARE_ATTEMPTS):
            pool = await self._pool(tenant, model, len(question), scope)
            rows = await asyncio.to_thread(pool.nearest, question, limit * _OVERSAMPLE_WIDE)
            by_name: dict[str, set[int]] = {}
            for row in rows:
                by_name.setdefault(row.conversation, set()).add(row.seq)
            pages = await in_turn(
                lambda item: self._store.vectors_at(Key(tenant, item[0]), model, sorted(item[1])),
                list(by_name.items()),
            )
            stored = [
                (name, found) for name, page in zip(by_name, pages, strict=True) for found in page
            ]
            changed = _changed(rows, stored, len(question))
            if not changed:
                break
            for name in changed:  # another process erased them and created them again
                self.forget(Key(tenant, name))
        return stored

    async def _pool(self, tenant: str, model: str, dimension: int, scope: Scope) -> Pool:
        """The codes of all conversations in scope, as far as they are embedded."""
        place = _PoolKey(tenant, model, dimension, scope.project, scope.person)
        old = self._pools.get(place) or Pool.empty(-(-dimension // 64))
        reach = await self._store.embedded_in(tenant, model, scope)
        old = old.without([name for name, end in old.ends.items() if _is_new(end, reach.get(name))])
        none = EmbeddedTo(0, 0)
        behind = [
            (name, old.ends.get(name, none).next_seq, end)
            for name, end in reach.items()
            if old.ends.get(name, none).next_seq < end.next_seq
        ]
        new = await in_turn(
            lambda item: self._new_codes(
                Key(tenant, item[0]), model, item[1], item[2].next_seq, dimension
            ),
            behind,
        )
        pool = old.plus(
            [
                (name, end, codes.seqs, codes.bits)
                for (name, _, end), codes in zip(behind, new, strict=True)
            ]
        )
        self._pools.pop(place, None)
        self._pools[place] = pool
        while len(self._pools) > 1 and sum(p.size for p in self._pools.values()) > self._bytes_max:
            self._pools.popitem(last=False)
        return pool

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
        for place, pool in self._pools.items():
            if place.tenant == key.tenant:
                self._pools[place] = pool.without([key.conversation])

    async def _codes(self, key: Key, model: str, dimension: int) -> _Codes:
        """The codes of all entries embedded so far."""
        codes = self._known.pop((key, model), None)
        reach = await self._store.embedded(key, model)
        if codes is None or codes.next_seq > reach:  # it was erased and created again
            codes = _codes([], dimension, 0)
        codes = _join_codes(
            codes, await self._new_codes(key, model, codes.next_seq, reach, dimension)
        )
        self._known[key, model] = codes
        while len(self._known) > 1 and sum(c.size for c in self._known.values()) > self._bytes_max:
            self._known.popitem(last=False)
        return codes

    async def _new_codes(
        self, key: Key, model: str, first_seq: int, reach: int, dimension: int
    ) -> _Codes:
        """The codes of the entries from `first_seq` up to `reach`, exclusive."""
        codes = _codes([], dimension, first_seq)
        while codes.next_seq < reach:
            page = await self._store.vectors(key, model, codes.next_seq, limits.VECTOR_PAGE)
            end = page[-1].seq + 1 if len(page) >= limits.VECTOR_PAGE else reach
            end = min(end, reach)  # entries embedded meanwhile are for the next call
            known = [vector for vector in page if vector.seq < end]
            codes = _join_codes(codes, _codes(known, dimension, end))
        return codes


def _is_new(known: EmbeddedTo, now: EmbeddedTo | None) -> bool:
    """Whether the conversation was erased, and perhaps created again, since it was known."""
    return now is None or now.life != known.life or now.next_seq < known.next_seq


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
    return _Codes(seqs, sign_bits(signs), next_seq)


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


def _changed(
    rows: Sequence[SignedEntry], stored: Sequence[tuple[str, Vector]], dimension: int
) -> set[str]:
    """The conversations of which a row does not match the stored vectors."""
    names = [name for name, _ in stored]
    now: dict[tuple[str, int], set[bytes]] = {}
    for name, vector in zip(names, [vector for _, vector in stored], strict=True):
        for fitting in _with_dimension([vector], dimension):
            signs = _codes([fitting], dimension, 0).bits[0].tobytes()
            now.setdefault((name, fitting.seq), set()).add(signs)
    return {
        row.conversation
        for row in rows
        if row.signs not in now.get((row.conversation, row.seq), ())
    }


def _join_codes(first: _Codes, second: _Codes) -> _Codes:
    seqs = np.concatenate([first.seqs, second.seqs])
    return _Codes(seqs, np.concatenate([first.bits, second.bits]), second.next_seq)


def _candidates(codes: _Codes, question: NDArray[np.float32], limit: int) -> list[int]:
    """The entries whose signs differ least from the question's."""
    return sorted({int(seq) for seq in codes.seqs[nearest_rows(codes.bits, question, limit)]})


def _cosines(stored: Sequence[Vector], question: NDArray[np.float32]) -> dict[int, float]:
    fitting = _with_dimension(stored, len(question))
    length = float(np.linalg.norm(question)) or 1.0
    best: dict[int, float] = {}
    for vector, dot in zip(
        fitting, dots(question.tolist(), [v.body for v in fitting], np), strict=True
    ):
        best[vector.seq] = max(best.get(vector.seq, -1.0), dot / length)
    return best
