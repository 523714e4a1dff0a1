"""Verifying and reading one long conversation; reported without a target."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from statistics import median

from benchmarks.bench import LONG, Bench, opened, url
from benchmarks.measure import costs, milliseconds, timed
from benchmarks.table import Row

PAGE = 100


async def verify(bench: Bench) -> AsyncIterator[Row]:
    """Compute every hash again."""
    entries = bench.searched_entries
    path = await bench.searched()
    async with opened(url(path, read_only=True)) as memory:
        sample = await memory.store.records(memory._key(LONG), 0, min(entries, len(bench.messages)))
        size = sum(len(record.body) for record in sample) / len(sample) * entries
        found = await costs(timed(lambda: memory.verify(LONG)), bench.size(3, 1), "verify")
    seconds = median(found)
    yield Row(
        f"verify: {entries:,} entries",
        f"{entries / seconds:,.0f}/s",
        f"{size / seconds / 1e6:,.1f} MB/s of messages",
    )


async def read(bench: Bench) -> AsyncIterator[Row]:
    """A page from anywhere in the log."""
    entries = bench.searched_entries
    anywhere = random.Random(1)
    async with opened(url(await bench.searched(), read_only=True)) as memory:
        page = timed(
            lambda: memory.read(LONG, first_seq=anywhere.randrange(entries - PAGE), limit=PAGE)
        )
        found = await costs(page, bench.size(300, 10), "read")
    yield Row(f"read: {PAGE} of {entries:,} entries", milliseconds(found))
