"""A model behind an HTTP endpoint that speaks the OpenAI chat completions protocol.

Needs the extra ``firnline[models]``. Get one from `firnline.models.open_model`.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import httpx2

from firnline import limits
from firnline.errors import InputError, ModelError, ModelRefused, ModelTimeout
from firnline.message import utc_now
from firnline.models.answers import Pieces, load_body, read_complaint, read_completion
from firnline.models.guard import Backoff, Chance
from firnline.models.structured import RUNGS, climb_down
from firnline.models.timing import Timeouts, retry_after
from firnline.protocols import Clock, Completion

Sleep: TypeAlias = Callable[[float], Awaitable[object]]
Body: TypeAlias = dict[str, Any]
T = TypeVar("T")

RETRIES_MAX: Final = 10
_RETRIED: Final = frozenset({408, 409, 429})
"""Statuses below 500 after which the same request may go well."""
_OK: Final = 200
_BROKEN: Final = 500
_NO_QUOTA: Final = "insufficient_quota"


class _Passing(Exception):
    """A failure that may pass, and how long the endpoint wants to be left alone."""

    def __init__(self, error: ModelError, wait: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


class HttpModel:
    """A `ChatModel` at `url` (up to and including ``/v1``).

    Failures that may pass (no connection, 408, 409, 429, 5xx) are tried again up to `retries`
    times, after a random wait that doubles, or after the time the endpoint asks for; if that is
    longer than what is left of the total, the error comes at once, with ``retry_after`` in its
    context. Everything else fails at once: a rejected request as `ModelRefused`, an answer that
    cannot be used as `ModelError`, with ``code``, ``status`` and ``partial`` where they apply.
    Time, chance and sleep can be given, for tests.
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
        if not 0 <= retries <= RETRIES_MAX:
            raise InputError(f"retries: {retries} is not between 0 and {RETRIES_MAX}")
        self._name = name
        self._url = _checked(url)
        self._api_key = api_key
        self._timeouts = timeouts
        self._retries = retries
        self._sleep = sleep
        self._clock = clock
        self._backoff = Backoff(first=0.5, most=8.0, chance=chance)
        self._rung = 0
        self._client: httpx2.AsyncClient | None = None

    def __repr__(self) -> str:
        key = "None" if self._api_key is None else "***"
        return f"HttpModel({self._name!r}, url={self._url!r}, api_key={key})"

    @property
    def name(self) -> str:
        """The model's name, as its provider spells it."""
        return self._name

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """One answer; with a JSON `schema` its text is JSON that satisfies it.

        The rung of the ladder that worked is the first one that is tried next time.
        """
        body = self._body(messages, tools, max_tokens)
        if schema is None:
            return await self._whole(body)

        async def send(asked: list[Body], response_format: Body | None) -> Completion:
            wanted = {"response_format": response_format} if response_format else {}
            return await self._whole({**body, "messages": asked, **wanted})

        answer = await climb_down(send, body["messages"], schema, RUNGS[self._rung :])
        self._rung = RUNGS.index(answer.rung)
        return answer.completion

    async def stream(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[str | Completion]:
        """The text in pieces, then the whole `Completion`.

        A stream that has begun is not tried again; what had arrived is in the error's ``partial``.
        """
        body = self._body(messages, tools, max_tokens)
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        deadline = _now() + self._timeouts.total
        pieces = Pieces(self._name)
        response = await self._retried(lambda: self._open(body, deadline), deadline)
        try:
            # Some endpoints do not stream, or not their errors: then the body is one event.
            is_json = response.headers.get("content-type", "").startswith("application/json")
            read = _whole_body if is_json else _events
            async with aclosing(read(self._bytes(response, deadline))) as events:
                async for data in events:
                    if text := pieces.take(data):
                        yield text
                    if pieces.done:
                        break
            completion = pieces.completion()
        except _Passing as failure:
            text = f"the model's answer broke off: {failure}"
            raise ModelError(text, code="cut", partial=pieces.text) from failure.__cause__
        except ModelError as error:
            error.context.setdefault("partial", pieces.text)
            raise
        finally:
            await response.aclose()
        yield completion

    async def close(self) -> None:
        """Let go of connections; a later call makes new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    # -- one request --------------------------------------------------------------------------

    def _body(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        max_tokens: int | None,
    ) -> Body:
        body: Body = {"model": self._name, "messages": [dict(message) for message in messages]}
        if tools:
            body["tools"] = list(tools)
        if max_tokens is not None:
            # OpenAI's newer models take only the long name, everybody else knows the short one.
            host = urlsplit(self._url).hostname or ""
            ours = host.endswith((".openai.com", ".openai.azure.com"))
            body["max_completion_tokens" if ours else "max_tokens"] = max_tokens
        return body

    async def _whole(self, body: Body) -> Completion:
        deadline = _now() + self._timeouts.total

        async def attempt() -> bytes:
            response = await self._open(body, deadline)
            try:
                return b"".join([piece async for piece in self._bytes(response, deadline)])
            finally:
                await response.aclose()

        return read_completion(load_body(await self._retried(attempt, deadline)), self._name)

    async def _retried(self, attempt: Callable[[], Awaitable[T]], deadline: float) -> T:
        for number in range(self._retries + 1):
            try:
                return await attempt()
            except _Passing as failure:
                delay = self._backoff.delay(number) + (failure.wait or 0.0)
                if number == self._retries or _now() + delay >= deadline:
                    raise failure.error from failure.__cause__
            await self._sleep(delay)
        raise AssertionError("unreachable")

    async def _open(self, body: Body, deadline: float) -> httpx2.Response:
        """The endpoint's answer, its body unread; every status but 200 is raised."""
        client = self._connected()
        request = client.build_request("POST", f"{self._url}/chat/completions", content=_dump(body))
        wait = self._timeouts.first_byte
        try:
            response = await _within(wait, deadline, client.send(request, stream=True))
        except httpx2.RequestError as error:
            raise _unreachable(error) from error
        if response.status_code == _OK:
            return response
        try:
            said = b"".join([piece async for piece in self._bytes(response, deadline)])
        finally:
            await response.aclose()
        raise self._failure(response, said)

    async def _bytes(
        self, response: httpx2.Response, deadline: float
    ) -> AsyncGenerator[bytes, None]:
        wait, size = self._timeouts.first_byte, 0
        pieces = response.aiter_bytes()
        while True:
            try:
                piece = await _within(wait, deadline, anext(pieces, None))
            except httpx2.RequestError as error:
                raise _unreachable(error) from error
            if piece is None:
                return
            size += len(piece)
            if size > limits.MESSAGE_BYTES_MAX:
                raise ModelError("the model's answer is larger than a message may be", code="size")
            wait = self._timeouts.between
            yield piece

    def _failure(self, response: httpx2.Response, said: bytes) -> Exception:
        status = response.status_code
        code, message = read_complaint(load_body(said), said[:500].decode(errors="replace"))
        if self._api_key:
            message = message.replace(self._api_key, "***")
        text = f"{self._name}: status {status}: {message}"
        passing = (status in _RETRIED and code != _NO_QUOTA) or status >= _BROKEN
        if not passing:
            return ModelRefused(text, status=status, code=code)
        wait = retry_after(response.headers, self._clock())
        kind = ModelTimeout if status == 408 else ModelError  # noqa: PLR2004 - its own name
        facts: dict[str, Any] = {} if wait is None else {"retry_after": wait}
        return _Passing(kind(text, status=status, code=code, **facts), wait)

    def _connected(self) -> httpx2.AsyncClient:
        if self._client is None:
            headers = {"content-type": "application/json", "user-agent": "firnline"}
            if self._api_key is not None:
                headers["authorization"] = f"Bearer {self._api_key}"
            # Only the connection's time is watched there; the rest is ours, see `_within`.
            timeout = httpx2.Timeout(None, connect=self._timeouts.connect)
            self._client = httpx2.AsyncClient(headers=headers, timeout=timeout)
        return self._client


# -- pieces -----------------------------------------------------------------------------------


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"url: expected something like https://host/v1, got {url!r}")
    if parts.username or parts.password:
        raise InputError("url: a name or password in it would be shown in logs; use api_key")
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
        raise ModelTimeout(f"the model took too long: {what} did not come in time") from error


def _unreachable(error: httpx2.RequestError) -> _Passing:
    text = f"the model's endpoint cannot be reached: {type(error).__name__}: {error}"
    kind = ModelTimeout if isinstance(error, httpx2.TimeoutException) else ModelError
    return _Passing(kind(text, code="connection"))


async def _whole_body(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[str, None]:
    yield b"".join([piece async for piece in pieces]).decode(errors="replace")


async def _events(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[str, None]:
    """The data of server-sent events. Lines end with LF or CRLF only: JSON may hold the others."""
    rest, data = b"", list[str]()
    async with aclosing(pieces):
        async for piece in pieces:
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                name, _, value = line.rstrip(b"\r").decode(errors="replace").partition(":")
                if name == "data":
                    data.append(value.removeprefix(" "))
                elif data and not name and not value:
                    yield "\n".join(data)
                    data = []
    if data:
        yield "\n".join(data)
