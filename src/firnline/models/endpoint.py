"""An HTTP endpoint of the OpenAI protocol: requests, retries and errors.

Needs the extra ``firnline[models]``. The base of chat models and embedders.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import httpx2

from firnline.errors import InputError, ModelError, ModelRefused, ModelTimeout, cause
from firnline.log import limits
from firnline.log.message import utc_now
from firnline.models.answers import load_body, read_error
from firnline.models.guard import Backoff, Chance
from firnline.models.timeouts import Timeouts, retry_after
from firnline.protocols import Clock

Sleep: TypeAlias = Callable[[float], Awaitable[object]]
Body: TypeAlias = dict[str, Any]
T = TypeVar("T")

_RETRIED: Final = frozenset({408, 409, 429})
"""Statuses below 500 after which a retry may succeed."""
_OK: Final = 200
_BROKEN: Final = 500
_NO_QUOTA: Final = "insufficient_quota"


class TransientFailure(Exception):
    """A failure that a retry may fix, and the wait that the endpoint requests."""

    def __init__(self, error: ModelError, wait: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


class ModelEndpoint:
    """The model `name` at `url` (up to and including ``/v1``); subclasses define the requests.

    Transient failures (no connection, 408, 409, 429, 5xx) are retried up to `retries` times, after
    a random wait that doubles, or after the time that the endpoint requests; if that is longer than
    the rest of the total, the error is raised at once, with ``retry_after`` in its context.
    Everything else fails at once: a rejected request as `ModelRefused`, an unusable answer as
    `ModelError`, with ``code``, ``status`` and ``partial`` where they apply. Clock, chance and
    sleep can be passed for tests.
    """

    def __init__(  # noqa: PLR0913 - three of them are for tests
        self,
        name: str,
        *,
        url: str,
        api_key: str | None = None,
        timeouts: Timeouts = Timeouts(),  # noqa: B008 - a value that never changes
        retries: int = 3,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = utc_now,
        chance: Chance = random.random,
    ) -> None:
        if not 0 <= retries <= limits.RETRIES_MAX:
            raise InputError(f"retries: {retries} is not between 0 and {limits.RETRIES_MAX}")
        self._url = _check_url(url)
        self._name = name
        self._api_key = api_key
        self._timeouts = timeouts
        self._retries = retries
        self._sleep = sleep
        self._clock = clock
        self._backoff = Backoff(first=0.5, most=8.0, chance=chance)
        self._client: httpx2.AsyncClient | None = None

    def __repr__(self) -> str:
        key = "None" if self._api_key is None else "***"
        return f"{type(self).__name__}({self._name!r}, url={self._url!r}, api_key={key})"

    @property
    def name(self) -> str:
        """The model's name at its provider."""
        return self._name

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    # -- for subclasses -----------------------------------------------------------------------

    def _deadline(self) -> float:
        """When a call that starts now must end, including its retries."""
        return _now() + self._timeouts.total

    async def _ask(self, path: str, body: Body) -> object:
        """The JSON of a whole answer; None if it is not JSON."""
        deadline = self._deadline()

        async def attempt() -> bytes:
            response = await self._open(path, body, deadline)
            try:
                return b"".join([piece async for piece in self._pieces(response, deadline)])
            finally:
                await response.aclose()

        return load_body(await self._retried(attempt, deadline))

    async def _begin(self, path: str, body: Body, deadline: float) -> httpx2.Response:
        """An answer whose body is unread, see `_pieces`; the caller closes it."""
        return await self._retried(lambda: self._open(path, body, deadline), deadline)

    async def _pieces(
        self, response: httpx2.Response, deadline: float
    ) -> AsyncGenerator[bytes, None]:
        """An answer's body as it arrives, within the deadline and the size of a message."""
        wait, size = self._timeouts.first_byte, 0
        pieces = response.aiter_bytes()
        while True:
            try:
                piece = await _within(wait, deadline, anext(pieces, None))
            except httpx2.RequestError as error:
                raise _connection_failure(self._url, error) from error
            if piece is None:
                return
            size += len(piece)
            if size > limits.MESSAGE_BYTES_MAX:
                raise ModelError(
                    f"the model's answer is too large: the limit is {limits.MESSAGE_BYTES_MAX:,} "
                    "bytes",
                    code="size",
                )
            wait = self._timeouts.between
            yield piece

    # -- one request --------------------------------------------------------------------------

    async def _retried(self, attempt: Callable[[], Awaitable[T]], deadline: float) -> T:
        for number in range(self._retries + 1):
            try:
                return await attempt()
            except TransientFailure as failure:
                delay = self._backoff.delay(number) + (failure.wait or 0.0)
                if number == self._retries or _now() + delay >= deadline:
                    raise failure.error from failure.__cause__
            await self._sleep(delay)
        raise AssertionError("unreachable")

    async def _open(self, path: str, body: Body, deadline: float) -> httpx2.Response:
        """The endpoint's answer with an unread body; any status but 200 raises."""
        client = self._connected()
        request = client.build_request("POST", f"{self._url}{path}", content=_dump(body))
        wait = self._timeouts.first_byte
        try:
            response = await _within(wait, deadline, client.send(request, stream=True))
        except httpx2.RequestError as error:
            raise _connection_failure(self._url, error) from error
        if response.status_code == _OK:
            return response
        try:
            error_body = b"".join([piece async for piece in self._pieces(response, deadline)])
        finally:
            await response.aclose()
        raise self._failure(response, error_body)

    def _failure(self, response: httpx2.Response, body: bytes) -> Exception:
        status = response.status_code
        code, message = read_error(load_body(body), body[:500].decode(errors="replace"))
        if self._api_key:
            message = message.replace(self._api_key, "***")
        text = f"{self._name}: status {status}: {message}"
        passing = (status in _RETRIED and code != _NO_QUOTA) or status >= _BROKEN
        if not passing:
            return ModelRefused(text, status=status, code=code)
        wait = retry_after(response.headers, self._clock())
        kind = ModelTimeout if status == 408 else ModelError  # noqa: PLR2004 - its own name
        facts: dict[str, Any] = {} if wait is None else {"retry_after": wait}
        return TransientFailure(kind(text, status=status, code=code, **facts), wait)

    def _connected(self) -> httpx2.AsyncClient:
        if self._client is None:
            headers = {"content-type": "application/json", "user-agent": "firnline"}
            if self._api_key is not None:
                headers["authorization"] = f"Bearer {self._api_key}"
            # Only the connect timeout is httpx's; the others are in `_within`.
            timeout = httpx2.Timeout(None, connect=self._timeouts.connect)
            self._client = httpx2.AsyncClient(headers=headers, timeout=timeout)
        return self._client


# -- pieces -----------------------------------------------------------------------------------


def _check_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"url: expected something like https://host/v1, got {url!r}")
    if parts.username or parts.password:
        raise InputError(
            "url: remove the user name and password, which would be logged; use api_key"
        )
    return url.rstrip("/")


def _dump(body: Body) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"the request is not JSON: {error}") from error


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _within(seconds: float, deadline: float, awaited: Awaitable[T]) -> T:
    """Wait for `seconds`, and not past the deadline of the whole call."""
    left = deadline - _now()
    try:
        async with asyncio.timeout(min(seconds, left)):
            return await awaited
    except TimeoutError as error:
        what = "the whole answer" if left <= seconds else "the next piece of the answer"
        raise ModelTimeout(f"the model took too long: {what} did not arrive in time") from error


def _connection_failure(url: str, error: httpx2.RequestError) -> TransientFailure:
    text = f"the model's endpoint {url} cannot be reached: {cause(error)}"
    kind = ModelTimeout if isinstance(error, httpx2.TimeoutException) else ModelError
    return TransientFailure(kind(text, code="connection"))
