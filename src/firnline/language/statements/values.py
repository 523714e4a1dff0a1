"""The values of statements: cut to what is meant, and whether they can be one of their slot. Pure."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from typing import Final

from firnline.language.lexicon import (
    COMMON,
    CONNECTING,
    MONTHS,
    NOT_A_PLACE,
    TIME_AND_DEGREE,
    TOOLS,
    WEEKDAYS,
)
from firnline.language.names import fold_name
from firnline.language.statements import patterns as slots
from firnline.language.statements.patterns import SlotRule
from firnline.log.regex import regex

ALL_TOOLS: Final = frozenset[str]().union(*TOOLS.values())
DERIVED: Final = frozenset(("eats meat", "no meat", "eats fish", "single", "retired"))
"""Values that a rule puts for the words of the sentence."""
_ARTICLES: Final = regex(
    r"\A(?:the|an?|our|my|your|some|any|el|la|los|las|le|les|un|une|una|uno|des|du|der|die|das|den|dem|ein|eine|einen|einem|einer"
    r"|meine?[nmr]?|unsere?[nmr]?|project|projekt|mi|mis|mon|ma|mes|nuestr[oa]s?|notre|nos|мо[йяёи]|наш[аеи]?)\s+"
    r"|\A(?:l|d)['’]",
    re.IGNORECASE,
)
_NAME_ARTICLES: Final = regex(
    r"\A(?:[Tt]he|[Aa]n?|our|my|your|el|la|los|las|le|les|une?|der|die|das|den|dem|eine?[nmr]?|project|projekt|proyecto|projet)\s+|\Al['’]"
)
_TITLES: Final = regex(r"(?:Mrs?|Ms|Dr|Prof|St|Hr|Fr|Sra?|Mme|M)\.")
_TEXT_END: Final = regex(
    r",?\s(?:and (?:I|we|my|it)|but|because|so|since|instead|not|now|as of|from now|please|lol|haha)\b.*|\.\s.*|,\s(?!\d).*|,\Z"
    r"|\s[-–—]\s.*",
    re.IGNORECASE | re.DOTALL,
)
_EDGES: Final = " \"'“”„«».,;:!?’-–—…"
_LIST: Final = regex(
    r"\s{0,4}(?:,\s*(?:and|or|und|oder|y|o|e|et|ou|и|или)\s+|[,;、]|\s(?:and|or|und|oder|y|e|et|ou|и|или|as well as|sowie)\s|和|跟|以及)\s*"
)
_CLAUSE: Final = regex(
    r"\b(?:I|I['’]m|I['’]ve|my|we|our|you|your|he|she|it|they|his|her|their|is|are|was|were|am|have|has|had|do|does|don['’]t|can|can['’]t"
    r"|will|would|hate|hates|love|loves|like|enjoy|prefer|nothing|anything|none|then|sadly|luckily|too|only|just|nur|sondern|solo|sólo|sino|seulement|mais|только|ich|wir|mein\w*|bin|habe|yo|mi|es|tengo|je|j['’]\w+|mon|ma|suis|я|мне|мой)\b"
    r"|[我他她]",
    re.IGNORECASE,
)
_ALSO: Final = regex(
    r"\A\s*(?:also|both|either|even|all kinds of|all sorts of|an? (?:little|tiny|wee) (?:bit of )?|a bit of|bit of|some|auch|sowohl|ein bisschen|ein wenig|etwas|también|un poco de|algo de"
    r"|aussi|ainsi que|un peu d(?:e\s|['’])|также|немного|чуть-чуть|и)\s*(?<=[\s'’])|\A一点儿?",
    re.IGNORECASE,
)
_POINTS: Final = regex(
    r"\b(?:it|this|that|these|those|them|him|her|us|me|here|there|myself|yourself|itself|themselves|one|ones|such|which|who|especially|particularly|honest|diese\w*|das|ihn|ihm|sie|eso|esto|esta|ese|aquí|allí"
    r"|cela|ceci|ça|lui|elle|это|этот|эту|его|её|их|там|тут)\b|[这那它他她]",
    re.IGNORECASE,
)
_NO_THINGS: Final = frozenset(
    [
        "to",
        "every",
        "day",
        "stuff",
        "things",
        "something",
        "anything",
        "everything",
        "everyone",
        "people",
        "someone",
        "nothing",
        "theme",
        "part",
        "way",
        "time",
        "times",
        "day",
        "days",
        "while",
        "lot",
        "lots",
        "bit",
        "more",
        "most",
        "best",
        "too",
        "so",
        "well",
        "really",
    ]
) | {"every day", "a lot", "the idea", "the fact"}
_PLACE_AFTER: Final = regex(
    r"\b(?:database|backend|frontend|stack|api|cluster|server|framework|cloud|tickets?|channel|branch|folder|version|meetings?)\b",
    re.IGNORECASE,
)
_EXCEPTIONS: Final = frozenset(
    [
        "nice",
        "reading",
        "bath",
        "cork",
        "split",
        "mobile",
        "orange",
        "sandwich",
        "hull",
        "deal",
        "ford",
        "apple",
        "target",
        "shell",
        "gap",
        "meta",
        "linear",
        "stripe",
        "slack",
        "oracle",
        "amazon",
        "square",
        "block",
        "uber",
        "box",
        "visa",
        "intel",
        "sap",
        "bosch",
        "delta",
        "united",
        "southwest",
        "chase",
        "fargo",
        "best",
        "buy",
        "boeing",
        "virgin",
        "sky",
        "orange",
        "three",
        "bolt",
        "discord",
        "notion",
        "figma",
        "indeed",
        "zoom",
        "monday",
        "wise",
        "revolut",
        "monzo",
        "lush",
        "next",
        "argos",
        "boots",
        "game",
        "dell",
        "canon",
        "go",
        "rust",
        "swift",
        "dart",
        "flask",
        "spring",
        "express",
        "node",
        "spark",
        "kafka",
        "redis",
    ]
)
"""Names of places and companies that are also everyday words."""
_UNREAL: Final = frozenset(
    [
        "reality",
        "pain",
        "fear",
        "jira",
        "hope",
        "vain",
        "peace",
        "night",
        "home",
        "heaven",
        "hell",
        "paradise",
        "trouble",
        "constant",
        "denial",
        "limbo",
        "satan",
        "god",
        "peanuts",
        "free",
        "nothing",
        "everyone",
        "myself",
        "lunch",
        "noon",
        "once",
        "least",
        "first",
        "last",
        "work",
        "school",
        "university",
        "college",
        "violence",
        "chaos",
        "style",
        "sin",
        "harmony",
        "poverty",
        "luxury",
        "exile",
        "shame",
        "silence",
        "darkness",
        "misery",
        "bliss",
        "pyjamas",
        "pajamas",
        "sweatpants",
        "circles",
        "denial",
        "general",
        "detail",
        "mind",
        "good",
        "bad",
        "person",
        "english",
        "french",
        "german",
        "spanish",
        "italian",
        "the",
        "this",
        "that",
        "these",
        "those",
        "it",
        "and",
        "or",
        "google",
        "api",
        "spaces",
        "tabs",
    ]
)


def cut(rule: SlotRule, given: str, sentence: str) -> list[str]:
    """The values that are meant, in the words of the sentence; none if that is not clear."""
    match rule.kind:
        case "name":
            found = [_name(given, sentence)]
        case "word":
            found = [" ".join(given.casefold().split())]
        case "date":
            found = [given.strip()]
        case "any":
            found = [_any(given)]
        case "list":
            found = listed(given)
        case _:
            found = [_text(given)]
    return [value for value in found if value]


def listed(given: str) -> list[str]:
    """The things of a list, up to what is another clause or points at something."""
    found: list[str] = []
    for part in _LIST.split(given.strip(_EDGES)):
        value = without_article(_trimmed(_ALSO.sub("", part)))
        if _POINTS.search(value) or value.casefold() in _NO_THINGS:
            break
        if not value or _CLAUSE.search(part) or len(value.split()) > 5:  # noqa: PLR2004
            break
        found.append(value)
    return found


def without_article(words: str) -> str:
    """The words without articles at their start."""
    before = ""
    while words != before:
        before, words = words, _ARTICLES.sub("", words, count=1)
    return words


def _name(given: str, sentence: str) -> str:
    """The capitalized words; in a text without capitals, the words before the next small word."""
    bare = _NAME_ARTICLES.sub("", given.strip(_EDGES), count=1)
    lower = not any(
        map(str.isupper, sentence.removeprefix("I").replace(" I ", " ").replace(" I'", " "))
    )
    kept: list[str] = []
    for word in bare.split():
        plain = word.strip(",.;:!?")
        named = any(map(str.isupper, plain)) or any(map(str.isdigit, plain))
        if lower and plain.casefold() not in _STOPS and len(kept) < 2:  # noqa: PLR2004
            named = True
        if not named and not (kept and plain in CONNECTING):
            break
        kept.append(word)
        if word.endswith((",", ".", ";", ":", "!", "?")) and not _TITLES.fullmatch(word):
            break
    while kept and kept[-1].casefold().strip(",.") in CONNECTING | TIME_AND_DEGREE:
        kept.pop()
    return " ".join(kept).strip(_EDGES)


_STOPS: Final = (
    NOT_A_PLACE
    | TIME_AND_DEGREE
    | frozenset(
        [
            "but",
            "because",
            "since",
            "so",
            "if",
            "when",
            "which",
            "who",
            "that",
            "where",
            "near",
            "right",
            "around",
            "with",
            "without",
            "has",
            "have",
            "is",
            "was",
            "right",
            "what",
            "how",
            "just",
            "btw",
            "lol",
            "though",
            "please",
            "thanks",
            "currently",
            "rn",
            "atm",
            "and",
        ]
    )
)


def _text(given: str) -> str:
    return _trimmed(_TEXT_END.sub("", given, count=1))


def _any(given: str) -> str:
    return _trimmed(without_article(given.strip(_EDGES)))


def _trimmed(given: str) -> str:
    words = given.strip(_EDGES).split()
    while words and words[-1].casefold().strip(".,") in TIME_AND_DEGREE:
        words.pop()
    return " ".join(words).strip(_EDGES)


# -- whether it can be one --------------------------------------------------------------------


def is_in(value: str, quote: str) -> bool:
    """Whether all words of a value are in a quote; of scripts without spaces, the whole."""
    if value.casefold() in DERIVED:
        return True
    folded = fold_name(quote)
    words = {*folded.split(), *_LATIN.findall(folded)}
    bare = value.removeprefix("not ")
    return fold_name(bare) in folded and all(word in words for word in _latin(bare))


_LATIN: Final = regex(r"[a-z0-9]+")
"""Words next to which there may be characters of a script without spaces."""


def _latin(value: str) -> list[str]:
    return [word for word in fold_name(value).split() if word.isascii()]


def is_plausible(slot: str, value: str, sentence: str, *, moved: bool = False) -> bool:
    """Whether the value can be one of the slot: a city is not called Thursday or Postgres."""
    if slot == slots.JOB and _CLAUSE.search(value):
        return False
    if slot in (slots.HOME, slots.EMPLOYER, slots.FROM, slots.GREW_UP):
        if not _is_place(value):
            return False
        return not (moved and _PLACE_AFTER.search(sentence))
    if slot.partition(" for ")[0] == slots.TOOL:
        return _is_tool(value)
    return slot not in _TASTES or not _READERS.match(value)


_TASTES: Final = frozenset((slots.LIKES, slots.DISLIKES, slots.PREFERS, slots.WISHES))
_READERS: Final = regex(
    r"(?:your|thy|deine?[mnrs]?|eure?[mnrs]?|tus?|vuestr[oa]s?|ta|ton|tes|votre|vos|тво\w{1,3}|ваш\w{0,3})\s|[你您]",
    re.IGNORECASE,
)
"""What is the reader's, "your answer": that is liked now, and is no taste."""


def _is_place(value: str) -> bool:
    words = value.split()
    first = words[0].casefold().strip(",.") if words else ""
    tool = first in ALL_TOOLS and first not in _EXCEPTIONS
    if first in WEEKDAYS or first in MONTHS or tool or first in _UNREAL:
        return False
    if not first or len(words) > 1 or first in _EXCEPTIONS or not first.isascii():
        return bool(first)
    return first not in COMMON


def _is_tool(value: str) -> bool:
    words = value.split()
    first = words[0].casefold().strip(",.") if words else ""
    if first in ALL_TOOLS or fold_name(value).split(" ", 1)[0] in ALL_TOOLS:
        return True
    acronym = value.isupper() and len(value) <= 3  # noqa: PLR2004
    odd = any(sign in value for sign in "+/\\=<>") and not any(map(str.isalpha, value[-1:]))
    every = first in _UNREAL or (first in COMMON and first not in _EXCEPTIONS)
    return any(map(str.isupper, value)) and not (acronym or odd or every)
