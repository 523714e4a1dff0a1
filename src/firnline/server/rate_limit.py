"""Limits on how fast one caller may go: a bucket that fills again with time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_MINUTE: Final = 60.0
_REMEMBERED_MAX: Final = 10_000


class Pace:
    """`per_minute` for each caller, all of it at once if it was quiet for a minute; 0 is no limit.

    A cost that is known only afterwards may be taken late: the bucket is then less than empty, and
    the caller waits until it is not.
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._size, self._clock = float(per_minute), clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, who: str) -> float:
        """Seconds until the caller may go on; 0 if it may now."""
        return max(-self._now(who), 0.0) * _MINUTE / self._size if self._size else 0.0

    def take(self, who: str, cost: float = 1.0) -> float:
        """Take `cost` out of the caller's bucket, if it may go on; else as `wait`."""
        if not self._size:
            return 0.0
        left = self._now(who)
        if left < min(cost, 1.0):
            return (min(cost, 1.0) - left) * _MINUTE / self._size
        self._keep(who, left - cost)
        return 0.0

    def owe(self, who: str, cost: float) -> None:
        """Take `cost` in any case: what it is for has happened."""
        if self._size:
            self._keep(who, self._now(who) - cost)

    def _now(self, who: str) -> float:
        left, since = self._left.get(who, (self._size, self._clock()))
        return min(left + (self._clock() - since) * self._size / _MINUTE, self._size)

    def _keep(self, who: str, left: float) -> None:
        self._left[who] = (left, self._clock())
        self._left.move_to_end(who)
        if len(self._left) > _REMEMBERED_MAX:
            self._left.popitem(last=False)
