"""Opening a database the one safe way, and turning the driver's errors into ours."""

from __future__ import annotations

import os
import random
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
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
from firnline.protocols import Progress
from firnline.store.files import atomic_write

APPLICATION_ID: Final = 0x4669726E  # "Firn"
SQLITE_VERSION_MIN: Final = (3, 51, 3)  # before it, several processes could corrupt a WAL database

CACHE_KILOBYTES: Final = 32_000  # the writer's; the last page of each busy conversation fits
_BACKUP_PAGES: Final = 1_024  # copied in one step of a backup
CHECKPOINT_PAGES: Final = 2_000  # 8 MB of write-ahead log, then its pages move to the file

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


_HEADER_BYTES: Final = 100

_ERRORS: Final[tuple[tuple[type[apsw.Error], type[StoreError], str], ...]] = (
    (apsw.CorruptError, StoreCorrupt, "the file is damaged"),
    (apsw.NotADBError, StoreCorrupt, "the file is not a database, or its beginning is damaged"),
    (apsw.FullError, StoreFull, "no room left, nothing was written"),
    (apsw.ReadOnlyError, StoreReadOnly, "it can be read but not written"),
    (apsw.BusyError, StoreUnavailable, "another process holds the database"),
    (apsw.LockedError, StoreUnavailable, "another connection holds a table"),
    (apsw.IOError, StoreUnavailable, "the disk failed"),
)


@dataclass(frozen=True, slots=True)
class DatabaseFile:
    """Which file, and how it may be used."""

    path: Path
    read_only: bool = False
    full_sync: bool = True
    vfs: str | None = None
    busy_seconds: float = limits.BUSY_SECONDS


def connect(place: DatabaseFile, *, writer: bool) -> apsw.Connection:
    """Open a connection with every setting our promises rest on."""
    flags = apsw.SQLITE_OPEN_READONLY
    if writer:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    connection = apsw.Connection(str(place.path), flags=flags, vfs=place.vfs)
    try:
        _set_up(connection, place, writer=writer)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: apsw.Connection, place: DatabaseFile, *, writer: bool) -> None:
    connection.set_busy_handler(busy_handler(place.busy_seconds))
    for name, value in PRAGMAS.items():
        connection.execute(f"PRAGMA {name} = {value}")
    # Only the writer moves pages out of the write-ahead log.
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES if writer else 0}")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES if writer else 4_000}")
    connection.execute(f"PRAGMA synchronous = {'FULL' if place.full_sync else 'NORMAL'}")
    if writer:
        mode = connection.execute("PRAGMA journal_mode = WAL").get
        if mode != "wal":
            raise StoreError(f"{place.path}: SQLite answered journal_mode={mode}, WAL is needed")


def busy_handler(seconds: float) -> Callable[[int], bool]:
    """Wait for another process in short uneven steps: SQLite's own grow, and starve the unlucky."""
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
    """Let SQLite undo a change that a crash interrupted while the file was being created.

    Until the file is in WAL mode, such a change lies in a journal beside it, and only a
    connection that may write can play it back.
    """
    with closing(apsw.Connection(str(place.path), apsw.SQLITE_OPEN_READWRITE, place.vfs)) as file:
        file.set_busy_handler(busy_handler(place.busy_seconds))
        file.execute("SELECT 1 FROM sqlite_schema")


@final
class translate_errors:  # noqa: N801 - read as `with translate_errors(path):`
    """Map the driver's errors to ours; the one place where that is done."""

    # A class: a generator's context costs a small append several microseconds.
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
            raise StoreCorrupt(f"{self._path}: a text is not text: {error}") from error
        if isinstance(error, apsw.Error):
            raise _translate_error(error, self._path, committing=self._committing) from error


def _translate_error(error: apsw.Error, path: Path, *, committing: bool) -> StoreError:
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB:
        advice = "run `firnline doctor --rebuild-index`"
        return StoreError(f"{path}: the search index is damaged; {advice}")
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_READONLY_ROLLBACK:
        advice = "open it once for writing"
        return StoreReadOnly(f"{path}: a crash left a change half done; {advice}")
    if isinstance(error, apsw.CantOpenError):
        return StoreUnavailable(f"{path} cannot be opened: {_open_problem(path)}")
    if isinstance(error, apsw.IOError) and committing:
        return StoreTimeout(f"{path}: the disk failed in a commit: {error}")
    for kind, ours, what in _ERRORS:
        if isinstance(error, kind):
            return ours(f"{path}: {what}: {error}")
    return StoreError(f"{path}: {type(error).__name__}: {error}")


