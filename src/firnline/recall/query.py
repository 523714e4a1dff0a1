"""Parses a question: its words and their weights, the speakers and dates it names. Pure.

`parse_question` reads a question once; `rank` then weighs the entries of any conversation by it.
The weight of a word comes from the vocabulary of the tokenizer, which is sorted by frequency: as
good as counting in the conversation itself, without reading it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from firnline.embedding.token_embedder import QuestionTokens
from firnline.errors import InputError
from firnline.language.calendar import month_days
from firnline.language.concepts import concepts
from firnline.language.date_words import FOREIGN_NUMBERS, MONTHS, WEEKDAY_NAMES, fold, to_english
from firnline.language.dates import interval, numeric_dates
from firnline.language.stems import stem
from firnline.language.stop_words import ENGLISH_FREQUENT, ENGLISH_SPLIT
from firnline.language.terms import index_terms, name_parts, query_terms, spellings, without_words
from firnline.log.regex import regex
from firnline.log.tokens import reference_encoder
from firnline.recall.features import prefix
from firnline.recall.limits import QUESTION_CHARS_MAX

_VOCABULARY: Final = 200_000
_COMMON: Final = 400
"""The position in the vocabulary up to which a word says almost nothing."""
_QUESTION_WORDS: Final = """
according against aren considered couldn describe didn doesn don during hasn haven hers herself
himself isn itself kind likely mention mentioned name ourselves said shouldn sort tell theirs
themselves type wasn weren won wouldn yourselves
"""
_STOP: Final = ENGLISH_FREQUENT | ENGLISH_SPLIT | frozenset(_QUESTION_WORDS.split())
"""Stop words of questions: more than other uses have, because these words occur in any question."""
_SPEAKER_ROLES: Final = {
    **dict.fromkeys(("i", "me", "my", "mine", "myself", "we", "us", "our", "ours"), "user"),
    **dict.fromkeys(("you", "your", "yours", "yourself"), "assistant"),
}
_ASKS_TIME: Final = regex(
    r"\bwhen\b|\bhow long\b|\b(?:what|which) (?:date|day|month|year|time)\b|\bwann\b|\bcuando\b"
    r"|\bquand\b|когда|什么时候|何时|いつ|언제"
)
_ASKS_NUMBER: Final = regex(
    r"\bhow (?:many|much|often|old)\b|\bwie ?(?:viele?|oft|alt)\b|\bcuant[oa]s?\b|\bcombien\b"
    r"|сколько|多少|几|いくつ|何人|몇"
)
_ANY_TOKEN: Final = 0.5
"""The weight of a token of any word; that of one of the question's content words is added."""


class QueryTerm(NamedTuple):
    """A word of the question: its stem, weight, prefix and concepts."""

    stem: str
    weight: float
    prefix: str
    concepts: frozenset[str]


class DateRange(NamedTuple):
    """Days that the question names, of every year if it names none; `weight` is its importance."""

    first: date
    last: date
    yearly: bool = False
    weight: float = 1.0


class RecallQuery(NamedTuple):
    """A parsed question.

    `query` is the query for the search index, `days` the interval to search for entries by date.
    """

    query: str
    terms: tuple[QueryTerm, ...] = ()
    words: frozenset[str] = frozenset()
    """The stems of all its words, to find speakers that it names."""
    role: str = ""
    """The role meant by "I" or "you" if speakers have no names."""
    dates: tuple[DateRange, ...] = ()
    days: tuple[datetime, datetime] | None = None
    when: bool = False
    """It asks for a time."""
    many: bool = False
    """It asks for a number."""


class AskedQuestion(NamedTuple):
    """A question as text, as it was parsed, and as vectors, if there are any."""

    text: str
    parsed: RecallQuery
    vector: Sequence[float] | None = None
    tokens: QuestionTokens | None = None


