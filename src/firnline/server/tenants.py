"""One store, many tenants: a `Memory` for each active tenant."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Final, TypeAlias, cast
from weakref import WeakSet

from firnline.engine.options import MemoryOptions
from firnline.errors import FirnlineError, outline
from firnline.memory import DEFAULT_TENANT, Memory
from firnline.protocols import ChatModel, Store
from firnline.server.limits import TENANTS_KNOWN_SECONDS, TENANTS_OPEN_MAX

logger: Final = logging.getLogger("firnline.server")

FindTenants: TypeAlias = Callable[[], Awaitable[Iterable[str]]]
"""Finds the tenants that a server gives access to."""


async def _only_default() -> Iterable[str]:
    return ()


class Tenants:
    """Memories that share a store and a model. `start` opens it, `close` closes everything.

    `root` is the memory for work of several tenants. Its worker creates digests of the tenants that
    are `served`: the default one, those found, and those whose memory was opened; or of all.
    """

    def __init__(
        self,
        store: Store,
        options: MemoryOptions,
        model: ChatModel | None = None,
        *,
        find_served: FindTenants = _only_default,
        all_tenants: bool = False,
    ) -> None:
        self.store, self.model = store, model
        self._options, self._all_tenants = options, all_tenants
        self._find_served, self.served = find_served, {DEFAULT_TENANT}
        self._open: OrderedDict[str, Memory] = OrderedDict()
        self._evicted: WeakSet[Memory] = WeakSet()
        self.root = self._create(DEFAULT_TENANT)  # now, so that invalid options fail early
        self._worker_task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the store."""
        await self.store.open()

    async def start(self) -> None:
        """Open the store, and create pending digests if a worker may run here."""
        await self.open()
        if not self._options.get("worker", True):
            return
        self.served |= set(await self._find_served())
        if self._all_tenants:
            logger.info("worker: creates pending digests of all tenants of the store")
        else:
            logger.info(
                "worker: creates pending digests of the tenants that this server serves, now %d;"
                " FIRNLINE_WORKER_TENANTS=all: of all tenants of the store",
                len(self.served),
            )
        self._worker_task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        """Create pending digests, also of tenants that get access later."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.root.work(all_tenants=self._all_tenants, tenants=self.served))
            while not self._all_tenants:
                await asyncio.sleep(TENANTS_KNOWN_SECONDS)
                try:
                    self.served |= set(await self._find_served())
                except FirnlineError as error:
                    logger.warning("worker: the keys cannot be read now: %s", outline(error))

    async def close(self) -> None:
        """Close the memories, then the store; unfinished digests stay pending."""
        if self._worker_task is not None:
            self._worker_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker_task
        try:
            for memory in [*self._open.values(), *self._evicted, self.root]:
                await memory.close()
        finally:
            self._open.clear()
            await self.store.close()
            if self.model is not None:
                await self.model.close()

    async def memory(self, tenant: str) -> Memory:
        """The tenant's memory."""
        self.served.add(tenant)
        found = self._open.get(tenant)
        if found is not None:
            self._open.move_to_end(tenant)
            return found
        found = self._open[tenant] = self._create(tenant)
        while len(self._open) > TENANTS_OPEN_MAX:
            # A memory that is still in use keeps working: it opens again what it closed.
            _, oldest = self._open.popitem(last=False)
            self._evicted.add(oldest)
            await oldest.close()
        await found.start()
        return found

    def _create(self, tenant: str) -> Memory:
        model = None if self.model is None else cast("ChatModel", _Shared(self.model))
        options: MemoryOptions = {**self._options, "tenant": tenant, "model": model}
        return Memory(cast("Store", _Shared(self.store)), **options)


class _Shared:
    """A store or model that several memories share: closing a memory does not close it."""

    def __init__(self, owned: Store | ChatModel) -> None:
        self._owned = owned

    async def open(self) -> None:
        """Do nothing: it is open."""

    async def close(self) -> None:
        """Do nothing: it stays open."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owned, name)
