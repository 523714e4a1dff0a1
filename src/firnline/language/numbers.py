"""Finds numbers, times and dates in text, in forms that can be compared."""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from firnline.language.lexicon import (
    FOREIGN_NUMBERS,
    MONTHS,
    MONTHS_ALONE,
    SCALES,
    SMALL_NUMBERS,
    TENS,
    WEEKDAYS,
)
from firnline.log.regex import regex

_DIGITS_MAX: Final = 30
_MONTH_MAX: Final = 12
_DAY_MAX: Final = 31
_SMALL_MAX: Final = 12
_RUN_MAX: Final = 12
_SHORT_YEAR: Final = 100
_NO_WORD: Final = r"(?![^\W\d_])"

_MONTH: Final = "|".join(sorted(MONTHS, key=len, reverse=True))
_NAME: Final = rf"(?=[^\W\d_])(?P<name>{_MONTH}){_NO_WORD}\.?"
_OF: Final = r"(?:of\s+|de\s+)?"
_IN_YEAR: Final = r"(?P<year>(?:1[5-9]|20)\d\d)(?!\d)"
_YEAR: Final = rf"(?:,?\s+{_OF}{_IN_YEAR})?"
_NO_MORE: Final = r"(?![\d:%]|[.,]\d)"
_DATES: Final = tuple(
    regex(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\d-])(?P<year>(?:1[5-9]|20)\d\d)[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)",
        r"(?:(?P<year>(?:1[5-9]|20)\d\d)年)?(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})[日号])?",
        rf"(?<![\d.,/-])(?P<a>\d{{1,2}})(?P<point>[/.-])(?P<b>\d{{1,2}})(?P=point){_IN_YEAR}",
        r"(?<![\d.,/-])(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<year>\d{2})(?!\d)",
    )
)
_NAMED_DATES: Final = tuple(
    regex(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<![\w.,])(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?\s+{_OF}{_NAME}{_YEAR}",
        rf"(?<!\w){_NAME}\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_NO_MORE}{_YEAR}",
        rf"(?<!\w){_NAME},?\s+{_OF}{_IN_YEAR}",
    )
)
_DIGIT: Final = regex(r"\d")
_DATE: Final = regex(r"\d(?:[-/.]\d|月)")
"""Part of every numeric date: most texts have none, and need no further search."""
_WORD: Final = regex(r"[^\W\d_]+")
_BEFORE_MONTH: Final = regex(
    r"\b(?:in|by|until|till|since|of|from|to|last|next|early|mid|late|this|en|im)[\s-]+\Z",
    re.IGNORECASE,
)
_TIME: Final = regex(
    r"(?<![\d:.])(?P<hour>[0-2]?\d):(?P<minute>[0-5]\d)(?::[0-5]\d)?(?!\d)(?:\s?(?:[ap]m\b|[ap]\.m\.))?"
    r"|(?<![\w.])(?P<hour12>1[0-2]|[1-9])\s?(?:[ap]m\b|[ap]\.m\.)",
    re.IGNORECASE,
)
_NUMBER: Final = regex(
    r"(?<![\w.])[$€£¥₹]?\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?"
    r"|(?<!\w)[$€£¥₹]?\d+(?:[.,'’]\d+)*"
)
_SCALE: Final = regex(
    r"\s?(?P<scale>hundred|thousand|million|billion|bn|mn|k|m|[千万萬亿億])(?![^\W\d_]*[a-z])",
    re.IGNORECASE,
)
_FAR_SCALES: Final = {"千": 1_000, "万": 10_000, "萬": 10_000, "亿": 10**8, "億": 10**8}
_THOUSANDS: Final = regex(r"\d{1,3}([.,'’])\d{3}(?:\1\d{3})*(?:[.,]\d+)?")
_SPACED: Final = regex(r"[ \u00a0\u202f]")
_LIST_NUMBER: Final = regex(r"(?:^|\n)[ \t]*\Z")


class Mention(NamedTuple):
    """A piece of text and its possible readings for comparison, the likeliest first."""

    start: int
    end: int
    readings: tuple[str, ...]
    sure: bool = True


