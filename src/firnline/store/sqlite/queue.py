"""The jobs that wait for the writer's thread, in order of arrival."""

from __future__ import annotations

import queue
import threading
from collections import deque
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class JobQueue(Generic[T]):
    """A queue with many producer threads and one consumer.

    Not `queue.SimpleQueue`: before Python 3.13, its `get` with a timeout waits forever if the
    machine stalls for that long between its two reads of the clock.
    """

    def __init__(self) -> None:
        self._waiting = deque[T]()
        self._bell = threading.Lock()  # unlocked: rung since the last wait
        self._bell.acquire()
        self._enough = 1  # the number of waiting items that rings it

    def __len__(self) -> int:
        """The number of waiting items."""
        return len(self._waiting)

    def put(self, item: T) -> None:
        """Append an item."""
        self._waiting.append(item)
        if len(self._waiting) >= self._enough and self._bell.locked():
            with suppress(RuntimeError):  # another thread rang it first
                self._bell.release()

    def get(self, timeout: float | None = None) -> T:
        """Take the first item; raises `queue.Empty` if none arrives in time."""
        while not self._waiting:
            # A ring for an item that is already taken costs one more turn, not more time.
            if not self._bell.acquire(timeout=-1 if timeout is None else timeout):
                raise queue.Empty
        return self._waiting.popleft()

    def gather(self, enough: int, pause: float) -> None:
        """Sleep until `enough` items wait, or none has arrived for a `pause`.

        Waking up for each item would cost more than its work.
        """
        self._enough, before = enough, -1
        try:
            while before < len(self._waiting) < enough:
                before = len(self._waiting)
                self._bell.acquire(timeout=pause)
        finally:
            self._enough = 1
