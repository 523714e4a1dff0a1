"""The gate: who is asking, whether they may, how large and how fast. Everything passes it.

Deny by default: a path is open only if it is named here. The tenant comes from the key alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firnline.errors import BodyTooLarge, FirnlineError, Forbidden, NotReady, TooFast, Unauthorized
from firnline.memory import DEFAULT_TENANT, Memory
from firnline.server.keys import PREFIX, Grant
from firnline.server.page import PATHS
from firnline.server.problems import answer
from firnline.server.settings import is_loopback
from firnline.server.state import Parts

PUBLIC: Final = frozenset({"/livez", "/readyz", "/openapi.json"})
"""Paths that anybody may read."""
PROVED: Final = "/telegram/"
"""Below it, requests prove themselves with a secret of their own."""
IMPORT: Final = "/api/v1/import"
_EVERYTHING: Final = frozenset({"read", "write", "admin"})
_DIGITS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking: a key's holder, or whoever is on this machine."""

    id: str
    tenant: str
    scopes: frozenset[str]
    token: str = ""
    """What came as a key but is none of ours: for the endpoint behind the proxy."""


class Gate:
    """ASGI middleware: authentication, limits of size and pace, and whether the server is ready."""

    def __init__(self, app: ASGIApp, parts: Parts) -> None:
        self._app, self._parts = app, parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        try:
            if not _is_public(scope):
                self._check_size(scope, path)
                if not path.startswith(PROVED):
                    scope.setdefault("state", {})["caller"] = await self._caller(
                        Headers(scope=scope)
                    )
                if not self._parts.ready:
                    raise NotReady
        except FirnlineError as error:
            await answer(error, path)(scope, receive, send)
            return
        await self._app(scope, self._bounded(receive, self._most(path)), send)

    async def _caller(self, headers: Headers) -> Caller:
        token = _token(headers)
        if token.startswith(f"{PREFIX}_"):
            grant = await self._parts.keys.check(token) if self._parts.ready else None
            if grant is None:
                if not self._parts.ready:
                    raise NotReady
                raise Unauthorized
            caller = _granted(grant)
        elif self._parts.settings.open:
            _check_local(headers)
            caller = Caller("local", DEFAULT_TENANT, _EVERYTHING, token)
        else:
            raise Unauthorized
        wait = self._parts.requests.take(caller.id) or self._parts.tokens.wait(caller.id)
        if wait:
            raise TooFast(retry_after=wait)
        return caller

    def _most(self, path: str) -> int:
        settings = self._parts.settings
        return settings.import_bytes_max if path == IMPORT else settings.body_bytes_max

    def _check_size(self, scope: Scope, path: str) -> None:
        """What says that it is too large need not be read."""
        told = Headers(scope=scope).get("content-length", "0")
        if not (told.isdecimal() and len(told) <= _DIGITS_MAX) or int(told) > self._most(path):
            raise BodyTooLarge(f"{self._most(path):,} bytes of body are taken")

    def _bounded(self, receive: Receive, most: int) -> Receive:
        size = 0

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise BodyTooLarge(f"{most:,} bytes of body are taken")
            return message

        return bounded


def _is_public(scope: Scope) -> bool:
    """Whether anybody may have it: health, the API's description, and the page's own files."""
    path: str = scope["path"]
    return path in PUBLIC or (scope["method"] in ("GET", "HEAD") and bool(PATHS.fullmatch(path)))


def _token(headers: Headers) -> str:
    """The key as OpenAI's clients send it, or Anthropic's."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key", "").strip()


def _granted(grant: Grant) -> Caller:
    return Caller(grant.id, grant.tenant, grant.scopes)


def _check_local(headers: Headers) -> None:
    """Without a key, only this machine's programs and our own page: no other site's scripts."""
    host = headers.get("host", "")
    origin = headers.get("origin")
    try:
        name = urlsplit(f"//{host}").hostname or ""
        place = host if origin is None else urlsplit(origin).netloc
    except ValueError:  # an address that is none
        name = place = ""
    if not is_loopback(name):
        raise Forbidden("without a key, the server is reached as localhost only")
    if place != host:
        raise Forbidden("without a key, pages of other sites may not ask")


# -- for the routes ---------------------------------------------------------------------------


def may_write(request: Request) -> bool:
    """Whether who is asking may change something, such as have digests made."""
    return "write" in caller_of(request).scopes


def caller_of(request: Request) -> Caller:
    """Who is asking."""
    caller: Caller = request.state.caller
    return caller


def parts_of(request: Request) -> Parts:
    """What the server is made of."""
    parts: Parts = request.app.state.parts
    return parts


def charge(request: Request, tokens: int) -> None:
    """Count tokens that were stored or sent to the caller's pace."""
    parts_of(request).tokens.owe(caller_of(request).id, tokens)


def _needs(scope: str) -> Any:
    async def memory(request: Request) -> Memory:
        caller = caller_of(request)
        if scope not in caller.scopes:
            raise Forbidden(f"the API key does not have the scope {scope}")
        return await parts_of(request).tenants.memory(caller.tenant)

    return Depends(memory)


Reading = Annotated[Memory, _needs("read")]
"""The caller's memory, for what only reads."""
Writing = Annotated[Memory, _needs("write")]
"""The caller's memory, for what changes something."""
Ruling = Annotated[Memory, _needs("admin")]
"""The caller's memory, for what destroys or reaches beyond a tenant."""
