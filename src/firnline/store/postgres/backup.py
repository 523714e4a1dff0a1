"""A consistent snapshot of the store as an SQL file; `load` or `psql` restores it.

It matches the output of `pg_dump` for our schema, but needs no tool of the server's version, and
includes the rows that policies hide.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO, Final

import psycopg
from psycopg import AsyncConnection

from firnline.errors import InputError, StoreCorrupt
from firnline.log import limits
from firnline.protocols import Progress
from firnline.store.files import atomic_write
from firnline.store.postgres import migrate
from firnline.store.postgres.connection import SCHEMA, PostgresDatabase
from firnline.store.postgres.errors import translate_error

_BEGIN: Final = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;"
    f" SET LOCAL search_path = {SCHEMA}, pg_catalog; SET LOCAL firnline.tenant = '*'"
)
_COLUMNS: Final = (
    "SELECT c.relname::text, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)"
    " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
    f" AND NOT a.attisdropped WHERE c.relnamespace = '{SCHEMA}'::regnamespace"
    " AND c.relkind IN ('r', 'p') AND NOT c.relispartition GROUP BY c.relname ORDER BY c.relname"
)
_HEAD: Final = f"""\
-- A backup of a Firnline store. Restore it into an empty database, with firnline restore-backup or
--   psql --set ON_ERROR_STOP=1 --single-transaction --file FILE postgresql://...
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
SET search_path = {SCHEMA}, pg_catalog;
SET standard_conforming_strings = on;
CREATE TABLE installed (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
"""
_TITLE: Final = b"-- A backup of a Firnline store."
_THERE: Final = f"SELECT count(*) FROM pg_tables WHERE schemaname = '{SCHEMA}'"
_COPY: Final = b"COPY "
_ROWS_END: Final = b"\\.\n"
_END: Final = b"-- The end of the backup.\n"
_COUNTERS: Final = "".join(
    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), coalesce(max(id), 0) + 1, false)"
    f" FROM {table};\n"
    for table in ("conversation", "embedder")
)


async def copy_to(database: PostgresDatabase, path: Path, progress: Progress | None) -> None:
    """Write a backup to a new file, which appears only when it is complete."""
    connection = await database.connect()
    try:
        with atomic_write(path, new=True) as temporary, temporary.open("wb") as file:
            await _copy(connection, file, progress)
    except psycopg.Error as error:
        raise translate_error(error, database.place) from error
    finally:
        await connection.close()


async def _copy(
    connection: AsyncConnection[Any], file: BinaryIO, progress: Progress | None
) -> None:
    schema = resources.files("firnline").joinpath("store/postgres/schema.sql").read_text("utf-8")
    tables, mark, policies = schema.partition("-- Policies.")
    await connection.execute(_BEGIN)
    # Columns of a newer Firnline could not be restored into the tables of our schema.
    await migrate.check(connection, max(migrate.shipped_migrations()))
    known = await (await connection.execute(_COLUMNS.encode())).fetchall()
    file.write(f"{_HEAD}{tables}\n".encode())
    for done, (table, columns) in enumerate(known, 1):
        file.write(f"COPY {table} ({columns}) FROM stdin;\n".encode())
        # A query: with policies, COPY of a partitioned table copies only the parent's rows: none.
        async for chunk in _rows(connection, f"COPY (SELECT {columns} FROM {table}) TO STDOUT"):
            await asyncio.to_thread(file.write, chunk)
        file.write(_ROWS_END + b"\n")
        if progress is not None:
            progress(done, len(known))
    # Policies come last, because COPY does not load a table that has them.
    file.write(f"{_COUNTERS}{mark}{policies}\n".encode() + _END)
    await connection.execute("COMMIT")


async def _rows(connection: AsyncConnection[Any], query: str) -> AsyncIterator[bytes]:
    buffer = bytearray()
    async with connection.cursor() as cursor, cursor.copy(query.encode()) as copy:
        async for data in copy:
            buffer += data
            if len(buffer) >= limits.COPY_BYTES:
                yield bytes(buffer)
                buffer.clear()
    yield bytes(buffer)


async def load(database: PostgresDatabase, path: Path) -> None:
    """Restore a backup into a database without a store, in one transaction."""
    connection = await database.connect()
    try:
        with path.open("rb") as file:
            if not file.readline().startswith(_TITLE):
                raise InputError(f"{path} is not a backup of a PostgreSQL store")
            async with connection.transaction():
                (found,) = await (await connection.execute(_THERE.encode())).fetchone() or (0,)
                if found:
                    raise InputError("restore needs a database without a store; this one has one")
                await _load(connection, file, path)
    except psycopg.Error as error:
        raise translate_error(error, database.place) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    finally:
        await connection.close()


async def _load(connection: AsyncConnection[Any], file: BinaryIO, path: Path) -> None:
    """Run the statements of a backup; rows are read in pieces, as they may be many."""
    statements = bytearray()
    while line := await asyncio.to_thread(file.readline):
        if not line.startswith(_COPY):
            statements += line
            continue
        await connection.execute(bytes(statements))
        statements.clear()
        done = False
        async with connection.cursor() as cursor, cursor.copy(line) as copy:
            while not done:
                rows, done = await asyncio.to_thread(_next_rows, file, path)
                await copy.write(rows)
    if not statements.endswith(_END):
        raise StoreCorrupt(f"{path} is incomplete: its end is missing")
    await connection.execute(bytes(statements))


def _next_rows(file: BinaryIO, path: Path) -> tuple[bytes, bool]:
    """Some rows of a table, and whether they are the last ones."""
    rows = bytearray()
    while len(rows) < limits.COPY_BYTES:
        line = file.readline()
        if not line.endswith(b"\n"):
            raise StoreCorrupt(f"{path} is incomplete: rows of a table are missing")
        if line == _ROWS_END:
            return bytes(rows), True
        rows += line
    return bytes(rows), False
