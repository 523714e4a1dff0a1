"""The same message in several branches: it is found once, with the names of the others.

A branch starts with entries of another conversation, which its head names (`Head.branch_of`). Any
client can write that, and a name can be in use again, so the messages are compared, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from firnline.log import limits
from firnline.log.entry import Head, Key
from firnline.log.hit import Hit
from firnline.protocols import Store
from firnline.recall.reads import in_turn


class EntryPlace(NamedTuple):
    """A conversation and a sequence number."""

    conversation: str
    seq: int


class Copies:
    """Knows which found entries are the same message; for one search in several conversations."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store, self._tenant = store, tenant
        self._heads: dict[str, Head | None] = {}
        self._first: dict[EntryPlace, EntryPlace] = {}  # by the place where the message was written
        self._stands: dict[EntryPlace, EntryPlace] = {}
        self._others: defaultdict[EntryPlace, set[str]] = defaultdict(set)

    def original(self, place: EntryPlace) -> EntryPlace:
        """The place that stands for all places of the same message that were found so far."""
        return self._stands.get(place, place)

    async def distinct(self, places: Iterable[EntryPlace]) -> int:
        """How many different messages these are; `original` knows them from now on."""
        found = list(dict.fromkeys(places))
        await self._compare(found)
        return len({self.original(place) for place in found})

    async def unite(self, hits: Sequence[Hit]) -> list[Hit]:
        """The first hit of every message, with the other conversations that have it."""
        await self.distinct(EntryPlace(hit.conversation, hit.seq) for hit in hits)
        first: dict[EntryPlace, Hit] = {}
        for hit in hits:
            first.setdefault(self.original(EntryPlace(hit.conversation, hit.seq)), hit)
        return [
            replace(hit, also_in=tuple(sorted(self._others[place] - {hit.conversation})))
            for place, hit in first.items()
        ]

    # -- comparing ----------------------------------------------------------------------------

    async def _compare(self, places: Sequence[EntryPlace]) -> None:
        """Group the places by where they were written, and keep those with the same message."""
        at: defaultdict[int, list[str]] = defaultdict(list)
        for name, seq in places:
            at[seq].append(name)
        several = {seq: names for seq, names in at.items() if len(names) > 1}
        await self._load_heads({name for names in several.values() for name in names})
        pairs: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for seq, names in several.items():
            groups: defaultdict[str, list[str]] = defaultdict(list)
            for name in names:
                groups[self._written_in(name, seq)].append(name)
            for root, same in groups.items():
                if len(same) < 2:  # noqa: PLR2004 - one conversation alone has no copy
                    continue
                chosen = root if root in same else same[0]
                first = self._first.setdefault(EntryPlace(root, seq), EntryPlace(chosen, seq))
                for name in same:
                    if EntryPlace(name, seq) not in self._stands:
                        pairs[first.conversation, name].append(seq)
        await self._verify(pairs)

    async def _verify(self, pairs: dict[tuple[str, str], list[int]]) -> None:
        """Record the pairs of conversations that have the same message where both have it last."""
        asked: defaultdict[str, set[int]] = defaultdict(set)
        for (one, other), seqs in pairs.items():
            for name in {one, other} if one != other else ():
                asked[name].add(max(seqs))
        found = dict(zip(asked, await self._read(asked), strict=True))
        for (one, other), seqs in pairs.items():
            last = max(seqs)
            if one != other and found[one].get(last) != found[other].get(last):
                continue
            for seq in seqs:
                self._stands[EntryPlace(other, seq)] = EntryPlace(one, seq)
                self._others[EntryPlace(one, seq)] |= {one, other}

    async def _read(self, asked: dict[str, set[int]]) -> list[dict[int, object]]:
        pages = await in_turn(
            lambda item: self._store.at(Key(self._tenant, item[0]), sorted(item[1])),
            list(asked.items()),
        )
        return [{entry.seq: entry.message for entry in page} for page in pages]

    async def _load_heads(self, names: set[str]) -> None:
        """Read the heads of these conversations, and of those that they are branches of."""
        while new := sorted(names - self._heads.keys()):
            heads = await in_turn(lambda name: self._store.head(Key(self._tenant, name)), new)
            self._heads |= dict(zip(new, heads, strict=True))
            names = {head.branch_of[0] for head in heads if head and head.branch_of}

    def _written_in(self, name: str, seq: int) -> str:
        """The conversation in which an entry was written first."""
        for _ in range(limits.BRANCH_DEPTH_MAX):
            head = self._heads.get(name)
            if head is None or head.branch_of is None or seq > head.branch_of[1]:
                break
            name = head.branch_of[0]
        return name
