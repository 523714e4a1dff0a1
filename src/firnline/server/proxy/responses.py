"""OpenAI's Responses API, with an endpoint that speaks it.

Events pass as they came, with the response's own id. Only calls of recall tools are left out; then
items and events are numbered without a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from firnline.context.tools import Tool
from firnline.errors import ModelError
from firnline.log.message import Message
from firnline.log.openai_items import ITEMS, items_of, output_message, plain_calls
from firnline.log.text import clean_text
from firnline.log.threads import run_by_size
from firnline.models.answers import read_error
from firnline.server.proxy.check import ResponseChecker, read_response
from firnline.server.proxy.dialect import (
    AnswerStream,
    Body,
    StreamEvent,
    UpstreamAnswer,
    UpstreamRounds,
)
from firnline.server.proxy.response_client import ResponseClient
from firnline.server.proxy.response_events import (
    OWN_FIELDS,
    EventWriter,
    Item,
    event_frame,
    whole_events,
)
from firnline.server.proxy.response_translate import response_tool
from firnline.server.proxy.upstream import Reply

_LAST_EVENTS: Final = frozenset({"response.completed", "response.incomplete"})
_TEXTS: Final = frozenset({"response.output_text.delta", "response.refusal.delta"})


class ResponsesDialect(ResponseClient):
    """A Responses client with an endpoint of the same protocol."""

    path = "/responses"

    def read_request(self, body: Body, url: str) -> Body:  # noqa: ARG002
        """See `Dialect.read_request`."""
        return body

    def load_messages(self, body: Mapping[str, Any]) -> list[Message]:
        """See `Dialect.load_messages`."""
        return list(body["messages"])

    def put_messages(self, body: Body, messages: Sequence[Message]) -> Body:
        """See `Dialect.put_messages`."""
        return {**body, "messages": messages}

    def finish_request(self, body: Body) -> Body:
        """The messages as items; the first one of the application is its instructions."""
        messages = list(body["messages"])
        rest = {name: value for name, value in body.items() if name != "messages"}
        if rest.get("instructions") is not None and messages and messages[0].role == "system":
            rest["instructions"] = messages.pop(0).text
        return {**rest, "input": request_items(messages)}

    def add_messages(self, body: Body, messages: Sequence[Message]) -> Body:
        """See `Dialect.add_messages`."""
        return {**body, "input": [*body["input"], *request_items(messages)]}

    def tool_definition(self, tool: Tool) -> dict[str, Any]:
        """See `Dialect.tool_definition`."""
        return response_tool(tool)

    def tool_name(self, definition: object) -> str | None:
        """See `Dialect.tool_name`."""
        name = definition.get("name") if isinstance(definition, Mapping) else None
        return name if isinstance(name, str) else None

    def remove_tools(self, body: Body, names: Collection[str]) -> Body:
        """See `Dialect.remove_tools`."""
        tools = [tool for tool in body.get("tools") or () if self.tool_name(tool) not in names]
        if tools:
            return {**body, "tools": tools}
        return {key: value for key, value in body.items() if key not in ("tools", "tool_choice")}

    async def read_answer(
        self, rounds: UpstreamRounds, reply: Reply
    ) -> tuple[Body, UpstreamAnswer]:
        """See `Dialect.read_answer`."""
        while True:
            received = await reply.body()
            data = await run_by_size(len(received), partial(read_response, received))
            rounds.add_usage(data.get("usage"))
            output = data["output"]
            if data.get("status") == "failed" or not rounds.is_recall(_called_names(output)):
                break
            reply = await rounds.send_tool_results(partial(_load_output, output), len(received))
        visible = _without_recall(output, rounds.tool_names)
        response = self._own({**data, "output": visible}, rounds)
        return response, _native_answer(response)

    async def stream_answer(self, rounds: UpstreamRounds, reply: Reply) -> AnswerStream:
        """Events pass as they came, with the response's own id, without calls of recall tools."""
        visible: list[Item] = []
        size = 0
        while True:
            events = _ResponseFilter(self._own, rounds, self.task.writer)
            async with aclosing(reply.events()) as arriving:
                async for data in arriving:
                    size += len(data)
                    for event in await run_by_size(len(data), partial(events.read, data)):
                        yield event
            if events.last is None:
                raise ModelError("the upstream answer broke off", code="cut")
            rounds.add_usage(events.last.get("usage"))
            output = events.output()
            visible += _without_recall(output, rounds.tool_names)
            if not rounds.is_recall(_called_names(output)):
                break
            reply = await rounds.send_tool_results(partial(_load_output, output), size)
        response = self._own({**events.last, "output": visible}, rounds)
        yield _native_answer(response)
        yield "", self.task.writer.end(response)

    def _own(self, response: Item, rounds: UpstreamRounds) -> Item:
        """The response of the endpoint as the client's: what it sent, and the id that it knows."""
        head = self.task.head
        own: Item = {name: head[name] for name in OWN_FIELDS if name in head}
        usage = {"usage": rounds.usage} if rounds.number and response.get("usage") else {}
        return {**response, **own, **usage}


