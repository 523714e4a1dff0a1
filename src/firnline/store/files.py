"""Atomic file writes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firnline.errors import InputError


@contextmanager
def atomic_write(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Yield a temporary path; on success, it is synced and renamed to `path`.

    For a symbolic link, the target is replaced. A pipe or device is written directly. With `new`,
    `path` must not exist. Raises `InputError` if it cannot be written.
    """
    try:
        if new and os.path.lexists(path):
            raise InputError(f"{path} already exists; choose a new file")
        target = path.resolve()
        if target.exists() and not target.is_file():
            if target.is_dir():
                raise InputError(f"{path} is a folder, not a file")
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
    file = target.with_name(f"firnline-{secrets.token_hex(6)}.partial")
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield file
        _sync(file)
        file.replace(target)
    finally:
        file.unlink(missing_ok=True)


def _sync(file: Path) -> None:
    number = os.open(file, os.O_RDWR)
    try:
        os.fsync(number)
    finally:
        os.close(number)
