"""The slots of statements, and the pieces that the patterns of all languages are made of.

A rule is a pattern with named groups: `value`, `old` (what it replaces), `gone` (what ends), `thing`
(what it is about), `whose` and `called` (a relative, and their name). In English most patterns start
at the verb or the predicate, and what stands before it tells who is meant; in other languages the
verb's form does.
"""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

from firnline.language.lexicon import MONTHS, WEEKDAYS
from firnline.language.prose import CJK
from firnline.log.regex import regex

Kind: TypeAlias = Literal["name", "text", "list", "date", "word", "any"]
"""What a value is: a name, a phrase, several phrases, a date, one of the pattern's own words."""
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


# -- slots ------------------------------------------------------------------------------------

NAME: Final = "name"
HOME: Final = "home city"
FROM: Final = "from"
GREW_UP: Final = "grew up in"
AGE: Final = "age"
BIRTHDAY: Final = "birthday"
RELATIONSHIP: Final = "relationship"
CHILDREN: Final = "children"
SIBLINGS: Final = "siblings"
JOB: Final = "job"
EMPLOYER: Final = "employer"
RUNS: Final = "runs"
STUDIES: Final = "studies"
DIET: Final = "diet"
AVOIDS: Final = "avoids"
ALLERGY: Final = "allergy"
HEALTH: Final = "health"
MEDICATION: Final = "medication"
AFRAID: Final = "afraid of"
SPEAKS: Final = "speaks"
LEARNS: Final = "learning"
LIKES: Final = "likes"
DISLIKES: Final = "dislikes"
PREFERS: Final = "prefers"
WISHES: Final = "wishes"
LANGUAGE: Final = "answer language"
PLAYS: Final = "plays"
HOBBY: Final = "hobby"
PET: Final = "pet"
OWNS: Final = "owns"
DRIVES: Final = "drives"
GOAL: Final = "goal"
PLAN: Final = "plan"
DECISION: Final = "decision"
TOOL: Final = "tool"
ORDERED: Final = "ordered"
INCOME: Final = "income"
TITLE: Final = "title"
STATUS: Final = "status"
DATE: Final = "date"
AMOUNT: Final = "amount"
CHANGE: Final = "change"
"""A value that replaces another, whatever slot that is in."""
ENDED: Final = "ended"
"""A value that ends, whatever slot that is in."""
OWN: Final = "own"
"""The pattern names the slot: "my shoe size is …"."""
MANY: Final = frozenset(
    (
        *(PET, TOOL, CHANGE, ENDED, AVOIDS, ALLERGY, HEALTH, MEDICATION, AFRAID, SPEAKS, LEARNS, LIKES, DISLIKES),
        *(PREFERS, WISHES, PLAYS, HOBBY, OWNS, DRIVES, GOAL, PLAN, DECISION, ORDERED, RUNS),
    )
)  # fmt: skip
"""Slots that hold many values: a newer one adds, and only an ending removes."""
OPPOSITES: Final = {
    LIKES: (DISLIKES, AVOIDS, AFRAID),
    DISLIKES: (LIKES,),
    AVOIDS: (LIKES,),
    SPEAKS: (LEARNS,),
    RELATIONSHIP: (),
}
"""What a value of a slot ends in others: who hates coffee no longer likes it."""

_PREFERENCES: Final = (
    "favorite",
    "favourite",
    DIET,
    LIKES,
    DISLIKES,
    PREFERS,
    WISHES,
    AVOIDS,
    LANGUAGE,
)
_DECISIONS: Final = (TOOL, DECISION)


def kind_of(attribute: str) -> str:
    """``preference``, ``decision`` or ``fact``."""
    if attribute.startswith(_PREFERENCES):
        return "preference"
    return "decision" if attribute.startswith(_DECISIONS) else "fact"


_ORDER: Final = (
    *(NAME, HOME, AGE, BIRTHDAY, JOB, EMPLOYER, RUNS, STUDIES, RELATIONSHIP, CHILDREN, DIET, ALLERGY, HEALTH),
    *(MEDICATION, AVOIDS, PET, FROM, SPEAKS, LANGUAGE, WISHES, PREFERS, LIKES, DISLIKES),
)  # fmt: skip
"""The slots of a person by importance; what is not listed comes after them."""
_THINGS: Final = {TITLE: 2, TOOL: 3, DATE: 4, AMOUNT: 4, STATUS: 5, ORDERED: 5, CHANGE: 6}
_OWN_RANKS: Final = len(_ORDER) + 1


def rank(slot: str, *, own: bool) -> int:
    """How important a slot is for knowing a person: less for a larger number."""
    first = slot.partition(" for ")[0]
    if own and first in _ORDER:
        return _ORDER.index(first)
    return _OWN_RANKS + (_THINGS.get(first, 0 if own else 1))


# -- pieces of patterns -----------------------------------------------------------------------

