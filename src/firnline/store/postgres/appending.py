"""Appending in PostgreSQL: one statement moves a conversation's head and writes what is behind it.

The statement writes only if the head is the one that it was made for. A store that was the last to
append can so do it by a single message, without asking first; else it asks, and holds a lock.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from firnline import limits
from firnline.log import Appended, Draft, Idempotency, Key, genesis
from firnline.message import EPOCH, Message, microseconds
from firnline.store import rows
from firnline.store.postgres import log, words
from firnline.store.postgres.connection import Query, Row, Transaction
from firnline.store.postgres.log import ViewRow, here
from firnline.store.rows import Found

_ANALYSED_INLINE: Final = 100_000  # bytes of messages whose words are found in a few milliseconds
_KNOWN: Final = (
    f"SELECT fingerprint, first_seq, last_seq FROM idempotency WHERE {log.HERE} AND key = %(given)s"
)
_MOVE: Final = (
    "UPDATE conversation SET next_seq = %s, total = %s, hash = %s, updated_at = %s"
    " WHERE tenant = %s AND id = %s AND next_seq = %s AND total = %s AND hash = %s"
    " AND genesis = %s"
)
_UNKNOWN: Final = (
    " AND NOT EXISTS (SELECT FROM idempotency WHERE tenant = %s AND conversation = %s AND key = %s)"
)


class Given(NamedTuple):
    """What is to be appended, on which conditions."""

    key: Key
    drafts: Sequence[Draft]
    views: Sequence[ViewRow]
    expected_seq: int | None
    idempotency: Idempotency | None


class Done(NamedTuple):
    """What was appended; and where the conversation stood before, and stands now."""

    appended: Appended
    before: Found | None = None
    after: Found | None = None


class Heads:
    """Heads behind the appends of this store, for as long as nobody else appends there."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, tuple[Found, bool]] = OrderedDict()

    def take(self, key: Key) -> tuple[Found | None, bool]:
        """The head as it was left, and whether it is likely to be so still.

        Who takes it is the only one to use it, until it is kept again.
        """
        return self._known.pop(key, (None, False))

    def keep(self, key: Key, head: Found, *, alone: bool) -> None:
        """Note the head behind an append; `alone` if nobody came between it and the one before."""
        self._known[key] = head, alone
        if len(self._known) > limits.HEADS_REMEMBERED:
            self._known.popitem(last=False)


async def analysed(tenant: str, messages: Sequence[tuple[Message, int]]) -> list[ViewRow]:
    """What the views have of messages of so many bytes; made beside the event loop if large."""

    def analyse() -> list[ViewRow]:
        return [
            (place, part, microseconds(message.created_at or EPOCH), found)
            for place, (message, _) in enumerate(messages)
            for part, found in enumerate(words.parts(tenant, message))
        ]

    large = sum(size for _, size in messages) > _ANALYSED_INLINE
    return await asyncio.to_thread(analyse) if large else analyse()


async def append_behind(transaction: Transaction, given: Given, head: Found) -> Done | None:
    """Add messages behind a head that was not asked for; None, and nothing done, if it has moved.

    Nor is anything done if the idempotency key is known.
    """
    rows.check_append(given.key, head.next_seq, given.drafts, given.expected_seq)
    statement, done = _appending(given, head)
    return done if await transaction.row(*statement) else None


async def append(transaction: Transaction, given: Given) -> Done:
    """Add messages; all that can be refused is refused before the first write."""
    found = await _open_head(transaction, given)
    if isinstance(found, Appended):
        return Done(found)
    statement, done = _appending(given, found)
    transaction.later(*statement)
    return done


def _appending(given: Given, head: Found) -> tuple[Query, Done]:
    """The statement, which gives a row if it has written, and what it writes."""
    key, drafts, views, _, idempotency = given
    entries = rows.next_entries(head.next_seq, head.total, head.hash, drafts)
    first, last = head.next_seq, entries[-1]
    after = Found(key, head.id, last.seq + 1, last.total, last.hash)
    values: list[Any] = [*after[2:], microseconds(drafts[-1].time), key.tenant, *head[1:]]
    move = _MOVE
    values.append(genesis(key))
    if idempotency:
        move += _UNKNOWN
        values += [key.tenant, head.id, idempotency.key]
    steps = [f"moved AS ({move} RETURNING tenant, id)"]

    def insert(table: str, columns: str, found: Sequence[Row], otherwise: str = "") -> None:
        if found:
            steps.append(_insertion(table, columns, found, otherwise))
            values.extend(chain.from_iterable(found))

    insert(
        "entry",
        "seq, tokens, total, tokenizer, hash, body",
        [
            (entry.seq, entry.tokens, entry.total, entry.tokenizer, entry.hash, draft.body)
            for entry, draft in zip(entries, drafts, strict=True)
        ],
    )
    said = [(at, first + place) for place, part, at, _ in views if part == 0]
    insert("said", "at, seq", said, "ON CONFLICT DO NOTHING")
    found = [(first + place, part, at, text) for place, part, at, text in views]
    insert("search", "seq, part, at, words", found)
    if idempotency:
        insert(
            "idempotency",
            "key, fingerprint, first_seq, last_seq",
            [(*idempotency, first, last.seq)],
        )
    insert("pin", "seq", [(seq,) for seq, draft in enumerate(drafts, first) if draft.pinned])
    sql = f"WITH {', '.join(steps)} SELECT id FROM moved"
    return (sql, values), Done(Appended(entries), head, after)


def _insertion(table: str, columns: str, found: Sequence[Row], otherwise: str) -> str:
    places = ", ".join([f"({', '.join(['%s'] * len(found[0]))})"] * len(found))
    columns_given = columns.replace("words", "words::tsvector")
    return (
        f"into_{table} AS (INSERT INTO {table} (tenant, conversation, {columns})"
        f" SELECT tenant, id, {columns_given} FROM moved, (VALUES {places}) AS given ({columns})"
        f" {otherwise})"
    )


async def _open_head(transaction: Transaction, given: Given) -> Found | Appended:
    """The conversation's head, locked, and created if need be; or what was stored by this key."""
    key, drafts, _, expected_seq, idempotency = given
    queries = ((_KNOWN, here(key, given=idempotency.key)),) if idempotency else ()
    while True:
        found, seen = await log.find_with(transaction, key, *queries, lock=log.CHANGE)
        if found and idempotency and seen[0]:
            fingerprint, first, last = seen[0][0]
            rows.check_repeat(idempotency, fingerprint)
            return Appended(tuple(await log.span(transaction, key, first, last)), replayed=True)
        rows.check_append(key, found.next_seq if found else 0, drafts, expected_seq)
        found = found or await log.create(transaction, key, str(microseconds(drafts[0].time)))
        if found is not None:
            return found
