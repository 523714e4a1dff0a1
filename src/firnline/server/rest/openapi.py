"""What the routes say of themselves in the OpenAPI document: errors, headers, identity."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final, TypeAlias

from fastapi import APIRouter
from fastapi.routing import APIRoute

from firnline.server.bodies import StrictRoute
from firnline.server.problems import MEDIA_TYPE

Responses: TypeAlias = dict[int | str, dict[str, Any]]

_PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}
_MEANING: Final = {
    400: "What was given cannot be taken.",
    401: "A valid API key is needed.",
    403: "The key lacks the scope, or the request comes from another site's page.",
    404: "There is no such thing here, or it is another tenant's: both answers are the same.",
    409: "Somebody else was first, or the idempotency key stands for something else.",
    413: "The body is too large.",
    415: "The body is not of the type that is taken here.",
    422: "A field is missing or wrong, or what must be in the context does not fit the budget.",
    429: "Too fast; `Retry-After` says when to come back.",
    502: "The model failed; what was stored stays stored.",
    503: "The server is starting or stopping, or its store is away.",
    504: "The model took too long; what was stored stays stored.",
}


def problems(*statuses: int) -> Responses:
    """These errors as documented responses."""
    return {status: _documented(_MEANING[status], HTTPStatus(status)) for status in statuses}


def _documented(what: str, status: HTTPStatus) -> dict[str, Any]:
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
        "description": "A problem as of RFC 9457.",
        "content": {MEDIA_TYPE: {"schema": _PROBLEM}},
    },
}
"""What any route may answer."""

MISSING: Final = problems(404)
"""What a route may answer that names something."""

_ETAG: Final = {
    "ETag": {"description": "For `If-None-Match`.", "schema": {"type": "string"}},
}
FOUND: Final[Responses] = {
    200: {"description": "Found.", "headers": _ETAG},
    304: {"description": "The client's copy, named by `If-None-Match`, is current."},
}
"""What a route that reads answers."""

REPLAYED: Final = {
    "Idempotent-Replayed": {
        "description": "`true` if an earlier request with this `Idempotency-Key` had done it.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}
LOCATION: Final = {
    "Location": {"description": "Where it is.", "schema": {"type": "string"}, "required": True}
}


def operation_id(route: APIRoute) -> str:
    """The route's own name, which is unique."""
    return route.name


def router(tag: str) -> APIRouter:
    """A router for one subject, whose bodies are read strictly."""
    return APIRouter(tags=[tag], route_class=StrictRoute, generate_unique_id_function=operation_id)
