"""Problems (RFC 9457) as the errors of the library. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from firnline import errors
from firnline.errors import FirnlineError

_KINDS: Final[Mapping[str, type[FirnlineError]]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, FirnlineError)
}
_BY_STATUS: Final[Mapping[int, type[FirnlineError]]] = {
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    408: errors.RequestTimeout,
    409: errors.ConflictError,
    413: errors.BodyTooLarge,
    415: errors.WrongType,
    429: errors.TooFast,
    431: errors.HeadersTooLarge,
    # A proxy may return these, so the outcome is unknown.
    502: errors.StoreTimeout,
    503: errors.StoreTimeout,
    504: errors.StoreTimeout,
}
_FACTS: Final = ("floor", "available", "blockers", "retry_after")
_BAD: Final = range(400, 500)


def error_of(problem: object, status: int = 500, wait: float | None = None) -> FirnlineError:
    """The error of a problem; by its status alone if it is not from Firnline.

    `wait` is the value of ``Retry-After``. The facts of the problem and its ``status`` are in the
    error's ``context``.
    """
    body: Mapping[str, Any] = problem if isinstance(problem, Mapping) else {}
    code, own = str(body.get("code", "")), body.get("status")
    status = own if isinstance(own, int) else status
    facts = {name: body[name] for name in _FACTS if body.get(name) is not None}
    if wait is not None:
        facts.setdefault("retry_after", wait)
    detail = body.get("detail") or f"the server returned status {status}"
    return _kind(code, status)(str(detail), status=status, **facts)


def _kind(code: str, status: int) -> type[FirnlineError]:
    otherwise = errors.InputError if status in _BAD else FirnlineError
    return _KINDS.get(code) or _BY_STATUS.get(status, otherwise)
