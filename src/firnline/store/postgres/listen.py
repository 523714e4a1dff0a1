"""Notifications of pending work, so that idle workers need not poll.

`pending.mark` notifies; one connection of each process listens. Notifications do not pass a pooler
that switches connections between transactions, so they are tested first: `listening` is true once
the process has received one of its own.
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
from firnline.store.limits import ECHO_SECONDS, RECONNECT_SECONDS
from firnline.store.postgres.connection import ALL_TENANTS, PostgresDatabase, Transaction
from firnline.store.postgres.pending import CHANNEL, tenant_token

logger: Final = logging.getLogger("firnline")


Callback = Callable[[], None]


class PendingListener:
    """Calls its callbacks whenever a conversation may have become due."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._callbacks: dict[Callback, str | None] = {}
        self._task: asyncio.Task[None] | None = None
        self.listening = False

    def add(self, tell: Callback, tenant: str | None) -> Callable[[], None]:
        """Register `tell`; call the returned function to remove it."""
        self._callbacks[tell] = None if tenant is None else tenant_token(tenant)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._listen())

        def stop() -> None:
            self._callbacks.pop(tell, None)

        return stop

    async def close(self) -> None:
        """Stop listening."""
        task, self._task = self._task, None
        self._callbacks.clear()
        while task is not None and not task.done():
            task.cancel()  # in a loop, because drivers can lose it: see `preserve_cancellation`
            await asyncio.wait([task], timeout=1.0)

    async def _listen(self) -> None:
        works, logged = True, ""
        while works:
            try:
                works = await self._until_lost()
            except (FirnlineError, psycopg.Error) as error:
                if str(error) != logged:  # once, not at every attempt
                    logger.warning("listening for work failed, polling instead: %s", error)
                logged = str(error)
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _until_lost(self) -> bool:
        """Listen until the connection is lost; False if notifications do not arrive."""
        connection = await self._database.connect()
        try:
            await connection.execute(f"LISTEN {CHANNEL}")
            if not await self._echoes(connection):
                logger.warning("notifications do not arrive (a pooler?), polling for work instead")
                return False
            self.listening = True
            self._tell()  # for work that became due before
            async for notification in connection.notifies():
                self._tell(notification.payload)
            return True
        finally:
            self.listening = False
            await connection.close()

    async def _echoes(self, connection: AsyncConnection[Any]) -> bool:
        sent = secrets.token_hex(8)

        async def notify(transaction: Transaction) -> None:
            transaction.later("SELECT pg_notify(%s, %s)", (CHANNEL, sent))

        await self._database.write(ALL_TENANTS, notify)
        async for notification in connection.notifies(timeout=ECHO_SECONDS):
            if notification.payload == sent:
                return True
        return False

    def _tell(self, tenant: str | None = None) -> None:
        for tell, asked in list(self._callbacks.items()):
            if tenant is None or asked in (None, tenant):
                tell()
