"""Detects the format of a file by its content; its name does not matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from firnline.transfer.formats import (
    chatgpt,
    claude,
    claude_code,
    codex,
    finetune,
    gemini,
    langchain,
    mem0,
    sharegpt,
    telegram,
    whatsapp,
)
from firnline.transfer.formats.cursor import Cursor, Malformed
from firnline.transfer.formats.records import Notes, Reader, Stream, as_dict, as_text
from firnline.transfer.formats.sources import ImportFile, Unreadable, files

READERS: Final[Mapping[str, Reader]] = {
    module.FORMAT: module.read
    for module in (
        chatgpt,
        claude,
        gemini,
        claude_code,
        codex,
        finetune,
        sharegpt,
        langchain,
        telegram,
        whatsapp,
        mem0,
    )
}
"""The readers by the names of their formats."""
OWN: Final = "firnline"
HTML: Final = "html"
_LINES_MAX: Final = 50
"""Lines of a transcript that are read: the first ones may have no message."""


class _ValueStart(NamedTuple):
    """The start of a value: its members up to its first array, and that array's first item.

    `array` is the name of the array's member, empty if the value is an array.
    """

    members: Mapping[str, Any]
    array: str | None = None
    item: Any = None


def detect_format(stream: Stream) -> str | None:
    """The format of a file, or None if it is unknown. Reads from the start."""
    stream.seek(0)
    start = stream.read(4_096)
    text = start.decode("utf-8-sig", "replace").lstrip()
    stream.seek(0)
    if text.startswith("<"):
        return HTML
    if text[:1] in ("{", "["):
        found = _in_json(stream)
        if found is not None or not text.startswith("["):
            return found
    return whatsapp.FORMAT if any(map(whatsapp.starts, text.splitlines())) else None


def _in_json(stream: Stream) -> str | None:
    cursor = Cursor(stream)
    try:
        if cursor.peek() == "[":
            for _ in cursor.items():
                item = cursor.value()
                return _of_item(as_dict(item), item)
            return None
        for _ in range(_LINES_MAX):
            if cursor.peek() != "{":
                return None
            glance = _glance(cursor)
            if (found := _of_object(glance)) is not None:
                return found
            if glance.array is not None and glance.item is not None:
                cursor.skip_line()
    except Malformed:
        return None
    return None


def _glance(cursor: Cursor) -> _ValueStart:
    members: dict[str, Any] = {}
    for name in cursor.members():
        if cursor.peek() == "[":
            for _ in cursor.items():
                return _ValueStart(members, name, cursor.value())
            members[name] = []
        elif name in ("chats", "left_chats"):
            return _ValueStart({**members, name: {}}, name)
        else:
            members[name] = cursor.value()
    return _ValueStart(members)


def _of_item(item: Mapping[str, Any], value: Any) -> str | None:
    """The format of an array, by its first item."""
    if isinstance(value, list):
        first = as_dict(value[0]) if value else {}
        return langchain.FORMAT if _is_langchain(first) else None
    return next((name for name, test in _BY_ITEM if test(item)), None)


def _of_object(glance: _ValueStart) -> str | None:
    """The format of an object, or of JSON Lines, by its first array or by its members."""
    members, item = glance.members, as_dict(glance.item)
    if members.get(OWN) == 1 and "tenant" in members:
        return OWN
    if transcript := _transcript(members):
        return transcript
    tests = _BY_ARRAY.get(glance.array or "", ())
    found = next((name for name, test in tests if test(item)), None)
    return found or _of_item(members, members)


def _transcript(members: Mapping[str, Any]) -> str | None:
    kind = members.get("type")
    if "sessionId" in members and ("uuid" in members or kind in ("user", "assistant")):
        return "claude_code"
    if kind in ("session_meta", "response_item") and isinstance(members.get("payload"), dict):
        return "codex"
    bare = {"id", "timestamp"} <= members.keys() and bool({"instructions", "git"} & members.keys())
    return "codex" if bare and kind is None else None


def _first(item: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        value = item.get(name)
        if isinstance(value, list) and value:
            return as_dict(value[0])
    return {}


def _is_turn(item: Mapping[str, Any]) -> bool:
    return {"from", "value"} <= item.keys() or {"role", "content"} <= item.keys()


def _is_openai(item: Mapping[str, Any]) -> bool:
    return "role" in item and "type" not in item


def _is_langchain(item: Mapping[str, Any]) -> bool:
    fields = langchain.plain(item)
    return fields["type"] in langchain.ROLES and "content" in fields


def _is_telegram(item: Mapping[str, Any]) -> bool:
    return as_text(item.get("type")) in ("message", "service") and "date" in item


def _is_memory(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("memory"), str) and "id" in item


_Tests: TypeAlias = "tuple[tuple[str, Callable[[Mapping[str, Any]], bool]], ...]"

_BY_ITEM: Final[_Tests] = (
    ("chatgpt", lambda one: isinstance(one.get("mapping"), dict)),
    ("claude", lambda one: isinstance(one.get("chat_messages"), list) or claude.is_memory(one)),
    ("sharegpt", lambda one: _is_turn(_first(one, "conversations", "conversation"))),
    ("gemini", lambda one: {"header", "title", "time"} <= one.keys()),
    ("finetune", lambda one: _is_openai(_first(one, "messages"))),
    ("langchain", lambda one: _is_langchain(one) or _is_langchain(_first(one, "messages"))),
    ("mem0", _is_memory),
)
_BY_ARRAY: Final[Mapping[str, _Tests]] = {
    "messages": (
        ("telegram", _is_telegram),
        ("finetune", _is_openai),
        ("langchain", _is_langchain),
    ),
    "conversations": (("sharegpt", _is_turn),),
    "conversation": (("sharegpt", _is_turn),),
    "chat_messages": (("claude", lambda one: "sender" in one),),
    "results": (("mem0", _is_memory),),
    "memories": (("mem0", _is_memory),),
    "chats": (("telegram", lambda _: True),),
    "left_chats": (("telegram", lambda _: True),),
}


# -- the files to read ------------------------------------------------------------------------


def select_files(
    found: Sequence[ImportFile], as_format: str | None, notes: Notes
) -> list[tuple[ImportFile, str]]:
    """The files with conversations and their formats; the others are noted."""
    if as_format is not None and len(found) == 1:
        return [(found[0], as_format)]
    readable: list[tuple[ImportFile, str]] = []
    for file in found:
        name = _format_of_file(file, notes)
        if name is not None and (
            len(found) == 1 or (name in READERS and as_format in (None, name))
        ):
            readable.append((file, name))
        elif name == OWN:
            notes.reject("an export of Firnline: import it separately", file.name)
        elif name is not None and as_format is not None:
            notes.skip("a file of another format", file.name)
        else:
            notes.skip("a file without known conversations", file.name)
    return readable


def _format_of_file(file: ImportFile, notes: Notes) -> str | None:
    try:
        stream = file.open()
        try:
            return detect_format(stream)
        finally:
            stream.close()
    except Unreadable as error:
        notes.reject("a file that cannot be read", f"{file.name}: {error}")
        return None


def format_of(path: Path) -> str | None:
    """The format of a plain file; None for a folder, a zip, or an unknown format."""
    with files(path, Notes()) as found:
        plain = len(found) == 1 and found[0].name == path.name
        return _format_of_file(found[0], Notes()) if plain else None


def no_format_error(path: Path, names: Sequence[str]) -> str:
    """The error message if no file can be imported."""
    if HTML in names:
        return f"{path} is HTML, which cannot be imported; export JSON or text instead"
    if OWN in names:
        return f"{path} contains an export of Firnline; unpack it and import the file"
    text = f"{path}: unknown format; supported are {', '.join(READERS)}"
    return f"{text}; use append for a list of OpenAI messages"
