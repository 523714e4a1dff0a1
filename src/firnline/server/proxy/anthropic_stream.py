"""What an endpoint of Anthropic's says, in one round or several; as `rounds`, with its blocks.

Events go on to the client as they came. Only calls of our own tools are taken out, and then blocks
are numbered anew.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from firnline.errors import ModelError
from firnline.models.answers import load_body, read_error
from firnline.server.proxy.blocks import Block, Blocks, Event, framed, spelled
from firnline.server.proxy.openai_stream import Asking, answered
from firnline.server.proxy.upstream import Reply, json_of

_LAST: Final = frozenset({"message_delta", "message_stop"})


async def whole(asking: Asking, reply: Reply) -> dict[str, Any]:
    """The answer's JSON as the client gets it."""
    while True:
        data = json_of(await reply.body())
        content = _content(data)
        asking.add_usage(data.get("usage") or {})
        if asking.is_ours(_calls(content)):
            reply = await asking.next_round(answered(content))
            continue
        asking.model = str(data.get("model") or "")
        asking.blocks = [block for block in content if not _hidden(asking, block)]
        asking.finish_reason = _reason(str(data.get("stop_reason") or ""), asking.blocks)
        if asking.blocks != content:
            data = {**data, "content": asking.blocks, "stop_reason": asking.finish_reason}
        return {**data, "usage": asking.usage} if asking.rounds else data


async def streamed(asking: Asking, reply: Reply) -> AsyncGenerator[tuple[str, str], None]:
    """Each event's text, and the event as the client gets it.

    From the event on that ends the answer, events are held back, as `rounds.streamed` does.
    """
    seen: list[Block] = []
    while True:
        sieve = _Sieve(asking, seen)
        async with aclosing(reply.events()) as arriving:
            async for data in arriving:
                for item in sieve.take(data):
                    yield item
        asking.add_usage(sieve.blocks.usage)
        content = list(sieve.blocks.content().values())
        seen = [*seen, *(block for block in content if not _hidden(asking, block))]
        if not sieve.blocks.ended or not asking.is_ours(_calls(content)):
            break
        reply = await asking.next_round(answered(content))
    if not sieve.blocks.ended:
        raise ModelError("the answer from behind the proxy broke off", code="cut")
    asking.blocks = seen
    asking.model = sieve.blocks.model or asking.model
    asking.finish_reason = _reason(sieve.blocks.stop_reason, seen)
    yield "", ""
    for frame in sieve.held_back():
        yield "", frame


class _Sieve:
    """One round of a stream: what of each event the client gets, and when."""

    def __init__(self, asking: Asking, seen: Sequence[Block]) -> None:
        self.blocks = Blocks()
        self._asking, self._seen = asking, len(seen)
        self._spoke = any(block.get("type") == "text" for block in seen)
        self._held: list[tuple[Event, str]] = []
        self._places: dict[int, int | None] = {}

    def take(self, data: str) -> Iterator[tuple[str, str]]:
        """Take an event; its text and frame, if the client gets it now."""
        event = load_body(data.encode())
        if not isinstance(event, dict):
            raise ModelError("an event from behind the proxy is not JSON", code="not_json")
        if event.get("type") == "error":
            raise _error(event, "the endpoint behind the proxy failed", event=data)
        if event.get("type") == "message":  # some endpoints do not stream
            for _, each in spelled({**event, "content": _content(event)}):
                yield from self._taken(each, "")
        else:
            yield from self._taken(event, data)

    def _taken(self, event: Event, data: str) -> Iterator[tuple[str, str]]:
        text = self._parted(event) + self.blocks.take(event)
        shown = self._shown(event)
        if self._held or event.get("type") in _LAST:
            self._held.append((event, data))
        elif shown is not None:
            yield text, framed(shown, data if shown is event else "")

    def _parted(self, event: Event) -> str:
        """A new line between two blocks of text, as a message's text has it."""
        block = event.get("content_block") or {}
        if event.get("type") != "content_block_start" or block.get("type") != "text":
            return ""
        spoke, self._spoke = self._spoke, True
        return "\n" if spoke else ""

    def _shown(self, event: Event) -> Event | None:
        """The event as the client gets it; None if it is of our own tools or tells a new round."""
        if event.get("type") == "message_start":
            return None if self._asking.rounds else event
        index = event.get("index")
        if not isinstance(index, int):
            return event
        place = self._place(index, event.get("content_block") or {})
        if place is None:
            return None
        return event if place == index else {**event, "index": place}

    def _place(self, index: int, block: Mapping[str, Any]) -> int | None:
        """Where a block is for the client, who knows nothing of ours."""
        if index not in self._places:
            shown = sum(place is not None for place in self._places.values())
            self._places[index] = None if _hidden(self._asking, block) else self._seen + shown
        return self._places[index]

    def held_back(self) -> Iterator[str]:
        """The end of the answer, with what all rounds cost."""
        for event, data in self._held:
            ours = self._asking.tools and event.get("type") == "message_delta"
            yield framed(self._ended(event)) if ours else framed(event, data)

    def _ended(self, event: Event) -> Event:
        delta = {**(event.get("delta") or {}), "stop_reason": self._asking.finish_reason}
        paid = self._asking.usage if self._asking.rounds else {}
        return {**event, "delta": delta, "usage": {**(event.get("usage") or {}), **paid}}


def _content(data: Mapping[str, Any]) -> list[Block]:
    content = data.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise _error(data, "the answer from behind the proxy has no content")
    return content


def _calls(content: Sequence[Block]) -> dict[str, Any]:
    """The calls among the blocks, as `Asking` knows them."""
    names = [block.get("name") for block in content if block.get("type") == "tool_use"]
    return {"tool_calls": [{"type": "function", "function": {"name": name}} for name in names]}


def _hidden(asking: Asking, block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_use" and block.get("name") in asking.hidden


def _reason(reason: str, content: Sequence[Block]) -> str:
    """Why the answer ended, for a client who does not see calls of our tools."""
    calls = any(block.get("type") == "tool_use" for block in content)
    return "end_turn" if reason == "tool_use" and not calls else reason


def _error(data: object, otherwise: str, **facts: Any) -> ModelError:
    code, message = read_error(data, otherwise)
    return ModelError(message, code=code or "error_body", **facts)