def dates(text: str) -> Iterator[Mention]:
    """Days, months and weekdays, as ``year-month-day`` with ``*`` for unknown parts."""
    days: list[Mention] = []

    def take(match: re.Match[str]) -> str:
        readings = _day_readings(match.groupdict())
        if not readings:
            return match[0]
        days.append(Mention(*match.span(), readings))
        return "\N{REPLACEMENT CHARACTER}" * len(match[0])

    for pattern in _date_patterns(text):
        text = pattern.sub(take, text)
    yield from days
    for match in _WORD.finditer(text):
        word = match[0].casefold()
        if word in WEEKDAYS:
            yield Mention(*match.span(), (f"weekday-{WEEKDAYS[word]}",))
        elif word in MONTHS and _month_alone(text, match):
            yield Mention(*match.span(), (f"*-{MONTHS[word]:02}-*",))


def _date_patterns(text: str) -> tuple[re.Pattern[str], ...]:
    """The patterns that may match in the text."""
    if not _DIGIT.search(text):
        return ()
    named = not MONTHS.keys().isdisjoint(_WORD.findall(text.casefold()))
    return (_DATES if _DATE.search(text) else ()) + (_NAMED_DATES if named else ())


def _month_alone(text: str, match: re.Match[str]) -> bool:
    if match[0].casefold() in MONTHS_ALONE:
        return match[0][0].isupper() or not match[0].isascii()
    before = text[max(0, match.start() - 12) : match.start()]
    return match[0][0].isupper() and len(match[0]) > 2 and bool(_BEFORE_MONTH.search(before))  # noqa: PLR2004


def _day_readings(parts: dict[str, str | None]) -> tuple[str, ...]:
    year = parts.get("year") or "*"
    if year != "*" and int(year) < _SHORT_YEAR:
        year = str(2000 + int(year))
    if parts.get("a") and parts.get("b"):
        first, second = int(parts["a"] or 0), int(parts["b"] or 0)
        both = ((first, second), (second, first))
        return tuple(
            dict.fromkeys(_day(year, month, day) for month, day in both if _is_day(month, day))
        )
    name = parts.get("name")
    month = MONTHS[name.casefold()] if name else int(parts.get("month") or 0)
    day = parts.get("day")
    if not _is_day(month, int(day) if day else 1):
        return ()
    return (_day(year, month, int(day) if day else None),)


def _is_day(month: int, day: int) -> bool:
    return 1 <= month <= _MONTH_MAX and 1 <= day <= _DAY_MAX


def _day(year: str, month: int, day: int | None) -> str:
    return f"{year}-{month:02}-{f'{day:02}' if day else '*'}"


def weekday(reading: str) -> str | None:
    """The weekday of a full date, as `dates` writes it; None for an incomplete date."""
    try:
        return f"weekday-{date.fromisoformat(reading).isoweekday()}"
    except ValueError:
        return None


def times(text: str) -> Iterator[Mention]:
    """Times of day on a twelve-hour clock, because many texts omit am and pm."""
    for match in _TIME.finditer(text) if any(map(str.isdigit, text)) else ():
        hour = int(match["hour"] or match["hour12"])
        yield Mention(*match.span(), (f"t{hour % 12}:{match['minute'] or '00'}",))


def numbers(text: str) -> Iterator[Mention]:
    """Numbers in digits and in English words, without the numbers of list items."""
    for match in _NUMBER.finditer(text):
        scaled = _SCALE.match(text, match.end())
        mark = scaled["scale"].casefold() if scaled else ""
        if not mark and _is_list_number(text, match):
            continue
        readings = number_readings(match[0].lstrip("$€£¥₹"), mark)
        yield Mention(match.start(), scaled.end() if scaled else match.end(), readings)
    yield from _spelled_numbers(text)


def _is_list_number(text: str, match: re.Match[str]) -> bool:
    before = _LIST_NUMBER.search(text[max(0, match.start() - 20) : match.start()])
    at_start = match.start() == 0 or before is not None
    return at_start and text[match.end() : match.end() + 2] in {". ", ") ", ".\n", ")\n"}


