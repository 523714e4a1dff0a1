"""Transactions: what each one says about itself, and how few messages it takes.

Statements are bound here and sent as text, several in one message: no prepared statements and no
settings that outlive a transaction, so a pooler may give each one another connection. What needs no
answer waits for what does: an append is two messages, and one where the head is known.
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
"""The time, or None to take the database's."""

SCHEMA: Final = "firnline"
ALL_TENANTS: Final = None
"""Instead of a tenant: work on the server's own behalf, in all of them."""

_SETTINGS: Final[dict[str, Any]] = {
    "application_name": "firnline",
    "client_encoding": "utf8",
    "connect_timeout": str(int(limits.CONNECT_SECONDS)),
    "keepalives_idle": "30",  # a dead network is noticed in a minute, not in two hours
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
_SAY: Final = (
    f"SELECT set_config('search_path', '{SCHEMA}, pg_catalog', true),"
    " set_config('firnline.tenant', %s, true)"
)
# An acknowledged write is durable even if the database is set up otherwise. And nobody waits for
# long for one who stands still in the middle of a transaction.
_SAY_WRITING: Final = (
    f"{_SAY}, CASE current_setting('synchronous_commit') WHEN 'off'"
    " THEN set_config('synchronous_commit', 'on', true) END,"
    f" set_config('lock_timeout', '{int(limits.BUSY_SECONDS)}s', true),"
    " set_config('idle_in_transaction_session_timeout',"
    f" '{int(limits.TRANSACTION_SECONDS)}s', true)"
)


class _Kind(NamedTuple):
    """How a transaction begins, and what it says about itself."""

    begin: str
    say: str
    writes: bool
    brief: bool = False


_READ: Final = _Kind("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", _SAY, writes=False)
_WRITE: Final = _Kind("BEGIN", _SAY_WRITING, writes=True)
_ROWS_AT_ONCE: Final = 1_000
_DATABASE_TIME: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class Transaction:
    """One transaction on one connection.

    A `brief` one is a single message: its first question also ends it.
    """

    def __init__(
        self, connection: AsyncConnection[Row], clock: MaybeTime, *, brief: bool = False
    ) -> None:
        self._cursor: AsyncClientCursor[Row] = AsyncClientCursor(connection)
        self._clock = clock
        self._brief = brief
        self._waiting: list[str] = []
        self._begun = False
        self.committing = False
        self.ended = False

    @property
    def now(self) -> str:
        """The present time as SQL, in microseconds: the database's, for all share that one."""
        now = self._clock()
        return _DATABASE_TIME if now is None else str(microseconds(now))

    def later(self, sql: str, values: Values = ()) -> None:
        """Run a statement whose result nobody needs, with whatever comes next."""
        self._waiting.append(self._cursor.mogrify(sql, values) if values else sql)

    def insert(self, into: str, rows: Sequence[Row], *, otherwise: str = "") -> None:
        """Write rows, many by one statement. `into` names the table and its columns."""
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
        """The rows of several queries, by one message."""
        if self.ended:
            raise _MoreThanBrief
        for sql, values in queries:
            self.later(sql, values)
        if self._brief:
            self._waiting.append("COMMIT")
            self.committing = True
        found = await self._send(len(queries) + self._brief)
        self.ended = self._brief
        return tuple(found[: len(queries)])

    async def changed(self, sql: str, values: Values = ()) -> int:
        """How many rows a statement has changed."""
        self.later(sql, values)
        await self._send(0)
        return self._cursor.rowcount

    async def flush(self) -> None:
        """Send what waits: it may be much."""
        await self._send(0)

    async def commit(self) -> None:
        """Make it durable.

        Never by the first message, unless it is brief: a connection that had died while nobody used
        it is noticed before anything can be in doubt.
        """
        if not self._begun:
            await self._send(0)
        self._waiting.append("COMMIT")
        self.committing = True
        await self._send(0)

    async def _send(self, wanted: int) -> list[list[Row]]:
        """Send what waits; returns the rows of the last `wanted` statements."""
        message, count = "; ".join(self._waiting), len(self._waiting)
        self._waiting.clear()
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
    """A transaction that was thought to be one message has another question."""


class _NotQuiet(Exception):
    """A connection has something to say before it was asked, perhaps that it ends."""


Work = Callable[[Transaction], Awaitable[T]]


class PostgresDatabase:
    """A pool of connections, and transactions on them that are tried again where that is safe."""

    def __init__(self, url: str, *, clock: MaybeTime, connections: int) -> None:
        try:
            given = conninfo_to_dict(url)
        except psycopg.Error as error:
            raise BadURL(f"the store's URL is not understood: {_redact_error(error)}") from error
        self.conninfo = make_conninfo(**{**_SETTINGS, **given})
        self.place = "postgresql://{}/{}".format(
            given.get("host", ""), given.get("dbname", given.get("user", ""))
        )
        self._clock = clock
        self._connections = connections
        self._pool: Pool | None = None
        self._unseen: set[asyncio.Future[Any]] = set()  # what goes on though its caller is gone

    async def open(self) -> None:
        """Make connections from now on."""
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
        """Let go of all connections."""
        pool, self._pool = self._pool, None
        if self._unseen:
            await asyncio.wait(self._unseen)
        if pool is not None:
            await pool.close()

    def _open_pool(self) -> Pool:
        if self._pool is None:
            raise StoreNotOpen
        return self._pool

    @asynccontextmanager
    async def _borrow(self) -> AsyncIterator[AsyncConnection[Row]]:
        """A connection of the pool, which gets it back whatever happens.

        The pool loses those whose borrowers are cancelled while they wait for one or give it back;
        so whatever has to wait there is done by somebody whom nobody cancels.
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
                await pool.putconn(connection)
            else:
                await asyncio.shield(self._run_to_end(_put_back(pool, connection)))

    def _run_to_end(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do this to its end."""
        task = asyncio.create_task(work)
        self._unseen.add(task)
        task.add_done_callback(self._unseen.discard)
        return task

    async def connect(self) -> AsyncConnection[Row]:
        """A connection of one's own, outside the pool and outside any transaction."""
        try:
            return await AsyncConnection.connect(
                self.conninfo, autocommit=True, prepare_threshold=None
            )
        except psycopg.Error as error:
            raise translate_error(error, self.place) from error

    async def execute(self, sql: str) -> None:
        """Run a statement that cannot be in a transaction."""
        try:
            async with self._borrow() as connection:
                await connection.execute(sql.encode())
        except psycopg.Error as error:
            raise translate_error(error, self.place) from error

    async def read(self, tenant: str | None, work: Work[T], *, brief: bool = True) -> T:
        """Run `work`; all that it reads is of one moment. It may be run anew from its beginning.

        One message and one answer if it asks once, as what is `brief` mostly does.
        """
        if brief:
            with suppress(_MoreThanBrief):
                return await self._run(tenant, work, _READ._replace(brief=True))
        return await self._run(tenant, work, _READ)

    async def write(self, tenant: str | None, work: Work[T], *, brief: bool = False) -> T:
        """Run `work` in a transaction that is durable when this returns. It may be run anew.

        `StoreTimeout` if it is not known whether it is; after any other error it was undone. What
        is `brief` asks once and is one message, if the connection looks alive.
        """
        if brief:
            with suppress(_NotQuiet):
                return await self._run(tenant, work, _WRITE._replace(brief=True))
        return await self._run(tenant, work, _WRITE)

    async def _run(self, tenant: str | None, work: Work[T], kind: _Kind) -> T:
        tries = 0
        while True:
            try:
                with preserve_cancellation():
                    return await self._once(tenant, work, kind)
            except FirnlineError as error:
                tries += 1
                if tries >= limits.STORE_TRIES_MAX or not _is_repeatable(error):
                    raise
                await self._prepare_retry(error, tries)

    async def _once(self, tenant: str | None, work: Work[T], kind: _Kind) -> T:
        transaction = None
        try:
            async with self._borrow() as connection:
                if kind.writes and kind.brief and not _is_quiet(connection):
                    raise _NotQuiet
                transaction = Transaction(connection, self._clock, brief=kind.brief)
                transaction.later(kind.begin)
                transaction.later(kind.say, ["*" if tenant is None else f"={tenant}"])
                result = await work(transaction)
                if not transaction.ended:
                    await transaction.commit()
                return result
        except UnicodeEncodeError as error:
            raise InputError(f"it cannot be stored: {error.reason}") from error
        except psycopg.Error as error:
            doubtful = kind.writes and transaction is not None and transaction.committing
            raise translate_error(error, self.place, committing=doubtful) from error

    async def _prepare_retry(self, error: FirnlineError, tries: int) -> None:
        if isinstance(error.__cause__, psycopg.Error) and is_lost(error.__cause__):
            await self._open_pool().check()  # the others are likely to be gone, too
        await asyncio.sleep(random.uniform(0, 0.01 * 2**tries))  # noqa: S311 - jitter


def _redact_error(error: psycopg.Error) -> str:
    """What is wrong with a URL. What libpq quotes can be of a password, unless it is a name."""
    said = str(error).strip()
    if re.fullmatch(r'invalid URI query parameter: "[a-z_]+"', said):
        return said
    return re.sub(r': ".*', "", said, flags=re.DOTALL)


async def _put_back(pool: Pool, connection: AsyncConnection[Row]) -> None:
    with suppress(psycopg.Error):  # then the pool makes another one
        await connection.rollback()
    await pool.putconn(connection)


async def _return_late(pool: Pool, asking: asyncio.Task[AsyncConnection[Row]]) -> None:
    """Give back what came too late."""
    with suppress(psycopg.Error):
        await pool.putconn(await asking)


def _is_quiet(connection: AsyncConnection[Row]) -> bool:
    """Whether nothing has come in since its last transaction, such as the news of its end."""
    if not hasattr(select, "poll"):  # Windows, where `select` takes any number of sockets
        return not select.select([connection], [], [], 0)[0]
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return not poll.poll(0)


def _is_repeatable(error: FirnlineError) -> bool:
    """Whether it was undone for sure, by something that passes."""
    cause = error.__cause__
    if isinstance(error, StoreTimeout) or not isinstance(cause, psycopg.Error):
        return False
    return isinstance(cause, REPEATABLE) or is_lost(cause)
