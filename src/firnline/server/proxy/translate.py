"""An Anthropic client with an endpoint that speaks OpenAI's protocol, or with none. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from fastapi.responses import JSONResponse
from starlette.responses import Response

from firnline.errors import BudgetError, FirnlineError, InputError
from firnline.log.media_wire import json_text, openai_parts, place_tool_media
from firnline.log.message import Message, Part
from firnline.log.openai_items import portable
from firnline.log.threads import run_by_size, text_size
from firnline.log.wire import anthropic_blocks, load_anthropic
from firnline.models.answers import CONTEXT_LENGTH, load_body, read_error
from firnline.models.http import limit_name
from firnline.server.problems import anthropic_body
from firnline.server.proxy import limits
from firnline.server.proxy.anthropic import ANTHROPIC, TOO_LONG, anthropic_reason, refuse_thread
from firnline.server.proxy.blocks import (
    PING,
    Event,
    answer_body,
    block_events,
    ending_events,
    event_frame,
)
from firnline.server.proxy.dialect import (
    AnswerStream,
    Body,
    StreamEvent,
    UpstreamAnswer,
    UpstreamRounds,
)
from firnline.server.proxy.openai import OpenAIDialect, stream_chunks
from firnline.server.proxy.upstream import Reply

_SAME_FIELDS: Final = ("model", "stream", "temperature", "top_p")
_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
_MEMORY: Final = "memory_20250818"
_TEXT: Final = {"type": "string"}
_MEMORY_FUNCTION: Final[Mapping[str, Any]] = {
    "description": (
        "Your own notes, kept in files below /memories across conversations. Look there first"
        " (view /memories), and note what will help later. Commands: view (path, view_range);"
        " create (path, file_text), which fails if the file exists; str_replace (path, old_str,"
        " new_str), where old_str occurs once; insert (path, insert_line, insert_text); delete"
        " (path); rename (old_path, new_path)."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "enum": ["view", "create", "str_replace", "insert", "delete", "rename"],
            },
            "path": _TEXT,
            "view_range": {"type": "array", "items": {"type": "integer"}},
            "file_text": _TEXT,
            "old_str": _TEXT,
            "new_str": _TEXT,
            "insert_line": {"type": "integer"},
            "insert_text": _TEXT,
            "old_path": _TEXT,
            "new_path": _TEXT,
        },
        "required": ["command"],
    },
}
"""Anthropic's memory tool as a function; the client runs it."""


