"""Copying the database while it is in use, by SQLite itself: nobody else may open the live file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Final

import apsw

from firnline.protocols import Progress
from firnline.store.files import written
from firnline.store.sqlite.connection import Place, connect, errors

_PAGES_AT_ONCE: Final = 1_024


def copy_to(place: Place, path: Path, progress: Progress | None) -> None:
    """Write a copy to a new file, which appears only when it is complete. Blocks."""
    with written(path, new=True) as half_done:
        with errors(half_done):
            target = apsw.Connection(str(half_done))
        with closing(target), errors(place.path), closing(connect(place, writer=False)) as source:
            _copy(source, target, progress)


def _copy(source: apsw.Connection, target: apsw.Connection, progress: Progress | None) -> None:
    # In a snapshot, or every commit of others would make the copy begin anew.
    source.execute("BEGIN; SELECT count(*) FROM conversation").fetchall()
    with target.backup("main", source, "main") as copy:
        while not copy.done:
            copy.step(_PAGES_AT_ONCE)
            if progress is not None:
                progress(copy.page_count - copy.remaining, copy.page_count)