_ALL_MONTHS: Final = "|".join(sorted(MONTHS, key=len, reverse=True))
_ALL_DAYS: Final = "|".join(sorted(WEEKDAYS, key=len, reverse=True))
PIECE: Final = r"[^\W_][\w'’&+#.-]{0,30}"
WORDS: Final = rf"{PIECE}(?: {PIECE}|, (?-i:(?!I\b)[A-ZÀ-ÞА-ЯЁ]){PIECE}){{0,3}}"
SHORT: Final = rf"{PIECE}(?: {PIECE}){{0,2}}?"
DAY: Final = (
    rf"(?:the |le |el |am |den |der )?\d{{1,2}}(?:st|nd|rd|th|er|\.|º)?(?: (?:of|de))? (?:{_ALL_MONTHS})\b"
    r"(?:,? (?:de )?\d{4})?"
    rf"|(?:{_ALL_MONTHS}) (?:the )?\d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?"
    r"|\d{1,4}[-/.]\d{1,2}(?:[-/.]\d{1,4})?|(?:the )?\d{1,2}(?:st|nd|rd|th)\b"
    r"|(?:\d{4}年)?\d{1,2}月\d{1,2}[日号]"
)
_TIME: Final = r"\d{1,2}(?:[:.]\d{2})? ?(?:am|pm|a\.m\.|p\.m\.|o['’]clock|uhr)|\d{1,2}:\d{2}|noon"
WHEN: Final = (
    rf"(?:{DAY}|(?:next |this |the following |nächsten |am |on )?(?:{_ALL_DAYS})\b|tomorrow|today|next (?:week|month|year)"
    rf"|(?:next |early |late |mid[- ])?(?:{_ALL_MONTHS})\b|{_TIME})(?:,? (?:at |on |um )?(?:{_TIME}))?"
)
_COST: Final = (
    r"(?:[$€£¥]\s?)?\d[\d.,   ]{0,12}(?:\s?(?:k\b|thousand|million|euros?|dollars?|pounds|bucks|eur|usd|gbp|chf"
    r"|рубл\w+|тыс\w*(?: рублей)?|миллион\w*|[€$£%₽]|元|万元?))?"
)
_CLOSES: Final = (
    r"and|but|so|because|since|cause|though|although|while|who|which|that|as|when|if|now|too|anymore|please|btw|lol|then"
    r"|instead|these days|at the moment|right now|however|either|by the way|last|this|next|after|before|until|again|already"
)
END: Final = rf"(?=[.,;:!?()\n—–…]|\s[-–—]\s|\s*\Z|\s(?:{_CLOSES})\b)"
"""Where an English phrase ends."""
END_FAR: Final = (
    r"(?=[.,;:!?()\n—–…]|\s[-–—]\s|\s*\Z|\s(?:und|aber|weil|denn|also|seit|wo|die|der|das|wenn|obwohl|y|e|pero|porque|desde|que"
    r"|cuando|aunque|si|et|mais|car|parce|depuis|qui|que|où|donc|et|quand|и|а|но|потому|с|что|который\w*|когда|если|уже|то)\b)"
)
"""Where a phrase of another European language ends."""
PARTS: Final = {
    "DAY": DAY,
    "SHORT": SHORT,
    "PIECE": PIECE,
    "WORDS": WORDS,
    "END": END,
    "ENDF": END_FAR,
    "V": rf"(?P<value>{WORDS})",
    "S": rf"(?P<value>{SHORT})",
    "OLD": rf"(?P<old>{SHORT})",
    "GONE": rf"(?P<gone>{WORDS})",
    "T": r"(?P<value>[^.,;:!?()\n]{1,60})",
    "N": rf"(?P<value>(?:{PIECE} ){{0,4}}?{PIECE}){END}",
    "F": rf"(?P<value>(?:{PIECE} ){{0,4}}?{PIECE}){END_FAR}",
    "L": rf"(?P<value>{PIECE}(?:(?:,? (?:and |or )?){PIECE}){{0,9}}?)(?=[.;:!?()\n—–…]|\s[-–—]\s|,? (?:but|so|because|since|though|when|if|please|btw|while|as)\b|\s*\Z)",
    "G": rf"(?P<gone>(?:{PIECE} ){{0,3}}?{PIECE}){END}",
    "GF": rf"(?P<gone>(?:{PIECE} ){{0,3}}?{PIECE}){END_FAR}",
    "D": rf"(?P<value>{DAY})",
    "W": rf"(?P<value>{WHEN})",
    "WHEN": WHEN,
    "WOLD": rf"(?P<old>{WHEN})",
    "A": rf"(?P<value>{_COST})",
    "AOLD": rf"(?P<old>{_COST})",
    "P": r"(?P<value>(?-i:[A-ZÀ-ÞА-ЯЁ])[\w'’.-]{1,20}(?: (?:(?-i:[A-ZÀ-ÞА-ЯЁ])[\w'’.-]{1,20}|(?-i:de|van|von|del|da|du|la|der|den)(?= ))){0,3})",
    "C": rf"(?P<value>[{CJK}A-Za-z0-9·-]{{1,12}}?)(?=了|工作|上班|，|。|！|？|,|\.|!|\s|\Z)",
    "NOW": (
        r"(?:\s(?:now|currently|actually|really|officially|again|already|finally|still|always|jetzt|nun|derzeit"
        r"|inzwischen|mittlerweile|eigentlich|wieder|noch|ahora|actualmente|ya|maintenant|désormais"
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
