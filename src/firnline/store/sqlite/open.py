"""Opening the file for the first time in a process: look, create or migrate, and be patient."""

from __future__ import annotations

import time
from contextlib import closing

import apsw

from firnline.errors import StoreUnavailable
from firnline.store.sqlite import migrate
from firnline.store.sqlite.connection import Place, check_size, connect, errors, undo_interrupted


def open_file(place: Place) -> apsw.Connection | None:
    """The writing connection to the migrated file; None if it is only read. Blocks.

    With patience: SQLite does not wait while others create the file.
    """
    deadline = time.monotonic() + place.busy_seconds
    while True:
        try:
            return _try_to_open(place)
        except StoreUnavailable as error:
            busy = isinstance(error.__cause__, apsw.BusyError)
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _try_to_open(place: Place) -> apsw.Connection | None:
    with errors(place.path):
        check_size(place.path)
        if place.read_only or place.path.exists():
            _look(place)
        if place.read_only:
            return None
        connection = connect(place, writer=True)
        try:
            migrate.migrate(connection, migrate.shipped())
        except BaseException:
            connection.close()
            raise
        return connection


def _look(place: Place) -> None:
    """Look before anything is written: what is not ours stays as it is."""
    try:
        look = connect(place, writer=False)
    except apsw.ReadOnlyError:
        if place.read_only:
            raise
        undo_interrupted(place)
        look = connect(place, writer=False)
    with closing(look):
        migrate.check(look, max(migrate.shipped()))
