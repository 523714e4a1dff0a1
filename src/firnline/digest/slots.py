"""Reads what people state about themselves and things: "I moved to Lisbon" is a home city.

A statement has a subject, a slot and a value. Of a slot with one value, a newer statement outdates
the older: `outdated`. Questions, suppositions, quotes and denials state nothing, and what is said of
another person is that person's. In doubt a sentence states nothing. Pure; `slot_patterns` has the
rules.
"""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from firnline.digest import slot_patterns as slots
from firnline.digest import speaker
from firnline.digest.slot_patterns import SlotRule, Statement
from firnline.digest.slots_abroad import ABROAD
from firnline.digest.slots_people import PEOPLE
from firnline.digest.slots_things import THINGS
from firnline.language import prose
from firnline.language.lexicon import (
    CONNECTING,
    MONTHS,
    NOT_A_PLACE,
    TIME_AND_DEGREE,
    TOOLS,
    WEEKDAYS,
)
from firnline.language.names import fold_name
from firnline.log.regex import regex

RULES: Final = 2
"""The version of the rules: what was read by others is read again."""
CHARS_MAX: Final = 50_000
"""Characters of a message that are read."""
_SENTENCE_MAX: Final = 400
_BEFORE: Final = 100
_QUESTION_ENDS: Final = ("?", "？", "؟")

_RULES: Final = (*PEOPLE, *THINGS, *ABROAD)
_PLACES: Final[dict[str, list[int]]] = {}
"""The places of the rules with this cue."""
for _place, _rule in enumerate(_RULES):
    for _cue in _rule.cues:
        _PLACES.setdefault(_cue, []).append(_place)
_WORD: Final = regex(r"[^\W_]+(?:['’-][^\W_]+)*")
_GLUE: Final = regex("['’-]")
_NAMED: Final = frozenset(("name", "call", "heisse", "llamo", "appelle", "зовут", "叫"))
_FAR: Final = regex(f"[{prose.CJK}]")
_ADVERBS: Final = (
    r"(?:(?:now|currently|recently|just|actually|still|finally|also|already|really|have|has|had|is|am|are|was"
    r"|been|officially|all|both|permanently|happily|then|since|got|we['’]ve|will now|do)\s+){0,4}"
)
_SUBJECT: Final = regex(
    r"(?:\A|[\s\"“(,;:])(?:(?P<own>I|we)(?:['’](?:m|ve|re|d))?"
    r"|(?:my|our)\s(?P<kin>(?:[^\W\d_]{2,20}\s){0,2}?[^\W\d_]{2,20}?)(?:['’]s)?"
    r"|(?P<other>s?he|they|you|it|who|that|this|there|everyone|people)(?:['’](?:s|re|ve))?"
    rf"|(?P<name>(?-i:[A-ZÀ-Þ])[^\W\d_]{{1,20}}))(?:['’]s)?\s+{_ADVERBS}\Z",
    re.IGNORECASE,
)
_FIRST: Final = regex(
    r"\W*(?:(?:hi|hey|hello|ok|okay|so|and|but|well|oh|btw|fyi|update|news|yes|no|actually|also|by the way)\b\W*){0,3}"
    r"(?:(?:last|this|next)?\s?(?:week|month|year|weekend|yesterday|today|recently|finally)\b\W*)?"
    r"(?:(?P<own>I|we)\b|my\s(?P<kin>[^\W\d_]{2,20})\b|(?P<other>s?he|they|you|it)\b"
    r"|(?P<name>(?-i:[A-ZÀ-Þ])[^\W\d_]{1,20}))",
    re.IGNORECASE,
)
_JOINED: Final = regex(rf"(?:\b(?:and|then|but|so)|[,;])\s+{_ADVERBS}\Z", re.IGNORECASE)
_BARE: Final = regex(
    r"\W*(?:(?:hi|hey|hello|ok|okay|so|and|but|well|oh|btw|fyi|update|news|yes|no|correction|sorry|actually|finally"
    r"|just|now|recently|officially|already|also|anyway|by the way)\b\W*){0,4}\Z",
    re.IGNORECASE,
)
_PAST: Final = regex(r"[^\W\d_]{2,}(?:ed|oke|uit|ot|eft|egan)\b", re.IGNORECASE)
_HYPOTHETICAL: Final = regex(
    r"\b(?:might|may|could|would|should|want(?:s|ed)? to|plan(?:s|ning)? to|hop(?:e|ing) to|going to|thinking"
    r"|considering|dream|almost|nearly|never|used to|wish|will|not sure|rumou?r|lol|just kidding|as if"
    r"|suggest|recommend|propose|example|e\.g\.|hypothetically)\b|['’]d\b|\byeah,? right\b|['’]ll\b",
    re.IGNORECASE,
)
_TECHNICAL: Final = regex(
    r"\b(?:backend|frontend|database|db|stack|api|deploy\w*|cluster|server|framework|code|repo|ci|cloud|hosting"
    r"|tickets?|tasks?|data|channel|app|tests?|builds?|pipeline|library|version)\b",
    re.IGNORECASE,
)
_ALL_TOOLS: Final = frozenset[str]().union(*TOOLS.values())
_ARTICLES: Final = regex(
    r"(?:the|an?|our|my|your|el|la|le|un|une|der|die|das|den|project|projekt)\s+", re.IGNORECASE
)
_TEXT_END: Final = regex(
    r",?\s(?:and (?:I|we|my|it)|but|because|so|since|instead|not|now|as of|from now|please)\b.*|\.\s.*|,\s(?!\d).*|,\Z"
    r"|\s[-–—]\s.*",
    re.IGNORECASE | re.DOTALL,
)


