"""Pins: the entries that every context shows, whether they are archived or not."""

from __future__ import annotations

from firnline.errors import InputError, StoreCorrupt
from firnline.log.entry import Entry, Key
from firnline.store.postgres import log
from firnline.store.postgres.connection import Transaction


async def pin(transaction: Transaction, key: Key, seq: int, *, pinned: bool) -> None:
    """Mark an entry or take the mark away; nothing happens if it is so already."""
    found = await log.must_find(transaction, key, log.KEEP)
    if not 0 <= seq < found.next_seq:
        raise InputError(f"{key.conversation} has no entry {seq}")
    mark = "INSERT INTO pin (tenant, conversation, seq) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
    unmark = "DELETE FROM pin WHERE tenant = %s AND conversation = %s AND seq = %s"
    transaction.later(mark if pinned else unmark, (key.tenant, found.id, seq))


async def pinned(transaction: Transaction, key: Key) -> list[Entry]:
    """The marked entries; a mark on what is not there is damage."""
    marked = f"SELECT seq FROM pin WHERE {log.HERE}"
    there, entries = await log.chosen(transaction, key, marked, log.here(key))
    if len(entries) != len(there):
        raise StoreCorrupt(f"{key.conversation}: an entry is pinned but not there")
    return entries
