"""Leases and the version chain of digests: fenced, and committed by compare-and-set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import apsw

from firnline.errors import ConflictError, StoreCorrupt, UnknownConversation
from firnline.log.entry import Digest, Key, Lease
from firnline.log.message import from_microseconds, microseconds
from firnline.store.digests import (
    LEASE_MAX,
    check_finish,
    checksum_of,
    damaged_digest,
    decode_digest,
    encode_digest,
    fail_abandoned,
    lease_lost,
    mark_undone,
    newest_seal,
    next_version,
)
from firnline.store.rows import NO_TOPIC
from firnline.store.seals import check_seal, newest_part
from firnline.store.sqlite import log
from firnline.store.sqlite.connection import fetch_one
from firnline.store.sqlite.seals import reseal_digests, stored_seal

# Cast to bytes: invalid UTF-8 in a damaged text would raise in the code that looks for damage.
_COLUMNS: Final = (
    "SELECT id, topic, CAST(status AS BLOB), CAST(body AS BLOB), CAST(checksum AS BLOB) FROM digest"
)


def lease(
    connection: apsw.Connection, key: Key, owner: str, now: datetime, seconds: float
) -> Lease | None:
    """Acquire the lease if it is free or expired."""
    until = microseconds(now) + int(seconds * 1e6)
    row = fetch_one(
        connection,
        # Greater than all fences of erased conversations with this name: ids only grow.
        "UPDATE conversation SET fence = max(fence, id << 32) + 1, lease_owner = ?, lease_until = ?"
        " WHERE tenant = ? AND name = ?"
        " AND (lease_until IS NULL OR NOT lease_until BETWEEN ? AND ?) RETURNING fence",
        (owner, until, *key, microseconds(now) + 1, microseconds(now) + LEASE_MAX),
    )
    if row:
        return Lease(key, owner, row[0], from_microseconds(until))
    if log.find(connection, key) is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    return None


def renew(connection: apsw.Connection, lease: Lease, now: datetime, seconds: float) -> Lease:
    """Extend the lease if it is still the newest one."""
    until = microseconds(now) + int(seconds * 1e6)
    row = fetch_one(
        connection,
        "UPDATE conversation SET lease_until = ? WHERE tenant = ? AND name = ? AND fence = ?"
        " AND lease_owner = ? RETURNING fence",
        (until, *lease.key, lease.fence, lease.owner),
    )
    if not row:
        raise lease_lost(lease)
    return replace(lease, expires_at=from_microseconds(until))


def release(connection: apsw.Connection, lease: Lease) -> None:
    """Release the lease; the fence is kept, so that it only grows."""
    connection.execute(
        "UPDATE conversation SET lease_owner = NULL, lease_until = NULL"
        " WHERE tenant = ? AND name = ? AND fence = ? AND lease_owner = ?",
        (*lease.key, lease.fence, lease.owner),
    )


def begin(connection: apsw.Connection, lease: Lease, digest: Digest, now: datetime) -> Digest:
    """Record a digest as processing; those an earlier holder left processing become failed."""
    found = _leased_row(connection, lease)
    last = last_version(connection, found)
    newest = newest_digest(connection, found, digest.topic)
    begun = next_version(newest, last, digest, now)
    for item in _processing(connection, found):
        _put(connection, found, fail_abandoned(item), 0)
    _put(connection, found, begun, lease.fence)
    return begun


def finish(connection: apsw.Connection, lease: Lease, digest: Digest) -> Digest:
    """Complete or fail a digest that this lease began."""
    found = _leased_row(connection, lease)
    row = fetch_one(
        connection,
        f"{_COLUMNS} WHERE id = ? AND fence = ?",
        (found.entry_id(digest.version), lease.fence),
    )
    stored = _digest(found, row) if row else None
    check_finish(stored, digest, newest_digest(connection, found, digest.topic))
    _put(connection, found, digest, lease.fence)
    return digest


def undo(connection: apsw.Connection, lease: Lease, version: int) -> Digest:
    """Mark the newest completed digest as undone, in place."""
    found = _leased_row(connection, lease)
    asked = next(iter(digests(connection, found, [version])), None)
    newest = newest_digest(connection, found, asked.topic if asked else None)
    digest = mark_undone(newest, version)
    _put(connection, found, digest, lease.fence)
    return digest


def fail_damaged(connection: apsw.Connection, lease: Lease) -> int:
    """Replace each unreadable digest by a failed one; returns how many were damaged or missing."""
    found = _leased_row(connection, lease)
    # First, because index entries of a damaged row may not match the row.
    connection.execute("REINDEX digest")
    rows = connection.execute(f"{_COLUMNS} WHERE id BETWEEN ? AND ?", _digest_range(found))
    damaged = {row[0] & log.SEQ_MASK for row in rows if not _is_readable(found, row)}
    missing = _count_missing(connection, found)
    for version in damaged:
        # Not replaced: the trigger would read what is damaged.
        connection.execute("DELETE FROM digest WHERE id = ?", (found.entry_id(version),))
        _put(connection, found, damaged_digest(version), lease.fence)
    reseal_digests(connection, found)
    return max(len(damaged), missing)  # one under a wrong version is both


def _count_missing(connection: apsw.Connection, found: log.SqliteRow) -> int:
    """The number of digests that were the newest of their topic, but have no row."""
    (missing,) = fetch_one(
        connection,
        "SELECT count(*) FROM seal WHERE conversation = ?1 AND part LIKE 'newest:%'"
        " AND NOT EXISTS (SELECT 1 FROM digest WHERE id = ?1 << 32 | count)",
        (found.id,),
    )
    return int(missing)


def _is_readable(found: log.SqliteRow, row: tuple[Any, ...]) -> bool:
    try:
        _digest(found, row)
    except StoreCorrupt:
        return False
    return True


def digests(
    connection: apsw.Connection, found: log.SqliteRow, versions: Sequence[int] | None = None
) -> list[Digest]:
    """The conversation's digests by version: all, or those of `versions` that exist."""
    if versions is None:
        rows = connection.execute(
            f"{_COLUMNS} WHERE id BETWEEN ? AND ? ORDER BY id", _digest_range(found)
        )
    else:
        asked = sorted({item for item in versions if 0 <= item <= log.SEQ_MASK})
        ids = [(found.entry_id(item),) for item in asked]
        rows = connection.executemany(f"{_COLUMNS} WHERE id = ?", ids)
    return [_digest(found, row) for row in rows]


