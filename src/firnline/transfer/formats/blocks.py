"""Converts Anthropic's content blocks to messages, with calls and results paired.

A message with a text, a call, its result, and a text becomes several messages in that order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firnline.log.message import Content, Part, ToolCall
from firnline.transfer.formats.records import Notes, as_dict, as_objects, as_text, to_json


class BlockConverter:
    """Converts the blocks of one message."""

    def __init__(self, key: str, where: str, notes: Notes) -> None:
        self._key, self._where, self._notes = key, where, notes
        self._made: list[dict[str, Any]] = []
        self._parts: list[Part] = []
        self._calls: list[ToolCall] = []
        self._open: list[str] = []
        self._numbered = 0

    def add_block(self, block: Mapping[str, Any]) -> None:
        """Add the next block."""
        kind = block.get("type")
        if kind == "text":
            if text := as_text(block.get("text")):
                self.add(Part.of_text(text))
        elif kind in ("thinking", "redacted_thinking"):
            self._think(block)
        elif kind == "tool_use":
            self._call(block)
        elif kind == "tool_result":
            self._result(block)
        elif kind in ("image", "document"):
            self._picture(block)
        elif kind == "token_budget":
            self._notes.skip("a token count", self._where)
        else:
            self._notes.reject(f"a block of type {kind!r:.60}, kept unchanged", self._where)
            self.add(Part({**block, "type": f"block:{kind}"}))

    def add(self, part: Part) -> None:
        """Add a part; content after a call belongs to the next message."""
        if self._calls:
            self._flush()
        self._parts.append(part)

    def messages(self, role: str) -> list[dict[str, Any]]:
        """The fields of the messages; their role is `role`, except for tool results."""
        self._flush()
        return [{"role": role, **fields} for fields in self._made]

    def _think(self, block: Mapping[str, Any]) -> None:
        if text := as_text(block.get("thinking")):
            self.add(Part.reasoning(text))
        else:
            self._notes.skip("an encrypted or empty thought", self._where)

    def _call(self, block: Mapping[str, Any]) -> None:
        self._numbered += 1
        call_id = as_text(block.get("id")) or f"{self._key}-{self._numbered}"
        self._calls.append(ToolCall.of(call_id, as_text(block.get("name")), _arguments(block)))
        self._open.append(call_id)

    def _result(self, block: Mapping[str, Any]) -> None:
        self._flush()
        call_id = as_text(block.get("tool_use_id")) or (self._open[0] if self._open else "")
        if call_id in self._open:
            self._open.remove(call_id)
        content = self._content(block)
        fields: dict[str, Any] = {"role": "tool", "content": content, "tool_call_id": call_id}
        if not call_id:  # a result without a call would not be sent to a model
            fields = {"content": content, "name": as_text(block.get("name")) or "tool"}
        self._made.append(fields)

    def _content(self, block: Mapping[str, Any]) -> str:
        content = block.get("content")
        if isinstance(content, list):
            return "\n".join(
                as_text(item.get("text")) or self._part_text(item) for item in as_objects(content)
            )
        return as_text(content) if isinstance(content, str) or content is None else to_json(content)

    def _part_text(self, item: Mapping[str, Any]) -> str:
        """The text for a part of a result that is not text; for a picture, only its type."""
        kind = as_text(item.get("type"))
        if kind not in ("image", "document"):
            return to_json(item)
        self._notes.skip("the data of a picture or document", self._where)
        return f"[{kind}]"

    def _picture(self, block: Mapping[str, Any]) -> None:
        source = as_dict(block.get("source"))
        if source.get("type") == "base64":
            self._notes.skip("the data of a picture or document", self._where)
            self.add(Part.file(as_text(source.get("media_type")) or as_text(block.get("type"))))
        else:
            self.add(Part(dict(block)))

    def _flush(self) -> None:
        if self._parts or self._calls:
            fields: dict[str, Any] = {}
            if self._parts:
                fields["content"] = _simplest(self._parts)
            if self._calls:
                fields["tool_calls"] = tuple(self._calls)
            self._made.append(fields)
            self._parts, self._calls = [], []


def _simplest(parts: list[Part]) -> Content:
    """One text as a string, anything else as parts."""
    return parts[0].text if len(parts) == 1 and parts[0].type == "text" else tuple(parts)


def _arguments(block: Mapping[str, Any]) -> str:
    given = block.get("input")
    return given if isinstance(given, str) else to_json(as_dict(given))
