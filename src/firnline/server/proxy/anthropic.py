"""Anthropic's protocol: its requests, and its answers in one or several rounds.

Events pass as they came. Only calls of recall tools are left out; then the blocks are numbered
without a gap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Final

from firnline.context.tools import Tool
from firnline.errors import BudgetError, FirnlineError, InputError, ModelError
from firnline.log.message import Message
from firnline.log.openai_items import portable
from firnline.log.text import clean_text
from firnline.log.threads import run_by_size
from firnline.log.wire import anthropic_blocks, anthropic_turns, dump_anthropic, load_anthropic
from firnline.models.answers import read_error
from firnline.server.problems import as_anthropic
from firnline.server.proxy import limits
from firnline.server.proxy.blocks import (
    Block,
    BlockReader,
    Event,
    answer_body,
    answer_events,
    event_frame,
)
from firnline.server.proxy.check import EventChecker, check_message, read_message
from firnline.server.proxy.dialect import (
    AnswerStream,
    Body,
    Dialect,
    StreamEvent,
    UpstreamAnswer,
    UpstreamRounds,
)
from firnline.server.proxy.openai import stored_model
from firnline.server.proxy.upstream import Reply

ANTHROPIC_PREFIX: Final = "anthropic/"
TOO_LONG: Final = "prompt is too long"
"""The words that Anthropic's clients look for."""
_CACHE_MARK: Final = "cache_control"
_LAST_EVENTS: Final = frozenset({"message_delta", "message_stop"})
_NO_USAGE: Final = {"input_tokens": 0, "output_tokens": 0}
_REASONS: Final = {
    "": "end_turn",
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
"""Why an answer ended, in OpenAI's words and in Anthropic's."""


class PromptTooLong(InputError):
    """The newest message does not fit; in the words that Anthropic's clients look for."""


class AnthropicDialect(Dialect):
    """An Anthropic client with an endpoint of the same protocol."""

    path = "/messages"
    margin_tokens = limits.ANTHROPIC_MARGIN_TOKENS
    forwards_query = True

    def read_request(self, body: Body, url: str) -> Body:  # noqa: ARG002
        """See `Dialect.read_request`."""
        refuse_thread(body)
        return {**body, "model": anthropic_model(body)} if "model" in body else body

    def load_messages(self, body: Mapping[str, Any]) -> list[Message]:
        """See `Dialect.load_messages`."""
        return load_anthropic(body)

    def put_messages(self, body: Body, messages: Sequence[Message]) -> Body:
        """The log has the cache marks of every turn; as many are sent as the client sends now."""
        dumped = dump_anthropic(map(portable, messages))
        rest = {key: value for key, value in body.items() if key != "system"}
        system = {"system": dumped["system"]} if dumped["system"] else {}
        elsewhere = count_marks({**rest, **system, "messages": []})
        most = min(count_marks(body.get("messages")), limits.CACHE_MARKS_MAX - elsewhere)
        return {**rest, **system, "messages": keep_last_marks(dumped["messages"], max(most, 0))}

    def add_messages(self, body: Body, messages: Sequence[Message]) -> Body:
        """See `Dialect.add_messages`."""
        return {**body, "messages": [*body["messages"], *anthropic_turns(messages)]}

    def tool_definition(self, tool: Tool) -> dict[str, Any]:
        """See `Dialect.tool_definition`."""
        return tool.to_anthropic()

    def tool_name(self, definition: object) -> str | None:
        """See `Dialect.tool_name`."""
        name = definition.get("name") if isinstance(definition, Mapping) else None
        return name if isinstance(name, str) else None

    def remove_tools(self, body: Body, names: Collection[str]) -> Body:
        """If messages have calls, tools must be offered; then none of them may be called."""
        tools = [tool for tool in body.get("tools") or [] if self.tool_name(tool) not in names]
        return {**body, "tools": tools} if tools else {**body, "tool_choice": {"type": "none"}}

    async def read_answer(
        self, rounds: UpstreamRounds, reply: Reply
    ) -> tuple[Body, UpstreamAnswer]:
        """See `Dialect.read_answer`."""
        while True:
            received = await reply.body()
            data = await run_by_size(len(received), partial(read_message, received))
            content = await run_by_size(len(received), partial(_content, data))
            rounds.add_usage(data.get("usage"))
            calls = await run_by_size(len(received), partial(_called_names, content))
            if not rounds.is_recall(calls):
                break
            reply = await rounds.send_tool_results(partial(_load_blocks, content), len(received))
        visible = await run_by_size(len(received), partial(_visible, rounds, content))
        answer = UpstreamAnswer(
            fields={"content": visible},
            model=str(data.get("model") or ""),
            finish_reason=_visible_reason(str(data.get("stop_reason") or ""), visible),
            usage=rounds.usage,
        )
        if visible != content:
            data = {**data, "content": visible, "stop_reason": answer.finish_reason}
        return ({**data, "usage": rounds.usage} if rounds.number else data), answer

    async def stream_answer(self, rounds: UpstreamRounds, reply: Reply) -> AnswerStream:
        """See `Dialect.stream_answer`."""
        visible: list[Block] = []
        model, size = "", 0
        while True:
            events = _EventFilter(rounds, visible)
            async with aclosing(reply.events()) as arriving:
                async for data in arriving:
                    size += len(data)
                    for event in await run_by_size(len(data), partial(events.read, data)):
                        yield event
            model = events.blocks.model or model
            rounds.add_usage(events.blocks.usage)
            content = list((await run_by_size(size, events.blocks.content)).values())
            visible += await run_by_size(size, partial(_visible, rounds, content))
            calls = await run_by_size(size, partial(_called_names, content))
            if not events.blocks.ended or not rounds.is_recall(calls):
                break
            reply = await rounds.send_tool_results(partial(_load_blocks, content), size)
        if not events.blocks.ended:
            raise ModelError("the upstream answer broke off", code="cut")
        answer = UpstreamAnswer(
            fields={"content": visible},
            model=model,
            finish_reason=_visible_reason(events.blocks.stop_reason, visible),
            usage=rounds.usage,
        )
        yield answer
        for frame in await run_by_size(size, partial(events.ending, answer)):
            yield "", frame

    def load_answer(self, answer: UpstreamAnswer) -> Message:
        """See `Dialect.load_answer`."""
        message = _load_blocks(answer.fields["content"])
        return replace(message, metadata={**message.metadata, **answer.metadata})

    def replay_body(self, message: Message) -> Body:
        """See `Dialect.replay_body`."""
        usual = "tool_use" if message.tool_calls else "end_turn"
        reason = anthropic_reason(str(message.metadata.get("finish_reason") or usual))
        return answer_body(stored_model(message), anthropic_blocks(message), reason, _NO_USAGE)

    def replay_events(self, message: Message, body: Body) -> Iterator[str]:  # noqa: ARG002
        """See `Dialect.replay_events`."""
        for _, event in answer_events(self.replay_body(message)):
            yield event_frame(event)

    def error_event(self, error: FirnlineError) -> str:
        """See `Dialect.error_event`."""
        data = error.context.get("event") or bytes(as_anthropic(error).body).decode()
        return event_frame({"type": "error"}, data)

    def context_too_long(self, error: BudgetError) -> FirnlineError:
        """See `Dialect.context_too_long`."""
        floor, most = error.context.get("floor"), error.context.get("available")
        text = f"{TOO_LONG}: {floor} tokens > {most} maximum; {error}"
        return PromptTooLong(text, **error.context)


ANTHROPIC: Final = AnthropicDialect()


def refuse_thread(body: Mapping[str, Any]) -> None:
    """Refuse state at the provider, in the words after which Anthropic's SDK sends the history."""
    if body.get("thread"):
        raise InputError(
            "thread: not supported, because the conversation is stored here; send its history, or"
            " only what is new under the path /c/NAME",
            details={"error_code": "thread_unsupported_request", "unsupported": ["thread"]},
        )


def anthropic_model(body: Mapping[str, Any]) -> Any:
    """The model as Anthropic's endpoint calls it; gateways put the provider before its name."""
    model = body["model"]
    return model.removeprefix(ANTHROPIC_PREFIX) if isinstance(model, str) else model


def anthropic_reason(finish_reason: str) -> str:
    """Why an answer ended, in Anthropic's words, whichever protocol it comes from."""
    return _REASONS.get(finish_reason, finish_reason)


# -- marks for the prompt cache ---------------------------------------------------------------


def count_marks(value: object) -> int:
    """How many marks for the prompt cache there are."""
    if isinstance(value, Mapping):
        return bool(value.get(_CACHE_MARK)) + sum(
            count_marks(v) for k, v in value.items() if k != _CACHE_MARK
        )
    return sum(map(count_marks, value)) if isinstance(value, list) else 0


def keep_last_marks(turns: Sequence[Body], keep: int) -> list[Body]:
    """The turns with the last `keep` of their marks for the prompt cache only."""
    found: list[Body] = []
    for turn in reversed(turns):
        content, keep = _keep_last_marks(turn["content"], keep)
        found.append({**turn, "content": content})
    return found[::-1]


def _keep_last_marks(blocks: Sequence[Body], keep: int) -> tuple[list[Body], int]:
    found: list[Body] = []
    for each in reversed(blocks):
        block = each
        if block.get(_CACHE_MARK):
            if keep <= 0:
                block = {key: value for key, value in block.items() if key != _CACHE_MARK}
            keep -= 1
        if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
            content, keep = _keep_last_marks(block["content"], keep)
            block = {**block, "content": content}
        found.append(block)
    return found[::-1], keep


# -- streams ----------------------------------------------------------------------------------


class _EventFilter:
    """One round of a stream: which events the client gets, and when."""

    def __init__(self, rounds: UpstreamRounds, earlier: Sequence[Block]) -> None:
        self.blocks = BlockReader()
        self._checker = EventChecker()
        self._rounds, self._visible = rounds, len(earlier)
        self._has_text = any(block.get("type") == "text" for block in earlier)
        self._last: list[tuple[Event, str]] = []
        self._has_stopped = False
        self._indexes: dict[int, int | None] = {}

    def read(self, data: str) -> list[StreamEvent]:
        """The events that the client gets now; the end of the answer is held back."""
        return list(self._read(data))

    def _read(self, data: str) -> Iterator[StreamEvent]:
        event, data = self._checker.read(data)
        if event.get("type") == "error":
            inner = event.get("error")
            usual = isinstance(inner, dict) and isinstance(inner.get("type"), str)
            facts = {"event": data} if usual else {}
            raise _error(event, "the upstream endpoint failed", **facts)
        if event.get("type") == "message":  # some endpoints do not stream
            check_message(event)
            for _, each in answer_events({**event, "content": _content(event)}):
                yield from self._pass(each, "")
        else:
            yield from self._pass(event, data)

    def _pass(self, event: Event, data: str) -> Iterator[StreamEvent]:
        text = clean_text(self._separator(event) + self.blocks.read(event))
        visible = self._without_recall(event)
        self._has_stopped |= event.get("type") == "message_stop"
        if self._last or event.get("type") in _LAST_EVENTS:
            self._last.append((event, data))
        elif visible is not None:
            yield text, event_frame(visible, data if visible is event else "")

    def _separator(self, event: Event) -> str:
        """A line break between two blocks of text, as in the text of a message."""
        block = event.get("content_block") or {}
        if event.get("type") != "content_block_start" or block.get("type") != "text":
            return ""
        had_text, self._has_text = self._has_text, True
        return "\n" if had_text else ""

    def _without_recall(self, event: Event) -> Event | None:
        """The event as the client gets it; None for recall tools and the start of another round."""
        if event.get("type") == "message_start":
            return None if self._rounds.number else event
        index = event.get("index")
        if not isinstance(index, int):
            return event
        place = self._client_index(index, event.get("content_block") or {})
        if place is None:
            return None
        return event if place == index else {**event, "index": place}

    def _client_index(self, index: int, block: Mapping[str, Any]) -> int | None:
        """The index of a block among those that the client sees; None for a recall tool."""
        if index not in self._indexes:
            recalls = _is_recall(self._rounds, block)
            self._indexes[index] = None if recalls else self._visible
            self._visible += not recalls
        return self._indexes[index]

    def ending(self, answer: UpstreamAnswer) -> list[str]:
        """The end of the answer, with the usage of all rounds."""
        return list(self._ending(answer))

    def _ending(self, answer: UpstreamAnswer) -> Iterator[str]:
        for event, data in self._last:
            if not self._rounds.tools or event.get("type") != "message_delta":
                yield event_frame(event, data)
                continue
            delta = {**(event.get("delta") or {}), "stop_reason": answer.finish_reason}
            total = self._rounds.usage if self._rounds.number else {}
            usage = {**(event.get("usage") or {}), **total}
            yield event_frame({**event, "delta": delta, "usage": usage})
        if not self._has_stopped:
            yield event_frame({"type": "message_stop"})


# -- blocks -----------------------------------------------------------------------------------


def _content(data: Mapping[str, Any]) -> list[Block]:
    content = data.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise _error(data, "the upstream answer has no content")
    return content


def _load_blocks(content: Sequence[Mapping[str, Any]]) -> Message:
    """An answer of Anthropic's blocks as a message."""
    turn = {"role": "assistant", "content": list(content)}
    return load_anthropic({"messages": [turn]})[0]


def _called_names(content: Sequence[Block]) -> list[object]:
    return [block.get("name") for block in content if block.get("type") == "tool_use"]


def _visible(rounds: UpstreamRounds, content: Sequence[Block]) -> list[Block]:
    """The blocks without calls of recall tools."""
    return [block for block in content if not _is_recall(rounds, block)]


def _is_recall(rounds: UpstreamRounds, block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_use" and block.get("name") in rounds.tool_names


def _visible_reason(reason: str, content: Sequence[Block]) -> str:
    """Why the answer ended, for a client that does not see calls of recall tools."""
    calls = any(block.get("type") == "tool_use" for block in content)
    return "end_turn" if reason == "tool_use" and not calls else reason


def _error(data: object, default: str, **facts: Any) -> ModelError:
    code, message = read_error(data, default)
    return ModelError(message, code=code or "error_body", **facts)
