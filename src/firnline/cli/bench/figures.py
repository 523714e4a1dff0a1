"""Figures from results: how much evidence was found, how often, how fast. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from firnline.cli.bench.measure import QuestionResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One method, one group of questions, one budget; shares are between 0 and 1.

    `mean` is the mean share of evidence found per question, `any` and `all` are the shares of
    questions with some and with all of it; `whole` is the mean if only whole messages count.
    """

    questions: int
    mean: float
    any: float
    all: float
    whole: float
    tokens: float
    p50: float
    p99: float
    over: int
    refused: int


def figures(answers: Sequence[QuestionResult], budget: int) -> Figures:
    """The figures of these results, of which there is at least one."""
    found = [answer.found[budget] for answer in answers]
    times = sorted(one.milliseconds for one in found)
    return Figures(
        questions=len(found),
        mean=_mean(sum(one.evidence) / len(one.evidence) for one in found),
        any=_mean(any(one.evidence) for one in found),
        all=_mean(all(one.evidence) for one in found),
        whole=_mean(sum(one.whole) / len(one.whole) for one in found),
        tokens=_mean(one.tokens for one in found),
        p50=percentile(times, 50),
        p99=percentile(times, 99),
        over=sum(one.over for one in found),
        refused=sum(one.refused for one in found),
    )


def groups(answers: Iterable[QuestionResult]) -> dict[str, list[QuestionResult]]:
    """All results, and those of each category.

    If only the session of the evidence is known, any turn of it counts. That is easier, so such
    questions are in separate groups.
    """
    found: dict[str, list[QuestionResult]] = {}
    for answer in answers:
        by = " (by session)" if answer.question.by_session else ""
        found.setdefault(f"all{by}", []).append(answer)
        found.setdefault(f"{answer.question.category}{by}", []).append(answer)
    return dict(sorted(found.items(), key=lambda item: (not item[0].startswith("all"), item[0])))


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that `percent` of the sorted values do not exceed."""
    return values[max(ceil(len(values) * percent / 100) - 1, 0)]


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
