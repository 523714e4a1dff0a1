"""People: whom conversations are with, and the facts they state, read once from the log.

read      the messages that were not read yet → what they state → cards next to the log
state     the facts that hold, with the statements they rest on: brought up to date, never guessed
facts     every statement of the person, added in the order they were said
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from typing import Any, Final, NamedTuple

from firnline.context.person import PersonMaterial
from firnline.digest.facts import (
    DatedStatement,
    Fact,
    FactState,
    Revert,
    all_facts,
    profile_facts,
    profile_line,
    read_statements,
    statements_of,
)
from firnline.engine.person import Person, Profile, moment
from firnline.errors import InputError, StoreCorrupt, outline
from firnline.log import limits
from firnline.log.entry import Appended, Entry, Head, Key, Scope
from firnline.log.hit import Hit, Hits
from firnline.log.message import microseconds
from firnline.log.text import clean_text
from firnline.log.threads import run_by_size
from firnline.protocols import Clock, Store
from firnline.recall.facts import answering_facts, newest_evidence, put_facts_first
from firnline.recall.pack import shown_tokens
from firnline.recall.search import EntryFinder
from firnline.store import facts as cards
from firnline.store import journal
from firnline.store.cards import PROMPT, prompt_name
from firnline.store.facts import StatedCard
from firnline.transfer.scan import heads

logger: Final = logging.getLogger("firnline")

_REMEMBERED: Final = limits.HEADS_REMEMBERED
_ELSEWHERE_MAX: Final = 8
_LIKELY: Final = 0.1
"""The chance to be evidence that a message of another conversation needs to be in a context."""
_PROGRESS_STEP: Final = 64
"""Messages that state nothing are read again after a restart, up to so many."""


class _Read(NamedTuple):
    """How far a conversation was read for a person's facts; `stored` is what is recorded of it."""

    person: str
    created_at: datetime | None
    next_seq: int
    stored: int


@dataclass(slots=True)
class _Held:
    """The state of a person's facts up to the card with this seal.

    `places` has a card of each conversation that facts rest on: if one is gone, so are facts.
    """

    state: FactState
    seal: str = ""
    version: int = 0
    text: str = ""
    places: dict[str, str] = field(default_factory=dict)


