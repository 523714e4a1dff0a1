"""Topics of a conversation: how entries are assigned, how topics fade and come back. Pure.

A topic is a view of the log. `assign` puts the next entry into one; the rest decides what to
digest, what to merge, how important a topic is, and what a follow-up question is about.
"""

from __future__ import annotations

from firnline.embedding.likeness import LIKENESS
from firnline.topics.decay import (
    TopicStats,
    half_life,
    memory_type,
    priority,
    survival,
    topic_stats,
)
from firnline.topics.feedback import apply_feedback, apply_use, change_tags, used_entries
from firnline.topics.flow import flow_of
from firnline.topics.fold import entries_to_fold, is_just_restored, mark_folded
from firnline.topics.followup import depends_on_context, is_followup
from firnline.topics.merge import MergeResult, merge_pair, merge_topics
from firnline.topics.rounds import answered_text, answers, open_question, without_newest
from firnline.topics.rules import Rules
from firnline.topics.similarity import TopicMatch, calibrate, match_topics
from firnline.topics.standalone import check_rewrite, standalone, standalone_messages
from firnline.topics.state import (
    TopicState,
    TopicStep,
    assign,
    emptied,
    needs_vector,
    replay,
    with_vectors,
    without_entries,
)
from firnline.topics.title import title_of

__all__ = [
    "LIKENESS",
    "MergeResult",
    "Rules",
    "TopicMatch",
    "TopicState",
    "TopicStats",
    "TopicStep",
    "answered_text",
    "answers",
    "apply_feedback",
    "apply_use",
    "assign",
    "calibrate",
    "change_tags",
    "check_rewrite",
    "depends_on_context",
    "emptied",
    "entries_to_fold",
    "flow_of",
    "half_life",
    "is_followup",
    "is_just_restored",
    "mark_folded",
    "match_topics",
    "memory_type",
    "merge_pair",
    "merge_topics",
    "needs_vector",
    "open_question",
    "priority",
    "replay",
    "standalone",
    "standalone_messages",
    "survival",
    "title_of",
    "topic_stats",
    "used_entries",
    "with_vectors",
    "without_entries",
    "without_newest",
]
