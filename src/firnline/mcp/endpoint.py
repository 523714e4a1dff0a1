"""MCP over HTTP: one address, no sessions; every request stands alone and gets a JSON answer.

Who is asking is settled before the protocol begins, by an API key; nothing in a request can name
another tenant.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final, Protocol, TypeAlias

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from firnline.mcp.server import build
from firnline.memory import Memory

BODY_BYTES_MAX: Final = 4 * 1024 * 1024
_READ: Final = "read"
_WRITE: Final = "write"


class Granted(Protocol):
    """A caller that passed authentication: an id, a tenant and scopes."""

    @property
    def id(self) -> str:
        """Which key it is."""
        ...

    @property
    def tenant(self) -> str:
        """Whose conversations they see."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """What they may do: ``read``, ``write``."""
        ...


class KeyChecker(Protocol):
    """Looks up an API key, as `firnline.server.keys.Keys` does."""

    async def check(self, token: str) -> Granted | None:
        """Whose key it is, or None if it is not valid."""
        ...


Who: TypeAlias = Callable[[Scope], Awaitable[Granted | None]]
"""Who is asking, by their request; None if it is nobody who may."""

_asking: ContextVar[Granted] = ContextVar("firnline_mcp_asking")


class Endpoint:
    """An ASGI application for one address, such as ``/mcp``. It answers while it is `running`.

    `memory_of` gives a tenant's memory, and `who` says whose request it is: `by_key`, or whoever
    has looked at its key before. `charge` is told of tokens that somebody's id stored or was sent.
    """

    def __init__(
        self,
        memory_of: Callable[[str], Awaitable[Memory]],
        who: Who,
        *,
        charge: Callable[[str, int], None] = lambda _, __: None,
        zone: str = "UTC",
        body_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        self._memory_of, self._who, self._charge = memory_of, who, charge
        self._zone, self._body_bytes_max = zone, body_bytes_max
        self._app: ASGIApp = _closed

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests; to be entered in the application's lifespan."""
        server = build(
            lambda: self._memory_of(_asking.get().tenant),
            may_write=lambda: _WRITE in _asking.get().scopes,
            charge=lambda tokens: self._charge(_asking.get().id, tokens),
            zone=self._zone,
        )
        manager = StreamableHTTPSessionManager(
            server,
            json_response=True,
            stateless=True,
            max_request_body_size=self._body_bytes_max,
        )
        async with manager.run():
            self._app = manager.handle_request
            try:
                yield
            finally:
                self._app = _closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        who = await self._who(scope)
        if who is None or _READ not in who.scopes:
            await _refusal(401 if who is None else 403)(scope, receive, send)
            return
        _asking.set(who)  # a request is a task of its own, and what it starts knows it, too
        if scope["method"] == "POST":
            await self._app(scope, receive, send)
        else:  # there is nothing that a stream could tell of its own
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)


def by_key(keys: KeyChecker) -> Who:
    """Whoever has a valid key: ``Authorization: Bearer fl_...``."""

    async def who(scope: Scope) -> Granted | None:
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        return await keys.check(token) if kind.lower() == "bearer" else None

    return who


def _refusal(status: int) -> Response:
    what = "invalid_token" if status == 401 else "insufficient_scope"  # noqa: PLR2004
    told = {"error": what, "error_description": "a valid API key with the scope read is needed"}
    return JSONResponse(told, status, {"WWW-Authenticate": f'Bearer error="{what}"'})


async def _closed(scope: Scope, receive: Receive, send: Send) -> None:
    """Before the application runs, and behind its end."""
    await Response("the server is not running", status_code=503)(scope, receive, send)