def parse_question(question: str, now: datetime | None = None) -> RecallQuery:
    """Parse a question. Any text is accepted; "last week" is relative to `now`, if passed."""
    question = question[:QUESTION_CHARS_MAX]
    all_terms = query_terms(question)
    content = [term for term in all_terms if len(term) > 1 or term[0] not in _STOP]
    words = index_terms(question)
    plain = to_english(fold(question))
    dates = tuple(_find_dates(plain, now))
    return RecallQuery(
        query=without_words(question, _STOP) or question,
        terms=_terms([*content, *((part,) for part in name_parts(question))]),
        words=frozenset(map(stem, words)),
        role=next((_SPEAKER_ROLES[word] for word in words if word in _SPEAKER_ROLES), ""),
        dates=dates,
        days=_search_interval(dates, now),
        when=_ASKS_TIME.search(plain) is not None,
        many=_ASKS_NUMBER.search(plain) is not None,
    )


def _terms(content: list[tuple[str, ...]]) -> tuple[QueryTerm, ...]:
    terms: dict[str, QueryTerm] = {}
    for term in (part for some in content for part in spellings(["".join(some)])):
        stemmed = stem(term)
        if stemmed not in terms:
            weight = _weight(term)
            terms[stemmed] = QueryTerm(stemmed, weight, prefix(stemmed), concepts(stemmed))
    return tuple(terms.values())


@lru_cache(maxsize=16_384)
def _weight(word: str) -> float:
    """The weight of a word: the rarer, the later in the vocabulary; the rarest are not in it."""
    tokens = reference_encoder().encode_ordinary(f" {word}")
    place = tokens[0] if len(tokens) == 1 else _VOCABULARY
    return math.log1p(place / _COMMON)


def token_weights(
    question: str, spans: Sequence[tuple[int, int]], query: RecallQuery, names: Collection[str]
) -> list[float]:
    """The weights of a question's tokens by the words that they are in.

    The speakers' `names` are words like any other: they are in every message of theirs.
    """
    speakers = {stem(word) for name in names for word in index_terms(name)}
    weights = {term.stem: term.weight for term in query.terms if term.stem not in speakers}
    words = {span: index_terms(question[slice(*span)]) for span in spans}
    return [
        _ANY_TOKEN + max((weights.get(stem(word), 0.0) for word in words[span]), default=0.0)
        for span in spans
    ]


# -- dates ------------------------------------------------------------------------------------


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_NAME: Final = _any(MONTHS)
_DAY: Final = r"(?P<{}>[0-9]{{1,2}})(?:st|nd|rd|th|\.)?"
_YEAR: Final = r"(?P<{}>(?:19|20)[0-9]{{2}})"
_DATE: Final = regex(
    rf"\b(?P<iso>[0-9]{{4}}-[0-9]{{1,2}}(?:-[0-9]{{1,2}})?"
    rf"|(?:19|20)[0-9]{{2}}(?P<s>[/.])[0-9]{{1,2}}(?P=s)[0-9]{{1,2}})\b"
    rf"|(?<![0-9./-])(?P<figures>[0-9]{{1,2}}(?P<sign>[-/.])[0-9]{{1,2}}(?P=sign)"
    rf"{_YEAR.format('y0')})(?![-/.]?[0-9])"
    rf"|\b{_DAY.format('d1')} (?:of )?(?P<m1>{_NAME})\b\.?(?:,? (?:of )?{_YEAR.format('y1')}\b)?"
    rf"|(?P<in>\b(?:in|of|during|since|by|until|early|late|mid|around|last|this|for) )?"
    rf"\b(?P<m2>{_NAME})\b\.?(?: (?:the )?{_DAY.format('d2')}(?![0-9]))?"
    rf"(?:,? (?:of )?{_YEAR.format('y2')}\b)?"
    rf"|\b{_YEAR.format('y3')}\b"
)
_OTHER: Final = _any(FOREIGN_NUMBERS)
_SPAN: Final = "(?:day|week|month|year)"
_WEEKDAY: Final = f"(?:{_any(WEEKDAY_NAMES)})"
_RELATIVE: Final = regex(
    # Other scripts may directly precede a phrase: they are written without spaces.
    r"(?<![a-z0-9_\u0400-\u04ff])(?:(?:the )?(?:day before yesterday|yesterday|today|tonight"
    rf"|last night|(?:last|past|previous|this) (?:week(?:end)?|month|year|{_WEEKDAY})"
    rf"|(?:last|past) (?:[0-9]{{1,3}} {_SPAN}s|(?:[0-9]{{1,3}}|{_OTHER}) {_SPAN})"
    rf"|(?:[0-9]{{1,3}}|an?|one|two|three|four|five|six|{_OTHER}) {_SPAN}s? ago)"
    rf"|(?:on|am|el|в|во) (?:{_WEEKDAY} (?:last|this) week|(?P<bare>{_WEEKDAY})"
    r"(?!,? (?:the )?(?:[0-9]|before|after|mornings|afternoons|evenings|nights)"
    rf"|,? (?:the )?(?:{_NAME})\b)))\b"
)
"""Relative dates: the expressions of `interval` that can be found inside a text."""
_AMBIGUOUS_MONTHS: Final = frozenset(
    {"may", "march", "mars", "mar", "sept", "dec", "jan", "jun", "mai", "set"}
)
"""Months that are also other words or names; they need a day, a year or a preposition."""
_YEAR_WEIGHT: Final = 0.3
_WEEKDAY_WEIGHT: Final = 0.5
"""For "on Tuesday": most likely the last one, but possibly another."""
_SLACK: Final = timedelta(days=1), timedelta(days=7)
"""How long before and after a day messages are about it."""


