"""Opens databases with safe settings, and translates the driver's errors."""

from __future__ import annotations

import os
import random
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, final

import apsw

from firnline.errors import (
    BadURL,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTimeout,
    StoreUnavailable,
)
from firnline.log import limits
from firnline.store.files import local_path
from firnline.store.seals import ADVICE, mark_of_hex
from firnline.store.sqlite.checksums import (
    CHECKSUM_VFS,
    HEADER_BYTES,
    checksum_vfs,
    has_room,
    reserve,
    verify_reads,
)

_OPEN_FILES: Final = ("", "-wal", "-shm")

APPLICATION_ID: Final = 0x4669726E  # "Firn"
SQLITE_VERSION_MIN: Final = (3, 51, 3)  # older ones can corrupt a WAL database of several processes

CACHE_KILOBYTES: Final = 32_000  # the writer's; the last page of each busy conversation fits
CHECKPOINT_PAGES: Final = 2_000  # a checkpoint runs after 8 MB of write-ahead log

NETWORK_FILESYSTEMS: Final = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb2",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "fuse.sshfs",
        "fuse.s3fs",
    ]
)

PRAGMAS: Final = {
    "foreign_keys": "1",
    "trusted_schema": "0",
    "cell_size_check": "1",
    "secure_delete": "1",
    "mmap_size": "0",
}


_ERRORS: Final[tuple[tuple[type[apsw.Error], type[StoreError], str], ...]] = (
    (apsw.CorruptError, StoreCorrupt, "the file is damaged"),
    (apsw.NotADBError, StoreCorrupt, "the file is not a database, or its header is damaged"),
    (apsw.FullError, StoreFull, "no space left, nothing was written"),
    (apsw.ReadOnlyError, StoreReadOnly, "it can be read but not written"),
    (apsw.BusyError, StoreUnavailable, "another process has locked the database"),
    (apsw.LockedError, StoreUnavailable, "another connection has locked a table"),
    (apsw.IOError, StoreUnavailable, "the disk failed"),
)

_EXTENDED: Final[dict[int, tuple[type[StoreError], str]]] = {
    apsw.SQLITE_CORRUPT_VTAB: (
        StoreError,
        "the search index is damaged; run `firnline doctor --rebuild-index`",
    ),
    apsw.SQLITE_READONLY_ROLLBACK: (
        StoreReadOnly,
        "a crash left an unfinished change; open it once for writing",
    ),
    apsw.SQLITE_CONSTRAINT_TRIGGER: (
        StoreCorrupt,
        f"the row of a conversation does not match its seal; nothing was written; {ADVICE}",
    ),
    apsw.SQLITE_IOERR_DATA: (
        StoreCorrupt,
        "a page does not match its checksum; run `firnline doctor`",
    ),
}
"""Errors with an extended result code."""


