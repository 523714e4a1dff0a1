"""Appends in PostgreSQL: one SQL function moves the head and writes the entries.

It writes only if the head is the expected one. So a store that wrote the last append sends a
single message, without reading the head first; otherwise it reads the head and locks the row.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

from firnline.errors import StoreCorrupt, StoreError, StoreTimeout
from firnline.log import limits
from firnline.log.entry import ERASED, Appended, Entry, EntryDraft, Idempotency, Key, genesis
from firnline.log.message import EPOCH, Message, microseconds
from firnline.store import rows
from firnline.store.erasure import NEVER
from firnline.store.postgres import log, words
from firnline.store.postgres.connection import PostgresDatabase, Query, Transaction
from firnline.store.postgres.log import ViewRow, here
from firnline.store.rows import ConversationRow

_DRAFTS_AT_ONCE: Final = 1_000
_BYTES_AT_ONCE: Final = 2 * 1024 * 1024
_REPLAY: Final = (
    f"SELECT fingerprint, first_seq, last_seq, mark FROM idempotency WHERE {log.HERE}"
    " AND key = %(given)s"
)
_PERSON: Final = "SELECT person FROM conversation WHERE tenant = %(tenant)s AND name = %(name)s"
_CLAIM: Final = "UPDATE conversation SET person = %s WHERE tenant = %s AND id = %s"
_MOVE_HEAD: Final = (
    "UPDATE conversation SET next_seq = %s, total = %s, hash = %s, updated_at = %s,"
    " unread = person IS NOT NULL WHERE tenant = %s AND id = %s"
)
_ENTRY_ARRAYS: Final = ("bigint", "bigint", "bigint", "text", "text", "bytea")
_VIEW_ARRAYS: Final = ("bigint", "smallint", "bigint", "text")


@dataclass
class AppendTry:
    """What an attempt was going to store, or found stored, when its outcome became unknown."""

    outcome: AppendOutcome | None = None

    def stored(self, found: Appended) -> bool:
        """Whether it stored these entries: the last hash covers texts, times and places."""
        if self.outcome is None or self.outcome.appended.replayed:
            return False
        planned = self.outcome.appended
        return (planned.seq, planned[-1].hash) == (found.seq, found[-1].hash)


class QueuedAppend(NamedTuple):
    """An append: its messages and its conditions, and what became of its newest attempt."""

    key: Key
    drafts: Sequence[EntryDraft]
    views: Sequence[ViewRow]
    expected_seq: int | None
    idempotency: Idempotency | None
    newest: AppendTry
    person: str | None = None


class AppendOutcome(NamedTuple):
    """What was appended, and the conversation's head before and after."""

    appended: Appended
    before: ConversationRow | None = None
    after: ConversationRow | None = None


class Appender:
    """Appends for a store: one message if it wrote the last append, which is the usual case."""

    def __init__(self, database: Callable[[], PostgresDatabase]) -> None:
        self._database = database
        # Heads after our appends, and whether our last two were consecutive.
        self._heads: OrderedDict[Key, tuple[ConversationRow, bool]] = OrderedDict()

    async def append(self, given: QueuedAppend) -> Appended:
        """See `Store.append`."""
        key, done = given.key, None
        # Removed while it is used, so that concurrent calls do not use the same head.
        left, alone = self._heads.pop(key, (None, False))
        fitting = alone and not _is_large(given)
        # Whom the conversation is with may have changed, so then the row is read.
        fitting = fitting and given.person is None
        if left and fitting and given.expected_seq in {None, left.next_seq}:
            done = await self._append_optimistic(given, left)
        if done is None:
            done = await self._database().write(key.tenant, lambda tx: append(tx, given))
        if done.after is not None:
            self._heads[key] = done.after, done.before == left
            if len(self._heads) > limits.HEADS_REMEMBERED:
                self._heads.popitem(last=False)
        return done.appended

    async def _append_optimistic(
        self, given: QueuedAppend, head: ConversationRow
    ) -> AppendOutcome | None:
        """Append by one message; None if the head has moved. A lost message is sent again."""
        database, tenant = self._database(), given.key.tenant
        try:
            return await database.write(
                tenant, lambda tx: append_at_head(tx, given, head), brief=True
            )
        except StoreTimeout as doubt:
            if given.idempotency is not None:
                raise  # the caller retries with the key
            try:
                done = await database.write(tenant, lambda tx: retry_append(tx, given, head))
            except StoreError:
                raise doubt from None
            if done is None:
                raise
            return done


