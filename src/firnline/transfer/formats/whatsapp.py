"""WhatsApp's chats as text, in the spellings of its languages.

A message starts with a date and a time, in brackets (iOS) or before a dash (Android), in the same
style throughout the file; all other lines continue the message before. Times have no zone. All
speakers are users with a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from pathlib import PurePath
from typing import Final, NamedTuple

from firnline.log import limits
from firnline.log.regex import regex
from firnline.transfer.formats.records import (
    LinearConversation,
    Notes,
    SourceConversation,
    SourceFile,
    SourceMessage,
    brief,
    build_message,
    source_metadata,
)
from firnline.transfer.formats.whatsapp_dates import Start, Style, start_of, style_of

FORMAT: Final = "whatsapp"
_NAME_CHARS_MAX: Final = 60
_CHAT: Final = regex(
    r"(?:WhatsApp[- ]Chat(?: with| - | mit)?|Chat de WhatsApp con|Conversa do WhatsApp com"
    r"|Discussion WhatsApp avec)?\s*(.*?)(?i:\.txt|\.zip)?"
)
_TELLING: Final = regex(
    r"WhatsApp[- ]Chat(?: with | - | mit )|Chat de WhatsApp con |Conversa do WhatsApp com "
    r"|Discussion WhatsApp avec |.*(?i:\.zip)$"
)
"""The zip of one chat, or the folder it was unpacked to."""
_SAME: Final = "_chat"
_ANY: Final = regex(r"(?:_?chat[ _-]*\(?\d*\)?)?|input", re.IGNORECASE)
"""Names of files that do not name a chat: of WhatsApp on iOS, browsers, and pipes."""
_OMITTED: Final = regex(r"<[^<>]{3,40}>|\S+ (?:omitted|weggelassen|omitido|omitida|omis)")
_QUOTE: Final = regex(r' (?:"[^"]*|“[^”]*|„[^“”]*|«[^»]*)\Z')
_QUOTED: Final = regex('["”“»]')
"""Signs that text before a colon is a quotation and not a name."""


class _Raw(NamedTuple):
    number: int
    start: Start
    time: datetime
    text: str


def starts(line: str) -> bool:
    """Whether a line looks like the start of a message."""
    return start_of(line) is not None


def read(source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    """The chat. The file is read twice: first to detect the date format."""
    style = style_of(_lines(source, Notes()))
    if style is None:
        notes.reject("a file without a valid date", source.name)
        return
    if str(source.zone) == "UTC":
        notes.skip("the time zone, which the file does not have; UTC is assumed", source.name)
    if style.is_guessed:
        what = f"the order of day and month is ambiguous; {style.leading} first is assumed"
        notes.skip(what, source.name)
    source.stream.seek(0)
    title, is_telling = _title(source)
    # A longer export of a chat begins with the same line, that of another chat does not.
    mark = brief(style.first.date, style.first.time, style.first.text)
    yield LinearConversation(
        title if is_telling else f"{title}-{mark}", title, _messages(source, style, notes)
    )


def _title(source: SourceFile) -> tuple[str, bool]:
    """The name of a chat, and whether it is unique.

    It is the file's name; for `_chat.txt` (iOS), that of the zip, or of the folder if it is named
    like WhatsApp's zip. Any other folder may contain another `_chat.txt` later.
    """
    path = PurePath(source.name)
    if called := _chat_name(path.name):
        return called, True
    holder = path.parent.name or source.owner
    called = _chat_name(holder)
    is_telling = path.stem == _SAME and _TELLING.match(holder) is not None
    return called or "chat", bool(called) and is_telling


def _chat_name(name: str) -> str:
    """The chat's name in the name of a file or folder; empty if it has none."""
    match = _CHAT.fullmatch(name)
    found = (match[1] if match else name).strip()
    return "" if _ANY.fullmatch(found) else found


def _messages(source: SourceFile, style: Style, notes: Notes) -> Iterator[SourceMessage]:
    minute, times = "", dict[str, int]()
    for raw in _raw_messages(source, style, notes):
        where = f"{source.name}, line {raw.number}"
        who, what = _speaker(raw.text)
        if not who:
            notes.skip("a notice of WhatsApp, such as who joined", where)
        elif not what.strip():
            notes.skip("an empty message", where)
        else:
            stamp = f"{raw.time:%Y-%m-%dT%H:%M:%S}"
            minute, times = (minute, times) if stamp == minute else (stamp, {})
            content = brief(who, what)
            times[content] = times.get(content, 0) + 1
            local = "-".join(f"{n:02}" for n in (*raw.start.date, *raw.start.time))
            key = f"{local} {content} {times[content]}"
            if _OMITTED.fullmatch(what):
                notes.skip("a picture, video, or other media; only its mention is kept", where)
            about = source_metadata(FORMAT, key)
            yield from build_message(
                where, notes, role="user", content=what, name=who,
                metadata=about, created_at=raw.time,
            )  # fmt: skip


def _speaker(text: str) -> tuple[str, str]:
    """The speaker and the text; no speaker for a notice, even one that quotes a name."""
    who, colon, what = text.partition(": ")
    if not colon and text.endswith(":"):
        who, colon = text[:-1], ":"
    is_quoted = _QUOTE.search(who) and _QUOTED.search(what)
    is_long = len(who) > _NAME_CHARS_MAX or "\n" in who
    return ("", text) if not colon or is_long or is_quoted else (who, what)


def _raw_messages(source: SourceFile, style: Style, notes: Notes) -> Iterator[_Raw]:
    """The messages with all their lines."""
    begun, more = None, list[str]()
    for at, line in enumerate(_lines(source, notes), 1):
        start = start_of(line)
        time = start and style.time(start, source.zone)
        if start and time:
            if begun is not None:
                yield _whole(begun, more)
            begun, more = _Raw(at, start, time, start.text), []
        elif begun is not None:
            more.append(line)
        elif line.strip():
            notes.reject("a line before the first message", f"{source.name}, line {at}")
    if begun is not None:
        yield _whole(begun, more)


def _whole(begun: _Raw, more: list[str]) -> _Raw:
    return begun._replace(text="\n".join(chain([begun.text], more)))


def _lines(source: SourceFile, notes: Notes) -> Iterator[str]:
    while data := source.stream.readline(limits.MESSAGE_BYTES_MAX):
        line = data.decode("utf-8", "surrogateescape").rstrip("\r\n")
        if not data.endswith(b"\n") and len(data) == limits.MESSAGE_BYTES_MAX:
            notes.reject("a line over the size limit of messages", source.name)
        yield line
