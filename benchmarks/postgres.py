"""What PostgreSQL costs as the store: compared with a bare INSERT, and for a long log."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.bench import LONG, SHORT, SHORT_ENTRIES, Bench, opened
from benchmarks.measure import Side, costs, in_turns, milliseconds, rate, timed
from benchmarks.recall import LIMIT, questions
from benchmarks.table import Row, at_least, at_most, progress
from benchmarks.workloads import BUDGET, CALLERS, append_by_callers, build_context, fill
from firnline.log.message import encode, utc_now
from firnline.strategies import rolling

# The server is the one that the tests start.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
from support import postgres_server

WORKERS = (1, 4)
_SIZES = {"log": ("entry",), "dates and words": ("said", "search")}
_SIZE = (
    "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relname = ANY(%s)"
    " AND relnamespace = 'firnline'::regnamespace"
)
_WORKER = Path(__file__).with_name("postgres_worker.py")


@contextmanager
def _server(**settings: str) -> Iterator[Any]:
    """A database of a server that syncs every commit; None if there is no server."""
    if postgres_server.EXISTING:
        server, address = None, postgres_server.EXISTING
    elif postgres_server.binaries() is None:
        yield None
        return
    else:
        server = postgres_server.Server(durable=True, **settings)
        address = server.url
    databases = postgres_server.Databases(address, "bench")
    try:
        with databases.one() as database:
            yield database
        databases.close()
    finally:
        if server is not None:
            server.stop()


async def appends(bench: Bench) -> AsyncIterator[Row]:
    """One caller, and several at once with as many connections, against a bare INSERT + commit."""
    with _server() as database:
        if database is None:
            yield Row("postgres: server not available", "")
            return
        database.run("CREATE TABLE public.bare (id bigserial PRIMARY KEY, body bytea NOT NULL)")
        database.run("GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC")
        database.run("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO PUBLIC")
        async with opened(database.url) as memory:
            for callers in (1, CALLERS):
                each = bench.size(40, 8) // callers + 4
                ours = append_by_callers(bench, memory, callers, each)
                bare = [
                    await psycopg.AsyncConnection.connect(database.conninfo) for _ in range(callers)
                ]
                other = _bare(bench, bare, each)
                pairs = await in_turns(ours, other, bench.size(40, 3), "postgres-append")
                for connection in bare:
                    await connection.close()
                yield Row(
                    f"postgres: {callers} caller(s), durable",
                    rate(pairs.ours),
                    f"{rate(pairs.other)} bare INSERT + commit",
                    pairs.speed,
                    at_least(0.5) if callers == 1 else None,  # the cores are the limit then
                )


def _bare(bench: Bench, connections: list[Any], each: int) -> Side:
    now = utc_now()
    bodies = (encode(message.at(now)) for message in bench.endless_messages())

    async def caller(connection: Any) -> None:
        for body in islice(bodies, each):
            await connection.execute("INSERT INTO bare (body) VALUES (%s)", (body,))
            await connection.commit()

    async def all_callers() -> None:
        await asyncio.gather(*map(caller, connections))

    return timed(all_callers, len(connections) * each)


async def long_log(bench: Bench) -> AsyncIterator[Row]:
    """Contexts and searches in a conversation of a million entries, and in a short one."""
    entries = bench.size(1_000_000, 5_000)
    with _server(shared_buffers="512MB", max_wal_size="4GB") as database:
        if database is None:
            yield Row("postgres: server not available", "")
            return
        async with opened(database.url) as memory:
            started = time.perf_counter()
            for name, count in ((SHORT, SHORT_ENTRIES), (LONG, entries)):
                await fill(bench, memory, name, count)
            built = (entries + SHORT_ENTRIES) / (time.perf_counter() - started)
            yield Row(f"postgres: {entries:,} entries, indexed", f"{built:,.0f}/s")
            database.run("VACUUM ANALYZE")
            for what, tables in _SIZES.items():
                ((size,),) = database.run(_SIZE, [list(tables)])
                each = size / (entries + SHORT_ENTRIES)
                yield Row(f"postgres: {what}, bytes for each entry", f"{each:,.0f}")
            for name in (SHORT, LONG):
                await memory.set_strategy(name, rolling(window=20, words=60))
                await memory.context(name, BUDGET)
            ours, other = (build_context(memory, name) for name in (LONG, SHORT))
            pairs = await in_turns(ours, other, bench.size(60, 3), "postgres-context")
            yield Row(
                f"postgres: context, {entries:,} entries",
                milliseconds(pairs.ours),
                f"{milliseconds(pairs.other)} with {SHORT_ENTRIES:,}",
                pairs.cost,
                at_most(1.5),
            )
            asked = questions(bench)
            tenant = "default"
            found = await costs(
                timed(lambda: memory.store.search(tenant, next(asked), limit=40)),
                bench.size(60, 5),
                "postgres-search",
            )
            yield Row(f"postgres: search, p50 of {entries:,}", milliseconds(found))
            found = await costs(
                timed(lambda: memory.recall(LONG, next(asked), limit=LIMIT)),
                bench.size(60, 5),
                "postgres-recall",
            )
            yield Row(f"postgres: recall, p50 of {entries:,}", milliseconds(found))


async def workers(bench: Bench) -> AsyncIterator[Row]:
    """Digests per second of one worker process, and of four."""
    chats = bench.size(240, 12)
    rates = {}
    with _server() as database:
        if database is None:
            yield Row("postgres: server not available", "")
            return
        for count in WORKERS:
            await _make_pending(bench, database, f"{count}-", chats)
            rates[count] = chats / await _seconds_to_digest(database, count)
    few, many = (rates[count] for count in WORKERS)
    yield Row(
        f"postgres: digests by {WORKERS[1]} workers",
        f"{many:,.1f}/s",
        f"{few:,.1f}/s by one",
        many / few,
    )


async def _make_pending(bench: Bench, database: Any, prefix: str, chats: int) -> None:
    messages = bench.endless_messages()
    async with opened(database.url, background=True, worker=False) as memory:
        for number in range(chats):
            name = f"{prefix}{number}"
            await memory.set_strategy(name, rolling(window=20, words=60))
            await memory.append(name, list(islice(messages, 60)))
            await memory.context(name, BUDGET)


async def _seconds_to_digest(database: Any, count: int) -> float:
    """The seconds that `count` worker processes take for all pending digests."""
    processes = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, str(_WORKER), json.dumps({"url": database.url})),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(count)
    ]
    for process in processes:
        assert await process.stdout.readline() == b"ready\n"
    started = time.perf_counter()
    for process in processes:
        process.stdin.write(b"go\n")
    query = "SELECT count(*) FROM firnline.conversation WHERE owed_at IS NOT NULL"
    while (await asyncio.to_thread(database.run, query)) != [(0,)]:
        progress(f"postgres: {count} worker(s)")
        await asyncio.sleep(0.02)
    seconds = time.perf_counter() - started
    for process in processes:
        process.kill()
        await process.communicate()
    return seconds
