"""The writer's connection: units of work that share a commit, each one atomic."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import apsw

from firnline.errors import FirnlineError, StoreCorrupt, StoreError, StoreTimeout
from firnline.store.sqlite.connection import (
    CHECKPOINT_PAGES,
    DatabaseFile,
    OpenFiles,
    busy_handler,
    connect,
    detach_context,
    release_cursors,
    translate_errors,
)

logger: Final = logging.getLogger("firnline")

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]


class Hooks(Protocol):
    """Callbacks around a transaction."""

    def begin(self, connection: apsw.Connection) -> None:
        """The transaction has begun; no other connection can write."""

    def mark(self, connection: apsw.Connection) -> int:
        """A number that grows with every change made in the transaction."""
        ...

    def flush(self, connection: apsw.Connection) -> None:
        """Write what is buffered; the transaction is committed next."""

    def committed(self, connection: apsw.Connection) -> None:
        """The transaction is durable; an exception is logged and changes nothing."""

    def forget(self) -> None:
        """The transaction was rolled back."""

    def idle(self, connection: apsw.Connection) -> bool:
        """Do background work in its own transaction; returns whether there is more to do."""
        ...

    def is_far_behind(self) -> bool:
        """Whether background work must be done even while others write."""
        ...

    def rest(self) -> None:
        """Background work was done, or failed."""


class Outcome(NamedTuple):
    """The result or error of a unit of work."""

    result: Any = None
    error: BaseException | None = None


def fail_all(error: BaseException, callers: int) -> list[Outcome]:
    """One error for several callers, as separate objects: raising an error modifies it."""
    return [Outcome(error=_copy_error(error) if number else error) for number in range(callers)]


def _copy_error(error: BaseException) -> BaseException:
    if not isinstance(error, StoreError):
        return error  # its constructor is unknown
    twin = type(error)(*error.args, **error.context)
    twin.__cause__ = error.__cause__
    return twin


class Transactions:
    """The writer's connection. One thread at a time may use it.

    A signal may interrupt that thread between any two steps. The open transaction is then rolled
    back, and the next one starts from a consistent state.
    """

    def __init__(self, place: DatabaseFile, connection: apsw.Connection, hooks: Hooks) -> None:
        self.fatal = ""
        self.wrote = False  # whether the last transaction committed changes
        self.commit_seconds = 0.0  # the duration of the last commit
        self._place = place
        self._files = OpenFiles(place.path)
        self._files.opened()
        self._connection = connection
        self._hooks = hooks
        self._patience = busy_handler(place.busy_seconds)
        self._patient: bool | None = True
        self._kept_from = 0  # pages written when automatic checkpoints were last switched
        self._reopen = False
        self._at_once = False
        self._foreign: BaseException | None = None

    def begin(self, *, patient: bool = True) -> BaseException | None:
        """Take the database's write lock; returns the error if that fails."""
        self.wrote = False
        try:
            with translate_errors(self._place.path):
                self._files.check()
                self._connect()
                self._be_patient(patient)
                self._connection.execute("BEGIN IMMEDIATE")
                self._hooks.begin(self._connection)
        except BaseException as error:  # noqa: BLE001 - it is the callers', and is given to them
            self._recover(error)
            return error
        return None

    def run_at_once(self, works: Sequence[Work[Any]]) -> list[Outcome] | None:
        """Run in one commit, without waiting; None if it would wait, or each must run alone."""
        if self._reopen or self._log_is_full():
            return None
        try:
            self._at_once = True
            self._foreign = sys.exception()  # the exception that the caller is handling
            error = self.begin(patient=False)
            if error is None:
                return self._run(works)
            self._pass_on(error)
        except BaseException as error:
            self._recover(error)
            raise
        finally:
            self._at_once = False
            self._foreign = None
        return None

    def finish(self, works: Sequence[Work[Any]]) -> list[Outcome]:
        """After `begin`: run the work and commit."""
        outcomes = self._run(works)
        if outcomes is None:  # one broke the transaction: each gets its own
            return [self._run_single(work) for work in works]
        return outcomes

    def _run_single(self, work: Work[Any]) -> Outcome:
        if error := self.begin():
            return Outcome(error=error)
        (outcome,) = self._run([work]) or [Outcome()]
        return outcome

    def _run(self, works: Sequence[Work[Any]]) -> list[Outcome] | None:
        """The outcomes after a commit; None after a rollback if the others are to be retried."""
        connection = self._connection
        before = self._hooks.mark(connection)
        outcomes: list[Outcome] = []
        named = translate_errors(self._place.path)
        for work in works:
            mark = self._hooks.mark(connection)
            try:
                with named:
                    outcome = Outcome(work(connection))
            except BaseException as error:  # noqa: BLE001 - it is the caller's, and is given to it
                outcome = Outcome(error=error)
                self._let_go(error)
                # Firnline's own errors are raised before the first change. Any other error may
                # come in the middle of one, even if no change is visible.
                refused = isinstance(error, FirnlineError) and connection.in_transaction
                if not refused or self._hooks.mark(connection) != mark:
                    self._recover(error)
                    self._pass_on(error)
                    return [outcome] if len(works) == 1 else None
            outcomes.append(outcome)
        try:
            with translate_errors(self._place.path, committing=True):
                self._commit()
        except BaseException as error:  # noqa: BLE001 - it is the callers', and is given to them
            unstored = connection.in_transaction
            self._recover(error)
            self._pass_on(error)
            if len(works) > 1 and unstored and not isinstance(error, StoreError):
                return None  # one of them has a value that cannot be written
            return fail_all(error, len(works))
        self.wrote = self._hooks.mark(connection) != before
        self._after_commit()
        return outcomes

    def _pass_on(self, error: BaseException) -> None:
        """Raise a signal on a caller's own thread: it is not an outcome for other callers."""
        if self._at_once and not isinstance(error, Exception):
            raise error

    def _commit(self) -> None:
        self._hooks.flush(self._connection)
        started = time.perf_counter()
        self._connection.execute("COMMIT")
        self.commit_seconds = time.perf_counter() - started

    def _after_commit(self) -> None:
        """What follows a commit must not fail what is stored."""
        try:
            self._hooks.committed(self._connection)
        except BaseException as error:
            if not isinstance(error, Exception):
                raise  # a signal, which comes to the caller's own thread
            logger.exception("%s: after a commit", self._place.path)
            self._hooks.forget()

    def run_alone(self, work: Work[Any]) -> Outcome:
        """Run outside a transaction, for what SQLite does not allow inside one."""
        try:
            with translate_errors(self._place.path):
                self._files.check()
                self._connect()
                self._be_patient(True)
                return Outcome(work(self._connection))
        except BaseException as error:  # noqa: BLE001 - it is the caller's, and is given to it
            self._recover(error)
            return Outcome(error=error)

    def is_far_behind(self) -> bool:
        """Whether background work must be done even while others write."""
        return self._hooks.is_far_behind()

    def run_idle(self) -> bool:
        """Do background work; returns whether there is more to do."""
        self._hooks.rest()  # before it can fail: what fails is not tried without a pause
        if self.begin():
            return False
        try:
            with translate_errors(self._place.path, committing=True):
                again = self._hooks.idle(self._connection)
                self._commit()
            self._after_commit()
        except BaseException as error:  # noqa: BLE001
            # No caller waits for this work; a caller that needs it later gets the error.
            self._recover(error)
            return False
        return again

    def close(self) -> None:
        """Close the connection."""
        with translate_errors(self._place.path):
            self._connection.close()

    def _connect(self) -> None:
        if self._reopen:
            self._connection = connect(self._place, writer=True)
            self._files.opened()
            self._patient = True
            self._reopen = False

    def _be_patient(self, patient: bool) -> None:
        """Set whether to wait for other processes and to checkpoint the log after a commit."""
        if patient is not self._patient:
            self._patient = None  # unknown until both are set
            self._connection.set_busy_handler(self._patience if patient else None)
            self._connection.wal_autocheckpoint(CHECKPOINT_PAGES if patient else 0)
            self._kept_from = self._pages_written()
            self._patient = patient

    def _log_is_full(self) -> bool:
        """Whether the log needs a checkpoint, which only the writer's thread runs."""
        kept = self._pages_written() - self._kept_from
        return self._patient is False and not 0 <= kept < CHECKPOINT_PAGES

    def _pages_written(self) -> int:
        """The number of pages the connection has written to the log; wraps after 2**31."""
        return int(self._connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)[0])

    def _recover(self, error: BaseException) -> None:
        """Restore a state in which the next write can run; on corruption, disable writes."""
        self._let_go(error)
        self._hooks.forget()
        cause = error.__cause__ if isinstance(error, StoreCorrupt) else None
        if isinstance(cause, apsw.Error) and not isinstance(cause, apsw.IOError):
            self.fatal = f"{error}; further writes are disabled"
        try:
            if not self._reopen and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            # After a failed sync the kernel may have dropped the pages: reread from disk.
            if isinstance(error, StoreTimeout):
                self._drop_connection()
        except apsw.Error:
            self._drop_connection()

    def _let_go(self, error: BaseException) -> None:
        """Detach an error from our cursors and from another caller's exception."""
        release_cursors(error, self._foreign)
        detach_context(error, self._foreign)

    def _drop_connection(self) -> None:
        self._reopen = True
        self._files.closed()
        with suppress(apsw.Error):  # a failing disk can fail this, too
            self._connection.close()
