"""Files that a command reads or writes, where ``-`` and pipes take the place of one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from firnline.errors import InputError

STANDARD: Final = "-"


@contextmanager
def to_write(name: str) -> Iterator[Path]:
    """Where to write; ``-`` is the standard output, which gets all of it or nothing."""
    if name != STANDARD:
        yield Path(name)
        return
    with TemporaryDirectory(prefix="firnline-") as folder:
        file = Path(folder, "export")
        yield file
        if file.is_dir():
            raise InputError("several files go to a folder: name one, or a single conversation")
        with file.open("rb") as source:
            shutil.copyfileobj(source, sys.stdout.buffer)


@contextmanager
def to_read(name: str) -> Iterator[Path]:
    """What to read; ``-`` is the standard input. A pipe is copied first: files are read twice."""
    path = Path(name)
    if name != STANDARD and (not path.exists() or path.is_file() or path.is_dir()):
        yield path
        return
    with TemporaryDirectory(prefix="firnline-") as folder:
        file = Path(folder, "input")
        with file.open("wb") as target:
            if name == STANDARD:
                shutil.copyfileobj(sys.stdin.buffer, target)
            else:
                with path.open("rb") as source:
                    shutil.copyfileobj(source, target)
        yield file
