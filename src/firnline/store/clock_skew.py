"""The clock that all machines share is the database's; theirs may be wrong, or jump."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from firnline.log.message import microseconds, utc_now

_KNOWN_SECONDS: Final = 60.0
_SURE_SECONDS: Final = 1.0  # an answer that took longer tells nothing
_MEANT: Final = timedelta(seconds=2)  # less is how long things take


class Skew:
    """How far the database's clock is ahead of this machine's.

    `ask` is for the database's time in microseconds. It is asked once a minute; between, the time
    that has passed is told by a clock that nobody sets.
    """

    def __init__(self, ask: Callable[[], Awaitable[int]]) -> None:
        self._ask = ask
        self._until = self._zero = 0.0

    async def ahead(self) -> timedelta:
        """To be added to a time of this machine's; nothing where both are about the same."""
        began = time.monotonic()
        if began >= self._until:
            now = await self._ask()
            ended = time.monotonic()
            if ended - began > _SURE_SECONDS:
                return timedelta()
            self._zero = now / 1e6 - (began + ended) / 2
            self._until = ended + _KNOWN_SECONDS
        there = self._zero + time.monotonic()
        ahead = timedelta(seconds=there - microseconds(utc_now()) / 1e6)
        return ahead if abs(ahead) > _MEANT else timedelta()
