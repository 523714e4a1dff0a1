"""The endpoint that the proxy sends requests to.

Only listed headers pass, in both directions; only the settings decide where requests go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Final, Protocol

import httpx2

from firnline.errors import ModelError, ModelTimeout, cause
from firnline.log.limits import CONNECT_SECONDS
from firnline.log.regex import regex
from firnline.models.events import read_events
from firnline.server.base_urls import endpoint_hint
from firnline.server.metrics import CallMeter, UnmeasuredCall
from firnline.server.proxy import limits
from firnline.server.proxy.windows import ListedWindows

logger: Final = logging.getLogger("firnline.server")

_REQUEST_HEADERS: Final = regex(
    r"(openai|anthropic|helicone|x-stainless|x-litellm|x-openwebui)-.*|http-referer|x-title"
    r"|user-agent|accept|content-type|idempotency-key"
)
_RESPONSE_HEADERS: Final = regex(
    r"(openai|anthropic|x-ratelimit|retry-after).*|x-request-id|request-id|x-should-retry"
)
_OUR_HEADERS: Final = regex(r"x-firnline-.*")
_LIST_HEADERS: Final = (
    "authorization",
    "user-agent",
    "openai-organization",
    "openai-project",
    "anthropic-version",
)
ANTHROPIC_VERSION: Final = "2023-06-01"
_ANTHROPIC_PAGE: Final = "limit=1000"
OK: Final = 200
BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
TOO_MANY: Final = 429
_NOT_IMPLEMENTED: Final = 501
_UNKNOWN_PATH: Final = frozenset({NOT_FOUND, 405, _NOT_IMPLEMENTED})
_UNSETTLED: Final = frozenset({401, 403, 408, TOO_MANY, 500, 502, 503, 504})
"""Statuses that do not tell whether there is such a path."""


class Reply(Protocol):
    """An answer that has started: its status and headers have arrived, its body has not."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> dict[str, str]:
        """The headers that the client gets as well."""
        ...

    def events(self) -> AsyncGenerator[str, None]:
        """The data of each event of a stream."""
        ...

    async def body(self) -> bytes:
        """The whole body."""
        ...

    def raw(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, not parsed."""
        ...

    def note_text(self) -> None:
        """The client gets text of this answer now."""
        ...


class Upstream:
    """An endpoint at `url` (up to and including ``/v1``), with a key for it if there is one.

    It may be silent for `seconds`. `begin_call` is called for each request, to measure it. `hint`
    says what may be wrong with the URL; it is empty if the URL looks right.
    """

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        key_header: str = "authorization",
        seconds: float,
        begin_call: Callable[[], CallMeter],
    ) -> None:
        self._url, self._key, self._key_header = url, key, key_header
        self._seconds, self._begin_call = seconds, begin_call
        self._setting = (
            "FIRNLINE_UPSTREAM" if key_header == "authorization" else "FIRNLINE_ANTHROPIC"
        )
        self.hint = endpoint_hint(url, self._setting)
        self._responses: bool | None = None
        self.listed = ListedWindows(self._list_models)
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
            limits=httpx2.Limits(
                max_connections=None, max_keepalive_connections=limits.KEEPALIVE_CONNECTIONS
            ),
            follow_redirects=False,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self.listed.close()
        await self._client.aclose()

    async def send(
        self,
        method: str,
        path: str,
        *,
        content: bytes,
        headers: Mapping[str, str],
        token: str = "",
        query: str = "",
        call: CallMeter | None = None,
    ) -> Reply:
        """Send a request; `ModelError` if the endpoint cannot be reached.

        `token` is the client's own key. It is used if the server has none, and sent as a bearer
        token if the client did so.
        """
        sent = {name: value for name, value in headers.items() if _passes(name)}
        if key := self._key or token:
            as_bearer = not self._key and "authorization" in headers
            name = "authorization" if as_bearer else self._key_header
            sent[name] = f"Bearer {key}" if name == "authorization" else key
        url = f"{self._url}{path}{'?' if query else ''}{query}"
        sent["accept-encoding"] = "identity"
        request = self._client.build_request(method, url, content=content, headers=sent)
        call = self._begin_call() if call is None else call
        try:
            response = await self._client.send(request, stream=True)
        except httpx2.RequestError as error:
            raise self._failure(error, call) from error
        except BaseException:  # the client is gone
            call.end("canceled")
            raise
        call.note_answer(response.status_code)
        return _HttpReply(response, call, self._failure)

    def _failure(self, error: httpx2.RequestError, call: CallMeter) -> ModelError:
        """What to tell of an endpoint that does not answer: where it is, and why."""
        if isinstance(error, httpx2.ConnectTimeout | httpx2.ConnectError):
            call.end("unreachable")
            text = f"cannot connect to {self._url}: {cause(error)}; check {self._setting}"
        elif isinstance(error, httpx2.TimeoutException):
            call.end("timeout")
            limit = "FIRNLINE_UPSTREAM_SECONDS is the limit"
            text = f"{self._url} was silent for {self._seconds:g} s; {limit}"
        else:
            call.end("broken")
            text = f"the answer of {self._url} broke off: {cause(error)}"
        logger.warning("upstream: %s", text)
        kind = ModelTimeout if isinstance(error, httpx2.TimeoutException) else ModelError
        return kind(text, code="connection")

    async def speaks_responses(self, headers: Mapping[str, str], token: str) -> bool:
        """Whether it speaks the Responses API; an empty request, which costs nothing, tells.

        If it cannot be reached now, the request that follows fails as well.
        """
        if self._responses is None:
            known = {name: headers[name] for name in _LIST_HEADERS if name in headers}
            sent = {**known, "content-type": "application/json"}
            reply = await self.send(
                "POST",
                "/responses",
                content=b"{}",
                headers=sent,
                token=token,
                call=UnmeasuredCall(),
            )
            async with aclosing(reply.raw()) as arriving:
                async for _ in arriving:
                    break
            if reply.status in _UNSETTLED:
                return True
            self._responses = reply.status not in _UNKNOWN_PATH
        return self._responses

    async def _list_models(self, headers: Mapping[str, str], token: str) -> bytes:
        """The endpoint's list of models, in the shape of its protocol."""
        sent = {name: headers[name] for name in _LIST_HEADERS if name in headers}
        query = ""
        if self._key_header == "x-api-key":
            sent, query = {"anthropic-version": ANTHROPIC_VERSION, **sent}, _ANTHROPIC_PAGE
        reply = await self.send(
            "GET",
            "/models",
            content=b"",
            headers=sent,
            token=token,
            query=query,
            call=UnmeasuredCall(),
        )
        body = bytearray()
        async with aclosing(reply.raw()) as arriving:
            async for piece in arriving:
                body += piece
                if len(body) > limits.LIST_BYTES_MAX:
                    raise ModelError("the list of models is too large")
        if reply.status != OK:
            raise ModelError(f"the endpoint answered {reply.status}")
        return bytes(body)


def _passes(name: str) -> bool:
    return bool(_REQUEST_HEADERS.fullmatch(name)) and not _OUR_HEADERS.fullmatch(name)


class _HttpReply:
    def __init__(
        self,
        response: httpx2.Response,
        call: CallMeter,
        failure: Callable[[httpx2.RequestError, CallMeter], ModelError],
    ) -> None:
        self._response, self._call, self._failure = response, call, failure
        self.status = response.status_code
        self.headers = {
            name: value
            for name, value in response.headers.items()
            if (_RESPONSE_HEADERS.fullmatch(name) or name == "content-type")
            and value.isascii()
            and value.isprintable()
        }

    async def events(self) -> AsyncGenerator[str, None]:
        """The data of each event; of an endpoint that does not stream, the body is one event."""
        if self.headers.get("content-type", "").startswith("application/json"):
            yield (await self.body()).decode(errors="replace")
            return
        async with aclosing(read_events(self._bounded())) as arriving:
            async for data in arriving:
                yield data

    async def body(self) -> bytes:
        return b"".join([piece async for piece in self._bounded()])

    async def _bounded(self) -> AsyncGenerator[bytes, None]:
        """The body; `ModelError` if it is too large for an answer."""
        size = 0
        async with aclosing(self.raw()) as arriving:
            async for piece in arriving:
                size += len(piece)
                if size > limits.ANSWER_BYTES_MAX:
                    raise ModelError(
                        "the answer of the upstream endpoint is too large: the limit is "
                        f"{limits.ANSWER_BYTES_MAX:,} bytes",
                        code="too_large",
                    )
                yield piece

    async def raw(self) -> AsyncGenerator[bytes, None]:
        try:
            async for piece in self._response.aiter_raw():
                yield piece
        except httpx2.RequestError as error:
            raise self._failure(error, self._call) from error
        except asyncio.CancelledError:
            self._call.end("canceled")
            raise
        finally:
            self._call.end()
            await self._response.aclose()

    def note_text(self) -> None:
        self._call.note_text()
