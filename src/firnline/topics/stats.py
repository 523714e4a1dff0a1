"""The statistics of a topic."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from firnline.log.entry import Topic
from firnline.topics.decay import MemoryType, elapsed, half_life, memory_type, priority
from firnline.topics.rules import DAY, Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStats:
    """The statistics of a topic at one moment."""

    topic_id: int
    title: str
    active_messages: int
    archived_messages: int
    total_messages: int
    has_summary: bool
    importance: float
    access_count: int
    memory_type: MemoryType
    half_life_days: float
    age_seconds: float
    inactive_seconds: float
    priority: float
    tags: tuple[str, ...]
    dormant: bool

    def to_json(self) -> dict[str, Any]:
        """The same as a JSON object."""
        return {**asdict(self), "tags": list(self.tags)}


def topic_stats(topic: Topic, now: datetime, rules: Rules, *, has_summary: bool) -> TopicStats:
    """The statistics of the topic at `now`."""
    return TopicStats(
        topic_id=topic.id,
        title=topic.title,
        active_messages=topic.entries - topic.archived,
        archived_messages=topic.archived,
        total_messages=topic.entries,
        has_summary=has_summary,
        importance=topic.importance,
        access_count=topic.access_count,
        memory_type=memory_type(topic.access_count, rules),
        half_life_days=half_life(topic.access_count, rules) / DAY,
        age_seconds=elapsed(topic.created_at, now),
        inactive_seconds=elapsed(topic.last_active_at, now),
        priority=priority(topic, now, rules),
        tags=topic.tags,
        dormant=topic.dormant,
    )
