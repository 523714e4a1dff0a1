"""Topics kept up with the log: entries are assigned when somebody asks.

In one step by compare-and-set, so that any number of processes may do it. The decisions are pure
(`topics`); what they need and what they change goes through here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, TypeAlias

from firnline import limits, topics
from firnline.errors import ConflictError, InputError, ModelError
from firnline.log import Digest, Entry, Key, Topic
from firnline.message import Message
from firnline.plan import View
from firnline.protocols import Assigned, Clock, Embedder, Store
from firnline.topics import Rules, State, Step, TopicStats
from firnline.view import look_at_topic

logger: Final = logging.getLogger("firnline.topics")

Change: TypeAlias = Callable[[Topic], Topic]


class Assigner:
    """Assigns the entries of any conversation to topics, and keeps those."""

    def __init__(
        self, store: Store, embedder: Embedder, *, clock: Clock, rules: Rules | None = None
    ) -> None:
        self._store, self._embedder, self._clock = store, embedder, clock
        self.rules = rules or Rules()

    # -- keeping up ---------------------------------------------------------------------------

    async def catch_up(self, key: Key) -> Assigned:
        """Assign what is not assigned yet; the topics as they are then.

        If the embedder fails, `ModelError` is raised and what is not assigned stays so.
        """
        conflicts = 0
        while True:
            known = await self._store.topics(key)
            page = await self._store.read(key, known.next_seq, limit=limits.ASSIGN_PAGE)
            if not page:
                return known
            try:
                await self._assign(key, known, page)
            except ConflictError:
                conflicts += 1  # somebody else has assigned them
                if conflicts > limits.ASSIGN_CONFLICTS_MAX:
                    raise

    async def _assign(self, key: Key, known: Assigned, page: Sequence[Entry]) -> None:
        state = State.of(known.topics.values())
        vectors = await self._vectors(page)
        steps = list(
            topics.replay(page, vectors, state=state, model=self._embedder.name, rules=self.rules)
        )
        touched = {topic.id for step in steps for topic in step.changed}
        merged = topics.merge(steps[-1].state, self.rules, among=_grown(steps))
        members: dict[int, int | None] = {
            entry.seq: _current(merged.state, step.topic)
            for entry, step in zip(page, steps, strict=True)
        }
        outdated: dict[int, int] = {}
        for younger, match in merged.into.items():
            moved = await self._store.members(key, younger)
            members |= dict.fromkeys(moved, _current(merged.state, match.topic))
            outdated[match.topic] = await self._newest_version(key, match.topic)
        touched |= {topic.id for topic in merged.changed}
        changed = [merged.state.topics[id_] for id_ in sorted(touched)]
        changed = [replace(t, outdated=outdated.get(t.id, t.outdated)) for t in changed]
        end = page[-1].seq + 1
        await self._store.assign(key, changed, members, revision=known.revision, next_seq=end)
        for step in steps:
            if step.restored is not None:
                await self._bring_back(key, step.restored)

    async def _vectors(self, page: Sequence[Entry]) -> dict[int, Sequence[float]]:
        asked = [entry for entry in page if topics.needs_vector(entry.message)]
        texts = [_text(entry.message) for entry in asked]
        vectors = await self._embedder.embed(texts) if texts else []
        return {entry.seq: vector for entry, vector in zip(asked, vectors, strict=True)}

    async def _newest_version(self, key: Key, topic: int) -> int:
        newest = await self._store.newest_digest(key, topic)
        return newest.version if newest else 0

    async def _bring_back(self, key: Key, topic: int) -> None:
        """Make the archived entries of a topic live again."""
        for first, last in _runs(await self._store.members(key, topic)):
            await self._store.restore(key, first, last)

    # -- for contexts -------------------------------------------------------------------------

    async def look(self, key: Key, *, tail_tokens: int, fold_tokens: int) -> View:
        """The active topic as a strategy should see it."""
        try:
            known = await self.catch_up(key)
        except ModelError as error:
            logger.warning("%s: its newest messages have no topic yet: %s", key.conversation, error)
            known = await self._store.topics(key)
        topic = State.of(known.topics.values()).active_topic
        if topic is None:
            return await self._unassigned(key, known, View(next_seq=0, fold_tokens=fold_tokens))
        tokens = {"tail_tokens": tail_tokens, "fold_tokens": fold_tokens}
        view = await look_at_topic(self._store, key, topic, **tokens)
        if rested := self._rested(view, topic):
            topic = await self._archived(key, topic.id, rested)
            view = await look_at_topic(self._store, key, topic, **tokens)
        return await self._unassigned(key, known, view)

    def _rested(self, view: View, topic: Topic) -> tuple[int, ...]:
        """Entries that were brought back and may rest again: a digest covers them already."""
        rules = self.rules
        if not view.digests or topics.just_restored(topic, view.entries):
            return ()
        seqs = topics.to_fold(view.entries, rules.max_messages_per_topic, rules.recent_message_keep)
        return tuple(seq for seq in seqs if seq < view.first_open)

    async def _unassigned(self, key: Key, known: Assigned, view: View) -> View:
        """The view with entries that have no topic yet; they are shown with the active one."""
        late = await self._store.read(key, known.next_seq, limit=limits.ASSIGN_PAGE)
        if not late:
            head = await self._store.head(key)
            return replace(view, next_seq=head.entries if head else 0)
        tokens = view.open_tokens + sum(entry.tokens for entry in late)
        return replace(
            view,
            next_seq=late[-1].seq + 1,
            entries=(*view.entries, *late),
            open_tokens=tokens,
        )

    async def folded(self, key: Key, digest: Digest) -> None:
        """Archive what a topic's digest covers."""
        if digest.topic is None:
            return
        members = await self._store.members(key, digest.topic)
        covered = [seq for seq in members if seq <= digest.last_seq]
        await self._archived(key, digest.topic, covered)

    async def _archived(self, key: Key, topic: int, seqs: Sequence[int]) -> Topic:
        """Archive the first of a topic's active entries."""

        def change(known: Topic) -> Topic:
            return topics.folded(known, [seq for seq in seqs if seq >= known.active_from])

        changed = await self.change(key, topic, change)
        for first, last in _runs(seqs):
            await self._store.archive(key, first, last)
        return changed

    async def undone(self, key: Key, digest: Digest) -> None:
        """Make active again what only an undone digest covered."""
        if digest.topic is None:
            return
        newest = await self._store.newest_digest(key, digest.topic)
        start = newest.last_seq + 1 if newest else 0
        members = await self._store.members(key, digest.topic)
        archived = sum(seq < start for seq in members)
        back = lambda known: replace(known, active_from=start, archived=archived)  # noqa: E731
        await self.change(key, digest.topic, back)
        for first, last in _runs([seq for seq in members if start <= seq <= digest.last_seq]):
            await self._store.restore(key, first, last)

    # -- what people do with topics -----------------------------------------------------------

    async def change(self, key: Key, topic: int, change: Change) -> Topic:
        """Save what `change` makes of a topic, or of the one that it was merged into."""
        for _ in range(limits.ASSIGN_CONFLICTS_MAX):
            known = await self._store.topics(key)
            found = self._known(known, key, topic)
            changed = change(found)
            if changed == found:
                return found
            try:
                await self._store.assign(key, [changed], {}, revision=known.revision)
            except ConflictError:
                continue
            return changed
        raise ConflictError(f"{key.conversation}: its topics are changed by many at once")

    async def merge(self, key: Key, into: int, topic: int) -> Topic:
        """Put a topic's entries into another one."""
        for _ in range(limits.ASSIGN_CONFLICTS_MAX):
            known = await self.catch_up(key)
            kept, gone = self._known(known, key, into), self._known(known, key, topic)
            if kept.id == gone.id:
                raise InputError(f"topics {into} and {topic} are one already")
            whole, empty = topics.merged(kept, gone)
            whole = replace(whole, outdated=await self._newest_version(key, kept.id))
            moved = dict.fromkeys(await self._store.members(key, gone.id), kept.id)
            try:
                await self._store.assign(key, [whole, empty], moved, revision=known.revision)
            except ConflictError:
                continue
            await self._bring_back(key, kept.id)
            return whole
        raise ConflictError(f"{key.conversation}: its topics are changed by many at once")

    async def stats(self, key: Key, topic: int | None = None) -> list[TopicStats]:
        """Topics in numbers, the active one first, then those that were active last."""
        known = await self.catch_up(key)
        there = [t for t in known.topics.values() if t.merged_into is None]
        if topic is not None:
            there = [self._known(known, key, topic)]
        now = self._clock()
        found = []
        for one in sorted(there, key=lambda t: -t.last_seq):
            newest = await self._store.newest_digest(key, one.id)
            found.append(topics.stats(one, now, self.rules, has_summary=newest is not None))
        return found

    async def of(self, key: Key, seq: int) -> int:
        """The topic of an entry."""
        await self.catch_up(key)
        found = await self._store.topics_of(key, [seq])
        if seq not in found:
            raise InputError(f"{key.conversation}: entry {seq} is in no topic")
        return found[seq]

    async def active(self, key: Key) -> Topic | None:
        """The topic of the newest message."""
        known = await self.catch_up(key)
        return State.of(known.topics.values()).active_topic

    def _known(self, known: Assigned, key: Key, topic: int) -> Topic:
        if topic not in known.topics:
            there = ", ".join(map(str, list(known.topics)[:20])) or "none"
            raise InputError(f"{key.conversation} has no topic {topic}; there are: {there}")
        return State(known.topics).current(topic)


def _text(message: Message) -> str:
    return message.text[: limits.PASSAGE_CHARS]


def _grown(steps: Sequence[Step]) -> set[int]:
    """The topics whose mean vectors may have changed."""
    return {step.topic for step in steps if step.match is not None and step.topic is not None}


def _current(state: State, topic: int | None) -> int | None:
    return None if topic is None else state.current(topic).id


def _runs(seqs: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbouring sequence numbers as (first, last)."""
    runs = []
    for _, group in groupby(enumerate(seqs), lambda pair: pair[1] - pair[0]):
        run = [seq for _, seq in group]
        runs.append((run[0], run[-1]))
    return runs
