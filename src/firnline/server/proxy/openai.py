"""OpenAI's protocol: its requests, and its answers in one or several rounds.

The client sees only calls of its own tools; events without calls of recall tools pass as they came.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from firnline.context.tools import Tool
from firnline.errors import BudgetError, FirnlineError, ModelError
from firnline.log.media_wire import openai_parts, place_tool_media
from firnline.log.message import Message, ToolCall
from firnline.log.openai_items import ITEMS, portable
from firnline.log.text import clean_text
from firnline.log.threads import run_by_size
from firnline.log.wire import dump_openai, load_openai
from firnline.models.answers import CONTEXT_LENGTH, AnswerPieces, load_body
from firnline.server.problems import as_openai
from firnline.server.proxy.check import ChunkChecker, read_completion
from firnline.server.proxy.completion import DONE, CompletionWriter
from firnline.server.proxy.dialect import (
    AnswerStream,
    Body,
    Dialect,
    UpstreamAnswer,
    UpstreamRounds,
)
from firnline.server.proxy.upstream import Reply

_REQUEST_FIELDS: Final = frozenset(
    {"role", "content", "name", "tool_calls", "function_call", "refusal"}
)
"""Fields of an assistant's message that every endpoint accepts in a request."""


class OpenAIDialect(Dialect):
    """An OpenAI client with an endpoint of the same protocol."""

    path = "/chat/completions"

    def read_request(self, body: Body, url: str) -> Body:  # noqa: ARG002
        """See `Dialect.read_request`."""
        return body

    def load_messages(self, body: Mapping[str, Any]) -> list[Message]:
        """See `Dialect.load_messages`."""
        return load_openai(body["messages"])

    def put_messages(self, body: Body, messages: Sequence[Message]) -> Body:
        """Of an answer, the fields that the client sends itself; not those only answers have.

        Some endpoints reject their own reasoning and annotations in a request.
        """
        client = (message for message in body["messages"] if message.get("role") == "assistant")
        names = _REQUEST_FIELDS.union(*client)
        known = dump_openai(portable(m) if ITEMS in m.metadata else m for m in messages)
        sent = [_sent_back(each, names) for each in known]
        return {**body, "messages": _own_parts(sent)}

    def add_messages(self, body: Body, messages: Sequence[Message]) -> Body:
        """See `Dialect.add_messages`."""
        return {**body, "messages": [*body["messages"], *dump_openai(messages)]}

    def tool_definition(self, tool: Tool) -> dict[str, Any]:
        """See `Dialect.tool_definition`."""
        return tool.to_openai()

    def tool_name(self, definition: object) -> str | None:
        """See `Dialect.tool_name`."""
        function = definition.get("function") if isinstance(definition, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        return name if isinstance(name, str) else None

    def remove_tools(self, body: Body, names: Collection[str]) -> Body:
        """See `Dialect.remove_tools`."""
        tools = [tool for tool in body.get("tools") or () if self.tool_name(tool) not in names]
        if tools:
            return {**body, "tools": tools}
        return {key: value for key, value in body.items() if key not in ("tools", "tool_choice")}

    def finish_request(self, body: Body) -> Body:
        """Request the usage of a stream, whether the client does or not."""
        if not body.get("stream"):
            return body
        options = body.get("stream_options")
        options = options if isinstance(options, dict) else {}
        return {**body, "stream_options": {**options, "include_usage": True}}

    async def read_answer(
        self, rounds: UpstreamRounds, reply: Reply
    ) -> tuple[Body, UpstreamAnswer]:
        """See `Dialect.read_answer`."""
        while True:
            received = await reply.body()
            data = await run_by_size(len(received), partial(read_completion, received))
            choice = data["choices"][0]
            fields: dict[str, Any] = choice["message"]
            rounds.add_usage(data.get("usage"))
            calls = await run_by_size(len(received), partial(_called_names, fields))
            if not rounds.is_recall(calls):
                break
            reply = await rounds.send_tool_results(partial(_load_calls, fields), len(received))
        visible = partial(_without_recall, fields, rounds.tool_names)
        answer = UpstreamAnswer(
            fields=await run_by_size(len(received), visible),
            model=str(data.get("model") or ""),
            finish_reason=str(choice.get("finish_reason") or ""),
            usage=rounds.usage,
        )
        if answer.fields != fields:
            reason = answer.finish_reason if answer.fields.get("tool_calls") else "stop"
            first = {**choice, "message": answer.fields, "finish_reason": reason}
            data = {**data, "choices": [first, *data["choices"][1:]]}
        return ({**data, "usage": rounds.usage} if rounds.number else data), answer

    def stream_answer(self, rounds: UpstreamRounds, reply: Reply) -> AnswerStream:
        """See `Dialect.stream_answer`."""
        options = rounds.request.client_body.get("stream_options")
        with_usage = isinstance(options, dict) and bool(options.get("include_usage"))
        return stream_chunks(rounds, reply, with_usage=with_usage)

    def load_answer(self, answer: UpstreamAnswer) -> Message:
        """See `Dialect.load_answer`."""
        empty: tuple[object, ...] = (None, [], {}, "")
        fields = {key: value for key, value in answer.fields.items() if value not in empty}
        fields = {"content": None, **fields, "role": "assistant"}
        return Message.from_openai(fields, metadata=answer.metadata)

    def replay_body(self, message: Message) -> Body:
        """See `Dialect.replay_body`."""
        return CompletionWriter(stored_model(message)).body(message)

    def replay_events(self, message: Message, body: Body) -> Iterator[str]:
        """See `Dialect.replay_events`."""
        writer = CompletionWriter(stored_model(message))
        yield _event(writer.start())
        if message.text:
            yield _event(writer.text(message.text))
        yield from map(_event, writer.end(message, body.get("stream_options")))

    def error_event(self, error: FirnlineError) -> str:
        """See `Dialect.error_event`."""
        return _event(bytes(as_openai(error).body).decode()) + _event(DONE)

    def context_too_long(self, error: BudgetError) -> FirnlineError:
        """See `Dialect.context_too_long`."""
        return BudgetError(str(error), **error.context, code=CONTEXT_LENGTH)


OPENAI: Final = OpenAIDialect()


def stored_model(message: Message) -> str:
    """The model that gave a stored answer."""
    return str(message.metadata.get("model") or "firnline")


def _event(data: str) -> str:
    return f"data: {data}\n\n"


def _own_parts(messages: list[Body]) -> list[Body]:
    """The messages with the images and documents that an Anthropic client sent as our parts."""
    contents = [message["content"] for message in messages if _has_parts(message)]
    if not any("source" in part for content in contents for part in content):
        return messages
    return place_tool_media(
        {**message, "content": [part for each in message["content"] for part in openai_parts(each)]}
        if _has_parts(message)
        else message
        for message in messages
    )


def _has_parts(message: Body) -> bool:
    return isinstance(message.get("content"), list)


def _sent_back(message: Body, names: Collection[str]) -> Body:
    if message["role"] != "assistant":
        return message
    sent = {name: value for name, value in message.items() if name in names}
    audio = message.get("audio")
    if isinstance(audio, Mapping) and "id" in audio:
        sent["audio"] = {"id": audio["id"]}
    return sent


def _called_names(fields: Mapping[str, Any]) -> list[str]:
    return [ToolCall(dict(call)).name for call in fields.get("tool_calls") or ()]


def _without_recall(fields: Mapping[str, Any], tool_names: Collection[str]) -> dict[str, Any]:
    """The message without calls of recall tools."""
    calls = fields.get("tool_calls") or ()
    kept = [call for call in calls if ToolCall(dict(call)).name not in tool_names]
    rest = {key: value for key, value in fields.items() if key != "tool_calls"}
    return {**rest, "tool_calls": kept} if kept else rest


def _load_calls(fields: Mapping[str, Any]) -> Message:
    """The model's text and calls, as they are sent back to it."""
    calls, content = fields.get("tool_calls") or [], fields.get("content") or None
    return Message.from_openai({"role": "assistant", "content": content, "tool_calls": calls})


async def stream_chunks(rounds: UpstreamRounds, reply: Reply, *, with_usage: bool) -> AnswerStream:
    """The chunks of an answer as the client gets them, and the answer before those that end it."""
    earlier, model, size, has_role = "", "", 0, False
    while True:
        chunks = _ChunkFilter(rounds, with_usage=with_usage, has_role=has_role)
        async with aclosing(reply.events()) as arriving:
            async for data in arriving:
                size += len(data)
                text, visible = await run_by_size(len(data), partial(chunks.read, data))
                if visible is not None:
                    yield text, _event(visible)
        model = chunks.model or model
        rounds.add_usage(chunks.pieces.usage)
        fields = await run_by_size(size, chunks.pieces.fields)
        if not rounds.is_recall(await run_by_size(size, partial(_called_names, fields))):
            break
        earlier, has_role = earlier + (fields.get("content") or ""), chunks.has_role
        reply = await rounds.send_tool_results(partial(_load_calls, fields), size)
    if not chunks.is_complete:
        raise ModelError("the upstream answer broke off", code="cut")
    without_recall = partial(_without_recall, fields, rounds.tool_names)
    visible_fields = await run_by_size(size, without_recall)
    if earlier:  # text before a recall; the client sends it back as a part of the answer
        visible_fields["content"] = earlier + (fields.get("content") or "")
    answer = UpstreamAnswer(
        fields=visible_fields,
        model=model,
        finish_reason=chunks.pieces.finish_reason,
        usage=rounds.usage,
    )
    yield answer
    for data in await run_by_size(size, partial(chunks.ending, answer)):
        yield "", _event(data)


class _ChunkFilter:
    """One round of a stream: which part of each chunk the client gets, and when."""

    def __init__(self, rounds: UpstreamRounds, *, with_usage: bool, has_role: bool) -> None:
        self.pieces = AnswerPieces("")
        self.model = ""
        self.has_role = has_role
        """Whether the client knows whose answer it is: SDKs join a role that is said again."""
        self._rounds, self._with_usage = rounds, with_usage
        self._last: list[str] = []
        self._checker = ChunkChecker()
        self._indexes: dict[int, int | None] = {}
        self._visible = 0

    @property
    def is_complete(self) -> bool:
        """Whether there was an answer, and its end."""
        ended = self.pieces.done or bool(self.pieces.finish_reason)
        return self._checker.has_begun and ended

    def read(self, data: str) -> tuple[str, str | None]:
        """The text of a chunk, and what the client gets now; the end of the answer is held back."""
        if self.pieces.done:  # nothing behind it counts
            return "", None
        if data.strip() == DONE:
            text = self.pieces.take(data)
        else:
            chunk, data = self._checker.read(data)
            choices = chunk.get("choices")
            first = choices[0] if choices else {}
            if first.get("index", 0) != 0:
                return "", data  # another of several answers; only the first one is stored
            text = clean_text(self.pieces.add(chunk))
            self.model = str(chunk.get("model") or self.model)
            if choices == [] and chunk.get("usage") and not self._with_usage:
                return text, None
            data = self._without_recall(chunk, first, data)
        if self._last or self.pieces.finish_reason or self.pieces.done:
            self._last.append(data)
            return text, None
        return text, data or None

    def ending(self, answer: UpstreamAnswer) -> list[str]:
        """The end of the answer, with the usage of all rounds."""
        found = []
        for data in filter(None, self._last):
            chunk = load_body(data) if self._rounds.tools else None
            if isinstance(chunk, dict):
                chunk = self._ended(chunk, answer)
                found.append(json.dumps(chunk))
            else:
                found.append(data)
        return found

    def _ended(self, chunk: dict[str, Any], answer: UpstreamAnswer) -> dict[str, Any]:
        if chunk.get("usage"):
            chunk["usage"] = {**chunk["usage"], **self._rounds.usage}
        for choice in chunk.get("choices") or ():
            recalls = choice.get("finish_reason") == "tool_calls"
            if recalls and not answer.fields.get("tool_calls"):
                choice["finish_reason"] = "stop"
        return chunk

    def _without_recall(self, chunk: dict[str, Any], choice: dict[str, Any], data: str) -> str:
        """The chunk without calls of recall tools; empty if nothing else is in it."""
        delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else None
        if not self._rounds.tools or not delta:
            return data
        shown = {key: value for key, value in delta.items() if key != "role" or not self.has_role}
        if delta.get("tool_calls"):
            return self._without_calls(chunk, choice, shown)
        self.has_role = self.has_role or "role" in shown
        return data if shown == delta else _with_delta(chunk, choice, shown)

    def _without_calls(
        self, chunk: dict[str, Any], choice: dict[str, Any], delta: dict[str, Any]
    ) -> str:
        calls = delta["tool_calls"]
        indexed = [(self._client_index(call), call) for call in calls]
        kept = [{**call, "index": index} for index, call in indexed if index is not None]
        rest = {key: value for key, value in delta.items() if key != "tool_calls"}
        if not kept and not rest.get("content") and not choice.get("finish_reason"):
            return ""
        self.has_role = self.has_role or "role" in rest
        return _with_delta(chunk, choice, {**rest, "tool_calls": kept} if kept else rest)

    def _client_index(self, call: Mapping[str, Any]) -> int | None:
        """The index of a call among those that the client sees; None for a recall tool."""
        index = call.get("index", 0)
        if index not in self._indexes:
            recalls = (call.get("function") or {}).get("name") in self._rounds.tool_names
            self._indexes[index] = None if recalls else self._visible
            self._visible += not recalls
        return self._indexes[index]


def _with_delta(chunk: dict[str, Any], choice: dict[str, Any], delta: dict[str, Any]) -> str:
    """The chunk with another delta of its first choice."""
    return json.dumps({**chunk, "choices": [{**choice, "delta": delta}, *chunk["choices"][1:]]})
