"""Turns date expressions such as "last tuesday" into intervals of time (B5).

``interval("yesterday", now=…, zone="Europe/Berlin")`` is that day there, from local midnight to
local midnight, as a half-open interval in UTC. An expression that is not understood raises
`InputError`; nothing is guessed.

- A unit means all of it: "2 weeks ago" is the week, from Monday, that contains that day.
- A weekday is the past one; today's name means a week ago. "March 3" and "in March" are the newest
  that have begun.
- "last week" is the calendar week before this one. "the last week", "past week" and "the last 3
  days" count back from today and include today.
- "until", "to" and "and" include the unit they name; "before" and "after" exclude it. "since" has
  no end, "until" no beginning: such an interval extends to the limits of the supported years.
- In a range, an end without a year or week follows the other: "from Monday to Friday".
- A time that clocks show twice includes both; one that they skip does not exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Final, TypeAlias

from firnline.errors import InputError
from firnline.language.calendar import (
    DAY,
    LATEST,
    YEARS,
    DateRule,
    Days,
    Frame,
    Span,
    exact_span,
    fixed_days,
    make_frame,
    midnight,
    moment_at,
    month_days,
    newest_in_year,
    newest_weekday,
    unit_days,
    wall_time,
    whole_days,
)
from firnline.language.date_words import MONTHS, NUMBERS, UNITS, WEEKDAYS, fold, to_english
from firnline.log.regex import regex

DATE_CHARS_MAX: Final = 200
"""Characters of a date expression."""
EXAMPLES: Final = (
    "today, yesterday, tuesday, last tuesday, yesterday morning, 2026-03-04, 2026-03-04T10:15, "
    "March 3, 3 March 2025, in March, in 2025, Q2 2025, 3 days ago, last week, this month, "
    "the last 3 days, since Monday, before 5 March, between 3 March and 5 March"
)
"""Examples of supported expressions, for errors and tool descriptions."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The time in [since, until), both in UTC, and the expression it was parsed from."""

    since: datetime
    until: datetime
    words: str


def interval(text: str, *, now: datetime, zone: str | tzinfo = "UTC") -> Interval:
    """The time that `text` means in `zone` at the time `now`.

    It is never empty. `InputError` if the text is not understood, ambiguous, outside the years 1970
    to 9999 or does not exist; no text raises another error.
    """
    frame = make_frame(now, zone)
    if not isinstance(text, str) or len(text) > DATE_CHARS_MAX:
        raise InputError(f"date: expected up to {DATE_CHARS_MAX} characters such as {EXAMPLES}")
    try:
        since, until = (end.astimezone(UTC) for end in _parse(_normalize(text, frame), frame))
        early = since.astimezone(frame.zone).year < YEARS[0]
    except (OverflowError, ValueError):
        early = True
    except _NotUnderstood:
        raise InputError(f"date: {text!r} is not understood; use {EXAMPLES}") from None
    if early:
        raise InputError(f"date: {text!r} is not within the years {YEARS[0]} to {YEARS[1]}")
    if until <= since:
        raise InputError(f"date: {text!r} does not exist in {frame.zone}")
    return Interval(since, until, " ".join(text.split()))


# -- one rule per kind of expression -----------------------------------------------------------


_Match: TypeAlias = re.Match[str]


def _parse_number(word: str | None) -> int:
    return NUMBERS[word] if word in NUMBERS else int(word or 1)


def _valid_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _named_day(found: _Match, frame: Frame) -> DateRule:
    return fixed_days(frame.today + timedelta(days=_NAMED_DAYS[found["day"]]))


def _now(_: _Match, frame: Frame) -> DateRule:
    since = frame.now.astimezone(UTC).replace(second=0, microsecond=0)
    return exact_span(since, since + timedelta(minutes=1))


