"""Facts: what a person stated in all of their conversations, with evidence and time.

The facts are a view of the log: `read_statements` reads what messages state, and `FactState` adds
the statements in the order they were said. A newer value of a slot outdates the older one; both are
kept. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple, Self, TypeAlias

from firnline.context import marks
from firnline.digest import slot_patterns
from firnline.digest.rules import CODE
from firnline.digest.slots import CHARS_MAX, Slots, SpokenStatement, Statement, agree, statements
from firnline.errors import StoreCorrupt
from firnline.language import prose
from firnline.language.names import fold_name
from firnline.log import limits
from firnline.log.entry import Entry
from firnline.log.message import EPOCH, from_microseconds, microseconds

_PREFERENCES: Final = ("favorite", "favourite", "diet", "likes", "dislikes", "preference")
_DECISIONS: Final = ("tool", "decision")

Place: TypeAlias = tuple[int, str, int, int]
"""When and where something was said: microseconds, conversation, sequence number, position."""
FIRST: Final[Place] = (-(1 << 62), "", -1, -1)
_SPOKEN_MAX: Final = 4
_WITHOUT_FACT_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a fact was stated: the words, verbatim, and when they were said."""

    conversation: str
    seq: int
    quote: str
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What holds of a person, or of another person or a thing they speak of.

    `attribute` is the slot, as in ``home city`` or ``order 1138 · status``. The fact holds from
    `valid_from` until `valid_until`, if it has ended. `ended_by` are the words that ended it, and
    `superseded_by` is the fact that replaced it. It was recorded when its first evidence was said,
    and withdrawn at `reverted_at`.
    """

    id: str
    person: str
    subject: str
    attribute: str
    value: str
    evidence: tuple[Evidence, ...]
    valid_from: datetime
    valid_until: datetime | None = None
    superseded_by: str | None = None
    ended_by: Evidence | None = None
    reverted_at: datetime | None = None

    @property
    def kind(self) -> str:
        """``preference``, ``decision`` or ``fact``."""
        if self.attribute.startswith(_PREFERENCES):
            return "preference"
        return "decision" if self.attribute.startswith(_DECISIONS) else "fact"

    @property
    def recorded_at(self) -> datetime:
        """When it was first said."""
        return self.evidence[0].said_at

    def holds_at(self, at: datetime) -> bool:
        """Whether it held at this time."""
        return self.valid_from <= at and (self.valid_until is None or at < self.valid_until)


class DatedStatement(NamedTuple):
    """A statement with its place and its quote; `speaker` is empty if it is the person."""

    at: int
    conversation: str
    seq: int
    speaker: str
    quote: str
    statement: Statement

    @property
    def place(self) -> Place:
        """Its place in the order in which things were said."""
        return self.at, self.conversation, self.seq, self.statement.start

    @property
    def id(self) -> str:
        """The id of the fact that it would be the first evidence of."""
        one = self.statement
        text = "\x00".join((self.conversation, str(self.seq), *map(str, one)))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def evidence(self) -> Evidence:
        """Where it was said."""
        return Evidence(self.conversation, self.seq, self.quote, from_microseconds(self.at))


class Revert(NamedTuple):
    """Statements that the application has withdrawn, and when it did."""

    at: int
    ids: frozenset[str]


# -- reading ----------------------------------------------------------------------------------


def read_statements(
    conversation: str, person: str, entries: Iterable[Entry]
) -> list[DatedStatement]:
    """What the messages of a person's conversation state, each with a quote that is in the message.

    Of the assistant's messages only the status of things counts: what it suggests or repeats is
    no fact of the person. A user message with another name than the person's is that speaker's.
    """
    found = []
    for entry in entries:
        message = entry.message
        if message.role not in ("user", "assistant") or entry.erased_at is not None:
            continue
        said = marks.said(message)
        text = CODE.sub("\n", said)[:CHARS_MAX]
        name = fold_name(message.name or "")
        speaker = "" if message.role == "assistant" or name == fold_name(person) else name
        at = microseconds(message.created_at or EPOCH)
        for one in statements(text):
            quote = _sentence(text, one)
            own = message.role == "user" or (one.slot == slot_patterns.STATUS and one.thing)
            if own and quote and quote in said:
                found.append(DatedStatement(at, conversation, entry.seq, speaker, quote, one))
    return found


def _sentence(text: str, one: Statement) -> str:
    """The sentence that states it, word for word."""
    for start, end in prose.spans(text):
        if start <= one.start < end:
            return text[start:end].strip()
    return ""


# -- the facts --------------------------------------------------------------------------------


class FactState:
    """The facts after some statements; `add` adds the next one, in the order they were said.

    `facts` are those that hold and those that have ended, by id. If it `forgets`, it has only those
    that hold, and of too many the oldest are left out: then its size is limited.
    """

    def __init__(self, person: str, *, forgets: bool = False) -> None:
        self.person, self.last = person, FIRST
        self.facts: dict[str, Fact] = {}
        self._forgets = forgets
        self._slots = Slots({}, {})
        self._spoken: dict[str, list[SpokenStatement]] = {}  # of each fact that holds
        self._fact_of: dict[SpokenStatement, str] = {}
        self._count = 0
        self.said: dict[str, set[str]] = {}  # the ids of the statements of each fact

    @property
    def in_force(self) -> list[Fact]:
        """The facts that hold, in the order in which they were first said."""
        return [self.facts[id_] for id_ in self._spoken]

    def add(self, said: DatedStatement) -> None:
        """Add a statement that was said after all before it."""
        self.last, one = said.place, said.statement
        spoken = SpokenStatement(self._count, said.speaker, one)
        self._count += 1
        self._slots.by.clear()
        key = self._slots.add(spoken)
        ended = list(self._slots.by)
        fact = None
        if one.value and key[1] != slot_patterns.CHANGE:
            fact = self._confirmed(key, said) or self._new_fact(key, said, ended)
            self.facts[fact.id] = fact
            self._spoken.setdefault(fact.id, []).append(spoken)
            self._fact_of[spoken] = fact.id
            if not self._forgets:
                self.said.setdefault(fact.id, set()).add(said.id)
        for old in ended:
            self._end(old, said, fact)
        self._tidy(key, fact)

    def _confirmed(self, key: tuple[str, str], said: DatedStatement) -> Fact | None:
        """The fact that this says again, with the new evidence."""
        value = said.statement.value
        for spoken in reversed(self._slots.in_force[key]):
            id_ = self._fact_of.get(spoken)
            if id_ is not None and agree(spoken.statement.value, value):
                fact = self.facts[id_]
                kept = (*fact.evidence[:1], *fact.evidence[1:][2 - limits.EVIDENCE_MAX :])
                same = prose.fold_text(value) in prose.fold_text(fact.value)
                shown = fact.value if same else value
                return replace(fact, value=shown, evidence=(*kept, said.evidence))
        return None

    def _new_fact(
        self, key: tuple[str, str], said: DatedStatement, ended: Iterable[SpokenStatement]
    ) -> Fact:
        subject, attribute = self._label(key, said, ended)
        return Fact(
            id=said.id,
            person=self.person,
            subject=subject,
            attribute=attribute,
            value=said.statement.value,
            evidence=(said.evidence,),
            valid_from=said.evidence.said_at,
        )

    def _label(
        self, key: tuple[str, str], said: DatedStatement, ended: Iterable[SpokenStatement]
    ) -> tuple[str, str]:
        """The subject and attribute for people: of the facts of the slot, or as it says."""
        ids = map(self._fact_of.get, (*ended, *self._slots.in_force[key]))
        if alike := next(filter(None, ids), None):
            return self.facts[alike].subject, self.facts[alike].attribute
        about, slot = key
        one = said.statement
        if one.thing and about:
            return about, f"{about} · {slot}"
        if one.subject:
            return f"{one.subject} of {said.speaker}" if said.speaker else one.subject, slot
        return said.speaker or self.person, slot

    def _end(self, old: SpokenStatement, said: DatedStatement, successor: Fact | None) -> None:
        """End the fact of an outdated statement, if no other statement of it is in force."""
        id_ = self._fact_of.pop(old, None)
        if id_ is None:
            return
        self._spoken[id_].remove(old)
        if self._spoken[id_]:
            return
        del self._spoken[id_]
        fact = self.facts.pop(id_)
        if not self._forgets:
            self.facts[id_] = replace(
                fact,
                valid_until=said.evidence.said_at,
                superseded_by=successor.id if successor else None,
                ended_by=said.evidence,
            )

    def _tidy(self, key: tuple[str, str], fact: Fact | None) -> None:
        """Drop statements that make no difference any more."""
        there = self._slots.in_force[key]
        for_nothing = [one for one in there if one not in self._fact_of]
        for spoken in for_nothing[:-_WITHOUT_FACT_MAX]:
            there.remove(spoken)
        if fact is not None and len(self._spoken[fact.id]) > _SPOKEN_MAX:
            middle = self._spoken[fact.id].pop(1)
            there.remove(middle)
            del self._fact_of[middle]
        for empty in [name for name, those in self._slots.in_force.items() if not those]:
            del self._slots.in_force[empty]
        while self._forgets and len(self._spoken) > limits.FACTS_HELD:
            oldest = next(iter(self._spoken))
            for spoken in self._spoken.pop(oldest):
                del self._fact_of[spoken]
                for those in self._slots.in_force.values():
                    if spoken in those:
                        those.remove(spoken)
            del self.facts[oldest]

    # -- stored ---------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """What `from_json` restores: the facts that hold, and the statements in force."""
        held = [
            [*key, [[*one[:2], *one.statement, self._fact_of.get(one)] for one in there]]
            for key, there in self._slots.in_force.items()
        ]
        facts = [fact_to_json(self.facts[id_]) for id_ in self._spoken]
        return {"last": self.last, "count": self._count, "facts": facts, "held": held}

    @classmethod
    def from_json(cls, person: str, data: Mapping[str, Any]) -> Self:
        """The state that was stored; `StoreCorrupt` if it is damaged."""
        state = cls(person, forgets=True)
        try:
            state.last, state._count = tuple(data["last"]), data["count"]
            for row in data["facts"]:
                fact = fact_from_json(person, row)
                state.facts[fact.id], state._spoken[fact.id] = fact, []
            for subject, slot, there in data["held"]:
                spoken = [
                    (SpokenStatement(number, speaker, Statement(*one)), id_)
                    for number, speaker, *one, id_ in there
                ]
                state._slots.in_force[subject, slot] = [one for one, _ in spoken]
                for one, id_ in spoken:
                    if id_ is not None:
                        state._fact_of[one] = id_
                        state._spoken[id_].append(one)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreCorrupt(f"the stored facts of {person!r} are damaged") from error
        for those in state._spoken.values():
            those.sort()
        return state


def fact_to_json(fact: Fact) -> dict[str, Any]:
    """A fact that holds."""
    evidence = [[*astuple(one)[:3], microseconds(one.said_at)] for one in fact.evidence]
    names = ("id", "subject", "attribute", "value")
    return {**{name: getattr(fact, name) for name in names}, "evidence": evidence}


def fact_from_json(person: str, row: Mapping[str, Any]) -> Fact:
    """A fact that holds, as `fact_to_json` has written it."""
    names = ("id", "subject", "attribute", "value")
    evidence = tuple(
        Evidence(conversation, seq, quote, from_microseconds(at))
        for conversation, seq, quote, at in row["evidence"]
    )
    return Fact(
        **{name: row[name] for name in names},
        person=person,
        evidence=evidence,
        valid_from=evidence[0].said_at,
    )


def all_facts(
    person: str,
    said: Iterable[DatedStatement],
    reverts: Iterable[Revert] = (),
    known_at: datetime | None = None,
) -> list[Fact]:
    """Every fact that these statements make, in the order they were said; also ended ones.

    `known_at`: as if nothing had been said or reverted after that time.
    """
    until = None if known_at is None else microseconds(known_at)
    gone = {id_: r.at for r in reverts if until is None or r.at <= until for id_ in r.ids}
    once = {one.id: one for one in said if until is None or one.at <= until}
    state, reverted = FactState(person), FactState(person)
    for one in sorted(once.values(), key=lambda one: one.place):
        (reverted if one.id in gone else state).add(one)
    withdrawn = [
        replace(
            fact, reverted_at=from_microseconds(max(gone[id_] for id_ in reverted.said[fact.id]))
        )
        for fact in reverted.facts.values()
    ]
    return sorted([*state.facts.values(), *withdrawn], key=lambda fact: (fact.valid_from, fact.id))


def statements_of(
    person: str, said: Iterable[DatedStatement], reverts: Iterable[Revert]
) -> Mapping[str, set[str]]:
    """The ids of the statements of each fact that is not reverted."""
    gone = {id_ for revert in reverts for id_ in revert.ids}
    state = FactState(person)
    for one in sorted({one.id: one for one in said}.values(), key=lambda one: one.place):
        if one.id not in gone:
            state.add(one)
    return state.said


# -- the profile ------------------------------------------------------------------------------


def profile_facts(facts: Iterable[Fact]) -> list[Fact]:
    """The facts of a profile, at most so many: those of the person first, and newer ones first."""
    newest = sorted(facts, key=lambda fact: (fact.subject != fact.person, -_said(fact), fact.id))
    return newest[: limits.PROFILE_FACTS]


def profile_line(fact: Fact) -> str:
    """A fact as a line of a profile."""
    own = fact.subject == fact.person or fact.attribute.startswith(f"{fact.subject} · ")
    about = fact.attribute if own else f"{fact.subject} · {fact.attribute}"
    return f"- {about}: {fact.value} (said {fact.recorded_at.date().isoformat()})"


def _said(fact: Fact) -> int:
    return microseconds(fact.recorded_at)
