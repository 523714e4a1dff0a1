"""Draw the pictures in docs/strategies: what a context holds, turn by turn.

    python tools/pictures/build.py

Each picture is a real run: the same conversation is replayed into an empty memory, a context is
built after every question, and its tokens are drawn. Nothing here depends on the time, on chance
or on a network, so a test can compare the pictures with what this script makes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from firnline import Budget, Context, Memory, Message, Strategy, strategies
from firnline.protocols import Event

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "docs" / "strategies"

SYSTEM = (HERE / "system.txt").read_text()
RULE = "House rules: prices are always given with tax, in euros. No order is cancelled without the "
RULE += "customer's own words. Allergens are answered from the recipe or not at all."


# -- what is drawn ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """A strategy, the budget it is shown with, and the threshold above which it creates digests."""

    strategy: Strategy
    budget: Budget
    threshold: int | None
    threshold_name: str
    title: str
    turns: int = 120


SUBJECTS = (
    Subject(
        strategies.layered(fan=3, digest_tokens=100),
        Budget(4_000),
        None,
        "",
        "layered, fan=3, digest_tokens=100, a budget of 4,000 tokens",
    ),
    Subject(
        strategies.progressive(),
        Budget(4_000),
        3_000,
        "threshold_tokens",
        "progressive, default parameters, a budget of 4,000 tokens",
    ),
    Subject(
        strategies.project(threshold_tokens=5_500, keep_tokens=4_400, summary_tokens=400),
        Budget(7_000),
        5_500,
        "threshold_tokens",
        "project, a tenth of its default thresholds, a budget of 7,000 tokens",
    ),
    Subject(
        strategies.topics(),
        Budget(2_000),
        None,
        "",
        "topics, default parameters, a budget of 2,000 tokens",
    ),
    Subject(
        strategies.window(summary_tokens=500),
        Budget(6_000),
        5_100,
        "trigger: 85 %",
        "window, summary_tokens=500, a window of 6,000 tokens",
    ),
    Subject(
        strategies.rolling(),
        Budget(2_000),
        None,
        "",
        "rolling, default parameters, a budget of 2,000 tokens",
        turns=48,
    ),
)


class Column(NamedTuple):
    """One turn: the tokens of each section, of the full history so far, and new digests.

    `sections` has the tokens of system, pinned, important, digests and recent.
    """

    sections: tuple[int, ...]
    history: int
    digests: int


def conversation(turns: int) -> Iterator[tuple[str, str]]:
    """Questions and answers: a file of each, gone through at different paces, with new numbers."""
    questions = (HERE / "questions.txt").read_text().splitlines()
    answers = (HERE / "answers.txt").read_text().splitlines()
    for turn in range(turns):
        number = 1_100 + turn * 37
        question = questions[turn % len(questions)]
        answer = answers[turn * 5 % len(answers)]
        more = answers[(turn * 7 + 3) % len(answers)] if turn % 4 else ""
        last = answers[(turn * 3 + 1) % len(answers)] if turn % 3 else ""
        facts = {"n": number, "k": 2 + turn % 9, "price": f"{3 + turn % 17}.90"}
        yield question.format(**facts), f"{answer} {more} {last}".strip().format(**facts)


async def replay(subject: Subject) -> list[Column]:
    """The run: a column for each turn."""
    digests: list[Event] = []

    def observe(event: Event) -> None:
        if event.name == "fold":
            digests.append(event)

    columns: list[Column] = []
    async with Memory.open(
        "memory:",
        embedder=None,  # the same picture on every machine
        clock=lambda: datetime(2026, 1, 5, 9, tzinfo=UTC),
        strategy=subject.strategy,
        worker=False,
        background=False,
        observer=observe,
    ) as memory:
        await memory.append("c", Message.user(RULE, metadata={"pinned": True}))
        for question, answer in conversation(subject.turns):
            asked = await memory.append("c", Message.user(question))
            context = await memory.context("c", subject.budget, system=SYSTEM)
            columns.append(Column(_sizes(context), asked[-1].total, len(digests)))
            digests.clear()
            await memory.append("c", Message.assistant(answer))
            if subject.strategy.background:
                await memory.digest("c")  # what a worker does in the background
    return columns


def _sizes(context: Context) -> tuple[int, ...]:
    sizes = context.accounting
    system = sizes.system + sizes.framing
    return system, sizes.pinned, sizes.important, sizes.digests, sizes.history


# -- how it is drawn --------------------------------------------------------------------------

NAMES = ("system", "pinned", "important data", "digests", "recent messages, word for word")
LINES_MAX = 6
LEFT, TOP, WIDE, HIGH = 58, 98, 720, 240
WIDTH, HEIGHT = LEFT + WIDE + 26, TOP + HIGH + 66

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328; }
  .title { font-size: 14px; font-weight: 600; }
  .paper { fill: #ffffff; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  .axis { stroke: #59636e; stroke-width: 1; }
  .limit { stroke: #c62828; stroke-width: 1.5; stroke-dasharray: 6 4; fill: none; }
  .line { stroke: #8250df; stroke-width: 1.5; stroke-dasharray: 2 3; fill: none; }
  .history { stroke: #59636e; stroke-width: 1.5; fill: none; }
  .digest { fill: #1f2328; }
  .s0 { fill: #767f8a; } .s1 { fill: #e69f00; } .s2 { fill: #cc5f9e; }
  .s3 { fill: #0072b2; } .s4 { fill: #9ed2f2; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .paper { fill: #0d1117; }
    .grid { stroke: #30363d; }
    .axis, .history { stroke: #9198a1; }
    .limit { stroke: #ff7b72; }
    .line { stroke: #c297ff; }
    .digest { fill: #e6edf3; }
    .s0 { fill: #9198a1; } .s2 { fill: #e07bb5; } .s3 { fill: #2f8fd0; } .s4 { fill: #24506e; }
  }
"""


