"""What people say about a topic: importance learned from feedback, and tags."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal

from firnline.errors import InputError
from firnline.log.entry import Topic
from firnline.log.text import clean_name
from firnline.topics.rules import TAGS_MAX

STEP: Final = 0.25
"""The share of the way to 1, or to 0, that the importance goes at each word of praise or blame."""
USED_STEP: Final = 0.05
"""The same when something of the topic was recalled and the answer made use of it."""


def feedback(topic: Topic, vote: Literal[1, -1]) -> Topic:
    """The topic after praise (1) or blame (-1).

    Praise: importance += 0.25 * (1 - importance), and one access is counted. Blame: importance -=
    0.25 * importance. So the steps get smaller towards an end, and neither is ever left.
    """
    if vote not in (1, -1):
        raise InputError(f"vote: {vote!r} is neither 1 nor -1")
    if vote == 1:
        return replace(_praised(topic, STEP), access_count=topic.access_count + 1)
    return replace(topic, importance=topic.importance * (1 - STEP))


def used(topic: Topic) -> Topic:
    """The topic after an answer made use of what was recalled of it: a little praise.

    It counts no access: a machine recalls often, and the half-life is for what people come back to.
    """
    return _praised(topic, USED_STEP)


def _praised(topic: Topic, step: float) -> Topic:
    raised = topic.importance + step * (1 - topic.importance)
    return replace(topic, importance=min(1.0, raised))


def tagged(topic: Topic, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Topic:
    """The topic with tags added and removed; tags are names, sorted, each once.

    `InputError` if one is no name, or if there would be more than `TAGS_MAX`.
    """
    added = {clean_name(tag, "tag") for tag in _several(add)}
    tags = sorted((set(topic.tags) | added) - set(_several(remove)))
    if len(tags) > TAGS_MAX:
        raise InputError(f"tags: {len(tags)} are too many; {TAGS_MAX} are allowed")
    return replace(topic, tags=tuple(tags))


def _several(tags: Iterable[str]) -> Iterable[str]:
    # A text is a series of characters; as tags that is never meant.
    if isinstance(tags, str):
        raise InputError("tags: expected several, got a text")
    return tags
