"""A fact of a person: what holds, since when, and the words that it rests on. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias

from firnline.language.statements import patterns as slot_patterns
from firnline.language.statements.patterns import Statement
from firnline.log import limits
from firnline.log.message import from_microseconds, microseconds

Place: TypeAlias = tuple[int, str, int, int]
"""When and where something was said: microseconds, conversation, sequence number, position."""
SAID: Final = "said"
"""The source of a fact that is in the words of a conversation."""
INSTRUCTIONS: Final = "instructions"
"""What the person wrote of themselves into the settings of another program."""
MEMORY: Final = "memory"
"""What another program noted of the person, in the third person."""
MODEL: Final = "model"
"""What a model found in the words of a conversation; code has checked it."""
NOTED: Final = (INSTRUCTIONS, MEMORY)
SOURCE_KEY: Final = "fact_source"
"""The field of a message's metadata that says which of these it is."""


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
    `valid_from` until `valid_until`, if an end is known: by the dates in the sentence, else since
    it was said. `ended_by` are the words that ended it, and `superseded_by` is the fact that
    replaced it. It was recorded when its first evidence was said, and withdrawn at `reverted_at`.
    `source` is ``said``, or what else it came from: a ``model`` found it, or ``instructions`` and
    ``memory``, the settings and notes of another program, were imported.
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
    source: str = SAID

    @property
    def kind(self) -> str:
        """``preference``, ``decision`` or ``fact``."""
        return slot_patterns.kind_of(self.attribute)

    @property
    def recorded_at(self) -> datetime:
        """When it was first said."""
        return self.evidence[0].said_at

    def holds_at(self, at: datetime) -> bool:
        """Whether it held at this time."""
        return self.valid_from <= at and (self.valid_until is None or at < self.valid_until)


class DatedStatement(NamedTuple):
    """A statement with its place and its quote; `speaker` is empty if it is the person.

    `since` and `until` are the times that its sentence gives, in microseconds.
    """

    at: int
    conversation: str
    seq: int
    speaker: str
    quote: str
    statement: Statement
    since: int | None = None
    until: int | None = None
    source: str = SAID

    @property
    def place(self) -> Place:
        """Its place in the order in which things were said."""
        return self.at, self.conversation, self.seq, self.statement.start

    @property
    def id(self) -> str:
        """The id of the fact that it would be the first evidence of."""
        text = "\x00".join((self.conversation, str(self.seq), *map(str, self.statement)))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def evidence(self) -> Evidence:
        """Where it was said."""
        return Evidence(self.conversation, self.seq, self.quote, from_microseconds(self.at))

    @property
    def is_past(self) -> bool:
        """Whether it says itself that it no longer holds."""
        return bool(self.statement.value) and self.until is not None and self.until <= self.at


class Revert(NamedTuple):
    """Statements that the application has withdrawn, and when it did."""

    at: int
    ids: frozenset[str]


# -- the profile ------------------------------------------------------------------------------


def importance(fact: Fact) -> tuple[int, int, str]:
    """What facts are ordered by, the most important first; of one kind, the newest first."""
    own = fact.subject == fact.person
    rank = slot_patterns.rank(fact.attribute.removeprefix(f"{fact.subject} · "), own=own)
    return rank, -microseconds(fact.recorded_at), fact.id


def profile_facts(facts: Iterable[Fact]) -> list[Fact]:
    """The facts of a profile, the most important ones first, at most so many."""
    return sorted(facts, key=importance)[: limits.PROFILE_FACTS]


def profile_line(fact: Fact, at: datetime) -> str:
    """A fact as a line of a profile, as of a time."""
    own = fact.subject == fact.person or fact.attribute.startswith(f"{fact.subject} · ")
    about = fact.attribute if own else f"{fact.subject} · {fact.attribute}"
    dates = f"said {_day(fact.recorded_at)}"
    if fact.valid_from > at:
        dates = f"from {_day(fact.valid_from)}, {dates}"
    if fact.valid_until is not None:
        dates = f"until {_day(fact.valid_until)}, {dates}"
    return f"- {about}: {fact.value} ({dates})"


def _day(at: datetime) -> str:
    return at.date().isoformat()


# -- stored -----------------------------------------------------------------------------------


_FIELDS: Final = ("id", "subject", "attribute", "value", "superseded_by", "source")


def fact_to_json(fact: Fact) -> dict[str, Any]:
    """What `fact_from_json` restores."""
    fields: dict[str, Any] = {name: getattr(fact, name) for name in _FIELDS}
    fields["evidence"] = list(map(_evidence_to_json, fact.evidence))
    fields["valid"] = [
        microseconds(fact.valid_from),
        None if fact.valid_until is None else microseconds(fact.valid_until),
    ]
    fields["ended_by"] = None if fact.ended_by is None else _evidence_to_json(fact.ended_by)
    return fields


def fact_from_json(person: str, row: Mapping[str, Any]) -> Fact:
    """The fact that was stored."""
    since, until = row["valid"]
    return Fact(
        **{name: row[name] for name in _FIELDS},
        person=person,
        evidence=tuple(map(_evidence_from_json, row["evidence"])),
        valid_from=from_microseconds(since),
        valid_until=None if until is None else from_microseconds(until),
        ended_by=None if row["ended_by"] is None else _evidence_from_json(row["ended_by"]),
    )


def _evidence_to_json(one: Evidence) -> list[Any]:
    return [one.conversation, one.seq, one.quote, microseconds(one.said_at)]


def _evidence_from_json(row: Sequence[Any]) -> Evidence:
    conversation, seq, quote, at = row
    return Evidence(conversation, seq, quote, from_microseconds(at))
