"""How people state what they are and have, by language and slot: the data of `digest.slots`.

A rule is a pattern with named groups: `value`, `old` (what it replaces), `gone` (what ends), `thing`
(what it is about), `whose` ("my sister's"). In English most patterns start at the verb, and what
stands before it tells who is meant; in other languages the verb's form does.
"""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

from firnline.language.lexicon import MONTHS, WEEKDAYS
from firnline.language.prose import CJK
from firnline.log.regex import regex

Kind: TypeAlias = Literal["name", "text", "date", "word", "any"]
"""What a value is: a name, text up to the end, a date, one of the pattern's own words."""
About: TypeAlias = Literal["before", "speaker", "thing"]
"""Who is meant: who stands before the match, the speaker, or the pattern's `thing`."""


class Statement(NamedTuple):
    """What a sentence states: of whom (empty: the speaker), which slot, and the value.

    Without a value it ends `old`, or whatever holds. With both, the value replaces `old`, in any
    slot. `start` and `end` are the words in the text. `thing`: the subject is a thing, not a person.
    """

    subject: str
    slot: str
    value: str
    old: str
    start: int
    end: int
    thing: bool = False


class SlotRule(NamedTuple):
    """A pattern of one slot; `cues` are words of which a sentence needs one to match it."""

    slot: str
    kind: Kind
    about: About
    cues: frozenset[str]
    pattern: re.Pattern[str]
    value: str = ""
    """The value if the pattern has none."""


HOME: Final = "home city"
EMPLOYER: Final = "employer"
JOB: Final = "job"
BIRTHDAY: Final = "birthday"
DIET: Final = "diet"
RELATIONSHIP: Final = "relationship"
PET: Final = "pet"
NAME: Final = "name"
TOOL: Final = "tool"
STATUS: Final = "status"
DATE: Final = "date"
AMOUNT: Final = "amount"
TITLE: Final = "title"
CHANGE: Final = "change"
"""A value that replaces another, whatever slot that is in."""
MANY: Final = frozenset({PET, TOOL, CHANGE})
"""Slots that hold many values: a newer one adds, and only an ending removes."""

_PREFERENCES: Final = ("favorite", "favourite", "diet", "likes", "dislikes", "prefers", "wishes")
_DECISIONS: Final = ("tool", "decision")


def kind_of(attribute: str) -> str:
    """``preference``, ``decision`` or ``fact``."""
    if attribute.startswith(_PREFERENCES):
        return "preference"
    return "decision" if attribute.startswith(_DECISIONS) else "fact"


_RANKS: Final = (
    (NAME,),
    (HOME, EMPLOYER, JOB, BIRTHDAY, RELATIONSHIP, DIET),
    (),  # what is not listed
    (PET, TITLE),
    (TOOL,),
    (STATUS, DATE, AMOUNT, CHANGE),
)
"""Slots by importance."""
_OTHER: Final = 2


def rank(slot: str, *, own: bool) -> int:
    """How important a slot is for knowing a person: less for a larger number."""
    first = slot.partition(" for ")[0]
    found = next((at for at, slots in enumerate(_RANKS) if slot in slots or first in slots), _OTHER)
    return found if own else found + len(_RANKS) * (found < len(_RANKS) - 1)


