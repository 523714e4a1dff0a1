"""The facts of a person that hold, ready for contexts: a view, stored next to the log. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, Self

from firnline.digest.fact import DatedStatement, Fact, profile_facts, profile_line
from firnline.digest.facts import FactState
from firnline.errors import StoreCorrupt
from firnline.log.message import encode_json, microseconds
from firnline.store.facts import StatedCard

_FIELDS: Final = ("seal", "version", "text", "places", "changes_at", "erasures")


class HeldFacts(NamedTuple):
    """The state of a person's facts up to the card with this seal, and the profile's text.

    `places` has a card of each conversation that facts rest on: if one is gone, so are facts. The
    text changes by itself at `changes_at`, in microseconds, when a fact begins or ends to hold.
    `erasures` counts what was erased before; `body` is this as it is stored.
    """

    state: FactState
    seal: str = ""
    version: int = 0
    text: str = ""
    places: Mapping[str, str] = {}
    changes_at: int | None = None
    erasures: int = 0
    body: bytes = b""

    @classmethod
    def empty(cls, person: str) -> Self:
        """Nothing is known."""
        return cls(FactState(person, forgets=True))

    def holding(self, clock: datetime) -> list[Fact]:
        """The facts that hold now, in their order."""
        now = self.state.now(clock)
        found = [fact for fact in self.state.facts.values() if fact.holds_at(now)]
        return sorted(found, key=lambda fact: (fact.valid_from, fact.id))

    def shown(self, clock: datetime) -> list[Fact]:
        """The facts for a profile: those that hold, and those that will."""
        facts, now = self.state.facts.values(), self.state.now(clock)
        return [fact for fact in facts if fact.valid_until is None or fact.valid_until > now]

    def is_current(self, seal: str, erasures: int, now: datetime) -> bool:
        """Whether nothing was said or erased since, and no fact has begun or ended to hold."""
        same = (self.seal, self.erasures) == (seal, erasures)
        return same and (self.changes_at is None or microseconds(now) < self.changes_at)

    def support(self, facts: Iterable[Fact]) -> list[str]:
        """The cards that some of the facts rest on."""
        names = {one.conversation for fact in facts for one in fact.evidence}
        return sorted({self.places[name] for name in names if name in self.places})


def updated(
    before: HeldFacts, added: Sequence[StatedCard], new: Iterable[DatedStatement], clock: datetime
) -> HeldFacts:
    """The facts with more statements, each once; it uses up `before`."""
    state = before.state
    once = {one.id: one for one in new}
    for one in sorted(once.values(), key=lambda one: one.place):
        state.add(one)
    held = before._replace(seal=added[-1].seal if added else before.seal)
    facts, now = held.shown(clock), state.now(clock)
    text = "\n".join(profile_line(fact, now) for fact in profile_facts(facts))
    known = {**before.places, **{card.conversation: card.name for card in added if card.said}}
    names = {one.conversation for fact in state.facts.values() for one in fact.evidence}
    times = (at for fact in facts for at in (fact.valid_from, fact.valid_until) if at and at > now)
    return held._replace(
        text=text,
        version=before.version + (text != before.text),
        places={name: card for name, card in known.items() if name in names},
        changes_at=min(map(microseconds, times), default=None),
    )


def to_body(held: HeldFacts) -> bytes:
    """What `from_body` restores."""
    fields: dict[str, Any] = {name: getattr(held, name) for name in _FIELDS}
    fields |= {"person": held.state.person, "state": held.state.to_json()}
    return encode_json(fields).encode()


def from_body(person: str, body: bytes) -> HeldFacts | None:
    """The facts that were stored; None if there are none, or they cannot be read: it is a view."""
    try:
        fields = json.loads(body) if body else None
        if fields is None:
            return None
        state = FactState.from_json(person, fields["state"])
        return HeldFacts(state, body=body, **{name: fields[name] for name in _FIELDS})
    except (StoreCorrupt, KeyError, TypeError, ValueError):
        return None


def version_in(body: bytes) -> int:
    """The version of a stored profile, also of one that cannot be read otherwise."""
    try:
        version = json.loads(body)["version"] if body else 0
    except (ValueError, KeyError, TypeError):
        return 0
    return version if type(version) is int else 0
