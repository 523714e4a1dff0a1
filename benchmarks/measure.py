"""Measures two things in turns, so that other load on the machine affects both."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import median

from benchmarks.table import progress

Side = Callable[[], Awaitable[float]]
"""Does some work and returns its cost, usually in seconds per message."""


@dataclass(slots=True)
class Pairs:
    """The costs of two sides, pair by pair."""

    ours: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """How many times what the other costs ours costs: the median over the pairs."""
        return median(a / b for a, b in zip(self.ours, self.other, strict=True))

    @property
    def speed(self) -> float:
        """How many times as fast as the other ours is: the median over the pairs."""
        return median(b / a for a, b in zip(self.ours, self.other, strict=True))

    @property
    def difference(self) -> float:
        """How much more ours costs: the median over the pairs."""
        return median(a - b for a, b in zip(self.ours, self.other, strict=True))


async def in_turns(ours: Side, other: Side, pairs: int, what: str) -> Pairs:
    """Run both, one after the other, `pairs` times; a first pair only warms up."""
    await ours()
    await other()
    measured = Pairs()
    for i in range(pairs):
        progress(f"{what}: {i} of {pairs} pairs")
        measured.ours.append(await ours())
        measured.other.append(await other())
    return measured


async def costs(side: Side, times: int, what: str) -> list[float]:
    """The costs of one side alone, for what has nothing to be compared with."""
    await side()
    found = []
    for i in range(times):
        progress(f"{what}: {i} of {times}")
        found.append(await side())
    return found


def timed(work: Callable[[], Awaitable[object]], units: int = 1) -> Side:
    """A side that costs the seconds of `work`, shared by its `units`."""

    async def side() -> float:
        started = time.perf_counter()
        await work()
        return (time.perf_counter() - started) / units

    return side


def timed_call(work: Callable[[], object], units: int = 1) -> Side:
    """The same for a plain function."""

    async def side() -> float:
        started = time.perf_counter()
        work()
        return (time.perf_counter() - started) / units

    return side


def rate(seconds: list[float]) -> str:
    return f"{1 / median(seconds):,.0f}/s"


def milliseconds(seconds: list[float]) -> str:
    return f"{median(seconds) * 1e3:,.3g} ms"


def megabytes(size: int, seconds: list[float]) -> str:
    """The speed at which `size` bytes go through in `seconds`."""
    return f"{size / median(seconds) / 1e6:,.1f} MB/s"