def request_items(messages: Sequence[Message]) -> list[Item]:
    """The messages as items: as they came, or plain if they are shortened or of another protocol.

    The call of a plain result must be plain, too.
    """
    plain = plain_calls((each, each.role != "tool" or ITEMS in each.metadata) for each in messages)
    found: list[Item] = []
    for message in messages:
        ids = {message.tool_call_id, *(call.id for call in message.tool_calls)}
        found += items_of(message, whole=not ids & plain)
    return found


def _native_answer(response: Item) -> UpstreamAnswer:
    details = response.get("incomplete_details")
    reason = str(details.get("reason") or "") if isinstance(details, Mapping) else ""
    return UpstreamAnswer(
        fields={"output": response["output"], "response": response},
        model=str(response.get("model") or ""),
        finish_reason=reason,
        usage=response.get("usage") or {},
    )


def _called_names(output: Sequence[Item]) -> list[object]:
    return [
        item.get("name") for item in output if str(item.get("type")).endswith(("_call", "_request"))
    ]


def _without_recall(output: Sequence[Item], names: Collection[str]) -> list[Item]:
    return [item for item in output if not _is_recall(item, names)]


def _is_recall(item: Mapping[str, Any], names: Collection[str]) -> bool:
    return item.get("type") == "function_call" and item.get("name") in names


def _load_output(output: Sequence[Item]) -> Message:
    return output_message(output)


class _ResponseFilter:
    """One round of a stream: which events the client gets, and how."""

    def __init__(
        self,
        own: Callable[[Item, UpstreamRounds], Item],
        rounds: UpstreamRounds,
        writer: EventWriter,
    ) -> None:
        self.last: Item | None = None
        self._own, self._rounds, self._writer = own, rounds, writer
        self._checker = ResponseChecker()
        self._indexes: dict[int, int | None] = {}
        self._items: dict[int, Item] = {}
        self._texts = 0

    def output(self) -> list[Item]:
        """The items of the round; of an endpoint that does not repeat them, as they came."""
        done = [self._items[at] for at in sorted(self._items)]
        return list((self.last or {}).get("output") or done)

    def read(self, data: str) -> list[StreamEvent]:
        """The events that the client gets now; the end of the answer is held back."""
        return list(self._read(data))

    def _read(self, data: str) -> Iterator[StreamEvent]:
        if self.last is not None or data.strip() == "[DONE]":
            return
        event = self._checker.read(data)
        kind = event["type"]
        if kind in ("error", "response.failed"):
            yield from self._fail(event)
        elif kind == "response":  # an endpoint that does not stream
            yield from self._whole(event)
        elif kind in _LAST_EVENTS:
            self.last = event["response"]
        else:
            yield from self._pass(event, data)

    def _fail(self, event: Item) -> Iterator[StreamEvent]:
        response = event.get("response") or {}
        code, message = read_error({"error": response.get("error") or event}, "the answer failed")
        sent = {**event, "response": self._own(response, self._rounds)} if response else event
        sent = {**sent, "sequence_number": self._writer.number}
        facts = {"event": "own", "response_event": event_frame(sent)}
        raise ModelError(message, code=code or "failed", **facts)
        yield  # a generator

    def _whole(self, event: Item) -> Iterator[StreamEvent]:
        response = {name: value for name, value in event.items() if name != "type"}
        for frame in [*whole_events(self._own(response, self._rounds))][:-1]:
            self._writer.number += 1
            yield "", frame
        self.last = response

    def _pass(self, event: Item, data: str) -> Iterator[StreamEvent]:
        sent, kind = dict(event), event["type"]
        text = ""
        if isinstance(event.get("response"), Mapping):
            if self._rounds.number:
                return  # the answer has begun
            sent["response"] = self._own(event["response"], self._rounds)
        index = event.get("output_index")
        if isinstance(index, int):
            item = event.get("item") if isinstance(event.get("item"), dict) else {}
            place = self._client_index(index, item or {})
            if kind == "response.output_item.done" and item:
                self._items[index] = item
            if place is None:
                return
            sent["output_index"] = place
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            text = clean_text(str(event.get("delta") or ""))
        elif kind == "response.content_part.added":
            text, self._texts = "\n" if self._texts else "", self._texts + 1
        sent["sequence_number"] = self._writer.number
        self._writer.number += 1
        yield text, event_frame(sent, data if sent == event else "")

    def _client_index(self, index: int, item: Mapping[str, Any]) -> int | None:
        """The index of an item among those that the client sees; None for a recall tool."""
        if index not in self._indexes:
            hidden = _is_recall(item, self._rounds.tool_names)
            place = len(self._writer.places)
            self._indexes[index] = None if hidden else place
            if not hidden:
                self._writer.places[f"{self._rounds.number}/{index}"] = place
        return self._indexes[index]
