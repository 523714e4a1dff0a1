"""People: whom conversations are with, and the facts they state, read once from the log.

read      the messages that were not read yet → what they state → cards next to the log
state     the facts that hold, with the statements they rest on: brought up to date, never guessed
facts     every statement of the person, added in the order they were said
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from firnline.context.person import PersonMaterial
from firnline.digest.fact import DatedStatement, Fact, Revert, profile_facts
from firnline.digest.facts import all_facts, statements_of
from firnline.engine.fact_proposer import replay
from firnline.engine.fact_reader import FactReader
from firnline.engine.held_facts import HeldFacts, from_body, to_body, updated, version_in
from firnline.engine.limits import ELSEWHERE_MAX
from firnline.engine.person import Person, Profile, moment, people_in
from firnline.errors import FirnlineError, InputError, StoreCorrupt, outline
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
from firnline.store import fact_proposals, journal
from firnline.store import facts as cards
from firnline.store.cards import PROMPT, prompt_name
from firnline.store.facts import StatementChain
from firnline.store.seals import ADVICE
from firnline.transfer.scan import heads

logger: Final = logging.getLogger("firnline")

_MADE_AGAIN: Final = "made again from the log and the journal"
_LIKELY: Final = 0.1
"""The chance to be evidence that a message of another conversation needs to be in a context."""


class People:
    """The people of a tenant, and their facts."""

    def __init__(self, store: Store, tenant: str, clock: Clock) -> None:
        self._store, self._tenant, self._clock = store, tenant, clock
        self.chain = StatementChain(store)
        self.reader = FactReader(store, tenant, self.chain)
        self.known = self.reader.known  # the conversations that are with a person
        self._finder = EntryFinder(store, clock=clock, conversations=ELSEWHERE_MAX)
        self._recorded: OrderedDict[Key, str] = OrderedDict()
        self._held: OrderedDict[str, HeldFacts] = OrderedDict()
        self._support: dict[str, tuple[HeldFacts, list[str]]] = {}  # the cards that these rest on
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._catching_up: asyncio.Task[None] | None = None

    # -- reading the log ----------------------------------------------------------------------

    def start(self) -> None:
        """Read in the background what was stored while this process did not run."""
        if self._catching_up is None or self._catching_up.done():
            work = self._catch_up()
            context = contextvars.Context()  # it does not belong to the request that started it
            self._catching_up = asyncio.get_running_loop().create_task(work, context=context)

    async def close(self) -> None:
        """Stop reading in the background; the rest is read when it is needed."""
        task, self._catching_up = self._catching_up, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        with suppress(FirnlineError):  # they are read again, that is all
            await self.reader.flush()

    async def _catch_up(self) -> None:
        try:
            await self.reader.catch_up(None)
        except FirnlineError as error:
            logger.warning("facts are read later: %s", outline(error))

    async def on_append(self, key: Key, appended: Appended, person: str | None) -> None:
        """After an append to a person's conversation: read what was stated."""
        if person is not None:
            await self._record(key, person)
        await self.reader.on_append(key, appended, person)

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
        if len(self._recorded) > limits.HEADS_REMEMBERED:
            self._recorded.popitem(last=False)

    def forget(self, key: Key) -> None:
        """Drop what is cached for an erased conversation."""
        self._recorded.pop(key, None)
        self.reader.forget(key)

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
        await self.reader.catch_up(person)
        held = await self.held(person)
        if (at, known, history) == (None, None, False) and held.state.complete:
            return held.holding(self._clock())
        found = await self._every(person, known)
        if history:
            return [fact for fact in found if at is None or fact.holds_at(at)]
        at = at or known or held.state.now(self._clock())
        return [fact for fact in found if fact.reverted_at is None and fact.holds_at(at)]

    async def _every(self, person: str, known_at: datetime | None = None) -> list[Fact]:
        said, reverts = await self._said(person)
        work = partial(all_facts, person, said, reverts, known_at)
        return await run_by_size(_size(said), work)

    async def count(self, person: str) -> int:
        """How many facts are known of a person, ended and reverted ones too."""
        return len(await self._every(person))

    async def _said(self, person: str) -> tuple[list[DatedStatement], list[Revert]]:
        """All that a person stated, and what of it was reverted."""
        stored, _ = await cards.read_until(self._store, self._tenant, person)
        said = [one for card in stored for one in card.said]
        return said, [card.revert for card in stored if card.revert is not None]

    async def revert(self, person: str, fact_id: str) -> Fact:
        """Withdraw a fact; what it replaced holds again. Returns it."""
        await self.reader.catch_up(person)
        said, reverts = await self._said(person)
        ids = await run_by_size(_size(said), partial(statements_of, person, said, reverts))
        if fact_id not in ids:
            raise InputError(f"{person} has no fact {fact_id!r}, or it is reverted already")
        gone = frozenset(ids[fact_id])
        names = sorted({one.conversation for one in said if one.id in gone})
        revert = Revert(microseconds(self._clock()), gone)
        fields = {"person": person, "at": revert.at, "ids": sorted(gone)}
        for name in names:
            await journal.record(self._store, Key(self._tenant, name), "revert_fact", **fields)
        await self.chain.add_revert(self._tenant, person, revert, names)
        await self.held(person)
        return next(fact for fact in await self._every(person) if fact.id == fact_id)

    async def rebuild(self, person: str) -> int:
        """Read all of a person's messages again; what was reverted stays so."""
        stored, _ = await cards.read_until(self._store, self._tenant, person)
        names = [card.name for card in stored if card.revert is None]
        await cards.drop(self._store, self._tenant, person, names)
        async for head in self.conversations(person):
            await self._read_again(Key(self._tenant, head.conversation), person)
        return len(await self.facts(person))

    async def _read_again(self, key: Key, person: str) -> None:
        """Read all of a conversation; what a model proposed for it is recorded."""
        await self.reader.restart(key, person, 0)
        await self.reader.read(key, person)
        await replay(self._store, self.chain, key, person)

    async def repair(self) -> list[str]:
        """Make the facts of people again whose cards are damaged; returns whose.

        While a conversation is damaged they are left as they are: it may be one of theirs.
        """
        people: dict[str, list[Key]] = {}
        unread = ""
        for name in await self._store.names(self._tenant):
            key = Key(self._tenant, name)
            try:
                head = await self._store.head(key)
            except StoreCorrupt:
                unread = name
                continue
            if head is not None and head.person is not None:
                people.setdefault(head.person, []).append(key)
        damaged = [person for person in people if not await self._is_sound(person)]
        for person in damaged if not unread else ():
            await self._make_again(person, people[person])
        outcome = f"not restored: {unread} is damaged" if unread else _MADE_AGAIN
        return [f"{person}: the facts: {outcome}" for person in damaged]

    async def _is_sound(self, person: str) -> bool:
        try:
            await cards.erasures(self._store, self._tenant, person)
            await cards.read_until(self._store, self._tenant, person)
        except StoreCorrupt:
            return False
        return True

    async def _make_again(self, person: str, conversations: Sequence[Key]) -> None:
        """The facts from the log alone, and what the journals of its conversations revert."""
        self._held.pop(person, None)
        await cards.drop(self._store, self._tenant, person)
        await cards.drop_state(self._store, self._tenant, person)
        await cards.drop_erasures(self._store, self._tenant, person)
        reverts: dict[Revert, list[str]] = {}
        for key in conversations:
            stated = await journal.read(self._store, key)
            for one in stated.reverted if stated else ():
                if one["person"] == person:
                    revert = Revert(one["at"], frozenset(one["ids"]))
                    reverts.setdefault(revert, []).append(key.conversation)
            await self._read_again(key, person)
        for revert, names in reverts.items():
            await self.chain.add_revert(self._tenant, person, revert, names)

    async def all(self) -> list[Person]:
        """Every person by name; reads the heads of all conversations."""
        return await people_in(heads(self._store, self._tenant))

    # -- the facts that hold ------------------------------------------------------------------

    async def profile(self, person: str) -> Profile:
        """What holds of a person now."""
        await self.reader.catch_up(person)
        return await self.current(person)

    async def current(self, person: str) -> Profile:
        """The profile from what was read so far: its cost does not depend on the conversations."""
        held = await self.held(person)
        facts = tuple(profile_facts(held.shown(self._clock())))
        return Profile(person=person, text=held.text, version=held.version, facts=facts)

    async def held(self, person: str) -> HeldFacts:
        """The facts that hold: as stored if nothing has changed since, else brought up to date."""
        async with self._locks.setdefault(person, asyncio.Lock()):
            while True:
                held, erasures = await self._look(person)
                if erasures == await cards.erasures(self._store, self._tenant, person):
                    return held
                # Erased while it was read: nothing of it may stay.
                self._held.pop(person, None)
                await cards.drop_state(self._store, self._tenant, person)

    async def _look(self, person: str) -> tuple[HeldFacts, int]:
        """The facts that hold, and how often something of the person was erased before."""
        where, now = (self._store, self._tenant, person), self._clock()
        newest, erasures = await asyncio.gather(cards.newest(*where), cards.erasures(*where))
        known, seal = self._held.get(person), newest.seal if newest else ""
        current = known if known and known.is_current(seal, erasures, now) else None
        if current and await self._is_supported(current, now):
            return self._keep(person, current), erasures
        body = await cards.stored_state(*where)
        stored = self._parsed(person, body)
        if stored is not None and not await self._is_supported(stored, now):
            stored = None
        if stored is not None and stored.is_current(seal, erasures, now):
            return self._keep(person, stored), erasures
        if newest is None and not body:
            return HeldFacts.empty(person), erasures
        if stored is not None and stored.erasures != erasures:
            stored = None
        held = await self._updated(person, stored, version_in(body))
        body = to_body(held._replace(erasures=erasures))
        await cards.store_state(*where, body)
        return self._keep(person, held._replace(erasures=erasures, body=body)), erasures

    def _parsed(self, person: str, body: bytes) -> HeldFacts | None:
        known = self._held.get(person)
        if known is not None and known.body == body:
            return known
        return from_body(person, body)

    def _keep(self, person: str, held: HeldFacts) -> HeldFacts:
        self._held[person] = held
        self._held.move_to_end(person)
        if len(self._held) > limits.PEOPLE_REMEMBERED:
            gone, _ = self._held.popitem(last=False)
            self._support.pop(gone, None)
        return held

    async def _is_supported(self, held: HeldFacts, now: datetime) -> bool:
        """Whether the conversations that the profile rests on are still there."""
        known = self._support.get(held.state.person)
        if known is None or known[0] is not held:
            known = held, held.support(profile_facts(held.shown(now)))
            self._support[held.state.person] = known
        return await cards.exist(self._store, self._tenant, known[1])

    async def _updated(self, person: str, stored: HeldFacts | None, version: int) -> HeldFacts:
        """The state after the newest card: from the stored one, or from the beginning."""
        now = self._clock()
        if stored is not None:
            added, there = await cards.read_until(self._store, self._tenant, person, stored.seal)
            new = [one for card in added for one in card.said]
            in_order = all(one.place > stored.state.last for one in new)
            if there and in_order and not any(card.revert for card in added):
                self._held.pop(person, None)  # its state is used up
                return await run_by_size(_size(new), partial(updated, stored, added, new, now))
        every, _ = await cards.read_until(self._store, self._tenant, person)
        gone = {id_ for card in every if card.revert is not None for id_ in card.revert.ids}
        new = [one for card in every for one in card.said if one.id not in gone]
        text = stored.text if stored is not None else ""
        start = HeldFacts.empty(person)._replace(version=version, text=text)
        return await run_by_size(_size(new), partial(updated, start, every, new, now))

    # -- recall -------------------------------------------------------------------------------

    async def put_facts_first(
        self, question: str, hits: Hits, scope: Scope, most: tuple[int | None, int | None]
    ) -> Hits:
        """The hits of a recall over a person's conversations, after the facts that answer.

        At most as many hits, or as many of these tokens, as `most` says.
        """
        person = scope.person or ""
        try:
            await self.reader.catch_up(person, limits.UNREAD_AT_ONCE)
            held = await self.held(person)
        except StoreCorrupt as error:
            return Hits(hits, [*hits.degraded, _damaged(person, error)], hits.earned)
        answers = answering_facts(question, held.state.in_force)
        return await self._with_answers(answers, hits, scope, most)

    async def _with_answers(
        self, answers: Sequence[Fact], hits: Hits, scope: Scope, most: tuple[int | None, int | None]
    ) -> Hits:
        person, (limit, tokens) = scope.person or "", most
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
        """What a context says of a person; what it costs depends on what it finds.

        If the person's facts are damaged, it says so, and nothing of the person.
        """
        try:
            return await self._material(key, person, question)
        except StoreCorrupt as error:
            return PersonMaterial(problems=(_damaged(person, error),))

    async def _material(self, key: Key, person: str, question: str | None) -> PersonMaterial:
        if await self.reader.catch_up(person, limits.UNREAD_AT_ONCE):
            self.start()  # the rest, in the background
        held = await self.held(person)
        first = await self._store.conversations(self._tenant, person=person, limit=2)
        others = any(head.conversation != key.conversation for head in first)
        hits: tuple[Hit, ...] = ()
        problems: tuple[str, ...] = ()
        if others and question:
            scope = Scope(person=person)
            # What a fact answers needs no search, which costs more the more there is.
            answers = answering_facts(question, held.state.in_force)
            found = Hits() if answers else await self._find(question, scope)
            found = await self._with_answers(answers, found, scope, (None, None))
            own = key.conversation
            apart = [hit for hit in found if own not in (hit.conversation, *hit.also_in)]
            likely = [hit for hit in apart if hit.chance >= _LIKELY or "fact" in hit.parts]
            hits = tuple(likely[:ELSEWHERE_MAX])
            problems = tuple(found.degraded)
        lines = tuple(held.text.splitlines())
        return PersonMaterial(
            lines=lines, version=held.version, hits=hits, others=others, problems=problems
        )

    async def _find(self, question: str, scope: Scope) -> Hits:
        """What fits a question, found by its words."""
        try:
            return await self._finder.find(
                self._tenant, clean_text(question), scope, limit=2 * ELSEWHERE_MAX
            )
        except StoreCorrupt as error:
            logger.warning("nothing is recalled of a person: %s", outline(error))
            return Hits(degraded=[f"nothing is recalled of the person: {outline(error)}"])

    # -- changes and erasure ------------------------------------------------------------------

    async def leave(self, key: Key, person: str) -> None:
        """Before a conversation is given to another person: nothing of it is known of the first."""
        head = await self._store.head(key)
        if head is not None and head.person not in (None, person):
            await self.withdraw(key)

    async def withdraw(self, key: Key, first_seq: int | None = None) -> None:
        """Drop what a conversation stated, or from `first_seq` on, before it is erased.

        What is left is read again when it is needed; until then, nothing of it is known. What was
        reverted there stays so, unless the whole conversation goes. Recorded prompts of the
        person's conversations may quote it, so they are dropped, too.
        """
        head = await self._store.head(key)
        if head is None or head.person is None:
            return
        person, first = head.person, first_seq or 0
        stored, _ = await cards.read_until(self._store, self._tenant, person)
        own = [card for card in stored if card.conversation == key.conversation]
        gone = [card for card in own if card.revert is None and card.next_seq > first]
        starts = [card.first_seq for card in gone]
        gone += [card for card in own if card.revert is not None and first_seq is None]
        await cards.drop(self._store, self._tenant, person, [card.name for card in gone])
        await self._drop_state(person)
        await fact_proposals.drop(self._store, key, person, min([first, *starts]))
        await self.reader.restart(key, person, min([first, *starts]))
        await self._drop_prompts(person)

    async def drop(self, person: str) -> bool:
        """Drop all that is known of a person; returns whether there was anything."""
        self._held.pop(person, None)
        there = bool(await cards.stored_state(self._store, self._tenant, person))
        await self._drop_prompts(person)
        there |= bool(await cards.drop(self._store, self._tenant, person))
        await cards.drop_state(self._store, self._tenant, person)
        await cards.drop_erasures(self._store, self._tenant, person)
        return there

    async def _drop_state(self, person: str) -> None:
        """Drop what is held of a person but the profile's version, which only grows."""
        self._held.pop(person, None)
        await cards.count_erasure(self._store, self._tenant, person)
        body = await cards.stored_state(self._store, self._tenant, person)
        if body:
            kept = HeldFacts.empty(person)._replace(version=version_in(body), erasures=-1)
            await cards.store_state(self._store, self._tenant, person, to_body(kept))

    async def _drop_prompts(self, person: str) -> None:
        async for head in self.conversations(person):
            prefix = prompt_name(head.conversation)
            await self._store.drop_cards(PROMPT, self._tenant, prefix=prefix)


def _damaged(person: str, error: StoreCorrupt) -> str:
    logger.warning("the facts of a person are damaged: %s", outline(error))
    return f"the facts of {person} are damaged: {error}; {ADVICE}"


def _size(said: Iterable[DatedStatement]) -> int:
    """How many characters the statements have."""
    return sum(len(one.quote) for one in said)
