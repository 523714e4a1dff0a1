"""One store, many tenants: a `Memory` for each of those that are active."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from typing import Any, Final, cast
from weakref import WeakSet

from firnline.engine.options import MemoryOptions
from firnline.memory import Memory
from firnline.protocols import ChatModel, Store

REMEMBERED: Final = 100
"""Tenants whose memories are kept open; the one that was quiet for longest is closed first."""


class Tenants:
    """Memories that share a store and a model. `start` opens it, `close` closes everything."""

    def __init__(
        self, store: Store, options: MemoryOptions, model: ChatModel | None = None
    ) -> None:
        self.store, self.model = store, model
        self._options = options
        self._open: OrderedDict[str, Memory] = OrderedDict()
        self._let_go: WeakSet[Memory] = WeakSet()
        self._everybody = self._new("default")  # now: what is wrong with the options is told early
        self._working: asyncio.Task[int] | None = None

    async def start(self) -> None:
        """Open the store, and make what is owed to any tenant if a worker may run here."""
        await self.store.open()
        if self._options.get("worker", True):
            self._working = asyncio.create_task(self._everybody.work(all_tenants=True))

    async def close(self) -> None:
        """Close the memories, then the store; what is being digested stays owed."""
        if self._working is not None:
            self._working.cancel()
            with suppress(asyncio.CancelledError):
                await self._working
        try:
            for memory in [*self._open.values(), *self._let_go, self._everybody]:
                await memory.close()
        finally:
            self._open.clear()
            await self.store.close()
            if self.model is not None:
                await self.model.close()

    async def memory(self, tenant: str) -> Memory:
        """The tenant's memory."""
        found = self._open.get(tenant)
        if found is not None:
            self._open.move_to_end(tenant)
            return found
        found = self._open[tenant] = self._new(tenant)
        while len(self._open) > REMEMBERED:
            # One that is in use goes on working: what it lets go of, it takes up again.
            _, quiet = self._open.popitem(last=False)
            self._let_go.add(quiet)
            await quiet.close()
        await found.start()
        return found

    def _new(self, tenant: str) -> Memory:
        model = None if self.model is None else cast("ChatModel", _Lent(self.model))
        options: MemoryOptions = {**self._options, "tenant": tenant, "model": model}
        return Memory(cast("Store", _Lent(self.store)), **options)


class _Lent:
    """A store or a model as a memory gets it: all of it, but the memory's end is not its own."""

    def __init__(self, owned: Store | ChatModel) -> None:
        self._owned = owned

    async def open(self) -> None:
        """It is open."""

    async def close(self) -> None:
        """It stays open."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owned, name)
