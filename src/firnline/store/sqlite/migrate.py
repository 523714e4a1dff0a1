"""Schema migrations: numbered steps, each applied once, in one transaction."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from importlib import resources
from typing import Final, NamedTuple

import apsw

from firnline.errors import StoreCorrupt, StoreError, StoreUnavailable
from firnline.store.migrations import check_version, load
from firnline.store.sqlite.checksums import lost_its_mark
from firnline.store.sqlite.commit_record import (
    CommitRecord,
    check_moved,
    has_log,
    read_record,
    report_missing,
)
from firnline.store.sqlite.connection import (
    APPLICATION_ID,
    DatabaseFile,
    check_size,
    connect,
    translate_errors,
    undo_interrupted,
    watch_rows,
)

_SEALED: Final = 9
"""The migration that added the last column that is sealed; before it, rows without seals are."""


def shipped_migrations() -> Mapping[int, str]:
    """The migrations of this Firnline version, by number."""
    return load(resources.files("firnline").joinpath("store/sqlite/migrations"))


def migrate(connection: apsw.Connection, migrations: Mapping[int, str]) -> int:
    """Migrate the database to the newest schema; returns its version. Rejects other databases."""
    version = check(connection, max(migrations))
    for number in range(version + 1, max(migrations) + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have applied this one in the meantime.
            if check(connection, max(migrations)) < number:
                connection.execute(migrations[number])
                if number == _SEALED:
                    watch_rows(connection)
                    connection.execute("INSERT OR IGNORE INTO seal SELECT * FROM sealing")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return max(migrations)


def check(connection: apsw.Connection, newest: int) -> int:
    """The database's schema version; raises if it is newer than `newest` or not Firnline's."""
    # One statement, so one snapshot: another process may be creating the file.
    version, owner, tables = connection.execute(
        "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema)"
        " FROM pragma_user_version, pragma_application_id"
    ).get
    if tables and owner != APPLICATION_ID:
        raise StoreError(
            "this is a SQLite database, but not one of Firnline's; nothing was changed"
        )
    check_version(version, newest)
    return int(version)


class OpenedFile(NamedTuple):
    """How the file can be used, and the writer's connection to it unless it is read-only."""

    place: DatabaseFile
    connection: apsw.Connection | None = None


def open_file(place: DatabaseFile) -> OpenedFile:
    """Check and migrate the file. Blocks.

    Retries, because SQLite does not wait while another process creates the file.
    """
    deadline = time.monotonic() + place.busy_seconds
    while True:
        try:
            return _try_to_open(replace(place, immutable=False))
        except StoreUnavailable as error:
            busy = isinstance(error.__cause__, apsw.BusyError)
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _try_to_open(place: DatabaseFile) -> OpenedFile:
    with translate_errors(place.path):
        check_size(place.path)
        if place.read_only:
            return OpenedFile(_inspect(place))
        if place.path.exists():
            _inspect(place)
        check_moved(place)
        connection = connect(place, writer=True)
        try:
            migrate(connection, shipped_migrations())
            watch_rows(connection)  # another process may have created the tables just now
        except BaseException:
            connection.close()
            raise
        return OpenedFile(place, connection)


def _inspect(place: DatabaseFile) -> DatabaseFile:
    """Check the file before anything is written: a foreign database is not changed."""
    record = read_record(place.path)  # before the database is read
    if lost_its_mark(place.path):
        raise StoreCorrupt(f"{place.path}: the header is damaged; restore the file from a backup")
    try:
        _examine(place, record)
    except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
        if not place.read_only or not _is_unchanging(place, error):
            raise
        place = place.unchanging()
        _examine(place, record)
    return place


def _is_unchanging(place: DatabaseFile, error: apsw.Error) -> bool:
    """Whether the file can be read without locks: it is complete and no process can change it."""
    unfinished = getattr(error, "extendedresult", 0) == apsw.SQLITE_READONLY_ROLLBACK
    return not (unfinished or has_log(place.path) or os.access(place.path.parent, os.W_OK))


def _examine(place: DatabaseFile, record: CommitRecord | None) -> None:
    try:
        look = connect(place, writer=False)
    except apsw.ReadOnlyError:
        if place.read_only:
            raise
        undo_interrupted(place)
        look = connect(place, writer=False)
    with closing(look):
        check(look, max(shipped_migrations()))
        report_missing(look, place, record)
