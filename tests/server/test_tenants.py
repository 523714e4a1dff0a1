"""Many tenants share a store; the least recently used are closed."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from firnline import Memory, Message
from firnline.server import app, tenants
from firnline.server.keys import NO_TENANT, Keys
from firnline.server.telegram.settings import BotSettings
from firnline.server.tenants import Tenants, _Shared
from firnline.store import open_store
from firnline.store.cards import TenantCards

LATE = datetime(2999, 1, 1, tzinfo=UTC)


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


# -- whose digests the server creates ------------------------------------------------------------

NAMES = ("default", "keyed", "foreign", "later")


async def owe(store, *names):
    """Leave a conversation of each tenant with a pending digest."""
    for name in names:
        async with Memory(
            _Shared(store), tenant=name, strategy="rolling", embedder=None, worker=False
        ) as memory:
            said = [Message.user("We meet in Oslo."), Message.assistant("In Oslo it is.")]
            await memory.append("c", said * 4)


async def until_paid(store, *names):
    """Wait until nothing of these tenants is due."""
    async with asyncio.timeout(30):
        while await store.due(LATE, tenants=names):
            await asyncio.sleep(0.01)


def of(keys):
    return sorted(key.tenant for key in keys)


@pytest.fixture
async def owed():
    store = open_store("memory:")
    await store.open()
    await owe(store, *NAMES)
    assert of(await store.due(LATE)) == sorted(NAMES)
    return store


async def served():
    return {"keyed"}


async def test_a_server_creates_the_digests_of_the_tenants_it_serves_and_of_no_other(owed, caplog):
    """A model costs money and reads messages: those of a tenant that never asked are not its."""
    options = {"embedder": None, "background": True}
    tenants = Tenants(owed, options, find_served=served)
    with caplog.at_level("INFO", "firnline.server"):
        await tenants.start()
    try:
        (line,) = caplog.messages
        assert "tenants that this server serves, now 2" in line
        assert "FIRNLINE_WORKER_TENANTS=all" in line
        await until_paid(owed, "default", "keyed")
        await owe(owed, "keyed")  # and a second time, so that the worker has looked at everything
        tenants.root._engine.worker.wake()
        await until_paid(owed, "keyed")
        assert of(await owed.due(LATE)) == ["foreign", "later"]
        await tenants.memory("later")
        tenants.root._engine.worker.wake()
        await until_paid(owed, "later")
        assert of(await owed.due(LATE)) == ["foreign"]
    finally:
        await tenants.close()


async def test_a_server_that_is_told_so_creates_the_digests_of_all_tenants(owed, caplog):
    tenants = Tenants(owed, {"embedder": None, "background": True}, all_tenants=True)
    with caplog.at_level("INFO", "firnline.server"):
        await tenants.start()
    try:
        assert caplog.messages == ["worker: creates pending digests of all tenants of the store"]
        await until_paid(owed, *NAMES)
    finally:
        await tenants.close()


async def test_keys_and_bots_give_access(owed):
    keys = Keys(TenantCards(owed, NO_TENANT))
    await keys.create("keyed")
    for made, _ in [await keys.create("gone"), await keys.create("keyed")]:
        await keys.revoke(made.id)
    await keys.create("expired", expires_in=timedelta(microseconds=1))
    bot = BotSettings(token="1:x", secret="s" * 16, tenant="of a bot")
    assert await app._served(keys, [bot]) == {"keyed", "of a bot"}
