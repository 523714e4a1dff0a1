"""Converts messages of Microsoft's Agent Framework from and to ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agent_framework import Content
from agent_framework import Message as FrameworkMessage

from firnline.log.message import ROLES, Message, Part, ToolCall, encode_json

NOTE: Final = "agent_framework"
"""The metadata field for fields of the framework's message that ours does not have."""


def from_framework(message: FrameworkMessage) -> list[Message]:
    """The framework's message as ours; each tool result becomes a message."""
    dumped = message.to_dict()
    pairs = list(zip(message.contents, dumped["contents"], strict=True))
    if message.role == "tool":
        return [_result(content, fields) for content, fields in pairs if content.call_id]
    calls = tuple(
        ToolCall.of(content.call_id or "", content.name or "", content.arguments or "{}")
        for content, _ in pairs
        if content.type == "function_call"
    )
    said = [fields for _, fields in pairs if fields["type"] not in ("function_call", "usage")]
    if not said and not calls:
        return []
    plain = len(said) == 1 and said[0]["type"] == "text"
    about = {"id": message.message_id, "more": dumped.get("additional_properties")}
    role: Any = message.role if message.role in ROLES else "user"
    return [
        Message(
            role,
            said[0]["text"] if plain else tuple(map(Part, said)) or None,
            name=message.author_name,
            tool_calls=calls,
            metadata={NOTE: about} if any(about.values()) else {},
        )
    ]


def answered_ids(messages: Iterable[FrameworkMessage]) -> set[str]:
    """The calls that these messages answer, with a result or an approval."""
    contents = [content for message in messages for content in message.contents]
    asked = [content.function_call for content in contents if content.function_call]
    results = [content for content in contents if content.type == "function_result"]
    return {content.call_id for content in (*asked, *results) if content.call_id}


def _result(content: Content, fields: Mapping[str, Any]) -> Message:
    """A tool's result: text, or the framework's items if they are not only text."""
    items = fields.get("items") or []
    text = content.exception or content.result
    plain = all(item["type"] == "text" for item in items)
    parts = (text if isinstance(text, str) else encode_json(text)) if plain else map(Part, items)
    return Message.tool(parts, tool_call_id=content.call_id or "")


def to_framework(message: Message) -> FrameworkMessage:
    """Our message as the framework's."""
    note: Any = message.metadata.get(NOTE) or {}
    parts = [part.fields for part in message.content or () if isinstance(part, Part)]
    if message.role == "tool":
        items = [Content.from_dict(fields) for fields in parts] or message.text
        result = Content.from_function_result(message.tool_call_id or "", result=items)
        return FrameworkMessage("tool", [result])
    said: list[Any] = [Content.from_dict(fields) for fields in parts]
    if isinstance(message.content, str) and message.content:
        said = [message.content]
    calls = [
        Content.from_function_call(call.id, call.name, arguments=call.arguments)
        for call in message.tool_calls
    ]
    # An approval request must come after its call, or it counts as another call.
    asked = [c for c in said if isinstance(c, Content) and c.type == "function_approval_request"]
    said = [content for content in said if content not in asked]
    return FrameworkMessage(
        message.role,
        [*said, *calls, *asked],
        author_name=message.name,
        message_id=note.get("id"),
        additional_properties=note.get("more") or {},
    )
