"""Several processes, many clients, one conversation."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from torture_kit import TORTURE, Ledger, Script, assert_healthy, memory_at, said, soon

from firnline.errors import ConflictError

PROCESSES = 2
CLIENTS = 64
APPENDS = 100 if TORTURE else 12
WAIT_MAX = 20.0
OPENERS = 8
OPENINGS = 200 if TORTURE else 20


async def listen(script):
    """What each client of a script says of itself: name, [(seq, text)], longest wait."""
    clients = []
    while (line := await script.hear())[0] != "done":
        clients.append(line[1:])
    return clients


async def run_crowds(stack, path):
    scripts = [
        await stack.enter_async_context(Script("crowd.py", path, f"p{i}", CLIENTS, APPENDS))
        for i in range(PROCESSES)
    ]
    for script in scripts:
        assert await script.hear() == ["ready"]
    for script in scripts:
        script.tell("go")
    async with asyncio.TaskGroup() as group:
        heard = [group.create_task(listen(script)) for script in scripts]
    return [client for task in heard for client in task.result()]


@pytest.mark.promise("dense")
async def test_crowds_keep_order(shared):
    async with AsyncExitStack() as stack:
        clients = await run_crowds(stack, shared)
    assert len(clients) == PROCESSES * CLIENTS
    ledger = Ledger()
    for _, seqs, _ in clients:
        assert seqs == sorted(seqs), "a client's own order"
        for seq, text in seqs:
            ledger.ack("crowded", seq, text)
    async with memory_at(shared) as memory:
        await ledger.check(memory)
        assert len(await soon(memory.read("crowded"))) == len(ledger.acked["crowded"])
        await assert_healthy(memory)
    longest = max(wait for _, _, wait in clients)
    assert longest < WAIT_MAX, f"one append took {longest:.1f} s"


@pytest.mark.promise("idempotent")
async def test_retries_at_the_same_moment(shared):
    """Impatient clients send the same message repeatedly, through stores of two processes."""
    async with memory_at(shared) as memory, memory_at(shared) as other:
        for number in range(50):
            texts = [f"r{number} {i}/3" for i in range(3)]
            answers = await soon(
                asyncio.gather(
                    *(
                        which.append("a", said(texts), idempotency_key=f"key {number}")
                        for which in (memory, other) * 4
                    )
                )
            )
            assert len({answer.seq for answer in answers}) == 1
            assert [answer.replayed for answer in answers].count(False) == 1
        assert len(await memory.read("a")) == 150
        assert (await memory.verify("a")).ok


@pytest.mark.promise("dense")
async def test_only_one_gets_the_expected_place(shared):
    async with memory_at(shared) as memory, memory_at(shared) as other:
        for number in range(50):
            answers = await soon(
                asyncio.gather(
                    *(
                        which.append("a", said([f"{number} by {i}"]), expected_seq=number)
                        for i, which in enumerate((memory, other) * 4)
                    ),
                    return_exceptions=True,
                )
            )
            refused = [answer for answer in answers if isinstance(answer, ConflictError)]
            assert len(refused) == len(answers) - 1
        assert (await memory.verify("a")).entries == 50


@pytest.mark.promise("durable")
async def test_processes_may_create_the_file_together(tmp_path):
    """No process fails because another one creates the same file at the same moment."""
    async with Script("openers.py") as openers:
        for number in range(OPENINGS):
            path = tmp_path / f"{number}.db"
            assert await openers.ask({"path": str(path), "openers": OPENERS}) == ["done"]
            async with memory_at(path) as memory:
                texts = {entry.message.text for entry in await soon(memory.read("crowded"))}
            assert texts == {f"opener {i}" for i in range(OPENERS)}
