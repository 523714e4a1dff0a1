"""Copies the database to a new file, with page checksums and an identity of its own."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw

from firnline.errors import InputError, StoreUnavailable
from firnline.protocols import Progress
from firnline.store.files import atomic_write
from firnline.store.sqlite.checksums import checksum_vfs, has_room, mark_new, reserve, verify_reads
from firnline.store.sqlite.commit_record import record_path, renew_identity
from firnline.store.sqlite.connection import DatabaseFile, connect, translate_errors

_BACKUP_PAGES: Final = 1_024  # copied per step


async def copy_to(place: DatabaseFile, path: Path, progress: Progress | None) -> None:
    """Write a copy to a new file, which appears only when it is complete.

    `StoreCorrupt` if a page does not have its checksum: a copy would hide that. If this is
    canceled, no file is left.
    """
    stopped = threading.Event()
    copying = asyncio.ensure_future(asyncio.to_thread(_copy_to, place, path, progress, stopped))
    try:
        await asyncio.shield(copying)
    except asyncio.CancelledError:
        stopped.set()
        await asyncio.wait([copying])
        if not copying.cancelled():
            copying.exception()  # retrieved, or asyncio would log it
        raise


def _copy_to(
    place: DatabaseFile, path: Path, progress: Progress | None, stopped: threading.Event
) -> None:
    with atomic_write(path, new=True) as half_done:
        with translate_errors(half_done):
            target = apsw.Connection(str(half_done), vfs=checksum_vfs())
            if checksum_vfs():
                mark_new(target)
        with (
            closing(target),
            translate_errors(place.path),
            closing(connect(place, writer=False)) as source,
        ):
            _copy(source, target, progress, stopped)
        with translate_errors(half_done):
            _finish(half_done)


def _copy(
    source: apsw.Connection,
    target: apsw.Connection,
    progress: Progress | None,
    stopped: threading.Event,
) -> None:
    # In a snapshot; otherwise every commit by another connection restarts the copy.
    source.execute("BEGIN; SELECT count(*) FROM conversation").fetchall()
    verify_reads(source, on=has_room(source))
    with target.backup("main", source, "main") as copy:
        while not copy.done:
            if stopped.is_set():
                raise StoreUnavailable("the backup was canceled; nothing was written")
            copy.step(_BACKUP_PAGES)
            if progress is not None:
                progress(copy.page_count - copy.remaining, copy.page_count)


def _finish(path: Path) -> None:
    with closing(connect(DatabaseFile(path), writer=True)) as copy:
        renew_identity(copy)
        if checksum_vfs() and not has_room(copy):  # of a store that is older than checksums
            reserve(copy)
            copy.execute("VACUUM")
        copy.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


async def load(place: DatabaseFile, path: Path) -> None:
    """Copy a backup, which is a store itself, into a file that does not exist yet."""
    if there := [file.name for file in files_of(place.path) if file.exists()]:
        raise InputError(
            f"{', '.join(there)} exists: restore to a new file, or move the old ones away first"
        )
    await copy_to(DatabaseFile(path, read_only=True), place.path, None)


def files_of(path: Path) -> list[Path]:
    """A store's file and those that belong to it."""
    logs = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    return [path, *logs, record_path(path)]
