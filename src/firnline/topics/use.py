"""Whether an answer made use of what was recalled for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from firnline.language.stop_words import is_content, split_words, word_root
from firnline.log.entry import Entry

WEIGHT_MIN: Final = 2
"""Words of a recalled entry that an answer has to repeat; one with a digit counts for two."""
LOOK_CHARS: Final = 4_000
"""Characters of a text that are looked at."""


def made_use(answer: str, recalled: Sequence[Entry], known: Iterable[str]) -> list[Entry]:
    """The recalled entries whose words an answer repeats that it cannot have from elsewhere.

    `known` are the other texts that were in sight, the question among them: their words prove
    nothing.
    """
    elsewhere = {word for text in known for word in _words(text)}
    repeated = _words(answer) - elsewhere
    return [e for e in recalled if _weight(repeated & _words(e.message.text)) >= WEIGHT_MIN]


def _words(text: str) -> set[str]:
    return {word_root(word) for word in split_words(text[:LOOK_CHARS]) if is_content(word)}


def _weight(found: Iterable[str]) -> int:
    return sum(2 if any(char.isdigit() for char in word) else 1 for word in found)
