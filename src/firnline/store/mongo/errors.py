"""Translates the driver's errors into Firnline's; the only module that does."""

from __future__ import annotations

import re
from typing import Final

from bson.errors import BSONError
from pymongo import errors as mongo

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

Failure = mongo.PyMongoError | BSONError | OverflowError | UnicodeEncodeError
FAILURES: Final = (mongo.PyMongoError, BSONError, OverflowError, UnicodeEncodeError)
"""Everything the driver raises; the last two are for values that BSON cannot store."""

_DUPLICATE: Final = 11000
_ASIDE: Final = frozenset({6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436})
_ERRORS: Final[tuple[tuple[frozenset[int], type[FirnlineError], str], ...]] = (
    (frozenset({14031, 28}), StoreFull, "out of disk space, nothing was written"),
    (frozenset({10334, 17280, 17419, 17420}), InputError, "too large for MongoDB"),
    (frozenset({13, 18, 8000}), StoreError, "authentication failed or permission denied"),
    (frozenset({50, 64, 202}), StoreTimeout, "timed out, outcome unknown"),
    (frozenset({112, 24}), StoreUnavailable, "write conflict, nothing was written"),
    (frozenset({264, 10058}), StoreReadOnly, "the database is read-only"),
)
_REFUSED: Final = (  # raised before anything is sent
    mongo.ServerSelectionTimeoutError,
    mongo.WaitQueueTimeoutError,
    mongo.ConfigurationError,
)


def translate_error(error: Failure, place: str, *, writing: bool = False) -> FirnlineError:
    """Translate a driver error. `writing`: after a lost connection the outcome is unknown."""
    if isinstance(error, BSONError | OverflowError | UnicodeEncodeError):
        return InputError(f"the value cannot be stored: {_first_line(error)}")
    if isinstance(error, mongo.DocumentTooLarge):
        return InputError(f"{place}: too large for MongoDB: {_first_line(error)}")
    if isinstance(error, mongo.InvalidOperation):
        return StoreNotOpen()
    if isinstance(error, _REFUSED):
        return StoreUnavailable(f"{place}: cannot reach the server: {_first_line(error)}")
    if is_lost(error):
        if writing:
            return StoreTimeout(f"{place}: connection lost during a write: {_first_line(error)}")
        return StoreUnavailable(f"{place}: cannot reach the server: {_first_line(error)}")
    return _translate_server_error(error, place)


def _translate_server_error(error: mongo.PyMongoError, place: str) -> FirnlineError:
    """Translate an error that the server returned."""
    code = code_of(error)
    for codes, ours, what in _ERRORS:
        if code in codes:
            return ours(f"{place}: {what}: {_first_line(error)}")
    if "checksum" in str(error) or "WT_PANIC" in str(error):
        return StoreCorrupt(f"{place}: the database is damaged")
    return StoreError(f"{place}: {type(error).__name__} {code}: {_first_line(error)}")


def is_lost(error: BaseException) -> bool:
    """Whether the connection was lost, or the server is not (or not yet) the primary."""
    if isinstance(error, mongo.ConnectionFailure):
        return not isinstance(error, _REFUSED)
    return isinstance(error, mongo.PyMongoError) and code_of(error) in _ASIDE


def code_of(error: mongo.PyMongoError) -> int:
    """The server's error code, 0 if there is none."""
    if isinstance(error, mongo.BulkWriteError):
        found = error.details.get("writeErrors") or error.details.get("writeConcernErrors") or []
        return int(found[0].get("code", 0)) if found else 0
    return int(getattr(error, "code", None) or 0)


def only_duplicates(error: mongo.BulkWriteError) -> bool:
    """Whether duplicate keys are the only errors."""
    wrong = error.details.get("writeErrors", [])
    concern = error.details.get("writeConcernErrors", [])
    return not concern and all(item.get("code") == _DUPLICATE for item in wrong)


def _first_line(error: BaseException) -> str:
    """The first line. The rest can quote values, or is the driver's internal state."""
    return re.split(r"\n|, full error| \(configured timeouts", str(error), maxsplit=1)[0][:200]
