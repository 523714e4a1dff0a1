"""One memory for frameworks that call it with and without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeAlias, TypeVar

from firnline import sync
from firnline.errors import InputError
from firnline.memory import Memory

T = TypeVar("T")

MemoryLike: TypeAlias = "Memory | sync.Memory"
"""A memory; `firnline.sync.Memory` also works without an event loop."""


class MemoryBridge:
    """Runs coroutines of a memory on the memory's event loop."""

    def __init__(self, memory: MemoryLike) -> None:
        self._facade = memory if isinstance(memory, sync.Memory) else None
        self.memory = memory.behind if isinstance(memory, sync.Memory) else memory

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it and wait, without an event loop."""
        if self._facade is None:
            work.close()
            raise InputError(
                "called without an event loop; use firnline.sync.Memory, or the framework's "
                "asynchronous methods (ainvoke, astream)"
            )
        return self._facade.run(work)

    async def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Await it on the caller's event loop, or in a thread if the memory has its own loop."""
        if self._facade is None:
            return await work
        return await asyncio.to_thread(self._facade.run, work)
