"""Rate limits per caller: a bucket that refills with time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from firnline.server.limits import CALLERS_REMEMBERED

_MINUTE: Final = 60.0


class RateLimiter:
    """`per_minute` units for each caller; up to one minute's worth in a burst. 0 means no limit.

    A cost that is known only afterwards may be charged late: the bucket is then below empty, and
    the caller waits until it is not.
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._size, self._clock = float(per_minute), clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, who: str) -> float:
        """Seconds until the caller may continue; 0 if now."""
        return max(-self._available(who), 0.0) * _MINUTE / self._size if self._size else 0.0

    def take(self, who: str, cost: float = 1.0) -> float:
        """Take `cost` from the caller's bucket if it may continue; otherwise returns as `wait`."""
        if not self._size:
            return 0.0
        left = self._available(who)
        if left < min(cost, 1.0):
            return (min(cost, 1.0) - left) * _MINUTE / self._size
        self._save(who, left - cost)
        return 0.0

    def charge(self, who: str, cost: float) -> None:
        """Take `cost` unconditionally, after the fact."""
        if self._size:
            self._save(who, self._available(who) - cost)

    def _available(self, who: str) -> float:
        left, since = self._left.get(who, (self._size, self._clock()))
        return min(left + (self._clock() - since) * self._size / _MINUTE, self._size)

    def _save(self, who: str, left: float) -> None:
        self._left[who] = (left, self._clock())
        self._left.move_to_end(who)
        if len(self._left) > CALLERS_REMEMBERED:
            self._left.popitem(last=False)
