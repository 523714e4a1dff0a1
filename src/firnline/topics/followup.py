"""Messages that have no subject of their own: "why?", "and the price?", "do it", "und dann?".

What such a message is about was said before it. So it stays in the topic that is active, whatever
its vector says, and it is no example of what the topic is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from firnline.language.stop_words import (
    BEING,
    OPENERS,
    OPENING_PAIRS,
    POINTING,
    REFERRING,
    fold,
    is_content,
    split_words,
)

CONTENT_MAX: Final = 2
"""Words about a subject that a follow-up may have; with more it has a subject of its own."""
LOOK_CHARS: Final = 2_000
"""Characters of a message that are looked at; a follow-up is short."""


def is_followup(text: str) -> bool:
    """Whether a message has no subject of its own.

    It has no word about a subject at all, or only one or two and it goes on with what was said: it
    begins with "and" or "what about", or stands for something by "it" or "that".
    """
    if len(text) > LOOK_CHARS:
        return False
    found = split_words(text)
    content = sum(map(is_content, found))
    if not content:
        return True
    return content <= CONTENT_MAX and (starts_like_continuation(found) or has_reference(found))


def starts_like_continuation(found: Sequence[str]) -> bool:
    """Whether words begin like the second half of a question."""
    start = [fold(word) for word in found[:3]]
    return bool(start) and (
        start[0] in OPENERS
        or tuple(start[:2]) in OPENING_PAIRS
        or tuple(start[1:3]) in OPENING_PAIRS
    )


def has_reference(found: Sequence[str]) -> bool:
    """Whether a word stands for something that is not in front of it."""
    before = 0
    for at, word in enumerate(found):
        if fold(word) in REFERRING and before < CONTENT_MAX and not _points_to_noun(found, at):
            return True
        before += is_content(word)
    return False


def _points_to_noun(found: Sequence[str], at: int) -> bool:
    """Whether the word at `at` only points to the noun behind it, as in "this contract"."""
    behind = found[at + 1 :]
    if fold(found[at]) not in POINTING or not behind or not is_content(behind[0]):
        return False
    return len(behind) > 1 or at == 0 or fold(found[at - 1]) not in BEING


def depends_on_context(text: str) -> bool:
    """Whether a message cannot be understood without what was said before it."""
    return is_followup(text) or has_reference(split_words(text[:LOOK_CHARS]))
