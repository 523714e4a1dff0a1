"""What the routes share: bodies read strictly, cursors, entity tags."""

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
from firnline.log.entry import Head
from firnline.log.message import encode_json
from firnline.log.wire import load_json
from firnline.memory import Memory

_NAME_SHOWN: Final = 40


class _StrictRequest(Request):
    _read: Any

    async def read(self) -> None:
        """Take the body by our own rules: no NaN, no bottomless nesting, storable text."""
        body = await self.body()
        if body and not _is_json(self.headers.get("content-type", "")):
            raise WrongType
        self._read = load_json(body) if body else None

    async def json(self) -> Any:
        """What was read."""
        return self._read


class StrictRoute(APIRoute):
    """A route whose JSON body is read by `load_json`, and that knows every word of its query."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's own, with a strict request."""
        handle = super().get_route_handler()
        takes_body = self.body_field is not None
        known = _query_of(self.dependant)

        async def strict(request: Request) -> Response:
            if request.scope["query_string"]:
                _check_query(request, known)
            given = _StrictRequest(request.scope, request.receive)
            if takes_body:
                await given.read()  # here, because what is raised inside loses its words
            return await handle(given)

        return strict


def _query_of(dependant: Dependant) -> list[str]:
    """The names of the parameters that a route and what it depends on take."""
    names = []
    for field in dependant.query_params:
        kind: Any = field.field_info.annotation
        several = isinstance(kind, type) and issubclass(kind, BaseModel)
        names += [*kind.model_fields] if several else [field.alias]
    return names + [name for other in dependant.dependencies for name in _query_of(other)]


def _check_query(request: Request, known: Sequence[str]) -> None:
    """A filter that is misspelt would be none, and its answer a wrong one."""
    takes = f"it takes {', '.join(known)}" if known else "it takes none"
    message = f"there is no such parameter; {takes}"
    strange = [name[:_NAME_SHOWN] for name in request.query_params if name not in known]
    if strange:
        told = [{"type": "extra_forbidden", "loc": ("query", n), "msg": message} for n in strange]
        raise RequestValidationError(told)


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )


def make_cursor(position: str | int) -> str:
    """A position in a list, as something a client hands back unread."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, kind: type[str | int]) -> Any:
    """The position that a cursor stands for; None for the start. `InputError` if it is not ours."""
    if cursor is None:
        return None
    try:
        position = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        position = None
    if type(position) is not kind:
        raise InputError("cursor: not one that this list gave out")
    return position


def json_response(
    body: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """The body as JSON."""
    data = encode_json(body).encode()
    return Response(data, status, headers, media_type=JSONResponse.media_type)


def etag_response(request: Request, body: Any) -> Response:
    """The body with its entity tag; 304 if the client has it already."""
    data = encode_json(body).encode()
    tag = f'W/"{hashlib.blake2b(data, digest_size=12).hexdigest()}"'
    known = [given.strip() for given in request.headers.get("if-none-match", "").split(",")]
    if tag in known or "*" in known:
        return Response(status_code=304, headers={"etag": tag})
    return Response(data, media_type=JSONResponse.media_type, headers={"etag": tag})


async def require_head(memory: Memory, conversation: str) -> Head:
    """The conversation's head; one that does not exist, or is another tenant's, is a 404."""
    head = await memory.head(conversation)
    if head is None:
        raise UnknownConversation(f"there is no conversation {conversation!r}")
    return head
