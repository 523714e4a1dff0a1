"""What a newer statement outdates: of a slot with one value, the older value. Pure."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from itertools import combinations
from typing import Final, NamedTuple

from firnline.language import numbers
from firnline.language.lexicon import TOOLS
from firnline.language.names import fold_name
from firnline.language.statements import patterns as slots
from firnline.language.statements.patterns import Statement
from firnline.log.regex import regex

_IMPLIED: Final = frozenset(
    frozenset(pair)
    for pair in (
        ("no meat", "vegetarian"), ("no meat", "vegan"), ("no meat", "pescatarian"), ("eats fish", "pescatarian"),
        ("eats meat", "omnivore"), ("eats meat", "carnivore"), ("eats fish", "eats meat"), ("eats fish", "omnivore"),
    )
)  # fmt: skip
_CYRILLIC: Final = regex(r"[а-яё]")


class _ValueWords(NamedTuple):
    """What two values are compared by."""

    words: str
    dates: frozenset[str]
    figures: frozenset[str]
    """The words, if there is a digit among them: "the 12th" is part of "March 12"."""


@lru_cache(maxsize=16_384)
def _value_words(value: str) -> _ValueWords:
    words = fold_name(value) or value.casefold()
    dates = frozenset(key for day in numbers.dates(value) for key in day.readings)
    figures = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", words).split()
    return _ValueWords(words, dates, frozenset(figures if any(map(str.isdigit, words)) else ()))


def agree(value: str, words: str) -> bool:
    """Whether two values of a slot do not contradict each other: "Lisbon" and "Lisbon, Portugal"."""
    if frozenset((value, words)) in _IMPLIED:
        return True
    first, second = _value_words(value), _value_words(words)
    if first.words == second.words:
        return True
    if first.dates and second.dates:
        return not first.dates.isdisjoint(second.dates)
    if first.figures and second.figures:
        return first.figures <= second.figures or second.figures <= first.figures
    short, long = sorted((first.words, second.words), key=len)
    if long.startswith(f"{short} "):
        return True
    same = _CYRILLIC.search(short) and len(short) > 3 and len(long) - len(short) <= 2  # noqa: PLR2004
    return bool(same) and long[: len(short) - 1] == short[:-1]


class SpokenStatement(NamedTuple):
    """A statement, where it was made and by whom; an `echo` repeats and never outdates."""

    seq: int
    speaker: str
    statement: Statement
    echo: bool = False

    @property
    def subject(self) -> str:
        """Of whom or what it is: names and numbered things are the same for all speakers."""
        one = self.statement
        if not one.subject:
            return self.speaker
        return one.subject if one.thing else f"{one.subject} of {self.speaker}"


def outdated(stated: Iterable[SpokenStatement]) -> dict[SpokenStatement, SpokenStatement]:
    """The statements that a newer one outdates, each with the one that does it."""
    state = Slots({}, {}, {})
    for one in sorted(stated, key=lambda one: (one.seq, one.statement.start)):
        state.add(one)
    return state.by


def current(by: Mapping[SpokenStatement, SpokenStatement], one: SpokenStatement) -> SpokenStatement:
    """The newest statement that follows from `one`."""
    while one in by:
        one = by[one]
    return one


SlotKey = tuple[str, str]
"""A subject and a slot."""


class Slots(NamedTuple):
    """The statements in force, by subject and slot, and what outdated the others.

    A slot without statements may be there or not. `named` has the keys by slot and words of the
    subject, so that finding "the order" does not take longer the more orders there are.
    """

    in_force: dict[SlotKey, list[SpokenStatement]]
    by: dict[SpokenStatement, SpokenStatement]
    named: dict[tuple[str, str | frozenset[str]], set[SlotKey]]

    def open(self, key: SlotKey) -> list[SpokenStatement]:
        """The statements of a slot, which goes to the end if there were none."""
        there = self.in_force.get(key)
        if not there:
            self.in_force.pop(key, None)
            there = self.in_force[key] = []
            for words in _word_sets(key[0]):
                self.named.setdefault((key[1], words), set()).add(key)
        return there

    def close(self, key: SlotKey) -> None:
        """Remove a slot without statements."""
        del self.in_force[key]
        for words in _word_sets(key[0]):
            self.named[key[1], words].discard(key)

    def add(self, new: SpokenStatement) -> tuple[str, str]:
        """Add a statement; what it outdates is no longer in force. Returns its subject and slot."""
        one = new.statement
        if new.echo:
            return self._add_echo(new)
        key = self._named(new)
        if one.old:
            key = self._replace_old(new) or key
        elif one.slot == slots.CHANGE:
            key = self._replace_alike(new) or key
        if key[1] == slots.CHANGE and _tool_kind(one.value):
            key = key[0], slots.TOOL
        there = self.open(key)
        if key[1] not in slots.MANY:
            self._supersede(
                there, new, lambda old: not one.value or _contradict(key[1], old, one.value)
            )
        for opposite in slots.OPPOSITES.get(key[1], ()) if one.value else ():
            others = self.in_force.get((key[0], opposite), [])
            self._supersede(others, new, lambda old: is_meant(old, one.value))
        there.append(new)
        return key

    def _add_echo(self, new: SpokenStatement) -> tuple[str, str]:
        """Add what repeats what was known before: it is outdated with what it agrees with."""
        key = new.subject, new.statement.slot
        there = self.in_force.get(key, [])
        if any(agree(old.statement.value, new.statement.value) for old in there):
            there.append(new)
        return key

    def _named(self, new: SpokenStatement) -> tuple[str, str]:
        """The key of a statement; "the order" is the only order there is, "it" the only thing."""
        subject, slot = new.subject, new.statement.slot
        if new.statement.thing and not self.in_force.get((subject, slot)):
            alike = [key for key in self._alike(subject, slot) if self.in_force.get(key)]
            if len(alike) == 1:
                return alike[0]
        if slot not in _PARTIAL:
            return subject, slot
        longer = [
            key
            for key, there in self.in_force.items()
            if there and key[0] == subject and key[1].endswith(f" {slot}")
        ]
        return longer[0] if len(longer) == 1 else (subject, slot)

    def _alike(self, subject: str, slot: str) -> Iterable[SlotKey]:
        """The slots of things that a subject may be: "meeting" and "team meeting"; of "it", all."""
        if subject == IT:
            return [key for key in self.in_force if key[1] == slot]
        words = frozenset(subject.split())
        longer = sorted((self.named.get((slot, word), set()) for word in words), key=len)
        found = set.intersection(*longer) if longer else set[SlotKey]()
        for size in range(1, len(words)) if len(words) <= _SUBJECT_WORDS else ():
            for some in combinations(words, size):
                found |= self.named.get((slot, frozenset(some)), set())
        return found

    def _replace_old(self, new: SpokenStatement) -> tuple[str, str] | None:
        """Outdate what the statement names as replaced, in whatever slot it is."""
        one, found = new.statement, None
        anywhere = one.slot in (slots.CHANGE, slots.ENDED)
        for key, there in self.in_force.items():
            if not (key[0] == new.subject or one.slot == slots.CHANGE):
                continue
            meant = is_meant if anywhere or key[1] in slots.MANY else agree
            if any(meant(old.statement.value, one.old) for old in there if not old.echo):
                self._supersede(there, new, partial(meant, words=one.old))
                found = found or key
        return found

    def _replace_alike(self, new: SpokenStatement) -> tuple[str, str] | None:
        """Outdate a tool of the same category: "we switched to MySQL"."""
        kind = _tool_kind(new.statement.value)
        found = None
        for key, there in self.in_force.items() if kind else ():
            alike = key[1].startswith(slots.TOOL) and key[0] == new.subject
            if alike and any(_tool_kind(old.statement.value) == kind for old in there):
                self._supersede(there, new, lambda old: _tool_kind(old) == kind)
                found = key
        return found

    def _supersede(
        self, there: list[SpokenStatement], new: SpokenStatement, is_old: Callable[[str], bool]
    ) -> None:
        for old in list(there):
            if old != new and is_old(old.statement.value):
                self.by[old] = new
                there.remove(old)


_SUBJECT_WORDS: Final = 6
"""Words of a subject of which parts are looked for."""


def _word_sets(subject: str) -> list[str | frozenset[str]]:
    """What a subject is found by: each of its words, and all of them."""
    words = subject.split()
    return [*dict.fromkeys(words), frozenset(words)]


_PARTIAL: Final = frozenset(("number", "address", "email", "size"))
"""What people say for short: "my number" is the phone number."""
IT: Final = "it"
"""The subject of a statement about the thing that was spoken of."""
_REGIMES: Final = regex(
    r"vegan\w*|végan\w*|vegetari\w*|végétari\w*|vegetarisch|веган\w*|вегетариан\w*|pescatarian|flexitarian|omnivore|carnivore|keto|paleo|no meat|eats meat|eats fish"
    r"|.*(?:Fleisch|carne|viande|мяс|素|肉).*",
    re.IGNORECASE,
)
"""Diets of which a person has one; what they cannot eat comes in addition."""
_SMALL_WORDS: Final = frozenset(
    [
        "a",
        "an",
        "the",
        "my",
        "our",
        "your",
        "some",
        "any",
        "of",
        "in",
        "to",
        "der",
        "die",
        "das",
        "ein",
        "eine",
        "einen",
        "mein",
        "meine",
        "el",
        "la",
        "los",
        "las",
        "un",
        "una",
        "mi",
        "le",
        "les",
        "une",
        "mon",
        "ma",
        "des",
        "du",
    ]
)


def _contradict(slot: str, old: str, new: str) -> bool:
    """Whether a newer value of a slot with one value replaces an older one."""
    if agree(old, new):
        return False
    return slot != slots.DIET or bool(_REGIMES.fullmatch(old) and _REGIMES.fullmatch(new))


def is_meant(value: str, words: str) -> bool:
    """Whether words mean this value: "the dog" is the dog named Rex."""
    if agree(value, words):
        return True
    meant = {_plain(word) for word in _value_words(words).words.split()} - _SMALL_WORDS
    there = {_plain(word) for word in _value_words(value).words.split()}
    if not value.isascii() and not meant & there:
        return bool(words) and (words in value or value in words)
    return bool(meant) and meant <= there


def _plain(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word  # noqa: PLR2004


def _tool_kind(value: str) -> str:
    first = value.split(maxsplit=1)[0].casefold() if value else ""
    return next((kind for kind, tools in TOOLS.items() if first in tools), "")
