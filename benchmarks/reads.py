"""Searching, verifying and reading one long conversation; reported without a target."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator
from statistics import median

from benchmarks.bench import LONG, Bench, opened, url
from benchmarks.measure import costs, milliseconds, timed
from benchmarks.table import Row, progress

PAGE = 100
QUERY_WORDS = 3


async def search(bench: Bench) -> AsyncIterator[Row]:
    """Three words of a message that is there; the first search builds the index."""
    entries = bench.searched_entries
    chosen = random.Random(1)
    texts = [message.text for message in bench.messages]

    def query() -> str:
        words = chosen.choice(texts).split()
        return " ".join(chosen.sample(words, min(QUERY_WORDS, len(words))))

    async with opened(url(await bench.searched())) as memory:
        progress(f"search: indexing {entries:,} entries")
        started = time.perf_counter()
        await memory.recall(LONG, query())
        indexed = time.perf_counter() - started
        found = await costs(
            timed(lambda: memory.recall(LONG, query())), bench.size(60, 5), "search"
        )
    yield Row(f"search: index {entries:,} entries", f"{entries / indexed:,.0f}/s")
    slow = sorted(found)[int(len(found) * 0.95)]
    yield Row(
        f"search: {QUERY_WORDS} words in {entries:,}",
        milliseconds(found),
        f"p95 {slow * 1e3:,.3g} ms",
    )


async def verify(bench: Bench) -> AsyncIterator[Row]:
    """Derive every hash again."""
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
