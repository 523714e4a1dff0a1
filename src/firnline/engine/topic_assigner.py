"""Topics kept up to date with the log: entries are assigned to topics on demand.

Each assignment is one compare-and-set, so several processes may do it. The decisions are pure
(`topics`); this module reads and writes for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from firnline import topics
from firnline.context.plan import View
from firnline.context.view import drop_echo, is_still, look, look_at_topic
from firnline.engine.recall import Filters
from firnline.engine.topic_embedders import TopicEmbedders, embed_texts
from firnline.engine.topic_pages import TopicPages
from firnline.engine.turn import Turn
from firnline.errors import ConflictError, FirnlineError, InputError, ModelError, outline
from firnline.log import limits
from firnline.log.entry import Digest, Entry, Key, Scope, Topic, runs
from firnline.log.text import clean_name
from firnline.protocols import Clock, Embedder, Store, TopicAssignments
from firnline.recall.reads import scope_conversations
from firnline.strategies.topics import topics as by_topics
from firnline.topics import Rules, TopicMatch, TopicState, TopicStats, TopicStep

logger: Final = logging.getLogger("firnline.topics")

_ROUND: Final = 50  # entries after which a round has certainly ended
_LEFT_LAST: Final = 3  # topics that were left last

Change: TypeAlias = Callable[[Topic], Topic]


def _check_whole(key: Key, known: TopicAssignments) -> None:
    """Raise `ConflictError` if topics have entries that are not assigned: others are at work."""
    newest = max((topic.last_seq for topic in known.topics.values()), default=-1)
    if newest >= known.next_seq:
        raise ConflictError(f"{key.conversation}: its topics were changed while they were read")


class TopicAssigner:
    """Assigns the entries of any conversation to topics, and maintains the topics."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        *,
        clock: Clock,
        rules: Rules | None = None,
        beside: Embedder | None = None,
    ) -> None:
        self._store, self._clock = store, clock
        self.rules = rules or Rules()
        self.embedders = TopicEmbedders(embedder, beside, self.rules)
        self._pages = TopicPages(store, self.embedders, self.rules)

    # -- keeping up ---------------------------------------------------------------------------

    async def catch_up(self, key: Key) -> TopicAssignments:
        """Assign all unassigned entries; returns the topics.

        If the embedder fails, `ModelError` is raised and the rest stays unassigned.
        """
        conflicts, reached = 0, 0
        while True:
            known = await self._store.topics(key)
            if not (page := await self._store.read(key, known.next_seq, limit=limits.ASSIGN_PAGE)):
                return known
            page = [(await drop_echo(self._store, key, entry))[0] for entry in page]
            # Another process may have assigned them, which is fine. Otherwise there is a limit.
            conflicts = conflicts if known.next_seq == reached else 0
            reached = known.next_seq
            try:
                _check_whole(key, known)
                await self._assign(key, known, page)
            except ConflictError:
                conflicts += 1
                if conflicts > limits.ASSIGN_CONFLICTS_MAX:
                    raise

    async def at_hand(self, key: Key) -> TopicAssignments:
        """Like `catch_up`, or the stored topics if nothing can be assigned now."""
        try:
            return await self.catch_up(key)
        except (ModelError, ConflictError) as error:
            why = outline(error)
            logger.warning("%s: its newest messages have no topic yet: %s", key.conversation, why)
            return await self._store.topics(key)

    async def _assign(self, key: Key, known: TopicAssignments, read: Sequence[Entry]) -> None:
        page = await self._pages.prepare(key, known.topics, read)
        # In a thread: a page of long talk with many topics takes a while.
        steps = await asyncio.to_thread(page.steps, self.rules)
        touched = {topic.id for step in steps for topic in step.changed} | set(page.changed)
        state = steps[-1].state if steps else page.state
        merging = partial(topics.merge_topics, state, self.rules, among=_grown(steps))
        merged = await asyncio.to_thread(merging)
        members: dict[int, int | None] = {}
        for younger, match in merged.into.items():
            moved = await self._store.members(key, younger)
            members |= dict.fromkeys(moved, _current(merged.state, match.topic))
        for entry, step in zip(page.entries, steps, strict=True):
            members[entry.seq] = _current(merged.state, step.topic)
        whole = {topic.id for topic in merged.changed}
        version = await self._last_version(key) if whole else 0
        changed = [
            replace(topic, outdated=version) if topic.id in whole else topic
            for topic in (merged.state.topics[id_] for id_ in sorted(touched | whole))
        ]
        back = whole | {step.restored for step in steps if step.restored is not None}
        resting = [seq for id_ in back for seq in await self._resting(key, known.topics.get(id_))]
        if not await is_still(self._store, key, page.last):
            raise ConflictError(f"{key.conversation} was erased in the meantime")
        reach = {"revision": known.revision, "next_seq": page.last.seq + 1}
        await self._store.assign(key, changed, members, **reach)
        if whole:
            await self._outdate(key, whole, version)
        await self._settle(key, resting)

    async def _last_version(self, key: Key) -> int:
        """The newest version, begun or completed: a merge outdates digests in progress."""
        return max((digest.version for digest in await self._store.digests(key)), default=0)

    async def _outdate(self, key: Key, merged: Iterable[int], version: int) -> None:
        """Outdate digests that were begun just before topics were merged."""
        newest = await self._last_version(key)

        def change(known: Topic) -> Topic:
            return replace(known, outdated=newest, active_from=0, archived=0)

        for id_ in merged if newest > version else ():
            rested = await self._resting(key, (await self._store.topics(key)).topics.get(id_))
            await self.change(key, id_, change)
            await self._settle(key, rested)

    async def _resting(self, key: Key, topic: Topic | None) -> list[int]:
        """The archived entries of a topic."""
        if topic is None or not topic.active_from:
            return []
        return [s for s in await self._store.members(key, topic.id) if s < topic.active_from]

    async def _settle(self, key: Key, seqs: Sequence[int]) -> None:
        """Archive the entries that their topics have archived, and restore the others.

        A topic is changed before its entries are moved, so another process may have changed it
        again. So this checks after moving entries that the topic still says so.
        """
        if not seqs:
            return
        moved: dict[int, bool] = {}
        for _ in range(limits.ASSIGN_CONFLICTS_MAX):
            known = (await self._store.topics(key)).topics
            found = await self._store.topics_of(key, seqs)
            starts = {seq: known[id_].active_from for seq, id_ in found.items() if id_ in known}
            rest = {seq: seq < starts[seq] for seq in sorted(starts)}
            wrong = [seq for seq in rest if moved.get(seq) is not rest[seq]]
            if not wrong:
                return
            # In this order: a segment is restored as a whole.
            for move, resting in ((self._store.restore, False), (self._store.archive, True)):
                there = [seq for seq in wrong if rest[seq] is resting]
                moved |= dict.fromkeys(await _move_spans(partial(move, key), there), resting)
        logger.warning("%s: too many concurrent moves of messages of topics", key.conversation)

    # -- for contexts -------------------------------------------------------------------------

    async def look(self, key: Key, *, tail_tokens: int, fold_tokens: int) -> View:
        """The active topic as a strategy should see it; without topics, the conversation."""
        tokens = {"tail_tokens": tail_tokens, "fold_tokens": fold_tokens}
        known = await self.at_hand(key)
        view = await self._view(key, known, tokens)
        if not view.entries:  # the topic was merged into another one meanwhile
            known = await self.at_hand(key)
            view = await self._view(key, known, tokens)
        return await self._with_unassigned(key, known, view) if view.topic else view

    async def _view(self, key: Key, known: TopicAssignments, tokens: Mapping[str, int]) -> View:
        topic = TopicState.of(known.topics.values()).active_topic
        if topic is None:
            return await look(self._store, key, by_topics(), **tokens)
        others = [t for t in known.topics.values() if t.id != topic.id and self._may_rest(t)]
        # Only the topics left last; the others were checked before.
        for other in sorted(others, key=lambda other: -other.last_seq)[:_LEFT_LAST]:
            await self._rest_covered(key, other)
        view = await look_at_topic(self._store, key, topic, **tokens)
        if view.first_open < topic.active_from:  # an undo was interrupted
            await self._wake(key, topic.id)
        if (last := self._rested(view, topic)) >= 0:
            topic = await self._rest(key, topic, last)
            view = await look_at_topic(self._store, key, topic, **tokens)
        return view

    def _may_rest(self, topic: Topic) -> bool:
        """Whether a topic was restored, and left again with too many active entries."""
        active = topic.entries - topic.archived
        return topic.restored_by >= 0 and active > self.rules.max_messages_per_topic

    async def _rest_covered(self, key: Key, topic: Topic) -> None:
        last = await self._covered(key, topic)
        if last >= topic.active_from:
            await self._rest(key, topic, last)

    async def _covered(self, key: Key, topic: Topic) -> int:
        """The last entry that the topic's digest covers; -1 if there is none."""
        newest = await self._store.newest_digest(key, topic.id)
        return newest.last_seq if newest and newest.version > topic.outdated else -1

    def _rested(self, view: View, topic: Topic) -> int:
        """The last restored entry that may be archived again: a digest covers it."""
        rules = self.rules
        if not view.digests or topics.is_just_restored(topic, view.entries):
            return -1
        seqs = topics.entries_to_fold(
            view.entries, rules.max_messages_per_topic, rules.recent_message_keep
        )
        return max((seq for seq in seqs if seq < view.first_open), default=-1)

    async def _with_unassigned(self, key: Key, known: TopicAssignments, view: View) -> View:
        """The view with the entries that have no topic yet."""
        head = await self._store.head(key)
        end = head.entries if head else 0
        late = await self._store.read(key, max(known.next_seq, end - limits.ASSIGN_PAGE))
        # Another process may have assigned some of them meanwhile.
        there = {entry.seq: entry for entry in view.entries}
        new = [entry for entry in late if entry.seq not in there]
        there |= {entry.seq: entry for entry in new}
        return replace(
            view,
            next_seq=max(end, *(seq + 1 for seq in there), 0),
            entries=tuple(there[seq] for seq in sorted(there)),
            open_tokens=view.open_tokens + sum(entry.tokens for entry in new),
        )

    async def folded(self, key: Key, digest: Digest) -> None:
        """Archive what a topic's digest covers."""
        if digest.topic is None:
            return
        topic = (await self._store.topics(key)).topics.get(digest.topic)
        if topic is None or digest.version <= topic.outdated:
            return  # it was erased, or merged with another one meanwhile
        if topic.restored_by >= 0:
            later = await self._store.members(key, topic.id, topic.restored_by + 1)
            if topics.is_just_restored(topic, await self._store.at(key, later[:_ROUND])):
                return  # the user has just returned to it
        await self._rest(key, topic, digest.last_seq)

    async def _rest(self, key: Key, topic: Topic, last: int) -> Topic:
        """Archive the entries of a topic up to `last`, unless the topic has changed."""
        members = await self._store.members(key, topic.id, topic.active_from)
        seqs = [seq for seq in members if seq <= last]
        seen = topic.id, topic.outdated, topic.restored_by, topic.active_from

        def change(known: Topic) -> Topic:
            now = known.id, known.outdated, known.restored_by, known.active_from
            return topics.mark_folded(known, seqs) if now == seen else known

        changed = await self.change(key, topic.id, change)
        if changed.active_from > topic.active_from:
            await self._wake(key, topic.id)  # the digest may have been undone meanwhile
            await self._settle(key, seqs)
        return changed

    async def undone(self, key: Key, digest: Digest) -> None:
        """Activate the entries that only an undone digest covered."""
        if digest.topic is not None:
            await self._wake(key, digest.topic)

    async def _wake(self, key: Key, topic: int) -> None:
        """Activate the entries of a topic that no digest covers any more."""
        for _ in range(limits.ASSIGN_CONFLICTS_MAX):
            known = await self._store.topics(key)
            found = known.topics.get(topic)
            start = await self._covered(key, found) + 1 if found else 0
            if found is None or found.active_from <= start:
                return
            rested = await self._resting(key, found)
            archived = sum(seq < start for seq in rested)
            changed = replace(found, active_from=start, archived=archived)
            # If a newer digest has archived entries meanwhile, the topic has changed.
            with suppress(ConflictError):
                await self._store.assign(key, [changed], {}, revision=known.revision)
                await self._settle(key, rested)
                return
        logger.warning("%s: too many concurrent changes of its topics", key.conversation)

    # -- changes by callers -------------------------------------------------------------------

    async def change(self, key: Key, topic: int, change: Change) -> Topic:
        """Apply `change` to a topic, or to the one it was merged into, and save it."""
        for _ in range(limits.ASSIGN_CONFLICTS_MAX):
            known = await self._having(key, topic)
            found = self._known(known, key, topic)
            changed = change(found)
            if changed == found:
                return found
            try:
                await self._store.assign(key, [changed], {}, revision=known.revision)
            except ConflictError:
                continue
            return changed
        raise ConflictError(f"{key.conversation}: too many concurrent changes of its topics; retry")

    async def _having(self, key: Key, *ids: int) -> TopicAssignments:
        """The stored topics; if these are missing, after assigning the newest entries."""
        known = await self._store.topics(key)
        return known if known.topics.keys() >= set(ids) else await self.catch_up(key)

    async def merge(self, key: Key, into: int, topic: int) -> Topic:
        """Move the entries of a topic into another one."""
        for _ in range(limits.ASSIGN_CONFLICTS_MAX):
            known = await self._having(key, into, topic)
            kept, gone = self._known(known, key, into), self._known(known, key, topic)
            if kept.id == gone.id:
                raise InputError(f"topics {into} and {topic} are the same topic")
            whole, empty = topics.merge_pair(kept, gone)
            version = await self._last_version(key)
            whole = replace(whole, outdated=version)
            moved = dict.fromkeys(await self._store.members(key, gone.id), kept.id)
            resting = [*await self._resting(key, kept), *await self._resting(key, gone)]
            try:
                await self._store.assign(key, [whole, empty], moved, revision=known.revision)
            except ConflictError:
                continue
            await self._outdate(key, [kept.id], version)
            await self._settle(key, resting)
            return whole
        raise ConflictError(f"{key.conversation}: too many concurrent changes of its topics; retry")

    async def stats(self, key: Key, topic: int | None = None) -> list[TopicStats]:
        """Statistics of the topics, the most recently active first."""
        # A change to a topic counts even if newer entries cannot be assigned now.
        known = await (self.catch_up(key) if topic is None else self.at_hand(key))
        there = [t for t in known.topics.values() if t.merged_into is None]
        if topic is not None:
            there = [self._known(known, key, topic)]
        now = self._clock()
        found = []
        for one in sorted(there, key=lambda t: -t.last_seq):
            summed_up = await self._covered(key, one) >= 0
            found.append(topics.topic_stats(one, now, self.rules, has_summary=summed_up))
        return found

    async def narrow(self, tenant: str, scope: Scope, filters: Filters) -> Scope:
        """The scope restricted to the topics that the filters name; `InputError` if unknown."""
        number = filters.get("topic")
        tags = {clean_name(tag, "tag") for tag in filters.get("tags") or ()}
        if number is not None and scope.conversation is None:
            raise InputError("topic: specify its conversation, too")
        found: list[tuple[str, int]] = []
        for name in await scope_conversations(self._store, tenant, scope):
            key = Key(tenant, name)
            assigned = await self._store.topics(key)
            # Only existing topics have tags: without a match nothing has to be assigned now.
            if number is not None or _with_tags(assigned, tags):
                assigned = await self.at_hand(key)
            if number is not None and number not in assigned.topics:
                raise InputError(f"{name} has no topic {number}")
            current = None if number is None else TopicState(assigned.topics).current(number).id
            found += [(name, id_) for id_ in _with_tags(assigned, tags) if current in (None, id_)]
        return replace(scope, topics=tuple(found))

    async def credit(self, key: Key, turn: Turn) -> None:
        """Add importance to topics whose recalled entries an answer used; failures are logged."""
        shown = [hit.entry for hit in turn.context.hits]
        if not shown or turn.degraded:
            return
        others = [m.text for s in turn.context.sections if s.name != "recalled" for m in s.messages]
        used = topics.used_entries(turn.text, shown, [turn.question.message.text, *others])
        try:
            found = await self._store.topics_of(key, [entry.seq for entry in used])
            for topic in sorted(set(found.values())):
                await self.change(key, topic, topics.apply_use)
        except FirnlineError as error:
            logger.warning(
                "%s: the use of topics is not saved: %s", key.conversation, outline(error)
            )

    async def of(self, key: Key, seq: int) -> int:
        """The topic of an entry."""
        found = await self._store.topics_of(key, [seq])
        if seq not in found:
            await self.catch_up(key)
            found = await self._store.topics_of(key, [seq])
        if seq not in found:
            raise InputError(f"{key.conversation}: message {seq} is in no topic")
        return found[seq]

    async def active(self, key: Key) -> Topic | None:
        """The topic of the newest message, or the last one while nothing can be assigned."""
        known = await self.at_hand(key)
        return TopicState.of(known.topics.values()).active_topic

    async def match(self, key: Key, text: str) -> TopicMatch | None:
        """The topic most similar to a text; None if there is nothing to compare."""
        known = await self.catch_up(key)
        if topics.is_followup(text):
            return None
        there = known.topics.values()
        embedder = self.embedders.of(there, text)
        (vector,) = await embed_texts(embedder, [text])
        return next(iter(topics.match_topics(vector, embedder.name, there, self.rules)), None)

    def _known(self, known: TopicAssignments, key: Key, topic: int) -> Topic:
        if topic not in known.topics:
            there = ", ".join(map(str, list(known.topics)[:20])) or "none"
            raise InputError(f"{key.conversation} has no topic {topic}; there are: {there}")
        return TopicState(known.topics).current(topic)


def _with_tags(assigned: TopicAssignments, tags: Collection[str]) -> list[int]:
    return [topic.id for topic in assigned.topics.values() if set(tags) <= set(topic.tags)]


def _grown(steps: Sequence[TopicStep]) -> set[int]:
    """The topics whose mean vectors may have changed."""
    return {step.topic for step in steps if step.match is not None and step.topic is not None}


def _current(state: TopicState, topic: int | None) -> int | None:
    return None if topic is None else state.current(topic).id


async def _move_spans(
    move: Callable[[int, int], Awaitable[object]], seqs: Sequence[int]
) -> list[int]:
    """Archive or restore entries, in spans; concurrent moves share commits.

    Returns the entries that were moved, without those that another process was moving.
    """
    spans = list(runs(seqs))
    moved: list[int] = []
    for at in range(0, len(spans), limits.ASSIGN_PAGE):
        some = spans[at : at + limits.ASSIGN_PAGE]
        results = await asyncio.gather(*(move(*run) for run in some), return_exceptions=True)
        for (first, last), result in zip(some, results, strict=True):
            if not isinstance(result, BaseException):
                moved += range(first, last + 1)
            elif not isinstance(result, ConflictError):
                raise result
    return moved
