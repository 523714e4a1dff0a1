"""The report of a run: tables for people, JSON for programs. Pure."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import apsw

from firnline import __version__
from firnline.cli.bench.figures import Figures, figures, groups
from firnline.cli.bench.measure import OURS, BenchRun, QuestionResult
from firnline.cli.terminal import table

Line = tuple[str, ...]


# -- for people -------------------------------------------------------------------------------


def text(measured: BenchRun) -> str:
    """The questions, a comparison of all methods, and ours in detail."""
    parts = [_questions_text(measured)]
    parts += _side_by_side(measured)
    parts += [
        _detail(name, answers, measured.tokens)
        for name, answers in measured.answers.items()
        if answers and name.startswith(OURS)
    ]
    return "\n\n".join(parts)


def _questions_text(measured: BenchRun) -> str:
    cases = measured.cases
    counted = sum(len(case.questions) for case in cases)
    messages = sum(len(case.messages) for case in cases)
    size = f"{_count(len(cases), 'conversation')}, {_count(messages, 'message')}"
    lines = [f"{size}; {_count(counted, 'question')} counted"]
    lines += [f"left out: {n:,} ({why})" for why, n in left_out(measured).items()]
    if unknown := sum(case.unknown for case in cases):
        lines.append(f"skipped: {_count(unknown, 'evidence id')} without exactly one turn")
    return "\n".join(lines)


def left_out(measured: BenchRun) -> dict[str, int]:
    """The number of questions that were not asked, by reason."""
    return dict(sum((case.left_out for case in measured.cases), Counter()))


def _side_by_side(measured: BenchRun) -> Iterator[str]:
    heads = tuple(f"{budget:,} t" for budget in measured.tokens)
    everything = {name: groups(answers) for name, answers in measured.answers.items()}
    for group in ("all", "all (by session)"):
        rows = [
            row
            for name, parts in everything.items()
            if group in parts
            for row in _rows(name, parts[group], measured.tokens)
        ]
        if rows:
            what = f"evidence found, mean % ({group})"
            names = (what, *heads, f"all @{measured.tokens[-1]:,}", "p50 ms", "p99 ms")
            yield table(names, rows, right=range(1, len(names)))


def _rows(name: str, answers: Sequence[QuestionResult], tokens: Sequence[int]) -> Iterator[Line]:
    """A method's row, and one with whole messages only, if it returned passages."""
    found = [figures(answers, budget) for budget in tokens]
    last = found[-1]
    shares = (_percent(one.mean) for one in found)
    yield (name, *shares, _percent(last.all), f"{last.p50:.1f}", f"{last.p99:.1f}")
    if any(one.whole != one.mean for one in found):
        yield (f"{name}, whole messages", *(_percent(one.whole) for one in found), "", "", "")


def _detail(name: str, answers: Sequence[QuestionResult], tokens: Sequence[int]) -> str:
    """One method in detail: every group of questions, tokens, and times."""
    rows: list[Line] = []
    for group, some in groups(answers).items():
        found = [figures(some, budget) for budget in tokens]
        rows += [
            (group, f"{len(some):,}", "mean", *(_percent(one.mean) for one in found)),
            ("", "", "any", *(_percent(one.any) for one in found)),
            ("", "", "all", *(_percent(one.all) for one in found)),
        ]
        if any(one.whole != one.mean for one in found):
            rows.append(("", "", "whole", *(_percent(one.whole) for one in found)))
    rows += _costs([figures(answers, budget) for budget in tokens])
    names = (name, "questions", "% with", *(f"{budget:,} t" for budget in tokens))
    return table(names, rows, right=(1, *range(3, len(names))))


def _costs(found: Sequence[Figures]) -> Iterator[Line]:
    yield ("tokens used, mean", "", "", *(f"{one.tokens:,.0f}" for one in found))
    yield ("ms, p50", "", "", *(f"{one.p50:,.1f}" for one in found))
    yield ("ms, p99", "", "", *(f"{one.p99:,.1f}" for one in found))
    if any(one.over for one in found):
        yield ("larger than asked for", "", "", *(f"{one.over:,}" for one in found))
    if any(one.refused for one in found):
        yield ("no room for a context", "", "", *(f"{one.refused:,}" for one in found))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)


# -- for machines -----------------------------------------------------------------------------


def as_json(measured: BenchRun, about: dict[str, Any]) -> dict[str, Any]:
    """All figures, each question's result, and the environment; no text of the set."""
    cases = measured.cases
    return {
        **about,
        "environment": {**environment(), **about.get("environment", {})},
        "tokens": list(measured.tokens),
        "conversations": len(cases),
        "messages": sum(len(case.messages) for case in cases),
        "counted": sum(len(case.questions) for case in cases),
        "left_out": left_out(measured),
        "unknown_evidence_ids": sum(case.unknown for case in cases),
        "methods": {
            name: _groups_json(answers, measured.tokens)
            for name, answers in measured.answers.items()
        },
        "questions": list(_questions_json(measured)),
    }


def environment() -> dict[str, str]:
    """The versions and the machine of the run."""
    return {
        "firnline": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "system": platform.system(),
        "machine": platform.machine(),
    }


def _groups_json(answers: Sequence[QuestionResult], tokens: Sequence[int]) -> dict[str, Any]:
    return {
        group: {str(budget): asdict(figures(some, budget)) for budget in tokens}
        for group, some in groups(answers).items()
    }


def _questions_json(measured: BenchRun) -> Iterator[dict[str, Any]]:
    for same in zip(*measured.answers.values(), strict=True):
        question = same[0].question
        yield {
            "id": question.id,
            "conversation": same[0].conversation,
            "category": question.category,
            "by_session": question.by_session,
            "evidence": [piece.name for piece in question.evidence],
            "found": {
                name: {str(budget): _found_json(answer, budget) for budget in measured.tokens}
                for name, answer in zip(measured.answers, same, strict=True)
            },
        }


def _found_json(answer: QuestionResult, budget: int) -> dict[str, Any]:
    found = answer.found[budget]
    pairs = zip(answer.question.evidence, found.evidence, strict=True)
    whole = zip(answer.question.evidence, found.whole, strict=True)
    return {
        "evidence": [piece.name for piece, there in pairs if there],
        "whole": [piece.name for piece, there in whole if there],
        "tokens": found.tokens,
        "ms": round(found.milliseconds, 3),
    }
