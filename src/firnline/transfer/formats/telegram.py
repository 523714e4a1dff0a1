"""Telegram Desktop's result.json: one chat, or all chats; read message by message.

All speakers are users with a name: the file does not say who is a bot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from firnline.log.message import Part
from firnline.transfer.formats.cursor import Cursor, Malformed
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
    time_from_seconds,
)

FORMAT: Final = "telegram"
_FILES: Final = ("photo", "file", "sticker")
_THINGS: Final = ("poll", "contact_information", "location_information", "game_title")


def read(source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    """The chats, one by one; messages are read on the way."""
    cursor = Cursor(source.stream)
    try:
        yield from _file(cursor, source, notes)
    except Malformed as error:
        notes.reject("the rest of a file that is not valid JSON", f"{source.name}: {error}")


def _file(cursor: Cursor, source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    about: dict[str, Any] = {}
    for name in cursor.members():
        if name in ("chats", "left_chats") and cursor.peek() == "{":
            yield from _chats(cursor, source, notes)
        elif name == "messages" and cursor.peek() == "[":
            yield _line(cursor, about, source, notes)
        else:
            about[name] = cursor.value()
    for name in about.keys() - {"name", "type", "id"}:
        notes.skip(f"the field {name!r:.60} of the file", source.name)


def _chats(cursor: Cursor, source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    for name in cursor.members():
        if name != "list" or cursor.peek() != "[":
            cursor.value()
            continue
        for _ in cursor.items():
            about: dict[str, Any] = {}
            for field in cursor.members():
                if field == "messages" and cursor.peek() == "[":
                    yield _line(cursor, about, source, notes)
                else:
                    about[field] = cursor.value()


def _line(
    cursor: Cursor, about: Mapping[str, Any], source: SourceFile, notes: Notes
) -> LinearConversation:
    name = about.get("id", as_text(about.get("name")) or source.name)
    return LinearConversation(
        str(name), as_text(about.get("name")), _messages(cursor, str(name), source, notes)
    )


def _messages(
    cursor: Cursor, chat: str, source: SourceFile, notes: Notes
) -> Iterator[SourceMessage]:
    try:
        yield from _each(cursor, chat, source, notes)
    except Malformed as error:
        cursor.stop(error)  # noted by `read`, which steps on to the next chat


def _each(cursor: Cursor, chat: str, source: SourceFile, notes: Notes) -> Iterator[SourceMessage]:
    for number in cursor.items():
        where = f"{source.name}, chat {chat}, message {number}"
        message = as_dict(cursor.value())
        key = message.get("id")
        if message.get("type") == "service":
            notes.skip("a notice of Telegram, such as who joined", where)
        elif message.get("type") != "message" or not isinstance(key, int):
            notes.reject(f"a message of type {message.get('type')!r:.60}", where)
        else:
            yield from _message(str(key), message, where, source, notes)


def _message(
    key: str, message: Mapping[str, Any], where: str, source: SourceFile, notes: Notes
) -> Iterator[SourceMessage]:
    text, things = _text(message.get("text")), _things(message)
    if not text and not things:
        notes.skip("an empty message", where)
        return
    given = message.get("date_unixtime") or message.get("date")
    time = time_from_seconds(message.get("date_unixtime")) or time_from_iso(
        message.get("date"), source.zone
    )
    time = checked_time(time, given, where, notes)
    about = source_metadata(
        FORMAT,
        key,
        reply_to=message.get("reply_to_message_id"),
        forwarded_from=message.get("forwarded_from"),
        edited=message.get("edited"),
    )
    yield from build_message(
        where,
        notes,
        role="user",
        content=tuple([Part.of_text(text)] * bool(text) + things) if things else text,
        name=as_text(message.get("from")) or None,
        metadata=about,
        created_at=time,
    )


def _text(text: object) -> str:
    """The text, which may be in pieces: bold, links, and so on."""
    if isinstance(text, list):
        return "".join(as_text(part) or as_text(as_dict(part).get("text")) for part in text)
    return as_text(text)


def _things(message: Mapping[str, Any]) -> list[Part]:
    found = [
        Part.file(path, filename=as_text(message.get("file_name")) or path)
        for path in (as_text(message.get(name)) for name in _FILES)
        if path
    ]
    return found + [
        Part({"type": f"{FORMAT}:{name}", name: message[name]})
        for name in _THINGS
        if name in message
    ]
