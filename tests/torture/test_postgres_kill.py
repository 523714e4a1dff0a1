"""PostgreSQL killed and restarted under load: nothing acknowledged is lost, nothing is there twice.

The server is set up not to sync commits; the store has it do so all the same. Without that, what
was acknowledged last would be lost in almost every cycle.
"""

import asyncio
import contextlib
import random

import pytest
from torture_kit import TORTURE, Ledger, assert_healthy, check_batches, said, soon

import postgres_kit
from firnline import Memory
from firnline.errors import StoreTimeout, StoreUnavailable

KILLS = 40 if TORTURE else 5
RESTARTS = 10 if TORTURE else 2
WRITERS = 4
CHATS = 3


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


class Writer:
    """Appends until it is stopped, and remembers what it was told."""

    def __init__(self, url, name, ledger, rng):
        self._memory = Memory.open(url)
        self._name, self._ledger, self._rng = name, ledger, rng
        self.acked, self.refused, self.doubtful = 0, set(), set()
        self.stopping = False

    async def run(self):
        async with self._memory as memory:
            number = 0
            while not self.stopping:
                number += 1
                chat = f"chat-{self._rng.randrange(CHATS)}"
                size = self._rng.randint(1, 3)
                texts = [f"{self._name}.{number} {i}/{size}" for i in range(size)]
                if number % 3:
                    await self._with_key(memory, chat, texts)
                else:
                    await self._without(memory, chat, texts)

    async def _with_key(self, memory, chat, texts):
        """Until it is acknowledged, as a client does."""
        while True:
            with contextlib.suppress(StoreUnavailable, StoreTimeout):
                key = texts[0]
                done = await soon(memory.append(chat, said(texts), idempotency_key=key))
                self._ledger.ack_all(chat, done)
                self.acked += len(done)
                return

    async def _without(self, memory, chat, texts):
        try:
            done = await soon(memory.append(chat, said(texts)))
            self._ledger.ack_all(chat, done)
            self.acked += len(done)
        except StoreUnavailable:
            self.refused.update(texts)  # nothing was written
        except StoreTimeout:
            self.doubtful.update(texts)


async def check(url, ledger, writers):
    async with Memory.open(url) as memory:
        await ledger.check(memory)
        stored = set()
        for head in await memory.conversations():
            texts = [entry.message.text for entry in await memory.read(head.conversation)]
            check_batches(texts)
            stored.update(texts)
        for writer in writers:
            assert not writer.refused & stored, "said not to be written, and there"
        await assert_healthy(memory)


async def write_under(url, rng, blows):
    """Writers write while `blows` fall; then all that they were told must be so."""
    ledger = Ledger()
    writers = [
        Writer(url, f"w{i}", ledger, random.Random(rng.randrange(2**32))) for i in range(WRITERS)
    ]
    async with asyncio.TaskGroup() as group:
        for writer in writers:
            group.create_task(writer.run())
        try:
            await blows(writers)
        finally:
            for writer in writers:
                writer.stopping = True
    await check(url, ledger, writers)
    return writers


async def until_more(writers):
    """Every writer has been told of another append since."""
    before = [writer.acked for writer in writers]
    async with asyncio.timeout(60):
        while any(now.acked <= then for now, then in zip(writers, before, strict=True)):
            await asyncio.sleep(0.01)


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
