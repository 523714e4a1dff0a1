"""Leases and the version chain of digests: fenced, and committed by compare-and-set.

They use the database's clock, so the clocks of the machines do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from firnline.errors import ConflictError, StoreCorrupt, UnknownConversation
from firnline.log.entry import Digest, Key, Lease
from firnline.log.message import from_microseconds
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
from firnline.store.postgres import log
from firnline.store.postgres.connection import Query, Row, Transaction
from firnline.store.postgres.seals import reseal, seal_in, seals_query
from firnline.store.rows import NO_TOPIC, SEQ_MAX, ConversationRow
from firnline.store.seals import DIGESTS, check_seal, newest_part

_COLUMNS: Final = "SELECT version, topic, status, body, checksum FROM digest"
_NEWEST: Final = (
    f"{_COLUMNS} WHERE {log.HERE} AND topic = %(topic)s AND status = 'completed'"
    " ORDER BY version DESC LIMIT 1"
)
_MISSING: Final = (
    f"SELECT count FROM seal s WHERE {log.HERE} AND part LIKE 'newest:%%' AND NOT EXISTS (SELECT"
    " FROM digest d WHERE d.tenant = s.tenant AND d.conversation = s.conversation"
    " AND d.version = s.count)"
)


async def lease(transaction: Transaction, key: Key, owner: str, seconds: float) -> Lease | None:
    """Take the lease if it is free or has expired."""
    values = log.here(key, owner=owner, length=int(seconds * 1e6))
    taken, there = await transaction.each(
        (
            (
                # Greater than all fences of erased conversations of this name: ids only grow.
                "UPDATE conversation SET fence = greatest(fence, id << 32) + 1,"
                f" lease_owner = %(owner)s, lease_until = {transaction.now} + %(length)s"
                " WHERE tenant = %(tenant)s AND name = %(name)s"
                f" AND (lease_until IS NULL OR lease_until <= {transaction.now}"
                f" OR lease_until > {transaction.now} + {LEASE_MAX})"
                " RETURNING fence, lease_until"
            ),
            values,
        ),
        (f"SELECT {log.ID}", values),
    )
    if taken:
        fence, until = taken[0]
        return Lease(key, owner, fence, from_microseconds(until))
    if there == [(None,)]:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    return None


async def renew(transaction: Transaction, lease: Lease, seconds: float) -> Lease:
    """Extend the lease if it is still the newest."""
    row = await transaction.row(
        f"UPDATE conversation SET lease_until = {transaction.now} + %s"
        " WHERE tenant = %s AND name = %s AND fence = %s AND lease_owner = %s"
        " RETURNING lease_until",
        (int(seconds * 1e6), *lease.key, lease.fence, lease.owner),
    )
    if not row:
        raise lease_lost(lease)
    return replace(lease, expires_at=from_microseconds(row[0]))


async def release(transaction: Transaction, lease: Lease) -> None:
    """Release the lease; the fence stays, so that it only grows."""
    transaction.later(
        "UPDATE conversation SET lease_owner = NULL, lease_until = NULL"
        " WHERE tenant = %s AND name = %s AND fence = %s AND lease_owner = %s",
        (*lease.key, lease.fence, lease.owner),
    )


async def begin(transaction: Transaction, lease: Lease, digest: Digest) -> Digest:
    """Record a digest as processing; fail those that an earlier holder left processing."""
    found, now = await _leased_row(transaction, lease)
    newest_, seals, (last,), unfinished = await transaction.each(
        *_newest_queries(lease.key, digest.topic),
        (f"SELECT max(version) FROM digest WHERE {log.HERE}", log.here(lease.key)),
        (f"{_COLUMNS} WHERE {log.HERE} AND status = 'processing'", log.here(lease.key)),
    )
    newest = _newest(lease.key, newest_, seals, digest.topic)
    begun = next_version(newest, last[0] or 0, digest, now)
    for row in unfinished:
        _put(transaction, found, fail_abandoned(_digest(lease.key, row)), 0)
    _put(transaction, found, begun, lease.fence)
    return begun


async def finish(transaction: Transaction, lease: Lease, digest: Digest) -> Digest:
    """Complete or fail the digest that this lease began."""
    found, _ = await _leased_row(transaction, lease)
    values = log.here(lease.key, version=digest.version, fence=lease.fence)
    newest, seals, own = await transaction.each(
        *_newest_queries(lease.key, digest.topic),
        (f"{_COLUMNS} WHERE {log.HERE} AND version = %(version)s AND fence = %(fence)s", values),
    )
    stored = _digest(lease.key, own[0]) if own else None
    check_finish(stored, digest, _newest(lease.key, newest, seals, digest.topic))
    _put(transaction, found, digest, lease.fence)
    return digest


async def undo(transaction: Transaction, lease: Lease, version: int) -> Digest:
    """Mark the newest completed digest as undone, in place."""
    found, _ = await _leased_row(transaction, lease)
    asked = next(iter(await digests(transaction, lease.key, [version])), None)
    newest = await newest_digest(transaction, lease.key, asked.topic if asked else None)
    digest = mark_undone(newest, version)
    _put(transaction, found, digest, lease.fence)
    return digest


async def fail_damaged(transaction: Transaction, lease: Lease) -> int:
    """Replace each unreadable digest by a failed one; returns how many were damaged or missing."""
    found, _ = await _leased_row(transaction, lease)
    rows, lost = await transaction.each(
        (f"{_COLUMNS} WHERE {log.HERE}", log.here(lease.key)), (_MISSING, log.here(lease.key))
    )
    damaged = [row[0] for row in rows if not _is_readable(lease.key, row)]
    for version in damaged:
        _put(transaction, found, damaged_digest(version), lease.fence)
    await reseal(transaction, lease.key, [DIGESTS])
    return max(len(damaged), len(lost))  # one under a wrong version is both


def _is_readable(key: Key, row: Row) -> bool:
    try:
        _digest(key, row)
    except StoreCorrupt:
        return False
    return True


async def digests(
    transaction: Transaction, key: Key, versions: Sequence[int] | None = None
) -> list[Digest]:
    """The conversation's digests by version: all, or the requested ones that exist."""
    asked = None if versions is None else [item for item in versions if 0 <= item <= SEQ_MAX]
    some = "" if asked is None else " AND version = ANY(%(asked)s::bigint[])"
    rows = await transaction.rows(
        f"{_COLUMNS} WHERE {log.HERE}{some} ORDER BY version", log.here(key, asked=asked)
    )
    return [_digest(key, row) for row in rows]


