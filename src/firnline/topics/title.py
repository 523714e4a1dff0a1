"""A topic's title: the beginning of its first message, cut between graphemes."""

from __future__ import annotations

import unicodedata
from typing import Final

from firnline.topics.rules import TITLE_CHARS

_JOINER: Final = "\u200d"
_SKINS: Final = range(0x1F3FB, 0x1F400)
_FLAGS: Final = range(0x1F1E6, 0x1F200)


def title_of(text: str, chars_max: int = TITLE_CHARS) -> str:
    """The first characters of a text, spaces collapsed; an accent stays with its letter.

    If not even one grapheme fits, it is cut.
    """
    # A title is short: text far after it need not be split into words.
    words = " ".join(text[: 64 * chars_max].split())
    if len(words) <= chars_max:
        return words
    end = chars_max
    while end and _belongs_to_previous(words, end):
        end -= 1
    return words[: end or chars_max].rstrip()


def _belongs_to_previous(text: str, at: int) -> bool:
    """Whether the character at `at` belongs to the one before it."""
    char, before = text[at], text[at - 1]
    if unicodedata.category(char).startswith("M") or ord(char) in _SKINS:
        return True
    if _JOINER in (char, before):
        return True
    if ord(char) not in _FLAGS:
        return False
    start = at
    while start and ord(text[start - 1]) in _FLAGS:
        start -= 1
    return (at - start) % 2 == 1  # flags are pairs
