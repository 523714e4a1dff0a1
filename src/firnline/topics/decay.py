"""How topics fade: the more often a topic is used, the more slowly it fades; its statistics."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from firnline.log.entry import Topic
from firnline.topics.rules import DAY, Rules

MemoryType: TypeAlias = Literal["short-term", "transitioning", "long-term"]
_TYPES: Final[tuple[MemoryType, ...]] = ("short-term", "transitioning", "long-term")
_DOUBLINGS_MAX: Final = 64  # far above every maximum, and far below what a float overflows at


def consolidation(access_count: int, rules: Rules) -> int:
    """How often the half-life has doubled."""
    return access_count // rules.access_threshold_for_lt


def half_life(access_count: int, rules: Rules) -> float:
    """Seconds until the priority of a topic with this access count has halved."""
    doublings = min(consolidation(access_count, rules), _DOUBLINGS_MAX)
    return min(rules.base_half_life_seconds * 2.0**doublings, rules.max_half_life_seconds)


def memory_type(access_count: int, rules: Rules) -> MemoryType:
    """Short-term, then transitioning for the first doubling, then long-term."""
    return _TYPES[min(consolidation(access_count, rules), len(_TYPES) - 1)]


def elapsed(since: datetime, now: datetime) -> float:
    """Seconds from `since` to `now`; 0 if `since` is in the future, because clocks differ."""
    return max(0.0, (now - since).total_seconds())


def priority(topic: Topic, now: datetime, rules: Rules) -> float:
    """Importance * 0.5 ** (time since it was last active / half-life)."""
    age = elapsed(topic.last_active_at, now)
    return topic.importance * math.exp2(-age / half_life(topic.access_count, rules))


def survival(access_count: int, rules: Rules, importance: float = 1.0) -> float:
    """Seconds until an unused topic has a priority of `priority_floor`."""
    if importance <= rules.priority_floor:
        return 0.0
    if not rules.priority_floor:
        return math.inf
    return half_life(access_count, rules) * math.log2(importance / rules.priority_floor)


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
