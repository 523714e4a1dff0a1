"""Atomic file writes."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from firnline.errors import InputError
from firnline.log import limits
from firnline.log.regex import regex
from firnline.store.limits import LOCK_TRIES
from firnline.store.scratch import delete_if_unlocked, try_lock

_PARTIAL: Final = regex(r"firnline-[0-9a-f]{12}\.partial")
_JOURNALS: Final = ("journal", "wal", "shm")  # of SQLite, next to a database
_LOCKED: Final = sys.platform == "linux"


def local_path(path: object) -> Path:
    """The path; `InputError` if no file can have this name, or if it cannot be reached."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"expected a path, got {type(path).__name__}")
    text = os.fspath(path)
    if not isinstance(text, str):
        raise InputError(f"expected a path as text, got {type(text).__name__}")
    if "\0" in text:
        raise InputError(f"{text!r:.200}: the name of a file cannot contain a NUL character")
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            Path(text).stat()
    except OSError as error:
        raise InputError(f"{text:.200}: {error.strerror}") from error
    except UnicodeEncodeError as error:
        raise InputError(f"{text!r:.200}: the name of a file cannot contain this text") from error
    return Path(text)


def source_path(path: object, *, folders: bool = False) -> Path:
    """A file to read, or a folder if `folders`; `InputError` for anything else."""
    named = local_path(path)
    try:
        mode = named.stat().st_mode
    except OSError as error:
        raise InputError(f"{named} cannot be read: {error.strerror}") from error
    if stat.S_ISDIR(mode) and not folders:
        raise InputError(f"{named} cannot be read: it is a folder, not a file")
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InputError(f"{named} is a pipe or a device, not a file; copy it into a file first")
    return named


def copy_stream(source: BinaryIO, target: Path, name: str, start: bytes = b"") -> None:
    """Copy what another process writes into a file, after `start` and up to a limit."""
    number, copied = source.fileno(), 0
    if _is_device(number):
        raise InputError(f"{name} is a device, not a file")
    with target.open("wb") as file:
        piece = start or source.read(limits.COPY_BYTES)
        while piece:
            copied += len(piece)
            if copied > limits.INPUT_BYTES_MAX:
                raise InputError(f"{name}: the limit is {limits.INPUT_BYTES_MAX:,} bytes")
            file.write(piece)
            piece = source.read(limits.COPY_BYTES)


def copy_pipe(path: Path, target: Path) -> None:
    """Copy what is written to a pipe; `InputError` if nothing is, or if it is a device."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    with os.fdopen(number, "rb") as source:
        if _is_device(number):
            raise InputError(f"{path} is a device, not a file")
        start = _first_bytes(number, path)
        os.set_blocking(number, True)
        copy_stream(source, target, str(path), start)


def _is_device(number: int) -> bool:
    """Whether an open file is a device, which may have no end; a terminal has one."""
    mode = os.fstat(number).st_mode
    return (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and not os.isatty(number)


def _first_bytes(number: int, path: Path) -> bytes:
    """What is in a pipe; nothing if a process has opened it and has not written yet."""
    deadline = time.monotonic() + limits.PIPE_SECONDS
    while time.monotonic() < deadline:
        try:
            if first := os.read(number, limits.COPY_BYTES):
                return first
        except BlockingIOError:
            return b""
        time.sleep(0.01)
    raise InputError(f"nothing was written to {path} for {limits.PIPE_SECONDS:.0f} seconds")


@contextmanager
def atomic_write(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Yield a temporary path; on success, it is synced and renamed to `path`.

    For a symbolic link, the target is replaced. A pipe or device is written directly. With `new`,
    `path` must not exist. Raises `InputError` if it cannot be written.
    """
    path = local_path(path)
    try:
        if new and os.path.lexists(path):
            raise InputError(f"{path} already exists; choose a new file")
        target = path.resolve()
        if target.exists() and not target.is_file():
            if target.is_dir():
                raise InputError(f"{path} is a folder, not a file")
            with _reader_of(path):
                yield path
        else:
            with _partial_file(target) as file:
                yield file
    except BrokenPipeError:
        raise  # the reader closed the pipe
    except OSError as error:
        if error.errno is None:
            raise  # raised by the caller's code, not by the system
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def _partial_file(target: Path) -> Iterator[Path]:
    _delete_stale(target.parent)
    file, lock = _create_partial(target)
    try:
        yield file
        _sync(file)
        file.replace(target)
        _sync_folder(target.parent)
    finally:
        file.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)


def _delete_stale(folder: Path) -> None:
    """Delete what killed processes have left, and the journals of databases among it."""
    for stale in folder.glob("firnline-*.partial") if _LOCKED else ():
        if _PARTIAL.fullmatch(stale.name):
            delete_if_unlocked(stale)
    for journal in folder.glob("firnline-*.partial-*") if _LOCKED else ():
        name, _, kind = journal.name.rpartition("-")
        if _PARTIAL.fullmatch(name) and kind in _JOURNALS and not journal.with_name(name).exists():
            with suppress(OSError):  # the next process may have the permission
                journal.unlink()


def _create_partial(target: Path) -> tuple[Path, int | None]:
    """A new file next to the target, locked so that other processes know it is in use.

    Only on Linux: elsewhere, SQLite's locks of a backup would wait for this one.
    """
    for _ in range(LOCK_TRIES):
        file = target.with_name(f"firnline-{secrets.token_hex(6)}.partial")
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        lock = try_lock(file) if _LOCKED else None
        if lock is not None or not _LOCKED:
            return file, lock
        file.unlink(missing_ok=True)  # another process took it for stale
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    return file, None  # a file system without locks


@contextmanager
def _reader_of(path: Path) -> Iterator[None]:
    """Wait until a process reads the pipe, so that opening it does not; nothing for a device."""
    if not stat.S_ISFIFO(path.stat().st_mode):
        yield
        return
    deadline = time.monotonic() + limits.PIPE_SECONDS
    while True:
        try:
            number = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        if time.monotonic() > deadline:
            raise InputError(f"{path} was not read for {limits.PIPE_SECONDS:.0f} seconds")
        time.sleep(0.01)
    try:  # kept open, or the reader would see the end before the writer begins
        yield
    finally:
        os.close(number)


def _sync_folder(folder: Path) -> None:
    """Make the new name in a folder survive a power cut. Windows does so itself."""
    if os.name == "nt":
        return
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system without it
            raise
    finally:
        os.close(number)


def _sync(file: Path) -> None:
    number = os.open(file, os.O_RDWR)
    try:
        os.fsync(number)
    finally:
        os.close(number)