def draw(subject: Subject, columns: Sequence[Column]) -> str:
    """The picture as SVG."""
    limit = subject.budget.limit
    top = limit + limit // 4
    made = sum(column.digests for column in columns)
    most = max(sum(column.sections) for column in columns)
    about = (
        f"Stacked tokens of each context over {len(columns)} turns. The largest context has "
        f"{most:,} of {limit:,} tokens; {columns[-1].history:,} tokens in the full history; "
        f"{made} digests."
    )
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    says = 'role="img" aria-labelledby="title about"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {says}>',
        f'<title id="title">{subject.title}</title>',
        f'<desc id="about">{about}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="title" x="{LEFT}" y="22">{subject.title}</text>',
        *_legend(subject, made),
        *_grid(top, len(columns)),
        *_areas(columns, top),
        _history_line(columns, top),
        *_limits(subject, top),
        *_digest_marks(columns),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _y(tokens: int, top: int) -> int:
    return TOP + HIGH - round(tokens * HIGH / top)


def _legend(subject: Subject, made: int) -> Iterator[str]:
    x = LEFT
    for number, name in enumerate(NAMES):
        yield f'<rect class="s{number}" x="{x}" y="34" width="11" height="11"/>'
        yield f'<text x="{x + 16}" y="44">{name}</text>'
        x += 42 + 7 * len(name)
    lines = [("limit", "budget"), ("line", subject.threshold_name), ("history", "the full history")]
    x = LEFT
    for style, name in lines:
        if name:
            yield f'<path class="{style}" d="M{x} 60h22"/>'
            yield f'<text x="{x + 28}" y="64">{name}</text>'
            x += 48 + len(name) * 13 // 2
    yield f'<path class="digest" d="M{x} 65l4 -8l4 8z"/>'
    yield f'<text x="{x + 14}" y="64">a turn with a new digest ({made} in total)</text>'


def _grid(top: int, turns: int) -> Iterator[str]:
    step = next(step for step in (500, 1_000, 2_000, 5_000) if top <= step * LINES_MAX)
    for tokens in range(0, top + 1, step):
        y = _y(tokens, top)
        yield f'<path class="{"grid" if tokens else "axis"}" d="M{LEFT} {y}h{WIDE}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{tokens:,}</text>'
    for turn in range(0, turns + 1, turns // 6):
        x, y = LEFT + turn * WIDE // turns, TOP + HIGH
        yield f'<text x="{x}" y="{y + 34}" text-anchor="middle">{turn}</text>'
    yield f'<text x="{LEFT}" y="{TOP - 12}" text-anchor="end">tokens</text>'
    middle = LEFT + WIDE // 2
    yield f'<text x="{middle}" y="{TOP + HIGH + 54}" text-anchor="middle">turn</text>'


def _areas(columns: Sequence[Column], top: int) -> Iterator[str]:
    """A stepped area for each section, one upon the other."""
    bar = WIDE // len(columns)
    below = [0] * len(columns)
    for number in range(len(NAMES)):
        above = [low + column.sections[number] for low, column in zip(below, columns, strict=True)]
        if above != below:
            there = " ".join(f"V{_y(tokens, top)}h{bar}" for tokens in above)
            back = " ".join(f"V{_y(tokens, top)}h-{bar}" for tokens in reversed(below))
            yield f'<path class="s{number}" d="M{LEFT} {_y(below[0], top)} {there} {back}z"/>'
        below = above


def _history_line(columns: Sequence[Column], top: int) -> str:
    """What a context without a memory would hold; it soon leaves the picture."""
    inside = [column.history for column in columns if column.history <= top]
    bar = WIDE // len(columns)
    points = " ".join(f"L{LEFT + at * bar + bar} {_y(n, top)}" for at, n in enumerate(inside))
    return f'<path class="history" d="M{LEFT} {_y(0, top)} {points}"/>'


def _limits(subject: Subject, top: int) -> Iterator[str]:
    lines = [("limit", subject.budget.limit), ("line", subject.threshold)]
    for style, tokens in lines:
        if tokens is not None:
            yield f'<path class="{style}" d="M{LEFT} {_y(tokens, top)}h{WIDE}"/>'


def _digest_marks(columns: Sequence[Column]) -> Iterator[str]:
    bar, y = WIDE // len(columns), TOP + HIGH + 14
    for at, column in enumerate(columns):
        if column.digests:
            x = LEFT + at * bar + bar // 2
            yield f'<path class="digest" d="M{x - 4} {y}l4 -9l4 9z"/>'


# -- all of them ------------------------------------------------------------------------------


def build(folder: Path) -> list[Path]:
    """Write every picture into the folder."""
    written = []
    for subject in SUBJECTS:
        path = folder / f"{subject.strategy.name}.svg"
        path.write_text(draw(subject, asyncio.run(replay(subject))))
        written.append(path)
    return written


if __name__ == "__main__":
    for picture in build(FOLDER):
        sys.stdout.write(f"{picture.name}\n")
