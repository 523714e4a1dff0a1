"""An event loop in a separate thread: what happens to work when its caller is interrupted."""

import asyncio
import signal
import sys
import threading
import time

import pytest

from firnline.engine.loop_thread import LoopThread


@pytest.fixture
def loop():
    loop = LoopThread("test", "start it")
    loop.start()
    yield loop
    loop.stop()


@pytest.fixture
def interrupted():
    """Interrupts this thread as Ctrl-C does, when a caller waits."""
    waiting = threading.Event()

    def raising(*_):
        raise KeyboardInterrupt

    def watch(here):
        waiting.wait(60)
        while "result" not in _functions(here):  # it may have begun without having to wait yet
            time.sleep(0.01)
        signal.pthread_kill(here, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, raising)
    watcher = threading.Thread(target=watch, args=(threading.get_ident(),), daemon=True)
    watcher.start()
    yield waiting
    watcher.join()
    signal.signal(signal.SIGUSR1, before)


def _functions(thread):
    """Where a thread is, by the names of functions."""
    found, frame = [], sys._current_frames()[thread]
    while frame is not None:
        found.append(frame.f_code.co_name)
        frame = frame.f_back
    return found


def test_work_without_a_waiter_is_cancelled(loop, interrupted):
    ended = threading.Event()

    async def work():
        try:
            interrupted.set()
            await asyncio.sleep(60)
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        loop.run(work())
    assert ended.wait(10)


def test_a_stream_that_is_interrupted_is_closed_and_the_interruption_is_what_is_raised(
    loop, interrupted
):
    seen, closed = [], threading.Event()

    async def pieces():
        try:
            yield "first"
            interrupted.set()
            await asyncio.sleep(60)
            yield "never"
        finally:
            await asyncio.sleep(0.05)  # to close takes a while: a connection says good-bye
            closed.set()

    def walk():
        for piece in loop.walk(pieces()):
            seen.append(piece)  # noqa: PERF402 - what was seen before the interruption counts

    with pytest.raises(KeyboardInterrupt):
        walk()
    assert seen == ["first"]
    assert closed.is_set()
    assert list(loop.walk(_several())) == [0, 1, 2]


async def _several():
    for number in range(3):
        yield number
