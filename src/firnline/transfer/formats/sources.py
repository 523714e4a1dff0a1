"""The files to import: one, those in a folder, or those in a zip. Nothing is unpacked to disk.

So a path in an archive cannot write anywhere; members with such paths are skipped. The size that an
archive declares is checked first, and no more than that is read.
"""

from __future__ import annotations

import io
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final, TypeVar

from firnline.errors import InputError
from firnline.log import limits
from firnline.protocols import Progress
from firnline.transfer.formats.records import Notes, Stream

T = TypeVar("T")
_SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".txt", ".html")
_END: Final = struct.Struct("<4s4H2LH")
_END_64: Final = struct.Struct("<4sQ2H2L4Q")
_WHERE_64: Final = struct.Struct("<4sLQL")
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)
"""Errors of reading a member: damage, a password, an unknown compression method."""


@dataclass(frozen=True, slots=True)
class ImportFile:
    """A file to import: its name for reports, its size, and a function that opens it."""

    name: str
    size: int
    open: Callable[[], Stream]


@contextmanager
def files(path: Path, notes: Notes) -> Iterator[list[ImportFile]]:
    """The files at `path` that may have conversations; `InputError` if it cannot be read."""
    try:
        if path.is_dir():
            yield _in_folder(path, notes)
        elif zipfile.is_zipfile(path):
            _check_count(path)
            with zipfile.ZipFile(path) as archive:
                yield _in_archive(archive, path, notes)
        else:
            with path.open("rb"):
                yield [_file(path, path.name)]
    except (OSError, zipfile.BadZipFile) as error:
        what = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read: {what}") from error


def owner_of(path: Path) -> str:
    """The name of the zip or folder with the files at `path`.

    Empty if it is a temporary folder for a pipe or an upload, whose name is random.
    """
    if zipfile.is_zipfile(path):
        return path.name
    folder = path.resolve() if path.is_dir() else path.parent.resolve()
    temporary = Path(tempfile.gettempdir()).resolve()
    is_ours = folder.parent == temporary and folder.name.startswith("firnline-")
    return "" if is_ours else folder.name


def _file(path: Path, name: str) -> ImportFile:
    return ImportFile(name, path.stat().st_size, lambda: path.open("rb"))


def _in_folder(path: Path, notes: Notes) -> list[ImportFile]:
    found: list[ImportFile] = []
    for folder, below, names in os.walk(path):
        below.sort()
        for name in sorted(names):
            file = Path(folder, name)
            shown = str(file.relative_to(path))
            if file.is_symlink():
                notes.skip("a link (not followed)", shown)
                continue
            if file.suffix.lower() not in _SUFFIXES or not file.is_file():
                notes.skip(f"a file of another type: {file.suffix[:20] or 'no suffix'}", shown)
                continue
            if len(found) >= limits.IMPORT_FILES_MAX:
                raise InputError(
                    f"{path} has more files than the limit of {limits.IMPORT_FILES_MAX:,}"
                )
            found.append(_file(file, shown))
    return found


# -- archives ---------------------------------------------------------------------------------


def _check_count(path: Path) -> None:
    """Raise if the archive's directory, which is read at once, is larger than any export's."""
    with path.open("rb") as file:
        file.seek(0, io.SEEK_END)
        size = file.tell()
        file.seek(max(0, size - 65_557))
        tail = file.read()
        at = tail.rfind(b"PK\5\6")
        if at < 0 or len(tail) - at < _END.size:
            raise InputError(f"{path} cannot be read: the archive is truncated")
        listed = _END.unpack_from(tail, at)[5]
        where = at - _WHERE_64.size
        if where >= 0 and tail[where : where + 4] == b"PK\6\7":
            file.seek(min(_WHERE_64.unpack_from(tail, where)[2], size))
            end = file.read(_END_64.size)
            if len(end) == _END_64.size and end.startswith(b"PK\6\6"):
                listed = _END_64.unpack(end)[8]
    # An entry of the list has 46 bytes and its name.
    if listed > 200 * limits.IMPORT_FILES_MAX:
        raise InputError(f"{path} has more files than the limit of {limits.IMPORT_FILES_MAX:,}")


