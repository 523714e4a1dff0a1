"""MCP over HTTP: one address, a bearer key for every request, no sessions.

Every request stands alone and gets a JSON answer. The tenant is the key's; nothing in a request can
name another one.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, Protocol

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware, get_access_token
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from firnline.keys import SCOPES, Grant
from firnline.mcp.server import build
from firnline.memory import Memory

BODY_BYTES_MAX: Final = 4 * 1024 * 1024
_AUTHORIZATION: Final = b"authorization"
_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")


class Checker(Protocol):
    """Who knows keys; `firnline.keys.Keys` does."""

    async def check(self, token: str) -> Grant | None:
        """What the token allows, or None if it is not valid."""
        ...


class Endpoint:
    """An ASGI application for one address, such as ``/mcp``. It answers while `running`.

    `memory_of` gives a tenant's memory. Without a valid key in `keys`, a request is refused (401),
    unless it has none at all and there is `open_to`: then it is for that tenant, and only from this
    machine (browsers that were led here by a foreign page are refused).
    """

    def __init__(
        self,
        memory_of: Callable[[str], Awaitable[Memory]],
        keys: Checker | None,
        *,
        open_to: str | None = None,
        zone: str = "UTC",
        body_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        self._memory_of, self._zone, self._body_bytes_max = memory_of, zone, body_bytes_max
        self._check = _Verifier(keys, open_to)
        self._open = open_to is not None
        self._app: ASGIApp = _closed

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests; to be entered in the application's lifespan."""
        server = build(self._memory, may_write=_may_write, zone=self._zone)
        manager = StreamableHTTPSessionManager(
            server,
            json_response=True,
            stateless=True,
            security_settings=_only_from_here() if self._open else None,
            max_request_body_size=self._body_bytes_max,
        )
        guarded = RequireAuthMiddleware(_posted(manager.handle_request), ["read"])
        backend = BearerAuthBackend(self._check)
        async with manager.run():
            self._app = AuthenticationMiddleware(AuthContextMiddleware(guarded), backend=backend)
            try:
                yield
            finally:
                self._app = _closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._open and not any(name == _AUTHORIZATION for name, _ in scope["headers"]):
            bearer = (_AUTHORIZATION, f"Bearer {self._check.stand_in}".encode())
            scope = {**scope, "headers": [*scope["headers"], bearer]}
        await self._app(scope, receive, send)

    async def _memory(self) -> Memory:
        token = get_access_token()
        if token is None or not token.subject:
            raise PermissionError("no tenant")  # never: such a request has been refused before
        return await self._memory_of(token.subject)


def _may_write() -> bool:
    token = get_access_token()
    return token is not None and "write" in token.scopes


class _Verifier:
    """Turns a key into what the SDK knows of a caller: the tenant is the subject."""

    def __init__(self, keys: Checker | None, open_to: str | None) -> None:
        self._keys, self._open_to = keys, open_to
        self.stand_in = secrets.token_urlsafe(32)  # a key that never leaves this process

    async def verify_token(self, token: str) -> AccessToken | None:
        """The caller, or None if the key is not valid."""
        if self._open_to is not None and secrets.compare_digest(
            token.encode(errors="replace"), self.stand_in.encode()
        ):
            grant: Grant | None = Grant("open", self._open_to, frozenset(SCOPES))
        else:
            grant = await self._keys.check(token) if self._keys else None
        if grant is None:
            return None
        return AccessToken(
            token="",  # nothing behind this needs it
            client_id=grant.id,
            scopes=sorted(grant.scopes),
            subject=grant.tenant,
        )


def _only_from_here() -> TransportSecuritySettings:
    """Requests by a name of this machine alone: a page elsewhere could lead a browser to us."""
    hosts = [*_HOSTS, *(f"{host}:*" for host in _HOSTS)]
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


def _posted(app: ASGIApp) -> ASGIApp:
    """The application for POST alone: there is nothing that a stream could tell of its own."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            app_or_refusal: ASGIApp = Response(status_code=405, headers={"Allow": "POST"})
        else:
            app_or_refusal = app
        await app_or_refusal(scope, receive, send)

    return answer


async def _closed(scope: Scope, receive: Receive, send: Send) -> None:
    """Before the application runs, and behind its end."""
    await Response("the server is not running", status_code=503)(scope, receive, send)
