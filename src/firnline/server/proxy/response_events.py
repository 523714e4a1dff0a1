"""OpenAI's Responses: the object and its events, written. Pure."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from firnline.log.message import encode_json

Item: TypeAlias = dict[str, Any]
Event: TypeAlias = dict[str, Any]

_DEFAULTS: Final[Mapping[str, Any]] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "model": "",
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""What a response says of its request if the client does not."""
OWN_FIELDS: Final = (
    "id",
    "instructions",
    "metadata",
    "previous_response_id",
    "conversation",
    "tools",
    "background",
    "store",
)
"""Fields in which a response repeats what the client sent, not what went to the endpoint."""
NO_USAGE: Final = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}


def new_id(prefix: str) -> str:
    """An id in OpenAI's shape; unguessable, because it leads to a conversation."""
    return f"{prefix}_{secrets.token_hex(24)}"


def response_head(body: Mapping[str, Any], conversation: str | None) -> Item:
    """The response to a request before there is an answer."""
    told = {name: body[name] for name in _DEFAULTS if body.get(name) is not None}
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        **_DEFAULTS,
        **told,
        "conversation": {"id": conversation} if conversation else None,
        "output": [],
        "usage": None,
    }


def finished(head: Mapping[str, Any], output: Sequence[Item], reason: str, **facts: Any) -> Item:
    """The response with its answer; `reason` says why it is incomplete."""
    return {
        **head,
        "status": "incomplete" if reason else "completed",
        "completed_at": None if reason else int(time.time()),
        "incomplete_details": {"reason": reason} if reason else None,
        "output": list(output),
        **facts,
    }


def event_frame(event: Mapping[str, Any], data: str = "") -> str:
    """An event as it is sent; `data` is its JSON if that must stay as it came."""
    lines = "".join(f"data: {line}\n" for line in (data or json.dumps(event)).split("\n"))
    return f"event: {event['type']}\n{lines}\n"


def text_part(text: str, **more: Any) -> Item:
    """A text of the model."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": [], **more}


def message_item(item_id: str, content: Sequence[Item], status: str = "completed") -> Item:
    """A message of the model."""
    about = {"id": item_id, "type": "message", "status": status, "role": "assistant"}
    return {**about, "content": list(content)}


def reasoning_item(item_id: str, text: str, sealed: str | None = None) -> Item:
    """The model's reasoning, as a summary, because that is what clients show."""
    summary = [{"type": "summary_text", "text": text}] if text else []
    item: Item = {"id": item_id, "type": "reasoning", "summary": summary}
    return {**item, "encrypted_content": sealed} if sealed else item


# -- events -----------------------------------------------------------------------------------


