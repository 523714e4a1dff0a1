"""From one store into another of any kind: all that every tenant has, proved hash by hash.

The chain of hashes makes it simple. An entry's hash stands for all entries before it, so one
comparison tells whether what is there already is the beginning of what is to come; and a move that
was interrupted, or whose source has grown since, goes on behind that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from firnline.errors import ConflictError, InputError, StoreCorrupt
from firnline.log.entry import Card, Draft, Head, Key, Record, genesis
from firnline.log.message import decode
from firnline.protocols import Progress, Store
from firnline.transfer.scan import checked_pages, digests_up_to, erased, heads, topics_up_to

_CARDS: Final = 200
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Moved:
    """What the source holds, and how much of it was new to the target."""

    tenants: int = 0
    conversations: int = 0
    entries: int = 0
    added: int = 0
    digests: int = 0
    cards: int = 0


async def move(
    source: Store,
    target: Store,
    *,
    tenants: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Moved:
    """Copy what these tenants have, or all of them, from one open store into another.

    The source is only read. What the target holds already must be the beginning of what comes, else
    `ConflictError`; nothing of it is changed. Doing it again adds what is new, or nothing. Search
    index and vectors are views of the log, which the target makes itself; idempotency keys are not
    taken along, so let clients finish their retries before they go to the target.
    """
    chosen = await _chosen(source, tenants)
    whole = 0
    for tenant in chosen:
        async for head in heads(source, tenant):
            whole += head.entries
    moved = Moved(tenants=len(list(filter(None, chosen))))
    for tenant in chosen:
        await _projects(source, target, tenant)
        async for head in heads(source, tenant):
            conversation = _Conversation(source, target, Key(tenant, head.conversation), head)
            async for reached in conversation.entries():
                if progress is not None:
                    progress(min(moved.entries + reached, whole), whole)
            moved = replace(
                moved,
                conversations=moved.conversations + 1,
                entries=moved.entries + head.entries,
                added=moved.added + conversation.added,
                digests=moved.digests + await conversation.views(),
            )
        moved = replace(moved, cards=moved.cards + await _cards(source, target, tenant))
    return moved


async def _chosen(source: Store, tenants: Sequence[str] | None) -> list[str]:
    there = await source.tenants()
    if tenants is None:
        return there
    if not tenants:
        raise InputError("name at least one tenant, or none to move all of them")
    if unknown := [tenant for tenant in tenants if tenant not in there]:
        raise InputError(f"the source has no tenant {unknown[0]!r}")
    return list(tenants)


async def _projects(source: Store, target: Store, tenant: str) -> None:
    if not tenant:
        return
    there = {project.name for project in await target.projects(tenant)}
    for project in await source.projects(tenant):
        if project.name not in there:
            await target.save_project(tenant, project)


class _Conversation:
    """One conversation on its way; `head` is where the source stood when it was looked at."""

    def __init__(self, source: Store, target: Store, key: Key, head: Head) -> None:
        self._source, self._target, self._key, self._head = source, target, key, head
        self.added = 0

    async def entries(self) -> AsyncIterator[int]:
        """Append what the target does not have; yields how far it has come."""
        key, head = self._key, self._head
        there = await self._target.head(key)
        if there is None or (there.project, there.metadata, there.strategy) == (None, {}, None):
            await self._target.describe(
                key, project=head.project, metadata=head.metadata, strategy=head.strategy
            )
        start = await self._beginning(there)
        pinned = {entry.seq for entry in await self._source.pinned(key)}
        async for page in checked_pages(self._source, key, head, start):
            drafts = [_draft(record, pinned=record.seq in pinned) for record in page]
            stored = await self._target.append(key, drafts, expected_seq=page[0].seq)
            if [entry.hash for entry in stored] != [record.hash for record in page]:
                raise StoreCorrupt(f"{key.conversation}: the target's hashes are not the source's")
            self.added += len(page)
            yield page[-1].seq + 1

    async def _beginning(self, there: Head | None) -> tuple[int, str]:
        """How many entries the target has, which must be the same ones, and the last one's hash."""
        if there is None or not there.entries or not self._head.entries:
            return 0, genesis(self._key)
        common = min(there.entries, self._head.entries)
        ours, theirs = [
            [record.hash for record in await store.records(self._key, common - 1, 1)]
            for store in (self._source, self._target)
        ]
        if not ours or not theirs:
            raise erased(self._key)
        if ours != theirs:
            raise ConflictError(
                f"{self._key.conversation}: what the target has of it is not what the source has; "
                "erase it there, or move into another store",
                seq=common - 1,
            )
        return common, ours[0]

    async def views(self) -> int:
        """Take along digests and topics, with what people did to them; returns how many digests."""
        key = self._key
        digests = await digests_up_to(self._source, key, self._head)
        known = len(await self._target.digests(key))
        if known and known < len(digests):
            raise ConflictError(
                f"{key.conversation}: the source has made digests since it was moved; erase it at "
                "the target and move it again"
            )
        if digests and not known:
            await self._target.put_digests(key, digests)
        topics, members = await topics_up_to(self._source, key, self._head)
        there = await self._target.topics(key)
        if topics.topics and not there.topics:
            await self._target.assign(
                key,
                list(topics.topics.values()),
                members,
                revision=there.revision,
                next_seq=topics.next_seq,
            )
        return 0 if known else len(digests)


def _draft(record: Record, *, pinned: bool) -> Draft:
    return Draft(decode(record.body), record.body, record.tokens, record.tokenizer, pinned)


async def _cards(source: Store, target: Store, tenant: str) -> int:
    """What edges keep beside the log; of two cards the newer one counts."""
    written = 0
    for kind in await source.kinds():
        after = ""
        while page := await _page(source, kind, tenant, after):
            names = [card.name for card in page]
            found = await target.cards(kind, tenant=tenant, names=names, limit=len(names))
            there = {card.name: card.updated_at or _NEVER for card in found}
            newer = [c for c in page if (c.updated_at or _NEVER) > there.get(c.name, _NEVER)]
            written += await target.put_cards(newer) if newer else 0
            after = page[-1].name
    return written


async def _page(store: Store, kind: str, tenant: str, after: str) -> list[Card]:
    return await store.cards(kind, tenant=tenant, after=after, limit=_CARDS)
