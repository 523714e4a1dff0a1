"""Topics: what parts of a conversation are about, how they fade, and how they come back. Pure.

A topic is a view of the log. `assign` puts the next entry into one; the rest says what to fold,
what to merge, how important a topic is, and what a follow-up question is about.
"""

from __future__ import annotations

from firnline.topics.decay import half_life, memory_type, priority, survival
from firnline.topics.feedback import feedback, tagged, used
from firnline.topics.fold import folded, just_restored, to_fold
from firnline.topics.followup import is_followup, leans
from firnline.topics.merge import Merged, merge, merged
from firnline.topics.rules import Rules
from firnline.topics.similarity import LIKENESS, Match, calibrated, matches
from firnline.topics.standalone import checked, standalone, standalone_messages
from firnline.topics.state import State, Step, assign, needs_vector, replay
from firnline.topics.stats import TopicStats, stats
from firnline.topics.title import title_of
from firnline.topics.use import made_use

__all__ = [
    "LIKENESS",
    "Match",
    "Merged",
    "Rules",
    "State",
    "Step",
    "TopicStats",
    "assign",
    "calibrated",
    "checked",
    "feedback",
    "folded",
    "half_life",
    "is_followup",
    "just_restored",
    "leans",
    "made_use",
    "matches",
    "memory_type",
    "merge",
    "merged",
    "needs_vector",
    "priority",
    "replay",
    "standalone",
    "standalone_messages",
    "stats",
    "survival",
    "tagged",
    "title_of",
    "to_fold",
    "used",
]