def _find_dates(plain: str, now: datetime | None) -> Iterator[DateRange]:
    """The days named in a folded question in English."""
    for found in _DATE.finditer(plain):
        if found["figures"]:
            yield from (DateRange(day, day) for day in numeric_dates(found["figures"]))
        elif named := _parse_date(found):
            yield named
    if now is None or now.utcoffset() is None:
        return
    phrases = ((found[0], bool(found["bare"])) for found in _RELATIVE.finditer(plain))
    for phrase, bare in dict.fromkeys(phrases):
        try:
            parsed = interval(phrase, now=now, zone=now.tzinfo or UTC)
        except InputError:
            continue
        last = (parsed.until - timedelta(microseconds=1)).date()
        yield DateRange(parsed.since.date(), last, weight=_WEEKDAY_WEIGHT if bare else 1.0)


def _parse_date(found: re.Match[str]) -> DateRange | None:
    """The days of a match, or None if it is not a date."""
    if found["iso"]:
        numbers = [*map(int, re.split("[-/.]", found["iso"])), 0]
        return _month_or_day(*numbers[:3])
    if found["y3"]:
        return DateRange(
            date(int(found["y3"]), 1, 1), date(int(found["y3"]), 12, 31), weight=_YEAR_WEIGHT
        )
    month_name = found["m1"] or found["m2"]
    day, year_name = found["d1"] or found["d2"], found["y1"] or found["y2"]
    if month_name in _AMBIGUOUS_MONTHS and not (day or year_name or found["in"]):
        return None
    return _month_or_day(int(year_name or 0), MONTHS[month_name], int(day or 0))


def _month_or_day(year: int, month: int, day: int) -> DateRange | None:
    """A day, or a month if `day` is 0; of every year if `year` is."""
    if not 1 <= month <= 12:  # noqa: PLR2004
        return None
    try:
        first, last = month_days(year or 2_000, month)  # a leap year, so that 29 February is one
        if day:
            first = last = first.replace(day=day)
    except ValueError:
        return None
    return DateRange(first, last, yearly=not year)


def _search_interval(
    dates: tuple[DateRange, ...], now: datetime | None
) -> tuple[datetime, datetime] | None:
    """The interval of entries about the first of the dates; whole years are ignored."""
    precise = [days for days in dates if days.weight > _YEAR_WEIGHT]
    if not precise:
        return None
    days = precise[0]
    if days.yearly:
        if now is None:
            return None
        days = newest_range(days, now.date())
    before, after = _SLACK
    first, last = (datetime.combine(day, time(), UTC) for day in (days.first, days.last))
    try:
        return first - before, last + after
    except OverflowError:  # an end of the calendar
        return None


def newest_range(days: DateRange, today: date) -> DateRange:
    """The newest such days that have begun by `today`."""
    here = in_year(days, today.year)
    return here if here.first <= today else in_year(days, max(today.year - 1, 1))


def in_year(days: DateRange, year: int) -> DateRange:
    """The same days in another year; 29 February is the 28th where there is none."""
    moved = []
    for day in (days.first, days.last):
        try:
            moved.append(day.replace(year=year))
        except ValueError:
            moved.append(day.replace(year=year, day=28))
    return DateRange(moved[0], moved[1], yearly=False, weight=days.weight)
