"""Importance learned from feedback and from use, and tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal

from firnline.errors import InputError
from firnline.language.stop_words import is_content, split_words, word_root
from firnline.log.entry import Entry, Topic
from firnline.log.text import clean_name
from firnline.topics.rules import TAGS_MAX

STEP: Final = 0.25
"""The share of the way to 1 or 0 that each vote moves the importance."""
USED_STEP: Final = 0.05
"""The same if the answer used a recalled entry of the topic."""
USED_WEIGHT_MIN: Final = 2
"""Words of a recalled entry that an answer must repeat; one with a digit counts as two."""
USED_LOOK_CHARS: Final = 4_000
"""Characters of a text that are compared."""


def apply_feedback(topic: Topic, vote: Literal[1, -1]) -> Topic:
    """The topic after a vote for it (1) or against it (-1).

    For: importance += 0.25 * (1 - importance), and one access is counted. Against: importance -=
    0.25 * importance. So the importance stays between 0 and 1.
    """
    if vote not in (1, -1):
        raise InputError(f"vote: expected 1 or -1, got {vote!r}")
    if vote == 1:
        return replace(_raise_importance(topic, STEP), access_count=topic.access_count + 1)
    return replace(topic, importance=topic.importance * (1 - STEP))


def apply_use(topic: Topic) -> Topic:
    """The topic after an answer used a recalled entry of it: a small gain of importance.

    It counts no access: recall is frequent, and the half-life is for topics that users return to.
    """
    return _raise_importance(topic, USED_STEP)


def _raise_importance(topic: Topic, step: float) -> Topic:
    raised = topic.importance + step * (1 - topic.importance)
    return replace(topic, importance=min(1.0, raised))


def change_tags(topic: Topic, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Topic:
    """The topic with tags added and removed; tags are names, sorted, each once.

    `InputError` if a tag is not a valid name, or if there are more than `TAGS_MAX`.
    """
    added = {clean_name(tag, "tag") for tag in _check_tags(add)}
    tags = sorted((set(topic.tags) | added) - set(_check_tags(remove)))
    if len(tags) > TAGS_MAX:
        raise InputError(f"tags: {len(tags)} tags; the limit is {TAGS_MAX}")
    return replace(topic, tags=tuple(tags))


def _check_tags(tags: Iterable[str]) -> Iterable[str]:
    if isinstance(tags, str):  # a string is iterable, too
        raise InputError("tags: expected a list of strings, got a string")
    return tags


def used_entries(answer: str, recalled: Sequence[Entry], visible: Iterable[str]) -> list[Entry]:
    """The recalled entries with words that the answer repeats and has from no other text.

    `visible` are the other texts of the context, including the question: their words prove nothing.
    """
    elsewhere = {word for text in visible for word in _words(text)}
    repeated = _words(answer) - elsewhere
    return [e for e in recalled if _weight(repeated & _words(e.message.text)) >= USED_WEIGHT_MIN]


def _words(text: str) -> set[str]:
    return {word_root(word) for word in split_words(text[:USED_LOOK_CHARS]) if is_content(word)}


def _weight(found: Iterable[str]) -> int:
    return sum(2 if any(char.isdigit() for char in word) else 1 for word in found)
