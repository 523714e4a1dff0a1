"""An event loop in a thread of its own, for code that has none.

What the faces without await are made of: whatever they do runs on it, as coroutines of the one
implementation there is.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from firnline.errors import StoreNotOpen

T = TypeVar("T")


class LoopThread:
    """The loop; `hint` says how the owner is to be used, to those who did not start it."""

    def __init__(self, name: str, hint: str) -> None:
        self._name, self._hint = name, hint
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    @property
    def started(self) -> bool:
        """Whether it runs."""
        return self._loop is not None

    def start(self) -> None:
        """Begin; `RuntimeError` if it runs already."""
        if self._loop is not None:
            raise RuntimeError("it is started already")
        ready = threading.Event()
        self._process = os.getpid()
        self._thread = threading.Thread(
            target=self._serve, args=(ready,), name=self._name, daemon=True
        )
        self._thread.start()
        ready.wait()

    def stop(self) -> None:
        """End; what still ran is cancelled."""
        loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What the coroutine returns, run on the loop. From any thread but the loop's own.

        Whoever is interrupted while they wait, by Ctrl-C, gives up what they wait for.
        """
        if self._loop is None:
            coroutine.close()
            raise StoreNotOpen(self._hint)
        if self._process != os.getpid():
            coroutine.close()
            raise StoreNotOpen("this was opened before a fork; open one in the child")
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("called from its own thread, for example from a progress callback")
        running = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return running.result()
        finally:
            running.cancel()  # of no effect once there is a result

    def walk(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items as they come; left early, what gives them is closed, too."""
        nothing: Any = object()
        asked = set[asyncio.Task[Any]]()
        try:
            while (item := self.run(_next(items, nothing, asked))) is not nothing:
                yield item
        finally:
            self.run(_ended(items, asked))

    def _serve(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            ready.set()
            self._loop.run_forever()


async def _next(items: AsyncIterator[T], nothing: T, asked: set[asyncio.Task[Any]]) -> T:
    if (task := asyncio.current_task()) is not None:
        asked.add(task)
    try:
        return await anext(items, nothing)
    finally:
        asked.clear()


async def _ended(items: AsyncIterator[Any], asked: set[asyncio.Task[Any]]) -> None:
    """A stream that is not read to its end is closed, so that its model's connection is."""
    if asked:  # given up by an interruption; what is in the middle of something cannot be closed
        await asyncio.wait(asked)
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()