@lru_cache(maxsize=4_096)
def statements(text: str) -> tuple[Statement, ...]:
    """What the text states, in order."""
    text = text[:CHARS_MAX]
    found: dict[tuple[str, str, str, str], Statement] = {}
    for start, end in prose.spans(text):
        if end - start <= _SENTENCE_MAX:
            for one in _in_sentence(text[start:end]):
                moved = one._replace(start=one.start + start, end=one.end + start)
                found.setdefault(one[:4], moved)
    return tuple(sorted(found.values(), key=lambda one: one.start))


def as_own(text: str) -> str:
    """An assistant's text with "you" as "I": what it repeats of the user's facts."""
    return _YOU.sub(lambda match: _OWN_FORMS[match[0].lower()], text)


_OWN_FORMS: Final = {
    "you are": "I am",
    "you're": "I'm",
    "you’re": "I'm",
    "you've": "I've",
    "you’ve": "I've",
    "you": "I",
    "your": "my",
}
_YOU: Final = regex(r"\b(?:you are|you['’](?:re|ve)|your?)\b", re.IGNORECASE)


def _in_sentence(sentence: str) -> Iterator[Statement]:
    words = _cue_words(sentence)
    rules = [_RULES[n] for n in sorted({n for word in words for n in _PLACES.get(word, ())})]
    if not (rules or _NAMED.intersection(words)) or sentence.rstrip("\"'”’)* ").endswith(
        _QUESTION_ENDS
    ):
        return
    if (
        speaker.is_foreign(sentence)
        or speaker.is_request(sentence)
        or speaker.is_imagined(sentence)
    ):
        return
    taken: set[tuple[int, int]] = set()
    for rule in rules:
        for match in rule.pattern.finditer(sentence):
            one = _read(rule, match, sentence)
            where = (one.start, one.end) if one else None
            if one is not None and where not in taken:
                taken.add((one.start, one.end))
                yield one
    named = speaker.stated_name(sentence)
    if named:
        yield Statement("", slots.NAME, named, "", 0, len(sentence))


def _cue_words(sentence: str) -> set[str]:
    """The words that may be cues of a rule; of scripts without spaces, the characters."""
    words = set(_WORD.findall(sentence.casefold()))
    glued = [word for word in words if not word.isalnum()]
    words.update(piece for word in glued for piece in _GLUE.split(word))
    if not sentence.isascii():
        words.update(_FAR.findall(sentence))
    return words


def _read(rule: SlotRule, match: re.Match[str], sentence: str) -> Statement | None:
    """The statement of a match; None if the sentence does not clearly state it."""
    groups = match.groupdict()
    if not speaker.is_own_statement(sentence, match.start()):
        return None
    if _HYPOTHETICAL.search(sentence[max(0, match.start() - _BEFORE) : match.start()]):
        return None
    about = _about(rule, match, sentence)
    if about is None:
        return None
    given = groups.get("value") or ""
    value = _clean(rule, given, sentence) if given else rule.value
    old = _clean_any(groups.get("old") or groups.get("gone") or "")
    if (given and not value) or not _is_plausible(rule, match, value, sentence):
        return None
    if not value and not old and "gone" not in groups:
        return None
    if groups.get("no"):
        value = f"not {value}"
    slot, subject = _slot(rule, groups, about)
    thing = rule.about == "thing"
    return Statement(subject, slot, value, old, match.start(), match.end(), thing)


