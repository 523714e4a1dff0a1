"""Reading what people state from the log, once, and keeping it next to the log.

An append marks a person's conversation as unread, in its own transaction. So what was stored by an
import, by another process, or before a crash is read when it is needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from firnline.digest.testimony import called_in, read_statements
from firnline.errors import UnknownConversation
from firnline.language.statements.reader import RULES
from firnline.log import limits
from firnline.log.entry import Appended, Entry, Head, Key
from firnline.log.threads import run_by_size
from firnline.protocols import Store
from firnline.store import facts as cards
from firnline.store.facts import FactProgress, StatementChain

logger: Final = logging.getLogger("firnline")

_PROGRESS_STEP: Final = 64
"""Messages that state nothing are read again after a restart, up to so many."""
_MARKED_AT_ONCE: Final = 16
"""Conversations whose mark of being unread is removed together."""


class _ReadSoFar(NamedTuple):
    """How far a conversation was read for a person's facts; `stored` is what is recorded of it."""

    person: str
    life: object
    done: FactProgress
    stored: int


class FactReader:
    """Reads the conversations of a tenant's people."""

    def __init__(self, store: Store, tenant: str, chain: StatementChain) -> None:
        self._store, self._tenant, self._chain = store, tenant, chain
        self.known: OrderedDict[Key, _ReadSoFar] = OrderedDict()
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._read: dict[str, int] = {}  # conversations that were read to their end

    async def on_append(self, key: Key, appended: Appended, person: str | None) -> None:
        """After an append to a person's conversation: read what was stated.

        Without a `person` it is with whom it was.
        """
        known = self.known.get(key)
        whose = person or (known.person if known else None)
        with suppress(UnknownConversation):  # erased meanwhile
            async with self._lock(key):
                known = self.known.get(key)
                done = known.done.next_seq if known and known.person == whose else -1
                if known and done == appended[0].seq:
                    if len(appended) <= limits.APPEND_READ_MAX:
                        await self._add(key, known, appended.entries)
                        await self._mark(key.conversation, appended.seq + 1)
                elif done <= appended.seq:
                    await self._read_on(key, whose)

    async def read(self, key: Key, person: str | None = None) -> str | None:
        """Read what was not read yet of a conversation; returns whom it is with."""
        with suppress(UnknownConversation):
            async with self._lock(key):
                return await self._read_on(key, person)
        return None

    async def catch_up(self, person: str | None, most: int | None = None) -> bool:
        """Read the unread conversations of a person, or of all; `most` of them, if it is given.

        Returns whether there may be more.
        """
        while True:
            size = limits.PAGE_MAX if most is None else most
            heads = await self._store.unread(self._tenant, person, size)
            for head in heads:
                await self._read_head(head)
            if most is not None and len(self._read) < _MARKED_AT_ONCE and len(heads) < most:
                return False
            await self.flush()
            if most is not None or len(heads) < size:
                return len(heads) == size

    async def _read_head(self, head: Head) -> None:
        """Read a conversation to its end, unless it was."""
        key = Key(self._tenant, head.conversation)
        known = self.known.get(key)
        if known and known.person == head.person and known.done.next_seq >= head.entries:
            self._read[head.conversation] = max(
                known.done.next_seq, self._read.get(head.conversation, 0)
            )
        else:
            await self.read(key)

    async def flush(self) -> None:
        """Tell the store what was read to its end."""
        read, self._read = self._read, {}
        if read:
            await self._store.mark_read(self._tenant, read)

    async def _mark(self, conversation: str, entries: int) -> None:
        self._read[conversation] = entries
        if len(self._read) >= _MARKED_AT_ONCE:
            await self.flush()

    async def _read_on(self, key: Key, person: str | None) -> str | None:
        head = await self._store.head(key)
        if head is None or head.person is None or person not in (None, head.person):
            self.known.pop(key, None)
            return head.person if head else None
        known = await self._reading(key, head)
        while known.done.next_seq < head.entries:
            page = await self._store.read(key, known.done.next_seq, head.seq, limits.READ_PAGE)
            if not page:
                break  # erased meanwhile
            known = await self._add(key, known, page)
        self._remember(key, known)
        await self._mark(key.conversation, known.done.next_seq)
        return head.person

    async def _reading(self, key: Key, head: Head) -> _ReadSoFar:
        """How far it was read: by this process, or as it is recorded."""
        known = self.known.get(key)
        if known and (known.person, known.life) == (head.person, head.created_at):
            return known
        person = head.person or ""
        done = await cards.progress(self._store, key, person)
        if done.rules != RULES:
            done = FactProgress(rules=RULES)
        if done.called is None and done.next_seq:
            begin = await self._store.read(key, 0, done.next_seq - 1, limits.BACKLOG_PAGE)
            done = done._replace(called=called_in(begin))
        return _ReadSoFar(person, head.created_at, done, done.next_seq)

    async def _add(self, key: Key, known: _ReadSoFar, entries: Sequence[Entry]) -> _ReadSoFar:
        """Store what these entries state, and how far the conversation is read."""
        called = known.done.called if known.done.called is not None else called_in(entries)
        size = sum(len(entry.message.text) for entry in entries)
        work = partial(read_statements, key.conversation, known.person, entries, called)
        said = await run_by_size(size, work)
        done = FactProgress(entries[-1].seq + 1, called, RULES)
        if said:
            span = entries[0].seq, done.next_seq
            await self._chain.add_statements(key, known.person, span, said)
        stored = known.stored
        if said or done.next_seq - stored >= _PROGRESS_STEP or known.done.called != called:
            await cards.set_progress(self._store, key, known.person, done)
            stored = done.next_seq
        known = known._replace(done=done, stored=stored)
        self._remember(key, known)
        return known

    async def restart(self, key: Key, person: str, first_seq: int) -> None:
        """Read again from an entry on, the next time that it is needed."""
        done = await cards.progress(self._store, key, person)
        again = FactProgress(min(first_seq, done.next_seq), None, done.rules)
        await cards.set_progress(self._store, key, person, again)
        self.forget(key)

    def forget(self, key: Key) -> None:
        """Drop what is cached of a conversation."""
        self.known.pop(key, None)
        self._read.pop(key.conversation, None)

    def _lock(self, key: Key) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    def _remember(self, key: Key, known: _ReadSoFar) -> None:
        self.known[key] = known
        self.known.move_to_end(key)
        if len(self.known) > limits.HEADS_REMEMBERED:
            self.known.popitem(last=False)
