"""Requests to a server: tried again where that is safe, answered or raised."""

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

RETRIES_MAX: Final = 10
WAIT_MAX: Final = 60.0
"""A server that wants to be left alone for longer is not waited for."""
_CONNECT_SECONDS: Final = 10.0
_FIRST_ERROR: Final = 300
_UNSENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_UNTOUCHED: Final = (StoreUnavailable, TooFast, NotReady)
"""After these nothing has been done, so any request may be sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request, to be made once or several times.

    `repeatable`: it does the same if it had been done already. `content` gives a body that is no
    JSON, anew for each try.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    content: Callable[[], AsyncIterator[bytes]] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False


class Connection:
    """The server at `url`, as the holder of `key` sees it."""

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
        if not 0 <= retries <= RETRIES_MAX:
            raise InputError(f"retries: {retries} is not between 0 and {RETRIES_MAX}")
        self.url = _checked(url)
        self._key = None if key is None else _checked_key(key)
        self._timeout = timeout
        self._retries = retries
        self._sleep = sleep
        self._backoff = Backoff(first=0.25, most=8.0, chance=chance)
        self._client: httpx2.AsyncClient | None = None

    async def close(self) -> None:
        """Let go of connections; a later request makes new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    # -- three kinds of answers -----------------------------------------------------------------

    async def json(self, ask: Ask) -> Any:
        """The answer, an object of JSON; what it should hold and does not is a `FirnlineError`."""

        async def attempt() -> Any:
            response = await self._open(ask)
            try:
                return _object(await _whole(response))
            finally:
                await response.aclose()

        return await self._retried(ask, attempt)

    async def pieces(self, ask: Ask) -> AsyncGenerator[bytes, None]:
        """The answer's bytes as they come; what breaks off raises `StoreTimeout`."""
        response = await self._retried(ask, lambda: self._open(ask))
        try:
            async for piece in response.aiter_bytes():
                yield piece
        except httpx2.RequestError as error:
            raise _lost(error) from error
        finally:
            await response.aclose()

    async def events(self, ask: Ask) -> AsyncGenerator[tuple[str, Any], None]:
        """The answer's events, each with its name and its JSON; an ``error`` is raised."""
        async with aclosing(self.pieces(ask)) as pieces:
            async for name, data in _events(pieces):
                told = _object(data)
                if name == "error":
                    raise error_of(told)
                yield name, told

    # -- one request --------------------------------------------------------------------------

    async def _retried(self, ask: Ask, attempt: Callable[[], Awaitable[T]]) -> T:
        for number in range(self._retries + 1):
            try:
                return await attempt()
            except FirnlineError as error:
                wait = max(self._backoff.delay(number), error.context.get("retry_after", 0.0))
                if number == self._retries or not _may_pass(ask, error) or wait > WAIT_MAX:
                    raise
            await self._sleep(wait)
        raise AssertionError("unreachable")

    async def _open(self, ask: Ask) -> httpx2.Response:
        """The server's answer, its body unread; an error is raised."""
        client = self._connected()
        request = client.build_request(
            ask.method,
            f"{self.url}{PREFIX}{ask.path}",
            params=_query(ask.query),
            content=ask.content() if ask.content else _dumped(ask.body),
            headers=_headers(ask),
        )
        try:
            response = await client.send(request, stream=True)
        except _UNSENT as error:
            raise StoreUnavailable(f"the server cannot be reached: {error}") from error
        except httpx2.RequestError as error:
            raise _lost(error) from error
        if response.status_code < _FIRST_ERROR:
            return response
        try:
            said = await _whole(response)
        finally:
            await response.aclose()
        raise error_of(
            _problem(said), response.status_code, retry_after(response.headers, utc_now())
        )

    def _connected(self) -> httpx2.AsyncClient:
        if self._client is None:
            headers = {"user-agent": "firnline"}
            if self._key is not None:
                headers["authorization"] = f"Bearer {self._key}"
            timeout = httpx2.Timeout(self._timeout, connect=_CONNECT_SECONDS)
            self._client = httpx2.AsyncClient(headers=headers, timeout=timeout)
        return self._client


# -- pieces -----------------------------------------------------------------------------------


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # no port, or no address in the brackets
        known = False
    if not known:
        raise InputError(f"url: expected something like http://localhost:8080, got {url!r}")
    if parts.username or parts.password:
        raise InputError("url: give the API key as `key`, not in the address")
    return url.rstrip("/").removesuffix(PREFIX)  # the server prints its API's address with it


def _checked_key(key: str) -> str:
    """The key as a header takes it. What is wrong is told without it: errors get into logs."""
    trimmed = key.strip()  # a file's last line has an end
    if not trimmed or not trimmed.isascii() or not trimmed.isprintable() or " " in trimmed:
        raise InputError("key: expected an API key such as fl_..., visible ASCII characters")
    return trimmed


def _may_pass(ask: Ask, error: FirnlineError) -> bool:
    """Whether the same request may be sent again, and may go well then."""
    return isinstance(error, _UNTOUCHED) or (ask.repeatable and isinstance(error, StoreTimeout))


def _lost(error: httpx2.RequestError) -> StoreTimeout:
    return StoreTimeout(f"the connection was lost, the outcome is unknown: {error!r}")


def _query(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _headers(ask: Ask) -> dict[str, str]:
    typed = {"content-type": "application/json"} if ask.body is not None else {}
    return {**typed, **ask.headers}


def _dumped(body: Any) -> bytes | None:
    if body is None:
        return None
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"what was given is not JSON: {error}") from error


async def _whole(response: httpx2.Response) -> bytes:
    try:
        return await response.aread()
    except httpx2.RequestError as error:
        raise _lost(error) from error


class _Object(dict[str, Any]):
    """What a server answers. Whoever answers otherwise is no Firnline, or a very old one."""

    def __missing__(self, name: str) -> Any:
        raise FirnlineError(f"the server's answer has no {name!r}; is it a Firnline server?")


def _object(data: bytes) -> _Object:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FirnlineError(f"the server's answer is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise FirnlineError("the server's answer is no object; is it a Firnline server?")
    return _Object(found)


def _problem(said: bytes) -> Any:
    """The problem in an error's body; None if somebody else than the server wrote it."""
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        return None


async def _events(pieces: AsyncIterator[bytes]) -> AsyncGenerator[tuple[str, bytes], None]:
    """Server-sent events: their names and data; comments are signs of life."""
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
