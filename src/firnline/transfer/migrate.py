"""Copies everything from one store into another of any kind, checked hash by hash.

An entry's hash covers all entries before it, so one comparison shows whether the target's entries
are the beginning of the source's. A move that was interrupted, or whose source has grown since,
continues after them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from firnline.errors import ConflictError, InputError, StoreCorrupt
from firnline.log import limits
from firnline.log.entry import ERASED, Card, EntryDraft, Head, Key, Record, genesis, runs
from firnline.log.message import decode, utc_now
from firnline.protocols import Progress, Store
from firnline.transfer.scan import checked_pages, digests_up_to, erased_error, heads, topics_up_to

_CARDS: Final = 200
_KEYS: Final = 1_000
_SOON: Final = timedelta(days=3_650)  # pending work is postponed by hours at most
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """The counts of the source, and `added`: how many entries were new to the target."""

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
) -> MigrationResult:
    """Copy the data of these tenants, or of all, from one open store into another.

    The source is only read. What the target already holds must be the beginning of what the source
    has, else `ConflictError`; none of it is changed. Running it again adds what is new. Times and
    idempotency keys are the same in the target, and what is pending in the source is pending there.
    The target builds its own search index and vectors.
    """
    chosen = await _select_tenants(source, tenants)
    total = 0
    for tenant in chosen:
        async for head in heads(source, tenant):
            total += head.entries
    moved = MigrationResult(tenants=len(list(filter(None, chosen))))
    for tenant in chosen:
        await _projects(source, target, tenant)
        async for head in heads(source, tenant):
            conversation = _ConversationCopy(source, target, Key(tenant, head.conversation), head)
            async for reached in conversation.entries():
                if progress is not None:
                    progress(min(moved.entries + reached, total), total)
            moved = replace(
                moved,
                conversations=moved.conversations + 1,
                entries=moved.entries + head.entries,
                added=moved.added + conversation.added,
                digests=moved.digests + await conversation.views(),
            )
        await _pending(source, target, tenant)
        moved = replace(moved, cards=moved.cards + await _cards(source, target, tenant))
    return moved


async def _select_tenants(source: Store, tenants: Sequence[str] | None) -> list[str]:
    there = await source.tenants()
    if tenants is None:
        return there
    if not tenants:
        raise InputError("tenants is empty; name at least one, or pass None to move all")
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


def _is_plain(head: Head) -> bool:
    """Whether the conversation was never described."""
    described = head.project, head.person, head.strategy
    return described == (None, None, None) and not head.metadata


class _ConversationCopy:
    """Copies one conversation, up to `head`, the source's head when it was read."""

    def __init__(self, source: Store, target: Store, key: Key, head: Head) -> None:
        self._source, self._target, self._key, self._head = source, target, key, head
        self.added = 0

    async def entries(self) -> AsyncIterator[int]:
        """Append what the target does not have; yields the number of entries copied so far."""
        key, head = self._key, self._head
        there = await self._target.head(key)
        if there is None or _is_plain(there):
            await self._target.describe(
                key,
                project=head.project,
                person=head.person,
                metadata=head.metadata,
                strategy=head.strategy,
                created_at=head.created_at,
            )
        start = await self._common_prefix(there)
        pinned = {entry.seq for entry in await self._source.pinned(key)}
        async for page in checked_pages(self._source, key, head, start):
            drafts = [_draft(record, pinned=record.seq in pinned) for record in page]
            stored = await self._target.append(key, drafts, expected_seq=page[0].seq)
            if [entry.hash for entry in stored] != [record.hash for record in page]:
                raise StoreCorrupt(
                    f"{key.conversation}: the target's hashes differ from the source's"
                )
            for first, last in runs([record.seq for record in page if record.archived]):
                await self._target.archive(key, first, last)
            self.added += len(page)
            yield page[-1].seq + 1
        await self._used_keys()

    async def _used_keys(self) -> None:
        """Copy the idempotency keys of the entries copied, so that late retries find them."""
        after = ""
        while page := await self._source.used_keys(self._key, after=after, limit=_KEYS):
            there = [used for used in page if used.last_seq < self._head.entries]
            await self._target.put_used_keys(self._key, there)
            after = page[-1].idempotency.key

    async def _common_prefix(self, there: Head | None) -> tuple[int, str]:
        """The number of entries the target has, which must be the same, and the last hash."""
        if there is None or not there.entries or not self._head.entries:
            return 0, genesis(self._key)
        common = min(there.entries, self._head.entries)
        ours, theirs = [
            [record.hash for record in await store.records(self._key, common - 1, 1)]
            for store in (self._source, self._target)
        ]
        if not ours or not theirs:
            raise erased_error(self._key)
        if ours != theirs:
            raise ConflictError(
                f"{self._key.conversation}: the messages in the target differ from the source; "
                "erase the conversation there, or move into another store",
                seq=common - 1,
            )
        return common, ours[0]

    async def views(self) -> int:
        """Copy digests and topics; returns the number of digests copied."""
        key = self._key
        digests = await digests_up_to(self._source, key, self._head)
        known = len(await self._target.digests(key))
        if known and known < len(digests):
            raise ConflictError(
                f"{key.conversation}: the source has created digests since the last move; erase "
                "the conversation in the target and move it again"
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


def _draft(record: Record, *, pinned: bool) -> EntryDraft:
    about = record.body, record.tokens, record.tokenizer, pinned
    if record.erased:
        return EntryDraft(ERASED, *about, hash=record.hash)
    return EntryDraft(decode(record.body), *about)


async def _pending(source: Store, target: Store, tenant: str) -> None:
    """Mark what is pending in the source, in the same order; workers of the target begin now."""
    if not tenant:
        return
    now = utc_now()
    waiting = await source.due(now + _SOON, limits.MIGRATE_PENDING_MAX, [tenant])
    for number, key in enumerate(waiting):
        await target.mark_pending(key, now + number * timedelta(microseconds=1))


async def _cards(source: Store, target: Store, tenant: str) -> int:
    """Copy the cards, which edges store next to the log; of two cards, the newer one is kept."""
    written = 0
    for kind in await source.kinds():
        after = ""
        while page := await _page(source, kind, tenant, after):
            names = [card.name for card in page]
            found = await target.cards(kind, tenant=tenant, names=names, limit=len(names))
            there = {card.name: card.updated_at or _NEVER for card in found}
            newer = [c for c in page if (c.updated_at or _NEVER) > there.get(c.name, _NEVER)]
            written += await target.put_cards(newer, keep_times=True) if newer else 0
            after = page[-1].name
    return written


async def _page(store: Store, kind: str, tenant: str, after: str) -> list[Card]:
    return await store.cards(kind, tenant=tenant, after=after, limit=_CARDS)
