"""Transactions: their settings, and as few messages to the server as possible.

Parameters are bound on the client, and several statements are sent in one message. There are no
prepared statements and no settings that outlive a transaction, so a pooler may use a different
connection for each. Statements without a result are sent with the next query.
"""

from __future__ import annotations

import asyncio
import random
import re
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg import AsyncClientCursor, AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from firnline.errors import BadURL, FirnlineError, InputError, StoreNotOpen, StoreTimeout
from firnline.log import limits
from firnline.log.message import microseconds
from firnline.store.cancellation import preserve_cancellation
from firnline.store.postgres.errors import REPEATABLE, is_lost, translate_error

T = TypeVar("T")
Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]
Query = tuple[str, Values]
Pool = AsyncConnectionPool[AsyncConnection[Row]]
MaybeTime = Callable[[], datetime | None]
"""Returns the time, or None for the database's."""

SCHEMA: Final = "firnline"
ALL_TENANTS: Final = None
"""Passed instead of a tenant: access to all tenants."""

_SETTINGS: Final[dict[str, Any]] = {
    "application_name": "firnline",
    "client_encoding": "utf8",
    "connect_timeout": str(int(limits.CONNECT_SECONDS)),
    "keepalives_idle": "30",  # a dead connection is detected in a minute, not in two hours
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
# Statements are short: compiling them, as stock settings have it, takes far longer than they do.
_SETUP: Final = (
    f"SELECT set_config('search_path', '{SCHEMA}, pg_catalog', true),"
    " set_config('jit', 'off', true),"
    " set_config('firnline.tenant', %s, true)"
)
# An acknowledged write is durable even if the database is configured otherwise. The timeouts keep
# a process that hangs in a transaction from blocking others for long.
_SETUP_WRITE: Final = (
    f"{_SETUP}, CASE current_setting('synchronous_commit') WHEN 'off'"
    " THEN set_config('synchronous_commit', 'on', true) END,"
    f" set_config('lock_timeout', '{int(limits.BUSY_SECONDS)}s', true),"
    " set_config('idle_in_transaction_session_timeout',"
    f" '{int(limits.TRANSACTION_SECONDS)}s', true)"
)


class _Kind(NamedTuple):
    """How a transaction begins, and its settings."""

    begin: str
    setup: str
    writes: bool
    brief: bool = False


_READ: Final = _Kind("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", _SETUP, writes=False)
_WRITE: Final = _Kind("BEGIN", _SETUP_WRITE, writes=True)
_ROWS_AT_ONCE: Final = 1_000
_DATABASE_TIME: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class Transaction:
    """One transaction on one connection.

    A `brief` one is a single message: its first query also commits it.
    """

    def __init__(
        self, connection: AsyncConnection[Row], clock: MaybeTime, *, brief: bool = False
    ) -> None:
        self._cursor: AsyncClientCursor[Row] = AsyncClientCursor(connection)
        self._clock = clock
        self._brief = brief
        self._queued: list[str] = []
        self._begun = False
        self.committing = False
        self.ended = False

    @property
    def now(self) -> str:
        """The current time as SQL, in microseconds: the database's, which all processes share."""
        now = self._clock()
        return _DATABASE_TIME if now is None else str(microseconds(now))

    def later(self, sql: str, values: Values = ()) -> None:
        """Queue a statement without a result; it is sent with the next query."""
        self._queued.append(self._cursor.mogrify(sql, values) if values else sql)

    def insert(self, into: str, rows: Sequence[Row], *, otherwise: str = "") -> None:
        """Insert rows in batches. `into` names the table and its columns."""
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            places = ", ".join([f"({', '.join(['%s'] * len(some[0]))})"] * len(some))
            self.later(
                f"INSERT INTO {into} VALUES {places} {otherwise}", list(chain.from_iterable(some))
            )

    async def rows(self, sql: str, values: Values = ()) -> list[Row]:
        """The rows of a query."""
        (found,) = await self.each((sql, values))
        return found

    async def row(self, sql: str, values: Values = ()) -> Row:
        """The first row of a query, or an empty tuple."""
        found = await self.rows(sql, values)
        return found[0] if found else ()

    async def each(self, *queries: Query) -> tuple[list[Row], ...]:
        """The rows of several queries, sent in one message."""
        if self.ended:
            raise _MoreThanBrief
        for sql, values in queries:
            self.later(sql, values)
        if self._brief:
            self._queued.append("COMMIT")
            self.committing = True
        found = await self._send(len(queries) + self._brief)
        self.ended = self._brief
        return tuple(found[: len(queries)])

    async def changed(self, sql: str, values: Values = ()) -> int:
        """Run a statement; returns the number of rows it changed."""
        self.later(sql, values)
        await self._send(0)
        return self._cursor.rowcount

    async def flush(self) -> None:
        """Send the queued statements, to limit their size."""
        await self._send(0)

    async def commit(self) -> None:
        """Commit; unless brief, never in the first message.

        So a connection that was lost while idle is detected before the outcome can be in doubt.
        """
        if not self._begun:
            await self._send(0)
        self._queued.append("COMMIT")
        self.committing = True
        await self._send(0)

    async def _send(self, wanted: int) -> list[list[Row]]:
        """Send the queued statements; returns the rows of the last `wanted`."""
        message, count = "; ".join(self._queued), len(self._queued)
        self._queued.clear()
        await self._cursor.execute(message.encode())
        self._begun = True
        found: list[list[Row]] = []
        for number in range(count):
            if number >= count - wanted:
                found.append(await self._cursor.fetchall() if self._cursor.description else [])
            if number < count - 1:
                self._cursor.nextset()
        return found


class _MoreThanBrief(Exception):
    """A brief transaction has a second query."""


class _NotQuiet(Exception):
    """An idle connection has unread input, perhaps because it was closed."""


Work = Callable[[Transaction], Awaitable[T]]


class PostgresDatabase:
    """A connection pool; its transactions are retried where that is safe."""

    def __init__(self, url: str, *, clock: MaybeTime, connections: int) -> None:
        try:
            given = conninfo_to_dict(url)
        except psycopg.Error as error:
            raise BadURL(f"invalid store URL: {_redact_error(error)}") from error
        self.conninfo = make_conninfo(**{**_SETTINGS, **given})
        self.place = "postgresql://{}/{}".format(
            given.get("host", ""), given.get("dbname", given.get("user", ""))
        )
        self._clock = clock
        self._connections = connections
        self._pool: Pool | None = None
        self._background: set[asyncio.Future[Any]] = set()  # outlives its caller

    async def open(self) -> None:
        """Open the pool."""
        self._pool = AsyncConnectionPool(
            self.conninfo,
            kwargs={"autocommit": True, "prepare_threshold": None},
            min_size=1,
            max_size=self._connections,
            max_waiting=limits.WRITES_WAITING_MAX,
            timeout=limits.BUSY_SECONDS,
            reconnect_timeout=limits.CONNECT_SECONDS,
            open=False,
            name="firnline",
        )
        await self._pool.open()

    async def close(self) -> None:
        """Close all connections."""
        pool, self._pool = self._pool, None
        if self._background:
            await asyncio.wait(self._background)
        if pool is not None:
            await pool.close()

    def _open_pool(self) -> Pool:
        if self._pool is None:
            raise StoreNotOpen
        return self._pool

    @asynccontextmanager
    async def _borrow(self) -> AsyncIterator[AsyncConnection[Row]]:
        """A connection of the pool, which is always returned to it.

        The pool loses a connection if a task is canceled while it waits for one or returns one.
        So both are done in a separate task that is not canceled.
        """
        pool = self._open_pool()
        if pool.get_stats()["pool_available"]:
            connection = await pool.getconn()
        else:
            asking = asyncio.create_task(pool.getconn())
            try:
                connection = await asyncio.shield(asking)
            except asyncio.CancelledError:
                self._run_to_end(_return_late(pool, asking))
                raise
        try:
            yield connection
        finally:
            idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
            if idle and not pool.get_stats().get("requests_waiting"):
                with suppress(psycopg.Error):  # what was committed stays so
                    await pool.putconn(connection)
            else:
                await asyncio.shield(self._run_to_end(_put_back(pool, connection)))

    def _run_to_end(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run this in the background; canceling the caller does not stop it."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def connect(self) -> AsyncConnection[Row]:
        """A new connection, outside the pool and outside any transaction."""
        try:
            return await AsyncConnection.connect(
                self.conninfo, autocommit=True, prepare_threshold=None
            )
        except psycopg.Error as error:
            raise translate_error(error, self.place) from error

    async def execute(self, sql: str) -> None:
        """Run a statement outside a transaction, such as VACUUM."""
        try:
            async with self._borrow() as connection:
                await connection.execute(sql.encode())
        except psycopg.Error as error:
            raise translate_error(error, self.place) from error

    async def read(self, tenant: str | None, work: Work[T], *, brief: bool = True) -> T:
        """Run `work` on one consistent snapshot. It may be run more than once.

        If it is `brief` and has a single query, it takes one round trip.
        """
        if brief:
            with suppress(_MoreThanBrief):
                return await self._run(tenant, work, _READ._replace(brief=True))
        return await self._run(tenant, work, _READ)

    async def write(self, tenant: str | None, work: Work[T], *, brief: bool = False) -> T:
        """Run `work` in a transaction, durable when this returns. It may be run more than once.

        `StoreTimeout` means the outcome is unknown; after any other error it was rolled back. A
        `brief` one has a single query and is one message, if the connection looks alive.
        """
        if brief:
            with suppress(_NotQuiet):
                return await self._run(tenant, work, _WRITE._replace(brief=True))
        return await self._run(tenant, work, _WRITE)

    async def _run(self, tenant: str | None, work: Work[T], kind: _Kind) -> T:
        attempts = 0
        while True:
            try:
                with preserve_cancellation():
                    return await self._once(tenant, work, kind)
            except FirnlineError as error:
                attempts += 1
                if attempts >= limits.STORE_TRIES_MAX or not _is_repeatable(error):
                    raise
                await self._prepare_retry(error, attempts)

    async def _once(self, tenant: str | None, work: Work[T], kind: _Kind) -> T:
        transaction = None
        try:
            async with self._borrow() as connection:
                if kind.writes and kind.brief and not _is_quiet(connection):
                    raise _NotQuiet
                transaction = Transaction(connection, self._clock, brief=kind.brief)
                transaction.later(kind.begin)
                transaction.later(kind.setup, ["*" if tenant is None else f"={tenant}"])
                result = await work(transaction)
                if not transaction.ended:
                    await transaction.commit()
                return result
        except UnicodeEncodeError as error:
            raise InputError(f"the text cannot be stored: {error.reason}") from error
        except psycopg.Error as error:
            in_doubt = kind.writes and transaction is not None and transaction.committing
            raise translate_error(error, self.place, committing=in_doubt) from error

    async def _prepare_retry(self, error: FirnlineError, attempts: int) -> None:
        if isinstance(error.__cause__, psycopg.Error) and is_lost(error.__cause__):
            await self._open_pool().check()  # the other connections are probably lost, too
        await asyncio.sleep(random.uniform(0, 0.01 * 2**attempts))  # noqa: S311 - jitter


def _redact_error(error: psycopg.Error) -> str:
    """The error of a URL; what libpq quotes can be a password, unless it is an option's name."""
    said = str(error).strip()
    if re.fullmatch(r'invalid URI query parameter: "[a-z_]+"', said):
        return said
    return re.sub(r': ".*', "", said, flags=re.DOTALL)


async def _put_back(pool: Pool, connection: AsyncConnection[Row]) -> None:
    with suppress(psycopg.Error):  # then the pool replaces it
        await connection.rollback()
    await pool.putconn(connection)


async def _return_late(pool: Pool, asking: asyncio.Task[AsyncConnection[Row]]) -> None:
    """Return a connection whose caller was canceled."""
    with suppress(psycopg.Error):
        await pool.putconn(await asking)


def _is_quiet(connection: AsyncConnection[Row]) -> bool:
    """Whether it has no unread input, such as the server closing it."""
    if not hasattr(select, "poll"):  # Windows, where `select` accepts any file descriptor
        return not select.select([connection], [], [], 0)[0]
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return not poll.poll(0)


def _is_repeatable(error: FirnlineError) -> bool:
    """Whether it was certainly rolled back, by a temporary failure."""
    cause = error.__cause__
    if isinstance(error, StoreTimeout) or not isinstance(cause, psycopg.Error):
        return False
    return isinstance(cause, REPEATABLE) or is_lost(cause)
