"""What is assigned to topics next: new entries, and again a question whose answer is among them.

The last question of a conversation is assigned before it is answered, because its context needs a
topic. The answer often shows what it was about (`firnline.topics.flow`). So it is judged again with
its answer, by the topics as they were before it; if it belongs elsewhere, it moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from firnline import topics
from firnline.context.plan import is_question
from firnline.engine.topic_embedders import TopicEmbedders, TopicVectors, embed_texts
from firnline.log import limits
from firnline.log.entry import Entry, Key, Topic, live
from firnline.protocols import Embedder, Store
from firnline.topics import Rules, TopicState, TopicStep


class TopicPage(NamedTuple):
    """Entries to assign, in order, and the topics before them.

    `last` is the last one that was read, also if it is erased. `changed` are the topics that were
    changed already: they got new vectors, or lost a question.
    """

    entries: Sequence[Entry]
    last: Entry
    state: TopicState
    vectors: TopicVectors
    changed: Collection[int]

    def steps(self, rules: Rules) -> list[TopicStep]:
        """What assigning the entries does."""
        messages, answered = self.vectors.messages, self.vectors.answered
        state, model = self.state, self.vectors.model
        return list(
            topics.replay(self.entries, messages, answered, state=state, model=model, rules=rules)
        )


class TopicPages:
    """Prepares pages of entries for `firnline.topics.replay`."""

    def __init__(self, store: Store, embedders: TopicEmbedders, rules: Rules) -> None:
        self._store, self._embedders, self._rules = store, embedders, rules

    async def prepare(
        self, key: Key, known: Mapping[int, Topic], read: Sequence[Entry]
    ) -> TopicPage:
        """The page for the first of the entries that were read: those in one language."""
        there = live(read)
        embedder, entries = self._embedders.choose(known.values(), there)
        last = read[-1] if len(entries) == len(there) else entries[-1]
        fresh = await self._with_vectors(key, known.values(), embedder)
        state = TopicState.of({**known, **fresh}.values())
        flow = topics.flow_of(embedder.name, self._rules)
        again = await self._reopened(key, entries) if flow else ()
        vectors = await self._embedders.vectors(embedder, [*again, *entries])
        before = await self._before(key, state, again, vectors) if again else None
        if before is None:
            return TopicPage(entries, last, state, vectors, fresh.keys())
        changed = {id_ for id_ in known if before.topics[id_] != known[id_]}
        return TopicPage([*again, *entries], last, before, vectors, changed)

    # -- vectors ------------------------------------------------------------------------------

    async def _with_vectors(
        self, key: Key, known: Collection[Topic], embedder: Embedder
    ) -> dict[int, Topic]:
        """The topics whose vectors are another embedder's, or gone, with those of this one.

        Their newest messages are embedded again. Of many topics only the newest are compared.
        """
        newest = sorted(known, key=lambda topic: -topic.last_seq)[: limits.TOPICS_EMBEDDED]
        stale = [t for t in newest if t.model and (t.model != embedder.name or not t.vectors)]
        samples = await asyncio.gather(*(self._sample(key, topic, embedder) for topic in stale))
        found = await embed_texts(embedder, [text for texts in samples for text in texts])
        changed: dict[int, Topic] = {}
        start = 0
        for topic, texts in zip(stale, samples, strict=True):
            own = found[start : start + len(texts)]
            changed[topic.id] = topics.with_vectors(topic, own, embedder.name)
            start += len(texts)
        return changed

    async def _sample(self, key: Key, topic: Topic, embedder: Embedder) -> list[str]:
        members = await self._store.members(key, topic.id)
        newest = live(await self._store.at(key, members[-limits.TOPIC_SAMPLE :]))
        messages = [entry.message for entry in newest]
        return [m.text for m in messages if topics.needs_vector(m, embedder.name, self._rules)]

    # -- the last question --------------------------------------------------------------------

    async def _reopened(self, key: Key, entries: Sequence[Entry]) -> Sequence[Entry]:
        """The last assigned question, and what follows it, if these entries have its answer."""
        if not entries or not entries[0].seq or is_question(entries[0].message):
            return ()
        first = entries[0].seq
        back = await self._store.read(key, max(first - limits.ROUND_BACK, 0), first - 1)
        again = topics.open_question(live(back))
        return again if again and again[0].seq in topics.answers([*again, *entries]) else ()

    async def _before(
        self, key: Key, state: TopicState, again: Sequence[Entry], vectors: TopicVectors
    ) -> TopicState | None:
        """The topics without the question, if with its answer it belongs to another topic."""
        question = again[0]
        found = await self._store.topics_of(key, [question.seq - 1, *(e.seq for e in again)])
        ids = {found.get(entry.seq) for entry in again}
        id_, previous = found.get(question.seq), found.get(question.seq - 1)
        if (
            len(ids) > 1
            or id_ is None
            or previous is None
            or not {id_, previous} <= set(state.topics)
        ):
            return None
        topic = state.current(id_)
        earlier = await self._without(key, topic, again, vectors)
        if earlier is None:
            return None
        active = state.current(previous).id
        there = {**state.topics, topic.id: earlier}
        if there[active].last_seq >= question.seq:
            return None  # others have assigned entries meanwhile: this page is in conflict
        step = topics.assign(
            TopicState(there, active),
            question,
            vectors.messages.get(question.seq),
            answered=vectors.answered.get(question.seq, ()),
            model=vectors.model,
            rules=self._rules,
        )
        if step.topic in (None, topic.id, earlier.merged_into):
            return None
        if not earlier.entries:
            there[topic.id] = replace(earlier, merged_into=step.topic)
        return TopicState(there, active)

    async def _without(
        self, key: Key, topic: Topic, again: Sequence[Entry], vectors: TopicVectors
    ) -> Topic | None:
        """A topic without its newest entries; None if that is not known, or they are digested."""
        first = again[0].seq
        digest = await self._store.newest_digest(key, topic.id)
        if first < topic.active_from or (digest is not None and digest.last_seq >= first):
            return None
        earlier = [seq for seq in await self._store.members(key, topic.id) if seq < first]
        if not earlier:
            return None if topic.tags else topics.emptied(topic)
        last = await self._store.at(key, earlier[-1:])
        return topics.without_newest(topic, again, vectors.messages, last[0]) if last else None