def _weekday(found: _Match, frame: Frame) -> DateRule:
    weekday = WEEKDAYS[found["weekday"]]
    if found["which"] == "this":
        return fixed_days(unit_days("week", frame.today, 0)[0] + timedelta(days=weekday))
    return newest_weekday(weekday, frame.today - DAY)


def _weekday_of(found: _Match, frame: Frame) -> DateRule:
    """Tuesday of last week."""
    monday, _ = unit_days("week", frame.today, _STEPS[found["which"]])
    return fixed_days(monday + timedelta(days=WEEKDAYS[found["weekday"]]))


def _iso(found: _Match, _: Frame) -> DateRule:
    year, month, day = (int(part) for part in found.group("y", "m", "d"))
    made = _valid_date(year, month, day)
    if made is None:
        raise InputError(f"date: there is no {year:04}-{month:02}-{day:02}")
    return fixed_days(made)


def numeric_dates(text: str) -> list[date]:
    """The days that 3/4/2025 can be, in either order; in 3.4.2025 the day comes first."""
    found = _NUMERIC.fullmatch(text)
    if found is None:
        return []
    a, b, year = (int(part) for part in found.group("a", "b", "y"))
    readings = [_valid_date(year, b, a), None if found["sign"] == "." else _valid_date(year, a, b)]
    return sorted({day for day in readings if day})


def _numeric_date(found: _Match, _: Frame) -> DateRule:
    days = numeric_dates(found[0])
    if not days:
        raise InputError(f"date: there is no {found[0]}")
    if len(days) > 1:
        raise InputError(f"date: {found[0]} can be {days[0]} or {days[1]}; use one of these")
    return fixed_days(days[0])


def _month_day(found: _Match, frame: Frame) -> DateRule:
    """March 3, 3rd of March 2025, March 3-5, Tuesday, March 3."""
    parts = found.groupdict()
    month, first = MONTHS[found["month"]], int(found["d"])
    last, weekday = int(parts.get("to") or first), parts.get("weekday")

    def make(year: int) -> Days | None:
        days = _valid_date(year, month, first), _valid_date(year, month, last)
        if weekday and days[0] and days[0].weekday() != WEEKDAYS[weekday]:
            return None
        return (days[0], days[1]) if days[0] and days[1] and first <= last else None

    return newest_in_year(make, found["y"], frame.today)


def _month(found: _Match, frame: Frame) -> DateRule:
    parts = found.groupdict()
    number = found["month"]
    month = MONTHS[number] if number in MONTHS else int(number)
    if not 1 <= month <= 12:  # noqa: PLR2004
        raise InputError(f"date: there is no month {month}")
    before = unit_days("month", frame.today, 0)[0] - DAY
    limit = before if parts.get("which") == "last" else frame.today
    return newest_in_year(lambda year: month_days(year, month), found["y"], limit)


def _quarter(found: _Match, frame: Frame) -> DateRule:
    first = 3 * int(found["q"]) - 2
    year = found["y"] or found["y2"]
    return newest_in_year(lambda year: month_days(year, first, 3), year, frame.today)


def _year(found: _Match, _: Frame) -> DateRule:
    return fixed_days(*month_days(int(found["y"]), 1, 12))


def _iso_week(found: _Match, _: Frame) -> DateRule:
    year, week = int(found["y"]), int(found["w"])
    try:
        return fixed_days(*unit_days("week", date.fromisocalendar(year, week, 4), 0))
    except ValueError as error:
        raise InputError(f"date: {year} has no week {week}") from error


def _ago(found: _Match, frame: Frame) -> DateRule:
    steps, unit = _parse_number(found["n"]), found["unit"]
    if unit not in ("hour", "minute"):
        return fixed_days(*unit_days(unit, frame.today, -steps))
    moment = (frame.now.astimezone(UTC) - steps * timedelta(**{f"{unit}s": 1})).astimezone(
        frame.zone
    )
    since = moment.astimezone(UTC) - timedelta(
        minutes=moment.minute * (unit == "hour"),
        seconds=moment.second,
        microseconds=moment.microsecond,
    )
    return exact_span(since, since + timedelta(**{f"{unit}s": 1}))