async def analyze(tenant: str, messages: Sequence[tuple[Message, int]]) -> list[ViewRow]:
    """The search rows of (message, size) pairs; analyzed off the event loop if large."""

    def build() -> list[ViewRow]:
        return [
            (place, part, at, found)
            for place, (message, _) in enumerate(messages)
            for part, at, found in _view(tenant, message)
        ]

    large = sum(size for _, size in messages) > limits.ANALYZE_INLINE_BYTES
    return await asyncio.to_thread(build) if large else build()


def _view(tenant: str, message: Message) -> list[tuple[int, int, str]]:
    """The search rows of a message: part, time and words; an erased one has no words."""
    if message is ERASED:
        return [(0, NEVER, "")]
    at = microseconds(message.created_at or EPOCH)
    return [(part, at, found) for part, found in enumerate(words.parts(tenant, message))]


def _is_large(given: QueuedAppend) -> bool:
    """Whether it is written in several statements."""
    several = len(given.drafts) > _DRAFTS_AT_ONCE
    return several or sum(len(draft.body) for draft in given.drafts) > _BYTES_AT_ONCE


async def append_at_head(
    transaction: Transaction, given: QueuedAppend, head: ConversationRow
) -> AppendOutcome | None:
    """Append at a cached head. If it has moved or the idempotency key exists: None, no changes."""
    rows.check_append(given.key, head.next_seq, given.drafts, given.expected_seq)
    (call, values), done = _append_call(given, head)
    given.newest.outcome = done
    return done if await transaction.row(f"SELECT {call}", values) == (True,) else None


async def append(transaction: Transaction, given: QueuedAppend) -> AppendOutcome:
    """Append messages; all checks are done before the first write."""
    given.newest.outcome = done = await _append_locked(transaction, given)
    return done


async def _append_locked(transaction: Transaction, given: QueuedAppend) -> AppendOutcome:
    found = await _open_head(transaction, given)
    if isinstance(found, Appended):
        return AppendOutcome(found)
    if _is_large(given):
        return await _append_pieces(transaction, given, found)
    (call, values), done = _append_call(given, found)
    # The head is locked. If it moved anyway, the division by zero makes the append fail.
    transaction.later(f"SELECT 1 / {call}::int", values)
    return done


async def retry_append(
    transaction: Transaction, given: QueuedAppend, head: ConversationRow
) -> AppendOutcome | None:
    """Append messages that an earlier attempt may have appended at `head`.

    None if equal messages are stored there: they may be ours or those of another process.
    Otherwise the earlier attempt can no longer succeed, because it would find the head moved.
    """
    found = await log.find(transaction, given.key, log.CHANGE)
    if found and found.id == head.id and found.next_seq > head.next_seq:
        first, *_ = rows.next_entries(head.next_seq, head.total, head.hash, given.drafts)
        if await log.hash_at(transaction, given.key, first.seq) == first.hash:
            return None
    return await append(transaction, given)


async def _append_pieces(
    transaction: Transaction, queued: QueuedAppend, head: ConversationRow
) -> AppendOutcome:
    """Append many or long messages at a locked head, by several messages of limited size."""
    key, drafts, views, _, idempotency, *_ = queued
    entries, after = _entries(queued, head)
    transaction.later(_MOVE_HEAD, [*after[2:], microseconds(drafts[-1].time), key.tenant, head.id])
    for at, size in _pieces(drafts):
        some = slice(at, at + size)
        bodies = [draft.body for draft in drafts[some]]
        log.insert_entries(transaction, head, entries[some], bodies)
        some_views = [view for view in views if at <= view[0] < at + size]
        log.insert_views(transaction, head, some_views, head.next_seq)
        await transaction.flush()
    conversation, first, last = (key.tenant, head.id), head.next_seq, after.next_seq - 1
    if idempotency:
        into = "idempotency (tenant, conversation, key, fingerprint, first_seq, last_seq)"
        transaction.insert(into, [(*conversation, *idempotency, first, last)])
    pins = [(*conversation, seq) for seq, draft in enumerate(drafts, first) if draft.pinned]
    transaction.insert("pin (tenant, conversation, seq)", pins)
    return AppendOutcome(Appended(entries), head, after)


