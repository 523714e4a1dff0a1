"""The endpoint that the proxy sends requests to, and the rounds of one request with it.

Only listed headers pass, in both directions; only the settings decide where requests go. Without an
endpoint, the offline model answers. Recall tools run between two rounds, within the tokens that are
reserved for them: the client sees only calls of its own tools.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import httpx2

from firnline.context.tools import Tool, answer
from firnline.errors import ModelError, ModelTimeout, TooFast
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.log.tokens import TokenCounter
from firnline.models.answers import load_body
from firnline.models.events import read_events
from firnline.server.offline_model import OfflineModel
from firnline.server.proxy import limits
from firnline.server.proxy.completion import OfflineReply

if TYPE_CHECKING:
    from firnline.server.proxy.request import MemoryStatus, ProxyRequest

_REQUEST_HEADERS: Final = regex(
    r"(openai|anthropic|helicone|x-stainless|x-litellm|x-openwebui)-.*|http-referer|x-title"
    r"|user-agent|accept|content-type|idempotency-key"
)
_RESPONSE_HEADERS: Final = regex(
    r"(openai|anthropic|x-ratelimit|retry-after).*|x-request-id|request-id|x-should-retry"
)
_OUR_HEADERS: Final = regex(r"x-firnline-.*")
OK: Final = 200
_TOO_MANY: Final = 429
_USUAL_REASONS: Final = frozenset({"", "stop", "tool_calls", "end_turn", "tool_use"})


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


class Upstream:
    """An endpoint at `url` (up to and including ``/v1``), with a key for it if there is one."""

    def __init__(self, url: str, key: str | None, *, key_header: str = "authorization") -> None:
        self._url, self._key, self._key_header = url, key, key_header
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(limits.ANSWER_SECONDS, connect=limits.CONNECT_SECONDS),
            limits=httpx2.Limits(
                max_connections=None, max_keepalive_connections=limits.KEEPALIVE_CONNECTIONS
            ),
            follow_redirects=False,
        )

    async def close(self) -> None:
        """Close the connections."""
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
        try:
            response = await self._client.send(request, stream=True)
        except httpx2.TimeoutException as error:
            raise ModelTimeout("the upstream endpoint timed out") from error
        except httpx2.RequestError as error:
            name = type(error).__name__
            raise ModelError(f"cannot connect to the upstream endpoint: {name}") from error
        return _HttpReply(response)


def _passes(name: str) -> bool:
    return bool(_REQUEST_HEADERS.fullmatch(name)) and not _OUR_HEADERS.fullmatch(name)


class _HttpReply:
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers = {
            name: value
            for name, value in response.headers.items()
            if _RESPONSE_HEADERS.fullmatch(name) or name == "content-type"
        }

    async def events(self) -> AsyncGenerator[str, None]:
        """The data of each event; of an endpoint that does not stream, the body is one event."""
        if self.headers.get("content-type", "").startswith("application/json"):
            yield (await self.body()).decode(errors="replace")
            return
        async with aclosing(read_events(self.raw())) as arriving:
            async for data in arriving:
                yield data

    async def body(self) -> bytes:
        return b"".join([piece async for piece in self.raw()])

    async def raw(self) -> AsyncGenerator[bytes, None]:
        try:
            async for piece in self._response.aiter_raw():
                yield piece
        except httpx2.TimeoutException as error:
            raise ModelTimeout("the answer of the upstream endpoint timed out") from error
        except httpx2.RequestError as error:
            name = type(error).__name__
            raise ModelError(f"the answer of the upstream endpoint broke off: {name}") from error
        finally:
            await self._response.aclose()


def load_answer_body(body: bytes) -> dict[str, Any]:
    """The JSON object of an answer; `ModelError` if it is not one."""
    data = load_body(body)
    if not isinstance(data, dict):
        raise ModelError("the answer of the upstream endpoint is not JSON", code="not_json")
    return data


# -- one request ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRequest:
    """A request as it is sent: its `body`, and the recall `tools` that it offers.

    `tool_tokens` is what the results of one round of them may take, `room` what all rounds may add
    to the request, counted with `count`.
    """

    body: dict[str, Any]
    status: MemoryStatus
    count: TokenCounter
    tools: Sequence[Tool] = ()
    tool_tokens: int = 0
    room: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamAnswer:
    """A complete answer: the `fields` of its message, in the shape of the endpoint's protocol.

    Calls of recall tools are not in it. In a stream it comes before the events that end the answer,
    so that it is stored before the client sees that it is complete.
    """

    fields: Mapping[str, Any]
    model: str
    finish_reason: str
    usage: Mapping[str, Any]

    @property
    def metadata(self) -> dict[str, Any]:
        """What the log keeps of it apart from the message."""
        metadata: dict[str, Any] = {"model": self.model} if self.model else {}
        if self.finish_reason not in _USUAL_REASONS:
            metadata["finish_reason"] = self.finish_reason
        return metadata


class UpstreamRounds:
    """The rounds of one request: each is sent, and may call recall tools for the next one.

    `number` counts the rounds of recall, `usage` adds up what all rounds cost.
    """

    def __init__(self, request: ProxyRequest, prepared: UpstreamRequest) -> None:
        self.request, self.status, self.tools = request, prepared.status, prepared.tools
        self.tool_names = frozenset(tool.name for tool in prepared.tools)
        self.number = 0
        self.usage: dict[str, Any] = {}
        self._body, self._room = prepared.body, prepared.room
        self._tool_tokens, self._count = prepared.tool_tokens, prepared.count

    async def send_upstream(self) -> Reply:
        """Send the request to the endpoint; without one, the offline model answers."""
        request = self.request
        if request.upstream is None:
            location = self.status.location
            conversation = location.conversation if location else None
            return OfflineReply(OfflineModel(request.memory, conversation), self._body)
        return await request.upstream.send(
            "POST",
            request.dialect.path,
            content=json.dumps(self._body, ensure_ascii=False, allow_nan=False).encode(),
            headers=request.headers,
            token=request.caller.token,
            query=request.query,
        )

    def is_recall(self, calls: Collection[object]) -> bool:
        """Whether the model calls recall tools and no others; `calls` are the tools' names."""
        recalls = bool(calls) and all(name in self.tool_names for name in calls)
        return recalls and self.number < limits.ROUNDS_MAX

    async def send_tool_results(self, message: Message) -> Reply:
        """Run the recall tools that the model calls, and send their results."""
        calls = message.tool_calls
        texts = await asyncio.gather(*(answer(call, self.tools) for call in calls))
        results = [
            Message.tool(text, tool_call_id=call.id)
            for call, text in zip(calls, texts, strict=True)
        ]
        more, dialect = [message, *results], self.request.dialect
        self._room -= sum(int(self._count.message(each)) for each in more)
        self.number += 1
        if self.number >= limits.ROUNDS_MAX or self._room < self._tool_tokens:
            self._body = dialect.remove_tools(self._body, self.tool_names)
        self._body = dialect.add_messages(self._body, more)
        reply = await self.send_upstream()
        if reply.status == _TOO_MANY:
            wait = reply.headers.get("retry-after", "")
            seconds = float(wait) if wait.isdecimal() else 1.0
            raise TooFast("the upstream endpoint limits requests", retry_after=seconds)
        if reply.status != OK:
            raise ModelError(f"the upstream endpoint answered {reply.status} after a recall")
        return reply

    def add_usage(self, usage: object) -> None:
        """Add what a round cost."""
        self.usage = _sum_usage(self.usage, usage if isinstance(usage, Mapping) else {})


def _sum_usage(total: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Counts are added up, also those inside counts; of other values the last one is kept."""
    found = dict(total)
    for name, value in more.items():
        before = found.get(name)
        if isinstance(value, Mapping):
            found[name] = _sum_usage(before if isinstance(before, Mapping) else {}, value)
        elif isinstance(value, int) and isinstance(before, int):
            found[name] = before + value
        elif value is not None or before is None:
            found[name] = value
    return found
