"""One memory for frameworks that call with and without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeAlias, TypeVar

from firnline import sync
from firnline.errors import InputError
from firnline.memory import Memory

T = TypeVar("T")

MemoryLike: TypeAlias = "Memory | sync.Memory"
"""Either face of a memory; `firnline.sync.Memory` serves callers without an event loop, too."""


class Reach:
    """Runs coroutines of a memory wherever the memory lives."""

    def __init__(self, memory: MemoryLike) -> None:
        self._facade = memory if isinstance(memory, sync.Memory) else None
        self.memory = memory.behind if isinstance(memory, sync.Memory) else memory

    def now(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for it here, without an event loop."""
        if self._facade is None:
            work.close()
            raise InputError(
                "called without an event loop: use firnline.sync.Memory, or the framework's "
                "asynchronous calls (ainvoke, astream)"
            )
        return self._facade.run(work)

    async def soon(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for it on the caller's event loop, or beside it if the memory has its own."""
        if self._facade is None:
            return await work
        return await asyncio.to_thread(self._facade.run, work)
