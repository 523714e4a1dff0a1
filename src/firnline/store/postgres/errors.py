"""Translates the driver's errors into Firnline's; the only place that does."""

from __future__ import annotations

from typing import Final

import psycopg
import psycopg_pool
from psycopg import errors as pg

from firnline.errors import (
    FirnlineError,
    InputError,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreNotOpen,
    StoreReadOnly,
    StoreTimeout,
    StoreUnavailable,
)

REPEATABLE: Final = (pg.SerializationFailure, pg.DeadlockDetected)
"""A concurrent transaction caused a rollback; it can be retried."""

_LOST: Final = ("08", "57P01", "57P02", "57P03", "57P05", "25P03", "25P04")
_UNDONE: Final = ("25P03", "25P04")  # rolled back by the server: the client was too slow

_ERRORS: Final[tuple[tuple[tuple[type[Exception], ...], type[FirnlineError], str], ...]] = (
    ((pg.DiskFull,), StoreFull, "disk full, nothing was written"),
    ((pg.ReadOnlySqlTransaction,), StoreReadOnly, "the database is read-only"),
    ((pg.DataCorrupted, pg.IndexCorrupted), StoreCorrupt, "the database is damaged"),
    (REPEATABLE, StoreUnavailable, "conflict with concurrent transactions, nothing was written"),
    ((pg.LockNotAvailable,), StoreUnavailable, "another transaction holds the lock"),
    ((pg.QueryCanceled,), StoreUnavailable, "the statement was canceled"),
    ((pg.IoError,), StoreUnavailable, "the server's disk failed"),
    ((pg.InsufficientPrivilege,), StoreError, "the role lacks a privilege"),
    ((pg.CharacterNotInRepertoire, pg.UntranslatableCharacter), InputError, "cannot store text"),
    ((psycopg_pool.PoolTimeout,), StoreUnavailable, "timed out waiting for a connection"),
    ((psycopg_pool.PoolClosed,), StoreNotOpen, "the store is not open"),
    ((psycopg_pool.TooManyRequests,), StoreUnavailable, "too many waiting requests; slow down"),
)


def translate_error(error: psycopg.Error, place: str, *, committing: bool = False) -> FirnlineError:
    """Our error for the driver's. `committing`: a commit was sent but not acknowledged."""
    state = error.sqlstate or ""
    for kinds, ours, what in _ERRORS:
        if isinstance(error, kinds):
            return ours(f"{place}: {what}: {_first_line(error)}")
    if state.startswith("53"):  # such as memory or connections
        return StoreUnavailable(f"{place}: the server is out of resources: {_first_line(error)}")
    if is_lost(error):
        if committing and state not in _UNDONE:
            return StoreTimeout(
                f"{place}: the connection was lost during a commit: {_first_line(error)}"
            )
        return StoreUnavailable(f"{place}: the server cannot be reached: {_first_line(error)}")
    if isinstance(error, psycopg.DataError) and not state:  # rejected by the driver
        return InputError(f"the value cannot be stored: {_first_line(error)}")
    return StoreError(f"{place}: {type(error).__name__}: {_first_line(error)}")


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection was lost or could not be made."""
    state = error.sqlstate or ""
    if isinstance(error, psycopg_pool.PoolTimeout | psycopg_pool.TooManyRequests):
        return False
    return state.startswith(_LOST) or (isinstance(error, psycopg.OperationalError) and not state)


def _first_line(error: psycopg.Error) -> str:
    """The first line of the error; later lines can quote values."""
    said = error.diag.message_primary or str(error)
    return " ".join(said.split("\n")[:1])
