"""Schema migrations, numbered. Each is applied once, in one transaction, by one process.

Migrations only add, so processes of the previous version keep working while they are applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

from psycopg import AsyncConnection, sql

from firnline.errors import StoreError
from firnline.store.migrations import check_version, load
from firnline.store.postgres.connection import SCHEMA

SERVER_VERSION_MIN: Final = 140000
_LOCK: Final = 0x4669726E_6C696E65  # "Firnline" in ASCII: one process migrates at a time
_INSTALLED: Final = f"{SCHEMA}.installed"


def shipped_migrations() -> Mapping[int, str]:
    """The migrations of this Firnline: number to SQL."""
    return load(resources.files("firnline").joinpath("store/postgres/migrations"))


async def migrate(connection: AsyncConnection[Any], migrations: Mapping[int, str]) -> int:
    """Migrate the database to the newest schema; returns its version. Fails if it is not ours.

    Nothing is written if the schema is current, so a read-only server can be opened.
    """
    await _check_server(connection)
    version = await check(connection, max(migrations))
    for number in range(version + 1, max(migrations) + 1):
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            # Another process may have applied it while we waited.
            if await check(connection, max(migrations)) < number:
                await _apply(connection, number, migrations[number])
    return max(migrations)


async def _apply(connection: AsyncConnection[Any], number: int, step: str) -> None:
    if number == 1:
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        await connection.execute(
            f"CREATE TABLE {_INSTALLED} (version integer PRIMARY KEY,"
            " at timestamptz NOT NULL DEFAULT now())"
        )
    await connection.execute(f"SET LOCAL search_path = {SCHEMA}, pg_catalog")
    await connection.execute(step.encode())
    await connection.execute(
        sql.SQL("INSERT INTO {} (version) VALUES (%s)").format(sql.Identifier("installed")),
        (number,),
    )


async def check(connection: AsyncConnection[Any], newest: int) -> int:
    """The database's schema version; raises if it is newer than `newest` or not Firnline's."""
    found = await _value(
        connection,
        "SELECT (to_regclass(%s) IS NOT NULL)::int, (SELECT count(*) FROM pg_class c JOIN"
        " pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s)",
        (_INSTALLED, SCHEMA),
    )
    installed, tables = found
    if not installed:
        if tables:
            raise StoreError(
                f"the schema {SCHEMA} has tables that are not Firnline's; nothing was changed"
            )
        return 0
    (version,) = await _value(connection, f"SELECT coalesce(max(version), 0) FROM {_INSTALLED}")
    check_version(version, newest)
    return int(version)


async def _check_server(connection: AsyncConnection[Any]) -> None:
    if connection.info.server_version < SERVER_VERSION_MIN:
        raise StoreError(
            f"PostgreSQL {connection.info.server_version // 10000} is too old; "
            f"{SERVER_VERSION_MIN // 10000} or newer is required"
        )
    (encoding,) = await _value(connection, "SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreError(f"the database's encoding is {encoding}; UTF8 is required")


async def _value(
    connection: AsyncConnection[Any], query: str, values: tuple[Any, ...] = ()
) -> tuple[Any, ...]:
    cursor = await connection.execute(query.encode(), values or None)
    row: tuple[Any, ...] | None = await cursor.fetchone()
    return row or ()