class People:
    """The people of a tenant, and their facts."""

    def __init__(self, store: Store, tenant: str, clock: Clock) -> None:
        self._store, self._tenant, self._clock = store, tenant, clock
        self._finder = EntryFinder(store, clock=clock, conversations=_ELSEWHERE_MAX)
        self._read: OrderedDict[Key, _Read] = OrderedDict()
        self._recorded: OrderedDict[Key, str] = OrderedDict()

    # -- reading the log ----------------------------------------------------------------------

    async def on_append(self, key: Key, appended: Appended, person: str) -> None:
        """After an append to a person's conversation: read what was stated."""
        await self._record(key, person)
        known = self._read.get(key)
        if known is None or known.next_seq != appended[0].seq or known.person != person:
            await self.read(key, person)
        elif len(appended) <= limits.APPEND_READ_MAX:
            await self._add(key, known, appended.entries)

    async def read(self, key: Key, person: str | None = None) -> str | None:
        """Read what was not read yet of a conversation; returns whom it is with."""
        head = await self._store.head(key)
        if head is None or head.person is None or person not in (None, head.person):
            self._read.pop(key, None)
            return head.person if head else None
        known = self._read.get(key)
        if known is None or known[:2] != (head.person, head.created_at):
            done = await cards.progress(self._store, key, head.person)
            known = _Read(head.person, head.created_at, done, done)
        while known.next_seq < head.entries:
            page = await self._store.read(key, known.next_seq, head.seq, limits.READ_PAGE)
            if not page:
                break  # erased meanwhile
            known = await self._add(key, known, page)
        self._remember(key, known)
        return head.person

    async def _add(self, key: Key, known: _Read, entries: Sequence[Entry]) -> _Read:
        """Store what these entries state, and how far the conversation is read."""
        size = sum(len(entry.message.text) for entry in entries)
        work = partial(read_statements, key.conversation, known.person, entries)
        said = await run_by_size(size, work)
        next_seq = entries[-1].seq + 1
        if said:
            span = entries[0].seq, next_seq
            await cards.add_statements(self._store, key, known.person, span, said)
        stored = known.stored
        if said or next_seq - stored >= _PROGRESS_STEP:
            await cards.set_progress(self._store, key, known.person, next_seq)
            stored = next_seq
        known = known._replace(next_seq=next_seq, stored=stored)
        self._remember(key, known)
        return known

    def _remember(self, key: Key, known: _Read) -> None:
        self._read[key] = known
        self._read.move_to_end(key)
        if len(self._read) > _REMEMBERED:
            self._read.popitem(last=False)

    async def _read_all(self, person: str) -> None:
        """Read what was not read yet of all of a person's conversations."""
        async for head in self.conversations(person):
            known = self._read.get(Key(self._tenant, head.conversation))
            if known is None or known.next_seq < head.entries or known.person != person:
                await self.read(Key(self._tenant, head.conversation), person)

    def conversations(self, person: str) -> AsyncIterator[Head]:
        """The heads of a person's conversations."""
        return heads(self._store, self._tenant, person=person)

    async def _record(self, key: Key, person: str) -> None:
        """Record in the journal whom the conversation is with."""
        if self._recorded.get(key) == person:
            return
        stated = await journal.read(self._store, key)
        if stated is None:
            await journal.adopt(self._store, key)
        elif stated.person != person:
            await journal.record(self._store, key, "describe", person=person)
        self._recorded[key] = person
        if len(self._recorded) > _REMEMBERED:
            self._recorded.popitem(last=False)

    def forget(self, key: Key) -> None:
        """Drop what is cached for an erased conversation."""
        self._recorded.pop(key, None)
        self._read.pop(key, None)

    # -- the facts ----------------------------------------------------------------------------

    async def facts(
        self,
        person: str,
        *,
        as_of: datetime | date | str | None = None,
        known_at: datetime | date | str | None = None,
        history: bool = False,
    ) -> list[Fact]:
        """The facts that hold, or held at a time, as known now or at a time; see `Memory.facts`."""
        at, known = moment("as_of", as_of), moment("known_at", known_at)
        await self._read_all(person)
        found = await self._every(person, known)
        if history:
            return found
        found = [fact for fact in found if fact.reverted_at is None]
        if at is not None:
            return [fact for fact in found if fact.holds_at(at)]
        return [fact for fact in found if fact.valid_until is None]

    async def _every(self, person: str, known_at: datetime | None = None) -> list[Fact]:
        stored, _ = await cards.read_until(self._store, self._tenant, person)
        said = [one for card in stored for one in card.said]
        reverts = [card.revert for card in stored if card.revert is not None]
        work = partial(all_facts, person, said, reverts, known_at)
        return await run_by_size(sum(len(one.quote) for one in said), work)

    async def revert(self, person: str, fact_id: str) -> Fact:
        """Withdraw a fact; what it replaced holds again. Returns it."""
        await self._read_all(person)
        stored, _ = await cards.read_until(self._store, self._tenant, person)
        said = [one for card in stored for one in card.said]
        reverts = [card.revert for card in stored if card.revert is not None]
        size = sum(len(one.quote) for one in said)
        ids = await run_by_size(size, partial(statements_of, person, said, reverts))
        if fact_id not in ids:
            raise InputError(f"{person} has no fact {fact_id!r}, or it is reverted already")
        conversation = next(one.conversation for one in said if one.id == fact_id)
        revert = Revert(microseconds(self._clock()), frozenset(ids[fact_id]))
        await cards.add_revert(self._store, Key(self._tenant, conversation), person, revert)
        await self.current(person)
        return next(fact for fact in await self._every(person) if fact.id == fact_id)

    async def rebuild(self, person: str) -> int:
        """Read all of a person's messages again; what was reverted stays so."""
        stored, _ = await cards.read_until(self._store, self._tenant, person)
        names = [card.name for card in stored if card.revert is None]
        await cards.drop(self._store, self._tenant, person, names)
        async for head in self.conversations(person):
            key = Key(self._tenant, head.conversation)
            await cards.set_progress(self._store, key, person, 0)
            self._read.pop(key, None)
            await self.read(key, person)
        await cards.drop_state(self._store, self._tenant, person)
        return len(await self.facts(person))

    async def all(self) -> list[Person]:
        """Every person by name; reads the heads of all conversations."""
        found: dict[str, Person] = {}
        async for head in heads(self._store, self._tenant):
            if head.person is None:
                continue
            known = found.get(head.person)
            found[head.person] = Person(
                person=head.person,
                conversations=known.conversations + 1 if known else 1,
                updated_at=max(known.updated_at, head.updated_at) if known else head.updated_at,
            )
        return [found[name] for name in sorted(found, key=str.encode)]

    # -- recall -------------------------------------------------------------------------------

    async def put_facts_first(
        self, question: str, hits: Hits, scope: Scope, most: tuple[int | None, int | None]
    ) -> Hits:
        """The hits of a recall over a person's conversations, after the facts that answer.

        At most as many hits, or as many of these tokens, as `most` says.
        """
        person, (limit, tokens) = scope.person or "", most
        held = await self._held(person)
        answers = answering_facts(question, held.state.in_force)
        entries: dict[tuple[str, int], Entry] = {}
        for fact in answers:
            one = newest_evidence(fact)
            for entry in await self._store.at(Key(self._tenant, one.conversation), [one.seq]):
                if entry.erased_at is None and scope.has(entry.message):
                    entries[one.conversation, one.seq] = entry
        size = sum(len(hit.message.text) for hit in hits)
        found = await run_by_size(size, partial(put_facts_first, hits, answers, entries, person))
        while tokens is not None and sum(map(shown_tokens, found)) > tokens:
            found.pop()
        return Hits(found[:limit], hits.degraded, hits.earned)

    async def material(self, key: Key, person: str, question: str | None) -> PersonMaterial:
        """What a context says of a person; what it costs depends on what it finds."""
        if (known := self._read.get(key)) is None or known.person != person:
            await self.read(key, person)
        held = await self._held(person)
        first = await self._store.conversations(self._tenant, person=person, limit=2)
        others = any(head.conversation != key.conversation for head in first)
        hits: tuple[Hit, ...] = ()
        if others and question:
            scope = Scope(person=person)
            # What a fact answers needs no search, which costs more the more there is.
            answers = answering_facts(question, held.state.in_force)
            found = Hits() if answers else await self._find(question, scope)
            found = await self.put_facts_first(question, found, scope, (None, None))
            own = key.conversation
            apart = [hit for hit in found if own not in (hit.conversation, *hit.also_in)]
            likely = [hit for hit in apart if hit.chance >= _LIKELY or "fact" in hit.parts]
            hits = tuple(likely[:_ELSEWHERE_MAX])
        lines = tuple(held.text.splitlines())
        return PersonMaterial(lines=lines, version=held.version, hits=hits, others=others)

    async def _find(self, question: str, scope: Scope) -> Hits:
        """What fits a question, found by its words."""
        try:
            return await self._finder.find(
                self._tenant, clean_text(question), scope, limit=2 * _ELSEWHERE_MAX
            )
        except StoreCorrupt as error:
            logger.warning("nothing is recalled of a person: %s", outline(error))
            return Hits()

    # -- changes and erasure ------------------------------------------------------------------

    async def leave(self, key: Key, person: str) -> None:
        """Before a conversation is given to another person: nothing of it is known of the first."""
        head = await self._store.head(key)
        if head is not None and head.person not in (None, person):
            await self.withdraw(key)

    async def withdraw(self, key: Key, first_seq: int = 0) -> None:
        """Drop what a conversation stated from `first_seq` on, before it is erased or given away.

        What is left is read again when it is needed; until then, nothing of it is known. Recorded
        prompts of the person's conversations may quote it, so they are dropped, too.
        """
        head = await self._store.head(key)
        if head is None or head.person is None:
            return
        person = head.person
        stored, _ = await cards.read_until(self._store, self._tenant, person)
        own = [card for card in stored if card.conversation == key.conversation]
        gone = [card for card in own if card.next_seq > first_seq or card.revert]
        await cards.drop_state(self._store, self._tenant, person)
        await cards.drop(self._store, self._tenant, person, [card.name for card in gone])
        starts = [card.first_seq for card in gone if card.revert is None]
        await cards.set_progress(self._store, key, person, min([first_seq, *starts]))
        self._read.pop(key, None)
        await self._drop_prompts(person)

    async def drop(self, person: str) -> int:
        """Drop all that is known of a person, before their conversations are erased."""
        await cards.drop_state(self._store, self._tenant, person)
        await self._drop_prompts(person)
        return await cards.drop(self._store, self._tenant, person)

    async def _drop_prompts(self, person: str) -> None:
        async for head in self.conversations(person):
            prefix = prompt_name(head.conversation)
            await self._store.drop_cards(PROMPT, self._tenant, prefix=prefix)

    # -- the profile --------------------------------------------------------------------------

    async def profile(self, person: str) -> Profile:
        """What holds of a person now."""
        await self._read_all(person)
        return await self.current(person)

    async def current(self, person: str) -> Profile:
        """The profile from what was read so far: its cost does not depend on the conversations."""
        held = await self._held(person)
        facts = tuple(profile_facts(held.state.in_force))
        return Profile(person=person, text=held.text, version=held.version, facts=facts)

    async def _held(self, person: str) -> _Held:
        """The facts that hold: as stored if nothing has changed since, else brought up to date."""
        newest, stored = await asyncio.gather(
            cards.newest(self._store, self._tenant, person), self._stored(person)
        )
        if newest is None:
            if stored is not None:
                await cards.drop_state(self._store, self._tenant, person)
            return _Held(FactState(person))
        if stored is not None and not await self._is_supported(stored):
            stored = None
        if stored is not None and stored.seal == newest.seal:
            return stored
        held = await self._updated(person, stored)
        await cards.store_state(self._store, self._tenant, person, _to_json(held))
        return held

    async def _stored(self, person: str) -> _Held | None:
        fields = await cards.stored_state(self._store, self._tenant, person)
        try:
            return _from_json(person, fields) if fields else None
        except (StoreCorrupt, KeyError, TypeError):
            return None  # it is a view, and is made again

    async def _is_supported(self, held: _Held) -> bool:
        return await cards.exist(self._store, self._tenant, list(held.places.values()))

    async def _updated(self, person: str, stored: _Held | None) -> _Held:
        """The state after the newest card: from the stored one, or from the beginning."""
        if stored is not None:
            added, there = await cards.read_until(self._store, self._tenant, person, stored.seal)
            new = [one for card in added for one in card.said]
            in_order = all(one.place > stored.state.last for one in new)
            if there and in_order and not any(card.revert for card in added):
                return await run_by_size(
                    sum(len(one.quote) for one in new),
                    partial(_extended, stored, stored.state, added, new),
                )
        every, _ = await cards.read_until(self._store, self._tenant, person)
        gone = {id_ for card in every if card.revert is not None for id_ in card.revert.ids}
        new = [one for card in every for one in card.said if one.id not in gone]
        state = FactState(person, forgets=True)
        work = partial(_extended, stored, state, every, new)
        return await run_by_size(sum(len(one.quote) for one in new), work)


