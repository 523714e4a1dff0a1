"""Notifications of pending work, so that idle workers need not poll.

`mark` notifies; one connection of each process listens. Notifications do not work behind a pooler
that switches connections between transactions, so they are tried first: `listening` is true once a
notification of our own has come back.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from firnline.errors import FirnlineError
from firnline.store.postgres.connection import ALL_TENANTS, PostgresDatabase, Transaction
from firnline.store.postgres.pending import CHANNEL, tenant_token

logger: Final = logging.getLogger("firnline")

_ECHO_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 2.0  # before another try to connect

Tell = Callable[[], None]


class PendingListener:
    """Calls those who asked whenever something may have become due."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._asked: dict[Tell, str | None] = {}
        self._task: asyncio.Task[None] | None = None
        self.listening = False

    def add(self, tell: Tell, tenant: str | None) -> Callable[[], None]:
        """Call `tell` from now on, until what is returned is called."""
        self._asked[tell] = None if tenant is None else tenant_token(tenant)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._listen())

        def stop() -> None:
            self._asked.pop(tell, None)

        return stop

    async def close(self) -> None:
        """Stop listening."""
        task, self._task = self._task, None
        self._asked.clear()
        while task is not None and not task.done():
            task.cancel()  # again, if one was lost: see `preserve_cancellation`
            await asyncio.wait([task], timeout=1.0)

    async def _listen(self) -> None:
        useful, told = True, ""
        while useful:
            try:
                useful = await self._until_lost()
            except (FirnlineError, psycopg.Error) as error:
                if str(error) != told:  # it may be tried for hours
                    logger.warning("not hearing of work, looking for it instead: %s", error)
                told = str(error)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _until_lost(self) -> bool:
        """Listen until the connection is lost; False if nothing can be heard at all."""
        connection = await self._database.connect()
        try:
            await connection.execute(f"LISTEN {CHANNEL}")
            if not await self._echoes(connection):
                logger.warning("notifications do not arrive (a pooler?); looking for work instead")
                return False
            self.listening = True
            self._tell()  # what was owed before it could be heard
            async for heard in connection.notifies():
                self._tell(heard.payload)
            return True
        finally:
            self.listening = False
            await connection.close()

    async def _echoes(self, connection: AsyncConnection[Any]) -> bool:
        sent = secrets.token_hex(8)

        async def notify(transaction: Transaction) -> None:
            transaction.later("SELECT pg_notify(%s, %s)", (CHANNEL, sent))

        await self._database.write(ALL_TENANTS, notify)
        async for heard in connection.notifies(timeout=_ECHO_SECONDS):
            if heard.payload == sent:
                return True
        return False

    def _tell(self, tenant: str | None = None) -> None:
        for tell, asked in list(self._asked.items()):
            if tenant is None or asked in (None, tenant):
                tell()
