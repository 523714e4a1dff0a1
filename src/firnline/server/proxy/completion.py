"""Answers in the shape of OpenAI's protocol that no endpoint wrote."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any, Final

from firnline.log.message import Message
from firnline.protocols import ChatModel

DONE: Final = "[DONE]"
"""The data of the last event of a stream."""
_NO_USAGE: Final = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


class CompletionWriter:
    """Writes one answer, as JSON or in the data of events."""

    def __init__(self, model: str) -> None:
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
        }

    def body(self, message: Message) -> dict[str, Any]:
        """The complete answer."""
        reason = "tool_calls" if message.tool_calls else "stop"
        choice = {"index": 0, "message": message.to_openai(), "finish_reason": reason}
        return self._fields("chat.completion", choices=[choice], usage=_NO_USAGE)

    def start(self) -> str:
        """The first event."""
        return self._chunk({"role": "assistant", "content": ""})

    def text(self, text: str) -> str:
        """An event with more text."""
        return self._chunk({"content": text})

    def end(self, message: Message | None, options: object) -> Iterator[str]:
        """The last events: calls, the reason, the usage if `stream_options` ask for it."""
        calls = message.tool_calls if message else ()
        if calls:
            indexed = [{"index": at, **call.fields} for at, call in enumerate(calls)]
            yield self._chunk({"tool_calls": indexed})
        yield self._chunk({}, "tool_calls" if calls else "stop")
        if isinstance(options, Mapping) and options.get("include_usage"):
            yield json.dumps(self._fields("chat.completion.chunk", choices=[], usage=_NO_USAGE))
        yield DONE

    def _chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return json.dumps(self._fields("chat.completion.chunk", choices=[choice]))

    def _fields(self, kind: str, **more: Any) -> dict[str, Any]:
        return {**self._head, "object": kind, **more}


class OfflineReply:
    """The answer of a `ChatModel` as an endpoint would send it; see `upstream.Reply`."""

    status = 200

    def __init__(self, model: ChatModel, request: Mapping[str, Any]) -> None:
        self._model, self._request = model, request
        streamed = bool(request.get("stream"))
        self.headers = {"content-type": "text/event-stream" if streamed else "application/json"}
        self._writer = CompletionWriter(model.name)

    async def events(self) -> AsyncGenerator[str, None]:
        """The answer in events."""
        yield self._writer.start()
        message = None
        async for item in self._model.stream(self._request["messages"]):
            if isinstance(item, str):
                yield self._writer.text(item)
            else:
                message = item.message
        for data in self._writer.end(message, self._request.get("stream_options")):
            yield data

    async def body(self) -> bytes:
        """The complete answer."""
        done = await self._model.complete(self._request["messages"])
        return json.dumps(self._writer.body(done.message)).encode()

    def note_text(self) -> None:
        """Nothing is measured: there is no endpoint."""

    async def raw(self) -> AsyncGenerator[bytes, None]:
        """The complete answer, in one piece."""
        yield await self.body()