def _rolling(found: _Match, frame: Frame) -> DateRule:
    """The last 3 days: back from today, including today."""
    steps, unit = _parse_number(found["n"]), found["unit"]
    if unit in ("hour", "minute"):
        _, until = _now(found, frame).span(frame)
        return exact_span(frame.now.astimezone(UTC) - steps * timedelta(**{f"{unit}s": 1}), until)
    if unit in ("day", "week"):
        return fixed_days(
            frame.today - steps * timedelta(days=7 if unit == "week" else 1), frame.today
        )
    months = {"month": 1, "quarter": 3, "year": 12}[unit] * steps
    first, last = month_days(frame.today.year, frame.today.month - months)
    return fixed_days(min(first + DAY * (frame.today.day - 1), last), frame.today)


def _relative(found: _Match, frame: Frame) -> DateRule:
    return fixed_days(*unit_days(found["unit"], frame.today, _STEPS[found["which"]]))


def _words(table: dict[str, int]) -> str:
    return "|".join(re.escape(word) for word in sorted(table, key=len, reverse=True))


_NAMED_DAYS: Final = {
    "today": 0,
    "yesterday": -1,
    "tomorrow": 1,
    "day before yesterday": -2,
    "day after tomorrow": 2,
}
_STEPS: Final = {"last": -1, "previous": -1, "this": 0, "current": 0, "next": 1}
_Y: Final = r"(?P<y>[0-9]{4})"
_MONTH: Final = rf"(?P<month>{_words(MONTHS)})\.?"
_WEEKDAY: Final = rf"(?P<weekday>{_words(WEEKDAYS)})"
_D: Final = r"(?P<d>[0-9]{1,2})(?:st|nd|rd|th|\.)?"
_TO: Final = r"(?: ?(?:-|to|and|until) ?(?P<to>[0-9]{1,2})(?:st|nd|rd|th|\.)?)?"
_N: Final = rf"(?P<n>[0-9]{{1,6}}|{_words(NUMBERS)})"
_UNIT: Final = rf"(?P<unit>{UNITS})s?"
_OPT_Y: Final = rf"(?:,? (?:of )?{_Y})?"
_NUMERIC_PATTERN: Final = rf"(?P<a>[0-9]{{1,2}})(?P<sign>[-/.])(?P<b>[0-9]{{1,2}})(?P=sign){_Y}"
_NUMERIC: Final = regex(_NUMERIC_PATTERN)
_RULES: Final = tuple(
    (regex(pattern), rule)
    for pattern, rule in (
        (rf"(?P<day>{'|'.join(_NAMED_DAYS)})", _named_day),
        (r"(?:right )?now", _now),
        (rf"(?:(?P<which>last|past|previous|this) )?{_WEEKDAY}\.?", _weekday),
        (rf"{_WEEKDAY} (?:of )?(?P<which>{'|'.join(_STEPS)}) week", _weekday_of),
        (rf"{_Y}(?P<sign>[-/.])(?P<m>[0-9]{{1,2}})(?P=sign)(?P<d>[0-9]{{1,2}})", _iso),
        (rf"{_Y}(?P<m>[0-9]{{2}})(?P<d>[0-9]{{2}})", _iso),
        (_NUMERIC_PATTERN, _numeric_date),
        (
            rf"(?:{_WEEKDAY}\.?,? (?:the )?)?(?:between )?{_D}{_TO} (?:of )?{_MONTH}{_OPT_Y}",
            _month_day,
        ),
        (rf"(?:{_WEEKDAY}\.?,? )?{_MONTH} (?:the )?{_D}{_TO}{_OPT_Y}", _month_day),
        (rf"(?:(?P<which>last|this) )?{_MONTH}{_OPT_Y}", _month),
        (rf"{_Y}[-/](?P<month>[0-9]{{1,2}})", _month),
        (_Y, _year),
        (rf"(?:(?P<y2>[0-9]{{4}})[- ])?q(?P<q>[1-4])(?:[- ]{_Y})?", _quarter),
        (rf"{_Y}-?w(?P<w>[0-9]{{1,2}})", _iso_week),
        (rf"{_N} {_UNIT} ago", _ago),
        (rf"(?:past|last|previous) {_N} {_UNIT}", _rolling),
        (rf"past(?P<n>) {_UNIT}", _rolling),
        (rf"(?P<which>{'|'.join(_STEPS)}) (?P<unit>week|month|quarter|year|weekend)", _relative),
    )
)


