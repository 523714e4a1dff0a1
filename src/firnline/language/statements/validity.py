"""From when and until when a statement holds, by the dates in its sentence. Pure.

"I moved last week" and "since 2019" begin, "until last year" ends, "from 2010 to 2015" does both.
Relative dates count from the time at which it was said. What is not understood dates nothing.
"""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from firnline.errors import InputError
from firnline.language.date_words import NUMBERS, WEEKDAYS, fold
from firnline.language.dates import Interval, interval
from firnline.language.lexicon import MONTHS
from firnline.language.statements import patterns as slots
from firnline.log.message import microseconds
from firnline.log.regex import regex

_DATED: Final = frozenset(
    (
        *(slots.HOME, slots.EMPLOYER, slots.JOB, slots.RUNS, slots.STUDIES, slots.DIET, slots.AVOIDS, slots.RELATIONSHIP, slots.PET),
        *(slots.OWNS, slots.DRIVES, slots.HEALTH, slots.MEDICATION, slots.LEARNS, slots.PLAYS, slots.HOBBY, slots.TOOL),
        *(slots.CHANGE, slots.ENDED, slots.TITLE),
    )
)  # fmt: skip
"""The slots of what begins and ends."""
_NUMBER: Final = r"(?:\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eine?[mnr]?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|une?|un|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|два|две|три|четыре|пять|шесть|семь|восемь|девять|десять|[一二两三四五六七八九十]{1,2})"
_MONTH_NAMES: Final = "|".join(
    sorted((name for name in MONTHS if len(name) > len("so")), key=len, reverse=True)
)
_UNIT: Final = r"(?:days?|weeks?|months?|years?|tage?n?|wochen?|monate?n?|jahre?n?|días?|semanas?|mes(?:es)?|años?|jours?|semaines?|mois|ans?|дн\w+|недел\w+|месяц\w*|лет|года?)"
_REST: Final = r"(?P<date>[^.,;!?()\n—–。，！？]{2,40})"
_RANGE: Final = regex(
    r"\b(?:from|between|von|de|desde|entre|с)\s+(?P<a>\d{4})\s+(?:to|until|till|and|bis|a|hasta|à|et|y|по)\s+(?P<b>\d{4})\b|(?P<a2>\d{4})年?[到至-](?P<b2>\d{4})年",
    re.IGNORECASE,
)
_SINCE: Final = regex(
    rf"\b(?:since|seit|desde(?! hace)|depuis|starting(?: on| in)?|as of|beginning(?: on| in)?|effective|ab(?: dem)?|a partir de(?:l)?|à partir d[eu]|начиная с|с)\s+{_REST}"
    r"|(?P<date2>\d{4}年(?:\d{1,2}月)?)(?:以来|起|开始)|从(?P<date3>\d{4}年|去年|上个月|上周)",
    re.IGNORECASE,
)
_FOR: Final = regex(
    rf"\b(?:(?:have|has|['’]ve|been)\b[^.;!?\n]{{0,80}}? for (?:the (?:last|past) |about |over |almost |nearly )?|seit |desde hace |hace |depuis |уже )(?P<n>{_NUMBER}) (?P<unit>{_UNIT})\b(?! ago)"
    r"|(?P<n2>[一二两三四五六七八九十\d]{1,3})(?P<unit2>年|个月)了",
    re.IGNORECASE,
)
_UNTIL: Final = regex(
    rf"\b(?:until|till|bis|hasta|jusqu['’](?:en|à|au)|до)\s+{_REST}", re.IGNORECASE
)
_WHEN: Final = regex(
    rf"\b(?P<date>(?:last|this past|past) (?:week|month|year|spring|summer|autumn|fall|winter|weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)day|{_MONTH_NAMES})|yesterday|today|this (?:week|month|year|morning)"
    rf"|{_NUMBER} {_UNIT} ago|(?:in|im|en|au mois d[e']) ?(?:early |late |mid-?)?(?:{_MONTH_NAMES})(?: (?:de )?\d{{4}})?|(?:in|im jahr|en|в) \d{{4}}|(?:on |am |el |le )?(?:{slots.DAY})|next (?:week|month|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
    rf"|(?:letzte[nrs]?|vorige[nrs]?) (?:woche|monat|jahr|sommer|winter)|gestern|heute|vor {_NUMBER} {_UNIT}|nächste[nrs]? (?:woche|monat|jahr)"
    rf"|la semana pasada|el (?:mes|año) pasado|ayer|hoy|hace {_NUMBER} {_UNIT}|la semaine dernière|le mois dernier|l['’]an(?:née)? dernière?|hier|il y a {_NUMBER} {_UNIT}"
    rf"|на прошлой неделе|в прошлом (?:месяце|году)|вчера|{_NUMBER} {_UNIT} назад|в (?:январе|феврале|марте|апреле|мае|июне|июле|августе|сентябре|октябре|ноябре|декабре)(?: \d{{4}})?)\b"
    rf"|(?P<far>上周|上个月|去年|昨天|今年|上个星期|{_NUMBER}(?:年|个月|天|周)前|\d{{4}}年(?:\d{{1,2}}月)?|\d{{1,2}}月(?:\d{{1,2}}[日号])?)",
    re.IGNORECASE,
)
_AHEAD: Final = regex(
    r"\b(?:moving|starting|start|will|going to|from next|as of|beginning|next|tomorrow|leaving|ziehe|ziehen|fange|beginne|ab|nächste\w*|me mudo|nos mudamos|empiezo|je déménage|je commence|переезжаю|переезжаем|начинаю)\b|下周|下个月|明年|将",
    re.IGNORECASE,
)
"""Words of what is still to come."""
_SEASONS: Final = {
    "spring": "march",
    "summer": "june",
    "autumn": "september",
    "fall": "september",
    "winter": "december",
    "sommer": "june",
}
_SEASON: Final = regex(
    r"\b(?:last|past|this past|letzten) (spring|summer|autumn|fall|winter|sommer)\b", re.IGNORECASE
)
_DAYS: Final = {
    "d": 1,
    "t": 1,
    "j": 1,
    "д": 1,
    "w": 7,
    "s": 7,
    "н": 7,
    "m": 30,
    "м": 30,
    "个": 30,
    "y": 365,
    "a": 365,
    "л": 365,
    "г": 365,
    "年": 365,
}
_ENGLISH: Final = (
    (regex(r"\bla semana pasada\b|\bla semaine dernière\b|\bна прошлой неделе\b"), "last week"),
    (regex(r"\bel mes pasado\b|\ble mois dernier\b|\bв прошлом месяце\b"), "last month"),
    (
        regex(
            r"\bel año pasado\b|\bl['’]an(?:née)? dernière?\b|\bв прошлом году\b|\bletztes jahr\b"
        ),
        "last year",
    ),
)
_YEAR: Final = timedelta(days=365)
ANY_DAY: Final = datetime(2026, 6, 15, tzinfo=UTC)


