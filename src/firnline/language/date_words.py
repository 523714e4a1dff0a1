"""The words of dates, and their translation into plain English.

Folding removes differences of spelling: case, accents, kinds of dashes and spaces. Other languages
are then translated word by word, so that `dates` has one grammar.
"""

# ruff: noqa: RUF001 - other scripts are meant

from __future__ import annotations

import re
import unicodedata
from typing import Final

from firnline.language import lexicon
from firnline.log.regex import regex
from firnline.log.text import normalize

_SIGNS: Final = str.maketrans(
    {**dict.fromkeys("‐‒−", "-"), **dict.fromkeys("–—〜", " - "), "’": "'", "、": ",", "。": "."}
)
_EDGES: Final = " \t\r\n.,;:!?\"'`()[]«»„“”。？！"


def fold(text: str) -> str:
    """`text` in lower case, without accents, with plain dashes, single spaces and clean ends."""
    plain = normalize("NFKD", text.translate(_SIGNS).casefold()).translate(_SIGNS)
    bare = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(bare.split()).strip(_EDGES)


def _numbered(lines: str) -> dict[str, int]:
    """Each line's words stand for the line's number, counted from 1."""
    pairs = enumerate(lines.strip().splitlines(), 1)
    return {fold(word): number for number, line in pairs for word in line.split()}


MONTHS: Final = (
    {fold(word): number for word, number in lexicon.MONTHS.items()}
    | {f"month{number}": number for number in range(1, 13)}  # from 3月
    | _numbered("""
январе janv ene
феврале fevr febr
марте
апреле avr abr
мае
июне
июле juil
августе
сентябре
октябре
ноябре
декабре dic
""")
)
"""Names of months, folded: 1 is January."""

WEEKDAY_NAMES: Final = {
    fold(word): number - 1
    for word, number in lexicon.WEEKDAYS.items()
    if word.removesuffix("s") == word or word.removesuffix("s") not in lexicon.WEEKDAYS
}
"""Full names of weekdays, folded: 0 is Monday. No plurals: "mondays" is not a date."""
WEEKDAYS: Final = WEEKDAY_NAMES | {
    word: number - 1
    for word, number in _numbered("""
mon
tue tues
wed weds
thu thur thurs
fri
sat sonnabend
sun
""").items()
}
"""The same with short names, which can also be other words."""

FOREIGN_NUMBERS: Final = _numbered("""
ein eine einem einer einen un une una один одну 一
zwei deux dos два две 二 两 兩
drei trois tres три 三
vier quatre cuatro четыре 四
fünf cinq cinco пять 五
sechs seis шесть 六
sieben siete семь 七
acht huit ocho восемь 八
neun neuf nueve девять 九
zehn dix diez десять 十
""")
"""Number words of other languages, folded."""
NUMBERS: Final = {"a": 1, "an": 1} | lexicon.SMALL_NUMBERS | lexicon.TENS | FOREIGN_NUMBERS
"""Number words, folded."""
UNITS: Final = "minute|hour|day|week|month|quarter|year"
"""Units of time, for a regular expression."""

_ENGLISH: Final = {  # English: the same in other languages, phrases between bars
    "today": "heute | aujourd'hui | hoy | сегодня | 今天 | 今日 | きょう",
    "yesterday": "gestern | hier | ayer | вчера | 昨天 | 昨日 | きのう",
    "tomorrow": "morgen | demain | mañana | завтра | 明天 | 明日 | あした",
    "day before yesterday": "vorgestern | avant-hier | anteayer | позавчера | 前天 | 一昨日",
    "now": "jetzt | maintenant | ahora | сейчас | 现在 | 現在",
    "last": "letzte | letzten | letzter | letztes | letztem | vorige | vorigen | voriges "
    "| прошлый | прошлую | прошлой | прошлом",
    "this": "diese | diesen | dieser | dieses | cette | esta | este | эту | этой | этом",
    "day": "tag | tage | tagen | jour | jours | día | días | день | дня | дней",
    "week": "woche | wochen | semaine | semaines | semana | semanas | неделю | недели | неделе "
    "| недель",
    "weekend": "wochenende",
    "hour": "stunde | stunden",
    "morning": "vormittag | früh | 早上 | 早晨 | 上午 | 凌晨",
    "afternoon": "nachmittag | 下午",
    "evening": "abend | 傍晚",
    "night": "nacht | 晚上 | 夜里 | 夜裡",
    "last night": "昨晚 | 昨夜 | 昨晩",
    "tonight": "今晚 | 今夜 | 今晩",
    "this morning": "今早 | 今朝",
    "month": "monat | monate | monaten | mois | mes | meses | месяц | месяца | месяце | месяцев",
    "year": "jahr | jahre | jahren | année | ans | año | años | год | года | году | лет",
    "ago": "vor | il y a | hace | назад",
    "day ago": "天前 | 日前",
    "hour ago": "小时前 | 小時前 | 个小时前 | 個小時前 | 時間前",
    "week ago": "周前 | 週前 | 週間前 | 个星期前 | 個星期前 | 星期前",
    "month ago": "个月前 | 個月前 | ヶ月前 | か月前 | カ月前",
    "year ago": "年前",
    "last week": "上周 | 上週 | 上星期 | 上个星期 | 先週",
    "this week": "这周 | 這週 | 本周 | 今週 | 这个星期",
    "last weekend": "上周末 | 上週末 | 上个周末 | 上個週末 | 先週末",
    "this weekend": "这周末 | 這週末 | 本周末 | 这个周末 | 這個週末 | 今週末",
    "last month": "上个月 | 上個月 | 先月",
    "this month": "这个月 | 這個月 | 本月 | 今月",
    "last year": "去年 | 昨年",
    "this year": "今年",
    "since": "seit | depuis | desde | с",
    "until": "bis | hasta | до",
    "between": "zwischen | entre | между",
    "from": "von",
    "and": "und | et | y | и",
    "of": "de | del",
    **{
        f"on {day}": f"星期{cn} | 周{cn} | 週{cn} | 礼拜{cn} | {jp}曜日 | {jp}曜"
        for day, cn, jp in zip(
            ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
            "一二三四五六日",
            "月火水木金土日",
            strict=True,
        )
    },
}
_WORDS: Final = {
    fold(word): english for english, line in _ENGLISH.items() for word in line.split("|")
}
_GERMAN: Final = lexicon.GERMAN_MARKERS - {"des"} | {"war", "was", "wie", "wo"}
"""Words that show that "hier" is not the French yesterday; "des" is also French."""


