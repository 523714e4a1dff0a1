"""Converts items of OpenAI's Responses API to messages and back without loss. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from firnline.log.message import Message, Part, ToolCall, encode_json

ITEMS: Final = "items"
"""The metadata field for fields of the items that the message does not have."""
_PLAIN: Final = ("role", "content")
_CALL: Final = ("call_id", "name", "arguments")
_ABOUT: Final = ("type", "id", "call_id", "status", "name")
_MADE: Final = "made"
"""The note of an item that has no form as a message: the original item."""
_SHOT: Final = "shot"
"""The note of a result that is a picture: the picture's type."""


def messages_of(items: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Items as messages; one output of a model, with calls and reasoning, is one message."""
    found: list[Message] = []
    said: list[Mapping[str, Any]] = []
    for item in [*items, None]:
        if (
            item is not None
            and item.get("role", "assistant") == "assistant"
            and not _is_result(item)
        ):
            said.append(item)
            continue
        found += [_output(said)] if said else []
        said = []
        if item is not None:
            found.append(_input(item))
    return found


def _is_result(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("call_id"), str) and str(item.get("type")).endswith("_output")


def _is_call(item: Mapping[str, Any]) -> bool:
    """Whether the item calls a tool of the application: a function, a shell, a computer.

    The local shell does not count: its result has no `call_id`, so both are kept as parts.
    """
    kind = str(item.get("type"))
    is_named = isinstance(item.get("call_id"), str)
    return is_named and kind.endswith("_call") and kind != "local_shell_call"


def _input(item: Mapping[str, Any]) -> Message:
    """An input of the user or the application, or the result of a tool."""
    content, rest = item.get("output") if _is_result(item) else item.get("content"), _rest(item)
    if isinstance(content, Mapping) and "image_url" in content:  # counted as a picture
        rest |= {_SHOT: content.get("type")}
        content = [{**content, "type": "input_image"}]
    elif not isinstance(content, str | list) or not all(map(_is_part, content)):
        content, rest = encode_json(_rest(item, _ABOUT)), {_MADE: dict(item)}
    plain = {"role": "tool" if _is_result(item) else item["role"], "content": content}
    named = {"tool_call_id": item["call_id"]} if _is_result(item) else {}
    return Message.from_openai({**plain, **named}, metadata={ITEMS: [rest]})


def _output(items: Sequence[Mapping[str, Any]]) -> Message:
    """An output of a model: texts as parts, calls as calls, anything else as its own part."""
    parts: list[Part] = []
    calls: list[ToolCall] = []
    notes: list[Any] = []
    for item in items:
        if item.get("type") == "function_call":
            calls.append(ToolCall.of(*(item[name] for name in _CALL)))
            notes.append({"call": _rest(item, _CALL)})
        elif _is_call(item):
            calls.append(_tool_call(item))
            notes.append({_MADE: dict(item)})
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


def _is_part(part: object) -> bool:
    """Whether this is a character or a part of a message."""
    return isinstance(part, str) or (isinstance(part, Mapping) and "type" in part)


def _tool_call(item: Mapping[str, Any]) -> ToolCall:
    """A call of a tool that is not a function, so that its result has a call."""
    given = item.get("input")
    arguments = given if isinstance(given, str) else encode_json(_rest(item, _ABOUT))
    return ToolCall.of(item["call_id"], item.get("name") or item["type"], arguments)


def _rest(item: Mapping[str, Any], known: Sequence[str] = ("content", "output")) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in known}


def items_of(message: Message, *, whole: bool = True) -> list[dict[str, Any]]:
    """The original items of a message; plain ones if it has none or is not `whole`."""
    notes: Any = message.metadata.get(ITEMS) if whole else None
    if not isinstance(notes, list):
        return _plain(message)
    if message.role != "assistant":
        return [_input_item(message, notes[0])]
    parts, calls = list(message.to_openai().get("content") or ()), list(message.tool_calls)
    found: list[dict[str, Any]] = []
    for note in notes:
        if _MADE in note:
            calls.pop(0)
            found.append(note[_MADE])
        elif "call" in note:
            call = calls.pop(0)
            found.append(
                {**note["call"], "call_id": call.id, "name": call.name, "arguments": call.arguments}
            )
        elif "said" in note:
            one = note["parts"] is None  # a string is short for one part
            texts, parts = _split(parts, 1 if one else note["parts"])
            content = texts[0]["text"] if one else texts
            found.append({**note["said"], "role": "assistant", "content": content})
        else:
            found.append(parts.pop(0))
    return found


def _input_item(message: Message, note: Mapping[str, Any]) -> dict[str, Any]:
    """The original item of an input or a tool result."""
    if _MADE in note:
        return dict(note[_MADE])
    content = message.to_openai()["content"]
    if _SHOT in note:
        content = {**content[0], "type": note[_SHOT]}
    return {"output" if message.role == "tool" else "content": content, **_rest(note, (_SHOT,))}


def plain_calls(shown: Iterable[tuple[Message, bool]]) -> set[str]:
    """The calls that must be plain, given messages and whether they are complete.

    A shortened result is that of a function, so its call must be one too, and all calls of the same
    message.
    """
    said = list(shown)
    short = {message.tool_call_id for message, whole in said if not whole}
    made = [{call.id for call in message.tool_calls} for message, _ in said]
    return {name for names in made if names & short for name in names}


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