class TranslatedDialect(OpenAIDialect):
    """Requests go in OpenAI's shape, but their messages are ours until they are sent."""

    margin_tokens = limits.TRANSLATION_MARGIN_TOKENS

    def read_request(self, body: Body, url: str) -> Body:
        """See `Dialect.read_request` and `translate_request`."""
        refuse_thread(body)
        return translate_request(body, limit_name(url))

    def load_messages(self, body: Mapping[str, Any]) -> list[Message]:
        """See `Dialect.load_messages`."""
        return list(body["messages"])

    def put_messages(self, body: Body, messages: Sequence[Message]) -> Body:
        """See `Dialect.put_messages`."""
        return {**body, "messages": messages}

    def finish_request(self, body: Body) -> Body:
        """See `Dialect.finish_request`."""
        return super().finish_request({**body, "messages": chat_messages(body["messages"])})

    async def read_answer(
        self, rounds: UpstreamRounds, reply: Reply
    ) -> tuple[Body, UpstreamAnswer]:
        """See `Dialect.read_answer`."""
        _, answer = await super().read_answer(rounds, reply)
        body = await run_by_size(text_size(answer.fields), partial(self._answer_body, answer))
        return body, answer

    async def stream_answer(self, rounds: UpstreamRounds, reply: Reply) -> AnswerStream:
        """Text is passed on as it arrives, calls when they are complete."""
        request, sent, begun = rounds.request, "", False
        usage = {"input_tokens": request.prompt_tokens, "output_tokens": 0}
        head = answer_body(str(request.client_body.get("model") or ""), [], None, usage)
        answer: UpstreamAnswer | None = None
        async with aclosing(stream_chunks(rounds, reply, with_usage=True)) as chunks:
            async for chunk in chunks:
                if not begun:
                    yield "", event_frame({"type": "message_start", "message": head})
                    begun = True
                if isinstance(chunk, UpstreamAnswer):
                    yield chunk
                    answer = chunk
                else:
                    for event in _relayed_events(*chunk, first=not sent):
                        yield event
                    sent += chunk[0]
        if answer is not None:
            frames = partial(self._ending_frames, answer, sent)
            for frame in await run_by_size(text_size(answer.fields), lambda: list(frames())):
                yield "", frame

    def _ending_frames(self, answer: UpstreamAnswer, sent: str) -> Iterator[str]:
        """The events after the text that was sent: the rest of it, the calls, and the end."""
        text = str(answer.fields.get("content") or "")
        if len(text) > len(sent) and text.startswith(sent):  # text in the chunk that ends it
            for _, frame in _text_events(text[len(sent) :], first=not sent):
                yield frame
            sent = text
        if sent:
            yield event_frame({"type": "content_block_stop", "index": 0})
        body = self._answer_body(answer)
        calls = [block for block in body["content"] if block["type"] == "tool_use"]
        for index, call in enumerate(calls, int(bool(sent))):
            for _, event in block_events(index, call):
                yield event_frame(event)
        yield from map(event_frame, ending_events(body))

    def _answer_body(self, answer: UpstreamAnswer) -> Body:
        """The complete answer as the client gets it."""
        refusal = answer.fields.get("refusal")
        reason = anthropic_reason(answer.finish_reason)
        if refusal:
            reason = "refusal"
        elif answer.fields.get("tool_calls"):
            reason = "tool_use"
        elif reason == "tool_use":
            reason = "end_turn"  # the calls were of recall tools
        content, usage = anthropic_blocks(self.load_answer(answer)), translate_usage(answer.usage)
        body = answer_body(answer.model, content, reason, usage)
        if refusal:
            body["stop_details"] = {"type": "refusal", "category": None, "explanation": refusal}
        return body

    def rejection(self, status: int, body: bytes, headers: Mapping[str, str]) -> Response:
        """See `Dialect.rejection`."""
        code, message = read_error(load_body(body), f"status {status}")
        if code == CONTEXT_LENGTH:
            message = f"{TOO_LONG}: {message}"
        headers = {name: value for name, value in headers.items() if name != "content-type"}
        return JSONResponse(anthropic_body(status, message), status, headers)

    def replay_body(self, message: Message) -> Body:
        """See `Dialect.replay_body`."""
        return ANTHROPIC.replay_body(message)

    def replay_events(self, message: Message, body: Body) -> Iterator[str]:
        """See `Dialect.replay_events`."""
        return ANTHROPIC.replay_events(message, body)

    def error_event(self, error: FirnlineError) -> str:
        """See `Dialect.error_event`."""
        return ANTHROPIC.error_event(error)

    def context_too_long(self, error: BudgetError) -> FirnlineError:
        """See `Dialect.context_too_long`."""
        return ANTHROPIC.context_too_long(error)


TRANSLATED: Final = TranslatedDialect()


def _relayed_events(text: str, chunk: str, *, first: bool) -> Iterator[StreamEvent]:
    """The events for a chunk: its text, or a sign of life while a call is written."""
    if text:
        yield from _text_events(text, first=first)
    elif '"tool_calls"' in chunk:
        yield "", event_frame(PING)


def _text_events(text: str, *, first: bool) -> Iterator[StreamEvent]:
    if first:
        start: Event = {"type": "content_block_start", "index": 0}
        yield "", event_frame({**start, "content_block": {"type": "text", "text": ""}})
    delta = {"type": "text_delta", "text": text}
    yield text, event_frame({"type": "content_block_delta", "index": 0, "delta": delta})


# -- the request ------------------------------------------------------------------------------


