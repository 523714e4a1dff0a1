"""PostgreSQL's errors as ours; the one place where that is done."""

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
"""Somebody else was in the way; the transaction was undone and can be tried again."""

_LOST: Final = ("08", "57P01", "57P02", "57P03", "57P05", "25P03", "25P04")
_UNDONE: Final = ("25P03", "25P04")  # by the server, because somebody stood still too long

_ERRORS: Final[tuple[tuple[tuple[type[Exception], ...], type[FirnlineError], str], ...]] = (
    ((pg.DiskFull,), StoreFull, "no room left, nothing was written"),
    ((pg.ReadOnlySqlTransaction,), StoreReadOnly, "it can be read but not written"),
    ((pg.DataCorrupted, pg.IndexCorrupted), StoreCorrupt, "the database is damaged"),
    (REPEATABLE, StoreUnavailable, "others are in the way, nothing was written"),
    ((pg.LockNotAvailable,), StoreUnavailable, "another transaction holds what is needed"),
    ((pg.QueryCanceled,), StoreUnavailable, "the statement was cancelled"),
    ((pg.IoError,), StoreUnavailable, "the server's disk failed"),
    ((pg.InsufficientPrivilege,), StoreError, "the role lacks a right"),
    ((pg.CharacterNotInRepertoire, pg.UntranslatableCharacter), InputError, "it cannot be stored"),
    ((psycopg_pool.PoolTimeout,), StoreUnavailable, "no connection within the time"),
    ((psycopg_pool.PoolClosed,), StoreNotOpen, "the store is not open"),
    ((psycopg_pool.TooManyRequests,), StoreUnavailable, "too many are waiting; slow down"),
)


def translate_error(error: psycopg.Error, place: str, *, committing: bool = False) -> FirnlineError:
    """Our error for the driver's. `committing`: a commit was sent and its answer did not come."""
    state = error.sqlstate or ""
    for kinds, ours, what in _ERRORS:
        if isinstance(error, kinds):
            return ours(f"{place}: {what}: {_first_line(error)}")
    if state.startswith("53"):  # out of memory, of connections
        return StoreUnavailable(f"{place}: the server has no room for more: {_first_line(error)}")
    if is_lost(error):
        if committing and state not in _UNDONE:
            return StoreTimeout(
                f"{place}: the connection was lost in a commit: {_first_line(error)}"
            )
        return StoreUnavailable(f"{place}: it cannot be reached: {_first_line(error)}")
    if isinstance(error, psycopg.DataError) and not state:  # refused before it was sent
        return InputError(f"it cannot be stored: {_first_line(error)}")
    return StoreError(f"{place}: {type(error).__name__}: {_first_line(error)}")


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, or was never there."""
    state = error.sqlstate or ""
    if isinstance(error, psycopg_pool.PoolTimeout | psycopg_pool.TooManyRequests):
        return False
    return state.startswith(_LOST) or (isinstance(error, psycopg.OperationalError) and not state)


def _first_line(error: psycopg.Error) -> str:
    """The server's first line. What follows can quote values."""
    said = error.diag.message_primary or str(error)
    return " ".join(said.split("\n")[:1])