def _extended(
    before: _Held | None,
    state: FactState,
    added: Sequence[StatedCard],
    new: Sequence[DatedStatement],
) -> _Held:
    """The state with more statements, each once."""
    once = {one.id: one for one in new}
    for one in sorted(once.values(), key=lambda one: one.place):
        state.add(one)
    lines = [profile_line(fact) for fact in profile_facts(state.in_force)]
    text = "\n".join(lines)
    version = before.version if before else 0
    if before is None or before.text != text:
        version = max(version + 1, added[-1].number if before is None and added else 0)
    known = {
        **(before.places if before else {}),
        **{card.conversation: card.name for card in added},
    }
    places = {one.conversation for fact in state.in_force for one in fact.evidence}
    kept = {name: card for name, card in known.items() if name in places}
    seal = added[-1].seal if added else (before.seal if before else "")
    return _Held(state, seal, version, text, kept)


def _to_json(held: _Held) -> dict[str, Any]:
    names = ("seal", "version", "text", "places")
    fields = {name: getattr(held, name) for name in names}
    return {"person": held.state.person, **fields, "state": held.state.to_json()}


def _from_json(person: str, fields: dict[str, Any]) -> _Held:
    names = ("seal", "version", "text", "places")
    state = FactState.from_json(person, fields["state"])
    return _Held(state, *(fields[name] for name in names))