@dataclass(frozen=True, slots=True)
class DatabaseFile:
    """A database file and how to open it."""

    path: Path
    read_only: bool = False
    full_sync: bool = True
    vfs: str | None = None
    busy_seconds: float = limits.BUSY_SECONDS
    immutable: bool = False

    def unchanging(self) -> DatabaseFile:
        """The file alone, without its write-ahead log and without locks."""
        return replace(self, read_only=True, immutable=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", local_path(self.path).absolute())


def connect(place: DatabaseFile, *, writer: bool) -> apsw.Connection:
    """Open a connection with the settings that the store's guarantees depend on."""
    connection = _connect(place, writer=writer)
    if writer and has_room(connection) and not _writes_checksums(connection):
        # Another process created the file while it was opened, or apsw lacks the VFS.
        connection.close()
        connection = _connect(place, writer=writer)
        if not _writes_checksums(connection):
            connection.close()
            raise StoreReadOnly(
                f"{place.path} has page checksums, which this apsw cannot write; install apsw "
                "from its wheel, or open the store with ?mode=ro"
            )
    return connection


def _connect(place: DatabaseFile, *, writer: bool) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY
    if writer:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    name = str(place.path)
    if place.immutable:
        flags |= apsw.SQLITE_OPEN_URI
        name = f"{place.path.as_uri()}?immutable=1"
    new = writer and not (place.path.exists() and place.path.stat().st_size)
    vfs = place.vfs or checksum_vfs()
    connection = apsw.Connection(name, flags=flags, vfs=vfs)
    try:
        if new and vfs == CHECKSUM_VFS:
            reserve(connection)
        _set_up(connection, place, writer=writer)
    except BaseException:
        connection.close()
        raise
    return connection


@cache
def _watch_sql() -> str:
    return resources.files("firnline").joinpath("store/sqlite/watch.sql").read_text()


def watch_rows(connection: apsw.Connection) -> None:
    """Give the connection the triggers that keep seals, and the view that checks them."""
    _define_marks(connection)
    connection.execute(_watch_sql())


def _define_marks(connection: apsw.Connection) -> None:
    connection.create_scalar_function(
        "seal_mark", lambda *hexed: mark_of_hex(*map(str, hexed)), -1, deterministic=True
    )


def _writes_checksums(connection: apsw.Connection) -> bool:
    try:
        return verify_reads(connection, on=True)
    finally:
        verify_reads(connection, on=False)


_COLUMNS: Final = "SELECT name FROM pragma_table_info('conversation')"
_LATER: Final = {"person": "NULL", "unread": "0", "mark": "NULL"}
"""The columns that a file of an older Firnline lacks, and what they are there."""


def _set_up(connection: apsw.Connection, place: DatabaseFile, *, writer: bool) -> None:
    connection.set_busy_handler(busy_handler(place.busy_seconds))
    verify_reads(connection, on=False)  # rows have their own checksums; see `checksums`
    for name, value in PRAGMAS.items():
        connection.execute(f"PRAGMA {name} = {value}")
    # Only the writer checkpoints the write-ahead log.
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES if writer else 0}")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES if writer else 4_000}")
    connection.execute(f"PRAGMA synchronous = {'FULL' if place.full_sync else 'NORMAL'}")
    if writer:
        mode = connection.execute("PRAGMA journal_mode = WAL").get
        if mode != "wal":
            raise StoreError(f"{place.path}: SQLite returned journal_mode={mode}; WAL is required")
        verify_reads(connection, on=False)  # creating the file has turned it on
    _define_marks(connection)  # a migration may need them before there are tables to watch
    if fetch_one(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'seal'"):
        watch_rows(connection)
    elif place.read_only:  # of an older Firnline, and it cannot be migrated now
        connection.execute("CREATE TEMP TABLE seal (conversation, part, count, mark)")
        connection.execute("CREATE TEMP VIEW sealing AS SELECT * FROM seal")
    if place.read_only:
        _add_later(connection)


def _add_later(connection: apsw.Connection) -> None:
    """What a file of an older Firnline lacks that cannot be migrated now."""
    if not fetch_one(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'known_card'"):
        connection.execute(
            "CREATE TEMP TABLE known_card (kind, tenant, name, conversation, checksum)"
        )
    there = {name for (name,) in connection.execute(_COLUMNS)}
    lacks = [f"{value} AS {name}" for name, value in _LATER.items() if name not in there]
    if lacks:
        columns = ", ".join(("*", *lacks))
        connection.execute(
            f"CREATE TEMP VIEW conversation AS SELECT {columns} FROM main.conversation"  # noqa: S608
        )


def busy_handler(seconds: float) -> Callable[[int], bool]:
    """Wait for a lock in short random steps: SQLite's own steps grow, so some waiters starve."""
    started = 0.0

    def wait(tries: int) -> bool:
        nonlocal started
        now = time.monotonic()
        if tries == 0:
            started = now
        if now - started >= seconds:
            return False
        time.sleep(random.uniform(0.0005, 0.003))  # noqa: S311 - jitter, not a secret
        return True

    return wait


def undo_interrupted(place: DatabaseFile) -> None:
    """Let SQLite roll back a change that a crash interrupted while the file was being created.

    Until the file is in WAL mode, such a change has a rollback journal next to the file, and only
    a connection that may write can replay it.
    """
    with closing(apsw.Connection(str(place.path), apsw.SQLITE_OPEN_READWRITE, place.vfs)) as file:
        file.set_busy_handler(busy_handler(place.busy_seconds))
        file.execute("SELECT 1 FROM sqlite_schema")


@final
class translate_errors:  # noqa: N801 - read as `with translate_errors(path):`
    """Translate the driver's errors to Firnline's; the only place where that happens."""

    # A class: a generator context manager costs a small append several microseconds.
    __slots__ = ("_committing", "_path")

    def __init__(self, path: Path, *, committing: bool = False) -> None:
        self._path = path
        self._committing = committing

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is None:
            return
        if isinstance(error, UnicodeDecodeError):
            raise StoreCorrupt(f"{self._path}: invalid UTF-8 in a text: {error}") from error
        if isinstance(error, apsw.Error):
            raise _translate_error(error, self._path, committing=self._committing) from error


def _translate_error(error: apsw.Error, path: Path, *, committing: bool) -> StoreError:
    special = _EXTENDED.get(getattr(error, "extendedresult", 0))
    if special is not None:
        ours, what = special
        return ours(f"{path}: {what}")
    if isinstance(error, apsw.CantOpenError):
        return StoreUnavailable(f"{path} cannot be opened: {_open_problem(path)}")
    if isinstance(error, apsw.IOError) and committing:
        return StoreTimeout(f"{path}: the disk failed during a commit: {error}")
    for kind, ours, what in _ERRORS:
        if isinstance(error, kind):
            return ours(f"{path}: {what}: {error}")
    return StoreError(f"{path}: {type(error).__name__}: {error}")


def release_cursors(error: BaseException | None, foreign: BaseException | None) -> None:
    """Release the cursors in the frames that an error's traceback keeps alive.

    An unfinished query keeps its snapshot. A caller that keeps the error would keep the snapshot
    open, and the write-ahead log could not be truncated. `foreign` is the exception that the
    caller was already handling: its frames are not ours, and may still be in use.
    """
    while error is not None and error is not foreign:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def detach_context(error: BaseException | None, foreign: BaseException | None) -> None:
    """Remove another caller's exception from an error's context."""
    while error is not None and foreign is not None:
        if error.__context__ is foreign:
            error.__context__ = None
        error = error.__cause__ or error.__context__


def _open_problem(path: Path) -> str:
    if not path.parent.exists():
        return f"the folder {path.parent} does not exist"
    log = path.with_name(path.name + "-wal")
    if not os.access(path.parent, os.W_OK) and log.exists() and log.stat().st_size:
        return (
            f"the folder {path.parent} cannot be written, which reading its write-ahead log needs;"
            f" copy {path.name} and {log.name} to another folder"
        )
    if not os.access(path.parent, os.W_OK):
        return f"the folder {path.parent} cannot be written; add ?mode=ro to the URL to read it"
    return "check its permissions"


def check_library() -> None:
    """Reject a SQLite or a driver with which acknowledged messages can be lost or hidden."""
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < SQLITE_VERSION_MIN:
        raise StoreError(
            f"apsw uses SQLite {apsw.sqlite_lib_version()}, which can corrupt a database that "
            "several processes write; install a newer apsw wheel"
        )
    if _keeps_snapshots():
        raise StoreError(
            f"apsw {apsw.apsw_version()} keeps the snapshot of a query that was not read to its "
            "end, which hides newer messages; install another version of apsw"
        )


@cache
def _keeps_snapshots() -> bool:
    """Whether a dropped query still reads, as in apsw 3.54.0.0 if another one ran meanwhile."""
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2)")
        rows = connection.execute("SELECT x FROM t")
        next(rows)
        connection.execute("SELECT x FROM t WHERE x > 2").fetchall()
        del rows
        return connection.txn_state("main") != apsw.SQLITE_TXN_NONE


def check_size(path: Path) -> None:
    """Reject a folder, and a file too short to be a database: SQLite would treat it as new."""
    if path.is_dir():
        raise BadURL(f"{path} is a folder; name a file in it, such as {path}/firnline.db")
    if path.exists() and not path.is_file():
        raise BadURL(f"{path} is a pipe or a device, not a file")
    if path.is_file() and 0 < path.stat().st_size < HEADER_BYTES:
        raise StoreCorrupt(f"{path}: the file is not a database, or it is truncated")


def check_filesystem(path: Path, mounts: str | None = None) -> None:
    """Reject a network file system: SQLite's locks are unreliable there."""
    if mounts is None:
        table = Path("/proc/mounts")
        mounts = table.read_text(errors="replace") if table.exists() else ""
    kind = filesystem_of(path.resolve(), mounts)
    if kind in NETWORK_FILESYSTEMS:
        raise BadURL(
            f"{path} is on a network file system ({kind}), where SQLite's locks are unreliable; "
            "use a local disk"
        )


def filesystem_of(path: Path, mounts: str) -> str:
    """The type of the file system that holds `path`, from the text of /proc/mounts; or empty."""
    best, kind = 0, ""
    for line in mounts.splitlines():
        _, point, this_kind, *_ = [*line.split(), "", "", ""]
        if "\\" in point:
            point = point.encode().decode("unicode_escape")
        # Compared as strings, because this runs on every open and `Path` is slow.
        if len(point) > best and f"{path}/".startswith(f"{point.rstrip('/')}/"):
            best, kind = len(point), this_kind
    return kind


class OpenFiles:
    """The database's files, as they were when they were opened.

    One that is deleted, moved or replaced can be used as before by the process that has it open.
    But what is written to it is gone when it is closed, and new connections open another file.
    """

    def __init__(self, path: Path) -> None:
        self._paths = [str(path) + ending for ending in _OPEN_FILES]
        self._known = _ids(self._paths[:1])

    def opened(self) -> None:
        """A connection is open: until it is closed, SQLite keeps the files next to the database."""
        self._known = _ids(self._paths) | self._known

    def closed(self) -> None:
        """The connection is closed: another process may delete the files next to the database."""
        self._known = {path: self._known[path] for path in self._paths[:1] if path in self._known}

    def check(self) -> None:
        """Raise `StoreCorrupt` if one was deleted, moved or replaced."""
        for path, known in self._known.items():
            if _file_id(path) != known:
                raise StoreCorrupt(
                    f"{path} was deleted, moved or replaced while the store is open; nothing was "
                    "written; put the file back, or open the store again"
                )


def _ids(paths: Iterable[str]) -> dict[str, tuple[int, int]]:
    return {path: found for path in paths if (found := _file_id(path))}


def _file_id(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - called for each transaction; `Path` is slower
    except OSError:
        return None
    return found.st_dev, found.st_ino


def fetch_one(
    connection: apsw.Connection, sql: str, values: tuple[Any, ...] = ()
) -> tuple[Any, ...]:
    """The only row of a query, or an empty tuple."""
    # To the end: a query that is not finished keeps its snapshot.
    found = connection.execute(sql, values).fetchall()
    return found[0] if found else ()
