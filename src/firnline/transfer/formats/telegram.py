"""Telegram Desktop's result.json: one chat, or all of them; read message by message.

Everybody speaks as a user with a name: the file does not say who is a bot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from firnline.log.message import Part
from firnline.transfer.formats.cursor import Cursor, Malformed
from firnline.transfer.formats.records import (
    Found,
    Line,
    Notes,
    Said,
    Source,
    at_seconds,
    at_text,
    made,
    mapping,
    marked,
    texts,
    timed,
)

FORMAT: Final = "telegram"
_FILES: Final = ("photo", "file", "sticker")
_THINGS: Final = ("poll", "contact_information", "location_information", "game_title")


def read(source: Source, notes: Notes) -> Iterator[Found]:
    """The chats, one after the other; each is read while it is walked."""
    cursor = Cursor(source.stream)
    try:
        yield from _file(cursor, source, notes)
    except Malformed as error:
        notes.wonder("the rest of a file, which is not JSON", f"{source.name}: {error}")


def _file(cursor: Cursor, source: Source, notes: Notes) -> Iterator[Found]:
    about: dict[str, Any] = {}
    for name in cursor.members():
        if name in ("chats", "left_chats") and cursor.peek() == "{":
            yield from _chats(cursor, source, notes)
        elif name == "messages" and cursor.peek() == "[":
            yield _line(cursor, about, source, notes)
        else:
            about[name] = cursor.value()
    for name in about.keys() - {"name", "type", "id"}:
        notes.leave(f"the field {name!r:.60} of the file", source.name)


def _chats(cursor: Cursor, source: Source, notes: Notes) -> Iterator[Found]:
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


def _line(cursor: Cursor, about: Mapping[str, Any], source: Source, notes: Notes) -> Line:
    name = about.get("id", texts(about.get("name")) or source.name)
    return Line(str(name), texts(about.get("name")), _messages(cursor, str(name), source, notes))


def _messages(cursor: Cursor, chat: str, source: Source, notes: Notes) -> Iterator[Said]:
    try:
        yield from _each(cursor, chat, source, notes)
    except Malformed as error:
        cursor.stop(error)  # noted by `read`, which steps on to the next chat


def _each(cursor: Cursor, chat: str, source: Source, notes: Notes) -> Iterator[Said]:
    for number in cursor.items():
        where = f"{source.name}, chat {chat}, message {number}"
        message = mapping(cursor.value())
        key = message.get("id")
        if message.get("type") == "service":
            notes.leave("a note of Telegram's, such as who joined", where)
        elif message.get("type") != "message" or not isinstance(key, int):
            notes.wonder(f"a message of type {message.get('type')!r:.60}", where)
        else:
            yield from _said(str(key), message, where, source, notes)


def _said(
    key: str, message: Mapping[str, Any], where: str, source: Source, notes: Notes
) -> Iterator[Said]:
    text, things = _text(message.get("text")), _things(message)
    if not text and not things:
        notes.leave("an empty message", where)
        return
    given = message.get("date_unixtime") or message.get("date")
    time = at_seconds(message.get("date_unixtime")) or at_text(message.get("date"), source.zone)
    time = timed(time, given, where, notes)
    about = marked(
        FORMAT,
        key,
        reply_to=message.get("reply_to_message_id"),
        forwarded_from=message.get("forwarded_from"),
        edited=message.get("edited"),
    )
    yield from made(
        where,
        notes,
        role="user",
        content=tuple([Part.of_text(text)] * bool(text) + things) if things else text,
        name=texts(message.get("from")) or None,
        metadata=about,
        created_at=time,
    )


def _text(text: object) -> str:
    """The text, which may be in pieces: bold, links and so on."""
    if isinstance(text, list):
        return "".join(texts(part) or texts(mapping(part).get("text")) for part in text)
    return texts(text)


def _things(message: Mapping[str, Any]) -> list[Part]:
    found = [
        Part.file(path, filename=texts(message.get("file_name")) or path)
        for path in (texts(message.get(name)) for name in _FILES)
        if path
    ]
    return found + [
        Part({"type": f"{FORMAT}:{name}", name: message[name]})
        for name in _THINGS
        if name in message
    ]
