"""A chart of a run: the evidence found by budget, a line for each method. Pure.

Plain SVG without scripts, fonts, or links; its colors follow the light or dark scheme.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from math import log
from typing import Final, NamedTuple

from firnline.cli.bench.figures import figures, groups
from firnline.cli.bench.measure import OURS, BenchRun

LEFT, TOP, WIDE, HIGH = 58, 64, 470, 300
WIDTH, HEIGHT = LEFT + WIDE + 232, TOP + HIGH + 62
_LINE: Final = 18  # between two lines of the legend
_COLOURS: Final = 8

STYLE: Final = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328; }
  .title { font-size: 14px; font-weight: 600; }
  .paper { fill: #ffffff; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  .axis { stroke: #59636e; stroke-width: 1; }
  .line { fill: none; stroke-width: 1.5; stroke-dasharray: 5 3; }
  .ours { fill: none; stroke-width: 3; }
  .strong { font-weight: 600; }
  .c0 { stroke: #0072b2; } .c1 { stroke: #d55e00; } .c2 { stroke: #767f8a; }
  .c3 { stroke: #b07d00; } .c4 { stroke: #c0508f; } .c5 { stroke: #2b8a5c; }
  .c6 { stroke: #8250df; } .c7 { stroke: #3aa6d0; }
  circle { fill: #ffffff; stroke-width: 2; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .paper, circle { fill: #0d1117; }
    .grid { stroke: #30363d; }
    .axis { stroke: #9198a1; }
    .c0 { stroke: #4ba3e3; } .c1 { stroke: #ff8f4d; } .c2 { stroke: #9198a1; }
    .c3 { stroke: #e3b341; } .c4 { stroke: #e07bb5; } .c5 { stroke: #4fc38a; }
    .c6 { stroke: #c297ff; } .c7 { stroke: #79d4f5; }
  }
"""


class Curve(NamedTuple):
    """A method and its share of evidence, from 0 to 1, for each budget."""

    name: str
    shares: tuple[float, ...]


def curves(measured: BenchRun) -> list[Curve]:
    """The mean recall of each method, best first."""
    found = []
    for name, answers in measured.answers.items():
        parts = groups(answers)
        some = parts.get("all") or parts.get("all (by session)")
        if some:
            shares = tuple(figures(some, budget).mean for budget in measured.tokens)
            found.append(Curve(name, shares))
    return sorted(found, key=lambda curve: -sum(curve.shares))


def draw(tokens: Sequence[int], found: Sequence[Curve], title: str) -> str:
    """The chart as SVG; curves have different colors and are listed in order."""
    about = "; ".join(f"{name}: {', '.join(f'{s:.0%}' for s in shares)}" for name, shares in found)
    budgets = ", ".join(f"{budget:,}" for budget in tokens)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title about">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="about">Evidence found within {budgets} tokens. {escape(about)}.</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text>',
        *_axes(tokens),
        *(part for at in reversed(range(len(found))) for part in _curve(found, at, tokens)),
        *_legend(found),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _x(budget: int, tokens: Sequence[int]) -> float:
    """The position of a budget on a logarithmic axis."""
    low, high = min(tokens), max(tokens)
    if low == high:
        return LEFT + WIDE / 2
    inner = WIDE - 40
    return round(LEFT + 20 + inner * log(budget / low) / log(high / low), 1)


def _y(share: float) -> float:
    return round(TOP + HIGH * (1 - share), 1)


def _axes(tokens: Sequence[int]) -> Iterator[str]:
    for percent in range(0, 101, 20):
        y = _y(percent / 100)
        yield f'<path class="{"grid" if percent else "axis"}" d="M{LEFT} {y}h{WIDE}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{percent} %</text>'
    for budget in _apart(sorted(tokens), tokens):
        x = _x(budget, tokens)
        yield f'<path class="axis" d="M{x} {TOP + HIGH}v5"/>'
        yield f'<text x="{x}" y="{TOP + HIGH + 20}" text-anchor="middle">{budget:,}</text>'
    yield f'<text x="{LEFT}" y="{TOP - 16}">evidence found, mean over questions</text>'
    middle = LEFT + WIDE // 2
    yield f'<text x="{middle}" y="{TOP + HIGH + 46}" text-anchor="middle">tokens</text>'


def _apart(ordered: Sequence[int], tokens: Sequence[int]) -> list[int]:
    """The budgets whose labels do not overlap."""
    far = [b for a, b in pairwise(ordered) if _x(b, tokens) - _x(a, tokens) >= 44]  # noqa: PLR2004
    return [ordered[0], *far]


def _curve(found: Sequence[Curve], at: int, tokens: Sequence[int]) -> Iterator[str]:
    name, shares = found[at]
    points = sorted((_x(b, tokens), _y(s)) for b, s in zip(tokens, shares, strict=True))
    kind = f"{_kind(name)} c{at % _COLOURS}"
    yield f'<path class="{kind}" d="M{" L".join(f"{x} {y}" for x, y in points)}"/>'
    for x, y in points:
        yield f'<circle class="c{at % _COLOURS}" cx="{x}" cy="{y}" r="3"/>'


def _legend(found: Sequence[Curve]) -> Iterator[str]:
    x = LEFT + WIDE + 14
    for at, (name, shares) in enumerate(found):
        y = TOP + 8 + at * _LINE * 2
        yield f'<path class="{_kind(name)} c{at % _COLOURS}" d="M{x} {y}h24"/>'
        strong = ' class="strong"' if name.startswith(OURS) else ""
        yield f'<text{strong} x="{x + 32}" y="{y + 4}">{escape(name)}</text>'
        figures_ = " · ".join(f"{100 * share:.1f}" for share in shares)
        yield f'<text x="{x + 32}" y="{y + _LINE}">{figures_}</text>'


def _kind(name: str) -> str:
    return "ours" if name.startswith(OURS) else "line"