def _pieces(drafts: Sequence[EntryDraft]) -> Iterator[tuple[int, int]]:
    """The start of each piece and its number of drafts."""
    at = size = length = 0
    for draft in drafts:
        if size and (size == _DRAFTS_AT_ONCE or length + len(draft.body) > _BYTES_AT_ONCE):
            yield at, size
            at, size, length = at + size, 0, 0
        size, length = size + 1, length + len(draft.body)
    yield at, size


def _entries(
    given: QueuedAppend, head: ConversationRow
) -> tuple[tuple[Entry, ...], ConversationRow]:
    """The messages as entries, and the head after them."""
    entries = rows.next_entries(head.next_seq, head.total, head.hash, given.drafts)
    last = entries[-1]
    return entries, ConversationRow(given.key, head.id, last.seq + 1, last.total, last.hash)


def _append_call(given: QueuedAppend, head: ConversationRow) -> tuple[Query, AppendOutcome]:
    """The call of the SQL function `append`, and its outcome."""
    key, drafts, views, _, idempotency, *_ = given
    entries, after = _entries(given, head)
    first = head.next_seq
    pins = [seq for seq, draft in enumerate(drafts, first) if draft.pinned]
    scalars = [key.tenant, head.id, genesis(key), *head[2:], *after[2:]]
    arrays: list[Sequence[Any]] = [
        [entry.seq for entry in entries],
        [entry.tokens for entry in entries],
        [entry.total for entry in entries],
        [entry.tokenizer for entry in entries],
        [entry.hash for entry in entries],
        [draft.body for draft in drafts],
        [first + place for place, *_ in views],
        [part for _, part, *_ in views],
        [at for _, _, at, _ in views],
        [text for *_, text in views],
        pins,
    ]
    values = [*scalars, microseconds(drafts[-1].time), *chain.from_iterable(arrays)]
    kinds = (*_ENTRY_ARRAYS, *_VIEW_ARRAYS, "bigint")
    # One placeholder per value: the driver binds these faster than arrays.
    places = ", ".join(
        f"ARRAY[{', '.join(['%s'] * len(array))}]::{kind}[]"
        for kind, array in zip(kinds, arrays, strict=True)
    )
    once = idempotency or (None, None)
    sql = f"append({', '.join(['%s'] * (len(scalars) + 1))}, {places}, %s, %s)"
    return (sql, [*values, *once]), AppendOutcome(Appended(entries), head, after)


async def _open_head(transaction: Transaction, given: QueuedAppend) -> ConversationRow | Appended:
    """The locked head, created if missing; or what was stored under this idempotency key."""
    key, drafts, _, expected_seq, idempotency, _, person = given
    queries = [(_PERSON, here(key))] if person is not None else []
    if idempotency:
        queries.append((_REPLAY, here(key, given=idempotency.key)))
    while True:
        found, seen = await log.find_with(transaction, key, *queries, lock=log.CHANGE)
        known = seen[0][0][0] if found and person is not None else None
        rows.check_person(key, known, person)
        if found and idempotency and seen[-1]:
            fingerprint, first, last, mark = seen[-1][0]
            marked = rows.idempotency_mark(found.id, idempotency.key, fingerprint, first, last)
            if mark not in (None, marked):
                raise StoreCorrupt(f"{key.conversation}: the row of an idempotency key is damaged")
            rows.check_repeat(idempotency, fingerprint)
            return Appended(tuple(await log.span(transaction, key, first, last)), replayed=True)
        rows.check_append(key, found.next_seq if found else 0, drafts, expected_seq)
        found = found or await log.create(transaction, key, str(microseconds(drafts[0].time)))
        if found is not None:
            if person is not None and known is None:
                transaction.later(_CLAIM, (person, key.tenant, found.id))
            return found
