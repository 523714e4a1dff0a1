"""Pins: the entries that every context shows, whether they are archived or not."""

from __future__ import annotations

import apsw

from firnline.errors import InputError, StoreCorrupt, UnknownConversation
from firnline.log.entry import Entry, Key
from firnline.store.sqlite import log


def pin(connection: apsw.Connection, key: Key, seq: int) -> None:
    """Mark an entry; nothing happens if it is marked already."""
    values = _entry(connection, key, seq)
    connection.execute("INSERT OR IGNORE INTO pin VALUES (?, ?)", values)


def unpin(connection: apsw.Connection, key: Key, seq: int) -> None:
    """Take the mark away; nothing happens if there is none."""
    values = _entry(connection, key, seq)
    connection.execute("DELETE FROM pin WHERE conversation = ? AND seq = ?", values)


def _entry(connection: apsw.Connection, key: Key, seq: int) -> tuple[int, int]:
    found = log.find(connection, key)
    if found is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    if not 0 <= seq < found.next_seq:
        raise InputError(f"{key.conversation} has no entry {seq}")
    return found.id, seq


def pinned(connection: apsw.Connection, found: log.Found) -> list[Entry]:
    """The marked entries; a mark on what is not there is damage."""
    rows = connection.execute("SELECT seq FROM pin WHERE conversation = ? ORDER BY seq", [found.id])
    seqs = [seq for (seq,) in rows]
    for seq in seqs:
        if type(seq) is not int or not 0 <= seq < found.next_seq:
            raise StoreCorrupt(f"{found.key.conversation}: entry {seq} is pinned but not there")
    return log.at(connection, found, seqs)
