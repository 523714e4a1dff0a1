"""Exports as files on this side: written whole or not at all, and read piece by piece."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

from firnline.client.decode import read
from firnline.errors import InputError, StoreTimeout
from firnline.store.files import atomic_write
from firnline.transfer.jsonl import Manifest

_PIECE: Final = 1024 * 1024


async def saved(pieces: AsyncIterator[bytes], path: Path) -> Manifest:
    """Write an export to `path`, which appears only when all of it has arrived.

    Its manifest is its last line, with the SHA-256 of all before it; both are checked.
    """
    digest, last = hashlib.sha256(), b""
    with atomic_write(path) as half_done, half_done.open("wb") as file:
        async for piece in pieces:
            await asyncio.to_thread(file.write, piece)
            last += piece
            end = last.rfind(b"\n", 0, -1) + 1  # a line with something behind it is not the last
            digest.update(last[:end])
            last = last[end:]
        return _checked(last, digest.hexdigest())


def _checked(last: bytes, sha256: str) -> Manifest:
    """The manifest in the last line of an export whose other lines have this sum."""
    try:
        manifest = read(Manifest, json.loads(last)["manifest"])
    except (ValueError, KeyError, TypeError):
        raise StoreTimeout("the export broke off: its manifest is missing") from None
    if manifest.sha256 != sha256:
        raise StoreTimeout("the export did not arrive as it was sent")
    return manifest


def body_of(path: Path) -> tuple[int, Callable[[], AsyncIterator[bytes]]]:
    """A file as a request's body: its size, and its pieces, as often as they are asked for."""
    try:
        with path.open("rb"):
            size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    return size, lambda: _pieces(path)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(_next, file):
            yield piece


def _next(file: BinaryIO) -> Any:
    return file.read(_PIECE)
