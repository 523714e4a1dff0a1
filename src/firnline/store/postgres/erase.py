"""Erase, the only destructive operation: afterwards no table has its rows, live or dead.

PostgreSQL keeps old versions of rows until a vacuum, so the tables are vacuumed immediately.
Copies can remain in free space, the write-ahead log, replicas and backups: docs/postgres.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from firnline.errors import StoreError
from firnline.log.entry import Erased, Key
from firnline.log.message import from_microseconds
from firnline.store.postgres import log
from firnline.store.postgres.connection import SCHEMA, PostgresDatabase, Transaction

_OWNED: Final = (
    *("entry", "segment", "digest", "topic", "said", "search", "idempotency", "pin", "member"),
    *("assigned", "embedded", "vector", "card"),
)
_TABLES: Final = ", ".join(f"{SCHEMA}.{table}" for table in (*_OWNED, "conversation", "seal"))

_VACUUM: Final = f"VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) {_TABLES}"

logger: Final = logging.getLogger("firnline")


async def erase(transaction: Transaction, key: Key) -> Erased:
    """Delete every row the conversation owns."""
    # The strongest row lock: it conflicts with those of all other writers.
    found = await log.must_find(transaction, key, "FOR UPDATE")
    own = key.tenant, found.id
    digests, segments, now = await transaction.row(
        f"SELECT (SELECT count(*) FROM digest WHERE {log.HERE}),"
        f" (SELECT count(*) FROM segment WHERE {log.HERE}), {transaction.now}",
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
    )


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
