"""Anthropic's answers: blocks of content, complete or in events, written and read. Pure."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from firnline.log.message import encode_json
from firnline.models.answers import load_body

Event: TypeAlias = dict[str, Any]
Block: TypeAlias = dict[str, Any]

_WRITTEN_INPUT: Final = "partial_json"
PING: Final[Event] = {"type": "ping"}
_EMPTY: Final[Mapping[str, Mapping[str, Any]]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}
"""What a block of each type starts with, before its deltas."""


# -- writing ----------------------------------------------------------------------------------


def event_frame(event: Mapping[str, Any], data: str = "") -> str:
    """An event as it is sent; `data` is its JSON if that must stay as it came."""
    text = data or json.dumps(event)
    lines = "".join(f"data: {line}\n" for line in text.split("\n"))
    return f"event: {event.get('type', 'message')}\n{lines}\n"


def answer_body(
    model: str, content: Sequence[Block], stop_reason: str | None, usage: object
) -> Block:
    """A complete answer."""
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": usage,
    }


def answer_events(body: Mapping[str, Any]) -> Iterator[tuple[str, Event]]:
    """The events of a complete answer, each with its text."""
    yield "", {"type": "message_start", "message": {**body, "content": [], "stop_reason": None}}
    for index, block in enumerate(body["content"]):
        yield from block_events(index, block)
    for event in ending_events(body):
        yield "", event


def block_events(index: int, block: Mapping[str, Any]) -> Iterator[tuple[str, Event]]:
    """The events of a block, each with its text."""
    empty = {**block, **_EMPTY.get(block["type"], {})}
    if block["type"] == "text":
        empty.pop("citations", None)
    yield "", {"type": "content_block_start", "index": index, "content_block": empty}
    for delta in _deltas(block):
        event = {"type": "content_block_delta", "index": index, "delta": delta}
        yield delta.get("text", ""), event
    yield "", {"type": "content_block_stop", "index": index}


def _deltas(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        yield {"type": "text_delta", "text": block["text"]}
        for citation in block.get("citations") or ():
            yield {"type": "citations_delta", "citation": citation}
    elif block["type"] == "thinking":
        yield {"type": "thinking_delta", "thinking": block["thinking"]}
        yield {"type": "signature_delta", "signature": block.get("signature", "")}
    elif block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": encode_json(block["input"])}


def ending_events(body: Mapping[str, Any]) -> list[Event]:
    """The events after the last block: why the answer ended, and what it cost."""
    names = ("stop_reason", "stop_sequence", "stop_details")
    delta = {name: body[name] for name in names if name in body}
    last = {"type": "message_delta", "delta": delta, "usage": body.get("usage") or {}}
    return [last, {"type": "message_stop"}]


# -- reading ----------------------------------------------------------------------------------


class BlockReader:
    """Collects the blocks of a streamed answer. `ended` once it has the reason why it ended."""

    def __init__(self) -> None:
        self.model = ""
        self.stop_reason = ""
        self.ended = False
        self.usage: dict[str, Any] = {}
        self._blocks: dict[int, Block] = {}
        self._texts: dict[tuple[int, str], list[str]] = {}
        """What the deltas add to each field of a block, joined at the end: joining takes time."""

    def content(self) -> dict[int, Block]:
        """The blocks so far by their index, calls with their complete input."""
        found = {index: dict(block) for index, block in self._blocks.items()}
        for (index, name), texts in self._texts.items():
            block, text = found[index], "".join(texts)
            if name == _WRITTEN_INPUT:
                block |= {"input": _input(text)} if text else {}
            else:
                block[name] = str(block.get(name) or "") + text
        return found

    def read(self, event: Mapping[str, Any]) -> str:
        """Read an event; returns the text it adds."""
        kind, index = event.get("type"), event.get("index")
        if kind == "message_start":
            message = event.get("message") or {}
            self.model = str(message.get("model") or "")
            self._add_usage(message.get("usage"))
        elif kind == "content_block_start" and isinstance(index, int):
            if index in self._blocks:  # it begins again
                self._texts = {key: text for key, text in self._texts.items() if key[0] != index}
            block = self._blocks[index] = dict(event.get("content_block") or {})
            return str(block.get("text") or "") if block.get("type") == "text" else ""
        elif kind == "content_block_delta" and index in self._blocks:
            return self._add(index, event.get("delta") or {})
        elif kind == "message_delta":
            reason = (event.get("delta") or {}).get("stop_reason")
            self.stop_reason = str(reason or self.stop_reason)
            self._add_usage(event.get("usage"))
        self.ended |= kind == "message_stop" or bool(self.stop_reason)
        return ""

    def _add(self, index: int, delta: Mapping[str, Any]) -> str:
        block = self._blocks[index]
        for name, value in delta.items():
            if name == "citation":
                if not isinstance(block.get("citations"), list):
                    block["citations"] = list(block.get("citations") or ())
                block["citations"].append(value)
            elif name == _WRITTEN_INPUT or (name != "type" and isinstance(value, str)):
                self._texts.setdefault((index, name), []).append(str(value))
        return str(delta.get("text") or "") if block.get("type") == "text" else ""

    def _add_usage(self, usage: object) -> None:
        """Counts of an event are sums so far; counts that it does not have stay."""
        counts = usage if isinstance(usage, dict) else {}
        self.usage |= {name: value for name, value in counts.items() if value is not None}


def _input(written: str) -> Any:
    parsed = load_body(written.encode())
    return parsed if isinstance(parsed, dict) else {"arguments": written}
