"""How fast messages become durable, against a bare loop that commits each of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import apsw

from benchmarks.bench import Bench, opened, url
from benchmarks.measure import Side, in_turns, rate, timed, timed_call
from benchmarks.table import Row, at_least
from firnline import Memory, Message
from firnline.log.message import encode, utc_now

CALLERS = 64


async def one_caller(bench: Bench) -> AsyncIterator[Row]:
    """One caller that waits for each message before it sends the next."""
    block = bench.size(50, 10)
    messages = bench.endless_messages()

    async def ours() -> None:
        for message in islice(messages, block):
            await memory.append("one", message)

    async with opened(url(bench.new_path("append-1"))) as memory:
        with _bare_loop(bench, "append-1-bare", block) as bare:
            pairs = await in_turns(timed(ours, block), bare, bench.size(60, 3), "append-1")
    yield Row(
        "append-1: one caller, durable",
        rate(pairs.ours),
        f"{rate(pairs.other)} bare INSERT + commit",
        pairs.speed,
        at_least(0.5),
    )


async def many_callers(bench: Bench) -> AsyncIterator[Row]:
    """Sixty-four callers at once, in one conversation and each in its own."""
    # Each conversation lies together on disk, so 64 of them write 64 pages where the bare loop, and
    # one conversation, write one: on a disk as fast as memory that shows.
    for conversations in (1, CALLERS):
        path = bench.new_path(f"append-64-{conversations}")
        async with opened(url(path)) as memory:
            each = bench.size(16, 4)
            ours = _callers(memory, conversations, bench.endless_messages(), each)
            with _bare_loop(bench, f"{path.stem}-bare", bench.size(200, 20)) as bare:
                pairs = await in_turns(ours, bare, bench.size(25, 3), "append-64")
        yield Row(
            f"append-64: {CALLERS} callers, {conversations} conversation(s)",
            rate(pairs.ours),
            f"{rate(pairs.other)} bare INSERT + commit",
            pairs.speed,
            at_least(3) if conversations == 1 else None,
        )


def _callers(memory: Memory, conversations: int, messages: Iterator[Message], each: int) -> Side:
    """All callers at once, each sending `each` messages one after the other."""

    async def caller(name: str) -> None:
        for message in islice(messages, each):
            await memory.append(name, message)

    async def all_callers() -> None:
        await asyncio.gather(*(caller(str(i % conversations)) for i in range(CALLERS)))

    return timed(all_callers, CALLERS * each)


@contextmanager
def _bare_loop(bench: Bench, name: str, block: int) -> Iterator[Side]:
    """The least SQLite can do for the same bytes: one column, one commit each, as durable."""
    connection = _bare_database(bench.new_path(name))
    now = utc_now()
    bodies = (encode(message.at(now)) for message in bench.endless_messages())

    def loop() -> None:
        for body in islice(bodies, block):
            connection.execute("INSERT INTO message (body) VALUES (?)", (body,))

    try:
        yield timed_call(loop, block)
    finally:
        connection.close()


def _bare_database(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    return connection
