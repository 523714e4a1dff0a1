"""Being cancelled in spite of drivers that forget it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def preserve_cancellation() -> Iterator[None]:
    """Be cancelled if we were: drivers wait by `wait_for`.

    Before Python 3.12 that forgets a cancellation which comes at the moment when the wait is over,
    and whoever has cancelled us would wait for us for ever.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    yield
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError
