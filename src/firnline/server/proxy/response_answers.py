"""OpenAI's Responses API, with an endpoint that speaks chat completions or Anthropic's messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from fastapi.responses import JSONResponse
from starlette.responses import Response

from firnline.errors import FirnlineError
from firnline.log.message import Message
from firnline.log.openai_items import portable
from firnline.log.threads import run_by_size, text_size
from firnline.models.answers import CONTEXT_LENGTH, load_body, read_error
from firnline.server.problems import openai_body
from firnline.server.proxy import limits
from firnline.server.proxy.anthropic import TOO_LONG, AnthropicDialect
from firnline.server.proxy.dialect import AnswerStream, Body, UpstreamAnswer, UpstreamRounds
from firnline.server.proxy.openai import OpenAIDialect
from firnline.server.proxy.response_client import ResponseClient, ResponseTask
from firnline.server.proxy.response_events import Item, finished
from firnline.server.proxy.response_translate import anthropic_usage, chat_usage, incomplete_reason
from firnline.server.proxy.translate import chat_messages
from firnline.server.proxy.upstream import Reply

_THOUGHTS: Final = ('"reasoning', '"thinking_delta"')
"""What a chunk with reasoning has in it, as chat completions and as Anthropic write it."""
_LOGPROBS: Final = '"logprobs"'

Finish: TypeAlias = Callable[[UpstreamAnswer, Sequence[Item]], UpstreamAnswer]
"""An answer with its items and its response, given the log probabilities of a stream."""


class ChatResponses(ResponseClient, OpenAIDialect):
    """A Responses client with an endpoint that speaks chat completions, or with none."""

    margin_tokens = limits.TRANSLATION_MARGIN_TOKENS

    def finish_request(self, body: Body) -> Body:
        """See `Dialect.finish_request`."""
        return super().finish_request({**body, "messages": chat_messages(body["messages"])})

    async def read_answer(
        self, rounds: UpstreamRounds, reply: Reply
    ) -> tuple[Body, UpstreamAnswer]:
        """See `Dialect.read_answer`."""
        data, answer = await super().read_answer(rounds, reply)
        logs = (data["choices"][0].get("logprobs") or {}).get("content") or []
        work = partial(self._finish, answer, logs)
        whole = await run_by_size(text_size(answer.fields), work)
        return dict(whole.fields["response"]), whole

    def stream_answer(self, rounds: UpstreamRounds, reply: Reply) -> AnswerStream:
        """See `Dialect.stream_answer`."""
        return _written(self.task, super().stream_answer(rounds, reply), self._finish)

    def _finish(self, answer: UpstreamAnswer, logs: Sequence[Item]) -> UpstreamAnswer:
        reason = incomplete_reason(answer.finish_reason)
        output = self.task.items.of_chat(answer.fields, logs, reason)
        return _finished(self.task, answer, output, reason, chat_usage(answer.usage))


class AnthropicResponses(ResponseClient, AnthropicDialect):
    """A Responses client with an endpoint that speaks Anthropic's messages."""

    forwards_query = False

    def put_messages(self, body: Body, messages: Sequence[Message]) -> Body:
        """See `Dialect.put_messages`."""
        return {**body, "messages": messages}

    def finish_request(self, body: Body) -> Body:
        """The messages in Anthropic's shape; tools must be offered if there are calls."""
        messages = [portable(message) for message in body["messages"]]
        sent = AnthropicDialect.put_messages(self, {**body, "messages": []}, messages)
        if not sent.get("tools") and any(message.tool_calls for message in messages):
            names = sorted({call.name for message in messages for call in message.tool_calls})
            tools = [{"name": name, "input_schema": {"type": "object"}} for name in names]
            sent |= {"tools": tools, "tool_choice": {"type": "none"}}
        return sent

    async def read_answer(
        self, rounds: UpstreamRounds, reply: Reply
    ) -> tuple[Body, UpstreamAnswer]:
        """See `Dialect.read_answer`."""
        _, answer = await super().read_answer(rounds, reply)
        whole = await run_by_size(text_size(answer.fields), partial(self._finish, answer, ()))
        return dict(whole.fields["response"]), whole

    def stream_answer(self, rounds: UpstreamRounds, reply: Reply) -> AnswerStream:
        """See `Dialect.stream_answer`."""
        return _written(self.task, super().stream_answer(rounds, reply), self._finish)

    def _finish(
        self,
        answer: UpstreamAnswer,
        logs: Sequence[Item],  # noqa: ARG002 - Anthropic has none
    ) -> UpstreamAnswer:
        reason = incomplete_reason(answer.finish_reason)
        output = self.task.items.of_anthropic(answer.fields["content"], reason)
        return _finished(self.task, answer, output, reason, anthropic_usage(answer.usage))

    def rejection(self, status: int, body: bytes, headers: Mapping[str, str]) -> Response:
        """See `Dialect.rejection`."""
        code, message = read_error(load_body(body), f"status {status}")
        if message.startswith(TOO_LONG):
            code = CONTEXT_LENGTH
        kept = {name: value for name, value in headers.items() if name != "content-type"}
        return JSONResponse(openai_body(status, message, code or None), status, kept)


def _finished(
    task: ResponseTask, answer: UpstreamAnswer, output: list[Item], reason: str, usage: Item
) -> UpstreamAnswer:
    model = answer.model or task.head["model"]
    response = finished(task.head, output, reason, model=model, usage=usage)
    return replace(answer, fields={"output": output, "response": response})


# -- streams ----------------------------------------------------------------------------------


async def _written(task: ResponseTask, source: AnswerStream, finish: Finish) -> AnswerStream:
    """The events of an answer: reasoning and text as they arrive, calls when they are complete."""
    relay = _Relay(task)
    answer: UpstreamAnswer | None = None
    async with aclosing(_own_errors(source)) as arriving:
        async for chunk in arriving:
            for frame in relay.start():
                yield "", frame
            if isinstance(chunk, UpstreamAnswer):
                work = partial(finish, chunk, relay.logs)
                answer = await run_by_size(text_size(chunk.fields), work)
                yield answer
            elif answer is None:
                for event in relay.read(*chunk):
                    yield event
    if answer is not None:
        rest = partial(relay.rest, answer)
        for frame in await run_by_size(text_size(answer.fields), lambda: list(rest())):
            yield "", frame


async def _own_errors(source: AnswerStream) -> AnswerStream:
    """The same events; an error has no event of the endpoint's, which is of another protocol."""
    try:
        async with aclosing(source) as arriving:
            async for chunk in arriving:
                yield chunk
    except FirnlineError as error:
        error.context.pop("event", None)
        raise


class _Extras(NamedTuple):
    """What a chunk has besides text: reasoning, and log probabilities of the text."""

    thought: str = ""
    logs: Sequence[Item] = ()


class _Relay:
    """What the client has of an answer so far."""

    def __init__(self, task: ResponseTask) -> None:
        self.logs: list[Item] = []
        self._writer, self._ids = task.writer, task.items
        self._text = self._thought = ""
        self._begun = False

    def start(self) -> Iterator[str]:
        """The first events, once."""
        if not self._begun:
            self._begun = True
            yield from self._writer.start()

    def read(self, text: str, frame: str) -> Iterator[tuple[str, str]]:
        """The events for a chunk, each with its text."""
        extras = _read_extras(frame)
        if extras.thought and not self._text:
            if not self._thought:
                for opened in self._writer.open_thought(self._ids.thought_id):
                    yield "", opened
            self._thought += extras.thought
            yield "", self._writer.thought(self._ids.thought_id, extras.thought)
        if text:
            if not self._text:
                for opened in self._writer.open_text(self._ids.message_id):
                    yield "", opened
            self._text += text
            self.logs += extras.logs
            yield text, self._writer.text(self._ids.message_id, text, extras.logs)

    def rest(self, answer: UpstreamAnswer) -> Iterator[str]:
        """The events after the text that was sent: the ends of the items, calls, the response."""
        sent = {self._ids.message_id: self._text, self._ids.thought_id: self._thought}
        for item in answer.fields["output"]:
            yield from self._writer.rest(item, sent.get(item["id"], ""))
        yield self._writer.end(answer.fields["response"])


def _read_extras(frame: str) -> _Extras:
    if not any(mark in frame for mark in (*_THOUGHTS, _LOGPROBS)):
        return _Extras()
    data = next((line[6:] for line in frame.split("\n") if line.startswith("data: ")), "")
    event = load_body(data)
    if not isinstance(event, dict):
        return _Extras()
    choice: Any = next(iter(event.get("choices") or ()), {})
    delta: Any = choice.get("delta") or event.get("delta") or {}
    names = ("reasoning_content", "reasoning", "thinking")
    thoughts = (delta.get(name) for name in names)
    thought = next((each for each in thoughts if isinstance(each, str) and each), "")
    logs = (choice.get("logprobs") or {}).get("content") or []
    return _Extras(thought, logs)
