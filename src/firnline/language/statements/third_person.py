"""Notes that a program wrote of a person, in the person's own words: "Ana likes tea", "Likes tea".

English only. The sentence is what is quoted; its reading only finds what it states. Pure.
"""

# ruff: noqa: RUF001, E501 - typographic apostrophes are meant, and patterns stay on one line

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from firnline.language.statements.english import KIN
from firnline.log.regex import regex

_REGULAR: Final = (
    "live", "work", "like", "love", "hate", "dislike", "enjoy", "prefer", "avoid", "own", "drive", "speak",
    "play", "eat", "drink", "need", "use", "want", "take", "run", "manage", "lead", "write", "build", "code",
    "attend", "weigh", "earn", "keep", "collect", "practice", "follow", "wear", "come", "suffer", "cook", "bake",
    "read", "swim", "hike", "dance", "sing", "paint", "climb", "rent", "plan",
)  # fmt: skip
_IRREGULAR: Final = {
    "is": "am",
    "has": "have",
    "does": "do",
    "was": "was",
    "studies": "study",
    "watches": "watch",
    "teaches": "teach",
    "coaches": "coach",
    "goes": "go",
    "doesn't": "don't",
    "isn't": "am not",
}
_VERBS: Final = {**_IRREGULAR, **{f"{verb}s": verb for verb in _REGULAR}}
_AFTER: Final = (
    r"(?P<adverbs>(?: (?:currently|now|also|really|recently|just|still|usually|often|always|never|previously"
    r"|primarily|mostly))*)"
)
_THIRD: Final = "|".join(sorted(map(re.escape, _VERBS), key=len, reverse=True))
_ADJECTIVES: Final = (
    "allergic|vegetarian|vegan|married|single|divorced|engaged|diabetic|retired|based|originally"
)
_SURNAME: Final = r"(?: (?-i:[A-Z])[\w-]{1,20})?"
_KIN: Final = regex(
    rf"(?:\b(?:his|her|their|has an?|has two|with an?)|['’]s)(?: \w{{1,20}})? (?:{KIN}|colleagues?|boss|manager|clients?|team)\b|\A\W*{KIN}\b",
    re.IGNORECASE,
)
"""Others of whom a note speaks."""
_NAMED: Final = regex(
    rf"(?:\A|[.\n*] ?)\s*(?P<name>(?-i:[A-Z])[\w-]{{1,20}})(?: (?-i:[A-Z])[\w-]{{1,20}})?(?:['’]s\b|{_AFTER} (?:{_THIRD}|moved|works)\b)",
    re.IGNORECASE,
)
_BARE: Final = regex(rf"(?P<lead>\W*)(?P<verb>{_THIRD})\b", re.IGNORECASE)
_BARE_STATE: Final = regex(rf"(?P<lead>\W*)(?P<state>{_ADJECTIVES})\b", re.IGNORECASE)
_BARE_KIN: Final = regex(rf"(?P<lead>\W*)(?P<kin>{KIN})\b", re.IGNORECASE)
_OWN_NAME: Final = regex(r"(?P<lead>\W*)(?P<name>name|birthday)(?= is\b)", re.IGNORECASE)
_NO_NAMES: Final = frozenset(
    (
        "user",
        "the",
        "he",
        "she",
        "they",
        "it",
        "this",
        "that",
        "there",
        "his",
        "her",
        "their",
        "name",
        "who",
        "what",
    )
)


def own_words(sentences: Sequence[str], name: str) -> list[str]:
    """The sentences as if the person they are about had said them.

    "She" is the person until a sentence speaks of a relative or of another person.
    """
    found, is_person = [], True
    for sentence in sentences:
        others = _KIN.search(sentence) is not None
        own = _as_own(sentence, name, pronouns=is_person, once=others)
        is_person = not others and (own != sentence or (is_person and not _NAMED.match(sentence)))
        found.append(own)
    return found


def named_person(sentences: Iterable[str]) -> str:
    """The name with which most sentences begin, as that of the person they are about.

    A single sentence does not tell: "Bob lives in Rome" may be of another person.
    """
    names = Counter(
        match["name"]
        for sentence in sentences
        if (match := _NAMED.match(sentence)) and match["name"].casefold() not in _NO_NAMES
    )
    found = names.most_common(1)
    return found[0][0] if found and found[0][1] > 1 else ""


def _as_own(sentence: str, name: str, *, pronouns: bool, once: bool) -> str:
    if match := _OWN_NAME.match(sentence):
        return f"{match['lead']}My {match['name'].casefold()}{sentence[match.end() :]}"
    if match := _BARE.match(sentence):
        return f"{match['lead']}I {_VERBS[match['verb'].casefold()]}{sentence[match.end() :]}"
    if match := _BARE_KIN.match(sentence):
        return f"{match['lead']}My {match['kin'].casefold()}{sentence[match.end() :]}"
    if match := _BARE_STATE.match(sentence):
        return f"{match['lead']}I am {match['state'].casefold()}{sentence[match.end() :]}"
    who = ["(?:the )?user", *([f"{re.escape(name)}{_SURNAME}"] if name else [])]
    named = _with_first_person(sentence, "|".join(who), "", count=0)
    if not pronouns:
        return named
    count = 1 if once else 0
    return _with_first_person(named, "he|she|they", "his|her|their", count=count)


def _with_first_person(sentence: str, who: str, whose: str, *, count: int) -> str:
    return _mentions(who, whose).sub(_first_person, sentence, count=count)


@lru_cache(maxsize=64)
def _mentions(who: str, whose: str) -> re.Pattern[str]:
    """The places where the person is named, as the subject of a verb or as an owner."""
    possessive = rf"(?P<my>\b(?:{who})['’]s\b" + (rf"|\b(?:{whose})\b)" if whose else ")")
    subject = rf"\b(?:{who}){_AFTER} (?P<verb>{_THIRD}|moved|are|have)\b"
    return regex(f"{possessive}|{subject}", re.IGNORECASE)


def _first_person(mention: re.Match[str]) -> str:
    if mention["my"]:
        return "my"
    verb = mention["verb"].casefold()
    return f"I{mention['adverbs']} {'am' if verb == 'are' else _VERBS.get(verb, verb)}"
