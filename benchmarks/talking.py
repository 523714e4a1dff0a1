"""What is done to any store that is a server: appending, filling, asking for contexts."""

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


def appending(bench: Bench, memory: Memory, callers: int, each: int) -> Side:
    """So many callers at once, each with messages for a conversation of its own."""
    messages = bench.endless_messages()

    async def caller(name: str) -> None:
        for message in islice(messages, each):
            await memory.append(name, message)

    async def everybody() -> None:
        await asyncio.gather(*(caller(f"c{i}") for i in range(callers)))

    return timed(everybody, callers * each)


async def fill(bench: Bench, memory: Memory, name: str, entries: int) -> None:
    """A conversation of so many entries."""
    batch = list(islice(bench.endless_messages(), BATCH_MESSAGES_MAX))
    for done in range(0, entries, len(batch)):
        progress(f"{name}: {done:,} of {entries:,} entries")
        await memory.append(name, batch[: entries - done])


def asking(memory: Memory, name: str) -> Side:
    """A context of the conversation."""
    return timed(lambda: memory.context(name, BUDGET))
