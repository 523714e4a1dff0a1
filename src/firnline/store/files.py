"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firnline.errors import InputError


@contextmanager
def atomic_write(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Where to write what becomes `path` when all of it is there and on disk.

    A link's target is replaced, not the link; a pipe or device is written as it is. `new`: there
    must be nothing yet. `InputError` if it cannot be written.
    """
    try:
        if new and os.path.lexists(path):
            raise InputError(f"{path} exists already; this goes to a new file")
        target = path.resolve()
        if target.exists() and not target.is_file():
            if target.is_dir():
                raise InputError(f"{path} is a folder, not a file")
            yield path
        else:
            with _partial_file(target) as file:
                yield file
    except BrokenPipeError:
        raise  # whoever reads has seen enough
    except OSError as error:
        if error.errno is None:
            raise  # somebody's own, not the system's
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
