"""What was committed last, recorded in a small file next to the database.

SQLite replays the write-ahead log up to the first frame that is damaged and drops the rest, and a
missing log is an empty one: commits that were acknowledged would vanish without a word. So each
commit is recorded in ``NAME-head`` after it is durable, and compared with the database when it is
opened. The record has numbers only. It is written without a sync: after a crash of the process it
is exact, after a power cut it may be behind, and it is never ahead of the log. The process that
closes the database last removes it, because then there is no log that could lose anything. Without
a record, the log itself is read for commits that were lost.
"""

from __future__ import annotations

import logging
import os
import struct
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Final, NamedTuple, Self

import apsw

from firnline.errors import StoreCorrupt
from firnline.store.sqlite.connection import DatabaseFile, connect, fetch_one
from firnline.store.sqlite.log_tail import has_lost_commits

_ENDING: Final = "-head"
_LOOK_EVERY: Final = 64  # writes: looking costs as much as writing
_MAGIC: Final = b"firnhead"
_BODY: Final = struct.Struct("<8s16sQqq?")
_SUM: Final = struct.Struct("<I")

logger: Final = logging.getLogger("firnline")


class CommitRecord(NamedTuple):
    """The last commit of a process: how many there were, and the conversation it appended to.

    Appends are not counted: the conversation's own row shows whether they are there. So an append
    writes no page more than it needs.
    """

    store: bytes
    commits: int
    conversation: int = 0
    next_seq: int = 0
    synced: bool = True

    def encode(self) -> bytes:
        """As bytes, with a checksum."""
        body = _BODY.pack(_MAGIC, *self)
        return body + _SUM.pack(zlib.crc32(body))

    @classmethod
    def decode(cls, data: bytes) -> Self | None:
        """The record, or None if it was not written completely."""
        if len(data) != _BODY.size + _SUM.size:
            return None
        body, checksum = data[: _BODY.size], data[_BODY.size :]
        magic, *values = _BODY.unpack(body)
        if magic != _MAGIC or _SUM.unpack(checksum) != (zlib.crc32(body),):
            return None
        return cls(*values)


def record_path(path: Path) -> Path:
    """The record of the database at `path`."""
    return path.with_name(path.name + _ENDING)


def log_path(path: Path) -> Path:
    """The write-ahead log of the database at `path`."""
    return path.with_name(path.name + "-wal")


def has_log(path: Path) -> bool:
    """Whether there is a write-ahead log with anything in it."""
    return _has_content(log_path(path))


def read_record(path: Path) -> CommitRecord | None:
    """What was recorded for the database at `path`, if anything."""
    try:
        return CommitRecord.decode(record_path(path).read_bytes())
    except OSError:
        return None


