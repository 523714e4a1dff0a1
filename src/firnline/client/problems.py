"""The server's problems (RFC 9457) as the errors that the library raises. Pure."""

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
    409: errors.ConflictError,
    413: errors.BodyTooLarge,
    415: errors.WrongType,
    429: errors.TooFast,
    # Somebody on the way may say these; whether the server did it is not known then.
    502: errors.StoreTimeout,
    503: errors.StoreTimeout,
    504: errors.StoreTimeout,
}
_FACTS: Final = ("floor", "available", "blockers", "retry_after")
_BAD: Final = range(400, 500)


def error_of(problem: object, status: int = 500, wait: float | None = None) -> FirnlineError:
    """The error that a problem stands for; by its status alone if it is none of ours.

    `wait` is what a ``Retry-After`` said. The facts of the problem and its ``status`` are in the
    error's ``context``.
    """
    told: Mapping[str, Any] = problem if isinstance(problem, Mapping) else {}
    code, said = str(told.get("code", "")), told.get("status")
    status = said if isinstance(said, int) else status
    facts = {name: told[name] for name in _FACTS if told.get(name) is not None}
    if wait is not None:
        facts.setdefault("retry_after", wait)
    detail = told.get("detail") or f"the server answered with status {status}"
    return _kind(code, status)(str(detail), status=status, **facts)


def _kind(code: str, status: int) -> type[FirnlineError]:
    otherwise = errors.InputError if status in _BAD else FirnlineError
    return _KINDS.get(code) or _BY_STATUS.get(status, otherwise)
