"""An event loop in its own thread, and the synchronous facades that run on it.

`firnline.sync.Memory` and `firnline.client.sync.Client` wrap the asynchronous methods with `waits`
and `walks`, so each method has one implementation, one signature and one docstring.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from firnline.errors import StoreNotOpen

A = TypeVar("A")
P = ParamSpec("P")
T = TypeVar("T")


class LoopThread:
    """The loop. `hint` is the error text for a call before `start`."""

    def __init__(self, name: str, hint: str) -> None:
        self._name, self._hint = name, hint
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    @property
    def started(self) -> bool:
        """Whether the loop runs."""
        return self._loop is not None

    def start(self) -> None:
        """Start the thread; `RuntimeError` if it is running."""
        if self._loop is not None:
            raise RuntimeError("already started")
        ready = threading.Event()
        self._process = os.getpid()
        self._thread = threading.Thread(
            target=self._serve, args=(ready,), name=self._name, daemon=True
        )
        self._thread.start()
        ready.wait()

    def stop(self) -> None:
        """Stop the thread; tasks that still run are canceled."""
        loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop and return its result; from any thread but the loop's.

        If the caller is interrupted (Ctrl-C), the coroutine is canceled.
        """
        if self._loop is None:
            coroutine.close()
            raise StoreNotOpen(self._hint)
        if self._process != os.getpid():
            coroutine.close()
            raise StoreNotOpen("opened before a fork; open it again in the child process")
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError(
                "called from the loop's own thread, for example from a progress callback"
            )
        running = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return running.result()
        finally:
            running.cancel()  # no effect once there is a result

    def walk(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items as they arrive; if the caller stops early, the source is closed."""
        end: Any = object()
        pending = set[asyncio.Task[Any]]()
        try:
            while (item := self.run(_next(items, end, pending))) is not end:
                yield item
        finally:
            self.run(_close(items, pending))

    def _serve(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            ready.set()
            self._loop.run_forever()


async def _next(items: AsyncIterator[T], end: T, pending: set[asyncio.Task[Any]]) -> T:
    if (task := asyncio.current_task()) is not None:
        pending.add(task)
    try:
        return await anext(items, end)
    finally:
        pending.clear()


async def _close(items: AsyncIterator[Any], pending: set[asyncio.Task[Any]]) -> None:
    """Close a stream that was not read to its end, so that its model's connection is closed."""
    if pending:  # canceled by an interrupt; a generator cannot be closed while it runs
        await asyncio.wait(pending)
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()


class SyncFacade(Generic[A]):
    """Runs the methods of `behind` on a loop thread; ``with`` starts and closes it."""

    def __init__(self, behind: A, name: str, hint: str) -> None:
        self._loop = LoopThread(name, hint)
        self.behind = behind

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop thread and return its result."""
        return self._loop.run(coroutine)

    def walk(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items as they arrive."""
        return self._loop.walk(items)

    def start(self) -> None:
        """Start the loop thread; ``with`` does this."""
        self._loop.start()

    def close(self) -> None:
        """Stop the loop thread; ``with`` does this."""
        self._loop.stop()

    def _close_behind(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._loop.started:
            try:
                self.run(close())
            finally:
                self._loop.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def waits(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncFacade[A], P], T]:
    """The method without await."""

    @wraps(method)
    def call(facade: SyncFacade[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return facade.run(method(facade.behind, *args, **kwargs))

    return call


def walks(
    method: Callable[Concatenate[A, P], AsyncIterator[T]],
) -> Callable[Concatenate[SyncFacade[A], P], Iterator[T]]:
    """The method as a plain iterator."""

    @wraps(method)
    def call(facade: SyncFacade[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return facade.walk(method(facade.behind, *args, **kwargs))

    return call
