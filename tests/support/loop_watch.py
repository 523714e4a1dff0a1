"""Measures how long a live server's event loop is held up by single steps."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest


@dataclass
class LoopWatch:
    """The longest steps of the loop: seconds of its thread's own CPU, and what ran."""

    steps: list[tuple[float, str]] = field(default_factory=list)

    @property
    def longest(self) -> float:
        return max((seconds for seconds, _ in self.steps), default=0.0)

    def report(self) -> str:
        worst = sorted(self.steps, reverse=True)[:5]
        return "\n".join(f"{seconds:.3f} s: {what}" for seconds, what in worst)


@contextmanager
def watched(loop: asyncio.AbstractEventLoop, *, least: float = 0.02) -> Iterator[LoopWatch]:
    """Records every step of `loop` that takes at least so many seconds of CPU.

    CPU time of the loop's own thread, so a busy machine and work in other threads do not count.
    Meanwhile, the garbage collector does not run: it would look at what all tests hold.
    """
    watch = LoopWatch()
    run = asyncio.Handle._run

    def timed(handle: Any) -> None:
        if handle._loop is not loop:
            run(handle)
            return
        started = time.thread_time()
        what = handle._callback
        run(handle)
        seconds = time.thread_time() - started
        if seconds >= least:
            owner = getattr(what, "__self__", None)
            watch.steps.append((seconds, repr(owner if owner is not None else what)[:400]))

    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.Handle, "_run", timed)
            yield watch
    finally:
        gc.enable()
