"""No text makes a regular expression of the package slow: each is linear in the text's length."""

import os
import time

import pytest

from firnline.log.regex import regex
from support.patterns import HardText, UsedPattern, hard_texts, used_patterns

CHARS, CHARS_MAX = (4_096, 1_048_576) if "FIRNLINE_TORTURE" in os.environ else (1_024, 131_072)
SECONDS = 0.2
"""A time that no noise adds; growth is only judged above it."""
FEW = (12, 16, 20, 24)
TRIES = 3
GROWTH = 8
"""The largest growth of the time for a text of fourfold length; quadratic is 16."""


def seconds(used: UsedPattern, way: str, hard: HardText, chars: int) -> float:
    text = hard.of(chars)
    subject = text.encode() if isinstance(used.pattern.pattern, bytes) else text
    begun = time.process_time()
    found = getattr(used.pattern, way)(subject)
    if way == "finditer":
        for _ in found:
            pass
    return time.process_time() - begun


def grows(used: UsedPattern, way: str, hard: HardText) -> bool:
    """Whether the time grows faster than the text, up to lengths at which it matters."""
    for repeated in FEW:  # exponential ones would not end on more
        if seconds(used, way, hard, repeated * len(hard.piece)) > SECONDS / 4:
            return True
    chars, before, now = 4 * CHARS, 0.0, seconds(used, way, hard, 4 * CHARS)
    if now < 8 * seconds(used, way, hard, CHARS):
        return False
    while now < SECONDS and chars < CHARS_MAX:
        chars *= 4
        before, now = now, seconds(used, way, hard, chars)
        if now < GROWTH * before:
            return False
    again = (seconds(used, way, hard, chars) for _ in range(TRIES))  # noise only adds
    return now > SECONDS and all(GROWTH * before < took for took in again)


def slow(used: UsedPattern, most: float) -> list[str]:
    """The texts for which the expression is slow, among those that take `most` seconds together."""
    begun = time.process_time()
    for hard in hard_texts(used.pattern):
        for way in used.ways:
            if grows(used, way, hard):
                return [f"{used.where} ({way}): {used.pattern.pattern!r} on {hard}"]
        if time.process_time() - begun > most:
            break
    return []


EACH = 30.0 if "FIRNLINE_TORTURE" in os.environ else 0.003
"""Seconds for each expression, besides the texts that seem to be slow."""


PARTS = 3
"""For several processes: each pattern is in one of them."""


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_no_expression_is_slow_on_any_text(part):
    patterns = used_patterns()[part::PARTS]
    assert len(patterns) > 200 / PARTS
    assert [line for used in patterns for line in slow(used, EACH)] == []


@pytest.mark.parametrize("expression", [r"\s+$", r"(a+)+b", r"«[^»]*»"])
def test_a_slow_expression_is_found(expression):
    assert slow(UsedPattern("test", regex(expression), ("finditer",)), 30)
