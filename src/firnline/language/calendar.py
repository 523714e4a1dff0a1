"""Days and moments: what a time zone's clocks show, and rules that find days in the calendar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from firnline.errors import InputError

YEARS: Final = (1970, 9999)
"""The first and the last year that are understood."""
LATEST: Final = datetime.max.replace(tzinfo=UTC)
"""Where an interval without an end ends."""
DAY: Final = timedelta(days=1)

Span: TypeAlias = tuple[datetime, datetime]
Days: TypeAlias = tuple[date, date]


class Frame(NamedTuple):
    """Who asks: the time on their clock, and their zone."""

    now: datetime
    zone: tzinfo

    @property
    def today(self) -> date:
        """The day it is for them."""
        return self.now.date()


def make_frame(now: datetime, zone: str | tzinfo) -> Frame:
    """The frame of somebody in `zone` at `now`; `InputError` if either cannot be."""
    if now.utcoffset() is None:
        raise InputError("now needs a time zone, for example datetime.UTC")
    try:
        known = _zone(zone)
        frame = Frame(now.astimezone(known), known)
    except OverflowError as error:
        raise InputError(f"now: {now} is too near an end of the calendar") from error
    if frame.today.year < YEARS[0]:
        raise InputError(f"now: {now} is before {YEARS[0]}")
    return frame


def _zone(zone: str | tzinfo) -> tzinfo:
    if isinstance(zone, tzinfo):
        return zone
    if zone == "UTC":
        return UTC  # also where no zones are installed
    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, OSError, TypeError) as error:
        raise InputError(
            f"zone: {zone!r} is not known here; give a name such as Europe/Berlin, and install "
            "the package tzdata if this system has no time zones"
        ) from error


def moment_at(zone: tzinfo, wall: datetime, fold: int = 0) -> datetime:
    """When clocks in `zone` show `wall`; if they skip it, when they jump."""
    early, late = sorted(wall.replace(tzinfo=zone, fold=side).astimezone(UTC) for side in (0, 1))
    if wall_time(zone, early) == wall or wall_time(zone, late) == wall:
        return late if fold else early
    while late - early > timedelta(seconds=1):
        middle = early + timedelta(seconds=(late - early) // timedelta(seconds=2))
        early, late = (middle, late) if wall_time(zone, middle) < wall else (early, middle)
    return late


def wall_time(zone: tzinfo, moment: datetime) -> datetime:
    """What clocks in `zone` show at `moment`."""
    return moment.astimezone(zone).replace(tzinfo=None)


def midnight(frame: Frame, day: date) -> datetime:
    """When `day` begins."""
    return moment_at(frame.zone, datetime.combine(day, time()))


def whole_days(frame: Frame, first: date, last: date) -> Span:
    """All of the days from `first` to `last`."""
    until = LATEST if last == date.max else midnight(frame, last + DAY)
    return midnight(frame, first), until


# -- what an expression means, before the days are known ---------------------------------------


@dataclass(frozen=True, slots=True)
class DateRule:
    """Days to be found: the newest that begin no later than `limit`, and what is meant of them."""

    place: Callable[[date], Days]
    limit: date = date.max
    every: int = 0
    """Days after which it comes again at the latest: a weekday 7, a day without a year 366."""
    cut: Callable[[Frame, date, date], Span] = whole_days

    def span(self, frame: Frame, limit: date | None = None) -> Span:
        """The time itself, of the days that begin by `limit`."""
        return self.cut(frame, *self.place(self.limit if limit is None else limit))


def fixed_days(first: date, last: date | None = None) -> DateRule:
    """The days from `first` to `last`."""
    return DateRule(lambda _: (first, last or first))


def exact_span(since: datetime, until: datetime) -> DateRule:
    """A stretch of time whatever the day."""
    return DateRule(lambda _: (date.max, date.max), cut=lambda *_: (since, until))


def newest_weekday(weekday: int, limit: date) -> DateRule:
    """The newest such weekday up to `limit`; 0 is Monday."""

    def place(limit: date) -> Days:
        day = limit - timedelta(days=(limit.weekday() - weekday) % 7)
        return day, day

    return DateRule(place, limit, every=7)


def newest_in_year(make: Callable[[int], Days | None], year: str | None, limit: date) -> DateRule:
    """What `make` finds in `year`; without one, in the newest year in which it has begun."""
    if year:
        made = make(int(year))
        if made is None:
            raise InputError(f"date: there is no such day in {year}")
        return fixed_days(*made)

    def place(limit: date) -> Days:
        for tried in range(limit.year, max(limit.year - 9, 0), -1):  # from leap year to leap year
            made = make(tried)
            if made and made[0] <= limit:
                return made
        raise InputError("date: there is no such day in any year")

    return DateRule(place, limit, every=366)


def month_days(year: int, month: int, months: int = 1) -> Days:
    """The first and the last day of the months from `month` on, which may be outside 1 to 12."""
    (y1, m1), (y2, m2) = (divmod(year * 12 + month - 1 + more, 12) for more in (0, months))
    last = date.max if y2 > YEARS[1] else date(y2, m2 + 1, 1) - DAY
    return date(y1, m1 + 1, 1), last


def unit_days(unit: str, day: date, steps: int) -> Days:
    """The whole unit that has `day` in it, or the one so many `steps` after it."""
    if unit == "day":
        return (day + timedelta(days=steps),) * 2
    if unit in ("week", "weekend"):
        monday = day + timedelta(days=7 * steps - day.weekday())
        return monday + timedelta(days=5 * (unit == "weekend")), monday + timedelta(days=6)
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    first = (day.month - 1) // months * months + 1
    return month_days(day.year, first + months * steps, months)
