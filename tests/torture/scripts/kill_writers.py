"""Forks writers that share one database, and kills them with SIGKILL in the middle of it.

One line on stdin is one cycle. The writers are forked from here, because this process has loaded
the tokenizer already and opened nothing, so that a cycle costs milliseconds.
"""

import asyncio
import json
import os
import random
import select
import signal
import sys
import time
from contextlib import suppress

from torture_kit import memory_at, said, say

from firnline.errors import ConflictError
from firnline.log.tokens import counter

TASKS = 4
WORDS = ["snow", "ice", "firn", "layer", "core", "crevasse", "Gletscher", "névé", "万年雪", "🧊"]


def main():
    counter().text("load the tokenizer before the first fork")
    for line in sys.stdin:
        cycle(**json.loads(line))
        say("done")


def cycle(path, seeds, milliseconds, wait):
    ready, ready_in = os.pipe()
    writers = [fork(path, seed, i, ready_in) for i, seed in enumerate(seeds)]
    os.close(ready_in)
    if wait:
        until_ready(ready, len(writers))
    time.sleep(milliseconds / 1000)
    for pid in writers:
        os.kill(pid, signal.SIGKILL)
    for pid in writers:
        os.waitpid(pid, 0)
    os.close(ready)


def until_ready(ready, count):
    while count:
        if not select.select([ready], [], [], 30)[0]:
            say("error", "a writer did not open the database within 30 s")
            return
        got = len(os.read(ready, count))
        if not got:
            return  # all of them are gone, each with an error said
        count -= got


def fork(path, seed, number, ready):
    pid = os.fork()
    if pid:
        return pid
    try:
        asyncio.run(write(path, seed, number, ready))
    except BaseException as error:
        say("error", repr(error))
        raise
    finally:
        os._exit(1)


async def write(path, seed, number, ready):
    async with memory_at(path) as memory:
        os.write(ready, b".")
        tasks = (Talker(memory, f"{seed}-{i}", f"own-{number}").talk() for i in range(TASKS))
        await asyncio.gather(*tasks)


class Talker:
    """One client: appends for ever, and says what was acknowledged."""

    def __init__(self, memory, name, own):
        self._memory = memory
        self._name = name
        self._own = own
        self._random = random.Random(name)
        self._count = 0

    async def talk(self):
        acts = [self.single, self.batch, self.keyed, self.archive, self.recall]
        while True:
            act = self._random.choices(acts, weights=[50, 25, 15, 5, 5])[0]
            await act("shared" if self._random.random() < 0.5 else self._own)

    def text(self, suffix=""):
        words = self._random.choices(WORDS, k=self._random.randrange(20))
        return f"{self._name}-{self._count}{suffix} {' '.join(words)}"

    async def single(self, conversation):
        self._count += 1
        self.acked(conversation, await self._memory.append(conversation, said([self.text()])))

    async def batch(self, conversation, key=None):
        self._count += 1
        size = self._random.randint(2, 5)
        texts = [self.text(f" {i}/{size}") for i in range(size)]
        if key:
            say("try", key, conversation, texts)
        appended = await self._memory.append(conversation, said(texts), idempotency_key=key)
        self.acked(conversation, appended, key)

    async def keyed(self, conversation):
        await self.batch(conversation, key=f"key-{self._name}-{self._count}")

    def acked(self, conversation, appended, key=None):
        texts = [entry.message.text for entry in appended]
        say("ack", conversation, appended[0].seq, texts, key)

    async def archive(self, conversation):
        if await self._memory.head(conversation):
            with suppress(ConflictError):  # another process was archiving the same entries
                await self._memory.archive(conversation, keep=self._random.randrange(20))

    async def recall(self, conversation):
        await self._memory.recall(conversation, self._random.choice(WORDS))


if __name__ == "__main__":
    main()
