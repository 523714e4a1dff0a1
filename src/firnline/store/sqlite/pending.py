"""What is owed: the conversations that are to be digested, and from when on."""

from __future__ import annotations

from datetime import datetime

import apsw

from firnline.log import limits
from firnline.log.entry import Key
from firnline.log.message import from_microseconds, microseconds
from firnline.protocols import Pending
from firnline.store.digests import digest_created_at
from firnline.store.sqlite import log
from firnline.store.sqlite.connection import fetch_one


def mark(connection: apsw.Connection, key: Key, due: datetime, *, postpone: bool) -> None:
    """Note when it is due; nothing is written if there is a note that is to be kept."""
    connection.execute(
        "UPDATE conversation SET owed_at = ?1 WHERE tenant = ?2 AND name = ?3"
        " AND (owed_at IS NULL OR (?4 AND owed_at != ?1))",
        (microseconds(due), *key, postpone),
    )


def due(connection: apsw.Connection, now: datetime, limit: int, tenant: str | None) -> list[Key]:
    """The conversations that are due, longest due first."""
    # A row that is damaged must not hold up the others: whoever reads its conversation is told.
    rows = connection.execute(
        "SELECT tenant, name FROM conversation INDEXED BY conversation_owed"
        " WHERE owed_at <= ?1 AND (?3 IS NULL OR tenant = ?3) ORDER BY owed_at, id LIMIT ?2",
        (microseconds(now), max(limit, 0), tenant),
    )
    return [Key(*row) for row in rows]


def count(
    connection: apsw.Connection,
    now: datetime,
    stuck_before: datetime,
    cards: str,
    tenant: str | None,
) -> Pending:
    """What is owed and under way: counted in indexes that hold only that."""
    owed, oldest = fetch_one(
        connection,
        "SELECT count(*), min(owed_at) FROM conversation INDEXED BY conversation_owed"
        " WHERE owed_at IS NOT NULL AND (?1 IS NULL OR tenant = ?1)",
        (tenant,),
    )
    until = "SELECT lease_until FROM conversation WHERE id = digest.id >> 32"
    whose = "SELECT tenant FROM conversation WHERE id = digest.id >> 32"
    rows = connection.execute(
        f"SELECT CAST(body AS BLOB), ({until}) FROM digest INDEXED BY digest_processing"  # noqa: S608
        f" WHERE status = 'processing' AND (?1 IS NULL OR ({whose}) = ?1) LIMIT ?2",
        (tenant, limits.WATCHED_MAX),
    )
    making = [(digest_created_at(body), lease) for body, lease in rows]
    (kept,) = fetch_one(
        connection,
        "SELECT count(*) FROM card WHERE kind = ?1 AND (?2 IS NULL OR tenant = ?2)",
        (cards, tenant),
    )
    return Pending(
        conversations=owed,
        oldest=None if oldest is None else from_microseconds(oldest),
        processing=len(making),
        leased=sum(lease is not None and lease > microseconds(now) for _, lease in making),
        stuck=sum(begun is not None and begun < stuck_before for begun, _ in making),
        cards=kept,
    )


def clear(connection: apsw.Connection, key: Key, last_seq: int) -> bool:
    """Forget the note, unless there are entries that whoever settles has not seen."""
    found = log.find(connection, key)
    if found is not None and found.next_seq > last_seq + 1:
        return False
    if found is not None:
        connection.execute("UPDATE conversation SET owed_at = NULL WHERE id = ?", (found.id,))
    return True
