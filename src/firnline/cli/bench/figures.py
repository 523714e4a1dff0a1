"""From answers to figures: how much of the evidence is there, how often, how fast. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from firnline.cli.bench.measure import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One method, one group of questions, one budget; shares are between 0 and 1.

    `mean` is the mean over the questions of the share of their evidence that is there, `any` and
    `all` are the shares of questions with some, and with all, of it.
    """

    questions: int
    mean: float
    any: float
    all: float
    tokens: float
    p50: float
    p99: float
    over: int
    refused: int


def figures(answers: Sequence[Answer], budget: int) -> Figures:
    """The figures of these answers, of which there is at least one."""
    found = [answer.found[budget] for answer in answers]
    times = sorted(one.milliseconds for one in found)
    return Figures(
        questions=len(found),
        mean=_mean(sum(one.evidence) / len(one.evidence) for one in found),
        any=_mean(any(one.evidence) for one in found),
        all=_mean(all(one.evidence) for one in found),
        tokens=_mean(one.tokens for one in found),
        p50=percentile(times, 50),
        p99=percentile(times, 99),
        over=sum(one.over for one in found),
        refused=sum(one.refused for one in found),
    )


def groups(answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    """All answers, and then those of each category.

    Where only the session of the evidence is known, to find any turn of it is enough; that is less,
    so such questions are in groups of their own.
    """
    found: dict[str, list[Answer]] = {}
    for answer in answers:
        by = " (by session)" if answer.question.by_session else ""
        found.setdefault(f"all{by}", []).append(answer)
        found.setdefault(f"{answer.question.category}{by}", []).append(answer)
    return dict(sorted(found.items(), key=lambda item: (not item[0].startswith("all"), item[0])))


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest of the sorted values that so many percent of them do not exceed."""
    return values[max(ceil(len(values) * percent / 100) - 1, 0)]


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
