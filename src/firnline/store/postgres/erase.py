"""Erase, the only destructive operation: afterwards no table has its rows, live or dead.

PostgreSQL keeps old versions of rows until a vacuum, so the tables are vacuumed immediately.
Copies can remain in free space, the write-ahead log, replicas and backups: docs/postgres.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from firnline.errors import StoreError, UnknownConversation
from firnline.log.entry import Erased, Erasure, Key, Record, runs, tombstone
from firnline.log.message import from_microseconds
from firnline.store.erasure import NEVER, certificate, check_erasure
from firnline.store.postgres import archive, leases, log, topics
from firnline.store.postgres.connection import SCHEMA, PostgresDatabase, Transaction

_OWNED: Final = (
    *("entry", "segment", "digest", "topic", "said", "search", "idempotency", "pin", "member"),
    *("assigned", "embedded", "vector", "card", "known_card"),
)
_COUNTED: Final = ("digest", "segment", "vector", "topic")
_TABLES: Final = ", ".join(f"{SCHEMA}.{table}" for table in (*_OWNED, "conversation", "seal"))

_THESE: Final = "tenant = %s AND conversation = %s AND seq = ANY(%s::bigint[])"

_FORGET_KEYS: Final = (
    "UPDATE idempotency SET fingerprint = '', mark ="
    " seal_mark(hex(conversation), hex(key), '', hex(first_seq), hex(last_seq))"
    " WHERE tenant = %s AND conversation = %s AND EXISTS"
    " (SELECT FROM unnest(%s::bigint[]) AS gone WHERE gone BETWEEN first_seq AND last_seq)"
)

_VACUUM: Final = f"VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) {_TABLES}"

logger: Final = logging.getLogger("firnline")


async def erase(transaction: Transaction, key: Key) -> Erased:
    """Delete every row the conversation owns."""
    # The strongest row lock: it conflicts with those of all other writers.
    found = await log.must_find(transaction, key, "FOR UPDATE", tolerant=True)
    own = key.tenant, found.id
    counts = ", ".join(f"(SELECT count(*) FROM {table} WHERE {log.HERE})" for table in _COUNTED)
    digests, segments, vectors, topics, now = await transaction.row(
        f"SELECT {counts}, {transaction.now}", log.here(key)
    )
    cards = await transaction.rows(
        f"SELECT kind, count(*) FROM card WHERE {log.HERE} GROUP BY kind ORDER BY kind",
        log.here(key),
    )
    for table in _OWNED:
        transaction.later(f"DELETE FROM {table} WHERE tenant = %s AND conversation = %s", own)
    transaction.later("DELETE FROM conversation WHERE tenant = %s AND id = %s", own)
    return Erased(
        key.conversation,
        found.next_seq,
        digests,
        segments,
        found.total,
        found.hash,
        from_microseconds(now),
        vectors=vectors,
        topics=topics,
        cards=dict(cards),
    )


async def erase_entries(transaction: Transaction, key: Key, erasure: Erasure) -> Erased:
    """Replace entries by tombstones, with all that quotes them; a vacuum must follow."""
    found = await log.must_find(transaction, key, log.CHANGE)
    now, version, revision = await transaction.row(
        f"SELECT {transaction.now},"
        f" coalesce((SELECT max(version) FROM digest WHERE {log.HERE}), 0),"
        f" coalesce((SELECT revision FROM assigned WHERE {log.HERE}), 0)",
        log.here(key),
    )
    check_erasure(key, erasure, found.next_seq, version, revision)
    gone = {r.seq: r for r in await _records(transaction, key, erasure.seqs) if not r.erased}
    seqs, own = sorted(gone), (key.tenant, found.id)
    segments = await archive.take_out(transaction, found, gone)
    transaction.later(
        f"UPDATE entry SET body = %s WHERE {_THESE}",
        (tombstone(from_microseconds(now)), *own, seqs),
    )
    counts = {"vector": 0}
    for table in ("said", "search", "pin", "member", "vector"):
        counts[table] = await transaction.changed(
            f"DELETE FROM {table} WHERE {_THESE}", (*own, seqs)
        )
    views = [(seq - seqs[0], 0, NEVER, "") for seq in seqs]
    log.insert_views(transaction, found, views, seqs[0] if seqs else 0)
    transaction.later(_FORGET_KEYS, (*own, seqs))
    cards = {}
    for kind, first, last in erasure.cards:
        cards[kind] = await transaction.changed(
            "DELETE FROM card WHERE tenant = %s AND conversation = %s AND kind = %s"
            " AND name BETWEEN %s AND %s",
            (*own, kind, first, last),
        )
    leases.replace_all(transaction, found, erasure.digests)
    topics.replace_all(transaction, found, erasure.topics)
    head = await log.head(transaction, key)
    if head is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    return certificate(
        head,
        gone.values(),
        erasure,
        from_microseconds(now),
        segments=segments,
        vectors=counts["vector"],
        cards={kind: count for kind, count in cards.items() if count},
    )


async def _records(transaction: Transaction, key: Key, seqs: Sequence[int]) -> list[Record]:
    """The stored records at these sequence numbers; all hashes are checked first."""
    found: list[Record] = []
    for first, last in runs(seqs):
        await log.span(transaction, key, first, last)
        at = first
        while at <= last:
            _, some, at = await log.page(transaction, key, at, last)
            found += [record for record in some if record.seq <= last]
    return found


class Vacuum:
    """Removes deleted rows from the tables and indexes; outside any transaction.

    Waiting erasures share one vacuum: PostgreSQL runs one per table at a time, so many that wait
    for it would hold all connections of the process.
    """

    def __init__(self, database: Callable[[], PostgresDatabase]) -> None:
        self._database = database
        self._turn = asyncio.Lock()
        self._requested = self._vacuumed = 0

    async def vacuum(self) -> None:
        """Return when everything deleted so far is vacuumed.

        Readers no longer see it even before. If this fails, autovacuum does it later.
        """
        self._requested = request = self._requested + 1
        async with self._turn:
            if self._vacuumed >= request:
                return  # by a vacuum that began after this call
            covered = self._requested
            try:
                await self._database().execute(_VACUUM)
            except StoreError as error:
                logger.warning("vacuum after erase failed, autovacuum does it later: %s", error)
            else:
                self._vacuumed = covered
