"""Holding the right to digest a conversation, and keeping it while the work goes on."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final, TypeVar

from firnline.errors import ConflictError, FirnlineError
from firnline.log.entry import Key, Lease
from firnline.protocols import Store

logger: Final = logging.getLogger("firnline.digest")

T = TypeVar("T")


class Held:
    """``async with`` the right to digest a conversation."""

    def __init__(self, store: Store, key: Key, owner: str, seconds: float) -> None:
        self._store, self._key, self._owner, self._seconds = store, key, owner, seconds
        self._lease: Lease | None = None

    async def __aenter__(self) -> Lease:
        # One owner's tasks exclude each other, too: the name is made for each lease.
        owner = f"{self._owner}-{secrets.token_hex(4)}"
        self._lease = await self._store.lease(self._key, owner, self._seconds)
        if self._lease is None:
            name = self._key.conversation
            logger.debug("Summarization already in progress for %s", name)
            raise ConflictError(f"{name} is being digested by somebody else")
        return self._lease

    async def __aexit__(self, *_: object) -> None:
        if self._lease is not None:
            with suppress(FirnlineError):  # it runs out by itself
                await asyncio.shield(self._store.release(self._lease))


async def renewing(store: Store, lease: Lease, seconds: float, work: Awaitable[T]) -> T:
    """Do the work and keep the lease alive meanwhile; without the lease the work is stopped."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=seconds / 3)
            if not task.done():
                lease = await store.renew(lease, seconds)
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError, FirnlineError):
                await task
