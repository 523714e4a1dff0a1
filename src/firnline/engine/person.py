"""What is known of a person as a value, and times as they are asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from firnline.digest.fact import Fact
from firnline.errors import InputError
from firnline.log.entry import Erased, Head


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What holds of a person now, as the text that contexts carry, with the facts it rests on.

    The version grows whenever the text changes.
    """

    person: str
    text: str = ""
    version: int = 0
    facts: tuple[Fact, ...] = ()

    @property
    def receipt(self) -> dict[str, Any]:
        """What the text was made from: its facts, and the messages they were said in."""
        places = {(one.conversation, one.seq) for fact in self.facts for one in fact.evidence}
        conversations = {conversation for conversation, _ in places}
        return {
            "facts": len(self.facts),
            "messages": len(places),
            "conversations": len(conversations),
            "version": self.version,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person: how many conversations are with them, and when the newest was updated."""

    person: str
    conversations: int
    updated_at: datetime


async def people_in(heads: AsyncIterator[Head]) -> list[Person]:
    """The people whom these conversations are with, by name."""
    found: dict[str, Person] = {}
    async for head in heads:
        if head.person is None:
            continue
        known = found.get(head.person)
        found[head.person] = Person(
            person=head.person,
            conversations=known.conversations + 1 if known else 1,
            updated_at=max(known.updated_at, head.updated_at) if known else head.updated_at,
        )
    return [found[name] for name in sorted(found, key=str.encode)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedPerson:
    """The certificate of a person's erasure: that of each conversation, and of the facts.

    `survives` are the conversations that still hold copies of messages.
    """

    person: str
    conversations: tuple[Erased, ...]
    facts: int
    erased_at: datetime
    survives: tuple[str, ...] = ()


def moment(name: str, at: datetime | date | str | None) -> datetime | None:
    """A time that was given as a datetime, or as a date, which is the end of that day in UTC."""
    if isinstance(at, str):
        try:
            at = (
                date.fromisoformat(at)
                if len(at) == len("2026-09-01")
                else datetime.fromisoformat(at)
            )
        except ValueError as error:
            raise InputError(f"{name}: {at!r} is no date or time, as in 2026-09-01") from error
    if isinstance(at, datetime):
        if at.utcoffset() is None:
            raise InputError(f"{name} needs a time zone, for example datetime.UTC")
        return at
    if isinstance(at, date):
        return datetime.combine(at, time(), UTC) + timedelta(days=1, microseconds=-1)
    if at is not None:
        raise InputError(f"{name}: expected a datetime or a date, got {type(at).__name__}")
    return None
