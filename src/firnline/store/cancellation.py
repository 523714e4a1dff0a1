"""Preserves the cancellation of a task when a driver swallows it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def preserve_cancellation() -> Iterator[None]:
    """Raise `CancelledError` if the task was canceled within the block.

    Drivers use `wait_for`, which before Python 3.12 swallows a cancellation that arrives just as
    the wait ends. The caller that canceled the task would then wait forever.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    yield
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError
