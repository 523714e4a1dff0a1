"""Measure speed and size, as ratios within one run; exits with 1 if a target is missed."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import (
    appends,
    archive,
    contexts,
    digests,
    million,
    mongo,
    package,
    postgres,
    prompts,
    reads,
    recall,
    service,
    tokens,
)
from benchmarks.bench import Bench
from benchmarks.table import Row, show, show_titles, write_json

FIGURES: dict[str, Callable[[Bench], AsyncIterator[Row]]] = {
    "install": package.install,
    "import": package.import_time,
    "count": tokens.speed,
    "archive": archive.sizes,
    "append-1": appends.one_caller,
    "append-64": appends.many_callers,
    "append-million": million.append,
    "newest-million": million.newest,
    "prove-million": million.prove,
    "recall": recall.search,
    "recall-million": recall.million,
    "vectors": recall.vectors,
    "embed": recall.embed,
    "topics": recall.topics,
    "verify": reads.verify,
    "read": reads.read,
    "digest": digests.offline,
    "context": contexts.build,
    "replay": contexts.replay,
    "prompts": prompts.build,
    "prompts-even": prompts.even,
    "postgres-append": postgres.appends,
    "postgres-long": postgres.long_log,
    "postgres-workers": postgres.workers,
    "mongo-append": mongo.appends,
    "mongo-long": mongo.long_log,
    "service-append": service.appends,
    "service-proxy": service.proxy,
    "service-idle": service.idle,
    "service-hook": service.hook,
}


def main() -> int:
    options = _options()
    names = [options.only] if options.only else list(FIGURES)
    started = time.perf_counter()
    # Next to the code and not in /tmp, which may be in memory, where a commit costs nothing.
    build = Path("build")
    build.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="bench-", dir=build) as folder:
        bench = Bench(Path(folder).absolute(), options.quick, options.sample)
        rows = asyncio.run(_measure(bench, names))
    seconds = time.perf_counter() - started
    if options.json:
        write_json(options.json, rows, quick=options.quick, seconds=seconds)
    return _summary(rows, seconds)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see whether it runs")
    parser.add_argument("--only", choices=FIGURES, metavar="NAME", help=", ".join(FIGURES))
    parser.add_argument(
        "--sample", type=Path, metavar="FILE", help="your own chats (JSON, JSON Lines)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    return parser.parse_args()


async def _measure(bench: Bench, names: list[str]) -> list[Row]:
    rows = []
    show_titles()
    for name in names:
        async for row in FIGURES[name](bench):
            show(row)
            rows.append(row)
    return rows


def _summary(rows: list[Row], seconds: float) -> int:
    missed = sum(row.missed for row in rows)
    targets = sum(row.target is not None for row in rows)
    print(f"\n{targets - missed} of {targets} targets reached in {seconds:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
