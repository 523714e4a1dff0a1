"""The state machine: which topic an entry belongs to, and how that changes the topics.

Pure, and a function of the log alone: times come from the entries, so replaying the same entries
with the same vectors, from any state on, gives the same topics.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from firnline.context import marks
from firnline.context.plan import is_question
from firnline.errors import InputError
from firnline.log.entry import Entry, Topic
from firnline.log.message import Message
from firnline.topics.decay import priority
from firnline.topics.flow import choose_topic, flow_of, signs_of
from firnline.topics.followup import is_followup, says_something
from firnline.topics.rules import Rules
from firnline.topics.similarity import TopicMatch, flow_likeness, is_comparable, match_topics
from firnline.topics.title import title_of
from firnline.topics.vectors import Floats, mean, pack, unit
from firnline.topics.weights import ModelFlow

DEFAULT: Final = Rules()


@dataclass(frozen=True, slots=True)
class TopicState:
    """The topics of a conversation by id, and the active one: that of the last entry."""

    topics: Mapping[int, Topic] = field(default_factory=dict)
    active: int | None = None

    @classmethod
    def of(cls, topics: Iterable[Topic]) -> TopicState:
        """The state of these topics: the one with the newest entry is active."""
        by_id = {topic.id: topic for topic in topics}
        unmerged = [topic for topic in by_id.values() if topic.merged_into is None]
        newest = max(unmerged, key=lambda topic: topic.last_seq, default=None)
        return cls(by_id, newest.id if newest else None)

    @property
    def active_topic(self) -> Topic | None:
        """The active topic; None if there is none yet."""
        return None if self.active is None else self.topics[self.active]

    def working(self) -> list[Topic]:
        """The working set: topics that are neither dormant nor merged into another."""
        return [t for t in self.topics.values() if not t.dormant and t.merged_into is None]

    def current(self, topic: int) -> Topic:
        """The topic that a topic was merged into, or the topic itself."""
        found = self.topics[topic]
        while found.merged_into is not None:
            found = self.topics[found.merged_into]
        return found

    def having(self, *topics: Topic, active: int | None = None) -> TopicState:
        """The state with these topics added or replaced."""
        changed = {**self.topics, **{topic.id: topic for topic in topics}}
        return TopicState(changed, self.active if active is None else active)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStep:
    """The effect of one entry.

    `topic` is the entry's topic; None for system messages before all others. `changed` are the
    topics to save, `match` is the most similar topic, whether the message joined it or not.
    `opened`, `restored` and `dormant` are the topics to which that happened.
    """

    state: TopicState
    topic: int | None = None
    changed: tuple[Topic, ...] = ()
    match: TopicMatch | None = None
    opened: int | None = None
    restored: int | None = None
    dormant: tuple[int, ...] = ()


def needs_vector(message: Message, model: str = "", rules: Rules = DEFAULT) -> bool:
    """Whether `assign` uses a vector of this message, by this model."""
    if message.role == "assistant":
        return flow_of(model, rules) is not None and says_something(message.text)
    return is_question(message) and not is_followup(message.text)


def assign(
    state: TopicState,
    entry: Entry,
    vector: Floats | None = None,
    *,
    answered: Sequence[Floats] = (),
    model: str = "",
    rules: Rules = DEFAULT,
) -> TopicStep:
    """Assign the next entry of a conversation to a topic.

    A user's message joins the topic to which it belongs in the flow of the conversation
    (`flow`), which may be dormant, or opens a new one. If its answer is known, `answered` are the
    vectors of the answer, and of both as one text. With a threshold of the caller's, or a `model`
    that was not measured, it joins the most similar topic if the similarity exceeds the threshold.
    A message without a subject, or without a `vector` by `model`, stays in the active topic, and so
    do all messages of other roles.
    """
    newest = state.active_topic
    if newest and entry.seq <= newest.last_seq:
        raise InputError(f"message {entry.seq} is not after {newest.last_seq}, the last assigned")
    flow = flow_of(model, rules)
    if not is_question(entry.message):
        return _continue_topic(state, entry, rules, unit(vector) if flow else None, model)
    # A follow-up does not show what its topic is about, so its vector is not used.
    usable = None if is_followup(entry.message.text) else unit(vector)
    matches = match_topics(usable, model, state.topics.values(), rules) if usable else []
    best = matches[0] if matches else None
    replied = [found for given in answered if (found := unit(given)) is not None]
    replied = replied if len(replied) == len(answered) else []
    if flow and usable and matches:
        said = [usable, *replied]
        chosen = _choose_in_flow(state, entry, flow, said, [match.topic for match in matches])
    elif flow and replied and is_followup(entry.message.text):
        chosen = _place_followup(state, entry, flow, replied, model, rules)
    else:
        chosen = _choose_topic(state, usable, best, rules)
    if chosen is None:
        topic = _with_vector(_open_topic(entry, rules), usable, model)
    else:
        topic = _with_vector(
            _join_topic(chosen, entry, back=chosen.id != state.active), usable, model
        )
    restored = chosen is not None and topic.restored_by == entry.seq
    moved = state.having(topic, active=topic.id)
    left = _fade_topics(moved, _time(entry), rules)
    return TopicStep(
        state=moved.having(*left),
        topic=topic.id,
        changed=(topic, *left),
        match=best,
        opened=topic.id if chosen is None else None,
        restored=topic.id if restored else None,
        dormant=tuple(gone.id for gone in left),
    )


def replay(
    entries: Iterable[Entry],
    vectors: Mapping[int, Floats],
    answered: Mapping[int, Sequence[Floats]] | None = None,
    *,
    state: TopicState | None = None,
    model: str = "",
    rules: Rules = DEFAULT,
) -> Iterator[TopicStep]:
    """A step for each entry, in order; `vectors` and `answered` are by sequence number."""
    now = state or TopicState()
    for entry in entries:
        known = (answered or {}).get(entry.seq, ())
        vector = vectors.get(entry.seq)
        step = assign(now, entry, vector, answered=known, model=model, rules=rules)
        now = step.state
        yield step


# -- choosing a topic -------------------------------------------------------------------------


def _choose_in_flow(
    state: TopicState,
    entry: Entry,
    flow: ModelFlow,
    said: Sequence[Floats],
    others: Collection[int],
) -> Topic | None:
    """The topic that the message belongs to; None if it opens a new one."""
    active = state.active_topic
    if active is None or not active.vectors:
        return active  # there is no sign of a change of subject
    pause = (_time(entry) - active.last_active_at).total_seconds()
    compared = [state.topics[id_] for id_ in others]
    found = choose_topic(
        flow.answered if len(said) > 1 else flow.asked,
        signs_of(entry.message.text, pause),
        flow_likeness(said, flow.center, compared),
        active.id,
        is_new=not active.access_count,
    )
    return None if found is None else state.topics[found]


def _place_followup(
    state: TopicState,
    entry: Entry,
    flow: ModelFlow,
    replied: Sequence[Floats],
    model: str,
    rules: Rules,
) -> Topic | None:
    """The topic of a follow-up whose answer is known: the active one, or one left before."""
    active = state.active_topic
    if active is None or not active.vectors:
        return active
    matches = match_topics(replied[-1], model, state.topics.values(), rules)
    compared = [state.topics[match.topic] for match in matches]
    found = choose_topic(
        flow.followed,
        signs_of(entry.message.text, (_time(entry) - active.last_active_at).total_seconds()),
        flow_likeness(replied, flow.center, compared),
        active.id,
        is_new=not active.access_count,
    )
    return active if found is None else state.topics[found]


def _choose_topic(
    state: TopicState, vector: Floats | None, best: TopicMatch | None, rules: Rules
) -> Topic | None:
    """The topic that the message joins; None if it opens a new one."""
    if best and best.similarity > rules.similarity_threshold:
        return state.topics[best.topic]
    active = state.active_topic
    # If nothing can be compared, there is no sign of a change of subject.
    return active if active and (vector is None or not active.vectors) else None


# -- changing the topic -----------------------------------------------------------------------


def _continue_topic(
    state: TopicState, entry: Entry, rules: Rules, vector: Floats | None, model: str
) -> TopicStep:
    """The step of an entry that is not the user's; an answer says more of the topic's subject."""
    active = state.active_topic
    if active is None:
        if entry.message.role in ("system", "developer"):
            return TopicStep(state=state)
        # A greeting may precede the first question, which gives the topic its title.
        opened = replace(_open_topic(entry, rules), title="")
        return TopicStep(
            state=state.having(opened, active=opened.id),
            topic=opened.id,
            changed=(opened,),
            opened=opened.id,
        )
    topic = replace(active, entries=active.entries + 1, last_seq=entry.seq)
    if vector is not None and active.vectors and is_comparable(active, model, len(vector)):
        topic = _with_vector(topic, vector, model)
    return TopicStep(state=state.having(topic), topic=topic.id, changed=(topic,))


def _open_topic(entry: Entry, rules: Rules) -> Topic:
    importance = _importance(entry.message)
    return Topic(
        id=entry.seq,
        title=title_of(marks.said(entry.message)),
        created_at=_time(entry),
        last_active_at=_time(entry),
        importance=rules.importance if importance is None else importance,
        entries=1,
        last_seq=entry.seq,
    )


def _join_topic(topic: Topic, entry: Entry, *, back: bool) -> Topic:
    """The topic with one more message of the user.

    `back`: the user returns to it from another topic. Then its archived entries are active again.
    """
    # A title without a subject ("hello") is replaced by the first message that has one.
    nameless = not topic.vectors and is_followup(topic.title)
    joined = replace(
        topic,
        title=(title_of(marks.said(entry.message)) or topic.title) if nameless else topic.title,
        last_active_at=max(topic.last_active_at, _time(entry)),
        importance=max(topic.importance, _importance(entry.message) or 0.0),
        access_count=topic.access_count + (1 if topic.title else 0),
        entries=topic.entries + 1,
        last_seq=entry.seq,
    )
    if back and (topic.dormant or topic.archived or topic.active_from):
        return replace(joined, dormant=False, active_from=0, archived=0, restored_by=entry.seq)
    return joined


def _with_vector(topic: Topic, vector: Floats | None, model: str) -> Topic:
    """The topic with one more vector in its mean."""
    if vector is None:
        return topic
    if not is_comparable(topic, model, len(vector)):
        return replace(topic, model=model, vectors=1, vector=pack(vector))
    body = mean(topic.vector, topic.vectors, vector, 1)
    return replace(topic, vectors=topic.vectors + 1, vector=body)


def with_vectors(topic: Topic, vectors: Sequence[Floats], model: str) -> Topic:
    """The topic with the mean of these vectors instead of its own; with none if there are none."""
    bare = replace(topic, model="", vectors=0, vector=b"")
    for vector in vectors:
        bare = _with_vector(bare, unit(vector), model)
    return bare


def emptied(topic: Topic) -> Topic:
    """The topic without its entries, which belong to others now."""
    return replace(topic, entries=0, archived=0, active_from=0, vectors=0, vector=b"")


def _fade_topics(state: TopicState, now: datetime, rules: Rules) -> list[Topic]:
    """The topics that become dormant, lowest priority first, but never the active one."""
    working = state.working()
    if len(working) <= rules.max_topics:
        return []
    weighed = [(priority(t, now, rules), t.id, t) for t in working if t.id != state.active]
    faded = sorted(item for item in weighed if item[0] < rules.priority_floor)
    return [replace(topic, dormant=True) for _, _, topic in faded]


def _importance(message: Message) -> float | None:
    """The importance that a message sets for its topic in ``metadata["importance"]``."""
    value = message.metadata.get("importance")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value <= 1 else None


def _time(entry: Entry) -> datetime:
    if entry.message.created_at is None:
        raise InputError(f"message {entry.seq} has no time")
    return entry.message.created_at


# -- erasing ----------------------------------------------------------------------------------


def without_entries(
    topics: Mapping[int, Topic], members: Mapping[int, int], erased: Sequence[Entry]
) -> list[Topic]:
    """The topics that change; a title that came from an erased message is empty.

    `members` are the topics of erased entries. A mean vector with one of them is cleared; it is
    computed again from the messages that are left.
    """
    titles = {title_of(marks.said(entry.message)) for entry in erased}
    seqs = {entry.seq for entry in erased}
    changed = []
    for topic in topics.values():
        own = [entry for entry in erased if members.get(entry.seq) == topic.id]
        now = replace(
            topic,
            title="" if topic.title in titles or topic.id in seqs else topic.title,
            entries=topic.entries - len(own),
            archived=topic.archived - sum(entry.seq < topic.active_from for entry in own),
        )
        if any(needs_vector(entry.message, topic.model) for entry in own):
            now = replace(now, vectors=0, vector=b"")
        if now != topic:
            changed.append(now)
    return changed
