"""What all routes share in the OpenAPI document: errors, headers, operation ids."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final, TypeAlias

from fastapi import APIRouter
from fastapi.routing import APIRoute

from firnline.server.bodies import StrictRoute
from firnline.server.problems import MEDIA_TYPE

Responses: TypeAlias = dict[int | str, dict[str, Any]]

_PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}
_ERRORS: Final = {
    400: "The input is invalid.",
    401: "A valid API key is required.",
    403: "The key lacks the scope, or the request comes from another site.",
    404: "Not found, or it belongs to another tenant; the response is the same.",
    409: "A concurrent change, or the idempotency key was used for another request.",
    413: "The body is too large.",
    415: "Unsupported content type.",
    422: "A field is missing or invalid, or the required context does not fit the budget.",
    429: "Too many requests; `Retry-After` says when to retry.",
    502: "The model failed; everything stored is unchanged.",
    503: "The server is starting or stopping, or its store is unavailable.",
    504: "The model timed out; everything stored is unchanged.",
}


def problems(*statuses: int) -> Responses:
    """Documented responses for these errors."""
    return {status: _document(_ERRORS[status], HTTPStatus(status)) for status in statuses}


def _document(what: str, status: HTTPStatus) -> dict[str, Any]:
    example = {
        "type": f"urn:firnline:{status.phrase.title().replace(' ', '')}",
        "title": status.phrase,
        "status": int(status),
        "detail": what,
        "instance": "/api/v1/conversations/support-4711",
        "code": status.phrase.title().replace(" ", ""),
        "retryable": status in (HTTPStatus.CONFLICT, *RETRYABLE),
    }
    return {"description": what, "content": {MEDIA_TYPE: {"schema": _PROBLEM, "example": example}}}


RETRYABLE: Final = frozenset({429, 502, 503, 504})

ALWAYS: Final[Responses] = {
    **problems(400, 401, 403, 413, 422, 429, 503),
    "default": {
        "description": "A problem (RFC 9457).",
        "content": {MEDIA_TYPE: {"schema": _PROBLEM}},
    },
}
"""Responses of every route."""

MISSING: Final = problems(404)
"""Responses of routes with a name in the path."""

_ETAG: Final = {"ETag": {"description": "For `If-None-Match`.", "schema": {"type": "string"}}}
FOUND: Final[Responses] = {
    200: {"description": "Found.", "headers": _ETAG},
    304: {"description": "The client's copy (`If-None-Match`) is current."},
}
"""Responses of routes that read."""
FOUND_OR_MISSING: Final[Responses] = {**FOUND, **MISSING}
"""Responses of routes that read something named in the path."""

REPLAYED: Final = {
    "Idempotent-Replayed": {
        "description": "`true` if an earlier request with this `Idempotency-Key` was stored.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}
LOCATION: Final = {
    "Location": {
        "description": "Path of the resource.",
        "schema": {"type": "string"},
        "required": True,
    }
}


def operation_id(route: APIRoute) -> str:
    """The unique name of the route."""
    return route.name


CONVERSATION: Final = "/conversations/{conversation}"
"""The path of one conversation."""


def router(tag: str, prefix: str = "") -> APIRouter:
    """A router for one tag, with strict bodies."""
    return APIRouter(
        prefix=prefix, tags=[tag], route_class=StrictRoute, generate_unique_id_function=operation_id
    )
