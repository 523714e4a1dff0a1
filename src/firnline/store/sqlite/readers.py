"""The readers of a process: a few threads, each with its own connection.

They read snapshots of the database, so readers and the writer never wait for each other.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import apsw

from firnline.errors import StoreNotOpen, StoreUnavailable
from firnline.log import limits
from firnline.store.sqlite.checksums import verify_reads
from firnline.store.sqlite.connection import (
    DatabaseFile,
    OpenFiles,
    connect,
    release_cursors,
    translate_errors,
)
from firnline.store.sqlite.transactions import Work

T = TypeVar("T")

logger = logging.getLogger("firnline")


class Readers:
    """Runs units of work on read-only connections."""

    def __init__(self, place: DatabaseFile) -> None:
        self._place = place
        self._files = OpenFiles(place.path)
        self._threads = ThreadPoolExecutor(limits.READERS, "firnline-reader")
        self._local = threading.local()
        self._connections: list[apsw.Connection] = []
        self._nearby: apsw.Connection | None = None
        self._at_hand = threading.RLock()
        self._closed = False

    async def run(self, work: Work[T], *, proven: bool = False) -> T:
        """Run `work` on one snapshot.

        With `proven`, each page it reads must match its checksum: for what no row proves, such as
        indexes, and that something is not there.
        """
        loop = asyncio.get_running_loop()
        try:
            reading = loop.run_in_executor(self._threads, self._on_thread, work, proven)
        except RuntimeError:  # closed by another thread
            raise StoreNotOpen from None
        return await reading

    async def glance(self, work: Work[T]) -> T:
        """Like `run`, for a row or two: on the caller's thread, which is faster than a switch.

        It never waits there: if something is locked, a reader thread does the work.
        """
        try:
            if self._at_hand.acquire(blocking=False):
                return self._at_once(work)
        except StoreUnavailable as error:
            logger.debug("read moved to a reader thread: %s", error)
        finally:
            try:  # without asking if it is ours: a signal could come in between
                self._at_hand.release()
            except RuntimeError as error:
                logger.debug("connection is in use by another thread: %s", error)
        return await self.run(work)

    def _at_once(self, work: Work[T]) -> T:
        if self._closed:
            raise StoreNotOpen
        self._files.check()
        with translate_errors(self._place.path):
            if self._nearby is None:
                self._nearby = self._connect()
                self._nearby.set_busy_handler(None)
            return _in_snapshot(self._nearby, work)

    def close(self) -> None:
        """Finish running reads, then close the connections. Blocks."""
        self._threads.shutdown()
        with self._at_hand:  # another thread may be in `glance`
            self._closed = True
            while self._connections:
                self._connections.pop().close()

    def _on_thread(self, work: Work[T], proven: bool) -> T:
        self._files.check()
        with translate_errors(self._place.path):
            return _in_snapshot(self._connection("proven" if proven else "plain"), work)

    def _connection(self, kind: str) -> apsw.Connection:
        """A connection of this thread; the proven one caches no unverified page."""
        connection: apsw.Connection | None = getattr(self._local, kind, None)
        if connection is None:
            connection = self._connect()
            verify_reads(connection, on=kind == "proven")
            setattr(self._local, kind, connection)
        return connection

    def _connect(self) -> apsw.Connection:
        connection = connect(self._place, writer=False)
        self._connections.append(connection)
        self._files.opened()
        return connection


def _in_snapshot(connection: apsw.Connection, work: Work[T]) -> T:
    foreign = sys.exception()
    try:
        connection.execute("BEGIN")
        found = work(connection)
    except BaseException as error:
        release_cursors(error, foreign)
        raise
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return found
