"""The output: one row per figure, as soon as it is measured."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_WIDTHS = (46, 20, 38, 9, 10, 6)
_TITLES = ("what", "ours", "compared with", "ratio", "target", "")


class Target(NamedTuple):
    """What a figure has to reach."""

    bound: float
    at_least: bool

    def met(self, value: float) -> bool:
        """Whether `value` reaches it."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


def at_least(bound: float) -> Target:
    return Target(bound, at_least=True)


def at_most(bound: float) -> Target:
    return Target(bound, at_least=False)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `ratio` is what the target is about; its unit is empty for a plain ratio."""

    what: str
    ours: str
    other: str = ""
    ratio: float | None = None
    target: Target | None = None
    unit: str = ""

    @property
    def missed(self) -> bool:
        """Whether there is a target, and it was not reached."""
        return self.target is not None and (self.ratio is None or not self.target.met(self.ratio))

    def cells(self) -> tuple[str, ...]:
        """What is printed, column by column."""
        ratio = "" if self.ratio is None else f"{self.ratio:.3g}{self.unit}"
        target = "" if self.target is None else f"{self.target}{self.unit}"
        verdict = "" if self.target is None else "MISSED" if self.missed else "ok"
        return (self.what, self.ours, self.other, ratio, target, verdict)

    def to_json(self) -> dict[str, Any]:
        """What is written with ``--json``."""
        return {
            "what": self.what,
            "ours": self.ours,
            "compared_with": self.other,
            "ratio": self.ratio,
            "unit": self.unit,
            "target": None if self.target is None else str(self.target),
            "ok": None if self.target is None else not self.missed,
        }


def show_titles() -> None:
    _line(_TITLES)
    _line(["-" * width for width in _WIDTHS])


def show(row: Row) -> None:
    progress("")
    _line(row.cells())


def _line(cells: Iterable[str]) -> None:
    padded = (cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True))
    print(" | ".join(padded).rstrip(), flush=True)


def progress(text: str) -> None:
    """Print progress on a line that the next one overwrites; only on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def write_json(path: Path, rows: Sequence[Row], *, quick: bool, seconds: float) -> None:
    report = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "quick": quick,
        "seconds": round(seconds, 1),
        "missed": sum(row.missed for row in rows),
        "rows": [row.to_json() for row in rows],
    }
    path.write_text(json.dumps(report, indent=2) + "\n")
