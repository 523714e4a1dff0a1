"""The one writer of a process: a thread, a queue, and commits that callers share.

While one transaction is being made durable, the next writes queue up; they then go into one
transaction together. So a disk that takes a millisecond per commit still takes thousands of
messages a second, and each caller is answered only after its own message is on the disk.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

import apsw

from firnline import limits
from firnline.errors import StoreCorrupt, StoreError, StoreTimeout, StoreUnavailable
from firnline.store.sqlite.connection import Place, connect, errors, release_cursors

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]


class Hooks(Protocol):
    """What is done around a transaction."""

    def begin(self, connection: apsw.Connection) -> None:
        """The transaction has begun; nobody else can write now."""

    def mark(self, connection: apsw.Connection) -> int:
        """A number that grows with every change made in the transaction."""
        ...

    def commit(self, connection: apsw.Connection) -> None:
        """Commit the transaction, with what is still to be written in it."""

    def forget(self) -> None:
        """The transaction was rolled back."""

    def idle(self, connection: apsw.Connection) -> bool:
        """In a transaction of its own, in a quiet moment; returns whether there is more to do."""
        ...


class _Job(NamedTuple):
    work: Work[Any]
    future: asyncio.Future[Any]
    alone: bool


class _Outcome(NamedTuple):
    job: _Job
    result: Any = None
    error: BaseException | None = None


class Writer:
    """Runs pieces of work on the writing connection, each wholly or not at all."""

    def __init__(self, place: Place, connection: apsw.Connection, hooks: Hooks) -> None:
        self._place = place
        self._connection = connection
        self._hooks = hooks
        self._reopen = False
        self._fatal = ""
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._ahead: list[_Job | None] = []
        self._crowd = 1
        self._busy = True
        self._thread = threading.Thread(target=self._serve, name="firnline-writer", daemon=True)
        self._thread.start()

    async def run(self, work: Work[T], *, alone: bool = False) -> T:
        """Run `work` in a transaction that is durable when this returns.

        `alone`: outside any transaction, for what SQLite does not allow inside one.
        """
        if self._fatal:
            raise StoreCorrupt(self._fatal)
        if self._jobs.qsize() >= limits.WRITES_WAITING_MAX:
            raise StoreUnavailable("too many writes are waiting; slow down and try again")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(work, future, alone))
        return await future

    def close(self) -> None:
        """Finish the queue, stop, and close the connection. Blocks."""
        self._jobs.put(None)
        self._thread.join()
        with errors(self._place.path):
            self._connection.close()

    # -- the thread ---------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            while self._serve_one():
                pass
        except BaseException as error:
            # A mistake of ours. Nobody may wait for a thread that is gone.
            self._fatal = f"the writer has stopped: {error!r}"
            left: list[_Job] = []
            self._gather(left)
            self._answer([_Outcome(job, error=StoreError(self._fatal)) for job in left])
            raise

    def _serve_one(self) -> bool:
        try:
            job = self._next(limits.INDEX_IDLE_SECONDS if self._busy else None)
        except queue.Empty:
            self._busy = self._run_idle()
            return True
        if job is None:
            return False
        self._busy = True
        self._answer([self._run_alone(job)] if job.alone else self._run_batch(job))
        return True

    def _next(self, timeout: float | None) -> _Job | None:
        return self._ahead.pop() if self._ahead else self._jobs.get(timeout=timeout)

    def _run_batch(self, first: _Job) -> list[_Outcome]:
        batch = [first]
        self._wait_for_others(batch)
        try:
            self._begin()
        except BaseException as error:  # noqa: BLE001 - it is the callers', and is given to them
            self._recover(error)
            self._gather(batch)  # whoever waits behind the first would wait in vain
            return [_Outcome(job, error=error) for job in batch]
        # Only now, with the lock held, look who else is waiting: more share the commit.
        self._gather(batch)
        self._crowd = len(batch)
        outcomes = self._run_jobs(batch)
        if outcomes is None:  # one of them broke the transaction: each gets its own
            return [self._run_single(job) for job in batch]
        return outcomes

    def _run_single(self, job: _Job) -> _Outcome:
        try:
            self._begin()
        except BaseException as error:  # noqa: BLE001 - it is the caller's, and is given to it
            self._recover(error)
            return _Outcome(job, error=error)
        (outcome,) = self._run_jobs([job]) or [_Outcome(job)]
        return outcome

    def _wait_for_others(self, batch: list[_Job]) -> None:
        """Give those who shared the last commit, and were just answered, a moment to come back."""
        patience = time.monotonic() + limits.CROWD_SECONDS
        while len(batch) < self._crowd // 2 and not self._ahead:
            left = patience - time.monotonic()
            if left <= 0 or not self._take(batch, left):
                return

    def _gather(self, batch: list[_Job]) -> None:
        """Take all that are waiting and can share a commit."""
        while len(batch) < limits.BATCH_WRITES_MAX and not self._ahead:
            if not self._take(batch, 0):
                return

    def _take(self, batch: list[_Job], timeout: float) -> bool:
        """Take the next job into the batch, or put it aside; False if there is none in time."""
        try:
            job = self._jobs.get(block=timeout > 0, timeout=timeout)
        except queue.Empty:
            return False
        if job is None or job.alone:
            self._ahead.append(job)
        else:
            batch.append(job)
        return True

    def _begin(self) -> None:
        with errors(self._place.path):
            self._connect()
            self._connection.execute("BEGIN IMMEDIATE")
            self._hooks.begin(self._connection)

    def _connect(self) -> None:
        if self._reopen:
            self._connection = connect(self._place, writer=True)
            self._reopen = False

    def _run_jobs(self, batch: Sequence[_Job]) -> list[_Outcome] | None:
        """The outcomes after a commit; None after a rollback that the others must not suffer."""
        connection = self._connection
        outcomes: list[_Outcome] = []
        for job in batch:
            mark = self._hooks.mark(connection)
            try:
                with errors(self._place.path):
                    outcomes.append(_Outcome(job, result=job.work(connection)))
            except BaseException as error:  # noqa: BLE001 - it is the caller's, and is given to it
                outcomes.append(_Outcome(job, error=error))
                release_cursors(error)
                if self._hooks.mark(connection) != mark or not connection.in_transaction:
                    self._recover(error)
                    return outcomes if len(batch) == 1 else None
        try:
            with errors(self._place.path, committing=True):
                self._hooks.commit(connection)
        except BaseException as error:  # noqa: BLE001 - it is the callers', and is given to them
            self._recover(error)
            if len(batch) > 1 and not isinstance(error, StoreError):
                return None  # something in one of them that cannot be written
            return [_Outcome(job, error=error) for job in batch]
        return outcomes

    def _run_alone(self, job: _Job) -> _Outcome:
        try:
            with errors(self._place.path):
                self._connect()
                return _Outcome(job, result=job.work(self._connection))
        except BaseException as error:  # noqa: BLE001 - it is the caller's, and is given to it
            self._recover(error)
            return _Outcome(job, error=error)

    def _run_idle(self) -> bool:
        try:
            self._begin()
            with errors(self._place.path, committing=True):
                again = self._hooks.idle(self._connection)
                self._hooks.commit(self._connection)
        except BaseException as error:  # noqa: BLE001
            # Nobody asked for this work, so nobody is told now; whoever needs it meets the error.
            self._recover(error)
            return False
        return again

    def _recover(self, error: BaseException) -> None:
        """Get back to a state from which the next write can be tried, or must not be."""
        release_cursors(error)
        self._hooks.forget()
        if isinstance(error, StoreCorrupt) and isinstance(error.__cause__, apsw.Error):
            self._fatal = f"{error}; nothing more is written to it"
        try:
            if not self._reopen and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            # After a failed sync the kernel may have dropped the pages: start from the disk again.
            if isinstance(error, StoreTimeout):
                self._drop_connection()
        except apsw.Error:
            self._drop_connection()

    def _drop_connection(self) -> None:
        self._reopen = True
        with suppress(apsw.Error):  # a disk that fails can fail this, too
            self._connection.close()

    def _answer(self, outcomes: Sequence[_Outcome]) -> None:
        """Wake the callers: one visit to each event loop."""
        loops: dict[asyncio.AbstractEventLoop, list[_Outcome]] = {}
        for outcome in outcomes:
            loops.setdefault(outcome.job.future.get_loop(), []).append(outcome)
        for loop, group in loops.items():
            with suppress(RuntimeError):  # a loop that is closed has nobody left who waits
                loop.call_soon_threadsafe(_resolve, group)


def _resolve(outcomes: Sequence[_Outcome]) -> None:
    for job, result, error in outcomes:
        if job.future.done():
            continue  # the caller was cancelled; what it wrote is stored all the same
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)
