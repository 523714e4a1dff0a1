"""Which entries of a topic are digested, and the topic afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firnline.context.plan import ends_round, is_question, units
from firnline.log.entry import Entry, Topic
from firnline.topics.rules import check_folding


def entries_to_fold(
    entries: Sequence[Entry], max_messages: int = 12, keep: int = 4
) -> tuple[int, ...]:
    """The entries to digest if more than `max_messages` are active: all but the newest `keep`.

    `entries` are the active ones of a topic, in order. A tool call and its results stay together,
    so slightly more than `keep` may remain.
    """
    check_folding(max_messages, keep)
    if len(entries) <= max_messages:
        return ()
    found = units(entries)
    start, kept = entries[-1].seq + 1, 0
    for unit in reversed(found):
        if kept >= keep:
            break
        start, kept = min(start, unit.first_seq), kept + len(unit.entries)
    # An unanswered call can be inside the unit of another one, which must not be cut.
    start = min([start, *(unit.first_seq for unit in found if unit.last_seq >= start)])
    return tuple(entry.seq for entry in entries if entry.seq < start)


def mark_folded(topic: Topic, seqs: Sequence[int]) -> Topic:
    """The topic after these, the first of its active entries, are digested and archived."""
    if not seqs:
        return topic
    active_from = max(topic.active_from, seqs[-1] + 1)
    return replace(topic, active_from=active_from, archived=topic.archived + len(seqs))


def is_just_restored(topic: Topic, entries: Sequence[Entry]) -> bool:
    """Whether the round whose question restored the topic is still in progress.

    Until it ends nothing is digested, so that the answer can use all messages. It ends with an
    answer, or with the user's next message.
    """
    if topic.restored_by < 0:
        return False
    later = (entry.message for entry in entries if entry.seq > topic.restored_by)
    return not any(ends_round(message) or is_question(message) for message in later)
