"""Facts: what a person stated in all of their conversations, with evidence and time.

The facts are a view of the log: `testimony` reads what messages state, and `FactState` adds the
statements in the order they were said. A newer value of a slot outdates the older one; both are
kept. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Self

from firnline.digest.fact import (
    DatedStatement,
    Fact,
    Place,
    Revert,
    fact_from_json,
    fact_to_json,
    importance,
)
from firnline.digest.succession import IT, Slots, SpokenStatement, agree
from firnline.errors import StoreCorrupt
from firnline.language import prose
from firnline.language.statements import patterns as slot_patterns
from firnline.language.statements.patterns import Statement
from firnline.log import limits
from firnline.log.message import from_microseconds, microseconds

FIRST: Final[Place] = (-(1 << 62), "", -1, -1)
_SPOKEN_MAX: Final = 4
_WITHOUT_FACT_MAX: Final = 16
_TIDY_STEP: Final = 256
"""After so many statements, slots without any are removed."""
_FORMAT: Final = 2
"""Of a stored state; another one is computed again."""


class FactState:
    """The facts after some statements; `add` adds the next one, in the order they were said.

    `facts` are those that hold and those that have ended, by id. If it `forgets`, it has only those
    that hold or have yet to end, and of too many the least important: then its size is limited, and
    it is not `complete`.
    """

    def __init__(self, person: str, *, forgets: bool = False) -> None:
        self.person, self.last = person, FIRST
        self.facts: dict[str, Fact] = {}
        self.complete = True
        self._forgets = forgets
        self._slots = Slots({}, {}, {})
        self._importance: dict[str, tuple[int, int, str]] = {}
        self._spoken: dict[str, list[SpokenStatement]] = {}  # of each fact that holds
        self._fact_of: dict[SpokenStatement, str] = {}
        self._count = 0
        self.said: dict[str, set[str]] = {}  # the ids of the statements of each fact

    @property
    def in_force(self) -> list[Fact]:
        """The facts that nothing has ended, in the order in which they were first said."""
        return [self.facts[id_] for id_ in self._spoken]

    def now(self, clock: datetime) -> datetime:
        """The time for what holds now: of the clock, or the newest statement's if that is later."""
        return max(clock, from_microseconds(max(self.last[0], 0)))

    def add(self, said: DatedStatement) -> None:
        """Add a statement that was said after all before it."""
        self.last = said.place
        if said.is_past:
            self._add_past(said)
            return
        one = said.statement
        spoken = SpokenStatement(self._count, said.speaker, one)
        self._count += 1
        self._slots.by.clear()
        key = self._slots.add(spoken)
        ended = list(self._slots.by)
        since = self._since(said, ended)
        fact = None
        if one.value and key[1] not in (slot_patterns.CHANGE, slot_patterns.ENDED) and key[0] != IT:
            fact = self._confirmed(key, said) or self._new_fact(key, said, since, ended)
            self.facts[fact.id] = fact
            self._spoken.setdefault(fact.id, []).append(spoken)
            self._fact_of[spoken] = fact.id
            if not self._forgets:
                self.said.setdefault(fact.id, set()).add(said.id)
        for old in ended:
            self._end(old, said, since, fact)
        self._tidy(key, fact)

    def _add_past(self, said: DatedStatement) -> None:
        """Add what held until a time before it was said: it replaces nothing that holds now."""
        one = said.statement
        ending = said._replace(statement=one._replace(value="", old=one.value), since=said.until)
        held = len(self._spoken)
        self.add(ending._replace(until=None))
        if len(self._spoken) < held or self._forgets:
            return  # it was known, and has ended
        spoken = SpokenStatement(self._count, said.speaker, one)
        fact = self._new_fact((spoken.subject, one.slot), said, said.since or said.until or 0, ())
        self.facts[fact.id] = fact
        self.said.setdefault(fact.id, set()).add(said.id)

    def _since(self, said: DatedStatement, ended: Iterable[SpokenStatement]) -> int:
        """From when it holds: as it says, unless what it ends was said to hold after that."""
        facts = [self.facts[id_] for id_ in map(self._fact_of.get, ended) if id_ is not None]
        known = [microseconds(one.said_at) for fact in facts for one in fact.evidence]
        return said.at if said.since is None or said.since <= max(known, default=0) else said.since

    def _confirmed(self, key: tuple[str, str], said: DatedStatement) -> Fact | None:
        """The fact that this says again, with the new evidence."""
        value = said.statement.value
        for spoken in reversed(self._slots.in_force[key]):
            id_ = self._fact_of.get(spoken)
            if id_ is not None and agree(spoken.statement.value, value):
                fact = self.facts[id_]
                kept = (*fact.evidence[:1], *fact.evidence[1:][2 - limits.EVIDENCE_MAX :])
                there = {(one.quote, microseconds(one.said_at)) for one in fact.evidence}
                copied = (said.quote, said.at) in there  # a branch has the same message
                same = prose.fold_text(value) in prose.fold_text(fact.value)
                earlier = said.since is not None and from_microseconds(said.since) < fact.valid_from
                return replace(
                    fact,
                    value=fact.value if same else value,
                    evidence=fact.evidence if copied else (*kept, said.evidence),
                    valid_from=from_microseconds(said.since or 0) if earlier else fact.valid_from,
                )
        return None

    def _new_fact(
        self,
        key: tuple[str, str],
        said: DatedStatement,
        since: int,
        ended: Iterable[SpokenStatement],
    ) -> Fact:
        subject, attribute = self._label(key, said, ended)
        return Fact(
            id=said.id,
            person=self.person,
            subject=subject,
            attribute=attribute,
            value=said.statement.value,
            evidence=(said.evidence,),
            valid_from=from_microseconds(since),
            valid_until=None if said.until is None else from_microseconds(said.until),
            source=said.source,
        )

    def _label(
        self, key: tuple[str, str], said: DatedStatement, ended: Iterable[SpokenStatement]
    ) -> tuple[str, str]:
        """The subject and attribute for people: of the facts of the slot, or as it says."""
        ids = map(self._fact_of.get, (*ended, *self._slots.in_force.get(key, ())))
        if alike := next(filter(None, ids), None):
            return self.facts[alike].subject, self.facts[alike].attribute
        about, slot = key
        one = said.statement
        if one.thing and about:
            return about, f"{about} · {slot}"
        if one.subject:
            return f"{one.subject} of {said.speaker}" if said.speaker else one.subject, slot
        return said.speaker or self.person, slot

    def _end(
        self, old: SpokenStatement, said: DatedStatement, since: int, successor: Fact | None
    ) -> None:
        """End the fact of an outdated statement, if no other statement of it is in force."""
        id_ = self._fact_of.pop(old, None)
        if id_ is None:
            return
        self._spoken[id_].remove(old)
        if self._spoken[id_]:
            return
        del self._spoken[id_]
        fact = self.facts.pop(id_)
        if not self._forgets or since > said.at:
            self.facts[id_] = replace(
                fact,
                valid_until=from_microseconds(since),
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
        if self._count % _TIDY_STEP == 0:
            for empty in [name for name, those in self._slots.in_force.items() if not those]:
                self._slots.close(empty)
        if self._forgets:
            self._forget()

    def _forget(self) -> None:
        """Drop what has ended by now, and of too many facts those that matter least."""
        now = from_microseconds(self.last[0])
        for id_ in [id_ for id_ in self.facts if id_ not in self._spoken]:
            until = self.facts[id_].valid_until
            if until is not None and until <= now:
                del self.facts[id_]
        while len(self._spoken) > limits.FACTS_HELD:
            self.complete = False
            least = max(self._spoken, key=self._rank)
            self._importance.pop(least, None)
            for spoken in self._spoken.pop(least):
                del self._fact_of[spoken]
                for those in self._slots.in_force.values():
                    if spoken in those:
                        those.remove(spoken)
            del self.facts[least]

    def _rank(self, id_: str) -> tuple[int, int, str]:
        """The importance of a fact, which does not change while it holds."""
        if id_ not in self._importance:
            self._importance[id_] = importance(self.facts[id_])
        return self._importance[id_]

    # -- stored ---------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """What `from_json` restores: the facts that hold, and the statements in force."""
        held = [
            [*key, [[*one[:2], *one.statement, self._fact_of.get(one)] for one in there]]
            for key, there in self._slots.in_force.items()
            if there
        ]
        ids = [*self._spoken, *(id_ for id_ in self.facts if id_ not in self._spoken)]
        facts = [fact_to_json(self.facts[id_]) for id_ in ids]
        return {
            "format": _FORMAT,
            "last": self.last,
            "count": self._count,
            "complete": self.complete,
            "holding": len(self._spoken),
            "facts": facts,
            "held": held,
        }

    @classmethod
    def from_json(cls, person: str, data: Mapping[str, Any]) -> Self:
        """The state that was stored; `StoreCorrupt` if it is damaged, or of another format."""
        state = cls(person, forgets=True)
        try:
            if data["format"] == _FORMAT:
                state._restore(data)
                return state
        except (KeyError, TypeError, ValueError) as error:
            raise StoreCorrupt(f"the stored facts of {person!r} are damaged") from error
        raise StoreCorrupt(f"the stored facts of {person!r} are of another format")

    def _restore(self, data: Mapping[str, Any]) -> None:
        self.last, self._count = tuple(data["last"]), data["count"]
        self.complete = data["complete"]
        for at, row in enumerate(data["facts"]):
            fact = fact_from_json(self.person, row)
            self.facts[fact.id] = fact
            if at < data["holding"]:
                self._spoken[fact.id] = []
        for subject, slot, there in data["held"]:
            spoken = [
                (SpokenStatement(number, speaker, Statement(*one)), id_)
                for number, speaker, *one, id_ in there
            ]
            self._slots.open((subject, slot)).extend(one for one, _ in spoken)
            for one, id_ in spoken:
                if id_ is not None:
                    self._fact_of[one] = id_
                    self._spoken[id_].append(one)
        for those in self._spoken.values():
            those.sort()


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
