"""The readers of a process: a few threads, each with a connection of its own.

They read snapshots of the database, so they never wait for the writer, nor it for them.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import apsw

from firnline import limits
from firnline.store.sqlite.connection import Place, connect, errors, release_cursors
from firnline.store.sqlite.writer import Work

T = TypeVar("T")


class Readers:
    """Runs pieces of work on reading connections."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._threads = ThreadPoolExecutor(limits.READERS, "firnline-reader")
        self._local = threading.local()
        self._connections: list[apsw.Connection] = []

    async def run(self, work: Work[T]) -> T:
        """Run `work`; all that it reads is of one moment."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._in_snapshot, work)

    def close(self) -> None:
        """Finish what is being read and close the connections. Blocks."""
        self._threads.shutdown()
        while self._connections:
            self._connections.pop().close()

    def _in_snapshot(self, work: Work[T]) -> T:
        with errors(self._place.path):
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return work(connection)
            except BaseException as error:
                release_cursors(error)
                raise
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(self._place, writer=False)
            self._connections.append(connection)
        return connection
