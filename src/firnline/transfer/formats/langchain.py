"""LangChain's messages: by `messages_to_dict`, by `dumpd`, or as `model_dump` writes them.

A list of messages is a conversation, alone or as the member "messages" of each line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from firnline.log import limits
from firnline.log.message import Content, Part, ToolCall
from firnline.transfer.formats.cursor import records
from firnline.transfer.formats.records import (
    LinearConversation,
    Notes,
    SourceConversation,
    SourceFile,
    SourceMessage,
    as_dict,
    as_objects,
    as_text,
    brief,
    build_message,
    source_metadata,
    to_json,
)

FORMAT: Final = "langchain"
ROLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("human", "humanmessage"), "user"),
    **dict.fromkeys(("ai", "aimessage", "aimessagechunk"), "assistant"),
    **dict.fromkeys(("system", "systemmessage"), "system"),
    **dict.fromkeys(("tool", "function", "toolmessage", "functionmessage"), "tool"),
}


def read(source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    """The conversations: each list, and one of all messages that are in no list."""
    loose: list[tuple[str, Any]] = []
    for where, value in records(source, notes):
        inner = as_dict(value).get("messages", value)
        if isinstance(inner, list):
            yield _line([(f"{where}, message {n}", one) for n, one in enumerate(inner)], notes)
        else:
            loose.append((where, value))
            if len(loose) >= limits.IMPORT_HELD_MAX:
                yield _line(loose, notes)
                loose = []
    if loose:
        yield _line(loose, notes)


def _line(messages: list[tuple[str, Any]], notes: Notes) -> LinearConversation:
    """A conversation, named by its first message id, or else by its content."""
    fields = [(where, plain(value)) for where, value in messages]
    named = next((one for _, one in fields if as_text(one.get("id"))), None)
    name = brief(named or [value for _, value in messages])
    return LinearConversation(name, "", _messages(fields, notes))


def plain(value: object) -> dict[str, Any]:
    """The fields of a message in any of the formats; `type` is in lower case."""
    outer = as_dict(value)
    if isinstance(outer.get("kwargs"), dict) and "lc" in outer:
        path = outer.get("id")
        kind = as_text(path[-1]) if isinstance(path, list) and path else ""
        return {**outer["kwargs"], "type": kind.lower()}
    if isinstance(outer.get("data"), dict):
        return {**outer["data"], "type": as_text(outer.get("type")).lower()}
    return {**outer, "type": as_text(outer.get("type")).lower()}


def _messages(messages: list[tuple[str, dict[str, Any]]], notes: Notes) -> Iterator[SourceMessage]:
    for number, (where, fields) in enumerate(messages):
        role = ROLES.get(fields["type"]) or _chat_role(fields)
        if role is None:
            notes.reject(f"a message of type {fields['type']!r:.60}", where)
            continue
        key = as_text(fields.get("id")) or f"{number}-{brief(fields)}"
        name = as_text(fields.get("name")) or None
        calls = (
            tuple(map(_call, as_objects(fields.get("tool_calls")))) if role == "assistant" else ()
        )
        call_id = as_text(fields.get("tool_call_id")) if role == "tool" else None
        about = source_metadata(FORMAT, key)
        yield from build_message(
            where,
            notes,
            role=role,
            content=_content(fields.get("content"), calls),
            name=name,
            tool_calls=calls,
            tool_call_id=call_id,
            metadata=about,
        )


def _chat_role(fields: Mapping[str, Any]) -> str | None:
    """The role of a `ChatMessage`."""
    role = as_text(fields.get("role"))
    return role if role in ("user", "assistant", "system", "developer", "tool") else None


def _content(content: object, calls: tuple[ToolCall, ...]) -> Content:
    if isinstance(content, list):
        parts = [
            Part.of_text(part) if isinstance(part, str) else Part(part)
            for part in content
            if isinstance(part, str | dict)
        ]
        ours = {call.id for call in calls}  # Anthropic's blocks repeat the calls
        return tuple(p for p in parts if p.kind != "tool_call" or p.fields.get("id") not in ours)
    return content if isinstance(content, str) and (content or not calls) else None


def _call(call: Mapping[str, Any]) -> ToolCall:
    arguments = call.get("args")
    text = arguments if isinstance(arguments, str) else to_json(arguments)
    return ToolCall.of(as_text(call.get("id")), as_text(call.get("name")), text)
