"""Files that a command reads or writes; ``-`` is standard input or output."""

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
    """The path to write; for ``-``, the complete file is then copied to standard output."""
    if name != STANDARD:
        yield Path(name)
        return
    with TemporaryDirectory(prefix="firnline-") as folder:
        file = Path(folder, "export")
        yield file
        if file.is_dir():
            raise InputError("this format writes several files: name a folder, or one conversation")
        with file.open("rb") as source:
            shutil.copyfileobj(source, sys.stdout.buffer)


@contextmanager
def to_read(name: str) -> Iterator[Path]:
    """The path to read; standard input and pipes are copied first, because files are read twice."""
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
