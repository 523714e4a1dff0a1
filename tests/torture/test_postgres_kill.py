"""PostgreSQL killed and restarted under load: nothing acknowledged is lost, nothing is there twice.

The server is set up not to sync commits; the store has it do so all the same. Without that, what
was acknowledged last would be lost in almost every cycle.
"""

import asyncio
import contextlib

import pytest
from server_storm import WRITERS, until_more, write_under
from torture_kit import TORTURE

import postgres_kit
from firnline import Memory
from firnline.errors import StoreUnavailable

KILLS = 40 if TORTURE else 5
RESTARTS = 10 if TORTURE else 2


@pytest.fixture(scope="module")
def server():
    if postgres_kit.binaries() is None:
        pytest.skip(postgres_kit.NOT_AVAILABLE)
    server = postgres_kit.Server(durable=True, synchronous_commit="off")
    yield server
    server.stop()


@pytest.fixture
def databases(server):
    databases = postgres_kit.Databases(server.url, "torture")
    yield databases
    # The server has been killed since: neither connection is any good.
    with contextlib.suppress(Exception):
        databases.close()


@pytest.mark.promise("durable")
@pytest.mark.requirement("E1")
async def test_a_killed_server_loses_nothing_and_doubles_nothing(server, databases, rng):
    with databases.one() as database:

        async def blows(writers):
            for _ in range(KILLS):
                await until_more(writers)
                await asyncio.sleep(rng.uniform(0, 0.3))
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            await until_more(writers)

        writers = await write_under(database.url, rng, blows)
        database.reconnect()
    assert sum(writer.acked for writer in writers) > KILLS * WRITERS


@pytest.mark.promise("typed-failure")
async def test_a_server_restarted_under_load_is_a_pause(server, databases, rng):
    with databases.one() as database:
        stopping, failures = False, []

        async def read():
            async with Memory.open(database.url) as memory:
                while not stopping:
                    try:
                        await memory.read("chat-0", limit=20)
                        await memory.store.search("default", "w1 0", limit=5)
                        await memory.conversations()
                    except StoreUnavailable as error:
                        failures.append(error)

        async def blows(writers):
            nonlocal stopping
            readers = [asyncio.create_task(read()) for _ in range(2)]
            for _ in range(RESTARTS):
                await until_more(writers)
                await asyncio.to_thread(server.restart)
            await until_more(writers)
            stopping = True
            await asyncio.gather(*readers)

        await write_under(database.url, rng, blows)
        database.reconnect()
