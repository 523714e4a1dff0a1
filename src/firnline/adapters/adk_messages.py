"""Converts contents of Google's ADK to messages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from google.genai import types

from firnline.log.message import Message, Part, ToolCall, encode_json


def from_content(
    content: types.Content, author: str, timestamp: float | None = None
) -> list[Message]:
    """ADK's content as messages: one for text and calls, one for each tool result."""
    parts = content.parts or []
    called = [part.function_call for part in parts if part.function_call]
    returned = [part.function_response for part in parts if part.function_response]
    said = [part for part in parts if _is_content(part)]
    time = datetime.fromtimestamp(timestamp, UTC) if timestamp else None
    about: dict[str, Any] = {"name": author, "created_at": time}
    found: list[Message] = []
    if said or called:
        texts = [part.text for part in said if part.text and not part.thought]
        plain = len(texts) == len(said)
        inside = "\n".join(texts) if plain else tuple(map(_part, said))
        role: Any = "user" if author == "user" else "assistant"
        calls = tuple(ToolCall.of(c.id or "", c.name or "", c.args or {}) for c in called)
        found.append(Message(role, inside or None, tool_calls=calls, **about))
    return found + [Message.tool(_result(r), tool_call_id=r.id or "", **about) for r in returned]


def _is_content(part: types.Part) -> bool:
    """Whether the part is neither a tool's nor empty."""
    is_tool = part.function_call or part.function_response
    others = part.model_dump(exclude_none=True, exclude={"text", "thought"})
    return not is_tool and bool(part.text or others)


def _result(returned: types.FunctionResponse) -> str | list[Part]:
    """A tool's result, with its pictures and files."""
    text, files = encode_json(returned.response or {}), returned.parts or []
    dumped = [file.model_dump(mode="json", exclude_none=True) for file in files]
    return [Part.of_text(text), *(Part({"type": "file", **d}) for d in dumped)] if files else text


def _part(part: types.Part) -> Part:
    if part.text:
        return Part.reasoning(part.text) if part.thought else Part.of_text(part.text)
    return Part({"type": "file", **part.model_dump(mode="json", exclude_none=True)})
