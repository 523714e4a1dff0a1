"""Merges topics that turn out to be one: the newer into the older."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from firnline.log.entry import Topic
from firnline.topics.rules import TAGS_MAX, Rules
from firnline.topics.similarity import TopicMatch, is_comparable, match_topics
from firnline.topics.state import DEFAULT, TopicState, emptied
from firnline.topics.vectors import mean, unpack


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The state after merging, and for each merged topic the match that it was merged into."""

    state: TopicState
    into: dict[int, TopicMatch]

    @property
    def changed(self) -> tuple[Topic, ...]:
        """The topics to save."""
        ids = {*self.into, *(match.topic for match in self.into.values())}
        return tuple(self.state.topics[id_] for id_ in sorted(ids))


def merge_topics(
    state: TopicState, rules: Rules = DEFAULT, among: Collection[int] | None = None
) -> MergeResult:
    """Merge topics that are at least `merge_threshold` similar, the most similar first.

    `among` are the topics that may have changed since the last call; pairs of others are not
    compared, so one topic costs one comparison with each other topic.
    """
    into: dict[int, TopicMatch] = {}
    looked = set(state.topics if among is None else among)
    close = [pair for id_ in looked for pair in _similar_pairs(state, id_, looked, rules)]
    while close:
        younger, match = max(close, key=_closeness)
        older = match.topic
        active = older if state.active == younger else state.active
        changed = merge_pair(state.topics[older], state.topics[younger])
        state = state.having(*changed, active=active)
        into[younger] = match
        # Only the older one's vector has changed; all other pairs stay the same.
        close = [pair for pair in close if not {pair[0], pair[1].topic} & {younger, older}]
        close += _similar_pairs(state, older, {older}, rules)
    return MergeResult(state, into)


def merge_pair(older: Topic, younger: Topic) -> tuple[Topic, Topic]:
    """Both topics after merging the younger into the older.

    All entries are active again: neither topic's digest covers the entries of the other.
    """
    whole = replace(
        _with_mean(older, younger),
        created_at=min(older.created_at, younger.created_at),
        last_active_at=max(older.last_active_at, younger.last_active_at),
        importance=max(older.importance, younger.importance),
        access_count=older.access_count + younger.access_count,
        entries=older.entries + younger.entries,
        archived=0,
        active_from=0,
        last_seq=max(older.last_seq, younger.last_seq),
        restored_by=max(older.restored_by, younger.restored_by),
        dormant=older.dormant and younger.dormant,
        tags=tuple(sorted({*older.tags, *younger.tags})[:TAGS_MAX]),
    )
    return whole, replace(emptied(younger), merged_into=older.id)


def _with_mean(older: Topic, younger: Topic) -> Topic:
    """The older with the mean of both vectors, if they are comparable."""
    if not older.vectors:
        return replace(older, model=younger.model, vectors=younger.vectors, vector=younger.vector)
    if not is_comparable(younger, older.model, len(older.vector) // 4):
        return older
    body = mean(older.vector, older.vectors, unpack(younger.vector), younger.vectors)
    return replace(older, vectors=older.vectors + younger.vectors, vector=body)


def _closeness(pair: tuple[int, TopicMatch]) -> tuple[float, int, int]:
    return pair[1].raw, -pair[1].topic, -pair[0]


def _similar_pairs(
    state: TopicState, id_: int, among: Collection[int], rules: Rules
) -> Iterator[tuple[int, TopicMatch]]:
    """Topics similar enough to merge with `id_`: of each pair the younger, and the older."""
    topic = state.topics[id_]
    if topic.merged_into is not None or not topic.vectors:
        return
    # A pair within `among` is compared once.
    others = [t for t in state.topics.values() if t.id < id_ or t.id not in among]
    for match in match_topics(unpack(topic.vector), topic.model, others, rules):
        if match.similarity < rules.merge_threshold:
            return
        older, younger = sorted((match.topic, id_))
        yield younger, match._replace(topic=older)
