"""Authentication, body size and rate limits of every request.

Deny by default: a path is public only if it is listed here. The tenant comes from the key alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firnline.client.paths import unescape_name
from firnline.errors import (
    BodyTooLarge,
    FirnlineError,
    Forbidden,
    NotReady,
    TooFast,
    Unauthorized,
    UnknownConversation,
    UnknownPerson,
)
from firnline.memory import DEFAULT_TENANT, Memory
from firnline.server.keys import PREFIX, SCOPES
from firnline.server.limits import SIZE_DIGITS_MAX
from firnline.server.page import PATHS
from firnline.server.peer import (
    client_address,
    is_cross_site,
    is_forwarded,
    is_local,
    is_trusted,
    names_this_machine,
)
from firnline.server.problems import error_response
from firnline.server.state import Parts

PUBLIC: Final = frozenset({"/livez", "/readyz", "/openapi.json", "/docs"})
"""Paths that need no key."""
WEBHOOKS: Final = "/telegram/"
"""Requests under this path authenticate with their own secret."""
IMPORT: Final = "/api/v1/import"
_EVERYTHING: Final = frozenset(SCOPES)
_PERSONAL: Final = frozenset(
    {
        *("/conversations", "/search", "/people", "/dates"),
        *("/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens"),
    }
)
"""What a key for one person may use besides their conversations."""
_FAMILIES: Final = ("/branches", "/lineage")
"""What names conversations that may be of others."""
_ONE_PERSON: Final = "the API key is for one person; this needs a key for the whole tenant"


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of a key, a program on this machine, or a client of a trusted proxy."""

    id: str
    tenant: str
    scopes: frozenset[str]
    token: str = ""
    """A key that is not ours: for the endpoint behind the proxy."""
    person: str | None = None
    """Of a key for one person: every request with it is theirs."""


class AuthMiddleware:
    """ASGI middleware: authentication, size and rate limits, and whether the server is ready."""

    def __init__(self, app: ASGIApp, parts: Parts) -> None:
        self._app, self._parts = app, parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or reject it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        try:
            if not _is_public(scope):
                self._check_size(scope, path)
                if not path.startswith(WEBHOOKS):
                    scope.setdefault("state", {})["caller"] = await self._authenticate(scope)
                if not self._parts.ready:
                    raise NotReady
        except FirnlineError as error:
            await error_response(error, path)(scope, receive, send)
            return
        await self._app(scope, self._bounded(receive, self._most(path)), send)

    async def _authenticate(self, scope: Scope) -> Caller:
        try:
            caller = await self._identify(scope)
        except Unauthorized:
            address = client_address(scope, self._parts.settings.proxies)
            if wait := self._parts.requests.take(f"address {address}"):
                raise TooFast(retry_after=wait) from None
            raise
        wait = self._parts.requests.take(caller.id) or self._parts.tokens.wait(caller.id)
        if wait:
            raise TooFast(retry_after=wait)
        return caller

    async def _identify(self, scope: Scope) -> Caller:
        headers = Headers(scope=scope)
        token = _token(headers)
        if token.startswith(f"{PREFIX}_"):
            grant = await self._parts.keys.check(token) if self._parts.ready else None
            if grant is None:
                if not self._parts.ready:
                    raise NotReady
                raise Unauthorized
            return Caller(grant.id, grant.tenant, grant.scopes, person=grant.person)
        settings = self._parts.settings
        if settings.auth == "proxy" and is_trusted(scope, settings.proxies):
            _check_site(headers, headers.get("x-forwarded-host"))
            address = client_address(scope, settings.proxies)
            return Caller(f"proxy {address}", DEFAULT_TENANT, _EVERYTHING, token)
        if not settings.open:
            raise Unauthorized
        _check_local(scope, headers)
        return Caller("local", DEFAULT_TENANT, _EVERYTHING, token)

    def _most(self, path: str) -> int:
        settings = self._parts.settings
        return settings.import_bytes_max if path == IMPORT else settings.body_bytes_max

    def _check_size(self, scope: Scope, path: str) -> None:
        """Reject a body by its declared size, before it is read."""
        size = Headers(scope=scope).get("content-length", "0")
        if not (size.isdecimal() and len(size) <= SIZE_DIGITS_MAX) or int(size) > self._most(path):
            raise _too_large(self._most(path))

    def _bounded(self, receive: Receive, most: int) -> Receive:
        size = 0

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise _too_large(most)
            return message

        return bounded


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"body too large: the limit is {most:,} bytes")


