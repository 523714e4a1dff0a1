"""All machines share the database's clock, because their own may be wrong or jump."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from firnline.log.message import microseconds, utc_now
from firnline.store.limits import CLOCK_ANSWER_SECONDS_MAX, CLOCK_REFRESH_SECONDS

_SKEW_MIN: Final = timedelta(seconds=2)  # smaller differences are latency


class Skew:
    """How far the database's clock is ahead of this machine's.

    `ask` returns the database's time in microseconds. It is called once a minute; in between, the
    elapsed time is measured with the monotonic clock.
    """

    def __init__(self, ask: Callable[[], Awaitable[int]]) -> None:
        self._ask = ask
        self._until = self._zero = 0.0

    async def ahead(self) -> timedelta:
        """The offset to add to this machine's time; zero if both clocks roughly agree."""
        began = time.monotonic()
        if began >= self._until:
            now = await self._ask()
            ended = time.monotonic()
            if ended - began > CLOCK_ANSWER_SECONDS_MAX:
                return timedelta()
            self._zero = now / 1e6 - (began + ended) / 2
            self._until = ended + CLOCK_REFRESH_SECONDS
        there = self._zero + time.monotonic()
        ahead = timedelta(seconds=there - microseconds(utc_now()) / 1e6)
        return ahead if abs(ahead) > _SKEW_MIN else timedelta()