# -- the grammar: times of a day, ranges, open ends ---------------------------------------------


class _NotUnderstood(Exception):
    """No rule matches."""


_PARTS: Final = {"morning": (0, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
_IN_THE: Final = regex(
    r"(?:(?:on|in|at|during|over|within|for|from|am|im|le|la|el|en|au|в|во|на|за) )?"
    r"(?:(?:de[mnr]|die|das) )?(the )?"
)
_PART: Final = regex(rf"(?P<base>.+?)(?: in the| at)? (?P<part>{'|'.join(_PARTS)})")
_CLOCK: Final = regex(
    r"(?P<base>.+?)(?: ?,? at| ?,)? (?P<h>[0-9]{1,2})"
    r"(?::(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2})(?:[.,][0-9]{1,9})?)?)?"
    r"(?: ?(?P<half>[ap])\.?m| ?(?P<full>uhr))?"
    r"(?: ?(?P<offset>z|utc|gmt|[+-][0-9]{2}(?::?[0-9]{2})?))?"
)
_RANGE: Final = regex(
    r"between (?P<a>.+?) and (?P<b>.+)"
    r"|(?:(?:from|since) )?(?P<c>.+?) (?:to|until|till|through|-) (?P<d>.+)"
)
_OPEN: Final = regex(r"(?P<sign>since|after|until|till|through|before) (?P<a>.+)")
_TIDY: Final = tuple(
    (regex(pattern), to)
    for pattern, to in (
        (r"\bup to\b", "until"),
        (r"\btonight\b", "today night"),
        (r"\blast night\b", "yesterday night"),
        (r"\bthis (?=(?:morning|afternoon|evening)\b)", "today "),
        (r"(?<=[0-9])t(?=[0-9])", " "),
        (r"\.{2,}", " - "),
        (r"(?<=[a-z])-(?=[a-z])|(?<=^[0-9]{4})-(?=[0-9]{4}$)", " - "),
        (r"\b(?:a )?couple (?:of )?", "2 "),
        (r"^from (.+) on(?:wards?)?$", r"since \1"),
    )
)


def _normalize(text: str, frame: Frame) -> str:
    """`text` in the form that the rules know."""
    words = to_english(fold(text))
    for pattern, to in _TIDY:
        words = pattern.sub(to, words)
    for which, steps in _STEPS.items():  # so that "in March last year" has a year
        year = f"{frame.today.year + steps:04}"
        words = re.sub(rf"(?<!the )\b{which} year\b", year, words)
    return " ".join(words.split())


def _parse(words: str, frame: Frame) -> Span:
    if when := _find_rule(words, frame):
        return when.span(frame)
    if found := _RANGE.fullmatch(words):
        ends = found.group("a", "b") if found["a"] else found.group("c", "d")
        a, b = (_parse_rule(end, frame) for end in ends)
        return _between(a, b, frame)
    if found := _OPEN.fullmatch(words):
        since, until = _parse_rule(found["a"], frame).span(frame)
        if found["sign"] in ("since", "after"):
            return since if found["sign"] == "since" else until, LATEST
        earliest = midnight(frame, date(YEARS[0], 1, 1))
        return earliest, since if found["sign"] == "before" else until
    raise _NotUnderstood


def _parse_rule(words: str, frame: Frame) -> DateRule:
    when = _find_rule(words, frame)
    if when is None:
        raise _NotUnderstood
    return when


def _between(a: DateRule, b: DateRule, frame: Frame) -> Span:
    """From the beginning of `a` to the end of `b`; of a recurring one, the occurrence that fits."""
    (since, _), (other, until) = a.span(frame), b.span(frame)
    if a.every and not b.every:
        limit = other.astimezone(frame.zone).date()
        since, _ = a.span(frame, limit if a.every > 7 else min(a.limit, limit))  # noqa: PLR2004
    elif b.every and until <= since:
        first = since.astimezone(frame.zone).date()
        _, until = b.span(frame, first + timedelta(days=b.every - 1))
    if until <= since:
        raise InputError("date: the range ends before it begins; swap its ends")
    return since, until


def _find_rule(words: str, frame: Frame) -> DateRule | None:
    """The rule for an expression without "since", "to" and the like, or None."""
    if found := _PART.fullmatch(words):
        return _part_of_day(found, frame)
    found = _CLOCK.fullmatch(words)
    if found and (found["m"] or found["half"] or found["full"]):
        return _clock_time(found, frame)
    return _find_days_rule(words, frame)


def _find_days_rule(words: str, frame: Frame) -> DateRule | None:
    start = _IN_THE.match(words)
    if start:
        words = words[start.end() :]
        if start[1]:  # "the last week" is not "last week"
            words = re.sub(rf"^last (?={_UNIT}$)", "past ", words)
    for pattern, rule in _RULES:
        if found := pattern.fullmatch(words):
            return rule(found, frame)
    return None


def _find_day_rule(words: str, frame: Frame) -> DateRule | None:
    """The same if it is a single day."""
    when = _find_days_rule(words, frame)
    if when is None or when.cut is not whole_days:
        return None
    first, last = when.place(when.limit)
    return when if first == last else None


def _part_of_day(found: _Match, frame: Frame) -> DateRule | None:
    begin, end = _PARTS[found["part"]]

    def cut(frame: Frame, day: date, _: date) -> Span:
        start = datetime.combine(day, time())
        walls = (start + timedelta(hours=hours) for hours in (begin, end))
        since, until = (moment_at(frame.zone, wall) for wall in walls)
        return since, until

    day = _find_day_rule(found["base"], frame)
    return day and replace(day, cut=cut)


def _clock_time(found: _Match, frame: Frame) -> DateRule | None:
    """A day and a time: the named hour, minute or second."""
    clock, offset = _parse_clock(found), _parse_offset(found["offset"])
    unit = "seconds" if found["s"] else "minutes" if found["m"] else "hours"
    step = timedelta(**{unit: 1})

    def cut(frame: Frame, day: date, _: date) -> Span:
        wall = datetime.combine(day, clock)
        since = moment_at(offset or frame.zone, wall)
        if wall_time(offset or frame.zone, since) != wall:
            return since, since
        return since, moment_at(offset or frame.zone, wall, fold=1) + step

    day = _find_day_rule(found["base"], frame)
    return day and replace(day, cut=cut)


def _parse_clock(found: _Match) -> time:
    hour, minute, second = (int(part or 0) for part in found.group("h", "m", "s"))
    half = found["half"]
    if hour > (12 if half else 23) or minute > 59 or second > 59 or (half and not hour):  # noqa: PLR2004
        raise InputError(f"date: {hour}:{minute:02}:{second:02} is not a valid time")
    return time(hour % 12 + 12 * (half == "p") if half else hour, minute, second)


def _parse_offset(text: str | None) -> tzinfo | None:
    if not text or text in ("z", "utc", "gmt"):
        return UTC if text else None
    hours, minutes = int(text[1:3]), int(text[3:].strip(":") or 0)
    size = timedelta(hours=hours, minutes=minutes)
    return timezone(-size if text[0] == "-" else size)