_ALL_MONTHS: Final = "|".join(sorted(MONTHS, key=len, reverse=True))
_ALL_DAYS: Final = "|".join(sorted(WEEKDAYS, key=len, reverse=True))
PIECE: Final = r"[^\W_][\w'’&+#.-]{0,30}"
WORDS: Final = rf"{PIECE}(?:,? {PIECE}){{0,3}}"
SHORT: Final = rf"{PIECE}(?: {PIECE}){{0,2}}?"
DAY: Final = (
    rf"(?:the |le |el |am |den )?\d{{1,2}}(?:st|nd|rd|th|er|\.|º)?(?: (?:of|de))? (?:{_ALL_MONTHS})\b"
    r"(?:,? (?:de )?\d{4})?"
    rf"|(?:{_ALL_MONTHS}) (?:the )?\d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?"
    r"|\d{1,4}[-/.]\d{1,2}(?:[-/.]\d{1,4})?|(?:the )?\d{1,2}(?:st|nd|rd|th)\b"
    r"|(?:\d{4}年)?\d{1,2}月\d{1,2}[日号]"
)
_TIME: Final = r"\d{1,2}(?:[:.]\d{2})? ?(?:am|pm|a\.m\.|p\.m\.|o['’]clock|uhr)|\d{1,2}:\d{2}|noon"
_WHEN: Final = (
    rf"(?:{DAY}|(?:next |this |the following )?(?:{_ALL_DAYS})|tomorrow|today|next (?:week|month|year)"
    rf"|(?:next |early |late |mid[- ])?(?:{_ALL_MONTHS})\b|{_TIME})(?:,? (?:at |on )?(?:{_TIME}))?"
)
_COST: Final = r"(?:[$€£¥]\s?)?\d[\d.,]{0,12}(?:\s?(?:k\b|thousand|million|euros?|dollars?|pounds|eur|usd|gbp|[€$£%]))?"
PARTS: Final = {
    "DAY": DAY,
    "SHORT": SHORT,
    "PIECE": PIECE,
    "WORDS": WORDS,
    "V": rf"(?P<value>{WORDS})",
    "S": rf"(?P<value>{SHORT})",
    "OLD": rf"(?P<old>{SHORT})",
    "GONE": rf"(?P<gone>{WORDS})",
    "T": r"(?P<value>[^.,;:!?()\n]{1,60})",
    "D": rf"(?P<value>{DAY})",
    "W": rf"(?P<value>{_WHEN})",
    "WOLD": rf"(?P<old>{_WHEN})",
    "A": rf"(?P<value>{_COST})",
    "AOLD": rf"(?P<old>{_COST})",
    "C": rf"(?P<value>[{CJK}A-Za-z0-9·-]{{1,12}}?)(?=了|工作|上班|[，。！？,.!\s]|\Z)",
    "NOW": (
        r"(?:\s(?:now|currently|actually|really|officially|again|already|finally|jetzt|nun|derzeit"
        r"|inzwischen|mittlerweile|eigentlich|wieder|ahora|actualmente|ya|maintenant|désormais"
        r"|actuellement|en fait|en réalité|теперь|сейчас|уже)){0,3}"
    ),
    "MY": r"\b(?:my|our)(?: (?P<whose>[^\W\d_]{2,20})['’]s)?",
}


def slot_rules(
    slot: str, kind: Kind, about: About, cues: str, *patterns: str, value: str = ""
) -> tuple[SlotRule, ...]:
    """A rule for each pattern, in which {NAMES} are replaced by the parts above."""
    words = frozenset(cues.casefold().split())
    written = (re.sub(r"\{([A-Z]+)\}", lambda part: PARTS[part[1]], text) for text in patterns)
    return tuple(
        SlotRule(slot, kind, about, words, regex(text, re.IGNORECASE), value) for text in written
    )


VOCABULARY: Final = {
    HOME: "live lives living home city town moved move moving relocated based reside residence address"
    " wohne wohnen lebe umgezogen gezogen vivo vivir mudé habite habiter déménagé живу жить переехал"
    " переехала 住 搬",
    EMPLOYER: "work works working employed employer job employer company joined started position career"
    " arbeite arbeiten firma trabajo trabajar empresa travaille travailler entreprise работаю работать"
    " компания 工作 上班 公司",
    JOB: "work working engineer teacher developer manager designer nurse job profession occupation role title became promoted position beruf",
    BIRTHDAY: "birthday born birth bday geburtstag geboren cumpleaños nací anniversaire née рождения"
    " родился 生日",
    DIET: "eat eats eating diet vegetarian vegan pescatarian meat fish food meal dinner restaurant"
    " cook recipe esse essen fleisch vegetarisch comer carne vegetariano mange manger viande"
    " végétarien мясо ем вегетарианец 吃 素 肉",
    RELATIONSHIP: "single married engaged divorced relationship partner wife husband girlfriend boyfriend",
    NAME: "name called call heiße llamo appelle зовут 叫",
    TITLE: "called named name renamed rename project heißt umbenannt llama appelle называется 项目",
    STATUS: "status order ticket shipped delivered cancelled pending sent arrived refunded resolved closed",
    DATE: "when date day time moved rescheduled postponed meeting deadline appointment",
    AMOUNT: "budget price cost rent fee much raised",
    CHANGE: "switched instead replaced migrated use renamed left moved",
    TOOL: "use using switched migrated instead tool replaced",
}
"""Words with which people ask for a slot and state it."""

ASKED: Final = {
    HOME: "live living lives city hometown reside wohne lebe vivo habite живу 住",
    EMPLOYER: "employer employed work company arbeite trabajo travaille работаю 工作",
    JOB: "job profession occupation beruf",
    BIRTHDAY: "birthday born geburtstag cumpleaños anniversaire рождения 生日",
    DIET: "diet eat vegetarian vegan meat esse comer como mange ем 吃",
    RELATIONSHIP: "married single relationship",
}
"""Words of which a question in the first person has one if it asks for the slot."""
OWN_WORDS: Final = frozenset(
    ("i", "my", "we", "our", "ich", "mein", "meine", "yo", "mi", "soy", "vivo", "trabajo", "como")
) | frozenset(("je", "mon", "ma", "я", "мой", "мое", "меня", "у", "我"))
"""Words of which a question in the first person has one."""