async def newest_digest(
    transaction: Transaction, key: Key, topic: int | None = None
) -> Digest | None:
    """The newest completed digest: the last entry of a partial index."""
    rows, seals = await transaction.each(*_newest_queries(key, topic))
    return _newest(key, rows, seals, topic)


def _newest_queries(key: Key, topic: int | None) -> tuple[Query, Query]:
    """The queries for the newest completed digest and for its seal."""
    own = NO_TOPIC if topic is None else topic
    return (_NEWEST, log.here(key, topic=own)), seals_query(key, newest_part(own))


def _newest(
    key: Key, rows: Sequence[Row], seals: Sequence[Row], topic: int | None
) -> Digest | None:
    digest = _digest(key, rows[0]) if rows else None
    if digest is not None and digest.topic != topic:
        raise StoreCorrupt(f"{key.conversation}: a digest does not match its row")
    part = newest_part(NO_TOPIC if topic is None else topic)
    found = newest_seal(digest, rows[0][-1] if rows else b"")
    check_seal(key.conversation, part, seal_in(seals, part), found)
    return digest


async def put_all(transaction: Transaction, key: Key, items: Sequence[Digest]) -> None:
    """Write digests unchanged into a conversation that has none."""
    found = await log.must_find(transaction, key, log.CHANGE)
    there = await transaction.row(f"SELECT 1 FROM digest WHERE {log.HERE} LIMIT 1", log.here(key))
    if there:
        raise ConflictError(f"{key.conversation} already has digests")
    for item in items:
        _put(transaction, found, item, 0)


def replace_all(transaction: Transaction, found: ConversationRow, items: Sequence[Digest]) -> None:
    """Write digests in place of those of the same versions; no lease can finish them."""
    for item in items:
        _put(transaction, found, item, 0)


def _digest(key: Key, row: Row) -> Digest:
    """The digest of a row, which must match the row's columns."""
    version, topic, status, body, checksum = row
    digest = decode_digest(body, checksum)
    own = NO_TOPIC if digest.topic is None else digest.topic
    if (version, topic, status) != (digest.version, own, digest.status):
        raise StoreCorrupt(f"{key.conversation}: a digest does not match its row")
    return digest


async def _leased_row(transaction: Transaction, lease: Lease) -> tuple[ConversationRow, datetime]:
    """The locked conversation of a lease that is still the newest, and the time."""
    row = await transaction.row(
        f"SELECT {transaction.now}, id, next_seq, total, hash, genesis FROM conversation"
        " WHERE tenant = %s AND name = %s AND fence = %s AND lease_owner = %s"
        f" {log.CHANGE}",
        (*lease.key, lease.fence, lease.owner),
    )
    if not row:
        raise lease_lost(lease)
    return ConversationRow.of(lease.key, row[1:]), from_microseconds(row[0])


def _put(transaction: Transaction, found: ConversationRow, digest: Digest, fence: int) -> None:
    body = encode_digest(digest)
    topic = NO_TOPIC if digest.topic is None else digest.topic
    transaction.later(
        "INSERT INTO digest (tenant, conversation, version, topic, status, fence, checksum, body)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
        " ON CONFLICT (tenant, conversation, version) DO UPDATE SET topic = excluded.topic,"
        " status = excluded.status, fence = excluded.fence, checksum = excluded.checksum,"
        " body = excluded.body",
        (
            *(found.key.tenant, found.id, digest.version, topic),
            *(digest.status, fence, checksum_of(body), body),
        ),
    )
