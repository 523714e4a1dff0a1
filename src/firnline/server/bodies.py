"""What routes share: strict JSON bodies, cursors, entity tags."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from firnline.errors import InputError, UnknownConversation, WrongType
from firnline.log import limits
from firnline.log.entry import Head
from firnline.log.message import encode_json
from firnline.log.threads import run_by_size, text_size
from firnline.log.wire import load_json
from firnline.memory import Memory
from firnline.store.rows import SEQ_MAX

NAME_SHOWN: Final = 40
_TIME_CHARS: Final = 40
"""Of a position in a list by time, next to a name."""


class _StrictRequest(Request):
    _read: Any = None

    async def read(self) -> None:
        """Parse the body by our rules: no NaN, limited nesting, storable text."""
        body = await self.body()
        if body and not _is_json(self.headers.get("content-type", "")):
            raise WrongType
        if body:
            self._read = await run_by_size(len(body), partial(load_json, body))

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
    unknown = [name[:NAME_SHOWN] for name in request.query_params if name not in known]
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
    return len(position) <= limits.NAME_CHARS_MAX + _TIME_CHARS


class JsonResponse(Response):
    """A JSON response, encoded when it is sent: in a thread if it is large."""

    def __init__(
        self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(b"", status, headers, media_type=JSONResponse.media_type)
        self._value, self._own_headers = value, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Encode and send it."""
        work = partial(encode_body, self._value)
        data = await run_by_size(text_size(self._value), work)
        await self._with_body(data, Headers(scope=scope))(scope, receive, send)

    def _with_body(self, data: bytes, request_headers: Headers) -> Response:  # noqa: ARG002
        return Response(data, self.status_code, self._own_headers, media_type=self.media_type)


class _TaggedResponse(JsonResponse):
    """The same with its entity tag; 304 if the client has it already."""

    def _with_body(self, data: bytes, request_headers: Headers) -> Response:
        tag = f'W/"{hashlib.blake2b(data, digest_size=12).hexdigest()}"'
        known = [given.strip() for given in request_headers.get("if-none-match", "").split(",")]
        if tag in known or "*" in known:
            return Response(status_code=304, headers={"etag": tag})
        return Response(data, media_type=self.media_type, headers={"etag": tag})


def encode_body(value: Any) -> bytes:
    """The value as JSON."""
    return "".join(json_pieces(value)).encode()


def json_pieces(value: Any) -> Iterator[str]:
    """The value as JSON, in pieces: encoding one keeps all other threads waiting."""
    if text_size(value) <= limits.LOOP_CHARS_MAX:
        yield encode_json(value)
    elif isinstance(value, dict):
        yield from ("{", *_inner_pieces(list(value.items()), dict), "}")
    elif isinstance(value, list | tuple):
        yield from ("[", *_inner_pieces(value, list), "]")
    else:  # a long text
        yield encode_json(value)


def _inner_pieces(items: Sequence[Any], kind: type[dict[str, Any] | list[Any]]) -> Iterator[str]:
    """What stands between the brackets of a `kind` of these items."""
    if text_size(items) <= limits.LOOP_CHARS_MAX:
        yield encode_json(kind(items))[1:-1]
    elif len(items) > 1:
        middle = len(items) // 2
        yield from _inner_pieces(items[:middle], kind)
        yield ","
        yield from _inner_pieces(items[middle:], kind)
    elif kind is dict:
        ((name, value),) = items
        yield f"{encode_json(name)}:"
        yield from json_pieces(value)
    else:
        yield from json_pieces(items[0])


def json_response(
    body: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON response."""
    return JsonResponse(body, status, headers)


def etag_response(request: Request, body: Any) -> Response:  # noqa: ARG001 - see its headers
    """A JSON response with its entity tag; 304 if the client has it already."""
    return _TaggedResponse(body)


async def require_head(memory: Memory, conversation: str) -> Head:
    """The conversation's head; 404 if it does not exist or belongs to another tenant."""
    head = await memory.head(conversation)
    if head is None:
        raise UnknownConversation(f"there is no conversation {conversation!r}")
    return head