def _in_archive(archive: zipfile.ZipFile, path: Path, notes: Notes) -> list[ImportFile]:
    members = archive.infolist()
    if len(members) > limits.IMPORT_FILES_MAX:
        raise InputError(f"{path} has more files than the limit of {limits.IMPORT_FILES_MAX:,}")
    found = []
    for member in sorted(members, key=lambda member: member.filename):
        name = PurePosixPath(member.filename.replace("\\", "/"))
        if member.is_dir():
            continue
        if name.is_absolute() or ".." in name.parts:
            notes.reject("a file with a path outside the archive", member.filename)
        elif name.suffix.lower() not in _SUFFIXES:
            notes.skip(f"a file of another type: {name.suffix[:20] or 'no suffix'}", str(name))
        else:
            found.append(ImportFile(str(name), member.file_size, _opener(archive, member)))
    _check_ratio(path, sum(file.size for file in found))
    return found


def _check_ratio(path: Path, unpacked: int) -> None:
    allowed = limits.UNPACKED_FREE_BYTES + limits.UNPACKED_RATIO_MAX * path.stat().st_size
    if unpacked > allowed:
        raise InputError(
            f"{path} declares {unpacked:,} unpacked bytes; the limit is"
            f" {limits.UNPACKED_RATIO_MAX} times its size"
        )


def _opener(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Callable[[], Stream]:
    def open_member() -> Stream:
        try:
            return _Member(archive.open(member))
        except _BROKEN as error:
            raise Unreadable(str(error)) from error

    return open_member


class Unreadable(InputError):
    """A member of an archive cannot be read."""

    @property
    def code(self) -> str:
        """The error code of callers."""
        return "InputError"


class _Member:
    """A member of an archive; its errors are raised as `Unreadable`."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner

    def read(self, size: int = -1, /) -> bytes:
        """See `Stream`."""
        return self._wrap_errors(lambda: self._inner.read(size))

    def readline(self, size: int = -1, /) -> bytes:
        """See `Stream`."""
        return self._wrap_errors(lambda: self._inner.readline(size))

    def seek(self, offset: int, /) -> int:
        """See `Stream`."""
        return self._wrap_errors(lambda: self._inner.seek(offset))

    def close(self) -> None:
        """See `Stream`."""
        self._inner.close()

    @staticmethod
    def _wrap_errors(read: Callable[[], T]) -> T:
        try:
            return read()
        except _BROKEN as error:
            raise Unreadable(f"the archive is damaged: {error}") from error


# -- progress ---------------------------------------------------------------------------------


class ReadProgress:
    """Counts how much of all files was read."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total = progress, total
        self._done = self._before = 0

    def of(self, stream: Stream) -> CountedStream:
        """The stream with a counter; a second pass counts again."""
        self._before = self._done
        return CountedStream(stream, self)

    def read(self, count: int) -> None:
        """Add bytes read from the stream."""
        self._done = self._before + count

    def show(self) -> None:
        """Report the progress."""
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)

    def finish(self) -> None:
        """Report that everything was read."""
        self._done = self._total
        self.show()


class CountedStream:
    """A stream that counts what is read."""

    def __init__(self, stream: Stream, bar: ReadProgress) -> None:
        self._stream, self._bar, self._at = stream, bar, 0

    def read(self, size: int = -1, /) -> bytes:
        """See `Stream`."""
        return self._count(self._stream.read(size))

    def readline(self, size: int = -1, /) -> bytes:
        """See `Stream`."""
        return self._count(self._stream.readline(size))

    def seek(self, offset: int, /) -> int:
        """See `Stream`."""
        self._at = self._stream.seek(offset)
        return self._at

    def close(self) -> None:
        """See `Stream`."""
        self._stream.close()

    def _count(self, data: bytes) -> bytes:
        self._at += len(data)
        self._bar.read(self._at)
        return data
