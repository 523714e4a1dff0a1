"""What is owed: the conversations that are to be digested, and from when on."""

from __future__ import annotations

from datetime import datetime

import apsw

from firnline.log import Key
from firnline.message import microseconds
from firnline.store.sqlite import log


def owe(connection: apsw.Connection, key: Key, due: datetime, *, postpone: bool) -> None:
    """Note when it is due; nothing is written if there is a note that is to be kept."""
    connection.execute(
        "UPDATE conversation SET owed_at = ?1 WHERE tenant = ?2 AND name = ?3"
        " AND (owed_at IS NULL OR (?4 AND owed_at != ?1))",
        (microseconds(due), *key, postpone),
    )


def owed(connection: apsw.Connection, now: datetime, limit: int, tenant: str | None) -> list[Key]:
    """The conversations that are due, longest due first."""
    # A row that is damaged must not hold up the others: whoever reads its conversation is told.
    rows = connection.execute(
        "SELECT tenant, name FROM conversation INDEXED BY conversation_owed"
        " WHERE owed_at <= ?1 AND (?3 IS NULL OR tenant = ?3) ORDER BY owed_at, id LIMIT ?2",
        (microseconds(now), max(limit, 0), tenant),
    )
    return [Key(*row) for row in rows]


def settle(connection: apsw.Connection, key: Key, last_seq: int) -> bool:
    """Forget the note, unless there are entries that whoever settles has not seen."""
    found = log.find(connection, key)
    if found is not None and found.next_seq > last_seq + 1:
        return False
    if found is not None:
        connection.execute("UPDATE conversation SET owed_at = NULL WHERE id = ?", (found.id,))
    return True