@dataclass(slots=True)
class EventWriter:
    """Numbers the events of one response, and writes its items; text may come in pieces."""

    head: Item
    number: int = 0
    places: dict[str, int] = field(default_factory=dict)
    """The index in the output of each item that has begun, by the item's id."""

    def frame(self, kind: str, **fields: Any) -> str:
        """The next event."""
        self.number += 1
        return event_frame({"type": kind, "sequence_number": self.number - 1, **fields})

    def start(self) -> Iterator[str]:
        """The first events."""
        yield self.frame("response.created", response=self.head)
        yield self.frame("response.in_progress", response=self.head)

    def end(self, response: Item) -> str:
        """The last event."""
        return self.frame(f"response.{response['status']}", response=response)

    def error(self, code: str, message: str) -> str:
        """The event of a failure."""
        return self.frame("error", code=code, message=message, param=None)

    def open(self, item: Item) -> Iterator[str]:
        """An item begins: with nothing in it yet."""
        place = self.places[item["id"]] = len(self.places)
        yield self.frame("response.output_item.added", output_index=place, item=_empty(item))

    def open_thought(self, item_id: str) -> Iterator[str]:
        """Reasoning begins whose text comes in pieces."""
        yield from self.open(reasoning_item(item_id, ""))
        yield self._thought_part(item_id, 0)

    def _thought_part(self, item_id: str, index: int) -> str:
        about = self._about(item_id, summary_index=index)
        part = {"type": "summary_text", "text": ""}
        return self.frame("response.reasoning_summary_part.added", **about, part=part)

    def open_text(self, item_id: str) -> Iterator[str]:
        """A message begins whose text comes in pieces."""
        yield from self.open(message_item(item_id, []))
        about = self._about(item_id, content_index=0)
        yield self.frame("response.content_part.added", **about, part=text_part(""))

    def text(self, item_id: str, text: str, logs: Sequence[Item] = ()) -> str:
        """More text of a message, with its log probabilities."""
        about = self._about(item_id, content_index=0)
        return self.frame("response.output_text.delta", **about, delta=text, logprobs=list(logs))

    def thought(self, item_id: str, text: str) -> str:
        """More reasoning."""
        about = self._about(item_id, summary_index=0)
        return self.frame("response.reasoning_summary_text.delta", **about, delta=text)

    def rest(self, item: Item, sent: str = "") -> Iterator[str]:
        """All further events of an item, of which this text was sent."""
        begun = item["id"] in self.places
        writers = {
            "message": self._message,
            "reasoning": self._reasoning,
            "function_call": self._call,
            "custom_tool_call": self._call,
        }
        if not begun and item["type"] != "message":
            yield from self.open(item)
        yield from writers[item["type"]](item, sent)
        place = self.places[item["id"]]
        yield self.frame("response.output_item.done", output_index=place, item=item)

    def _message(self, item: Item, sent: str) -> Iterator[str]:
        begun = item["id"] in self.places
        if not begun:
            yield from self.open(item)
        for index, part in enumerate(item["content"]):
            about = self._about(item["id"], content_index=index)
            refused = part["type"] == "refusal"
            name = "refusal" if refused else "text"
            kind = "response.refusal" if refused else "response.output_text"
            logs = {} if refused else {"logprobs": part.get("logprobs") or []}
            if not begun or index:
                empty = {**part, name: "", **({} if refused else {"logprobs": []})}
                yield self.frame("response.content_part.added", **about, part=empty)
            if more := part[name][0 if index else len(sent) :]:
                yield self.frame(f"{kind}.delta", **about, delta=more, **logs)
            yield self.frame(f"{kind}.done", **about, **{name: part[name]}, **logs)
            yield self.frame("response.content_part.done", **about, part=part)

    def _reasoning(self, item: Item, sent: str) -> Iterator[str]:
        kind = "response.reasoning_summary"
        for index, part in enumerate(item["summary"]):
            about = self._about(item["id"], summary_index=index)
            if index or not sent:
                yield self._thought_part(item["id"], index)
            if more := part["text"][0 if index else len(sent) :]:
                yield self.frame(f"{kind}_text.delta", **about, delta=more)
            yield self.frame(f"{kind}_text.done", **about, text=part["text"])
            yield self.frame(f"{kind}_part.done", **about, part=part)
        for index, part in enumerate(item.get("content") or ()):
            about = self._about(item["id"], content_index=index)
            yield self.frame("response.reasoning_text.delta", **about, delta=part["text"])
            yield self.frame("response.reasoning_text.done", **about, text=part["text"])

    def _call(self, item: Item, sent: str) -> Iterator[str]:  # noqa: ARG002 - as the others
        name = "arguments" if item["type"] == "function_call" else "input"
        kind = f"response.{item['type']}_{name}"
        about = self._about(item["id"])
        if item[name]:
            yield self.frame(f"{kind}.delta", **about, delta=item[name])
        more = {"name": item["name"]} if name == "arguments" else {}
        yield self.frame(f"{kind}.done", **about, **{name: item[name]}, **more)

    def _about(self, item_id: str, **more: int) -> Item:
        return {"item_id": item_id, "output_index": self.places[item_id], **more}


def _empty(item: Item) -> Item:
    """An item before anything of it has come."""
    names = {"content": [], "summary": [], "arguments": "", "input": ""}
    empty = {name: names.get(name, value) for name, value in item.items()}
    empty.pop("encrypted_content", None)
    return {**empty, "status": "in_progress"} if "status" in item else empty


def whole_events(response: Item) -> Iterator[str]:
    """All events of a response that is complete."""
    writer = EventWriter({**response, "status": "in_progress", "output": [], "usage": None})
    yield from writer.start()
    for item in response["output"]:
        if item["type"] in ("message", "reasoning", "function_call", "custom_tool_call"):
            yield from writer.rest(item)
        else:  # of OpenAI's own tools: what happened in between is not stored
            yield from writer.open(item)
            place = writer.places[item["id"]]
            yield writer.frame("response.output_item.done", output_index=place, item=item)
    yield writer.end(response)


def sealed(block: Mapping[str, Any], mark: str) -> str:
    """A block of another provider as the content of reasoning that clients send back."""
    return f"{mark}{encode_json(dict(block))}"
