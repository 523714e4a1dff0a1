"""The schema, by numbered steps. Each is applied once, in one transaction, by one process.

Steps only add: a process of the version before goes on working while they are applied.
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
_LOCK: Final = 0x4669726E_6C696E65  # "Firnline", for all who may want to migrate
_INSTALLED: Final = f"{SCHEMA}.installed"


def shipped_migrations() -> Mapping[int, str]:
    """The migrations that come with this Firnline: number to SQL."""
    return load(resources.files("firnline").joinpath("store/postgres/migrations"))


async def migrate(connection: AsyncConnection[Any], migrations: Mapping[int, str]) -> int:
    """Bring the database to the newest schema; returns its version. Refuses what is not ours.

    Nothing is written if there is nothing to do, so a server that only reads can be opened.
    """
    await _check_server(connection)
    version = await check(connection, max(migrations))
    for number in range(version + 1, max(migrations) + 1):
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            # Another process may have done this one while we waited.
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
    there = await _value(
        connection,
        "SELECT (to_regclass(%s) IS NOT NULL)::int, (SELECT count(*) FROM pg_class c JOIN"
        " pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s)",
        (_INSTALLED, SCHEMA),
    )
    installed, tables = there
    if not installed:
        if tables:
            raise StoreError(
                f"the schema {SCHEMA} has tables, but not Firnline's; nothing was changed"
            )
        return 0
    (version,) = await _value(connection, f"SELECT coalesce(max(version), 0) FROM {_INSTALLED}")
    check_version(version, newest)
    return int(version)


async def _check_server(connection: AsyncConnection[Any]) -> None:
    if connection.info.server_version < SERVER_VERSION_MIN:
        raise StoreError(
            f"this is PostgreSQL {connection.info.server_version // 10000}; "
            f"{SERVER_VERSION_MIN // 10000} or newer is needed"
        )
    (encoding,) = await _value(connection, "SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreError(f"the database's encoding is {encoding}; UTF8 is needed")


async def _value(
    connection: AsyncConnection[Any], query: str, values: tuple[Any, ...] = ()
) -> tuple[Any, ...]:
    cursor = await connection.execute(query.encode(), values or None)
    row: tuple[Any, ...] | None = await cursor.fetchone()
    return row or ()
