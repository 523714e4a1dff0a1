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
"""The share of the way to 1, or to 0, that the importance goes at each word of praise or blame."""
USED_STEP: Final = 0.05
"""The same when something of the topic was recalled and the answer made use of it."""
USED_WEIGHT_MIN: Final = 2
"""Words of a recalled entry that an answer has to repeat; one with a digit counts for two."""
USED_LOOK_CHARS: Final = 4_000
"""Characters of a text that are looked at."""


def apply_feedback(topic: Topic, vote: Literal[1, -1]) -> Topic:
    """The topic after praise (1) or blame (-1).

    Praise: importance += 0.25 * (1 - importance), and one access is counted. Blame: importance -=
    0.25 * importance. So the steps get smaller towards an end, and neither is ever left.
    """
    if vote not in (1, -1):
        raise InputError(f"vote: {vote!r} is neither 1 nor -1")
    if vote == 1:
        return replace(_raise_importance(topic, STEP), access_count=topic.access_count + 1)
    return replace(topic, importance=topic.importance * (1 - STEP))


def apply_use(topic: Topic) -> Topic:
    """The topic after an answer made use of what was recalled of it: a little praise.

    It counts no access: a machine recalls often, and the half-life is for what people come back to.
    """
    return _raise_importance(topic, USED_STEP)


def _raise_importance(topic: Topic, step: float) -> Topic:
    raised = topic.importance + step * (1 - topic.importance)
    return replace(topic, importance=min(1.0, raised))


def change_tags(topic: Topic, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Topic:
    """The topic with tags added and removed; tags are names, sorted, each once.

    `InputError` if one is no name, or if there would be more than `TAGS_MAX`.
    """
    added = {clean_name(tag, "tag") for tag in _check_tags(add)}
    tags = sorted((set(topic.tags) | added) - set(_check_tags(remove)))
    if len(tags) > TAGS_MAX:
        raise InputError(f"tags: {len(tags)} are too many; {TAGS_MAX} are allowed")
    return replace(topic, tags=tuple(tags))


def _check_tags(tags: Iterable[str]) -> Iterable[str]:
    # A text is a series of characters; as tags that is never meant.
    if isinstance(tags, str):
        raise InputError("tags: expected several, got a text")
    return tags


def used_entries(answer: str, recalled: Sequence[Entry], visible: Iterable[str]) -> list[Entry]:
    """The recalled entries whose words an answer repeats that it cannot have from elsewhere.

    `visible` are the other texts of the context, including the question: their words prove nothing.
    """
    elsewhere = {word for text in visible for word in _words(text)}
    repeated = _words(answer) - elsewhere
    return [e for e in recalled if _weight(repeated & _words(e.message.text)) >= USED_WEIGHT_MIN]


def _words(text: str) -> set[str]:
    return {word_root(word) for word in split_words(text[:USED_LOOK_CHARS]) if is_content(word)}


def _weight(found: Iterable[str]) -> int:
    return sum(2 if any(char.isdigit() for char in word) else 1 for word in found)
