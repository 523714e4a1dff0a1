"""The parameters of topics, with the names and defaults of the original system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from firnline.errors import InputError

DAY: Final = 86_400.0
TITLE_CHARS: Final = 80
"""Characters of a title: the beginning of the topic's first message."""
TAGS_MAX: Final = 50
"""Tags of one topic."""


class DefaultThreshold(float):
    """A threshold that was not set: with a measured model, the flow of the conversation decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """When a message joins a topic, when a topic is digested, and how it fades.

    - `similarity_threshold`: if it is set, a message joins a topic that is more similar than this,
      and opens a new one otherwise. By default the flow of the conversation counts, too, if the
      model was measured (`firnline.topics.flow`); with other models it is 0.7.
    - `merge_threshold`: topics at least this similar are merged.
    - `max_topics`: if the working set has more, topics below `priority_floor` leave it.
    - half-life: `base_half_life_seconds`, doubled every `access_threshold_for_lt` accesses, up to
      `max_half_life_seconds`.
    - above `max_messages_per_topic` active entries all but `recent_message_keep` are digested.
    - `importance`: the initial importance of a topic, unless its first message sets another.
    - `likeness`: by model, the raw cosine that means `similarity_threshold`; it overrides
      `firnline.embedding.likeness.LIKENESS`.
    """

    max_topics: int = 20
    similarity_threshold: float = DefaultThreshold(0.7)
    merge_threshold: float = 0.8
    base_half_life_seconds: float = DAY
    max_half_life_seconds: float = 30 * DAY
    access_threshold_for_lt: int = 5
    max_messages_per_topic: int = 12
    recent_message_keep: int = 4
    priority_floor: float = 0.05
    importance: float = 1.0
    likeness: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.max_topics < 1 or self.access_threshold_for_lt < 1:
            raise InputError("max_topics and access_threshold_for_lt must be at least 1")
        if not 0 < self.base_half_life_seconds <= self.max_half_life_seconds:
            raise InputError(
                "base_half_life_seconds must be positive and at most max_half_life_seconds"
            )
        check_folding(self.max_messages_per_topic, self.recent_message_keep)
        if not 0 < self.similarity_threshold <= self.merge_threshold <= 1:
            raise InputError("similarity_threshold must be in (0, 1] and at most merge_threshold")
        if not 0 <= self.importance <= 1 or not 0 <= self.priority_floor <= 1:
            raise InputError("importance and priority_floor must be in [0, 1]")
        if not all(-1 < raw < 1 for raw in self.likeness.values()):
            raise InputError("likeness: a cosine must be between -1 and 1")


def check_folding(max_messages: int, keep: int) -> None:
    """Raise `InputError` unless `keep` is between 1 and `max_messages`."""
    if not 1 <= keep <= max_messages:
        raise InputError(
            f"the number of messages to keep must be between 1 and {max_messages}, got {keep}"
        )
