"""The files to import: one, those in a folder, or those in a zip. Nothing is ever unpacked to disk.

So a name in an archive can lead nowhere; one that tries to is not read. What an archive says it
unpacks to is checked before, and no more than that is read of it.
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
"""What reading a member can raise: damage, a password, a method that is not known."""


@dataclass(frozen=True, slots=True)
class File:
    """A file to be read: its name for reports, its size, and how to open it."""

    name: str
    size: int
    open: Callable[[], Stream]


@contextmanager
def files(path: Path, notes: Notes) -> Iterator[list[File]]:
    """The files at `path` that may hold conversations; `InputError` if it cannot be read."""
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
    """The name of what holds the files at `path`: the zip, or the folder.

    None if that is a folder which we made for a pipe or an upload: it is another one every time.
    """
    if zipfile.is_zipfile(path):
        return path.name
    folder = path.resolve() if path.is_dir() else path.parent.resolve()
    temporary = Path(tempfile.gettempdir()).resolve()
    is_ours = folder.parent == temporary and folder.name.startswith("firnline-")
    return "" if is_ours else folder.name


def _file(path: Path, name: str) -> File:
    return File(name, path.stat().st_size, lambda: path.open("rb"))


def _in_folder(path: Path, notes: Notes) -> list[File]:
    found: list[File] = []
    for folder, below, names in os.walk(path):
        below.sort()
        for name in sorted(names):
            file = Path(folder, name)
            shown = str(file.relative_to(path))
            if file.is_symlink():
                notes.skip("a link, which is not followed", shown)
                continue
            if file.suffix.lower() not in _SUFFIXES or not file.is_file():
                notes.skip(f"a file of another kind: {file.suffix[:20] or 'no suffix'}", shown)
                continue
            if len(found) >= limits.IMPORT_FILES_MAX:
                raise InputError(f"{path} has more than {limits.IMPORT_FILES_MAX:,} files")
            found.append(_file(file, shown))
    return found


# -- archives ---------------------------------------------------------------------------------


def _check_count(path: Path) -> None:
    """The list of an archive's files is read at once; refuse one longer than any export's."""
    with path.open("rb") as file:
        file.seek(0, io.SEEK_END)
        size = file.tell()
        file.seek(max(0, size - 65_557))
        tail = file.read()
        at = tail.rfind(b"PK\5\6")
        if at < 0 or len(tail) - at < _END.size:
            raise InputError(f"{path} cannot be read: the archive has no end")
        listed = _END.unpack_from(tail, at)[5]
        where = at - _WHERE_64.size
        if where >= 0 and tail[where : where + 4] == b"PK\6\7":
            file.seek(min(_WHERE_64.unpack_from(tail, where)[2], size))
            end = file.read(_END_64.size)
            if len(end) == _END_64.size and end.startswith(b"PK\6\6"):
                listed = _END_64.unpack(end)[8]
    # An entry of the list has 46 bytes and its name.
    if listed > 200 * limits.IMPORT_FILES_MAX:
        raise InputError(f"{path} has more than {limits.IMPORT_FILES_MAX:,} files")


def _in_archive(archive: zipfile.ZipFile, path: Path, notes: Notes) -> list[File]:
    members = archive.infolist()
    if len(members) > limits.IMPORT_FILES_MAX:
        raise InputError(f"{path} has more than {limits.IMPORT_FILES_MAX:,} files")
    found = []
    for member in sorted(members, key=lambda member: member.filename):
        name = PurePosixPath(member.filename.replace("\\", "/"))
        if member.is_dir():
            continue
        if name.is_absolute() or ".." in name.parts:
            notes.reject("a file whose name leads out of the archive", member.filename)
        elif name.suffix.lower() not in _SUFFIXES:
            notes.skip(f"a file of another kind: {name.suffix[:20] or 'no suffix'}", str(name))
        else:
            found.append(File(str(name), member.file_size, _opener(archive, member)))
    _check_ratio(path, sum(file.size for file in found))
    return found


def _check_ratio(path: Path, unpacked: int) -> None:
    allowed = limits.UNPACKED_FREE_BYTES + limits.UNPACKED_RATIO_MAX * path.stat().st_size
    if unpacked > allowed:
        raise InputError(
            f"{path} says that it unpacks to {unpacked:,} bytes, more than"
            f" {limits.UNPACKED_RATIO_MAX} times its size; it was not read"
        )


def _opener(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Callable[[], Stream]:
    def opened() -> Stream:
        try:
            return _Member(archive.open(member))
        except _BROKEN as error:
            raise Unreadable(str(error)) from error

    return opened


class Unreadable(InputError):
    """A file inside an archive cannot be read."""

    @property
    def code(self) -> str:
        """The name that callers know."""
        return "InputError"


class _Member:
    """A file inside an archive; whatever is wrong with it is an error of ours."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner

    def read(self, size: int = -1, /) -> bytes:
        """As of any file."""
        return self._checked(lambda: self._inner.read(size))

    def readline(self, size: int = -1, /) -> bytes:
        """As of any file."""
        return self._checked(lambda: self._inner.readline(size))

    def seek(self, offset: int, /) -> int:
        """As of any file."""
        return self._checked(lambda: self._inner.seek(offset))

    def close(self) -> None:
        """As of any file."""
        self._inner.close()

    @staticmethod
    def _checked(read: Callable[[], T]) -> T:
        try:
            return read()
        except _BROKEN as error:
            raise Unreadable(f"the archive is damaged: {error}") from error


# -- progress ---------------------------------------------------------------------------------


class ReadProgress:
    """How much of all files has been read."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total = progress, total
        self._done = self._before = 0

    def of(self, stream: Stream) -> CountedStream:
        """The stream, counted; reading it anew counts anew."""
        self._before = self._done
        return CountedStream(stream, self)

    def read(self, count: int) -> None:
        """So many bytes of the stream were read."""
        self._done = self._before + count

    def show(self) -> None:
        """Tell how far we are."""
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)

    def finish(self) -> None:
        """All of it has been read."""
        self._done = self._total
        self.show()


class CountedStream:
    """A stream that tells how much of it was read."""

    def __init__(self, stream: Stream, bar: ReadProgress) -> None:
        self._stream, self._bar, self._at = stream, bar, 0

    def read(self, size: int = -1, /) -> bytes:
        """As of any file."""
        return self._counted(self._stream.read(size))

    def readline(self, size: int = -1, /) -> bytes:
        """As of any file."""
        return self._counted(self._stream.readline(size))

    def seek(self, offset: int, /) -> int:
        """As of any file."""
        self._at = self._stream.seek(offset)
        return self._at

    def close(self) -> None:
        """As of any file."""
        self._stream.close()

    def _counted(self, data: bytes) -> bytes:
        self._at += len(data)
        self._bar.read(self._at)
        return data
