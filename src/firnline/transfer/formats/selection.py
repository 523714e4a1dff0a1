"""Which files hold conversations, in which formats, and how far they have been read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from firnline.protocols import Progress
from firnline.transfer.formats.detect import HTML, OWN, recognise
from firnline.transfer.formats.readers import READERS
from firnline.transfer.formats.records import Notes, Stream
from firnline.transfer.formats.sources import File, Unreadable, files


def chosen(found: Sequence[File], as_format: str | None, notes: Notes) -> list[tuple[File, str]]:
    """The files that hold conversations, with their formats; what the others are is noted."""
    if as_format is not None and len(found) == 1:
        return [(found[0], as_format)]
    found_here: list[tuple[File, str]] = []
    for file in found:
        name = _recognised(file, notes)
        if name is not None and (
            len(found) == 1 or (name in READERS and as_format in (None, name))
        ):
            found_here.append((file, name))
        elif name == OWN:
            notes.wonder("an export of Firnline's own: import it by itself", file.name)
        elif name is not None and as_format is not None:
            notes.leave("a file of another format", file.name)
        else:
            notes.leave("a file without conversations that we know of", file.name)
    return found_here


def _recognised(file: File, notes: Notes) -> str | None:
    try:
        stream = file.open()
        try:
            return recognise(stream)
        finally:
            stream.close()
    except Unreadable as error:
        notes.wonder("a file that cannot be read", f"{file.name}: {error}")
        return None


def format_of(path: Path) -> str | None:
    """The format of a plain file; None for a folder, a zip, or what is not known."""
    with files(path, Notes()) as found:
        plain = len(found) == 1 and found[0].name == path.name
        return _recognised(found[0], Notes()) if plain else None


def no_format(path: Path, names: Sequence[str]) -> str:
    """What is wrong with files of which none can be read."""
    if HTML in names:
        return f"{path} is HTML; let the program that wrote it write JSON or text instead"
    if OWN in names:
        return f"{path} holds an export of Firnline's own; unpack it and import the file"
    known = f"{path} has none of the formats {', '.join(READERS)}"
    return f"{known}; messages in OpenAI's shape by themselves are appended, not imported"


class Bar:
    """How much of all files has been read."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total = progress, total
        self._done = self._before = 0

    def of(self, stream: Stream) -> Counted:
        """The stream, counted; reading it anew counts anew."""
        self._before = self._done
        return Counted(stream, self)

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


class Counted:
    """A stream that tells how much of it was read."""

    def __init__(self, stream: Stream, bar: Bar) -> None:
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
