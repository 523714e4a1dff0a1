"""Writers on a server that crashes and returns, and a check of everything it acknowledged."""

import asyncio
import contextlib
import random

from torture_kit import Ledger, assert_healthy, check_batches, said, soon

from firnline import Memory
from firnline.errors import StoreTimeout, StoreUnavailable

WRITERS = 4
CHATS = 3


class Writer:
    """Appends until it is stopped, and remembers the answers."""

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
                await asyncio.sleep(0.005)

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
    """Writers write while `blows` fall; then every answer they got must be true."""
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
    """Every writer had another append acknowledged since."""
    before = [writer.acked for writer in writers]
    async with asyncio.timeout(60):
        while any(now.acked <= then for now, then in zip(writers, before, strict=True)):
            await asyncio.sleep(0.01)