class RecordFile:
    """Writes the record; a failure is logged once and never fails what was committed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._failed = False
        self._writes = 0

    def write(self, record: CommitRecord) -> None:
        """Record a commit that is durable."""
        try:
            if self._file is None or not self._writes % _LOOK_EVERY:
                self._reopen()
            assert self._file is not None  # noqa: S101 - it was just opened
            self._writes += 1
            self._file.seek(0)
            self._file.write(record.encode())
        except OSError as error:
            if not self._failed:
                self._failed = True
                logger.warning("%s cannot be written: %s", record_path(self._path), error)

    def _reopen(self) -> None:
        """Another process may have removed the file, because it closed the database last."""
        if self._file is not None and os.fstat(self._file.fileno()).st_nlink:
            return
        self.close()
        # Like SQLite's own side files: whoever may write the database may write this.
        mode = self._path.stat().st_mode & 0o666
        file = os.open(record_path(self._path), os.O_RDWR | os.O_CREAT | _BINARY, mode)
        self._file = os.fdopen(file, "r+b", buffering=0)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """After the database was closed: remove the file if no other process has it open."""
        self.close()
        if not has_log(self._path):
            with suppress(OSError):
                record_path(self._path).unlink()


_BINARY: Final = getattr(os, "O_BINARY", 0)


class CommitCounter:
    """Counts and records what a writer commits."""

    def __init__(self, place: DatabaseFile) -> None:
        self._file = RecordFile(place.path)
        self._synced = place.full_sync
        self._known: tuple[bytes, int] | None = None
        self._changes = 0
        self._appended: tuple[int, int] | None = None
        self._record: CommitRecord | None = None

    def begin(self, connection: apsw.Connection, *, others_wrote: bool) -> None:
        """A transaction has begun."""
        if others_wrote:
            self._known = None
        self._changes = connection.total_changes()
        self._appended = self._record = None

    def append(self, conversation: int, next_seq: int) -> None:
        """The transaction has written entries."""
        self._appended = conversation, next_seq

    def prepare(self, connection: apsw.Connection) -> None:
        """Count the transaction that is about to be committed, unless its entries show it."""
        self._record = None
        if self._appended is None and connection.total_changes() == self._changes:
            return
        if self._known is None:
            self._known = _identity(connection)
        if self._known is None:  # damaged; appending goes on without a record
            return
        if self._appended is None:
            self._known = self._known[0], count_commit(connection)
        self._record = CommitRecord(*self._known, *(self._appended or (0, 0)), self._synced)

    def committed(self) -> None:
        """What was prepared is durable."""
        if self._record is not None:
            self._file.write(self._record)

    def forget(self) -> None:
        """The transaction was rolled back."""
        self._known = self._record = None

    def erased(self, connection: apsw.Connection) -> None:
        """Record no conversation: the last one may be erased."""
        self._known = _identity(connection)
        if self._known is not None:
            self._file.write(CommitRecord(*self._known, synced=self._synced))

    def close(self) -> None:
        """After the database was closed."""
        self._file.remove()


def _counts_commits(connection: apsw.Connection) -> bool:
    """Whether the database counts commits: not if it is new, or of an older schema."""
    return bool(fetch_one(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'commit_count'"))


def _identity(connection: apsw.Connection) -> tuple[bytes, int] | None:
    """Whose database this is, and the number of its counted commits; None if damaged."""
    row = fetch_one(connection, "SELECT store, commits FROM commit_count")
    return (row[0], row[1]) if [*map(type, row)] == [bytes, int] else None


def count_commit(connection: apsw.Connection) -> int:
    """Count the transaction that is about to be committed."""
    sql = "UPDATE commit_count SET commits = commits + 1 RETURNING commits"
    row = fetch_one(connection, sql)
    return int(row[0]) if row else 0


def renew_identity(connection: apsw.Connection) -> None:
    """Make a copy a database of its own."""
    connection.execute("UPDATE commit_count SET store = randomblob(16)")


def missing_commits(
    connection: apsw.Connection, place: DatabaseFile, record: CommitRecord | None
) -> str:
    """What is wrong if the database lacks commits that were recorded before; else empty.

    `record` must have been read before `connection` began to read.
    """
    log = log_path(place.path).name
    lost = f"acknowledged messages or changes are missing: {log} was deleted, cut off or damaged"
    if record is None:
        return lost if _has_lost_commits(place) else ""
    if not _counts_commits(connection):
        return lost  # back to an empty file, or to an older schema
    now = _identity(connection)
    if now is None:
        return ""  # damaged; nothing can be said
    if record.store != now[0] or (_owner_without_log(place) or now[0]) != now[0]:
        return f"the file is not the one that {log} and {_name(place)} belong to"
    return "" if _is_there(connection, record, now[1]) else lost


def _has_lost_commits(place: DatabaseFile) -> bool:
    """Whether the log has commits that SQLite does not find, unless an empty record says so."""
    path = record_path(place.path)
    if not has_log(place.path) or (path.exists() and not _has_content(path)):
        return False
    with closing(connect(place, writer=False)) as look:  # outside of any transaction
        return has_lost_commits(look, log_path(place.path))


def _name(place: DatabaseFile) -> str:
    return record_path(place.path).name


def _is_there(connection: apsw.Connection, record: CommitRecord, commits: int) -> bool:
    if commits != record.commits or not record.conversation:
        return commits >= record.commits
    sql = "SELECT next_seq FROM conversation WHERE id = ?"
    found = fetch_one(connection, sql, (record.conversation,))
    return bool(found) and found[0] >= record.next_seq


def _owner_without_log(place: DatabaseFile) -> bytes | None:
    """Whose database the file is if the write-ahead log is ignored; None if that is not known.

    SQLite would play the log of another database back into a file that has taken its place.
    """
    if not has_log(place.path):
        return None
    with suppress(apsw.Error), closing(connect(place.unchanging(), writer=False)) as look:
        found = _identity(look) if _counts_commits(look) else None
        return found[0] if found else None
    return None


def report_missing(
    connection: apsw.Connection, place: DatabaseFile, record: CommitRecord | None
) -> None:
    """Refuse to write to a database that lacks commits; warn if it is only read.

    A store that does not sync every commit may lose the newest in a power cut; then it is a
    warning, too.
    """
    missing = missing_commits(connection, place, record)
    if not missing:
        return
    problem = f"{place.path}: {missing}; {_advice(place)}"
    synced = record.synced if record is not None else place.full_sync
    if synced and not place.read_only:
        raise StoreCorrupt(problem)
    logger.warning("%s", problem)


def check_moved(place: DatabaseFile) -> None:
    """Reject a new database next to what another one left: SQLite would delete that."""
    if place.path.exists() and place.path.stat().st_size:
        return
    left = [path for path in (log_path(place.path), record_path(place.path)) if _has_content(path)]
    if left:
        names = " and ".join(path.name for path in left)
        raise StoreCorrupt(
            f"{place.path} does not exist, but {names} of it does: it was moved or deleted "
            f"without it; put the file back, or delete {names} to start with an empty store"
        )


def _advice(place: DatabaseFile) -> str:
    return (
        f"put back {log_path(place.path).name} if you have it, or a backup; read what is there "
        f"with ?mode=ro; to continue without the rest, make {_name(place)} an empty file"
    )


def _has_content(path: Path) -> bool:
    with suppress(OSError):
        return path.is_file() and path.stat().st_size > 0
    return False
