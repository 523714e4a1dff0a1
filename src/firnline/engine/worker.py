"""Creating pending digests in the background.

Workers in any number of processes share the work: pending digests are recorded in the store, and a
lease decides which worker creates one. If a worker dies, another takes over when its lease expires.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import timedelta
from typing import Final

from firnline.engine.background import BackgroundTask, retry_delay
from firnline.engine.limits import (
    BUSY_SECONDS,
    FAILURES_COUNTED_MAX,
    SETTLE_SECONDS,
    WORK_ROUNDS_MAX,
)
from firnline.errors import ConflictError, FirnlineError, outline
from firnline.log.entry import Key
from firnline.models.guard import Backoff
from firnline.protocols import Clock, PendingNotifier, Store

logger: Final = logging.getLogger("firnline.worker")

_AHEAD: Final = 16  # conversations looked up for each one that can run at once
_NOTIFIED_POLLS: Final = 30  # poll intervals between polls while the store sends notifications


class Worker(BackgroundTask):
    """Finds conversations with pending digests and calls `digest_pending` for each.

    Those of these `tenants`, whose collection may change, or of all if it is None.
    """

    def __init__(
        self,
        store: Store,
        digest_pending: Callable[[Key], Awaitable[int]],
        *,
        clock: Clock,
        tenants: Collection[str] | None = None,
        concurrency: int = 4,
        poll_seconds: float = 1.0,
        backoff: Backoff | None = None,
    ) -> None:
        super().__init__(logger, poll_seconds=poll_seconds, settle_seconds=SETTLE_SECONDS)
        self._store, self._digest_pending, self._clock = store, digest_pending, clock
        self._concurrency = concurrency
        self._backoff = backoff or Backoff()
        self._failures: dict[Key, int] = {}
        self.tenants = tenants
        self._at_work = asyncio.Lock()

    async def run(self) -> None:
        """Work until canceled; stores with notifications wake it."""
        unsubscribe = None
        if isinstance(self._store, PendingNotifier):
            unsubscribe = self._store.on_pending(self.wake, self._tenant)
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
            return self.poll_seconds
        now = self._clock()
        pending = await self._store.pending(now, stuck_before=now, cards="-", tenant=self._tenant)
        longest = self.poll_seconds * _NOTIFIED_POLLS
        if pending.oldest is None:
            return longest
        return min(max((pending.oldest - now).total_seconds(), self.poll_seconds), longest)

    @property
    def _tenant(self) -> str | None:
        """The only tenant, if there is one."""
        only = self.tenants if isinstance(self.tenants, frozenset) else ()
        return next(iter(only)) if len(only) == 1 else None

    async def once(self) -> int:
        """Create all digests that are due; returns how many. Only one call runs at a time."""
        made = 0
        async with self._at_work:
            for _ in range(WORK_ROUNDS_MAX):
                most = self._concurrency * _AHEAD
                due = await self._store.due(self._clock(), most, self.tenants)
                if not due:
                    break
                random.shuffle(due)  # several workers read the same list, and should rarely collide
                made += await self._digest_all(due)
        return made

    async def _digest_all(self, due: Sequence[Key]) -> int:
        """Digest these conversations, a few at a time; returns how many digests were created."""
        gate = asyncio.Semaphore(self._concurrency)

        async def digest(key: Key) -> int:
            async with gate:
                return await self._digest_one(key)

        return sum(await asyncio.gather(*map(digest, due)))

    async def _digest_one(self, key: Key) -> int:
        try:
            made = await self._digest_pending(key)
        except ConflictError:
            await self._postpone(key, BUSY_SECONDS)
            return 0
        except Exception as error:
            name = f"{key.conversation} (tenant {key.tenant})"
            if not isinstance(error, FirnlineError):
                logger.exception("%s: internal error while digesting", name)
            if len(self._failures) > FAILURES_COUNTED_MAX:
                self._failures.clear()
            attempt = self._failures[key] = self._failures.get(key, 0) + 1
            wait = retry_delay(self._backoff, attempt, error)
            why = outline(error)
            logger.warning("%s is not digested: %s; retrying in %.0f s", name, why, wait)
            await self._postpone(key, wait)
            return 0
        self._failures.pop(key, None)
        return made

    async def _postpone(self, key: Key, seconds: float) -> None:
        due = self._clock() + timedelta(seconds=seconds)
        await self._store.mark_pending(key, due, postpone=True)
