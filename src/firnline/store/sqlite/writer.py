"""The only writer of a process: a thread, a queue, and group commits.

While one transaction commits, new writes queue up and then share the next one. So a disk that needs
a millisecond per commit still stores thousands of messages a second, and a call returns only after
its own message is on disk.

If a commit is faster than waking another thread, small writes are committed on the callers' own
thread: the first of several concurrent callers commits for all of them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import queue
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Final, NamedTuple, TypeVar

import apsw

from firnline.errors import (
    FirnlineError,
    StoreCorrupt,
    StoreError,
    StoreNotOpen,
    StoreTimeout,
    StoreUnavailable,
)
from firnline.log import limits
from firnline.store.sqlite.connection import DatabaseFile
from firnline.store.sqlite.queue import JobQueue
from firnline.store.sqlite.transactions import Hooks, Outcome, Transactions, Work, fail_all

T = TypeVar("T")

logger = logging.getLogger("firnline")

LARGE: Final = math.inf
"""The size of a write that is unknown."""

_UNSURE: Final = "shared commit interrupted; outcome unknown: retry with the same idempotency key"


class _Job(NamedTuple):
    work: Work[Any]
    future: asyncio.Future[Any]
    alone: bool = False
    size: float = LARGE


class _CommitSpeed:
    """Whether recent commits were fast enough to run on the caller's thread."""

    def __init__(self) -> None:
        self._quick_ones = 0

    def note(self, seconds: float) -> None:
        """Record the duration of a commit."""
        self._quick_ones = self._quick_ones + 1 if seconds <= limits.COMMIT_QUICK_SECONDS else 0

    def is_quick(self) -> bool:
        """True after several fast commits in a row; one slow commit resets it."""
        return self._quick_ones >= limits.COMMITS_PROVING


