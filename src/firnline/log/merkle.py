"""Trees over the hashes of a log's entries, and the paths of proofs through them (RFC 6962). Pure.

A complete subtree is named by its level and its place in it: (0, 5) is the leaf of entry 5, and
(8, 0) is over the entries 0 to 255. Every node of a tree of any size is made of at most 62 of them,
so a proof needs few hashes, however long the log is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from firnline.log.proof_check import node_hash

TILE_LEVELS: Final = 8
"""So many levels of the tree are stored together."""
TILE: Final = 1 << TILE_LEVELS
EMPTY: Final = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
"""The root of an empty log: the hash of nothing."""


class Subtree(NamedTuple):
    """A complete subtree: over the entries ``place << level`` up to the next one's."""

    level: int
    place: int


HashOf: TypeAlias = Callable[[Subtree], bytes]


def complete(first: int, end: int) -> list[Subtree]:
    """The complete subtrees that a node over the entries [first, end) is made of, left to right."""
    found = []
    while first < end:
        level = (end - first).bit_length() - 1
        if first:
            level = min(level, (first & -first).bit_length() - 1)
        found.append(Subtree(level, first >> level))
        first += 1 << level
    return found


def folded(hashes: Sequence[bytes]) -> bytes:
    """The hash of a node that is made of these complete subtrees, left to right."""
    if not hashes:
        return EMPTY
    total = hashes[-1]
    for left in reversed(hashes[:-1]):
        total = node_hash(left, total)
    return total


def paired(hashes: Sequence[bytes]) -> bytes:
    """The hash of a complete subtree of these nodes, a power of two of them."""
    while len(hashes) > 1:
        pairs = zip(hashes[::2], hashes[1::2], strict=True)
        hashes = [node_hash(left, right) for left, right in pairs]
    return hashes[0]


def inclusion_path(index: int, size: int) -> list[list[Subtree]]:
    """The nodes of the proof that entry `index` is in a log of `size`, from the leaf to the root.

    Each is given as the complete subtrees that it is made of.
    """
    path: list[list[Subtree]] = []
    first, end = 0, size
    while end - first > 1:
        middle = first + _left(end - first)
        if index < middle:
            path.append(complete(middle, end))
            end = middle
        else:
            path.append(complete(first, middle))
            first = middle
    return path[::-1]


def growth_path(old: int, size: int) -> list[list[Subtree]]:
    """The nodes of the proof that a log of `size` entries continues one of `old` entries."""
    path: list[list[Subtree]] = []
    first, end, whole = 0, size, True
    if not 0 < old < size:
        return path
    while old != end:
        middle = first + _left(end - first)
        if old <= middle:
            path.append(complete(middle, end))
            end = middle
        else:
            path.append(complete(first, middle))
            first, whole = middle, False
    if not whole:
        path.append(complete(first, end))
    return path[::-1]


def hashes_of(path: Iterable[Sequence[Subtree]], hash_of: HashOf) -> list[bytes]:
    """The hashes of a path's nodes."""
    return [folded([hash_of(subtree) for subtree in node]) for node in path]


def _left(size: int) -> int:
    """The size of the left part of a tree: the largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


class Frontier:
    """The root of a tree that grows leaf by leaf, in little memory."""

    def __init__(self) -> None:
        self.size = 0
        self.nodes: list[bytes] = []
        """Of the complete subtrees, from left to right."""

    def add(self, leaf: bytes) -> None:
        """Add the next leaf."""
        size = self.size
        while size & 1:
            leaf, size = node_hash(self.nodes.pop(), leaf), size >> 1
        self.nodes.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        """The root of the leaves so far."""
        return folded(self.nodes)


class Blocks:
    """A tree that grows leaf by leaf: its nodes over 256 leaves each, and its roots at `sizes`."""

    def __init__(self, sizes: Iterable[int]) -> None:
        self.nodes: list[bytes] = []
        self.roots = {0: EMPTY}
        self._size, self._sizes = 0, frozenset(sizes)
        self._complete, self._newest = Frontier(), Frontier()

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add the next leaves."""
        for leaf in leaves:
            self._newest.add(leaf)
            self._size += 1
            if self._size in self._sizes:
                self.roots[self._size] = folded([*self._complete.nodes, *self._newest.nodes])
            if self._newest.size == TILE:
                self.nodes += self._newest.nodes
                self._complete.add(self._newest.root())
                self._newest = Frontier()
