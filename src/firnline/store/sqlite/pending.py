"""Pending work: the conversations to be digested, when each is due, and those to be read."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime

import apsw

from firnline.log import limits
from firnline.log.entry import Head, Key
from firnline.log.message import from_microseconds, microseconds
from firnline.protocols import Pending
from firnline.store.digests import POSTPONE_MAX, digest_created_at, is_leased
from firnline.store.rows import head_of
from firnline.store.sqlite import log
from firnline.store.sqlite.connection import fetch_one
from firnline.store.sqlite.seals import IS_MARKED


def mark(connection: apsw.Connection, key: Key, due: datetime, *, postpone: bool) -> None:
    """Record when the conversation is due; an existing time is kept unless `postpone`."""
    connection.execute(
        "UPDATE conversation SET owed_at = ?1 WHERE tenant = ?2 AND name = ?3"
        " AND (owed_at IS NULL OR (?4 AND owed_at != ?1))",
        (microseconds(due), *key, postpone),
    )


def due(
    connection: apsw.Connection, now: datetime, limit: int, tenants: Collection[str] | None
) -> list[Key]:
    """The conversations that are due, longest due first; last, those marked with a wrong clock."""
    # Unverified: a damaged row must not block the others; reading its conversation raises.
    sql = (
        "SELECT tenant, name FROM conversation INDEXED BY conversation_owed"
        " WHERE owed_at {} ?1 AND (?3 IS NULL OR tenant IN (SELECT value FROM json_each(?3)))"
        " ORDER BY owed_at, id LIMIT ?2"
    )
    names = None if tenants is None else json.dumps(sorted(tenants))
    found: list[Key] = []
    for sign, bound in ("<=", microseconds(now)), (">", microseconds(now) + POSTPONE_MAX):
        left = max(limit - len(found), 0)
        found += [Key(*row) for row in connection.execute(sql.format(sign), (bound, left, names))]
    return found


def count(
    connection: apsw.Connection,
    now: datetime,
    stuck_before: datetime,
    cards: str,
    tenant: str | None,
) -> Pending:
    """Count pending conversations and digests in progress, with partial indexes."""
    waiting, oldest = fetch_one(
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
    processing = [(digest_created_at(body), lease) for body, lease in rows]
    (kept,) = fetch_one(
        connection,
        "SELECT count(*) FROM card WHERE kind = ?1 AND (?2 IS NULL OR tenant = ?2)",
        (cards, tenant),
    )
    return Pending(
        conversations=waiting,
        oldest=None if oldest is None else from_microseconds(oldest),
        processing=len(processing),
        leased=sum(is_leased(lease, microseconds(now)) for _, lease in processing),
        stuck=sum(begun is not None and begun < stuck_before for begun, _ in processing),
        cards=kept,
    )


def clear(connection: apsw.Connection, key: Key, last_seq: int) -> bool:
    """Clear the pending mark; False if there are entries after `last_seq`."""
    found = log.find(connection, key)
    if found is not None and found.next_seq > last_seq + 1:
        return False
    if found is not None:
        connection.execute(
            "UPDATE conversation SET owed_at = NULL WHERE id = ? AND owed_at IS NOT NULL",
            (found.id,),
        )
    return True


def unread(connection: apsw.Connection, tenant: str, person: str | None, limit: int) -> list[Head]:
    """The conversations of a person, or of any, that were not read to their end, by name."""
    found = connection.execute(
        f"{log.HEAD} WHERE tenant = ?1 AND unread AND (?2 IS NULL OR person = ?2)"
        " ORDER BY name LIMIT ?3",
        (tenant, person, max(limit, 0)),
    )
    return [head_of(row) for row in found]


def mark_read(connection: apsw.Connection, tenant: str, read: Mapping[str, int]) -> None:
    """Conversations are read, unless they have more entries by now."""
    connection.executemany(
        "UPDATE conversation SET unread = 0, mark = seal_mark("  # noqa: S608
        " hex(next_seq), hex(total), hex(hash), hex(updated_at), hex(0))"
        f" WHERE tenant = ? AND name = ? AND next_seq <= ? AND {IS_MARKED}",
        [(tenant, name, entries) for name, entries in read.items()],
    )
