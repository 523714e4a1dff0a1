"""What upstream says, in one round or several: recall tools are run here, the client's are not.

The client sees its own tools' calls alone. A tool of ours is called and answered between two rounds
with the endpoint, within the tokens that were kept for it, and none of that reaches the client.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final

from firnline.context.tools import Tool, answer
from firnline.errors import ModelError, TooFast
from firnline.log.message import Message, ToolCall
from firnline.log.tokens import TokenCounter
from firnline.log.wire import load_anthropic
from firnline.models.answers import AnswerPieces, load_body
from firnline.server.proxy.dialect import OPENAI, Shape
from firnline.server.proxy.upstream import Reply, json_of

ROUNDS_MAX: Final = 4
"""Rounds of recall in one request."""
_OK: Final = 200
_TOO_MANY: Final = 429
_DONE: Final = "[DONE]"
_USUAL: Final = frozenset({"", "stop", "tool_calls", "end_turn", "tool_use"})

Send = Callable[[dict[str, Any]], Awaitable[Reply]]


@dataclass(slots=True)
class Asking:
    """A request on its way: its body, how to send it, the tools of ours and the room for them.

    `room` is how many tokens the calls of our tools may add to the request, `room_needed` what one
    round of them may take. The rest is what became of it: the answer's `fields`, or its `blocks` if
    it came in Anthropic's shape.
    """

    body: dict[str, Any]
    send: Send
    count: TokenCounter
    shape: Shape = OPENAI
    tools: Sequence[Tool] = ()
    room: int = 0
    room_needed: int = 0
    rounds: int = 0
    usage: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    finish_reason: str = ""
    model: str = ""
    blocks: list[dict[str, Any]] | None = None

    @property
    def hidden(self) -> frozenset[str]:
        """The names of our tools."""
        return frozenset(tool.name for tool in self.tools)

    @property
    def message(self) -> Message:
        """The answer: what the model said, and the client's tools that it calls."""
        facts: dict[str, Any] = {"model": self.model} if self.model else {}
        if self.finish_reason not in _USUAL:
            facts["finish_reason"] = self.finish_reason
        if self.blocks is not None:
            message = answered(self.blocks)
            return replace(message, metadata={**message.metadata, **facts})
        said = {key: value for key, value in self.fields.items() if value not in (None, [], {}, "")}
        said.pop("role", None)
        return Message.from_openai({"content": None, **said, "role": "assistant"}, metadata=facts)

    def add_usage(self, usage: Mapping[str, Any]) -> None:
        """Rounds are paid together."""
        self.usage = _sum(self.usage, usage)

    async def next_round(self, said: Message) -> Reply:
        """Run our tools that the model called, and ask again with what they return."""
        calls = said.tool_calls
        texts = await asyncio.gather(*(answer(call, self.tools) for call in calls))
        results = [
            Message.tool(text, tool_call_id=call.id)
            for call, text in zip(calls, texts, strict=True)
        ]
        more = [said, *results]
        self.room -= sum(int(self.count.message(message)) for message in more)
        self.rounds += 1
        if self.rounds >= ROUNDS_MAX or self.room < self.room_needed:
            self.body = self.shape.withdraw(self.body, self.hidden)
        self.body = self.shape.add(self.body, more)
        reply = await self.send(self.body)
        if reply.status == _TOO_MANY:
            wait = reply.headers.get("retry-after", "")
            seconds = float(wait) if wait.isdecimal() else 1.0
            raise TooFast("the endpoint wants fewer requests", retry_after=seconds)
        if reply.status != _OK:
            raise ModelError(f"the endpoint answered {reply.status} after a recall")
        return reply

    def is_ours(self, fields: Mapping[str, Any]) -> bool:
        """Whether the model wants to recall, and nothing else."""
        calls = fields.get("tool_calls") or ()
        return bool(calls) and self.rounds < ROUNDS_MAX and all(map(self._hides, calls))

    def without_ours(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The message as the client gets it."""
        calls = [call for call in fields.get("tool_calls") or () if not self._hides(call)]
        rest = {key: value for key, value in fields.items() if key != "tool_calls"}
        return {**rest, "tool_calls": calls} if calls else rest

    def _hides(self, call: Mapping[str, Any]) -> bool:
        return ToolCall(dict(call)).name in self.hidden


def _sum(known: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Counts added up, those inside counts too; of anything else, what came last."""
    total = dict(known)
    for name, value in more.items():
        before = total.get(name)
        if isinstance(value, Mapping):
            total[name] = _sum(before if isinstance(before, Mapping) else {}, value)
        elif isinstance(value, int) and isinstance(before, int):
            total[name] = before + value
        elif value is not None or before is None:
            total[name] = value
    return total


def answered(content: Sequence[Mapping[str, Any]]) -> Message:
    """An answer of Anthropic's blocks as a message."""
    turn = {"role": "assistant", "content": list(content)}
    return load_anthropic({"messages": [turn]})[0]


def _called(fields: Mapping[str, Any]) -> Message:
    """What the model said and called, as it is sent back to it."""
    calls = fields.get("tool_calls") or []
    asked = {"role": "assistant", "content": fields.get("content") or None, "tool_calls": calls}
    return Message.from_openai(asked)


# -- whole answers ----------------------------------------------------------------------------


async def whole(asking: Asking, reply: Reply) -> dict[str, Any]:
    """The answer's JSON as the client gets it."""
    while True:
        data = json_of(await reply.body())
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
            raise ModelError("the answer from behind the proxy has no choices", code="no_choices")
        fields: dict[str, Any] = choice["message"]
        asking.add_usage(data.get("usage") or {})
        if asking.is_ours(fields):
            reply = await asking.next_round(_called(fields))
            continue
        asking.model = str(data.get("model") or "")
        asking.finish_reason = str(choice.get("finish_reason") or "")
        asking.fields = asking.without_ours(fields)
        if asking.fields != fields:
            kept = bool(asking.fields.get("tool_calls"))
            reason = asking.finish_reason if kept else "stop"
            first = {**choice, "message": asking.fields, "finish_reason": reason}
            data = {**data, "choices": [first, *data["choices"][1:]]}
        return {**data, "usage": asking.usage} if asking.rounds else data


# -- streamed answers -------------------------------------------------------------------------


async def streamed(
    asking: Asking, reply: Reply, *, with_usage: bool
) -> AsyncGenerator[tuple[str, str], None]:
    """Each event's text, and its data as the client gets it.

    From the event on that ends the answer, events are held back: they come behind a last item with
    neither, so that the answer can be stored before the client knows that it is complete.
    """
    seen = ""
    while True:
        sieve = _Sieve(asking, with_usage=with_usage)
        async with aclosing(reply.events()) as arriving:
            async for data in arriving:
                text, shown = sieve.take(data)
                if shown is not None:
                    yield text, shown
        asking.add_usage(sieve.pieces.usage)
        fields = sieve.pieces.fields()
        if not asking.is_ours(fields):
            break
        seen += fields.get("content") or ""
        reply = await asking.next_round(_called(fields))
    if not sieve.pieces.done and not sieve.pieces.finish_reason:
        raise ModelError("the answer from behind the proxy broke off", code="cut")
    asking.fields = asking.without_ours(fields)
    if seen:  # before a recall; the client sends it back as a part of the answer
        asking.fields["content"] = seen + (fields.get("content") or "")
    asking.finish_reason = sieve.pieces.finish_reason
    yield "", ""
    for data in sieve.held_back():
        yield "", data


class _Sieve:
    """One round of a stream: what of each event the client gets, and when."""

    def __init__(self, asking: Asking, *, with_usage: bool) -> None:
        self.pieces = AnswerPieces("")
        self._asking, self._with_usage = asking, with_usage
        self._held: list[str] = []
        self._places: dict[int, int | None] = {}

    def take(self, data: str) -> tuple[str, str | None]:
        """Take an event; its text, and what the client gets now."""
        done = data.strip() == _DONE
        chunk = None if done else load_body(data)
        choices = chunk.get("choices") if isinstance(chunk, dict) else None
        first = choices[0] if isinstance(choices, list) and choices else {}
        if not isinstance(first, dict) or first.get("index", 0) != 0:
            return "", data  # another of several answers; the first one is stored
        text = self.pieces.take(data) if done else self.pieces.add(chunk)
        if isinstance(chunk, dict):
            self._asking.model = str(chunk.get("model") or self._asking.model)
            if choices == [] and chunk.get("usage") and not self._with_usage:
                return text, None
            data = self._shown(chunk, first, data)
        if self._held or self.pieces.finish_reason or self.pieces.done:
            self._held.append(data)
            return text, None
        return text, data or None

    def held_back(self) -> list[str]:
        """The end of the answer, with what all rounds cost."""
        shown = []
        for data in filter(None, self._held):
            chunk = load_body(data) if self._asking.tools else None
            if isinstance(chunk, dict):
                chunk = self._ended(chunk)
                shown.append(json.dumps(chunk, ensure_ascii=False))
            else:
                shown.append(data)
        return shown

    def _ended(self, chunk: dict[str, Any]) -> dict[str, Any]:
        if chunk.get("usage"):
            chunk["usage"] = {**chunk["usage"], **self._asking.usage}
        for choice in chunk.get("choices") or ():
            ours = choice.get("finish_reason") == "tool_calls"
            if ours and not self._asking.fields.get("tool_calls"):
                choice["finish_reason"] = "stop"
        return chunk

    def _shown(self, chunk: dict[str, Any], choice: dict[str, Any], data: str) -> str:
        """The event without calls of our tools; empty if nothing else is in it."""
        delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else None
        calls = delta.get("tool_calls") if delta else None
        if not self._asking.tools or not delta or not calls:
            return data
        kept = [self._moved(call) for call in calls if self._place(call) is not None]
        rest = {key: value for key, value in delta.items() if key != "tool_calls"}
        if not kept and not rest.get("content") and not choice.get("finish_reason"):
            return ""
        delta = {**rest, "tool_calls": kept} if kept else rest
        others = chunk["choices"][1:]
        return json.dumps(
            {**chunk, "choices": [{**choice, "delta": delta}, *others]}, ensure_ascii=False
        )

    def _place(self, call: Mapping[str, Any]) -> int | None:
        """Where a call is for the client, who knows nothing of ours; None if it is one of them."""
        index = call.get("index", 0)
        if index not in self._places:
            shown = sum(place is not None for place in self._places.values())
            ours = (call.get("function") or {}).get("name") in self._asking.hidden
            self._places[index] = None if ours else shown
        return self._places[index]

    def _moved(self, call: Mapping[str, Any]) -> dict[str, Any]:
        return {**call, "index": self._place(call)}
