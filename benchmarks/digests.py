"""How long an offline digest takes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from itertools import islice

from benchmarks.bench import Bench, opened, url
from benchmarks.measure import Side, in_turns, milliseconds
from benchmarks.table import Row
from firnline import Memory
from firnline.context.plan import Fold

FEW = 100


async def offline(bench: Bench) -> AsyncIterator[Row]:
    """Lease, read, summarize, extract, check, receipt and commit, for two lengths."""
    more = bench.size(1_000, 200)
    async with opened(url(bench.new_path("digest")), worker=False) as memory:
        for entries in (FEW, more):
            messages = list(islice(bench.endless_messages(), entries))
            await memory.append(str(entries), messages)
        few, many = _digest(memory, FEW), _digest(memory, more)
        pairs = await in_turns(many, few, bench.size(10, 1), "digest")
    yield Row(f"digest: {FEW} messages, offline", milliseconds(pairs.other))
    yield Row(
        f"digest: {more:,} messages, offline",
        milliseconds(pairs.ours),
        f"{FEW} messages, per message",
        pairs.cost * FEW / more,
    )


def _digest(memory: Memory, entries: int) -> Side:
    """Digest a complete conversation and undo it; only the digest is timed."""
    name = str(entries)
    fold = Fold(first_seq=0, last_seq=entries - 1, fresh_from=0)

    async def side() -> float:
        started = time.perf_counter()
        await memory._engine.digester.fold(memory._key(name), fold, None, "bench")
        seconds = time.perf_counter() - started
        await memory.undo(name)
        return seconds

    return side
