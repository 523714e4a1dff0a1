"""What installing Firnline takes: packages, and time to import."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from importlib.metadata import requires
from statistics import median

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.bench import Bench
from benchmarks.measure import Side, in_turns, timed_call
from benchmarks.table import Row, at_most


async def install(_: Bench) -> AsyncIterator[Row]:
    """Firnline and everything it needs, without extras."""
    names = needed("firnline")
    yield Row("install: packages", str(len(names)), _fitting(names), len(names), at_most(10))


def _fitting(names: set[str]) -> str:
    """As many of the names as fit into a cell."""
    return textwrap.shorten(", ".join(sorted(names - {"firnline"})), 38, placeholder=" ...")


def needed(package: str) -> set[str]:
    """The package and all it requires here, however indirectly."""
    found: set[str] = set()
    waiting = [package]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found.add(name)
        wanted = map(Requirement, requires(name) or ())
        waiting += [item.name for item in wanted if _wanted_here(item)]
    return found


def _wanted_here(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


async def import_time(bench: Bench) -> AsyncIterator[Row]:
    """A new interpreter that imports Firnline, against one that does nothing."""
    ours, other = _python(bench, "import firnline"), _python(bench, "pass")
    pairs = await in_turns(ours, other, bench.size(15, 3), "import")
    yield Row(
        "import: more than an idle interpreter",
        f"{median(pairs.ours):.3f} s",
        f"{median(pairs.other):.3f} s python -c pass",
        pairs.difference,
        at_most(0.3),
        " s",
    )


def _python(bench: Bench, code: str) -> Side:
    # An installed package is compiled once; the warm-up does that here, wherever it is forbidden.
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPYCACHEPREFIX": str(bench.folder / "pycache")}

    command = [sys.executable, "-c", code]
    return timed_call(lambda: subprocess.run(command, check=True, env=environment))
