"""Answers that are streamed: read by a task of their own, whatever becomes of the client.

A client that goes away cancels the response, and whatever is awaited there is cancelled again. So
the response only hands on what a separate task has read and made durable, and nothing that matters
depends on the response's end.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Hashable
from contextlib import aclosing
from typing import Any, Final, Generic, Protocol, TypeVar

from firnline.errors import FirnlineError, TooFast, UnknownConversation

logger: Final = logging.getLogger("firnline.server")

T = TypeVar("T")
LINGER_SECONDS: Final = 30.0
"""How long an answer is still read when its client has gone."""
STOPPED: Final = "stopped by the reader"
"""Why an answer ends where somebody told it to."""
BUFFER_MAX: Final = 20_000
"""Pieces that wait for a slow client; then it is dropped, and the answer is read to its end."""


class Stopped(FirnlineError):
    """An answer that its reader ended: nobody's mistake, and no fault of the server."""

    status = 409


class Keeper(Protocol):
    """Sees to it that what a client gets of an answer is not lost."""

    async def add(self, text: str) -> None:
        """Make more of the text durable."""

    async def end(self) -> None:
        """The answer came to its end, and is stored."""

    async def cut(self, why: str) -> None:
        """It did not; store what there is."""


class Streams:
    """The streams of a server, and other work that must come to its end."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: set[asyncio.Task[Any]] = set()
        self._named: dict[asyncio.Task[Any], Hashable] = {}

    @property
    def live(self) -> int:
        """How many there are."""
        return len(self._tasks)

    def open(
        self,
        source: AsyncGenerator[tuple[str, T], None],
        keeper: Keeper,
        name: Hashable | None = None,
    ) -> Listener[T]:
        """Read `source` in the background; the listener gets its items.

        An item is a text and what the client gets for it, once the keeper has the text. By its
        `name` it can be stopped.
        """
        if len(self._tasks) >= self._most:
            raise TooFast("too many answers are being streamed", retry_after=1.0)
        listener = Listener[T]()
        listener.task = self._spawn(_pump(source, listener, keeper))
        if name is not None:
            self._named[listener.task] = name
        return listener

    async def stop(self, name: Hashable) -> int:
        """End the streams of that name now; what there is of them is stored. Returns how many."""
        found = [task for task, known in self._named.items() if known == name]
        for task in found:
            task.cancel(STOPPED)
        if found:
            await asyncio.wait(found)
        return len(found)

    async def whole(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns; it comes to its end even if nobody waits for it any more."""
        return await asyncio.shield(self._spawn(work))

    async def close(self, seconds: float) -> None:
        """Wait for what goes on; after so many seconds, cut it off, and store what there is."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._named.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, FirnlineError):
            logger.error("a mistake in what streams an answer", exc_info=error)


class Listener(Generic[T]):
    """What the client's response reads from."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._error: BaseException | None = None
        self._gone = False
        self.task: asyncio.Task[Any] | None = None

    async def batches(self) -> AsyncIterator[list[T]]:
        """The items as they come, those that wait together; raises what the source raised."""
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
        """Hand on an item, unless nobody listens any more."""
        if self._gone:
            return
        self._items.append(item)
        if len(self._items) > BUFFER_MAX:
            logger.warning("a client that reads too slowly is dropped")
            self.end(FirnlineError("the client reads too slowly"))
            self._gone = True
        self._news.set()

    def end(self, error: BaseException | None = None) -> None:
        """There will be no more."""
        self._ended, self._error = True, self._error or error
        self._news.set()

    def _leave(self) -> None:
        """The client has gone; the answer is still read for a while."""
        self._gone = True
        self._items.clear()
        task, whole = self.task, self._ended and self._error is None
        if task is not None and not whole and not task.done():
            asyncio.get_running_loop().call_later(LINGER_SECONDS, task.cancel)


async def _pump(
    source: AsyncGenerator[tuple[str, T], None], listener: Listener[T], keeper: Keeper
) -> None:
    """Read, keep, hand on; what arrives while something is being kept is kept together."""
    arrived: asyncio.Queue[tuple[str, T] | None] = asyncio.Queue()
    reading = asyncio.create_task(_read(source, arrived))
    try:
        while batch := await _all_of(arrived):
            if text := "".join(text for text, _ in batch):
                await keeper.add(text)
            for _, item in batch:
                listener.put(item)
        await reading  # raises what the source raised
    except BaseException as error:
        reading.cancel()
        await asyncio.wait([reading])
        # Of an erased conversation nothing is kept: what has its name now is another one.
        await (keeper.end() if isinstance(error, UnknownConversation) else keeper.cut(_why(error)))
        listener.end(error if isinstance(error, Exception) else _ended(_why(error)))
        raise
    listener.end()  # all of it is stored: the client need not wait until that is tidied up
    try:
        await keeper.end()
    except FirnlineError as error:
        logger.warning("an answer is stored, and its draft stays for a while: %s", error)


async def _read(
    source: AsyncGenerator[tuple[str, T], None], arrived: asyncio.Queue[tuple[str, T] | None]
) -> None:
    try:
        async with aclosing(source) as items:
            async for item in items:
                arrived.put_nowait(item)
    finally:
        arrived.put_nowait(None)


async def _all_of(arrived: asyncio.Queue[tuple[str, T] | None]) -> list[tuple[str, T]]:
    """What has arrived, at least one; nothing at the end."""
    batch: list[tuple[str, T]] = []
    while not batch or not arrived.empty():
        item = await arrived.get()
        if item is None:
            if batch:
                arrived.put_nowait(None)  # the end is told by the next batch
            break
        batch.append(item)
    return batch


def _ended(why: str) -> FirnlineError:
    return Stopped(why) if why == STOPPED else FirnlineError(why)


def _why(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return STOPPED if STOPPED in error.args else "given up"
    return str(error) if isinstance(error, FirnlineError) else type(error).__name__
