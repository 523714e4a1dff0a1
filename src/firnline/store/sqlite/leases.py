"""Leases and the version chain of digests: fenced, and committed by compare-and-set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import apsw

from firnline.errors import ConflictError, UnknownConversation
from firnline.log import Digest, Key, Lease
from firnline.message import from_microseconds, microseconds
from firnline.store.digests import (
    abandoned,
    check_finish,
    checksum_of,
    decode_digest,
    encode_digest,
    next_version,
    overtaken,
)
from firnline.store.sqlite import log
from firnline.store.sqlite.connection import one


def lease(
    connection: apsw.Connection, key: Key, owner: str, now: datetime, seconds: float
) -> Lease | None:
    """Take the lease if nobody holds it, or if its time is over."""
    until = microseconds(now) + int(seconds * 1e6)
    row = one(
        connection,
        # Above all fences of earlier conversations of this name: ids only grow.
        "UPDATE conversation SET fence = max(fence, id << 32) + 1, lease_owner = ?, lease_until = ?"
        " WHERE tenant = ? AND name = ? AND (lease_until IS NULL OR lease_until <= ?)"
        " RETURNING fence",
        (owner, until, *key, microseconds(now)),
    )
    if row:
        return Lease(key, owner, row[0], from_microseconds(until))
    if log.find(connection, key) is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    return None


def renew(connection: apsw.Connection, lease: Lease, now: datetime, seconds: float) -> Lease:
    """Extend the lease if it is still the newest one."""
    until = microseconds(now) + int(seconds * 1e6)
    row = one(
        connection,
        "UPDATE conversation SET lease_until = ? WHERE tenant = ? AND name = ? AND fence = ?"
        " AND lease_owner = ? RETURNING fence",
        (until, *lease.key, lease.fence, lease.owner),
    )
    if not row:
        raise overtaken(lease)
    return replace(lease, expires_at=from_microseconds(until))


def release(connection: apsw.Connection, lease: Lease) -> None:
    """Let go of the lease; the fence stays, so that it only ever grows."""
    connection.execute(
        "UPDATE conversation SET lease_owner = NULL, lease_until = NULL"
        " WHERE tenant = ? AND name = ? AND fence = ? AND lease_owner = ?",
        (*lease.key, lease.fence, lease.owner),
    )


def begin(connection: apsw.Connection, lease: Lease, digest: Digest, now: datetime) -> Digest:
    """Record a digest in the making; what an earlier holder left in the making has failed."""
    found = _held(connection, lease)
    before = digests(connection, found)
    existing = [abandoned(item) for item in before]
    begun = next_version(existing, digest, now)
    for old, new in zip(before, existing, strict=True):
        if new is not old:
            _put(connection, found, new, 0)
    _put(connection, found, begun, lease.fence)
    return begun


def finish(connection: apsw.Connection, lease: Lease, digest: Digest) -> Digest:
    """Complete or fail what this lease began."""
    found = _held(connection, lease)
    row = one(
        connection,
        "SELECT body, checksum FROM digest WHERE id = ? AND fence = ?",
        (found.entry_id(digest.version), lease.fence),
    )
    stored = decode_digest(*row) if row else None
    check_finish(stored, digest)
    _put(connection, found, digest, lease.fence)
    return digest


def digests(connection: apsw.Connection, found: log.Found) -> list[Digest]:
    """The conversation's digests by version."""
    rows = connection.execute(
        "SELECT body, checksum FROM digest WHERE id BETWEEN ? AND ? ORDER BY id",
        (found.entry_id(0), found.entry_id(log.SEQ_MASK)),
    )
    return [decode_digest(*row) for row in rows]


def put_all(connection: apsw.Connection, key: Key, items: Sequence[Digest]) -> None:
    """Write digests as they are, into a conversation that has none."""
    found = log.find(connection, key)
    if found is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    if digests(connection, found):
        raise ConflictError(f"{key.conversation} has digests already")
    for item in items:
        _put(connection, found, item, 0)


def _held(connection: apsw.Connection, lease: Lease) -> log.Found:
    row = one(
        connection,
        "SELECT id, next_seq, total, hash, genesis FROM conversation"
        " WHERE tenant = ? AND name = ? AND fence = ?"
        " AND lease_owner = ?",
        (*lease.key, lease.fence, lease.owner),
    )
    if not row:
        raise overtaken(lease)
    return log.Found.of(lease.key, row)


def _put(connection: apsw.Connection, found: log.Found, digest: Digest, fence: int) -> None:
    body = encode_digest(digest)
    connection.execute(
        "INSERT INTO digest (id, status, fence, checksum, body) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET status = excluded.status, fence = excluded.fence,"
        " checksum = excluded.checksum, body = excluded.body",
        (found.entry_id(digest.version), digest.status, fence, checksum_of(body), body),
    )
