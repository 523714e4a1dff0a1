"""Requests to a server, retried where that is safe."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

from firnline.client.paths import PREFIX
from firnline.client.problems import error_of
from firnline.errors import (
    FirnlineError,
    InputError,
    NotReady,
    StoreTimeout,
    StoreUnavailable,
    TooFast,
)
from firnline.log import limits
from firnline.log.message import utc_now
from firnline.models.guard import Backoff, Chance
from firnline.models.timeouts import retry_after

try:
    import httpx2
except ModuleNotFoundError as error:
    text = f'{error.msg}; the client needs an extra: pip install "firnline[client]"'
    raise ModuleNotFoundError(text, name=error.name) from error

T = TypeVar("T")
Sleep: TypeAlias = Callable[[float], Awaitable[object]]

WAIT_MAX: Final = 60.0
"""A longer `Retry-After` is not waited for."""
_FIRST_ERROR: Final = 300
_UNSENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_NOT_DONE: Final = (StoreUnavailable, TooFast, NotReady)
"""After these errors nothing was done, so any request may be retried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request, sent once or several times.

    `repeatable`: it is idempotent. `content` returns a body that is not JSON, again for each try.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    content: Callable[[], AsyncIterator[bytes]] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False


class Connection:
    """A connection to the server at `url` with an API key."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 600.0,
        retries: int = 3,
        sleep: Sleep = asyncio.sleep,
        chance: Chance = random.random,
    ) -> None:
        if not 0 <= retries <= limits.RETRIES_MAX:
            raise InputError(f"retries: must be between 0 and {limits.RETRIES_MAX}, got {retries}")
        self.url = _check_url(url)
        self._key = None if key is None else _check_key(key)
        self._timeout = timeout
        self._retries = retries
        self._sleep = sleep
        self._backoff = Backoff(first=0.25, most=8.0, chance=chance)
        self._client: httpx2.AsyncClient | None = None

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    # -- three kinds of responses -----------------------------------------------------------------

    async def json(self, request: ApiRequest) -> Any:
        """The response as a JSON object; a missing field raises `FirnlineError`."""

        async def attempt() -> Any:
            response = await self._send(request)
            try:
                return _object(await _read(response))
            finally:
                await response.aclose()

        return await self._retry(request, attempt)

    async def pieces(self, request: ApiRequest) -> AsyncGenerator[bytes, None]:
        """The bytes of the response as they come; `StoreTimeout` if the connection is lost."""
        response = await self._retry(request, lambda: self._send(request))
        try:
            async for piece in response.aiter_bytes():
                yield piece
        except httpx2.RequestError as error:
            raise _lost(error) from error
        finally:
            await response.aclose()

    async def events(self, request: ApiRequest) -> AsyncGenerator[tuple[str, Any], None]:
        """The events of the response, each with its name and JSON; an ``error`` is raised."""
        async with aclosing(self.pieces(request)) as pieces:
            async for name, data in _events(pieces):
                value = _object(data)
                if name == "error":
                    raise error_of(value)
                yield name, value

    # -- one request --------------------------------------------------------------------------

    async def _retry(self, request: ApiRequest, attempt: Callable[[], Awaitable[T]]) -> T:
        for number in range(self._retries + 1):
            try:
                return await attempt()
            except FirnlineError as error:
                wait = max(self._backoff.delay(number), error.context.get("retry_after", 0.0))
                if number == self._retries or not _may_retry(request, error) or wait > WAIT_MAX:
                    raise
            await self._sleep(wait)
        raise AssertionError("unreachable")

    async def _send(self, request: ApiRequest) -> httpx2.Response:
        """Send the request; returns the response with its body unread, or raises its error."""
        client = self._open_client()
        built = client.build_request(
            request.method,
            f"{self.url}{PREFIX}{request.path}",
            params=_query(request.query),
            content=request.content() if request.content else _encode(request.body),
            headers=_headers(request),
        )
        try:
            response = await client.send(built, stream=True)
        except _UNSENT as error:
            raise StoreUnavailable(f"cannot connect to the server: {error}") from error
        except httpx2.RequestError as error:
            raise _lost(error) from error
        if response.status_code < _FIRST_ERROR:
            return response
        try:
            body = await _read(response)
        finally:
            await response.aclose()
        raise error_of(
            _problem(body), response.status_code, retry_after(response.headers, utc_now())
        )

    def _open_client(self) -> httpx2.AsyncClient:
        if self._client is None:
            headers = {"user-agent": "firnline"}
            if self._key is not None:
                headers["authorization"] = f"Bearer {self._key}"
            timeout = httpx2.Timeout(self._timeout, connect=limits.CONNECT_SECONDS)
            self._client = httpx2.AsyncClient(headers=headers, timeout=timeout)
        return self._client


# -- helpers ----------------------------------------------------------------------------------


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # invalid port or IPv6 address
        valid = False
    if not valid:
        raise InputError(f"url: expected a URL such as http://localhost:8080, got {url!r}")
    if parts.username or parts.password:
        raise InputError("url: must not contain a user name or password; pass the API key as `key`")
    return url.rstrip("/").removesuffix(PREFIX)  # the server prints the URL with it


def _check_key(key: str) -> str:
    """The key for a header. The error does not contain it: errors may be logged."""
    trimmed = key.strip()  # a key from a file may end with a newline
    if not trimmed or not trimmed.isascii() or not trimmed.isprintable() or " " in trimmed:
        raise InputError("key: expected an API key such as fl_..., in visible ASCII characters")
    return trimmed


def _may_retry(request: ApiRequest, error: FirnlineError) -> bool:
    """Whether a retry is safe and can succeed."""
    return isinstance(error, _NOT_DONE) or (request.repeatable and isinstance(error, StoreTimeout))


def _lost(error: httpx2.RequestError) -> StoreTimeout:
    return StoreTimeout(f"connection lost, outcome unknown: {error!r}")


def _query(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _headers(request: ApiRequest) -> dict[str, str]:
    typed = {"content-type": "application/json"} if request.body is not None else {}
    return {**typed, **request.headers}


def _encode(body: Any) -> bytes | None:
    if body is None:
        return None
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the arguments are not valid JSON: {error}") from error


async def _read(response: httpx2.Response) -> bytes:
    try:
        return await response.aread()
    except httpx2.RequestError as error:
        raise _lost(error) from error


class _Object(dict[str, Any]):
    """A response of the server; a missing field means that it is not a Firnline server."""

    def __missing__(self, name: str) -> Any:
        raise FirnlineError(f"the response has no field {name!r}; is this a Firnline server?")


def _object(data: bytes) -> _Object:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FirnlineError(f"the response is not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise FirnlineError("the response is not a JSON object; is this a Firnline server?")
    return _Object(found)


def _problem(body: bytes) -> Any:
    """The problem in an error body; None if it is not from the server, such as a proxy's."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


async def _events(pieces: AsyncIterator[bytes]) -> AsyncGenerator[tuple[str, bytes], None]:
    """Server-sent events: their names and data, without keep-alive comments."""
    rest, name, data = b"", "", list[bytes]()
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            field_, _, value = line.rstrip(b"\r").partition(b":")
            if field_ == b"event":
                name = value.strip().decode(errors="replace")
            elif field_ == b"data":
                data.append(value.removeprefix(b" "))
            elif not field_ and not value and data:
                yield name, b"\n".join(data)
                name, data = "", []