def release_cursors(error: BaseException | None, foreign: BaseException | None) -> None:
    """Let go of the queries in the frames that an error keeps alive for its traceback.

    A query that is not finished keeps its snapshot, so whoever keeps the error would keep a
    reader in the past, and the write-ahead log from being emptied. `foreign` is what the caller
    was handling before: the frames of that are not ours, and some may still be needed.
    """
    while error is not None and error is not foreign:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def detach_context(error: BaseException | None, foreign: BaseException | None) -> None:
    """Take from an error what another caller was handling while it was raised."""
    while error is not None and foreign is not None:
        if error.__context__ is foreign:
            error.__context__ = None
        error = error.__cause__ or error.__context__


def _open_problem(path: Path) -> str:
    if not path.parent.exists():
        return f"the folder {path.parent} does not exist"
    if not os.access(path.parent, os.W_OK):
        return f"the folder {path.parent} cannot be written"
    return "check its permissions"


def check_library() -> None:
    """Refuse a SQLite that can corrupt a database written by several processes."""
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < SQLITE_VERSION_MIN:
        raise StoreError(
            f"apsw uses SQLite {apsw.sqlite_lib_version()}, which can corrupt a database that "
            "several processes write; install a newer apsw wheel"
        )


def check_size(path: Path) -> None:
    """Refuse a folder, and what is too short to be a database: SQLite would call it new."""
    if path.is_dir():
        raise BadURL(f"{path} is a folder; name a file in it, such as {path}/firnline.db")
    if path.is_file() and 0 < path.stat().st_size < _HEADER_BYTES:
        raise StoreCorrupt(f"{path}: the file is not a database, or it was cut off")


def check_filesystem(path: Path, mounts: str | None = None) -> None:
    """Refuse a network file system: SQLite's locks do not hold there."""
    if mounts is None:
        table = Path("/proc/mounts")
        mounts = table.read_text(errors="replace") if table.exists() else ""
    kind = filesystem_of(path.resolve(), mounts)
    if kind in NETWORK_FILESYSTEMS:
        raise BadURL(
            f"{path} lies on a network file system ({kind}), where SQLite's locks do not hold; "
            "use a local disk"
        )


def filesystem_of(path: Path, mounts: str) -> str:
    """The type of the file system that holds `path`, from the text of /proc/mounts; else empty."""
    best, kind = 0, ""
    for line in mounts.splitlines():
        _, point, this_kind, *_ = [*line.split(), "", "", ""]
        if "\\" in point:
            point = point.encode().decode("unicode_escape")
        # As texts, because this is done whenever a store is opened, and paths take their time.
        if len(point) > best and f"{path}/".startswith(f"{point.rstrip('/')}/"):
            best, kind = len(point), this_kind
    return kind


def fetch_one(
    connection: apsw.Connection, sql: str, values: tuple[Any, ...] = ()
) -> tuple[Any, ...]:
    """The only row of a query, or an empty tuple."""
    return next(iter(connection.execute(sql, values)), ())


def copy_to(place: DatabaseFile, path: Path, progress: Progress | None) -> None:
    """Write a copy to a new file, which appears only when it is complete. Blocks."""
    with atomic_write(path, new=True) as half_done:
        with translate_errors(half_done):
            target = apsw.Connection(str(half_done))
        with (
            closing(target),
            translate_errors(place.path),
            closing(connect(place, writer=False)) as source,
        ):
            _copy(source, target, progress)


def _copy(source: apsw.Connection, target: apsw.Connection, progress: Progress | None) -> None:
    # In a snapshot, or every commit of others would make the copy begin anew.
    source.execute("BEGIN; SELECT count(*) FROM conversation").fetchall()
    with target.backup("main", source, "main") as copy:
        while not copy.done:
            copy.step(_BACKUP_PAGES)
            if progress is not None:
                progress(copy.page_count - copy.remaining, copy.page_count)
