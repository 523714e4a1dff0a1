"""Converts items of OpenAI's Responses API to messages and back without loss. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from firnline.log.json_text import parse_json
from firnline.log.media_wire import json_text, openai_parts, response_parts
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
        found += [output_message(said)] if said else []
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


def output_message(items: Sequence[Mapping[str, Any]]) -> Message:
    """An output of a model: texts as parts, calls as calls, anything else as its own part.

    A call whose result is in the same output was run by the provider, so both are parts.
    """
    parts: list[Part] = []
    calls: list[ToolCall] = []
    notes: list[Any] = []
    answered = {item["call_id"] for item in items if _is_result(item)}
    for item in items:
        if item.get("call_id") in answered:
            parts.append(Part(dict(item)))
            notes.append({})
        elif item.get("type") == "function_call":
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


def plain_calls(messages: Iterable[tuple[Message, bool]]) -> set[str]:
    """The calls that must be plain, given messages and whether they are complete.

    A shortened result is that of a function, so its call must be one too, and all calls of the same
    message.
    """
    pairs = list(messages)
    short = {message.tool_call_id for message, whole in pairs if not whole}
    calls = [{call.id for call in message.tool_calls} for message, _ in pairs]
    return {name for names in calls if names & short for name in names}


def _split(parts: list[Any], at: int) -> tuple[list[Any], list[Any]]:
    return parts[:at], parts[at:]


def _plain(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        about = {"type": "function_call_output", "call_id": message.tool_call_id}
        return [{**about, "output": message.text}]
    content: Any = message.text
    if isinstance(message.content, tuple) and message.role == "user":
        content = [part for each in message.content for part in response_parts(each.fields)]
    said = [{"role": message.role, "content": content}] if content else []
    return said + [
        {"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.arguments}
        for c in message.tool_calls
    ]


# -- for endpoints that do not know items -----------------------------------------------------

SEALED: Final = "anthropic:"
"""How the `encrypted_content` of reasoning begins that is a block of Anthropic's, as JSON."""


def portable(message: Message) -> Message:
    """The message with parts and calls that every protocol knows; others are not changed.

    Reasoning is left out, unless it is Anthropic's. What only OpenAI's own tools say becomes JSON.
    """
    notes: Any = message.metadata.get(ITEMS)
    if not isinstance(notes, list):
        return message
    content = message.content
    if isinstance(content, tuple):
        parts = [part for each in content for part in _portable_parts(each)]
        plain = len(parts) == 1 and parts[0].type == "text"
        content = parts[0].text if plain else tuple(parts) or None
    calls = [note for note in notes if "call" in note or _MADE in note]
    written = zip(message.tool_calls, calls, strict=False)
    tool_calls = tuple(
        _portable_call(call, note.get(_MADE) or note.get("call") or {}) for call, note in written
    )
    rest = {name: value for name, value in message.metadata.items() if name != ITEMS}
    return replace(message, content=content, tool_calls=tool_calls, metadata=rest)


def _portable_parts(part: Part) -> Iterator[Part]:
    if part.kind == "text":
        yield Part.of_text(part.text)
    elif part.kind == "reasoning":
        yield from _unsealed(part.fields.get("encrypted_content"))
    elif part.kind == "unknown":
        yield Part.of_text(json_text(part.fields))
    else:
        yield from map(Part, openai_parts(part.fields))


def _unsealed(content: object) -> Iterator[Part]:
    """Anthropic's block in the content of reasoning; what a client made up is left out."""
    if not isinstance(content, str) or not content.startswith(SEALED):
        return
    try:
        block = parse_json(content.removeprefix(SEALED))
    except (ValueError, RecursionError):
        return
    if isinstance(block, dict) and Part(block).kind == "reasoning" and block["type"] != "reasoning":
        yield Part(block)


def _portable_call(call: ToolCall, item: Mapping[str, Any]) -> ToolCall:
    """A call with its namespace in its name; of a custom tool, with the argument `input`."""
    name = flat_name(call.name, str(item.get("namespace") or ""))
    if item.get("type") == "custom_tool_call":
        return ToolCall.of(call.id, name, {"input": call.arguments})
    return call if name == call.name else ToolCall.of(call.id, name, call.arguments)


def flat_name(name: str, namespace: str) -> str:
    """The name of a tool for endpoints without namespaces."""
    return f"{namespace}__{name}" if namespace else name
