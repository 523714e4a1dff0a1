"""What MongoDB costs as the store: compared with a bare insert, and for a long log."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient, WriteConcern

from benchmarks.bench import LONG, SHORT, SHORT_ENTRIES, Bench, opened
from benchmarks.measure import Side, costs, in_turns, milliseconds, rate, timed
from benchmarks.recall import questions
from benchmarks.table import Row, at_most
from benchmarks.workloads import BUDGET, CALLERS, append_by_callers, build_context, fill
from firnline.log.message import encode, utc_now
from firnline.strategies import rolling

# The server is the one that the tests start.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
from support import mongo_server

_NOT_AVAILABLE = Row("mongo: server not available", "")


@contextmanager
def _server() -> Iterator[Any]:
    """A database of a server that syncs every write; None if there is no server."""
    if mongo_server.EXISTING:
        server, address = None, mongo_server.EXISTING
    elif mongo_server.script() is None:
        yield None
        return
    else:
        server = mongo_server.Server(durable=True)
        address = server.url
    databases = mongo_server.Databases(address, "bench")
    try:
        with databases.one() as database:
            yield database
        databases.close()
    finally:
        if server is not None:
            server.stop()


async def appends(bench: Bench) -> AsyncIterator[Row]:
    """One caller, and several at once, against a bare insert that waits for the journal."""
    with _server() as database:
        if database is None:
            yield _NOT_AVAILABLE
            return
        async with opened(database.url) as memory, AsyncMongoClient(database.url) as client:
            bare = client[database.name].get_collection(
                "bare", write_concern=WriteConcern(1, j=True)
            )
            for callers in (1, CALLERS):
                each = bench.size(40, 8) // callers + 4
                ours = append_by_callers(bench, memory, callers, each)
                other = _bare(bench, bare, callers, each)
                pairs = await in_turns(ours, other, bench.size(40, 3), "mongo-append")
                yield Row(
                    f"mongo: {callers} caller(s), durable",
                    rate(pairs.ours),
                    f"{rate(pairs.other)} bare insert",
                    pairs.speed,
                )


def _bare(bench: Bench, collection: Any, callers: int, each: int) -> Side:
    now = utc_now()
    bodies = (encode(message.at(now)) for message in bench.endless_messages())

    async def caller() -> None:
        for body in islice(bodies, each):
            await collection.insert_one({"body": body})

    async def all_callers() -> None:
        await asyncio.gather(*(caller() for _ in range(callers)))

    return timed(all_callers, callers * each)


async def long_log(bench: Bench) -> AsyncIterator[Row]:
    """Contexts and searches in a long conversation, and in a short one."""
    entries = bench.size(200_000, 5_000)
    with _server() as database:
        if database is None:
            yield _NOT_AVAILABLE
            return
        async with opened(database.url) as memory:
            started = time.perf_counter()
            for name, count in ((SHORT, SHORT_ENTRIES), (LONG, entries)):
                await fill(bench, memory, name, count)
            built = (entries + SHORT_ENTRIES) / (time.perf_counter() - started)
            yield Row(f"mongo: {entries:,} entries, indexed", f"{built:,.0f}/s")
            for name in (SHORT, LONG):
                await memory.set_strategy(name, rolling(window=20, words=60))
                await memory.context(name, BUDGET)
            ours, other = (build_context(memory, name) for name in (LONG, SHORT))
            pairs = await in_turns(ours, other, bench.size(60, 3), "mongo-context")
            yield Row(
                f"mongo: context, {entries:,} entries",
                milliseconds(pairs.ours),
                f"{milliseconds(pairs.other)} with {SHORT_ENTRIES:,}",
                pairs.cost,
                at_most(1.5),
            )
            asked = questions(bench)
            found = await costs(
                timed(lambda: memory.store.search("default", next(asked), limit=40)),
                bench.size(60, 5),
                "mongo-search",
            )
            yield Row(f"mongo: search, p50 of {entries:,}", milliseconds(found))
