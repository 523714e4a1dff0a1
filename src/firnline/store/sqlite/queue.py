"""Those who wait for the writer's thread, in the order in which they came."""

from __future__ import annotations

import queue
import threading
from collections import deque
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class JobQueue(Generic[T]):
    """A queue that any thread may put into, and one takes from.

    Not `queue.SimpleQueue`: before Python 3.13, its `get` with a timeout waits for ever if the
    machine stalls for that long between its two looks at the clock.
    """

    def __init__(self) -> None:
        self._waiting = deque[T]()
        self._bell = threading.Lock()  # free: it was rung since somebody last waited for it
        self._bell.acquire()
        self._enough = 1  # how many must wait before it is rung

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def put(self, item: T) -> None:
        """Come in last."""
        self._waiting.append(item)
        if len(self._waiting) >= self._enough and self._bell.locked():
            with suppress(RuntimeError):  # another was quicker to ring
                self._bell.release()

    def get(self, timeout: float | None = None) -> T:
        """Take the first; `queue.Empty` if none has come in time."""
        while not self._waiting:
            # A bell that was rung for what is taken by now costs one more turn, not more time.
            if not self._bell.acquire(timeout=-1 if timeout is None else timeout):
                raise queue.Empty
        return self._waiting.popleft()

    def gather(self, enough: int, pause: float) -> None:
        """Sleep until so many wait, or until nobody has come for a `pause`.

        Being woken for each of them would cost more than what each of them wants.
        """
        self._enough, before = enough, -1
        try:
            while before < len(self._waiting) < enough:
                before = len(self._waiting)
                self._bell.acquire(timeout=pause)
        finally:
            self._enough = 1
