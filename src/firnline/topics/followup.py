"""Recognizes follow-ups, messages without a subject: "why?", "and the price?", "do it".

Their subject is in earlier messages. So a follow-up stays in the active topic, whatever its vector,
and its vector does not become part of the topic's mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from firnline.language.stop_words import (
    ACTIONS,
    ASKING,
    CONTENT_MAX,
    MEANWHILE,
    OPENERS,
    OPENING_PAIRS,
    SPEAKERS,
    content_weight,
    fold,
    has_reference,
    split_words,
)

LOOK_CHARS: Final = 2_000
"""Characters of a message that are analyzed; a follow-up is short."""


def is_followup(text: str) -> bool:
    """Whether a message has no subject.

    It has no content words, or only one or two and continues the conversation: it starts with "and"
    or "what about", or refers to something by "it" or "that".
    """
    if len(text) > LOOK_CHARS:
        return False
    found = split_words(text)
    content = content_weight(found)
    if not content:
        return has_reference(found) or not _asks_of_speaker(found)
    return content <= CONTENT_MAX and (starts_like_continuation(found) or has_reference(found))


def says_something(text: str) -> bool:
    """Whether an answer says more of a subject than "let me see"."""
    return content_weight(split_words(text[:LOOK_CHARS])) >= CONTENT_MAX


def starts_like_continuation(found: Sequence[str]) -> bool:
    """Whether words start like the continuation of a question."""
    start = [fold(word) for word in found[:3]]
    return bool(start) and (
        start[0] in OPENERS
        or tuple(start[:2]) in OPENING_PAIRS
        or tuple(start[1:3]) in OPENING_PAIRS
    )


def _asks_of_speaker(found: Sequence[str]) -> bool:
    """Whether speakers ask for facts of themselves: "where do I work?" has a subject."""
    words = [fold(word) for word in found]
    return any(
        before in ASKING and who in SPEAKERS and does in ACTIONS and after not in MEANWHILE
        for before, who, does, after in zip(
            words, words[1:], words[2:], [*words[3:], ""], strict=False
        )
    )


def depends_on_context(text: str) -> bool:
    """Whether a message cannot be understood without earlier messages."""
    return is_followup(text) or has_reference(split_words(text[:LOOK_CHARS]))