def newest_digest(
    connection: apsw.Connection, found: log.SqliteRow, topic: int | None = None
) -> Digest | None:
    """The newest completed digest, from a partial index on completed digests."""
    row = fetch_one(
        connection,
        f"{_COLUMNS} INDEXED BY digest_completed"
        " WHERE status = 'completed' AND id >> 32 = ? AND topic = ? ORDER BY id DESC LIMIT 1",
        (found.id, NO_TOPIC if topic is None else topic),
    )
    digest = _digest(found, row) if row else None
    if digest is not None and (digest.status, digest.topic) != ("completed", topic):
        raise StoreCorrupt(f"{found.key.conversation}: the index of digests is damaged")
    part = newest_part(NO_TOPIC if topic is None else topic)
    sealed = stored_seal(connection, found.id, part)
    check_seal(found.key.conversation, part, sealed, newest_seal(digest, row[-1] if row else b""))
    return digest


def _processing(connection: apsw.Connection, found: log.SqliteRow) -> list[Digest]:
    rows = connection.execute(
        f"{_COLUMNS} INDEXED BY digest_processing WHERE status = 'processing'"
        " AND id BETWEEN ? AND ?",
        _digest_range(found),
    )
    return [_digest(found, row) for row in rows]


def last_version(connection: apsw.Connection, found: log.SqliteRow) -> int:
    """The highest version of any status; 0 if there is none."""
    row = fetch_one(
        connection,
        "SELECT id FROM digest WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
        _digest_range(found),
    )
    return row[0] & log.SEQ_MASK if row else 0


def put_all(connection: apsw.Connection, key: Key, items: Sequence[Digest]) -> None:
    """Write digests unchanged into a conversation that has none."""
    found = log.find(connection, key)
    if found is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    if last_version(connection, found):
        raise ConflictError(f"{key.conversation} has digests already")
    for item in items:
        _put(connection, found, item, 0)


def replace_all(connection: apsw.Connection, found: log.SqliteRow, items: Sequence[Digest]) -> None:
    """Write digests in place of those of the same versions; no lease can finish them."""
    for item in items:
        _put(connection, found, item, 0)


def _digest_range(found: log.SqliteRow) -> tuple[int, int]:
    """The range of row ids of the conversation's digests."""
    return found.entry_id(0), found.entry_id(log.SEQ_MASK)


def _digest(found: log.SqliteRow, row: tuple[Any, ...]) -> Digest:
    """The digest of a row; raises `StoreCorrupt` if it does not match the row."""
    id_, topic, status, body, checksum = row
    if None in row:
        raise StoreCorrupt(f"{found.key.conversation}: the row of a digest is damaged")
    digest = decode_digest(body, checksum)
    own = NO_TOPIC if digest.topic is None else digest.topic
    if (id_ & log.SEQ_MASK, status, topic) != (digest.version, digest.status.encode(), own):
        raise StoreCorrupt(f"{found.key.conversation}: a digest does not match its row")
    return digest


def _leased_row(connection: apsw.Connection, lease: Lease) -> log.SqliteRow:
    row = fetch_one(
        connection,
        f"{log.FOUND} WHERE tenant = ? AND name = ? AND fence = ? AND lease_owner = ?",
        (*lease.key, lease.fence, lease.owner),
    )
    if not row:
        raise lease_lost(lease)
    return log.SqliteRow.of(lease.key, row)


def _put(connection: apsw.Connection, found: log.SqliteRow, digest: Digest, fence: int) -> None:
    body = encode_digest(digest)
    topic = NO_TOPIC if digest.topic is None else digest.topic
    connection.execute(
        "INSERT INTO digest (id, status, fence, checksum, body, topic) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET status = excluded.status, fence = excluded.fence,"
        " checksum = excluded.checksum, body = excluded.body, topic = excluded.topic",
        (found.entry_id(digest.version), digest.status, fence, checksum_of(body), body, topic),
    )
