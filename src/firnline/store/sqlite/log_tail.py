"""What lies behind the last commit that SQLite finds in a write-ahead log.

SQLite stops at the first damaged frame and drops the rest, whatever it is. After a power cut, the
rest is a part of one transaction: the next one is written only when the disk has all of that one.
So a frame that continues a commit shows that the commit was complete, and if SQLite does not find
it, it was lost. Frames of an earlier use of the file have other salts, and those of a transaction
that was rolled back do not continue what was written over it.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from operator import eq
from pathlib import Path
from typing import IO, Final, NamedTuple

import apsw

from firnline.store.sqlite.connection import fetch_one

_HEADER: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")
_BIG_ENDIAN: Final = 0x377F0683
"""The first number of a log whose checksums are of big-endian words."""

_Salt = tuple[int, int]


class _Header(NamedTuple):
    """What frames are compared with; `is_sound` is whether the header has its checksum."""

    salt: _Salt
    byte_order: str
    is_sound: bool


class _Frame(NamedTuple):
    page: int
    is_commit: bool
    salt: _Salt
    checksum: tuple[int, int]
    checked: bytes

    def continues(self, before: _Frame | None, salt: _Salt, byte_order: str) -> bool:
        """Whether it was written after `before`, which ends a transaction."""
        if before is None or not (before.is_commit and before.salt == self.salt == salt):
            return False
        if self.is_commit and self.page == before.page:
            return False  # a commit can be repeated to fill a sector
        return _checksum(self.checked, before.checksum, byte_order) == self.checksum


def has_lost_commits(connection: apsw.Connection, log: Path) -> bool:
    """Whether there are complete commits in the log that SQLite does not find."""
    (page_size,) = fetch_one(connection, "PRAGMA page_size")
    # SQLite has no locks on this file that closing it would drop.
    with suppress(OSError), log.open("rb") as file:
        header, used = _read_header(file), _used_frames(connection)
        for number in _continued_commits(file, header, used, page_size) if header else ():
            # Unless another process has written it just now.
            return number > _used_frames(connection) and _read_header(file) == header
    return False


def _used_frames(connection: apsw.Connection) -> int:
    """The number of frames up to the last commit that SQLite finds."""
    fetch_one(connection, "SELECT count(*) FROM sqlite_schema")  # what is there now
    _, frames, _ = fetch_one(connection, "PRAGMA wal_checkpoint(NOOP)")
    return max(int(frames), 0)


def _read_header(file: IO[bytes]) -> _Header | None:
    file.seek(0)
    data = file.read(_HEADER.size)
    if len(data) < _HEADER.size:
        return None
    magic, _, _, _, first, second, *checksum = _HEADER.unpack(data)
    for byte_order in ("big" if magic == _BIG_ENDIAN else "little", sys.byteorder):
        if list(_checksum(data[:-8], (0, 0), byte_order)) == checksum:
            return _Header((first, second), byte_order, is_sound=True)
    return _Header((first, second), sys.byteorder, is_sound=False)


def _continued_commits(
    file: IO[bytes], header: _Header, used: int, page_size: int
) -> Iterator[int]:
    """The numbers of commits behind the first `used` frames that another frame continues."""
    salt, before, number = header.salt, None, used + 1
    if not header.is_sound:
        # A new header that is half written shares no salt with the frames of before.
        first = _read_frame(file, 1, page_size)
        if first is None or not any(map(eq, first.salt, salt)):
            return
        salt = first.salt
    while (frame := _read_frame(file, number, page_size)) is not None:
        if frame.continues(before, salt, header.byte_order):
            yield number - 1
        before, number = frame, number + 1


def _read_frame(file: IO[bytes], number: int, page_size: int) -> _Frame | None:
    """A frame, counted from 1; None behind the last one."""
    size = _FRAME.size + page_size
    file.seek(_HEADER.size + (number - 1) * size)
    data = file.read(size)
    if len(data) < size:
        return None
    page, commit, first, second, *checksum = _FRAME.unpack(data[: _FRAME.size])
    checked = data[:8] + data[_FRAME.size :]
    return _Frame(page, bool(commit), (first, second), (checksum[0], checksum[1]), checked)


def _checksum(data: bytes, before: tuple[int, int], byte_order: str) -> tuple[int, int]:
    """SQLite's checksum of words, continued from the one before."""
    one, two = before
    sign = ">" if byte_order == "big" else "<"
    for first, second in struct.iter_unpack(f"{sign}II", data):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
