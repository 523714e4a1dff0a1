"""The one destructive verb. What it erases is in no table any more, live or dead.

PostgreSQL keeps old versions of rows until it vacuums, so that is done at once. What it cannot do
is named in docs/postgres.md: old bytes in free space, the write-ahead log, replicas and backups.
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
_LEFT: Final = ", ".join(f"{SCHEMA}.{table}" for table in (*_OWNED, "conversation"))

_VACUUM: Final = f"VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) {_LEFT}"

logger: Final = logging.getLogger("firnline")


async def erase(transaction: Transaction, key: Key) -> Erased:
    """Delete every row the conversation owns."""
    # Against everybody: whoever else writes to it has locked its row for less.
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
    """Takes what was deleted out of the tables and indexes; outside any transaction.

    One at a time, for all who wait: PostgreSQL vacuums a table once at a time, and many erasures
    that wait for that would hold all connections of the process.
    """

    def __init__(self, database: Callable[[], PostgresDatabase]) -> None:
        self._database = database
        self._turn = asyncio.Lock()
        self._asked = self._seen_to = 0

    async def vacuum(self) -> None:
        """Return when all that is deleted by now is out.

        It is erased for everybody already. If this fails, the server does it by and by.
        """
        self._asked = mine = self._asked + 1
        async with self._turn:
            if self._seen_to >= mine:
                return  # by one that began since
            begun = self._asked
            try:
                await self._database().execute(_VACUUM)
            except StoreError as error:
                logger.warning("what was erased is not yet vacuumed: %s", error)
            else:
                self._seen_to = begun
