"""Errors as HTTP answers: RFC 9457 problems, or the shape that a provider's clients expect."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from firnline.errors import FirnlineError, outline

logger: Final = logging.getLogger("firnline.server")

MEDIA_TYPE: Final = "application/problem+json"
_SHOWN: Final = frozenset({"floor", "available", "blockers", "retry_after"})
"""Facts of an error that the caller may see."""


def as_problem(error: FirnlineError, path: str) -> JSONResponse:
    """The error as a problem of RFC 9457."""
    facts = {name: error.context[name] for name in _SHOWN & set(error.context)}
    body = {
        "type": f"urn:firnline:{error.code}",
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": str(error),
        "instance": path,
        "code": error.code,
        "retryable": error.retryable,
        **facts,
    }
    return JSONResponse(body, error.status, headers_of(error), media_type=MEDIA_TYPE)


def as_openai(error: FirnlineError) -> JSONResponse:
    """The error as OpenAI's clients know it."""
    code = error.context.get("code") or error.code
    status = HTTPStatus.BAD_REQUEST if code == "context_length_exceeded" else error.status
    inner = {"message": str(error), "type": _openai_type(status), "param": None, "code": code}
    return JSONResponse({"error": inner}, status, headers_of(error))


def as_anthropic(error: FirnlineError) -> JSONResponse:
    """The error as Anthropic's clients know it."""
    body = anthropic_body(error.status, str(error))
    return JSONResponse(body, error.status, headers_of(error))


def anthropic_body(status: int, message: str) -> dict[str, Any]:
    """An error's body as Anthropic's clients know it."""
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
    kinds |= {413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error"}
    kinds |= {503: "overloaded_error", 529: "overloaded_error"}
    otherwise = "invalid_request_error" if status < 500 else "api_error"  # noqa: PLR2004
    inner = {"type": kinds.get(status, otherwise), "message": message}
    return {"type": "error", "error": inner}


def _openai_type(status: int) -> str:
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    return kinds.get(status, "invalid_request_error" if status < 500 else "api_error")  # noqa: PLR2004


def headers_of(error: FirnlineError) -> dict[str, str]:
    """What else the answer has to say: when to try again, or how to say who one is."""
    headers = {}
    if error.status in (429, 503):
        headers["retry-after"] = str(math.ceil(error.context.get("retry_after", 1.0)) or 1)
    if error.status == 401:  # noqa: PLR2004 - Unauthorized
        headers["www-authenticate"] = 'Bearer realm="firnline"'
    return headers


def answer(error: FirnlineError, path: str) -> Response:
    """The error in the shape that belongs to the path."""
    if "/v1/messages" in path:
        return as_anthropic(error)
    if path.startswith(("/v1/", "/c/")):
        return as_openai(error)
    return as_problem(error, path)


_NOWHERE: Final = "there is nothing at this address; /openapi.json lists what there is"


class _Told(FirnlineError):
    """An error of the framework's as one of ours."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status  # type: ignore[misc]
        self.headers = dict(headers or {})

    @property
    def code(self) -> str:
        return HTTPStatus(self.status).phrase.title().replace(" ", "").replace("-", "")


def install(app: FastAPI) -> None:
    """Let the app answer every error so."""

    @app.exception_handler(FirnlineError)
    async def ours(request: Request, error: FirnlineError) -> Response:
        if error.status >= 500:  # noqa: PLR2004
            logger.error("%s: %s", error.code, outline(error))
        return answer(error, request.scope["path"])

    @app.exception_handler(HTTPException)
    async def theirs(request: Request, error: HTTPException) -> Response:
        nowhere = error.status_code == HTTPStatus.NOT_FOUND  # what is missing elsewhere is ours
        told = _Told(error.status_code, _NOWHERE if nowhere else error.detail, error.headers)
        response = answer(told, request.scope["path"])
        response.headers.update(told.headers)
        return response

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return answer(_Told(422, _places(error.errors())), request.scope["path"])

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        logger.error("a mistake in Firnline", exc_info=error)
        return answer(
            FirnlineError("a mistake in Firnline; it is in the log"), request.scope["path"]
        )


def _places(errors: Sequence[Any]) -> str:
    """What is wrong where, without repeating what was given."""
    return "; ".join(f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}" for wrong in errors)
