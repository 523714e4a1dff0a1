"""Measures how long a live server's event loop is held up: by single steps, and by other threads.

In CPU time, so a busy machine and work that releases Python's lock do not count.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

_MILLION = 0.014
"""Seconds in which the machine that 0.1 s was meant for counts to a million."""


def _seconds() -> float:
    """0.1 s, or more on a machine that is slower."""
    started = time.thread_time()
    for _ in range(1_000_000):
        pass
    return 0.1 * max((time.thread_time() - started) / _MILLION, 1)


SECONDS = _seconds()
"""How long anything may hold up the loop, in CPU time."""
TRIES = 3
"""Caches that are shared with other processes slow down what runs: then it is tried again."""


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


_TICK_SECONDS = 0.005
_OF_TESTS = ("process_request_thread", "serve_forever", "MainThread")
"""Threads of tests: their servers, and the client."""


class _Heartbeat:
    """Ticks in the loop; between two ticks, no other thread may run for long without letting it.

    A thread that runs Python gives way after 5 ms, and one that waits or computes without Python's
    lock does not stop the ticks. So what one thread ran between two ticks is a call that held it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, watch: LoopWatch, least: float) -> None:
        self._loop, self._watch, self._least = loop, watch, least
        self._before: dict[int, float] = {}
        self._stopped = False
        loop.call_soon_threadsafe(self._tick)

    def stop(self) -> None:
        self._stopped = True

    def _tick(self) -> None:
        now: dict[int, float] = {}
        for thread in threading.enumerate():
            if thread.ident is None or thread.ident == threading.get_ident():
                continue
            now[thread.ident] = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
            ran = now[thread.ident] - self._before.get(thread.ident, now[thread.ident])
            if ran >= self._least and not any(name in thread.name for name in _OF_TESTS):
                self._watch.steps.append((ran, f"a call in the thread {thread.name}"))
        self._before = now
        if not self._stopped:
            self._loop.call_later(_TICK_SECONDS, self._tick)


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

    beats = _Heartbeat(loop, watch, least) if hasattr(time, "pthread_getcpuclockid") else None
    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.Handle, "_run", timed)
            yield watch
    finally:
        gc.enable()
        if beats is not None:
            beats.stop()


def is_light(loop: asyncio.AbstractEventLoop, ask: Callable[[], object]) -> str:
    """What holds up the loop for too long each time it is tried; empty if nothing does."""
    report = ""
    for _ in range(TRIES):
        with watched(loop) as watch:
            ask()
        if watch.longest < SECONDS:
            return ""
        report = watch.report()
    return report