def number_readings(digits: str, mark: str = "") -> tuple[str, ...]:
    """The possible values of the digits: 1.500 is one and a half, or 1500."""
    if len(digits) > _DIGITS_MAX:
        return (digits,)
    scale = SCALES.get(mark) or _FAR_SCALES.get(mark) or 1
    values = [_parse_decimal(form) for form in _decimal_forms(digits)]
    scaled = [_format_decimal(value * scale) for value in values if value is not None]
    if mark == "m":  # meters, or millions
        scaled += [_format_decimal(value * 1_000_000) for value in values if value is not None]
    if mark == "k":
        scaled += [_format_decimal(value) for value in values if value is not None]
    return tuple(dict.fromkeys(scaled)) or (digits,)


def _decimal_forms(digits: str) -> list[str]:
    """The possible spellings of the digits with only a decimal point."""
    if _SPACED.search(digits):
        return [_SPACED.sub("", digits).replace(",", "."), *_SPACED.split(digits)]
    points = [char for char in digits if not char.isdigit()]
    if not points:
        return [digits]
    grouped = _THOUSANDS.fullmatch(digits)
    if len(points) == 1:
        fraction = digits.replace(points[0], ".")
        whole = digits.replace(points[0], "")
        if not grouped:
            return [fraction]
        return [fraction, whole] if points[0] == "." else [whole, fraction]
    if grouped:
        return [digits.replace(grouped[1], "").replace(",", ".")]
    return re.split(r"[.,'’]", digits) if points[0] == "," else []


def _parse_decimal(form: str) -> Decimal | None:
    try:
        return Decimal(form)
    except InvalidOperation:
        return None


def _format_decimal(value: Decimal) -> str:
    text = f"{value:f}"
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text.lstrip("0") or "0"


def _spelled_numbers(text: str) -> Iterator[Mention]:
    """Runs of English number words, read as one number each."""
    run: list[re.Match[str]] = []
    for match in _WORD.finditer(text):
        word = match[0].casefold()
        if run and word == "and":
            continue
        gap = text[run[-1].end() : match.start()] if run else ""
        if run and (len(run) >= _RUN_MAX or not _continues(run[-1][0].casefold(), gap, word)):
            yield _spelled_number(run)
            run = []
        if word in SMALL_NUMBERS or word in TENS or (run and word in SCALES):
            run.append(match)
    if run:
        yield _spelled_number(run)


def _continues(last: str, gap: str, word: str) -> bool:
    """Whether a number word after `last` continues the same number: "two hundred and six"."""
    if gap not in {" ", "-", " and "} or len(word) <= 2:  # noqa: PLR2004
        return False
    if word in SCALES:
        return gap != " and "
    if word not in SMALL_NUMBERS and word not in TENS:
        return False
    return last in SCALES or (last in TENS and gap != " and " and SMALL_NUMBERS.get(word, 10) < 10)  # noqa: PLR2004


def _spelled_number(run: list[re.Match[str]]) -> Mention:
    total = part = 0
    for match in run:
        word = match[0].casefold()
        if word in SCALES:
            scale = SCALES[word]
            part = max(part, 1) * scale
            if scale >= 1_000:  # noqa: PLR2004
                total, part = total + part, 0
        else:
            part += SMALL_NUMBERS.get(word) or TENS.get(word, 0)
    number = total + part
    sure = number > _SMALL_MAX or len(run) > 1
    return Mention(run[0].start(), run[-1].end(), (str(number),), sure)


def loose_numbers(text: str) -> set[str]:
    """Every number in a source text, in any spelling."""
    found = {run.lstrip("0") or "0" for run in re.findall(r"\d+", text)}
    for number in numbers(text):
        found.update(number.readings)
    for match in _NUMBER.finditer(text):
        found.update(number_readings(match[0].lstrip("$€£¥₹")))
    for word in _WORD.findall(text.casefold()):
        if word in FOREIGN_NUMBERS:
            found.add(str(FOREIGN_NUMBERS[word]))
    if not text.isascii():
        found.update(str(FOREIGN_NUMBERS[char]) for char in set(text) if char in FOREIGN_NUMBERS)
    return found
