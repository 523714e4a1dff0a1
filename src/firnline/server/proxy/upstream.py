"""What is behind the proxy: an endpoint over HTTP, or nobody, and then the offline responder.

Only named headers go through, in both directions; addresses come from the settings alone.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol

import httpx2

from firnline.errors import ModelError, ModelTimeout
from firnline.log.regex import regex
from firnline.models.answers import load_body
from firnline.models.events import read_events
from firnline.protocols import ChatModel, Completion

_THERE: Final = regex(
    r"(openai|anthropic|helicone|x-stainless|x-litellm|x-openwebui)-.*|http-referer|x-title"
    r"|user-agent|accept|content-type|idempotency-key"
)
_BACK: Final = regex(
    r"(openai|anthropic|x-ratelimit|retry-after).*|x-request-id|request-id|x-should-retry"
)
_OURS: Final = regex(r"x-firnline-.*")
_TIMEOUT: Final = httpx2.Timeout(600.0, connect=10.0)
_OK: Final = 200


class Reply(Protocol):
    """An answer that has begun: its status and headers are here, its body is not yet."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> dict[str, str]:
        """The headers that the client gets, too."""
        ...

    def events(self) -> AsyncGenerator[str, None]:
        """The data of each event of a stream."""
        ...

    async def body(self) -> bytes:
        """The whole body."""
        ...

    def raw(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, unread."""
        ...


class Upstream:
    """An endpoint at `url` (up to and including ``/v1``), with a key for it if there is one."""

    def __init__(self, url: str, key: str | None, *, key_header: str = "authorization") -> None:
        self._url, self._key, self._key_header = url, key, key_header
        # How many streams there are is bounded by the server, not by connections.
        most = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        self._client = httpx2.AsyncClient(timeout=_TIMEOUT, limits=most, follow_redirects=False)

    async def close(self) -> None:
        """Let go of connections."""
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
        """Ask; `ModelError` if the endpoint cannot be reached.

        `token` is the client's own key, used if the server has none, and sent as a bearer's if the
        client did so.
        """
        sent = {name: value for name, value in headers.items() if _goes_there(name)}
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
            raise ModelTimeout("the endpoint behind the proxy took too long") from error
        except httpx2.RequestError as error:
            name = type(error).__name__
            raise ModelError(f"the endpoint behind the proxy cannot be reached: {name}") from error
        return _HttpReply(response)


def _goes_there(name: str) -> bool:
    return bool(_THERE.fullmatch(name)) and not _OURS.fullmatch(name)


class _HttpReply:
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers = {
            name: value
            for name, value in response.headers.items()
            if _BACK.fullmatch(name) or name == "content-type"
        }

    async def events(self) -> AsyncGenerator[str, None]:
        """Some endpoints do not stream, or not their errors: then the body is one event."""
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
            raise ModelTimeout("the answer from behind the proxy took too long") from error
        except httpx2.RequestError as error:
            name = type(error).__name__
            raise ModelError(f"the answer from behind the proxy broke off: {name}") from error
        finally:
            await self._response.aclose()


class OfflineReply:
    """The answer of a `ChatModel` of ours, in the shape of the endpoint's protocol."""

    status = _OK

    def __init__(self, model: ChatModel, request: Mapping[str, Any]) -> None:
        self._model, self._request = model, request
        streamed = bool(request.get("stream"))
        self.headers = {"content-type": "text/event-stream" if streamed else "application/json"}
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model.name,
        }

    async def events(self) -> AsyncGenerator[str, None]:
        """The answer in chunks."""
        yield self._chunk({"role": "assistant", "content": ""})
        reason = "stop"
        async for item in self._model.stream(self._request["messages"]):
            if isinstance(item, str):
                yield self._chunk({"content": item})
            elif item.message.tool_calls:
                reason = "tool_calls"
                calls = [call.fields for call in item.message.tool_calls]
                indexed = [{"index": at, **call} for at, call in enumerate(calls)]
                yield self._chunk({"tool_calls": indexed})
        yield self._chunk({}, reason)
        if (self._request.get("stream_options") or {}).get("include_usage"):
            yield json.dumps(
                {**self._about("chat.completion.chunk"), "choices": [], "usage": _FREE}
            )
        yield "[DONE]"

    async def body(self) -> bytes:
        """The whole answer."""
        done = await self._model.complete(self._request["messages"])
        return json.dumps(self._whole(done)).encode()

    async def raw(self) -> AsyncGenerator[bytes, None]:
        """The whole answer, too."""
        yield await self.body()

    def _about(self, kind: str) -> dict[str, Any]:
        return {**self._head, "object": kind}

    def _chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return json.dumps({**self._about("chat.completion.chunk"), "choices": [choice]})

    def _whole(self, done: Completion) -> dict[str, Any]:
        reason = "tool_calls" if done.message.tool_calls else "stop"
        choice = {"index": 0, "message": done.message.to_openai(), "finish_reason": reason}
        return {**self._about("chat.completion"), "choices": [choice], "usage": _FREE}


_FREE: Final = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def json_of(body: bytes) -> dict[str, Any]:
    """The JSON object of an answer; `ModelError` if it is none."""
    data = load_body(body)
    if not isinstance(data, dict):
        raise ModelError("the answer from behind the proxy is not JSON", code="not_json")
    return data
