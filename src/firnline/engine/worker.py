"""Paying what is owed: folds that nobody waited for, in the background.

Any number of workers in any number of processes share the work: what is owed is noted in the store,
and a lease there decides who does it. One that dies is replaced when its lease runs out.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from firnline.errors import ConflictError, FirnlineError, outline
from firnline.log.entry import Key
from firnline.models.guard import Backoff
from firnline.protocols import Clock, News, Store

logger: Final = logging.getLogger("firnline.worker")

_BUSY_SECONDS: Final = 1.0  # somebody else is digesting it; look again soon
_LULL_SECONDS: Final = 0.02  # whoever has poked it is perhaps being answered: that comes first
_KNOWN_MAX: Final = 10_000
_AHEAD: Final = 16  # conversations that are looked up for each that can be worked on at once
_HEARING: Final = 30  # as much longer it waits if it is told of work
_ROUNDS_MAX: Final = 1_000  # then it looks around again


class Worker:
    """Looks for conversations whose digesting is due, and calls `pay` for each.

    Of one `tenant`, or of all of them if it is None.
    """

    def __init__(
        self,
        store: Store,
        pay: Callable[[Key], Awaitable[int]],
        *,
        clock: Clock,
        tenant: str | None = None,
        concurrency: int = 4,
        poll_seconds: float = 1.0,
        backoff: Backoff | None = None,
    ) -> None:
        self._store, self._pay, self._clock = store, pay, clock
        self._concurrency, self._poll_seconds = concurrency, poll_seconds
        self._backoff = backoff or Backoff()
        self._failures: dict[Key, int] = {}
        self.tenant = tenant
        self._poked = asyncio.Event()
        self._at_work = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def poke(self) -> None:
        """There may be something to do."""
        self._poked.set()

    def start(self) -> None:
        """Work in the background of this event loop until `stop`."""
        if self._task is None or self._task.done():
            # In a context of its own: what it does is nobody's request, whoever has poked it first.
            own = contextvars.Context()
            self._task = asyncio.get_running_loop().create_task(self.run(), context=own)

    async def stop(self) -> None:
        """Stop; what is being digested is given up and stays owed."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def run(self) -> None:
        """Work for ever."""
        stop = None
        if isinstance(self._store, News):
            stop = self._store.on_owed(self.poke, self.tenant)
        try:
            while True:
                self._poked.clear()
                pause = self._poll_seconds
                try:
                    await self.once()
                    pause = await self._pause()
                except FirnlineError as error:
                    logger.error("cannot look for work: %s", error)  # noqa: TRY400
                pause += self._poll_seconds * random.uniform(-0.5, 0.5)  # noqa: S311 - jitter
                # Not wait_for: if a poke and a cancellation meet, it can lose the cancellation.
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._poked.wait()
                        await asyncio.sleep(_LULL_SECONDS)
        finally:
            if stop is not None:
                stop()

    async def _pause(self) -> float:
        """How long to wait; whoever is told of work only has to look for what was put off."""
        if not isinstance(self._store, News) or not self._store.hears:
            return self._poll_seconds
        now = self._clock()
        known = await self._store.pending(now, stuck_before=now, cards="-", tenant=self.tenant)
        longest = self._poll_seconds * _HEARING
        if known.oldest is None:
            return longest
        return min(max((known.oldest - now).total_seconds(), self._poll_seconds), longest)

    async def once(self) -> int:
        """Do all that is due now; returns how many digests were made.

        Whoever asks for it while it goes on waits until that is done: both would only meet.
        """
        made = 0
        async with self._at_work:
            for _ in range(_ROUNDS_MAX):
                due = await self._store.owed(self._clock(), self._concurrency * _AHEAD, self.tenant)
                if not due:
                    break
                random.shuffle(due)  # several workers see the same list, and few meet at one
                made += await self._paid(due)
        return made

    async def _paid(self, due: Sequence[Key]) -> int:
        """Some conversations, a few at a time."""
        gate = asyncio.Semaphore(self._concurrency)

        async def paid(key: Key) -> int:
            async with gate:
                return await self._try(key)

        return sum(await asyncio.gather(*map(paid, due)))

    async def _try(self, key: Key) -> int:
        try:
            made = await self._pay(key)
        except ConflictError:
            await self._postpone(key, _BUSY_SECONDS)
            return 0
        except Exception as error:
            name = f"{key.conversation} (tenant {key.tenant})"
            if not isinstance(error, FirnlineError):
                logger.exception("%s: a mistake in what plans or writes its digests", name)
            if len(self._failures) > _KNOWN_MAX:
                self._failures.clear()
            attempt = self._failures[key] = self._failures.get(key, 0) + 1
            told = getattr(error, "context", {}).get("retry_after", 0.0)
            wait = max(self._backoff.delay(attempt), told)
            why = outline(error)
            logger.warning("%s is not digested: %s; again in %.0f s", name, why, wait)
            await self._postpone(key, wait)
            return 0
        self._failures.pop(key, None)
        return made

    async def _postpone(self, key: Key, seconds: float) -> None:
        due = self._clock() + timedelta(seconds=seconds)
        await self._store.owe(key, due, postpone=True)
