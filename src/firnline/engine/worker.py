"""Paying what is owed: folds that nobody waited for, in the background.

Any number of workers in any number of processes share the work: what is owed is noted in the store,
and a lease there decides who does it. One that dies is replaced when its lease runs out.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

from firnline.engine.background import BackgroundTask, retry_delay
from firnline.errors import ConflictError, FirnlineError, outline
from firnline.log.entry import Key
from firnline.models.guard import Backoff
from firnline.protocols import Clock, PendingNotifier, Store

logger: Final = logging.getLogger("firnline.worker")

_BUSY_SECONDS: Final = 1.0  # another process is digesting it; look again soon
_SETTLE_SECONDS: Final = 0.02  # the request that woke it is perhaps still being answered
_FAILURES_MAX: Final = 10_000  # conversations whose failures are counted
_AHEAD: Final = 16  # conversations that are looked up for each that can be worked on at once
_NOTIFIED_POLLS: Final = 30  # poll intervals between polls while the store sends notifications
_ROUNDS_MAX: Final = 1_000  # lookups in one step


class Worker(BackgroundTask):
    """Finds conversations with pending digests and calls `pay` for each.

    Those of one `tenant`, or of all tenants if it is None.
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
        super().__init__(logger, poll_seconds=poll_seconds, settle_seconds=_SETTLE_SECONDS)
        self._store, self._pay, self._clock = store, pay, clock
        self._concurrency = concurrency
        self._backoff = backoff or Backoff()
        self._failures: dict[Key, int] = {}
        self.tenant = tenant
        self._at_work = asyncio.Lock()

    async def run(self) -> None:
        """Work until cancelled; stores with notifications wake it."""
        unsubscribe = None
        if isinstance(self._store, PendingNotifier):
            unsubscribe = self._store.on_pending(self.wake, self.tenant)
        try:
            await super().run()
        finally:
            if unsubscribe is not None:
                unsubscribe()

    async def step(self) -> float:
        """Create all digests that are due; returns how long to wait.

        With notifications from the store, only postponed work has to be polled for.
        """
        await self.once()
        if not isinstance(self._store, PendingNotifier) or not self._store.listening:
            return self._poll_seconds
        now = self._clock()
        pending = await self._store.pending(now, stuck_before=now, cards="-", tenant=self.tenant)
        longest = self._poll_seconds * _NOTIFIED_POLLS
        if pending.oldest is None:
            return longest
        return min(max((pending.oldest - now).total_seconds(), self._poll_seconds), longest)

    async def once(self) -> int:
        """Do all that is due now; returns how many digests were made.

        Whoever asks for it while it goes on waits until that is done: both would only meet.
        """
        made = 0
        async with self._at_work:
            for _ in range(_ROUNDS_MAX):
                due = await self._store.due(self._clock(), self._concurrency * _AHEAD, self.tenant)
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
            if len(self._failures) > _FAILURES_MAX:
                self._failures.clear()
            attempt = self._failures[key] = self._failures.get(key, 0) + 1
            wait = retry_delay(self._backoff, attempt, error)
            why = outline(error)
            logger.warning("%s is not digested: %s; again in %.0f s", name, why, wait)
            await self._postpone(key, wait)
            return 0
        self._failures.pop(key, None)
        return made

    async def _postpone(self, key: Key, seconds: float) -> None:
        due = self._clock() + timedelta(seconds=seconds)
        await self._store.mark_pending(key, due, postpone=True)
