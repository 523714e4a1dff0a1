"""Every error Firnline raises on purpose.

The tree, with the HTTP status each one answers with and whether trying again can help::

    FirnlineError
    ├── InputError              400  no      what was given cannot be taken
    │   ├── MessageTooLarge     413  no
    │   ├── UnknownConversation 404  no
    │   ├── NotFound            404  no      of the server: nothing is there
    │   ├── BodyTooLarge        413  no
    │   ├── WrongType           415  no      the body is to be JSON
    │   └── BadURL              400  no
    ├── Unauthorized            401  no      of the server, as the next three
    ├── Forbidden               403  no
    ├── TooFast                 429  yes     later
    ├── NotReady                503  yes     it is starting or stopping
    ├── ConflictError           409  yes     after reading again
    │   └── KeyReused           409  no      an idempotency key stands for other messages
    ├── BudgetError             422  no      what must be in the context does not fit
    ├── ModelError              502  yes     the model failed; nothing stored is touched
    │   ├── ModelRefused        502  no      it rejects the request: key, name or input are wrong
    │   └── ModelTimeout        504  yes
    └── StoreError              503  no
        ├── StoreUnavailable    503  yes     nothing was written
        ├── StoreTimeout        503  yes     outcome unknown: retry with the same idempotency key
        ├── StoreFull           507  yes     once there is room again
        ├── StoreReadOnly       503  no
        ├── StoreTooNew         503  no      written by a newer Firnline
        ├── StoreNotOpen        503  no      used before it is opened, or after it is closed
        └── StoreCorrupt        500  no      stop writing, run `firnline doctor`

A class's docstring is its default message. ``context`` holds the facts for logs and for machines.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

_CODE: Final = r"[0-9]{3}|[a-z][a-z0-9_]{0,39}"


class FirnlineError(Exception):
    """Something went wrong in Firnline."""

    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None, **context: Any) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())
        self.context = context

    @property
    def code(self) -> str:
        """The error's stable name for machines, such as ``ConflictError``."""
        return type(self).__name__


class InputError(FirnlineError):
    """The input cannot be taken as it is."""

    status = 400


class MessageTooLarge(InputError):
    """The message is larger than Firnline takes."""

    status = 413


class UnknownConversation(InputError):
    """There is no such conversation."""

    status = 404


class BadURL(InputError):
    """The store's URL is not understood."""


class NotFound(InputError):
    """There is nothing here."""

    status = 404


class BodyTooLarge(InputError):
    """The request's body is too large."""

    status = 413


class WrongType(InputError):
    """The body is to be JSON: say Content-Type: application/json."""

    status = 415


class Unauthorized(FirnlineError):
    """A valid API key is needed: Authorization: Bearer fl_..."""

    status = 401


class Forbidden(FirnlineError):
    """The API key does not allow this."""

    status = 403


class TooFast(FirnlineError):
    """Too many requests; try again later."""

    status = 429
    retryable = True


class NotReady(FirnlineError):
    """The server is starting or stopping; try again in a moment."""

    status = 503
    retryable = True


class ConflictError(FirnlineError):
    """Somebody else was first; read again and decide."""

    status = 409
    retryable = True


class KeyReused(ConflictError):
    """The idempotency key was used for other messages; choose another key for these."""

    retryable = False


class BudgetError(FirnlineError):
    """What must be in the context does not fit into the budget.

    ``context`` has ``floor`` (the tokens it would take), ``available`` and ``blockers``.
    """

    status = 422


class ModelError(FirnlineError):
    """The model failed; everything stored is as it was."""

    status = 502
    retryable = True


class ModelRefused(ModelError):
    """The model's endpoint rejects the request; trying again cannot help."""

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
    """There is no room left; nothing was written and everything earlier is readable."""

    status = 507
    retryable = True


class StoreReadOnly(StoreError):
    """The store can be read but not written."""


class StoreTooNew(StoreError):
    """The store was written by a newer Firnline; this one will not touch it."""


class StoreNotOpen(StoreError):
    """The store is not open: use `async with Memory.open(...)`, or await `start()` first."""


class StoreCorrupt(StoreError):
    """What is stored is damaged; it is not served. Run `firnline doctor`."""

    status = 500


def outline(error: BaseException) -> str:
    """The error for a log: in our own words, never in somebody else's.

    What a model's endpoint, a tool or a library says may repeat a message, so of their errors there
    is only the kind, with the status and the code.
    """
    if isinstance(error, FirnlineError) and not isinstance(error, ModelError):
        return str(error)
    known = getattr(error, "context", {})
    facts = [f"{name} {known[name]}" for name in ("status", "code") if _is_code(known.get(name))]
    if known.get("asked") is False:
        facts.append(f"not asked for another {known.get('retry_after', 0):.0f} s")
    return f"{type(error).__name__} ({', '.join(facts)})" if facts else type(error).__name__


def _is_code(value: object) -> bool:
    return value is not None and re.fullmatch(_CODE, str(value)) is not None
