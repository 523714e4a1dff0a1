"""What routes share: strict JSON bodies, cursors, entity tags."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel

from firnline.errors import InputError, UnknownConversation, WrongType
from firnline.log import limits
from firnline.log.entry import Head
from firnline.log.message import encode_json
from firnline.log.wire import load_json
from firnline.memory import Memory
from firnline.store.rows import SEQ_MAX

_NAME_SHOWN: Final = 40


class _StrictRequest(Request):
    _read: Any

    async def read(self) -> None:
        """Parse the body by our rules: no NaN, limited nesting, storable text."""
        body = await self.body()
        if body and not _is_json(self.headers.get("content-type", "")):
            raise WrongType
        self._read = load_json(body) if body else None

    async def json(self) -> Any:
        """The parsed body."""
        return self._read


class StrictRoute(APIRoute):
    """A route whose body is parsed by `load_json`; unknown query parameters are errors."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler with a strict request."""
        handle = super().get_route_handler()
        takes_body = self.body_field is not None
        known = _query_of(self.dependant)

        async def strict(request: Request) -> Response:
            if request.scope["query_string"]:
                _check_query(request, known)
            checked = _StrictRequest(request.scope, request.receive)
            if takes_body:
                await checked.read()  # here, because FastAPI would replace the error message
            return await handle(checked)

        return strict


def _query_of(dependant: Dependant) -> list[str]:
    """The names of the query parameters of a route and its dependencies."""
    names = []
    for field in dependant.query_params:
        kind: Any = field.field_info.annotation
        several = isinstance(kind, type) and issubclass(kind, BaseModel)
        names += [*kind.model_fields] if several else [field.alias]
    return names + [name for other in dependant.dependencies for name in _query_of(other)]


def _check_query(request: Request, known: Sequence[str]) -> None:
    """Reject unknown parameters: a misspelled filter would be ignored silently."""
    message = f"unknown parameter; expected {', '.join(known) or 'none'}"
    unknown = [name[:_NAME_SHOWN] for name in request.query_params if name not in known]
    if unknown:
        raise RequestValidationError(
            [{"type": "extra_forbidden", "loc": ("query", n), "msg": message} for n in unknown]
        )


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )


def make_cursor(position: str | int) -> str:
    """An opaque cursor for a position in a list."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, kind: type[str | int]) -> Any:
    """The position of a cursor; None for the start. `InputError` if it is invalid."""
    if cursor is None:
        return None
    try:
        position = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        position = None
    if type(position) is not kind or not _is_position(position):
        raise InputError("cursor: invalid; use `next_cursor` of the previous page")
    return position


def _is_position(position: str | int) -> bool:
    """Whether it is a number or name that we could have written."""
    if isinstance(position, int):
        return 0 <= position <= SEQ_MAX
    return len(position) <= limits.NAME_CHARS_MAX


def json_response(
    body: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON response."""
    data = encode_json(body).encode()
    return Response(data, status, headers, media_type=JSONResponse.media_type)


def etag_response(request: Request, body: Any) -> Response:
    """A JSON response with its entity tag; 304 if the client has it already."""
    data = encode_json(body).encode()
    tag = f'W/"{hashlib.blake2b(data, digest_size=12).hexdigest()}"'
    known = [given.strip() for given in request.headers.get("if-none-match", "").split(",")]
    if tag in known or "*" in known:
        return Response(status_code=304, headers={"etag": tag})
    return Response(data, media_type=JSONResponse.media_type, headers={"etag": tag})


async def require_head(memory: Memory, conversation: str) -> Head:
    """The conversation's head; 404 if it does not exist or belongs to another tenant."""
    head = await memory.head(conversation)
    if head is None:
        raise UnknownConversation(f"there is no conversation {conversation!r}")
    return head