def _is_cjk(word: str) -> bool:
    return any("\u3040" <= c <= "\u30ff" or "\u4e00" <= c <= "\u9fff" for c in word)


def _pattern(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_FOREIGN: Final = regex(
    rf"(?P<word>(?<![^\W_])(?:{_pattern([w for w in _WORDS if not _is_cjk(w)])})(?![^\W_])"
    rf"|(?:{_pattern([w for w in _WORDS if _is_cjk(w)])}))"
)
_DIGIT: Final = "[一二两兩三四五六七八九]"
_COUNT: Final = f"(?:{_DIGIT}?十{_DIGIT}?|{_DIGIT})"
_FIGURE: Final = regex(
    rf"(?<![一二两兩三四五六七八九十百千周週期拜]){_COUNT}"
    r"(?=月(?!曜)|(?:天|日|周|週間?|[个個]?星期|[个個ヶかカ]月|年|[个個]?小[时時]|時間)前)"
    rf"|(?<=月){_COUNT}(?=[日号號])"
)
"""A Chinese number in a date; 三 alone can be anything."""
_WEEK: Final = "星期|周|週|礼拜"
_OF_WEEK: Final = "[一二三四五六日]"
_DAY_DE: Final = "(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend"
_PART_DE: Final = "morgen|vormittag|nachmittag|abend|nacht"
_SHAPES: Final = tuple(  # expressions with another word order or other signs
    (regex(pattern), to)
    for pattern, to in (
        (rf"\b({_DAY_DE})({_PART_DE})\b", r"\1 \2"),
        (rf"\b({_DAY_DE}|(?:vor)?gestern|heute) (?:am|in der) (?={_PART_DE})", r"\1 "),
        (rf"\b({_DAY_DE}|(?:vor)?gestern|heute|am) morgen\b", r"\1 fruh"),
        (r"\b([0-9]{1,2}) ?uhr ([0-9]{2})\b", r"\1:\2"),
        (r"\b([0-9]{1,2})[.:]([0-9]{2}) ?uhr\b", r"\1:\2"),
        (r"\bum (?=[0-9]{1,2}(?::[0-9]| ?uhr\b))", "at "),
        (rf"({_WEEK})天", r"\1日"),
        (rf"({_WEEK})(?=一[直些共样樣起个個次]|日[程期常子])", r"\1 "),  # another word begins
        (rf"每[个個]?(?=(?:{_WEEK}){_OF_WEEK})", " every "),
        (rf"上[个個]?({_WEEK})({_OF_WEEK})", r" \1\2 last week "),
        (rf"[这這本][个個]?({_WEEK})({_OF_WEEK})", r" \1\2 this week "),
        (r"([先今]週)の?([月火水木金土日]曜日?)", r" \2 \1 "),
        (r"([0-9]{4}) ?年 ?([0-9]{1,2}) ?月 ?([0-9]{1,2}) ?[日号號]", r" \1-\2-\3 "),
        (r"([0-9]{4}) ?年 ?([0-9]{1,2}) ?月(?!曜)", r" \1-\2 "),
        (r"(?<![0-9])([0-9]{4}) ?年(?!前)", r" \1 "),
        (r"(?<![0-9])([0-9]{1,2}) ?月 ?([0-9]{1,2}) ?[日号號](?!前)", r" month\1 \2 "),
        (r"(?<![0-9])([0-9]{1,2}) ?月(?!曜)", r" month\1 "),
    )
)
_LATER: Final = tuple(
    (regex(pattern), to)
    for pattern, to in (
        (r"\b(?:(?:le|la|el) )?(\w+) (?:dernier|derniere|pasado|pasada)\b", r"last \1"),
        (r"\b([0-9]{4}) year\b", r"\1"),  # "2025 года"
        (r"\b([0-9]{1,2})er\b", r"\1"),  # "1er mars"
        (r"\bevery on\b", "every"),
        (rf"\bago ([0-9]{{1,6}}|{_pattern([*NUMBERS])}) ({UNITS})(s?)\b", r"\1 \2\3 ago"),
    )
)


def _to_digits(number: str) -> str:
    """三 as 3, 十二 as 12, 二十 as 20."""
    tens, ten, ones = number.rpartition("十")
    count = 10 * FOREIGN_NUMBERS.get(tens, 1) if ten else 0
    return str(count + FOREIGN_NUMBERS.get(ones, 0))


def to_english(text: str) -> str:
    """Folded `text` with date words of other languages in English; the rest is unchanged."""
    text = _FIGURE.sub(lambda found: _to_digits(found[0]), text)
    for pattern, to in _SHAPES:
        text = pattern.sub(to, text)
    words = _WORDS if _GERMAN.isdisjoint(text.split()) else _WORDS | {"hier": "hier"}
    text = _FOREIGN.sub(lambda found: f" {words[found['word']]} ", text)
    text = " ".join(text.split())
    for pattern, to in _LATER:
        text = pattern.sub(to, text)
    return text
