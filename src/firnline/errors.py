"""Every error Firnline raises on purpose.

The tree, with the HTTP status of each error and whether a retry can help::

    FirnlineError
    ├── InputError              400  no      an argument or a body is invalid
    │   ├── MessageTooLarge     413  no
    │   ├── UnknownConversation 404  no
    │   ├── UnknownPerson       404  no
    │   ├── NotFound            404  no      from the server: nothing is there
    │   ├── BodyTooLarge        413  no
    │   ├── WrongType           415  no      the body must be JSON
    │   ├── HeadersTooLarge     431  no
    │   └── BadURL              400  no
    ├── Unauthorized            401  no      from the server, as the next three
    ├── Forbidden               403  no
    ├── RequestTimeout          408  yes     from the server: the request arrived too slowly
    ├── TooFast                 429  yes     later
    ├── NotReady                503  yes     the server is starting or stopping
    ├── ConflictError           409  yes     after reading again
    │   └── KeyReused           409  no      the idempotency key belongs to other messages
    ├── BudgetError             422  no      required content does not fit the budget
    ├── ModelError              502  yes     the model failed; stored data is unchanged
    │   ├── ModelRefused        502  no      the endpoint rejected it: check key, name and input
    │   └── ModelTimeout        504  yes
    └── StoreError              503  no
        ├── StoreUnavailable    503  yes     nothing was written
        ├── StoreTimeout        503  yes     outcome unknown: retry with the same idempotency key
        ├── StoreFull           507  yes     when there is room again
        ├── StoreReadOnly       503  no
        ├── StoreTooNew         503  no      written by a newer Firnline
        ├── StoreNotOpen        503  no      used before it was opened, or after it was closed
        └── StoreCorrupt        500  no      stop writing, run `firnline doctor`

A class's docstring is its default message. ``context`` holds values for logs and for programs.
"""

from __future__ import annotations

import os
import re
from typing import Any, ClassVar, Final

_CODE: Final = r"[0-9]{3}|[a-z][a-z0-9_]{0,39}"
_CHARS_MAX: Final = 2_000
"""A message may quote what is wrong, which may be megabytes; then its middle is left out."""


class FirnlineError(Exception):
    """Something went wrong in Firnline."""

    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None, **context: Any) -> None:
        text = message or (type(self).__doc__ or "").strip()
        if len(text) > _CHARS_MAX:
            text = f"{text[: _CHARS_MAX // 2]} … {text[-_CHARS_MAX // 2 :]}"
        super().__init__(text)
        self.context = context

    @property
    def code(self) -> str:
        """The error's stable name for programs, such as ``ConflictError``."""
        return type(self).__name__


class InputError(FirnlineError):
    """The input is invalid."""

    status = 400


class MessageTooLarge(InputError):
    """The message is too large."""

    status = 413


class UnknownConversation(InputError):
    """The conversation does not exist."""

    status = 404


class UnknownPerson(InputError):
    """Nothing is known of this person: no conversation is with them."""

    status = 404


class BadURL(InputError):
    """The store's URL is not supported."""


class NotFound(InputError):
    """Nothing was found at this address."""

    status = 404


class BodyTooLarge(InputError):
    """The request's body is too large."""

    status = 413


class WrongType(InputError):
    """The body must be JSON; send Content-Type: application/json."""

    status = 415


class HeadersTooLarge(InputError):
    """The request's headers are too large."""

    status = 431


class Unauthorized(FirnlineError):
    """A valid API key is required; send Authorization: Bearer fl_..."""

    status = 401


class Forbidden(FirnlineError):
    """The API key does not allow this."""

    status = 403


class RequestTimeout(FirnlineError):
    """The request took too long to arrive; send it again."""

    status = 408
    retryable = True


class TooFast(FirnlineError):
    """Too many requests; retry later."""

    status = 429
    retryable = True


class NotReady(FirnlineError):
    """The server is starting or stopping; retry in a moment."""

    status = 503
    retryable = True


class ConflictError(FirnlineError):
    """Another process changed it first; read again, then retry."""

    status = 409
    retryable = True


class KeyReused(ConflictError):
    """The idempotency key was used for other messages; use a new key."""

    retryable = False


class BudgetError(FirnlineError):
    """The required content does not fit the budget.

    ``context`` has ``floor`` (the tokens it would take), ``available`` and ``blockers``.
    """

    status = 422


class ModelError(FirnlineError):
    """The model failed; stored data is unchanged."""

    status = 502
    retryable = True


class ModelRefused(ModelError):
    """The model's endpoint rejected the request; a retry cannot help."""

    retryable = False


class ModelTimeout(ModelError):
    """The model took too long."""

    status = 504


class StoreError(FirnlineError):
    """The store failed."""

    status = 503


class StoreUnavailable(StoreError):
    """The store cannot be reached or is busy; nothing was written."""

    retryable = True


class StoreTimeout(StoreError):
    """The outcome is unknown; retry with the same idempotency key, or read again."""

    retryable = True


class StoreFull(StoreError):
    """The disk is full; nothing was written, and existing data stays readable."""

    status = 507
    retryable = True


class StoreReadOnly(StoreError):
    """The store can be read but not written."""


class StoreTooNew(StoreError):
    """The store was written by a newer Firnline; upgrade Firnline to open it."""


class StoreNotOpen(StoreError):
    """The store is not open: use `async with Memory.open(...)`, or await `start()` first."""


class StoreCorrupt(StoreError):
    """Stored data is damaged and is not returned. Run `firnline doctor`."""

    status = 500


def outline(error: BaseException) -> str:
    """The error for a log: our own text, never that of another program.

    An error of a model's endpoint, a tool or a library may repeat a message, so those are
    logged as their kind, with the status and the code.
    """
    if isinstance(error, FirnlineError) and not isinstance(error, ModelError):
        return str(error)
    details = getattr(error, "context", {})
    named = {name: details.get(name) for name in ("status", "code")}
    facts = [f"{name} {value}" for name, value in named.items() if _is_code(value)]
    if details.get("asked") is False:
        facts.append(f"not called for another {details.get('retry_after', 0):.0f} s")
    return f"{type(error).__name__} ({', '.join(facts)})" if facts else type(error).__name__


def cause(error: BaseException) -> str:
    """Why a connection failed, as the system says it; else the kind of the error."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        elif isinstance(inner, ConnectionError) and inner.errno:
            return os.strerror(inner.errno)  # asyncio's text is not the system's
        elif isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        else:
            inner = inner.__cause__ or inner.__context__
    return type(error).__name__


def _is_code(value: object) -> bool:
    return value is not None and re.fullmatch(_CODE, str(value)) is not None
