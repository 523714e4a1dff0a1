"""mem0's memories, as `get_all` returns them: a list, or the member "results".

They are facts, not messages: each becomes a message of its subject. Those of one user, agent, and
run are a conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from firnline.digest.fact import MEMORY, SOURCE_KEY
from firnline.errors import InputError
from firnline.log import limits
from firnline.log.text import clean_name
from firnline.transfer.formats.cursor import Cursor, Malformed, records
from firnline.transfer.formats.records import (
    LinearConversation,
    Notes,
    SourceConversation,
    SourceFile,
    SourceMessage,
    as_dict,
    as_text,
    build_message,
    checked_time,
    source_metadata,
    time_from_iso,
)

FORMAT: Final = "mem0"
_WHOSE: Final = ("user_id", "agent_id", "app_id", "run_id")
_LISTS: Final = ("results", "memories")


def read(source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    """The memories of each user, oldest first."""
    found: dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]] = {}
    for number, (where, value) in enumerate(_memories(source, notes), 1):
        if number % limits.IMPORT_HELD_MAX == 0:
            yield from _by_owner(found, notes)
            found = {}
        memory = as_dict(value)
        if not as_text(memory.get("id")) or not _text(memory):
            notes.reject("a memory without id or text", where)
            continue
        whose = "/".join(filter(None, (as_text(memory.get(name)) for name in _WHOSE)))
        key = whose or "unknown", as_text(memory.get("user_id"))
        found.setdefault(key, []).append((where, memory))
    yield from _by_owner(found, notes)


def _by_owner(
    found: Mapping[tuple[str, str], list[tuple[str, Mapping[str, Any]]]], notes: Notes
) -> Iterator[SourceConversation]:
    for (whose, user), memories in found.items():
        memories.sort(key=lambda pair: as_text(pair[1].get("created_at")))
        title, person = f"memories of {whose}", _person(user)
        yield LinearConversation(whose, title, _messages(memories, notes), person)


def _person(user: str) -> str | None:
    """The user as a person; None if there is none, or it cannot be a name."""
    try:
        return clean_name(user, "person") if user else None
    except InputError:
        return None


def _memories(source: SourceFile, notes: Notes) -> Iterator[tuple[str, Any]]:
    cursor = Cursor(source.stream)
    if cursor.peek() == "[":
        source.stream.seek(0)
        yield from records(source, notes)
        return
    try:
        for name in cursor.members():
            if name in _LISTS and cursor.peek() == "[":
                for number in cursor.items():
                    yield f"{source.name}, item {number}", cursor.value()
            elif cursor.value():
                notes.skip(f"the field {name!r:.60} of the file", source.name)
    except Malformed as error:
        notes.reject("the rest of a file that is not valid JSON", f"{source.name}: {error}")


def _text(memory: Mapping[str, Any]) -> str:
    return (
        as_text(memory.get("memory")) or as_text(memory.get("text")) or as_text(memory.get("data"))
    )


def _messages(
    memories: list[tuple[str, Mapping[str, Any]]], notes: Notes
) -> Iterator[SourceMessage]:
    for where, memory in memories:
        key, role = memory["id"], memory.get("role")
        time = checked_time(time_from_iso(given := memory.get("created_at")), given, where, notes)
        about = source_metadata(
            FORMAT,
            key,
            **{SOURCE_KEY: MEMORY},
            categories=memory.get("categories"),
            memory_metadata=memory.get("metadata") or None,
            updated_at=memory.get("updated_at"),
        )
        yield from build_message(
            where,
            notes,
            role=role if role in ("user", "assistant") else "user",
            content=_text(memory),
            name=as_text(memory.get("actor_id")) or None,
            metadata=about,
            created_at=time,
        )
