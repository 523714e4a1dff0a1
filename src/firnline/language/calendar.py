"""Days and moments in a time zone, and rules that find days in the calendar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from firnline.errors import InputError

YEARS: Final = (1970, 9999)
"""The first and the last supported year."""
LATEST: Final = datetime.max.replace(tzinfo=UTC)
"""The end of an open interval."""
DAY: Final = timedelta(days=1)

Span: TypeAlias = tuple[datetime, datetime]
Days: TypeAlias = tuple[date, date]


class Frame(NamedTuple):
    """The reference for relative dates: the current local time, and its zone."""

    now: datetime
    zone: tzinfo

    @property
    def today(self) -> date:
        """The current local day."""
        return self.now.date()


def make_frame(now: datetime, zone: str | tzinfo) -> Frame:
    """The frame of the time `now` in `zone`; `InputError` if either is invalid."""
    if now.utcoffset() is None:
        raise InputError("now: the time has no zone; add tzinfo, for example datetime.UTC")
    try:
        known = _zone(zone)
        frame = Frame(now.astimezone(known), known)
    except OverflowError as error:
        raise InputError(f"now: {now} is too close to the first or last supported date") from error
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
            f"zone: unknown time zone {zone!r}; use a name such as Europe/Berlin, and install the "
            "package tzdata if this system has no time zones"
        ) from error


def moment_at(zone: tzinfo, wall: datetime, fold: int = 0) -> datetime:
    """The moment at which clocks in `zone` show `wall`; if they skip it, when they jump."""
    early, late = sorted(wall.replace(tzinfo=zone, fold=side).astimezone(UTC) for side in (0, 1))
    if wall_time(zone, early) == wall or wall_time(zone, late) == wall:
        return late if fold else early
    while late - early > timedelta(seconds=1):
        middle = early + timedelta(seconds=(late - early) // timedelta(seconds=2))
        early, late = (middle, late) if wall_time(zone, middle) < wall else (early, middle)
    return late


def wall_time(zone: tzinfo, moment: datetime) -> datetime:
    """The local time in `zone` at `moment`."""
    return moment.astimezone(zone).replace(tzinfo=None)


def midnight(frame: Frame, day: date) -> datetime:
    """The moment at which `day` begins."""
    return moment_at(frame.zone, datetime.combine(day, time()))


def whole_days(frame: Frame, first: date, last: date) -> Span:
    """All of the days from `first` to `last`."""
    until = LATEST if last == date.max else midnight(frame, last + DAY)
    return midnight(frame, first), until


# -- rules: what an expression means before the days are known ----------------------------------


@dataclass(frozen=True, slots=True)
class DateRule:
    """A rule for days: the newest that begin no later than `limit`, and the part of them meant."""

    place: Callable[[date], Days]
    limit: date = date.max
    every: int = 0
    """The longest period of a recurring rule in days: 7 for a weekday, 366 without a year."""
    cut: Callable[[Frame, date, date], Span] = whole_days

    def span(self, frame: Frame, limit: date | None = None) -> Span:
        """The interval of the days that begin by `limit`."""
        return self.cut(frame, *self.place(self.limit if limit is None else limit))


def fixed_days(first: date, last: date | None = None) -> DateRule:
    """The days from `first` to `last`."""
    return DateRule(lambda _: (first, last or first))


def exact_span(since: datetime, until: datetime) -> DateRule:
    """An interval that does not depend on the day."""
    return DateRule(lambda _: (date.max, date.max), cut=lambda *_: (since, until))


def newest_weekday(weekday: int, limit: date) -> DateRule:
    """The newest such weekday up to `limit`; Monday is 0."""

    def place(limit: date) -> Days:
        day = limit - timedelta(days=(limit.weekday() - weekday) % 7)
        return day, day

    return DateRule(place, limit, every=7)


def newest_in_year(make: Callable[[int], Days | None], year: str | None, limit: date) -> DateRule:
    """The days that `make` returns for `year`; without one, for the newest year they began in."""
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
    """The whole unit that contains `day`, or the one that many `steps` later."""
    if unit == "day":
        return (day + timedelta(days=steps),) * 2
    if unit in ("week", "weekend"):
        monday = day + timedelta(days=7 * steps - day.weekday())
        return monday + timedelta(days=5 * (unit == "weekend")), monday + timedelta(days=6)
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    first = (day.month - 1) // months * months + 1
    return month_days(day.year, first + months * steps, months)
