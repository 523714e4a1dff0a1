"""Items of OpenAI's Responses API as messages, and back without loss. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from firnline.message import Message, Part, ToolCall, encode_json

ITEMS: Final = "items"
"""In a message's metadata: how its items were made, beside what the message itself holds."""
_PLAIN: Final = ("role", "content")
_CALL: Final = ("call_id", "name", "arguments")


def messages_of(items: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Items as messages: what a model puts out in one go, calls and reasoning too, is one."""
    found: list[Message] = []
    said: list[Mapping[str, Any]] = []
    for item in [*items, None]:
        if item is not None and item.get("role", "assistant") == "assistant" and not _result(item):
            said.append(item)
            continue
        found += [_output(said)] if said else []
        said = []
        if item is not None:
            found.append(_input(item))
    return found


def _result(item: Mapping[str, Any]) -> bool:
    return "call_id" in item and str(item.get("type")).endswith("_output")


def _input(item: Mapping[str, Any]) -> Message:
    """What the user or the application says, or what a tool returns."""
    content, rest = item.get("output") if _result(item) else item.get("content"), _rest(item)
    if not isinstance(content, str | list):
        content, rest = encode_json(content), dict(item)
    plain = {"role": "tool" if _result(item) else item["role"], "content": content}
    named = {"tool_call_id": item["call_id"]} if _result(item) else {}
    return Message.from_openai({**plain, **named}, metadata={ITEMS: [rest]})


def _output(items: Sequence[Mapping[str, Any]]) -> Message:
    """What a model puts out: texts as parts, calls as calls, all else as parts of its own kind."""
    parts: list[Part] = []
    calls: list[ToolCall] = []
    notes: list[Any] = []
    for item in items:
        if item.get("type") == "function_call":
            calls.append(ToolCall.of(*(item[name] for name in _CALL)))
            notes.append({"call": _rest(item, _CALL)})
        elif item.get("role") == "assistant":
            content = item["content"]
            texts = [Part.of_text(content)] if isinstance(content, str) else map(Part, content)
            before = len(parts)
            parts += texts
            count = None if isinstance(content, str) else len(parts) - before
            notes.append({"said": _rest(item, _PLAIN), "parts": count})
        else:
            parts.append(Part(dict(item)))
            notes.append({})
    return Message.assistant(parts or None, tool_calls=calls, metadata={ITEMS: notes})


def _rest(item: Mapping[str, Any], known: Sequence[str] = ("content", "output")) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in known}


def items_of(message: Message, *, whole: bool = True) -> list[dict[str, Any]]:
    """The items that a message was made of; plain ones if it came otherwise or is not `whole`."""
    notes: Any = message.metadata.get(ITEMS) if whole else None
    if not isinstance(notes, list):
        return _plain(message)
    shape = message.to_openai()
    if message.role != "assistant":
        where = "output" if message.role == "tool" else "content"
        return [{where: shape["content"], **notes[0]}]
    parts, calls = list(shape.get("content") or ()), list(message.tool_calls)
    found: list[dict[str, Any]] = []
    for note in notes:
        if "call" in note:
            call = calls.pop(0)
            found.append(
                {**note["call"], "call_id": call.id, "name": call.name, "arguments": call.arguments}
            )
        elif "said" in note:
            one = note["parts"] is None  # it was text, which is short for one part
            texts, parts = _split(parts, 1 if one else note["parts"])
            content = texts[0]["text"] if one else texts
            found.append({**note["said"], "role": "assistant", "content": content})
        else:
            found.append(parts.pop(0))
    return found


def _split(parts: list[Any], at: int) -> tuple[list[Any], list[Any]]:
    return parts[:at], parts[at:]


def _plain(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        about = {"type": "function_call_output", "call_id": message.tool_call_id}
        return [{**about, "output": message.text}]
    said = [{"role": message.role, "content": message.text}] if message.text else []
    return said + [
        {"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.arguments}
        for c in message.tool_calls
    ]
