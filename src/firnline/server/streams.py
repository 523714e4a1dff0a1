"""Streamed answers: read by a separate task, even if the client disconnects.

A client that disconnects cancels its response and everything that is awaited there. So a separate
task reads the answer and makes it durable, and the response only forwards it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Hashable
from contextlib import aclosing, suppress
from typing import Any, Final, Generic, Protocol, TypeVar

from firnline.errors import FirnlineError, TooFast, UnknownConversation
from firnline.server.limits import PIECES_BUFFERED_MAX, READ_ON_SECONDS

logger: Final = logging.getLogger("firnline.server")

T = TypeVar("T")
STOPPED: Final = "stopped by the reader"
"""The reason for an answer that was stopped by request."""
_AT_ONCE: Final = 256
"""Pieces that are read before other work gets its turn."""


class Stopped(FirnlineError):
    """The answer was stopped by request."""

    status = 409


class AnswerKeeper(Protocol):
    """Makes the text of an answer durable before the client gets it."""

    async def add(self, text: str) -> None:
        """Store more of the text."""

    async def end(self) -> None:
        """The answer is complete and stored."""

    async def cut(self, why: str) -> None:
        """The answer was interrupted; store the text so far."""


class Streams:
    """The streams of a server, and other work that must be completed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: set[asyncio.Task[Any]] = set()
        self._named: dict[asyncio.Task[Any], Hashable] = {}

    @property
    def live(self) -> int:
        """Number of running tasks."""
        return len(self._tasks)

    def open(
        self,
        source: AsyncGenerator[tuple[str, T], None],
        keeper: AnswerKeeper,
        name: Hashable | None = None,
    ) -> StreamListener[T]:
        """Read `source` in the background; the listener gets its items.

        An item is a text and what the client gets for it, once the keeper has stored the text. A
        stream with a `name` can be stopped.
        """
        if len(self._tasks) >= self._most:
            raise TooFast(
                f"too many concurrent streams: the limit is {self._most}", retry_after=1.0
            )
        listener = StreamListener[T]()
        listener.task = self._track(asyncio.create_task(_pump(source, listener, keeper)))
        if name is not None:
            self._named[listener.task] = name
        return listener

    def is_running(self, name: Hashable) -> bool:
        """Whether a stream with this name is running."""
        return name in self._named.values()

    async def stop(self, name: Hashable) -> int:
        """Stop the streams with this name; their text so far is stored. Returns how many."""
        found = [task for task, known in self._named.items() if known == name]
        for task in found:
            task.cancel(STOPPED)
        if found:
            await asyncio.wait(found)
        return len(found)

    async def complete(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which is completed even if the caller is canceled."""
        return await asyncio.shield(self._track(asyncio.create_task(work)))

    async def close(self, seconds: float) -> None:
        """Wait for running tasks; after `seconds`, cancel them and store the text so far."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _track(self, task: asyncio.Task[T]) -> asyncio.Task[T]:
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._named.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, FirnlineError):
            logger.error("stream: internal error", exc_info=error)


class StreamListener(Generic[T]):
    """The end of a stream that the client's response reads from."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._error: BaseException | None = None
        self._gone = False
        self.task: asyncio.Task[Any] | None = None

    async def wait(self, seconds: float) -> None:
        """Wait for the first item, but not longer; raises the source's error if that came first."""
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), seconds)
        except BaseException:
            self._leave()
            raise
        if self._error is not None and not self._items:
            raise self._error

    async def batches(self) -> AsyncIterator[list[T]]:
        """The items as they come, those that are waiting together; raises the source's error."""
        try:
            while True:
                while self._items:
                    waiting = list(self._items)
                    self._items.clear()
                    yield waiting
                if self._ended:
                    break
                self._news.clear()
                await self._news.wait()
            if self._error is not None:
                raise self._error
        finally:
            self._leave()

    def put(self, item: T) -> None:
        """Forward an item, unless the client is gone."""
        if self._gone:
            return
        self._items.append(item)
        if len(self._items) > PIECES_BUFFERED_MAX:
            logger.warning("stream: the client reads too slowly; disconnecting it")
            self.end(
                FirnlineError(
                    f"the client reads too slowly: {PIECES_BUFFERED_MAX:,} pieces are waiting"
                )
            )
            self._gone = True
        self._news.set()

    def end(self, error: BaseException | None = None) -> None:
        """There are no more items."""
        self._ended, self._error = True, self._error or error
        self._news.set()

    def detach(self) -> None:
        """No client waits for the items; the answer is read to its end."""
        self._gone = True

    def _leave(self) -> None:
        """The client is gone; keep reading the answer for a while."""
        self._gone = True
        self._items.clear()
        task, complete = self.task, self._ended and self._error is None
        if task is not None and not complete and not task.done():
            asyncio.get_running_loop().call_later(READ_ON_SECONDS, task.cancel)


async def _pump(
    source: AsyncGenerator[tuple[str, T], None], listener: StreamListener[T], keeper: AnswerKeeper
) -> None:
    """Read, store, forward; what arrives while something is being stored is stored together."""
    arrived: asyncio.Queue[tuple[str, T] | None] = asyncio.Queue()
    reading = asyncio.create_task(_read(source, arrived))
    try:
        while batch := await _next_batch(arrived):
            if text := "".join(text for text, _ in batch):
                await keeper.add(text)
            for _, item in batch:
                listener.put(item)
        await reading  # raises what the source raised
    except BaseException as error:
        reading.cancel()
        await asyncio.wait([reading])
        # Nothing of an erased conversation is stored; its name may belong to a new one.
        await (keeper.end() if isinstance(error, UnknownConversation) else keeper.cut(_why(error)))
        listener.end(error if isinstance(error, Exception) else _error_for(_why(error)))
        raise
    listener.end()  # everything is stored: the client need not wait for the cleanup
    try:
        await keeper.end()
    except FirnlineError as error:
        logger.warning("draft: cannot drop it, although the answer is stored: %s", error)


async def _read(
    source: AsyncGenerator[tuple[str, T], None], arrived: asyncio.Queue[tuple[str, T] | None]
) -> None:
    try:
        async with aclosing(source) as items:
            number = 0
            async for item in items:
                arrived.put_nowait(item)
                if (number := number + 1) % _AT_ONCE == 0:
                    await asyncio.sleep(0)  # the end of an answer may come without a wait
    finally:
        arrived.put_nowait(None)


async def _next_batch(arrived: asyncio.Queue[tuple[str, T] | None]) -> list[tuple[str, T]]:
    """All items that have arrived, at least one; empty at the end."""
    batch: list[tuple[str, T]] = []
    while not batch or not arrived.empty():
        item = await arrived.get()
        if item is None:
            if batch:
                arrived.put_nowait(None)  # the next batch is the end
            break
        batch.append(item)
    return batch


def _error_for(why: str) -> FirnlineError:
    return Stopped(why) if why == STOPPED else FirnlineError(why)


def _why(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return STOPPED if STOPPED in error.args else "canceled"
    return str(error) if isinstance(error, FirnlineError) else type(error).__name__
