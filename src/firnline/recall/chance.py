"""The chance that a found message is evidence for the question, and which ones earn their place.

A score only orders what one question found. The chance is calibrated: of the messages with a chance
of 20 %, about one in five is evidence, whatever the question and the size of the log. It depends on

share      the message's share in the softmax of all scores, and its logarithm (`log_share`): a sure
           answer leaves little to the others, and several likely ones share
best       the best score that the question has anywhere
covered    the most of the question's weighty words in or near any one message
meaning    the best cosine of any message, if there are vectors of sentences
tokens     or the best of the question's tokens, if there are vectors of tokens

All but the shares are the same for all messages of a question, so chances have the order of scores.
`weights.CHANCE_LEXICAL` and the others are learned by ``tools/ranker``.
Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from firnline.recall import weights
from firnline.recall.limits import EARNED_MAX

EARNED_CHANCE: Final = 0.05
"""What earns its place: fewer than three messages besides the answer, if that is one message."""


class Scored(Protocol):
    """What was found for a question: a `Hit` or a `RankedEntry`."""

    @property
    def score(self) -> float:
        """Higher is better."""
        ...

    @property
    def parts(self) -> Mapping[str, float]:
        """The summands of the score by feature."""
        ...


def chances(scored: Sequence[Scored]) -> list[float]:
    """The chance of each of the messages that a question found; pass all of them."""
    if not scored:
        return []
    table = weights.chance_of(_measured(scored))
    common = math.fsum(table[name] * value for name, value in question_features(scored).items())
    return [
        _logistic(
            table["always"] + common + table["log_share"] * share + table["share"] * math.exp(share)
        )
        for share in log_shares(scored)
    ]


def log_shares(scored: Sequence[Scored]) -> list[float]:
    """The logarithm of each one's share in the softmax of the scores."""
    best = max(one.score for one in scored)
    whole = best + math.log(math.fsum(math.exp(one.score - best) for one in scored))
    return [one.score - whole for one in scored]


def question_features(scored: Sequence[Scored]) -> dict[str, float]:
    """How good the best is that a question found: the features that its messages have in common."""
    measured = _measured(scored)
    table = weights.of(measured)
    found = {
        "best": max(one.score for one in scored),
        "covered": max(one.parts.get("around", 0.0) for one in scored) / table["around"],
    }
    for name in measured:
        found[name] = max(one.parts.get(name, 0.0) for one in scored) / table[name]
    return found


def _measured(scored: Sequence[Scored]) -> tuple[str, ...]:
    """The feature that says how near the vectors are, if there are any: the more exact one."""
    for name in ("tokens", "meaning"):
        if any(name in one.parts for one in scored):
            return (name,)
    return ()


def count_earned(ordered: Sequence[float]) -> int:
    """How many leading messages earn their place, given the chances of all in their order."""
    earned = [n for n, chance in enumerate(ordered[:EARNED_MAX], 1) if chance >= EARNED_CHANCE]
    return max(earned, default=0)


def _logistic(value: float) -> float:
    if value < 0:
        return math.exp(value) / (1 + math.exp(value))
    return 1 / (1 + math.exp(-value))
