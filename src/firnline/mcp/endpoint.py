"""MCP over HTTP: one URL, no sessions; each request gets a JSON response.

The caller is identified by an API key before the protocol starts; nothing in a request can select
another tenant.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import INVALID_REQUEST, PARSE_ERROR
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firnline.errors import InputError
from firnline.log.limits import MCP_VALUES_MAX
from firnline.log.text import USER_HEADERS, person_name
from firnline.log.threads import run_by_size
from firnline.log.wire import load_json
from firnline.mcp.server import build
from firnline.memory import Memory

BODY_BYTES_MAX: Final = 4 * 1024 * 1024
_READ: Final = "read"
_WRITE: Final = "write"


class KeyHolder(Protocol):
    """A caller that passed authentication: an id, a tenant and scopes."""

    @property
    def id(self) -> str:
        """The id of the API key."""
        ...

    @property
    def tenant(self) -> str:
        """The tenant whose conversations the caller may use."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """The permissions: ``read``, ``write``."""
        ...


class KeyChecker(Protocol):
    """Looks up an API key, as `firnline.server.keys.Keys` does."""

    async def check(self, token: str) -> KeyHolder | None:
        """The caller, or None if the key is not valid."""
        ...


Authenticate: TypeAlias = Callable[[Scope], Awaitable[KeyHolder | None]]
"""Returns the caller of a request, or None if it is not authenticated."""

_caller: ContextVar[KeyHolder] = ContextVar("firnline_mcp_asking")
_person: ContextVar[str | None] = ContextVar("firnline_mcp_person")


def named_person(scope: Scope) -> str | None:
    """The person that a header of the request names; None if it has no such header.

    `InputError` if it does not contain a name: such a request must not see everyone's messages.
    """
    headers = Headers(scope=scope)
    for header in USER_HEADERS:
        if header in headers:
            if len(headers.getlist(header)) == 1 and (name := person_name(headers[header])):
                return name
            raise InputError(f"the header {header} must contain the name of one person")
    return None


class Endpoint:
    """An ASGI application for one path, such as ``/mcp``. It responds while it is `running`.

    `memory_of` returns a tenant's memory, and `who` the caller of a request: `by_key`, or your own.
    `charge` is called with a caller's id and the tokens that it stored or received.
    `person` returns whom a request is for, by default from the header ``X-Firnline-User``; see
    `build`.
    """

    def __init__(
        self,
        memory_of: Callable[[str], Awaitable[Memory]],
        who: Authenticate,
        *,
        charge: Callable[[str, int], None] = lambda _, __: None,
        person: Callable[[Scope], str | None] = named_person,
        zone: str = "UTC",
        body_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        self._memory_of, self._who, self._charge = memory_of, who, charge
        self._person = person
        self._zone, self._body_bytes_max = zone, body_bytes_max
        self._app: ASGIApp = _closed

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Respond to requests; enter this in the application's lifespan."""
        server = build(
            lambda: self._memory_of(_caller.get().tenant),
            may_write=lambda: _WRITE in _caller.get().scopes,
            charge=lambda tokens: self._charge(_caller.get().id, tokens),
            person=_person.get,
            zone=self._zone,
        )
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=self._body_bytes_max
        )
        async with manager.run():
            self._app = manager.handle_request
            try:
                yield
            finally:
                self._app = _closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        who = await self._who(scope)
        if who is None or _READ not in who.scopes:
            await _refusal(401 if who is None else 403)(scope, receive, send)
            return
        try:
            _person.set(self._person(scope))
        except InputError as error:
            problem = _error(INVALID_REQUEST, str(error))
            await JSONResponse(problem, status_code=400)(scope, receive, send)
            return
        _caller.set(who)  # each request is a task; the tasks it starts inherit this
        if scope["method"] == "POST":
            await self._pass_on(scope, receive, send)
        else:  # the server never starts a stream
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give a request to the SDK, which reads its body on the event loop: if that is fast."""
        pieces: list[Message] = []
        size = 0
        while size <= self._body_bytes_max:  # the SDK refuses a longer one
            pieces.append(await receive())
            size += len(pieces[-1].get("body", b""))
            if not pieces[-1].get("more_body"):
                body = b"".join(piece.get("body", b"") for piece in pieces)
                if body and (problem := await run_by_size(size, partial(_problem_of, body))):
                    await JSONResponse(problem, status_code=400)(scope, receive, send)
                    return
                break

        async def replay() -> Message:
            return pieces.pop(0) if pieces else await receive()

        await self._app(scope, replay, send)


def _problem_of(body: bytes) -> dict[str, Any] | None:
    """Why a body is not read, as JSON-RPC; None if nothing is wrong with it."""
    if body.count(b",") > MCP_VALUES_MAX and (values := _commas(body)) > MCP_VALUES_MAX:
        text = f"{values} values in a request; the limit is {MCP_VALUES_MAX}: send less at once"
        return _error(INVALID_REQUEST, text)
    try:
        load_json(body)
    except InputError as error:
        return _error(PARSE_ERROR, str(error))
    return None


def _commas(body: bytes) -> int:
    """The commas of JSON that are not in its strings: about as many as it has values."""
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return sum(piece.count(b",") for piece in unescaped.split(b'"')[::2])


def _error(code: int, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}


def by_key(keys: KeyChecker) -> Authenticate:
    """Authenticate by API key: ``Authorization: Bearer fl_...``."""

    async def who(scope: Scope) -> KeyHolder | None:
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        return await keys.check(token) if kind.lower() == "bearer" else None

    return who


def _refusal(status: int) -> Response:
    what = "invalid_token" if status == 401 else "insufficient_scope"  # noqa: PLR2004
    problem = {
        "error": what,
        "error_description": "a valid API key with the scope read is required",
    }
    return JSONResponse(problem, status, {"WWW-Authenticate": f'Bearer error="{what}"'})


async def _closed(scope: Scope, receive: Receive, send: Send) -> None:
    """The response before the application starts and after it ends."""
    await Response("the server is not running", status_code=503)(scope, receive, send)
