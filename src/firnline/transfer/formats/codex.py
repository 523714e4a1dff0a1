"""Codex's transcripts: a line for each event or item.

Items of type message, function_call, and so on are the conversation; newer files wrap them in an
envelope. Events repeat what items say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from firnline.log.message import Part, ToolCall
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
    build_message,
    checked_time,
    source_metadata,
    time_from_iso,
    to_json,
)

FORMAT: Final = "codex"
_ROLES: Final = frozenset(("user", "assistant", "system", "developer"))
_TEXTS: Final = frozenset(("input_text", "output_text", "text"))
_ENVELOPES: Final = frozenset(("event_msg", "turn_context", "compacted"))


def read(source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    """The transcript, named by its first line, or else by the file."""
    lines = records(source, notes)
    first = next(lines, None)
    if first is None:
        return
    about = as_dict(first[1])
    meta = as_dict(about.get("payload")) if about.get("type") == "session_meta" else about
    name = as_text(meta.get("id")) or source.name
    yield LinearConversation(name, "", _messages(first, lines, notes))


def _messages(
    first: tuple[str, Any], lines: Iterator[tuple[str, Any]], notes: Notes
) -> Iterator[SourceMessage]:
    number = 0
    where, value = first
    while True:
        line = as_dict(value)
        if (item := _item(line, where, notes)) is not None:
            key = str(number)
            fields = _FIELDS.get(as_text(item.get("type")), _unknown_item)(item, where, notes)
            if fields is not None:
                time = checked_time(
                    time_from_iso(given := line.get("timestamp")), given, where, notes
                )
                about = source_metadata(FORMAT, key)
                yield from build_message(where, notes, **fields, metadata=about, created_at=time)
        number += 1
        try:
            where, value = next(lines)
        except StopIteration:
            return


def _item(line: Mapping[str, Any], where: str, notes: Notes) -> Mapping[str, Any] | None:
    """The item in a line, if it has one."""
    kind, payload = line.get("type"), line.get("payload")
    if kind == "response_item" and isinstance(payload, dict):
        return payload
    if kind == "session_meta" or (kind is None and ("id" in line or "record_type" in line)):
        return None  # what the transcript is about
    if as_text(kind) in _ENVELOPES:
        notes.skip(f"a line of type {kind}", where)
        return None
    if isinstance(kind, str) and payload is None:
        return line
    notes.reject(f"a line of type {kind!r:.60}", where)
    return None


_Fields = dict[str, Any] | None


def _message(item: Mapping[str, Any], where: str, notes: Notes) -> _Fields:
    role = as_text(item.get("role"))
    if role not in _ROLES:
        notes.reject(f"a message with the role {item.get('role')!r:.40}", where)
        return None
    content = item.get("content")
    if isinstance(content, str):
        return {"role": role, "content": content}
    parts = [
        Part.of_text(as_text(part.get("text")))
        if as_text(part.get("type")) in _TEXTS
        else Part(part)
        for part in as_objects(content)
    ]
    if not parts:
        notes.skip("an empty message", where)
        return None
    plain = len(parts) == 1 and parts[0].type == "text"
    return {"role": role, "content": parts[0].text if plain else tuple(parts)}


def _call(item: Mapping[str, Any], where: str, notes: Notes) -> _Fields:
    del where, notes
    given = item.get("arguments", item.get("input", item.get("action")))
    arguments = given if isinstance(given, str) else to_json(given)
    name = as_text(item.get("name")) or as_text(item.get("type")).removesuffix("_call")
    call_id = as_text(item.get("call_id")) or as_text(item.get("id"))
    return {"role": "assistant", "tool_calls": (ToolCall.of(call_id, name, arguments),)}


def _result(item: Mapping[str, Any], where: str, notes: Notes) -> _Fields:
    del where, notes
    output = item.get("output")
    if isinstance(output, dict) and isinstance(output.get("content"), str):
        output = output["content"]
    if isinstance(output, list):
        output = "\n".join(
            as_text(part.get("text")) or to_json(part) for part in as_objects(output)
        )
    text = output if isinstance(output, str) else to_json(output)
    return {"role": "tool", "content": text, "tool_call_id": as_text(item.get("call_id"))}


def _reasoning(item: Mapping[str, Any], where: str, notes: Notes) -> _Fields:
    said = [*as_objects(item.get("summary")), *as_objects(item.get("content"))]
    text = "\n\n".join(filter(None, (as_text(part.get("text")) for part in said)))
    if not text:
        notes.skip("an encrypted or empty thought", where)
        return None
    return {"role": "assistant", "content": (Part.reasoning(text),)}


def _unknown_item(item: Mapping[str, Any], where: str, notes: Notes) -> _Fields:
    notes.reject(f"an item of type {item.get('type')!r:.60}", where)
    return None


def _search(item: Mapping[str, Any], where: str, notes: Notes) -> _Fields:
    """A web search; its results are not in the file."""
    notes.skip("a web search, without its results", f"{where}: {to_json(item):.200}")
    return None


_FIELDS: Final[Mapping[str, Callable[[Mapping[str, Any], str, Notes], _Fields]]] = {
    "message": _message,
    "function_call": _call,
    "custom_tool_call": _call,
    "local_shell_call": _call,
    "function_call_output": _result,
    "custom_tool_call_output": _result,
    "local_shell_call_output": _result,
    "reasoning": _reasoning,
    "web_search_call": _search,
}
