"""A database server killed and restarted under load: nothing is lost or duplicated.

PostgreSQL is set up not to sync commits; the store has it do so all the same. Without that, what
was acknowledged last would be lost in almost every cycle. MongoDB has no transactions here: each
append is one write with a unique token, by which a writer whose connection is lost finds out
whether it was done.
"""

import asyncio
import contextlib

import pytest
from server_storm import WRITERS, until_more, write_under
from torture_kit import TORTURE

from firnline import Memory
from firnline.errors import StoreUnavailable
from support import mongo_server, postgres_server

KILLS = 40 if TORTURE else 5
RESTARTS = 10 if TORTURE else 2


def _postgres():
    if postgres_server.binaries() is None:
        pytest.skip(postgres_server.NOT_AVAILABLE)
    return postgres_server, postgres_server.Server(durable=True, synchronous_commit="off")


def _mongo():
    if mongo_server.script() is None:
        pytest.skip(mongo_server.NOT_AVAILABLE)
    return mongo_server, mongo_server.Server(durable=True)


@pytest.fixture(scope="module", params=[_postgres, _mongo], ids=["postgres", "mongo"])
def house(request):
    """The kit of a kind of server, and a separate server that syncs what it acknowledges."""
    kit, server = request.param()
    yield kit, server
    server.stop()


@pytest.fixture
def server(house):
    return house[1]


@pytest.fixture
def database(house):
    kit, server = house
    databases = kit.Databases(server.url, "torture")
    with databases.one() as database:
        yield database
        database.reconnect()  # the server has been killed since
    # So has this one's connection.
    with contextlib.suppress(Exception):
        databases.close()


@pytest.mark.promise("durable")
@pytest.mark.requirement("E1")
async def test_a_killed_server_loses_nothing_and_doubles_nothing(server, database, rng):
    async def blows(writers):
        for _ in range(KILLS):
            await until_more(writers)
            await asyncio.sleep(rng.uniform(0, 0.3))
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        await until_more(writers)

    writers = await write_under(database.url, rng, blows)
    assert sum(writer.acked for writer in writers) > KILLS * WRITERS


@pytest.mark.promise("typed-failure")
async def test_a_server_restarted_under_load_is_a_pause(server, database, rng):
    stopping, seen, opened = False, [], asyncio.Barrier(3)

    async def read():
        async with Memory.open(database.url) as memory:
            await opened.wait()
            while not stopping:
                with contextlib.suppress(StoreUnavailable):
                    await memory.read("chat-0", limit=20)
                    await memory.store.search("default", "w1 0", limit=5)
                    seen.append(len(await memory.conversations()))

    async def blows(writers):
        nonlocal stopping
        readers = [asyncio.create_task(read()) for _ in range(2)]
        async with asyncio.timeout(60):
            await opened.wait()  # that cannot be done while the server is away
        for _ in range(RESTARTS):
            await until_more(writers)
            await asyncio.to_thread(server.restart)
        await until_more(writers)
        stopping = True
        await asyncio.gather(*readers)

    await write_under(database.url, rng, blows)
    assert seen, "nothing could be read"
