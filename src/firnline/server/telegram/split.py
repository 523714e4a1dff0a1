"""Splits long answers: a Telegram message has at most 4,096 UTF-16 code units. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Final

from firnline.log.regex import regex
from firnline.server.limits import TELEGRAM_PARTS_MAX

UNITS_MAX: Final = 4_096
"""The maximum of UTF-16 code units in one message; most emoji take two."""

_CUTS: Final = tuple(
    regex(pattern)
    for pattern in (
        r"\n[^\S\n]*\n\s*",  # between paragraphs
        r"\n\s*",  # lines
        r"(?<=[.!?\u2026])\s+|(?<=[\u3002\uff01\uff1f])\s*",  # sentences
        r"\s+",  # words
    )
)
_BLANKS: Final = regex(r"\s*")
_REST: Final = "[{:,} more characters are kept in the conversation.]"
_LOOK_BACK: Final = 64  # characters searched for a grapheme boundary
_JOINER: Final = "\u200d"
_LAST_BMP: Final = "\uffff"
_FLAGS: Final = ("\U0001f1e6", "\U0001f1ff")  # regional indicators: a pair is a flag
_TONES: Final = ("\U0001f3fb", "\U0001f3ff")
_TAGS: Final = ("\U000e0020", "\U000e007f")
_JAMO: Final = ("\u1160", "\u11ff")  # vowels and finals, which join the syllable before them


def units(text: str) -> int:
    """The length of a text in UTF-16 code units."""
    return len(text) + sum(character > _LAST_BMP for character in text)


def split(text: str, most: int = UNITS_MAX) -> list[str]:
    """Split a text into parts of at most `most` units, without white space at their ends.

    Splits between paragraphs if that fills at least half a part, else between lines, sentences or
    words, and otherwise between two graphemes. Nothing but white space is lost.
    """
    return [text[start:end] for start, end in _spans(text, most)]


def parts_of(text: str) -> list[str]:
    """The messages for an answer; the last one is a note if there would be too many."""
    spans = [*islice(_spans(text, UNITS_MAX), TELEGRAM_PARTS_MAX + 1)]
    over = len(spans) > TELEGRAM_PARTS_MAX
    parts = [text[start:end] for start, end in spans[: TELEGRAM_PARTS_MAX - over]]
    return [*parts, _REST.format(len(text) - spans[len(parts) - 1][1])] if over else parts


def _spans(text: str, most: int) -> Iterator[tuple[int, int]]:
    """The start and the end of each part."""
    at, last = 0, len(text.rstrip())
    while (at := _BLANKS.match(text, at).end()) < last:  # type: ignore[union-attr]
        window = text[at : min(at + most + 1, last)]
        reach = _reach(window, most)
        end, start = (reach, reach) if at + reach == last else _cut(window, reach)
        yield at, at + len(window[:end].rstrip())
        at += start


def _reach(window: str, most: int) -> int:
    """The number of characters that fit."""
    taken = 0
    for at, character in enumerate(window):
        taken += 1 + (character > _LAST_BMP)
        if taken > most:
            return max(at, 1)
    return len(window)


def _cut(text: str, reach: int) -> tuple[int, int]:
    """The end of a part and the start of the next one; at most `reach` characters fit."""
    for pattern in _CUTS:
        # One more character: the white space at a split need not fit.
        found = [match.span() for match in pattern.finditer(text, 0, reach + 1)]
        within = [span for span in found if reach // 2 <= span[0] <= reach]
        if within:
            return within[-1]
    return (_between(text, reach),) * 2


def _between(text: str, reach: int) -> int:
    """The last grapheme boundary within reach, if there is one nearby."""
    for at in range(reach, max(reach - _LOOK_BACK, 0), -1):
        if not _joined(text, at):
            return at
    return reach


def _joined(text: str, at: int) -> bool:
    """Whether the characters before and at `at` form one grapheme; an approximation."""
    before, after = text[at - 1], text[at]
    if _JOINER in (before, after) or unicodedata.category(after) in ("Mn", "Mc", "Me"):
        return True
    if any(first <= after <= last for first, last in (_TONES, _TAGS, _JAMO)):
        return True
    return _is_flag(after) and _flags_before(text, at) % 2 == 1


def _is_flag(character: str) -> bool:
    return _FLAGS[0] <= character <= _FLAGS[1]


def _flags_before(text: str, at: int) -> int:
    count = 0
    while count < at and _is_flag(text[at - 1 - count]):
        count += 1
    return count