def valid_times(sentence: str, slot: str, said_at: datetime) -> tuple[int | None, int | None]:
    """The times since and until which it holds, in microseconds; None if the sentence has none."""
    if slot.partition(" for ")[0] not in _DATED:
        return None, None
    if span := _RANGE.search(sentence):
        first, last = span["a"] or span["a2"], span["b"] or span["b2"]
        found = _interval(f"from {first} to {last}", said_at)
        return (microseconds(found.since), microseconds(found.until)) if found else (None, None)
    until = _first(_UNTIL, sentence, said_at)
    since = _since(sentence, said_at, ended=until is not None)
    return (
        None if since is None else microseconds(since),
        None if until is None else microseconds(until.until),
    )


def is_over(sentence: str, slot: str) -> bool:
    """Whether a sentence says until when something held: "from 2010 to 2015", "until last year"."""
    return valid_times(sentence, slot, ANY_DAY)[1] is not None


def _since(sentence: str, said_at: datetime, *, ended: bool) -> datetime | None:
    ahead = _AHEAD.search(sentence) is not None
    if match := _FOR.search(sentence):
        unit = (match["unit"] or match["unit2"] or "").casefold()
        days = _DAYS.get(unit[:1] if unit[:2] != "mo" else "m", 0)
        count = _count(match["n"] or match["n2"])
        return said_at - timedelta(days=days * count) if days * count else None
    found = _first(_SINCE, sentence, said_at)
    if found is None and not ended:
        found = _first(_WHEN, sentence, said_at)
    if found is None:
        return None
    return _ahead(found.since, said_at) if ahead else found.since


def _count(word: str) -> int:
    return int(word) if word.isdecimal() else NUMBERS.get(fold(word), 0)


def _ahead(at: datetime, said_at: datetime) -> datetime:
    """The same day in the next year, if it is past: what is to come has no past date."""
    return at if at > said_at - timedelta(days=7) else at + _YEAR


def _first(pattern: re.Pattern[str], sentence: str, said_at: datetime) -> Interval | None:
    """The first date that the pattern finds, if it is understood."""
    for match in pattern.finditer(sentence):
        text = next((text for text in match.groupdict().values() if text), "")
        for words in _beginnings(text):
            if found := _interval(words, said_at):
                return found
    return None


def _beginnings(text: str) -> Iterator[str]:
    """The text and its beginnings by words, the longest first; at most so many."""
    words = text.split()[:6]
    for count in range(len(words), 0, -1):
        yield " ".join(words[:count])


def _interval(words: str, said_at: datetime) -> Interval | None:
    text = words.casefold()
    for pattern, english in _ENGLISH:
        text = pattern.sub(english, text)
    text = _SEASON.sub(lambda match: f"in {_SEASONS[match[1].casefold()]}", text)
    plain = text.removeprefix("on ").removeprefix("next ").strip()
    if text.startswith("next ") and plain in WEEKDAYS:
        days = (WEEKDAYS[plain] - said_at.weekday() - 1) % 7 + 1
        text = (said_at + timedelta(days=days)).date().isoformat()
    try:
        return interval(text, now=said_at)
    except InputError:
        return None
