"""The signs of the vectors of many conversations, in one piece: one scan compares all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firnline.protocols import EmbeddedTo
from firnline.recall.signs import Bits, nearest_rows


class SignedEntry(NamedTuple):
    """A row of a pool: the signs of a vector, and the entry it belongs to."""

    conversation: str
    seq: int
    signs: bytes


@dataclass(frozen=True, slots=True)
class Pool:
    """The signs of several conversations' vectors; a changed pool is a new one."""

    ends: Mapping[str, EmbeddedTo]
    """How many of the first entries are in it, by conversation."""
    numbers: Mapping[str, int]
    names: tuple[str, ...]
    owners: NDArray[np.int32]
    seqs: NDArray[np.int64]
    bits: Bits

    @classmethod
    def empty(cls, words: int) -> Pool:
        """A pool without rows; `words` are those of a row's signs."""
        rows = np.empty((0, words), np.uint64)
        return cls({}, {}, (), np.empty(0, np.int32), np.empty(0, np.int64), rows)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.owners.nbytes + self.seqs.nbytes + self.bits.nbytes

    def without(self, names: Iterable[str]) -> Pool:
        """The pool without these conversations."""
        gone = [name for name in names if name in self.ends]
        if not gone:
            return self
        kept = ~np.isin(self.owners, [self.numbers[name] for name in gone])
        ends = {name: end for name, end in self.ends.items() if name not in set(gone)}
        rows = self.owners[kept], self.seqs[kept], self.bits[kept]
        return Pool(ends, self.numbers, self.names, *rows)

    def plus(self, added: Sequence[tuple[str, EmbeddedTo, NDArray[np.int64], Bits]]) -> Pool:
        """The pool with more rows of conversations, each with its new end."""
        if not added:
            return self
        names = [*self.names]
        numbers = dict(self.numbers)
        for name, *_ in added:
            if name not in numbers:
                numbers[name] = len(names)
                names.append(name)
        owners = [np.full(len(seqs), numbers[name], np.int32) for name, _, seqs, _ in added]
        return Pool(
            {**self.ends, **{name: end for name, end, *_ in added}},
            numbers,
            tuple(names),
            np.concatenate([self.owners, *owners]),
            np.concatenate([self.seqs, *(seqs for _, _, seqs, _ in added)]),
            np.concatenate([self.bits, *(bits for *_, bits in added)]),
        )

    def nearest(self, question: NDArray[np.float32], limit: int) -> list[SignedEntry]:
        """The rows whose signs are nearest to the question's numbers."""
        rows = nearest_rows(self.bits, question, limit)
        return [
            SignedEntry(self.names[owner], seq, bits.tobytes())
            for owner, seq, bits in zip(
                self.owners[rows].tolist(), self.seqs[rows].tolist(), self.bits[rows], strict=True
            )
        ]
