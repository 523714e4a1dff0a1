"""Local files of exports: written completely or not at all, and read in pieces."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, BinaryIO

from firnline.client.decode import decode
from firnline.errors import InputError, StoreTimeout
from firnline.log import limits
from firnline.store.files import atomic_write
from firnline.transfer.jsonl import Manifest


async def save(pieces: AsyncIterator[bytes], path: Path) -> Manifest:
    """Write an export to `path`; the file appears only when it is complete.

    The manifest in the last line, with the SHA-256 of all lines before it, is checked.
    """
    digest, last = hashlib.sha256(), b""
    with atomic_write(path) as half_done, half_done.open("wb") as file:
        async for piece in pieces:
            await asyncio.to_thread(file.write, piece)
            last += piece
            end = last.rfind(b"\n", 0, -1) + 1  # only the last line is kept
            digest.update(last[:end])
            last = last[end:]
        return _check(last, digest.hexdigest())


def _check(last: bytes, sha256: str) -> Manifest:
    """The manifest in the last line; its SHA-256 must match."""
    try:
        manifest = decode(Manifest, json.loads(last)["manifest"])
    except (ValueError, KeyError, TypeError):
        raise StoreTimeout("the export is incomplete: its manifest is missing") from None
    if manifest.sha256 != sha256:
        raise StoreTimeout("the export was damaged on the way: its SHA-256 does not match")
    return manifest


def body_of(path: Path) -> tuple[int, Callable[[], AsyncIterator[bytes]]]:
    """A file as a request body: its size, and a function that returns its pieces."""
    try:
        with path.open("rb"):
            size = path.stat().st_size
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    return size, lambda: _pieces(path)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(_next, file):
            yield piece


def _next(file: BinaryIO) -> Any:
    return file.read(limits.COPY_BYTES)
