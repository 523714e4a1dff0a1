"""A loop that runs in the background of an event loop until it is stopped."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Final

from firnline.errors import FirnlineError, outline
from firnline.log import limits
from firnline.models.guard import Backoff

_JITTER: Final = 0.5  # of the poll interval, so that several processes do not poll together


class BackgroundTask(ABC):
    """Calls `step` again and again, with a wait in between that `wake` ends early.

    `settle_seconds` is a short wait after a wake-up. A `FirnlineError` is logged, and `step` is
    called again after `poll_seconds`. `stop` waits at most `stop_seconds` for a step that cannot be
    canceled.
    """

    def __init__(
        self,
        logger: logging.Logger,
        *,
        poll_seconds: float,
        settle_seconds: float = 0.0,
        stop_seconds: float | None = None,
    ) -> None:
        self._logger, self.poll_seconds = logger, poll_seconds
        self._settle_seconds, self._stop_seconds = settle_seconds, stop_seconds
        self._awake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def step(self) -> float:
        """Do what is due; returns how many seconds to wait before the next step."""

    def wake(self) -> None:
        """Start the next step soon: there may be work."""
        self._awake.set()

    def start(self) -> None:
        """Run in the background of this event loop until `stop`."""
        if self._task is None or self._task.done():
            # In an empty context: the work does not belong to the request that started it.
            context = contextvars.Context()
            self._task = asyncio.get_running_loop().create_task(self.run(), context=context)

    async def stop(self) -> None:
        """Cancel the loop and wait until it has ended; unfinished work stays pending."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=self._stop_seconds)

    async def run(self) -> None:
        """Run the loop here until this is canceled."""
        while True:
            self._awake.clear()
            seconds = self.poll_seconds
            try:
                seconds = await self.step()
            except FirnlineError as error:
                self._logger.error("cannot look for work: %s", outline(error))  # noqa: TRY400
            seconds += self.poll_seconds * random.uniform(-_JITTER, _JITTER)  # noqa: S311
            # Not wait_for: it can lose a cancellation that arrives together with a wake-up.
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._awake.wait()
                    await asyncio.sleep(self._settle_seconds)


def retry_delay(backoff: Backoff, attempt: int, error: BaseException) -> float:
    """Seconds to wait after failure number `attempt`, at least the error's `retry_after`.

    Never longer than work may be postponed: a stored time that is later is taken for a wrong one.
    """
    retry_after = getattr(error, "context", {}).get("retry_after")
    wait = max(backoff.delay(attempt), float(retry_after or 0.0))
    return min(wait, limits.POSTPONE_SECONDS_MAX)
