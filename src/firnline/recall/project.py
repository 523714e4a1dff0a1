"""A project's conversations as one history, in time order; the cost depends on what is returned.

The order is by time, and within a conversation by sequence number. A message that branches share is
in the history once: a branch begins behind what it has from another conversation of the project.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from typing import Final, NamedTuple

from firnline.log import limits
from firnline.log.entry import Entry, Head, Key, ProjectEntry, live
from firnline.protocols import Store

_HEADS_FIRST: Final = 8
_ENTRIES_FIRST: Final = 16
_READS_AT_ONCE: Final = 8  # other calls need connections, too


class ProjectSize(NamedTuple):
    """How much is in all conversations of a project together."""

    entries: int = 0
    tokens: int = 0


class ProjectHistory:
    """The history of one project of a tenant; with a `person`, of the conversations with them."""

    def __init__(
        self, store: Store, tenant: str, project: str, *, person: str | None = None
    ) -> None:
        self._store, self._tenant, self._project = store, tenant, project
        self._person = person

    async def newest(self, limit: int) -> list[ProjectEntry]:
        """The newest entries, at most `limit`, in time order."""
        found: list[ProjectEntry] = []
        if limit > 0:
            async for each in self.back():
                found.append(each)
                if len(found) == limit:
                    break
        return found[::-1]

    async def back(
        self, first_of: Callable[[Head], Awaitable[int]] | None = None
    ) -> AsyncIterator[ProjectEntry]:
        """The entries, the newest first. A conversation is read as far as its entries are used.

        `first_of` returns the first entry of a conversation that is wanted.
        """
        first_of = first_of or self.shared
        heads = self.heads()
        following = await anext(heads, None)
        opened: list[_Reading] = []
        while True:
            while following is not None and (not opened or following.updated_at >= opened[0].at):
                first = await first_of(following)
                at, end = following.updated_at, following.entries
                reading = _Reading(self._store, self._key(following), first, at, end)
                if await reading.step():
                    heappush(opened, reading)
                following = await anext(heads, None)
            if not opened:
                return
            reading = heappop(opened)
            yield ProjectEntry(reading.key.conversation, reading.entry)
            if await reading.step():
                heappush(opened, reading)

    async def dated(self, since: datetime, until: datetime, limit: int) -> list[ProjectEntry]:
        """The first entries dated in [since, until), at most `limit`, in time order.

        Of conversations that were in use then, the most recently updated are read, up to a limit.
        """
        overlapping: list[Head] = []
        async for head in self.heads():
            if head.updated_at < since or len(overlapping) == limits.PROJECT_DATED_MAX:
                break
            if head.created_at < until:
                overlapping.append(head)
        found: list[tuple[datetime, str, int, Entry]] = []
        for start in range(0, len(overlapping), _READS_AT_ONCE):
            some = overlapping[start : start + _READS_AT_ONCE]
            for page in await asyncio.gather(*(self._said(h, since, until, limit) for h in some)):
                found += page
            found = sorted(found, key=lambda item: item[:3])[:limit]
        return [ProjectEntry(name, entry) for _, name, _, entry in found]

    async def size(self) -> ProjectSize:
        """How much all conversations have together; what branches share counts once."""
        entries = tokens = 0
        branches: list[Head] = []
        async for head in self.heads():
            entries, tokens = entries + head.entries, tokens + head.tokens
            branches += [head] if head.branch_of else []
        for start in range(0, len(branches), _READS_AT_ONCE):
            some = branches[start : start + _READS_AT_ONCE]
            for shared in await asyncio.gather(*map(self._shared_size, some)):
                entries, tokens = entries - shared.entries, tokens - shared.tokens
        return ProjectSize(entries, tokens)

    async def _shared_size(self, head: Head) -> ProjectSize:
        if not (entries := await self.shared(head)):
            return ProjectSize()
        tokens = await self._store.tokens_between(self._key(head), 0, entries - 1)
        return ProjectSize(entries, tokens)

    async def heads(self) -> AsyncIterator[Head]:
        """The project's conversations with entries, the most recently updated first."""
        last, size = None, _HEADS_FIRST
        while page := await self._store.recent(self._tenant, self._project, after=last, limit=size):
            for head in page:
                if head.entries and self._person in (None, head.person):
                    yield head
            last, size = page[-1], limits.PAGE_MAX

    async def shared(self, head: Head) -> int:
        """How many of its first entries a branch has from another conversation of the project.

        Any client can write that it is a branch, so the messages are compared, too.
        """
        if head.branch_of is None:
            return 0
        source, last = head.branch_of
        if source == head.conversation or not 0 <= last <= head.seq:
            return 0
        theirs = await self._store.head(Key(self._tenant, source))
        if theirs is None or theirs.project != self._project:
            return 0
        if self._person not in (None, theirs.person):
            return 0  # theirs is not in this history
        keys = Key(self._tenant, source), self._key(head)
        one, other = await asyncio.gather(*(self._store.at(key, [last]) for key in keys))
        same = [e.message for e in one] == [e.message for e in other] != []
        return last + 1 if same else 0

    async def _said(
        self, head: Head, since: datetime, until: datetime, limit: int
    ) -> list[tuple[datetime, str, int, Entry]]:
        first = await self.shared(head)
        page = await self._store.dated(self._key(head), since, until, limit, first)
        return [
            (entry.message.created_at or since, head.conversation, entry.seq, entry)
            for entry in page
        ]

    def _key(self, head: Head) -> Key:
        return Key(self._tenant, head.conversation)


@dataclass(slots=True, eq=False)
class _Reading:
    """A conversation that is read back to `first`, a page at a time; `entry` is the next one.

    `at` is its time, or that of an entry behind it if that is earlier: sequence comes before time.
    """

    store: Store
    key: Key
    first: int
    at: datetime
    next_seq: int
    size: int = _ENTRIES_FIRST
    page: list[Entry] = field(default_factory=list)

    @property
    def entry(self) -> Entry:
        """The newest entry that was not used yet."""
        return self.page[-1]

    def __lt__(self, other: _Reading) -> bool:
        """Whether its entry is newer; of the same time, those of one conversation together."""
        return (self.at, self.key) > (other.at, other.key)

    async def step(self) -> bool:
        """Go on to the entry before; False if there is none."""
        del self.page[-1:]
        while not self.page and self.next_seq > self.first:
            start = max(self.next_seq - self.size, self.first)
            self.page = live(await self.store.read(self.key, start, self.next_seq - 1))
            self.next_seq, self.size = start, min(2 * self.size, limits.BACKLOG_PAGE)
        if not self.page:
            return False
        self.at = min(self.at, self.entry.message.created_at or self.at)
        return True
