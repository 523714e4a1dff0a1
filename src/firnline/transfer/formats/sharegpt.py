"""ShareGPT: conversations as lists of who and what, in one array or as JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from firnline.transfer.formats.cursor import records
from firnline.transfer.formats.records import (
    Found,
    Line,
    Notes,
    Said,
    Source,
    brief,
    made,
    mapping,
    marked,
    texts,
)

FORMAT: Final = "sharegpt"
_ROLES: Final[Mapping[str, str]] = {
    "human": "user",
    "user": "user",
    "prompter": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "function_call": "assistant",
    "system": "system",
    "tool": "assistant",
    "observation": "assistant",
    "function": "assistant",
    "function_response": "assistant",
}
_NAMED: Final = frozenset(("tool", "observation", "function", "function_response"))


def read(source: Source, notes: Notes) -> Iterator[Found]:
    """The conversations. Their ids are not always their own, so their content names them, too."""
    for where, value in records(source, notes):
        turns = mapping(value).get("conversations", mapping(value).get("conversation"))
        if not isinstance(turns, list):
            notes.wonder("an item without conversations", where)
            continue
        given = value.get("id")
        name = f"{given}-{brief(turns)}" if isinstance(given, str | int) else brief(turns)
        yield Line(name, texts(value.get("title")), _said(turns, where, notes))


def _said(turns: list[Any], where: str, notes: Notes) -> Iterator[Said]:
    for number, turn in enumerate(turns):
        place = f"{where}, message {number}"
        fields = mapping(turn)
        who = fields.get("from", fields.get("role"))
        what = fields.get("value", fields.get("content"))
        role = _ROLES.get(texts(who).lower())
        if role is None or not isinstance(what, str):
            notes.wonder(f"a message of {who!r:.40}", place)
            continue
        if not what:
            notes.leave("an empty message", place)
            continue
        # A tool's result names no call here, and half a call would be shown to no model.
        name = texts(who).lower() if texts(who).lower() in _NAMED else None
        about = marked(FORMAT, str(number))
        yield from made(place, notes, role=role, content=what, name=name, metadata=about)