def _is_public(scope: Scope) -> bool:
    """Whether no key is needed: health, the OpenAPI document, and the files of the page."""
    path: str = scope["path"]
    return path in PUBLIC or (scope["method"] in ("GET", "HEAD") and bool(PATHS.fullmatch(path)))


def _token(headers: Headers) -> str:
    """The key in the header of OpenAI's or Anthropic's clients."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key", "").strip()


def _check_local(scope: Scope, headers: Headers) -> None:
    """Without a key, accept only programs on this machine and our own page."""
    if not is_local(scope) or is_forwarded(scope):
        raise Unauthorized(
            "through a proxy, a valid API key is required; send Authorization: Bearer fl_..."
        )
    if not names_this_machine(headers.get("host", "")):
        raise Forbidden("without an API key, use the server as localhost")
    _check_site(headers)


def _check_site(headers: Headers, forwarded_host: str | None = None) -> None:
    """Without a key, reject what pages of other sites send."""
    hosts = [host for host in (headers.get("host", ""), forwarded_host) if host]
    if is_cross_site(headers, hosts):
        raise Forbidden("without an API key, requests from other sites are rejected")


# -- dependencies of routes -------------------------------------------------------------------


def may_write(request: Request) -> bool:
    """Whether the caller may change anything, such as create digests."""
    return "write" in caller_of(request).scopes


def caller_of(request: Request) -> Caller:
    """The caller of this request."""
    caller: Caller = request.state.caller
    return caller


def parts_of(request: Request) -> Parts:
    """The parts of the server."""
    parts: Parts = request.app.state.parts
    return parts


def person_of(request: Request, given: str | None = None) -> str | None:
    """Whom a request is with: the person of its key, or the one that it names."""
    own = caller_of(request).person
    if own is not None and given not in (None, own):
        raise Forbidden("the API key is for another person")
    return given if own is None else own


async def _check_person(request: Request, memory: Memory, person: str) -> None:
    """With a key for one person, only that person's conversations exist.

    Deny by default: what is for the whole tenant is only allowed if it is listed here, and then
    its route asks `person_of`.
    """
    path: str = request.scope["route"].path
    names = request.path_params
    if path.startswith("/conversations/{") and not path.endswith(_FAMILIES):
        if "branches" in request.query_params:
            raise Forbidden(_ONE_PERSON)
        name = unescape_name(names["conversation"])
        head = await memory.head(name)
        if head is not None and head.person != person:
            raise UnknownConversation(f"there is no conversation {name!r}")
    elif path.startswith("/people/{"):
        if unescape_name(names["person"]) != person:
            raise UnknownPerson(f"there is no person {unescape_name(names['person'])!r}")
    elif path not in _PERSONAL:
        raise Forbidden(_ONE_PERSON)


def charge(request: Request, tokens: int) -> None:
    """Charge tokens that were stored or sent to the caller's rate limit."""
    parts_of(request).tokens.charge(caller_of(request).id, tokens)


def _needs(scope: str) -> Any:
    async def memory(request: Request) -> Memory:
        caller = caller_of(request)
        if scope not in caller.scopes:
            raise Forbidden(f"the API key lacks the scope {scope}")
        memory = await parts_of(request).tenants.memory(caller.tenant)
        if caller.person is not None:
            await _check_person(request, memory, caller.person)
        return memory

    return Depends(memory)


Reading = Annotated[Memory, _needs("read")]
"""The caller's memory, for reading."""
Writing = Annotated[Memory, _needs("write")]
"""The caller's memory, for writing."""
Administering = Annotated[Memory, _needs("admin")]
"""The caller's memory, for erasing and for data of all tenants."""
Measuring = Annotated[Memory, _needs("metrics")]
"""The caller's memory, for the numbers of all tenants and nothing else."""