class Writer:
    """Runs units of work on the writer's connection, each one atomic."""

    def __init__(self, place: DatabaseFile, connection: apsw.Connection, hooks: Hooks) -> None:
        self._transactions = Transactions(place, connection, hooks)
        self._in_use = threading.RLock()  # protects the transactions
        self._pace = _CommitSpeed()
        self._fatal = ""
        self._jobs = JobQueue[_Job | None]()  # None wakes the thread
        self._queue_lock = threading.Lock()
        self._closed = False
        self._coming: dict[asyncio.AbstractEventLoop, list[_Job]] = {}  # gathered to share a commit
        self._in_line: set[asyncio.Future[Any]] = set()  # queued or being written
        self._ahead: list[_Job | None] = []
        self._crowd = 1
        self._busy = True
        self._last = 0.0
        self._thread = threading.Thread(target=self._serve, name="firnline-writer", daemon=True)
        self._thread.start()

    async def run(self, work: Work[T], *, alone: bool = False, size: float = LARGE) -> T:
        """Run `work` in a transaction that is durable when this returns.

        `alone` runs it outside a transaction, for what SQLite does not allow inside one. `size` is
        the number of bytes written, if nothing else in it takes time.
        """
        self._check()
        loop = asyncio.get_running_loop()
        coming = self._coming.get(loop, ())
        if len(self._jobs) + len(coming) >= limits.WRITES_WAITING_MAX:
            raise StoreUnavailable("too many pending writes; slow down and retry")
        future: asyncio.Future[T] = loop.create_future()
        job = _Job(work, future, alone, size)
        if coming or self._pace.is_quick():  # never overtake gathered jobs
            await self._join_commit(job)
        else:
            self._enqueue([job])
        return await future

    def close(self) -> None:
        """Finish the queue, stop, and close the connection. Blocks."""
        with self._queue_lock:
            self._closed = True
            self._jobs.put(None)
        self._thread.join()
        with self._in_use:
            self._transactions.close()

    # -- the caller's thread ------------------------------------------------------------------

    def _check(self) -> None:
        if self._closed:
            raise StoreNotOpen
        if fatal := self._fatal or self._transactions.fatal:
            raise StoreCorrupt(fatal)

    def _enqueue(self, jobs: Sequence[_Job]) -> None:
        with self._queue_lock:  # every queued job gets an outcome, even if the thread stops
            self._check()
            for job in jobs:
                try:
                    self._in_line.add(job.future)
                    self._jobs.put(job)
                except BaseException:  # a signal: the job may not be in the queue
                    self._in_line.discard(job.future)
                    raise

    async def _join_commit(self, job: _Job) -> None:
        """Share a commit with the callers of this loop that are ready; the first one runs it."""
        loop = job.future.get_loop()
        jobs: list[_Job] = []
        try:
            coming = self._coming.setdefault(loop, [])
            coming.append(job)
            await asyncio.sleep(0)
            if self._coming.get(loop) is coming:  # else another caller was first
                jobs = coming
                del self._coming[loop]
                self._write_or_enqueue(jobs)
        except BaseException:
            self._withdraw(job)
            unsure = StoreTimeout(_UNSURE)
            _resolve(zip([job.future for job in jobs], fail_all(unsure, len(jobs)), strict=True))
            raise

    def _withdraw(self, job: _Job) -> None:
        """Withdraw the job of a caller that is interrupted before its job is taken."""
        loop = job.future.get_loop()
        coming = self._coming.get(loop, [])
        if job in coming:
            coming.remove(job)
            if not coming:
                del self._coming[loop]
        job.future.cancel()

    def _write_or_enqueue(self, jobs: Sequence[_Job]) -> None:
        try:
            outcomes = self._run_at_once(jobs) if self._is_quiet(jobs) else None
            if outcomes is None:
                self._enqueue(jobs)
                return
        except FirnlineError as error:
            outcomes = fail_all(error, len(jobs))
        _resolve(zip([job.future for job in jobs], outcomes, strict=True))

    def _is_quiet(self, jobs: Sequence[_Job]) -> bool:
        """Whether the jobs are few and small, and all earlier ones, even canceled, are stored."""
        few = len(jobs) <= limits.BATCH_WRITES_MAX
        small = sum([job.size for job in jobs]) <= limits.COMMIT_AT_ONCE_BYTES
        return few and small and not self._in_line and self._pace.is_quick()

    def _run_at_once(self, jobs: Sequence[_Job]) -> list[Outcome] | None:
        """The outcomes if run on this thread; None if the writer's thread must run the jobs."""
        try:
            if not self._in_use.acquire(blocking=False):
                return None
            self._check()
            outcomes = self._transactions.run_at_once([job.work for job in jobs])
            if outcomes is not None:
                self._note()
                self._last = time.monotonic()
                self._wake(now=self._transactions.is_far_behind())
            return outcomes
        finally:
            try:  # without asking if it is ours: a signal could come in between
                self._in_use.release()
            except RuntimeError as error:
                logger.debug("writer is in use by another thread: %s", error)

    def _note(self) -> None:
        """Record the commit's duration; only a commit with changes measures the disk."""
        if self._transactions.wrote:
            self._pace.note(self._transactions.commit_seconds)

    def _wake(self, *, now: bool) -> None:
        """Wake the thread, so that it does background work when idle, or now."""
        if not self._busy or (now and not self._jobs):
            self._busy = True
            self._jobs.put(None)

    # -- the thread ---------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            while self._serve_one():
                pass
        except BaseException as error:
            # A bug. No caller may wait for a thread that has stopped.
            with self._queue_lock:
                self._fatal = f"internal error: the writer has stopped: {error!r}"
                left = list(self._in_line)
            _answer(left, fail_all(StoreError(self._fatal), len(left)))
            raise

    def _serve_one(self) -> bool:
        try:
            job = self._next(limits.INDEX_IDLE_SECONDS if self._busy else None)
        except queue.Empty:
            self._work(idle=time.monotonic() - self._last >= limits.INDEX_IDLE_SECONDS)
            return True
        if job is None:
            self._work()
            return bool(self._jobs) or not self._closed
        with self._in_use:
            self._busy = True
            if job.alone:
                batch, outcomes = [job], [self._transactions.run_alone(job.work)]
            else:
                batch, outcomes = self._run_batch(job)
        futures = [job.future for job in batch]
        self._in_line.difference_update(futures)
        _answer(futures, outcomes)
        self._work()
        return True

    def _work(self, *, idle: bool = False) -> None:
        """Do a part of the background work, and what cannot wait until the writer is idle."""
        for turn in count():
            waiting = turn >= limits.INDEX_TURNS and len(self._jobs) > 0
            if not idle and (waiting or not self._transactions.is_far_behind()):
                return
            idle = False
            with self._in_use:
                self._busy = self._transactions.run_idle()
            if not self._busy:
                return

    def _next(self, timeout: float | None) -> _Job | None:
        return self._ahead.pop() if self._ahead else self._jobs.get(timeout)

    def _run_batch(self, first: _Job) -> tuple[list[_Job], list[Outcome]]:
        batch = [first]
        self._wait_for_others(batch)
        error = self._transactions.begin()
        # Gather only now, with the lock held, so that more jobs share the commit. If there is no
        # lock, all waiting jobs fail together, instead of waiting for it one after the other.
        self._gather(batch)
        if error:
            return batch, fail_all(error, len(batch))
        self._crowd = len(batch)
        outcomes = self._transactions.finish([job.work for job in batch])
        self._note()
        return batch, outcomes

    def _wait_for_others(self, batch: list[_Job]) -> None:
        """Wait briefly for the callers that shared the last commit to write again."""
        missing = self._crowd - len(batch)
        if missing > 0 and not self._ahead:
            self._jobs.gather(missing, limits.CROWD_SECONDS)

    def _gather(self, batch: list[_Job]) -> None:
        """Take all waiting jobs that can share a commit."""
        while len(batch) < limits.BATCH_WRITES_MAX and not self._ahead:
            if not self._take(batch, 0):
                return

    def _take(self, batch: list[_Job], timeout: float) -> bool:
        """Take the next job into the batch, or set it aside; False if none arrives in time."""
        try:
            job = self._jobs.get(timeout)
        except queue.Empty:
            return False
        if job is None or job.alone:
            self._ahead.append(job)
        else:
            batch.append(job)
        return True


def _answer(futures: Sequence[asyncio.Future[Any]], outcomes: Sequence[Outcome]) -> None:
    """Wake the callers, with one callback per event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Outcome]]] = {}
    for future, outcome in zip(futures, outcomes, strict=True):
        loops.setdefault(future.get_loop(), []).append((future, outcome))
    for loop, group in loops.items():
        with suppress(RuntimeError):  # a closed loop has no waiting callers
            loop.call_soon_threadsafe(_resolve, group)


def _resolve(answers: Iterable[tuple[asyncio.Future[Any], Outcome]]) -> None:
    for future, (result, error) in answers:
        if future.done():
            continue  # the caller was canceled; its write is stored anyway
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)
