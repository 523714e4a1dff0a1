"""Page checksums: the last 8 bytes of every page, written by SQLite's checksum VFS.

Pages get them on their way into the file; the write-ahead log has checksums of SQLite's own.
Rows have checksums of their own, so ordinary connections write page checksums and do not verify
them: a damaged page must not make every conversation on it unreadable. `damaged_pages` verifies
all of them, with those of indexes and free pages, which no row covers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import apsw
from apsw import sqlite_extra

from firnline.store.limits import PAGES_NAMED_MAX, TORN_PAGE_SECONDS, TORN_PAGE_TRIES

CHECKSUM_VFS: Final = "cksmvfs"
RESERVED_BYTES: Final = 8

_EXTENSION: Final = "cksumvfs"
HEADER_BYTES: Final = 100
_RESERVED_AT: Final = 20  # the position in the file's header of the number of reserved bytes
_SHORTEST_PAGE: Final = 512

_loading: Final = threading.Lock()

logger: Final = logging.getLogger("firnline")


def checksum_vfs() -> str | None:
    """The name of the VFS that writes page checksums, or None if apsw was built without it."""
    with _loading:
        return _load_vfs()


@cache
def _load_vfs() -> str | None:
    if CHECKSUM_VFS in apsw.vfs_names():  # the program that uses us has loaded it
        return CHECKSUM_VFS
    if not sqlite_extra.has(_EXTENSION):
        return None
    default = apsw.vfs_names()[0]
    try:
        with closing(apsw.Connection(":memory:")) as connection:
            sqlite_extra.load(connection, _EXTENSION)
    except apsw.Error as error:
        logger.warning("SQLite's extension %s cannot be loaded: %s", _EXTENSION, error)
        return None
    finally:
        apsw.set_default_vfs(default)  # it makes itself the default of the whole process
    return CHECKSUM_VFS


def reserve(connection: apsw.Connection) -> None:
    """Give a new, still empty database room for checksums; an old one gets it by VACUUM."""
    connection.reserve_bytes("main", RESERVED_BYTES)


def has_room(connection: apsw.Connection) -> bool:
    """Whether the pages of the database have room for checksums."""
    return bool(connection.reserve_bytes("main", -1) == RESERVED_BYTES)


def verify_reads(connection: apsw.Connection, *, on: bool) -> bool:
    """Verify each page that this connection reads from the file, or none.

    Returns whether it verifies: not if the connection has not seen that the file has checksums,
    and then it writes none either.
    """
    value = "ON" if on else "OFF"
    return connection.execute(f"PRAGMA checksum_verification = {value}").get in {1, "1"}


@contextmanager
def proven_reads(connection: apsw.Connection, *, fresh: bool = False) -> Iterator[None]:
    """Verify the pages that are read meanwhile; with `fresh`, none that were cached before."""
    if fresh:
        connection.execute("PRAGMA shrink_memory")
    verify_reads(connection, on=True)
    try:
        yield
    finally:
        verify_reads(connection, on=False)


def is_proven(connection: apsw.Connection, read: Callable[[apsw.Connection], object]) -> bool:
    """Whether every page that `read` reads is in the file as it was written."""
    try:
        with proven_reads(connection, fresh=True):
            read(connection)
    except apsw.CorruptError:
        return False
    except apsw.IOError as error:
        if getattr(error, "extendedresult", 0) != apsw.SQLITE_IOERR_DATA:
            raise
        return False
    return True


def mark_new(connection: apsw.Connection) -> None:
    """Make an empty database one with checksums, before anything is copied into it."""
    reserve(connection)
    connection.execute("PRAGMA user_version = 1")


class _Pages:
    """The pages of a database file, read by SQLite's own VFS.

    Never by `open`: closing the file would drop the locks that SQLite holds in this process.
    """

    def __init__(self, path: Path) -> None:
        flags = [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0]
        self._file: Any = apsw.VFSFile("", str(path), flags)
        self._checker = apsw.Connection(":memory:")
        self.header = self._read(0, HEADER_BYTES)
        size = int.from_bytes(self.header[16:18], "big")
        self.size = 65_536 if size == 1 else size
        whole = self.size >= _SHORTEST_PAGE and not self.size & (self.size - 1)
        length = self._file.xFileSize()
        self.count = -(-length // self.size) if whole else 0
        self.is_cut = whole and bool(length % self.size)

    def close(self) -> None:
        self._file.xClose()
        self._checker.close()

    def is_intact(self, number: int, *, changing: bool) -> bool:
        """Whether the page has its checksum; one that is being written gets time to be complete."""
        for _ in range(TORN_PAGE_TRIES if changing else 1):
            if self.fits(self.page(number)):
                return True
            time.sleep(TORN_PAGE_SECONDS if changing else 0)
        return False

    def page(self, number: int) -> bytes:
        return self._read((number - 1) * self.size, self.size)

    def fits(self, page: bytes) -> bool:
        return bool(self._checker.execute("SELECT verify_checksum(?)", (page,)).get)

    def _read(self, offset: int, size: int) -> bytes:
        with suppress(apsw.IOError):  # a file that is too short
            return bytes(self._file.xRead(size, offset))
        return b""


def damaged_pages(path: Path, *, changing: bool) -> Iterator[int]:
    """Yield the numbers of the pages in the file whose checksum is wrong; needs the VFS.

    `changing`: a process may be moving pages from the write-ahead log into the file.
    """
    checksum_vfs()  # brings the function that computes them
    with closing(_Pages(path)) as pages:
        for number in range(1, pages.count + 1):
            if not pages.is_intact(number, changing=changing):
                yield number


def is_cut(path: Path) -> bool:
    """Whether the file ends within a page."""
    with closing(_Pages(path)) as pages:
        return pages.is_cut


def lost_its_mark(path: Path) -> bool:
    """Whether a damaged header hides that the pages have checksums: they would be misread."""
    if checksum_vfs() is None:
        return False
    with closing(_Pages(path)) as pages:
        if not pages.count or pages.header[_RESERVED_AT] == RESERVED_BYTES:
            return False
        first = bytearray(pages.page(1))
        first[_RESERVED_AT] = RESERVED_BYTES
        return pages.fits(bytes(first))


def rewrite(connection: apsw.Connection) -> None:
    """Write all pages again, with their checksums; outside any transaction."""
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def name_pages(connection: apsw.Connection, numbers: Sequence[int]) -> str:
    """The damaged pages as text, each with the table or index that it belongs to, if known."""
    owners: dict[int, str] = {}
    with suppress(apsw.Error):  # the damage can be what leads to the others
        owners.update(iter(connection.execute("SELECT pageno, name FROM dbstat")))
    wanted = [f"page {n} ({owners.get(n, 'unknown')})" for n in numbers[:PAGES_NAMED_MAX]]
    more = len(numbers) - PAGES_NAMED_MAX
    return ", ".join(wanted) + (f" and {more:,} more" if more > 0 else "")
