"""Workloads for stores that are servers: appends, long conversations, contexts."""

from __future__ import annotations

import asyncio
from itertools import islice

from benchmarks.bench import Bench
from benchmarks.measure import Side, timed
from benchmarks.table import progress
from firnline import Memory
from firnline.log.limits import BATCH_MESSAGES_MAX

CALLERS = 8
BUDGET = 1_000


def append_by_callers(bench: Bench, memory: Memory, callers: int, each: int) -> Side:
    """`callers` concurrent callers, each appending to its own conversation."""
    messages = bench.endless_messages()

    async def caller(name: str) -> None:
        for message in islice(messages, each):
            await memory.append(name, message)

    async def all_callers() -> None:
        await asyncio.gather(*(caller(f"c{i}") for i in range(callers)))

    return timed(all_callers, callers * each)


async def fill(bench: Bench, memory: Memory, name: str, entries: int) -> None:
    """Fill a conversation with `entries` entries."""
    batch = list(islice(bench.endless_messages(), BATCH_MESSAGES_MAX))
    for done in range(0, entries, len(batch)):
        progress(f"{name}: {done:,} of {entries:,} entries")
        await memory.append(name, batch[: entries - done])


def build_context(memory: Memory, name: str) -> Side:
    """Build a context of the conversation."""
    return timed(lambda: memory.context(name, BUDGET))
