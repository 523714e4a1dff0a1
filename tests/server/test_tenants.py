"""Many tenants share a store; the least recently used are closed."""

import asyncio

import pytest

from firnline import Message
from firnline.server import tenants
from firnline.server.tenants import Tenants
from firnline.store import open_store


@pytest.fixture
async def few(monkeypatch):
    monkeypatch.setattr(tenants, "TENANTS_OPEN_MAX", 3)
    found = Tenants(open_store("memory:"), {"embedder": "words", "background": True})
    await found.start()
    yield found
    await found.close()


async def test_a_memory_evicted_while_in_use_continues_and_leaves_nothing_running(few):
    before = asyncio.all_tasks()
    held = [await few.memory(f"tenant-{number}") for number in range(12)]
    for _ in range(2):
        for memory in held:
            await memory.append("c", [Message.user("One."), Message.assistant("Two.")])
    assert [len(await memory.read("c")) for memory in held] == [4] * 12
    running = [task.get_coro().__qualname__ for task in asyncio.all_tasks() - before]
    at_work = [name for name in running if name in ("Worker.run", "Indexer._run")]
    assert len(at_work) <= 2 * 3, "a worker and an indexer for each that is remembered"
    assert at_work, running


async def test_many_may_ask_at_once(few):
    found = await asyncio.gather(*(few.memory(f"tenant-{n % 7}") for n in range(70)))
    for memory in found:
        await memory.append(memory.tenant, Message.user("One."))
    heads = [len(await (await few.memory(f"tenant-{n}")).conversations()) for n in range(7)]
    assert heads == [1] * 7


async def test_a_recently_used_tenant_stays_open(few):
    first = await few.memory("a")
    for name in ("b", "c"):
        await few.memory(name)
    assert await few.memory("a") is first
    await few.memory("d")
    assert await few.memory("a") is first, "b was quiet for longer"
