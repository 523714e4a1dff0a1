"""Errors as HTTP responses: RFC 9457 problems, or the format of OpenAI or Anthropic."""

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
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from firnline.errors import FirnlineError, InputError, NotFound, outline
from firnline.server.base_urls import client_base_error, is_anthropic_path
from firnline.server.limits import ERRORS_TOLD_MAX

logger: Final = logging.getLogger("firnline.server")

_NAME_SHOWN: Final = 100
MEDIA_TYPE: Final = "application/problem+json"
_FACTS: Final = frozenset({"floor", "available", "blockers", "retry_after"})
"""Fields of an error's context that are sent to the client."""


def as_problem(error: FirnlineError, path: str) -> JSONResponse:
    """The error as an RFC 9457 problem."""
    facts = {name: error.context[name] for name in _FACTS & set(error.context)}
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
    """The error in OpenAI's format."""
    code = error.context.get("code") or error.code
    status = HTTPStatus.BAD_REQUEST if code == "context_length_exceeded" else error.status
    body = openai_body(status, str(error), code, error.context.get("param"))
    return JSONResponse(body, status, headers_of(error))


def openai_body(
    status: int, message: str, code: str | None, param: str | None = None
) -> dict[str, Any]:
    """An error body in OpenAI's format."""
    inner = {"message": message, "type": _openai_type(status), "param": param, "code": code}
    return {"error": inner}


def as_anthropic(error: FirnlineError) -> JSONResponse:
    """The error in Anthropic's format."""
    body = anthropic_body(error.status, str(error))
    if "details" in error.context:
        body["error"]["details"] = error.context["details"]
    return JSONResponse(body, error.status, headers_of(error))


def anthropic_body(status: int, message: str) -> dict[str, Any]:
    """An error body in Anthropic's format."""
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
    """Headers of an error response: when to retry, or how to authenticate."""
    headers = {}
    if error.status in (429, 503):
        headers["retry-after"] = str(math.ceil(error.context.get("retry_after", 1.0)) or 1)
    if error.status == 401:  # noqa: PLR2004 - Unauthorized
        headers["www-authenticate"] = 'Bearer realm="firnline"'
    return headers


def error_response(error: FirnlineError, path: str) -> Response:
    """The error in the format that the path calls for."""
    if "/v1/messages" in path:
        return as_anthropic(error)
    if path.startswith(("/v1/", "/c/")):
        return as_openai(error)
    return as_problem(error, path)


_NOT_FOUND: Final = "not found: there is no such path; see /openapi.json"


class _FrameworkError(FirnlineError):
    """An error of the web framework as one of ours."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status  # type: ignore[misc]
        self.headers = dict(headers or {})

    @property
    def code(self) -> str:
        return HTTPStatus(self.status).phrase.title().replace(" ", "").replace("-", "")


def install(app: FastAPI) -> None:
    """Install the error handlers of the application."""

    @app.exception_handler(FirnlineError)
    async def handle_firnline(request: Request, error: FirnlineError) -> Response:
        if error.status >= 500:  # noqa: PLR2004
            logger.error("%s: %s", error.code, outline(error))
        return _respond(error, request)

    @app.exception_handler(HTTPException)
    async def handle_http(request: Request, error: HTTPException) -> Response:
        no_route = error.status_code == HTTPStatus.NOT_FOUND  # other 404s are our own errors
        ours = _FrameworkError(
            error.status_code, _NOT_FOUND if no_route else error.detail, error.headers
        )
        response = _respond(ours, request)
        response.headers.update(ours.headers)
        return response

    @app.exception_handler(RequestValidationError)
    async def handle_validation(request: Request, error: RequestValidationError) -> Response:
        return error_response(
            _FrameworkError(422, _describe(error.errors())), request.scope["path"]
        )

    @app.exception_handler(ClientDisconnect)
    async def handle_disconnect(request: Request, _: ClientDisconnect) -> Response:
        error = InputError("the body is incomplete: the connection was closed")
        return error_response(error, request.scope["path"])

    @app.exception_handler(Exception)
    async def handle_unexpected(request: Request, error: Exception) -> Response:
        logger.error("internal error", exc_info=error)
        return error_response(
            FirnlineError("internal error; see the server's log"), request.scope["path"]
        )


def _respond(error: FirnlineError, request: Request) -> Response:
    """The error, or for a client whose base URL is wrong the one that says so."""
    path, headers, server = request.url.path, request.headers, str(request.base_url).rstrip("/")
    wrong = client_base_error(path, headers, server) if error.status == HTTPStatus.NOT_FOUND else ""
    if not wrong:
        return error_response(error, request.scope["path"])
    show = as_anthropic if is_anthropic_path(path, headers) else as_openai
    return show(NotFound(wrong))


def _describe(errors: Sequence[Any]) -> str:
    """The first fields and their errors, without the values."""
    told = [f"{_field_name(wrong['loc'])}: {wrong['msg']}" for wrong in errors[:ERRORS_TOLD_MAX]]
    more = len(errors) - len(told)
    return "; ".join([*told, f"and {more:,} more errors"] if more else told)


def _field_name(path: Sequence[object]) -> str:
    return ".".join(str(part)[:_NAME_SHOWN] for part in path)
