"""Exports as files on this side: written whole or not at all, and read piece by piece."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

from firnline.client.reading import read
from firnline.errors import InputError, StoreTimeout
from firnline.transfer import Manifest

_PIECE: Final = 1024 * 1024


async def saved(pieces: AsyncIterator[bytes], path: Path) -> Manifest:
    """Write an export to `path`, which appears only when all of it has arrived.

    Its manifest is its last line, with the SHA-256 of all before it; both are checked.
    """
    half_done = path.with_name(path.name + ".partial")
    try:
        with half_done.open("wb") as file:
            async for piece in pieces:
                await asyncio.to_thread(file.write, piece)
        manifest = await asyncio.to_thread(_checked, half_done)
        half_done.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        half_done.unlink(missing_ok=True)
    return manifest


def _checked(path: Path) -> Manifest:
    """The manifest of an export that is whole."""
    digest, last = hashlib.sha256(), b""
    with path.open("rb") as file:
        for line in file:
            digest.update(last)
            last = line
    try:
        manifest = read(Manifest, json.loads(last)["manifest"])
    except (ValueError, KeyError, TypeError):
        raise StoreTimeout("the export broke off: its manifest is missing") from None
    if manifest.sha256 != digest.hexdigest():
        raise StoreTimeout("the export did not arrive as it was sent")
    return manifest


def body_of(path: Path) -> tuple[int, Callable[[], AsyncIterator[bytes]]]:
    """A file as a request's body: its size, and its pieces, as often as they are asked for."""
    try:
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