def translate_request(body: Mapping[str, Any], limit: str) -> Body:
    """A request of Anthropic's as one of OpenAI's; `limit` is its name for the longest answer.

    Its messages are still ours: most of them need not be sent. Fields that OpenAI's protocol does
    not have are left out. `InputError` for tools that only Anthropic's own endpoint can run.
    """
    translated: Body = {name: body[name] for name in _SAME_FIELDS if body.get(name) is not None}
    translated["messages"] = load_anthropic(body)
    if body.get("tools"):
        translated["tools"] = [_tool(tool) for tool in check_tools(body["tools"])]
    translated |= _choice(body.get("tool_choice"))
    if body.get("max_tokens"):
        translated[limit] = body["max_tokens"]
    if body.get("stop_sequences"):
        translated["stop"] = body["stop_sequences"]
    config = body.get("output_config")
    form = config.get("format") if isinstance(config, Mapping) else None
    if isinstance(form, Mapping) and form.get("type") == "json_schema":
        schema = {"name": "answer", "schema": form.get("schema"), "strict": True}
        translated["response_format"] = {"type": "json_schema", "json_schema": schema}
    return translated


def check_tools(tools: object) -> list[Mapping[str, Any]]:
    """The tools of a request; `InputError` if they are not a list of objects."""
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) for tool in tools):
        raise InputError("tools: expected a list of objects")
    return tools


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if tool.get("type") == _MEMORY:
        return {"type": "function", "function": {"name": tool.get("name"), **_MEMORY_FUNCTION}}
    if tool.get("type") not in (None, "custom"):
        raise InputError(
            f"tools: {str(tool['type'])[: limits.TOOL_TYPE_CHARS_MAX]} needs Anthropic's own "
            "endpoint; set FIRNLINE_ANTHROPIC on the server"
        )
    function = {"name": tool.get("name"), "parameters": tool.get("input_schema") or {}}
    for name in ("description", "strict"):
        if tool.get(name) is not None:
            function[name] = tool[name]
    return {"type": "function", "function": function}


def _choice(choice: object) -> dict[str, Any]:
    if not isinstance(choice, Mapping):
        return {}
    found: dict[str, Any] = {}
    kind = str(choice.get("type"))
    if kind == "tool":
        found["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
    elif kind in _CHOICES:
        found["tool_choice"] = _CHOICES[kind]
    if choice.get("disable_parallel_tool_use"):
        found["parallel_tool_calls"] = False
    return found


# -- its messages -----------------------------------------------------------------------------


def chat_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages in OpenAI's shape, with Anthropic's blocks as OpenAI's parts.

    A tool's message can have only text there; its images follow the last result in a message of the
    user.
    """
    found: list[dict[str, Any]] = []
    for message in place_tool_media(_with_parts(portable(message)) for message in messages):
        parts = message.get("content")
        found.append(_chat_message(message, parts) if isinstance(parts, list) else message)
    return found


def _with_parts(message: Message) -> dict[str, Any]:
    written = message.to_openai()
    if not isinstance(message.content, tuple):
        return {**written, "content": written.get("content") or _empty_content(written)}
    return {**written, "content": [part for each in message.content for part in _chat_part(each)]}


def _chat_message(message: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    one = parts[0] if len(parts) == 1 else {}
    if not parts:
        return {**message, "content": _empty_content(message)}
    return {**message, "content": one["text"] if one.get("type") == "text" else parts}


def _empty_content(message: Mapping[str, Any]) -> str | None:
    return None if message["role"] == "assistant" and message.get("tool_calls") else ""


def _chat_part(part: Part) -> Iterator[dict[str, Any]]:
    """A part in OpenAI's shape. Reasoning is left out: it has no part there."""
    if part.kind == "text":
        yield {"type": "text", "text": part.text}
    elif part.kind == "unknown":
        yield {"type": "text", "text": json_text(part.fields)}
    elif part.kind != "reasoning":
        yield from openai_parts(dict(part.fields))


def translate_usage(usage: Mapping[str, Any]) -> dict[str, int]:
    """What an answer cost, in Anthropic's terms: cached tokens are counted separately."""
    details = usage.get("prompt_tokens_details")
    cached = (details.get("cached_tokens") or 0) if isinstance(details, Mapping) else 0
    found = {
        "input_tokens": max((usage.get("prompt_tokens") or 0) - cached, 0),
        "output_tokens": usage.get("completion_tokens") or 0,
    }
    return {**found, "cache_read_input_tokens": cached} if cached else found