def _about(rule: SlotRule, match: re.Match[str], sentence: str) -> str | None:
    """The person who is meant, empty for the speaker; None if that is not clear."""
    if rule.about == "before":
        return _subject_before(sentence[: match.start()], match[0])
    whose = match.groupdict().get("whose")
    return whose.casefold() if whose else ""


def _subject_before(before: str, verb: str) -> str | None:
    """Whom the words before a verb name: "my older sister" is "sister"."""
    if _BARE.match(before):
        return "" if _PAST.match(verb) else None
    found = _SUBJECT.search(before[-_BEFORE:])
    if found is None and _JOINED.search(before[-_BEFORE:]):
        found = _FIRST.match(before)
    if found is None or found["other"]:
        return None
    if found["own"]:
        return ""
    name = found["kin"] or found["name"]
    if found["kin"]:
        return _kin(name)
    return None if name.casefold() in NOT_A_PLACE or _BARE.match(f"{name} ") else fold_name(name)


def _kin(words: str) -> str | None:
    """The noun of "older sister" or "sister Ana"; None if it is a pronoun or a conjunction."""
    small = [word for word in words.split() if word.islower() or len(words.split()) == 1]
    return small[-1].casefold() if small else fold_name(words)


def _slot(rule: SlotRule, groups: Mapping[str, str | None], about: str) -> tuple[str, str]:
    """The slot and the subject of a match."""
    thing = " ".join(fold_name(groups.get("thing") or "").split())
    if rule.slot == "own":
        return thing, about
    if rule.slot == slots.TOOL and thing:
        return f"{slots.TOOL} for {thing}", about
    if rule.about == "thing":
        return rule.slot, re.sub(r"\b(?:number|no|nr|id|new|current|next)\b ?", "", thing).strip()
    return rule.slot, about


# -- values -----------------------------------------------------------------------------------


def _clean(rule: SlotRule, given: str, sentence: str) -> str:
    if rule.kind == "name":
        return _clean_name(given, sentence)
    if rule.kind == "word":
        return " ".join(given.casefold().split())
    if rule.kind == "date":
        return given.strip()
    return _clean_any(given) if rule.kind == "any" else _clean_text(given)


def _clean_name(given: str, sentence: str) -> str:
    """The capitalized words; in a text without capitals, the first word."""
    bare = _ARTICLES.sub("", given, count=1)
    kept: list[str] = []
    for word in bare.split():
        plain = word.strip(",.")
        if plain[:1].isupper() or any(map(str.isdigit, plain)) or (kept and plain in CONNECTING):
            kept.append(word)
        else:
            break
        if word.endswith((",", ".")) and not word.endswith("St."):
            break
    while kept and kept[-1].casefold().strip(",.") in CONNECTING | TIME_AND_DEGREE:
        kept.pop()
    first = bare.split()[0] if bare.split() else ""
    if not kept and not any(map(str.isupper, sentence)):
        kept = [] if first.casefold() in NOT_A_PLACE | TIME_AND_DEGREE else [first]
    return " ".join(kept).strip(" ,.'’-")


def _clean_text(given: str) -> str:
    words = _TEXT_END.sub("", given, count=1).strip(" \"'“”.,").split()
    while words and words[-1].casefold().strip(".,") in TIME_AND_DEGREE:
        words.pop()
    return " ".join(words)


def _clean_any(given: str) -> str:
    words = _ARTICLES.sub("", given.strip(" \"'“”.,"), count=1).split()
    while words and words[-1].casefold().strip(".,") in TIME_AND_DEGREE:
        words.pop()
    return " ".join(words).strip(" ,.")


def _is_plausible(rule: SlotRule, match: re.Match[str], value: str, sentence: str) -> bool:
    """Whether the value can be one of the slot: a city is not called Thursday or Postgres."""
    if rule.slot not in (slots.HOME, slots.EMPLOYER):
        return True
    first = value.split(maxsplit=1)[0].casefold().strip(",.") if value else ""
    if first in WEEKDAYS or first in MONTHS or first in _ALL_TOOLS:
        return False
    moved = rule.slot == slots.HOME and match[0].casefold().startswith(("moved", "relocated"))
    return not (moved and _TECHNICAL.search(sentence))
