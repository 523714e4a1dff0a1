"""WhatsApp's chats as text, in the spellings of its languages.

A message begins with a date and a time, in brackets (iOS) or before a dash (Android); lines without
them go on with the message before. Whether the day or the month comes first is found out from the
dates; times have no zone. Everybody speaks as a user with a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from itertools import chain
from typing import Final, NamedTuple

from firnline import limits
from firnline.formats.found import Found, Line, Notes, Said, Source, brief, made, marked

FORMAT: Final = "whatsapp"
_DATE: Final = r"(\d{1,4})[./\-。年] ?(\d{1,2})[./\-。月] ?(\d{1,4})[.日]?"
_MARK: Final = r"(?:[AaPp]\.? ?[Mm]\.?|午前|午後|上午|下午|오전|오후)"
_TIME: Final = rf"(?:({_MARK}) ?)?(\d{{1,2}})[:.](\d{{2}})(?:[:.](\d{{2}}))?(?: ?({_MARK}))?"
_BETWEEN: Final = r",? (?:klo |um |kl\. |à |a las |alle |às )?"
_START: Final = re.compile(rf"\[?{_DATE}{_BETWEEN}{_TIME}(?:\] ?|\s?[-\u2013] )(.*)", re.DOTALL)
_MARKS: Final = re.compile("[\u200e\u200f\u202a-\u202c\u2066-\u2069\ufeff]")
_NAME_CHARS_MAX: Final = 60
_YEAR_MIN: Final = 1_000
_CENTURY: Final = 100
_CHAT: Final = re.compile(
    r"(?:.*/)?(?:WhatsApp[- ]Chat(?: with| - | mit)?|Chat de WhatsApp con|Conversa do WhatsApp com"
    r"|Discussion WhatsApp avec)?\s*(.*?)(?:\.txt|\.zip)?$"
)
_OMITTED: Final = re.compile(r"<[^<>]{3,40}>|\S+ (?:omitted|weggelassen|omitido|omitida|omis)")


class _Raw(NamedTuple):
    number: int
    date: tuple[int, int, int]
    time: tuple[int, int, int]
    text: str


def starts(line: str) -> bool:
    """Whether a line looks like the first one of a message."""
    return _START.match(_spelt(line)) is not None


def read(source: Source, notes: Notes) -> Iterator[Found]:
    """The chat. How dates are written is found out by reading the file once before."""
    order = _order(raw.date for raw in _messages(source, Notes()))
    if order is None:
        notes.wonder("a file without a date that exists", source.name)
        return
    source.stream.seek(0)
    if str(source.zone) == "UTC":
        notes.leave("the time zone, which the file does not name: UTC is assumed", source.name)
    match = _CHAT.match(source.owner if source.name.endswith("_chat.txt") else source.name)
    name = (match[1] if match else "") or source.name
    yield Line(name, name, _said(source, order, notes))


def _said(source: Source, order: tuple[int, int, int], notes: Notes) -> Iterator[Said]:
    minute, times = "", dict[str, int]()
    for raw in _messages(source, notes):
        where = f"{source.name}, line {raw.number}"
        who, colon, what = raw.text.partition(": ")
        if not colon and raw.text.endswith(":"):
            who, colon = raw.text[:-1], ":"
        time = _time(raw, order, source.zone)
        if time is None:
            notes.wonder("a date that does not exist", f"{where}: {raw.date} {raw.time}")
        elif not colon or len(who) > _NAME_CHARS_MAX or "\n" in who:
            notes.leave("a note of WhatsApp's, such as who joined", where)
        elif not what.strip():
            notes.leave("an empty message", where)
        else:
            stamp = f"{time:%Y-%m-%dT%H:%M:%S}"
            minute, times = (minute, times) if stamp == minute else (stamp, {})
            content = brief(who, what)
            times[content] = times.get(content, 0) + 1
            local = "-".join(f"{n:02}" for n in (*raw.date, *raw.time))
            key = f"{local} {content} {times[content]}"
            if _OMITTED.fullmatch(what):
                notes.leave(
                    "a picture, video or the like, of which only the mention is kept", where
                )
            about = marked(FORMAT, key)
            yield from made(
                where, notes, role="user", content=what, name=who,
                metadata=about, created_at=time,
            )  # fmt: skip


def _messages(source: Source, notes: Notes) -> Iterator[_Raw]:
    """The messages with all their lines, as they are written."""
    number, begun, text = 0, None, list[str]()
    for at, line in enumerate(_lines(source, notes), 1):
        match = _START.match(_spelt(line))
        if match is None:
            if begun is not None:
                text.append(line)
            elif line.strip():
                notes.wonder("a line before the first message", f"{source.name}, line {at}")
            continue
        if begun is not None:
            yield _raw(number, begun, text)
        number, begun, text = at, match, []
    if begun is not None:
        yield _raw(number, begun, text)


def _lines(source: Source, notes: Notes) -> Iterator[str]:
    while data := source.stream.readline(limits.MESSAGE_BYTES_MAX):
        line = data.decode("utf-8", "surrogateescape").rstrip("\r\n")
        if not data.endswith(b"\n") and len(data) == limits.MESSAGE_BYTES_MAX:
            notes.wonder("a line that is longer than any message", source.name)
        yield line


def _spelt(line: str) -> str:
    """A line without the invisible marks, with all blanks alike; only where a message begins."""
    return _MARKS.sub("", line[:200]).replace("\u202f", " ").replace("\xa0", " ") + line[200:]


def _raw(number: int, match: re.Match[str], more: list[str]) -> _Raw:
    year, month, day, before, hour, minute, second, after, text = match.groups()
    hours = int(hour)
    if mark := before or after:
        hours = hours % 12 + 12 * (mark[0] in "pP" or mark in ("午後", "下午", "오후"))
    return _Raw(
        number,
        (int(year), int(month), int(day)),
        (hours, int(minute), int(second or 0)),
        "\n".join(chain([text], more)),
    )


_ORDERS: Final = ((2, 1, 0), (2, 0, 1), (0, 1, 2))
"""Where year, month and day are: 31.12.2025, 12/31/2025, 2025-12-31."""


def _order(dates: Iterator[tuple[int, int, int]]) -> tuple[int, int, int] | None:
    """The order in which most dates exist, and of two such the one in which time goes forward."""
    fits = [0] * len(_ORDERS)
    back = [0] * len(_ORDERS)
    last: list[datetime | None] = [None] * len(_ORDERS)
    for date in dates:
        for i, order in enumerate(_ORDERS):
            day = _day(date, order)
            if day is not None:
                fits[i] += 1
                back[i] += last[i] is not None and day < (last[i] or day)
                last[i] = day
    best = max(range(len(_ORDERS)), key=lambda i: (fits[i], -back[i], -i))
    return _ORDERS[best] if fits[best] else None


def _day(date: tuple[int, int, int], order: tuple[int, int, int]) -> datetime | None:
    year, month, day = (date[i] for i in order)
    if order[0] == 0 and year < _YEAR_MIN:
        return None
    try:
        return datetime(year if year >= _CENTURY else year + 2_000, month, day, tzinfo=UTC)
    except ValueError:
        return None


def _time(raw: _Raw, order: tuple[int, int, int], zone: tzinfo) -> datetime | None:
    day = _day(raw.date, order)
    try:
        hour, minute, second = raw.time
        return day and day.replace(hour=hour, minute=minute, second=second, tzinfo=zone)
    except ValueError:
        return None
