"""The date styles of WhatsApp chats; a file has one style.

The first message shows the style. Whether the day or the month comes first is derived from all
dates of the file, and assumed if both are possible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final, NamedTuple, TypeAlias, TypeGuard

from firnline.log.regex import regex

_DATE: Final = (
    r"(?P<a>\d{1,4})(?P<to_b>[./\-。年] ?)(?P<b>\d{1,2})(?P<to_c>[./\-。月] ?)(?P<c>\d{1,4})[.日]?"
)
_MARK: Final = r"(?:[AaPp]\.? ?[Mm]\.?|午前|午後|上午|下午|오전|오후)"
_TIME: Final = (
    rf"(?:(?P<before>{_MARK}) ?)?(?P<hour>\d{{1,2}})(?P<to_minute>[:.])(?P<minute>\d{{2}})"
    rf"(?:[:.](?P<second>\d{{2}}))?(?: ?(?P<after>{_MARK}))?"
)
_BETWEEN: Final = r"(?P<to_time>,? (?:klo |um |kl\. |à |a las |alle |às )?)"
_START: Final = regex(
    rf"(?P<open>\[)?{_DATE}{_BETWEEN}{_TIME}(?(open)\] ?|\s?[-\u2013] )(?P<text>.*)", re.DOTALL
)
_INVISIBLE: Final = regex("[\u200e\u200f\u202a-\u202c\u2066-\u2069\ufeff]")
_SHORT: Final = 2
_YEAR_MIN: Final = 1_000
_CENTURY: Final = 100

Numbers: TypeAlias = tuple[int, int, int]

_DAY_FIRST: Final = (2, 1, 0)
_MONTH_FIRST: Final = (2, 0, 1)
_ORDERS: Final = (_DAY_FIRST, _MONTH_FIRST, (0, 1, 2))
"""The order of year, month, and day: 31.12.2025, 12/31/2025, 2025-12-31."""


class Look(NamedTuple):
    """The features that all first lines of messages share, and quoted lines rarely."""

    bracket: str | None
    after_first: str
    after_second: str
    before_time: str
    in_time: str
    is_first_long: bool
    is_third_long: bool
    has_seconds: bool
    has_mark: bool


class Start(NamedTuple):
    """The first line of a message: its date as written, and the text."""

    date: Numbers
    time: Numbers
    text: str
    look: Look
    mark: str
    is_padded: bool


class Style(NamedTuple):
    """The date style of a file; `is_guessed` if the order of day and month is ambiguous.

    `first` is the line that shows it.
    """

    first: Start
    order: Numbers
    is_guessed: bool

    @property
    def leading(self) -> str:
        """What comes first, day or month."""
        return "the month" if self.order == _MONTH_FIRST else "the day"

    def time(self, start: Start, zone: tzinfo) -> datetime | None:
        """The time of a message; None if the line has another style or an invalid time.

        Such a line is quoted and does not start a message.
        """
        return _time(start, self.order, zone) if start.look == self.first.look else None


def start_of(line: str) -> Start | None:
    """Parse a line as the start of a message in any style; None if it is not."""
    match = _START.match(_spelt(line))
    if match is None:
        return None
    first, second, third, seconds = match.group("a", "b", "c", "second")
    mark = match["before"] or match["after"] or ""
    hours = int(match["hour"])
    if mark:
        hours = hours % 12 + 12 * (mark[0] in "pP" or mark in ("午後", "下午", "오후"))
    look = Look(
        bracket=match["open"],
        after_first=match["to_b"],
        after_second=match["to_c"],
        before_time=match["to_time"],
        in_time=match["to_minute"],
        is_first_long=len(first) > _SHORT,
        is_third_long=len(third) > _SHORT,
        has_seconds=seconds is not None,
        has_mark=bool(mark),
    )
    date = int(first), int(second), int(third)
    time = hours, int(match["minute"]), int(seconds or 0)
    is_padded = first.startswith("0") or second.startswith("0")
    return Start(date, time, match["text"], look, mark, is_padded)


def style_of(lines: Iterable[str]) -> Style | None:
    """The style of the first line with a valid date, in the order that fits the most lines.

    None if there is no such line.
    """
    first, is_padded, is_open = None, False, False
    tallies = [_OrderScore(order) for order in _ORDERS]
    for start in filter(_exists, map(start_of, lines)):
        first = first or start
        if start.look != first.look:
            continue
        is_padded |= start.is_padded
        is_open |= start.date[0] != start.date[1]
        for tally in tallies:
            tally.add(start.date)
    if first is None:
        return None
    usual = _usual(first, is_padded=is_padded)
    best = max(tallies, key=lambda tally: (tally.rank, tally.order == usual, -tally.days))
    is_even = sum(tally.rank == best.rank for tally in tallies) > 1
    return Style(first, best.order, is_even and is_open and "." not in first.look.after_first)


def _exists(start: Start | None) -> TypeGuard[Start]:
    return start is not None and any(_time(start, order, UTC) for order in _ORDERS)


def _usual(first: Start, *, is_padded: bool) -> Numbers | None:
    """The usual order for this style; None if both are.

    The United States write 1/2/24, 3:04 PM. Leading zeros or a lowercase pm may be India or
    Australia; without pm, Spain or the US military. All others have the day first.
    """
    if "/" not in first.look.after_first:
        return _DAY_FIRST
    if first.mark in ("AM", "PM") and not is_padded:
        return _MONTH_FIRST
    return _DAY_FIRST if is_padded and not first.mark else None


@dataclass(slots=True)
class _OrderScore:
    """How well an order fits dates: how many are valid, and how often time goes back."""

    order: Numbers
    fits: int = 0
    back: int = 0
    first: datetime | None = None
    last: datetime | None = None
    newest: datetime | None = None

    def add(self, date: Numbers) -> None:
        """Add a date."""
        day = _day(date, self.order)
        if day is None:
            return
        self.fits += 1
        self.back += self.last is not None and day < self.last
        self.last = day
        self.first = min(self.first or day, day)
        self.newest = max(self.newest or day, day)

    @property
    def rank(self) -> tuple[int, int]:
        """Larger for a better fit."""
        return self.fits, -self.back

    @property
    def days(self) -> int:
        """From the first day to the last."""
        return (self.newest - self.first).days if self.newest and self.first else 0


def _spelt(line: str) -> str:
    """A line without invisible marks and with plain spaces, for parsing its start."""
    shown = _INVISIBLE.sub("", line[:200])
    return shown.replace("\u202f", " ").replace("\xa0", " ") + line[200:]


def _day(date: Numbers, order: Numbers) -> datetime | None:
    year, month, day = (date[i] for i in order)
    if order[0] == 0 and year < _YEAR_MIN:
        return None
    try:
        return datetime(year if year >= _CENTURY else year + 2_000, month, day, tzinfo=UTC)
    except ValueError:
        return None


def _time(start: Start, order: Numbers, zone: tzinfo) -> datetime | None:
    day = _day(start.date, order)
    hour, minute, second = start.time
    try:
        return day and day.replace(hour=hour, minute=minute, second=second, tzinfo=zone)
    except ValueError:
        return None
