"""ShareGPT: conversations as lists of speaker and text, in one array or as JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from firnline.transfer.formats.cursor import records
from firnline.transfer.formats.records import (
    LinearConversation,
    Notes,
    SourceConversation,
    SourceFile,
    SourceMessage,
    as_dict,
    as_text,
    brief,
    build_message,
    source_metadata,
)

FORMAT: Final = "sharegpt"
_ASSISTANT: Final = ("gpt", "chatgpt", "bing", "bard", "assistant", "model", "function_call")
_TOOLS: Final = ("tool", "observation", "function", "function_response")
_ROLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("human", "user", "prompter"), "user"),
    **dict.fromkeys((*_ASSISTANT, *_TOOLS), "assistant"),
    "system": "system",
}
_NAMED: Final = frozenset(("tool", "observation", "function", "function_response"))


def read(source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    """The conversations. Their ids may not be unique, so the content is part of the name."""
    for where, value in records(source, notes):
        turns = as_dict(value).get("conversations", as_dict(value).get("conversation"))
        if not isinstance(turns, list):
            notes.reject("an item without conversations", where)
            continue
        given = value.get("id")
        name = f"{given}-{brief(turns)}" if isinstance(given, str | int) else brief(turns)
        yield LinearConversation(name, as_text(value.get("title")), _messages(turns, where, notes))


def _messages(turns: list[Any], where: str, notes: Notes) -> Iterator[SourceMessage]:
    for number, turn in enumerate(turns):
        place = f"{where}, message {number}"
        fields = as_dict(turn)
        who = fields.get("from", fields.get("role"))
        what = fields.get("value", fields.get("content"))
        role = _ROLES.get(as_text(who).lower())
        if role is None or not isinstance(what, str):
            notes.reject(f"a message from {who!r:.40}", place)
            continue
        if not what:
            notes.skip("an empty message", place)
            continue
        # A tool's result names no call here, and half a call would be shown to no model.
        name = as_text(who).lower() if as_text(who).lower() in _NAMED else None
        about = source_metadata(FORMAT, str(number))
        yield from build_message(place, notes, role=role, content=what, name=name, metadata=about)
