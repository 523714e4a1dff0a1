"""Indexing everything again in the background, once after a new version."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from firnline.errors import FirnlineError

logger: Final = logging.getLogger("firnline")


class Reindexing:
    """One such run; searches go on meanwhile, and find what either index has."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def start(
        self,
        claim: Callable[[], Awaitable[bool]],
        rebuild: Callable[[], Awaitable[None]],
        done: Callable[[], Awaitable[None]],
    ) -> None:
        """Rebuild in the background, unless another process has claimed it."""

        async def work() -> None:
            try:
                if await claim():
                    await rebuild()
                    await done()
                    logger.info("indexed all messages again, for a new version")
            except FirnlineError as error:
                logger.warning("the search index is still that of an older version: %s", error)

        self._task = asyncio.create_task(work())

    async def stop(self) -> None:
        """Stop; another process continues later."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
