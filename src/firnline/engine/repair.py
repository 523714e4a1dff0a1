"""Repairing rows outside the log: restored from the journal, or made again from the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from firnline.context.context import DAMAGED
from firnline.digest import items
from firnline.engine.digester import Digester
from firnline.engine.topic_assigner import TopicAssigner
from firnline.errors import ConflictError, InputError, StoreCorrupt
from firnline.log import limits
from firnline.log.chain import checked_entries
from firnline.log.entry import Entry, Key, genesis, live
from firnline.protocols import Damage, Known, Store
from firnline.store import journal
from firnline.store.journal import Stated
from firnline.store.seals import CARDS
from firnline.topics import apply_feedback, change_tags

logger: Final = logging.getLogger("firnline.repair")

T = TypeVar("T")

_NEEDS_JOURNAL: Final = ("about", "pins", "projects")
_RESTORED: Final = {
    **dict.fromkeys(_NEEDS_JOURNAL, "restored from the journal"),
    "head": "restored from the log",
    "keys": "removed",
    CARDS: "forgotten, and a key whose revocation is missing is removed",
}
_LEFT: Final = {
    **dict.fromkeys(_NEEDS_JOURNAL, "not restored: there is no journal of it"),
    "head": "not restored: messages are damaged or missing at the end of the log",
    CARDS: "left for the repair of facts",
}


class Repairer:
    """Repairs conversations, and the projects of tenants."""

    def __init__(self, store: Store, digester: Digester, topics: TopicAssigner) -> None:
        self._store, self._digester, self._topics = store, digester, topics

    async def repair(self, key: Key) -> list[str]:
        """Repair what is damaged; returns what was, and how it was repaired.

        A description or pins without a journal are left as they are, and stay damaged.
        """
        damaged = await self._store.damage(key)
        stated, is_sound = await self._stated(key)
        done = await self._mend(key, damaged, stated)
        return done if is_sound else [*done, await self._begin_journal(key)]

    async def _stated(self, key: Key) -> tuple[Stated | None, bool]:
        """What the journal says, and whether it is undamaged; a damaged one says nothing."""
        try:
            return await journal.read(self._store, key), True
        except StoreCorrupt:
            return None, False

    async def _mend(self, key: Key, damaged: list[Damage], stated: Stated | None) -> list[str]:
        if not damaged:
            return []
        parts = {one.part for one in damaged}
        if stated is None:
            parts -= {*_NEEDS_JOURNAL}
        await self._store.mend(key, parts, await self._known(key, parts, stated or Stated()))
        if "digests" in parts:
            await self._digester.set_damaged_aside(key)
            await self._state_again(key, stated)
        if "topics" in parts:
            await self._restore_topics(key, stated or Stated())
        left = {one.part for one in await self._store.damage(key)}
        return [f"{one}: {_outcome(one, left)}" for one in damaged]

    async def _begin_journal(self, key: Key) -> str:
        """Replace a damaged journal by the present state, unless that is damaged, too."""
        name = key.conversation or key.tenant
        if any(one.part != CARDS for one in await self._store.damage(key)):
            return f"{name}: its journal is damaged: not restored, as what it is made of is damaged"
        await journal.restart(self._store, key)
        return f"{name}: its journal is damaged: made again from what is stored"

    async def repair_all(self, tenant: str) -> list[str]:
        """Repair all conversations of the tenant, its projects, and what belongs to no tenant."""
        done = await self._mend(Key("", ""), await self._store.damage(Key("", "")), None)
        done += await self.repair(Key(tenant, ""))
        for name in await self._store.names(tenant):
            try:
                done += await self.repair(Key(tenant, name))
            except StoreCorrupt as error:  # the other conversations are repaired
                done.append(f"{name}: not restored: {error}")
        return done

    async def restore_data(self, key: Key) -> int:
        """State again what the application stated, if it is in no digest any more.

        From the first statement that is lost, because later ones built on it; returns how many.
        """
        return await self._state_again(key, await journal.read(self._store, key))

    async def _state_again(self, key: Key, stated: Stated | None) -> int:
        lost = _lost(stated.data, await self._items(key)) if stated else ()
        for one in lost:
            await self._digester.amend(key, partial(_stated, one=one), one.get("summary"))
        return len(lost)

    async def look_again(
        self, key: Key, look: Callable[[], Awaitable[T]], problems: list[str]
    ) -> T:
        """What `look` returns after the digests that are damaged were set aside.

        Nothing is lost by that: they are made again from the log, and what the application stated
        from the journal. A damaged entry raises again.
        """
        aside = await self._digester.set_damaged_aside(key)
        stated = await self.restore_data(key)
        problems.append(DAMAGED.format(max(aside, 1), stated))
        return await look()

    async def _items(self, key: Key) -> tuple[items.Item, ...]:
        newest = await self._store.newest_digest(key)
        return items.from_json(newest.data) if newest else ()

    async def _known(self, key: Key, parts: set[str], stated: Stated) -> Known:
        pins = [seq for seq, pinned in stated.pinned.items() if pinned]
        if "pins" in parts:
            pins += await self._pinned_by_message(key, stated)
            # A statement may be about a message that was erased later.
            pins = [entry.seq for entry in live(await self._store.at(key, sorted(set(pins))))]
        about = stated.project, stated.person, stated.metadata, stated.strategy
        end = await self._end(key) if "head" in parts else None
        return Known(*about, pins=pins, projects=list(stated.projects.values()), end=end)

    async def _end(self, key: Key) -> Entry | None:
        """The last entry of the log; None if there is none, or one is damaged."""
        last: Entry | None = None
        before = genesis(key)
        try:
            while page := await self._store.records(
                key, last.seq + 1 if last else 0, limits.READ_PAGE
            ):
                last = (await asyncio.to_thread(checked_entries, page, before))[-1]
                before = last.hash
        except StoreCorrupt:
            return None
        return last

    async def _pinned_by_message(self, key: Key, stated: Stated) -> list[int]:
        """The entries that were pinned by their own metadata, after the journal began."""
        found: list[int] = []
        first = stated.entries
        while page := await self._store.read(key, first, limit=limits.READ_PAGE):
            found += [entry.seq for entry in page if entry.message.metadata.get("pinned") is True]
            first = page[-1].seq + 1
        return [seq for seq in found if stated.pinned.get(seq, True)]

    async def _restore_topics(self, key: Key, stated: Stated) -> None:
        """Assign all entries again, and repeat what the application said of their topics."""
        await self._topics.catch_up(key)
        for one in stated.topics:
            try:
                await self._repeat(key, one)
            except (InputError, ConflictError) as error:
                logger.warning("%s: a change of topics was not repeated: %s", key[1], error)

    async def _repeat(self, key: Key, one: Mapping[str, Any]) -> None:
        topics = self._topics
        if one["verb"] == "merge":
            await topics.merge(key, one["into"], one["topic"])
        elif one["verb"] == "tag":
            add, remove = one["add"], one["remove"]
            await topics.change(key, one["topic"], lambda known: change_tags(known, add, remove))
        else:
            topic, vote = await topics.of(key, one["seq"]), one["vote"]
            await topics.change(key, topic, lambda known: apply_feedback(known, vote))


def _outcome(one: Damage, left: Container[str]) -> str:
    if one.part in left:
        return _LEFT.get(one.part, "not restored")
    return _RESTORED.get(one.part, "made again from the log and the journal")


def _lost(
    statements: Sequence[Mapping[str, Any]], known: Sequence[items.Item]
) -> Sequence[Mapping[str, Any]]:
    """The statements from the first one on whose items are not known."""
    there = {(item.field, item.name, str(item.value)) for item in known}
    for place, one in enumerate(statements):
        if one["verb"] == "remember":
            stated = {(item.field, item.name, str(item.value)) for item in _items_of(one)}
            if not stated <= there:
                return statements[place:]
    return ()


def _items_of(one: Mapping[str, Any]) -> tuple[items.Item, ...]:
    return items.from_json({"items": one["items"]})


def _stated(known: tuple[items.Item, ...], one: Mapping[str, Any]) -> tuple[items.Item, ...]:
    if one["verb"] == "revert":
        return items.restore(known, one["seq"])
    return items.merge(known, _items_of(one))
