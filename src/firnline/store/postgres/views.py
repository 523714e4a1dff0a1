"""Rebuilds the search and date rows, one page at a time; appends can run between pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from firnline.errors import StoreCorrupt
from firnline.log import limits
from firnline.log.entry import ERASED, Key, Record
from firnline.log.message import Message, decode
from firnline.store.postgres import append, log
from firnline.store.postgres.connection import Transaction
from firnline.store.rows import SEQ_MAX, ConversationRow

_LARGE: Final = limits.PAGE_BYTES_MAX  # a page is always analyzed off the event loop


_CLAIM: Final = (
    "UPDATE owed SET claimed_at = clock_timestamp() WHERE what = 'words' AND (claimed_at IS NULL"
    " OR claimed_at < clock_timestamp() - %s * interval '1 second') RETURNING what"
)
_DONE: Final = "DELETE FROM owed WHERE what = 'words'"


async def claim(transaction: Transaction) -> bool:
    """Whether everything must be indexed again, and no other process does it."""
    return bool(await transaction.row(_CLAIM, (limits.REINDEX_SECONDS,)))


async def is_owed(transaction: Transaction) -> bool:
    """Whether everything must be indexed again."""
    return bool(await transaction.rows("SELECT what FROM owed WHERE what = 'words'"))


async def done(transaction: Transaction) -> None:
    """Everything was indexed again."""
    transaction.later(_DONE)


async def every_key(transaction: Transaction) -> list[tuple[Key, int]]:
    """All conversations of all tenants, with their numbers of entries."""
    rows = await transaction.rows("SELECT tenant, name, next_seq FROM conversation ORDER BY id")
    return [(Key(tenant, name), entries) for tenant, name, entries in rows]


async def read_page(
    transaction: Transaction, key: Key, first: int
) -> tuple[ConversationRow | None, list[tuple[int, Message]], int]:
    """The conversation, the readable messages of its next page, and where to continue."""
    found, stored, end = await log.page(
        transaction, key, first, SEQ_MAX, limit=limits.INDEX_PAGE, tolerant=True
    )
    readable = [(record.seq, message) for record in stored if (message := _message(record))]
    return found, readable, min(end, found.next_seq) if found else 0


async def analyze(
    key: Key, first: int, readable: Sequence[tuple[int, Message]]
) -> list[log.ViewRow]:
    """The rows of a page; analyzed off the event loop, outside any transaction."""
    found = await append.analyze(key.tenant, [(message, _LARGE) for _, message in readable])
    return [(readable[place][0] - first, part, at, words) for place, part, at, words in found]


async def write_page(
    transaction: Transaction,
    found: ConversationRow,
    span: tuple[int, int],
    rows: Sequence[log.ViewRow],
) -> None:
    """Replace the stored rows of a page."""
    now = await log.find(transaction, found.key, log.KEEP)
    if now is None or now.id != found.id:
        return
    own = found.key.tenant, found.id
    if span[0] == 0:  # all at once, because dates are not indexed by seq
        transaction.later(
            "DELETE FROM said WHERE tenant = %s AND conversation = %s AND seq < %s",
            (*own, found.next_seq),
        )
    transaction.later(
        "DELETE FROM search WHERE tenant = %s AND conversation = %s AND seq >= %s AND seq < %s",
        (*own, *span),
    )
    log.insert_views(transaction, found, rows, span[0])


def _message(record: Record) -> Message | None:
    try:
        if record.erased:
            return ERASED
        return None if record.problem else decode(record.body)
    except StoreCorrupt:
        return None  # not searchable; reading or verifying it reports the damage
