"""How topics fade: the more often a topic is used, the more slowly it fades."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Final, Literal, TypeAlias

from firnline.log.entry import Topic
from firnline.topics.rules import Rules

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
