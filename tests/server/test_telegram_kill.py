"""SIGKILL at bad moments: every message is stored once, answered and confirmed to Telegram."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from firnline.memory import Memory
from firnline.testing import ModelServer, TelegramServer
from support.live_server import free_port
from support.telegram_server import PATIENCE, SECRET, TOKEN, until

TESTS = Path(__file__).parents[1]
CYCLES = 40 if os.environ.get("FIRNLINE_TORTURE") else 6


@pytest.fixture(scope="module")
def parent():
    """What the servers are forked from: it has imported all they need."""
    command = [sys.executable, "-m", "support.telegram_server"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=TESTS, stdin=pipe, stdout=pipe, text=True) as parent:
        yield parent
        parent.stdin.close()


class Process:
    """The server in a separate process, always on the same port."""

    def __init__(self, parent, folder, telegram, model):
        port = free_port()
        self.store = f"sqlite:///{folder}/house.db"
        self.url = f"http://127.0.0.1:{port}/telegram/house/webhook"
        doubles = {"telegram": telegram.url, "model": model.url}
        self._given = {"store": self.store, "port": port, **doubles}
        self._parent, self._child = parent, None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.kill()

    async def start(self, dies=None):
        self._parent.stdin.write(json.dumps({**self._given, "dies": dies}) + "\n")
        self._parent.stdin.flush()
        self._child = int(await self._hear())

    async def kill(self):
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
            await self.died()

    async def died(self):
        assert await self._hear() == "ended\n"
        self._child = None

    async def _hear(self):
        async with asyncio.timeout(PATIENCE):
            return await asyncio.to_thread(self._parent.stdout.readline)


@pytest.fixture
async def doubles():
    async with TelegramServer(token=TOKEN) as telegram, ModelServer() as model:
        yield telegram, model


def told(telegram, chat, text):
    """How often the answer to a text was sent; the model echoes what was said."""
    return telegram.texts(chat).count(f"You said: {text}")


MOMENTS = [
    (["append", "user", "before"], 1, "nothing is stored yet"),
    (["append", "user", "after"], 1, "stored, no job, not acknowledged"),
    (["put_cards", "telegram", "after"], 1, "a job, not acknowledged"),
    (["put_cards", "telegram-claim", "after"], 1, "claimed"),
    (["append", "assistant", "before"], 1, "the model has answered"),
    (["append", "assistant", "after"], 1, "the answer is stored"),
    (["put_cards", "telegram-sent", "before"], 2, "sent, not noted: sent again"),
    (["put_cards", "telegram-sent", "after"], 1, "sent and noted"),
    (["drop_cards", "telegram", "before"], 1, "the job is still there"),
    (["drop_cards", "telegram", "after"], 1, "all is done"),
]


@pytest.mark.requirement("B10")
@pytest.mark.promise("durable")
@pytest.mark.parametrize(("dies", "sent", "when"), MOMENTS, ids=[m[2] for m in MOMENTS])
async def test_killed_at_a_moment(tmp_path, parent, doubles, dies, sent, when):
    telegram, model = doubles
    async with Process(parent, tmp_path, telegram, model) as process:
        await process.start(dies)
        update = telegram.said("Are you there?")
        push = partial(asyncio.to_thread, telegram.push, update, process.url, SECRET)
        delivering = asyncio.create_task(push())
        await process.died()
        await process.start()
        await delivering
        await push()
        await until(lambda: told(telegram, 7, "Are you there?") >= sent)
        await settled(process)
        assert told(telegram, 7, "Are you there?") == sent
    assert await stored(process, 7) == (["Are you there?"], [[0]])


async def settled(process):
    """Until no job is left, seen from outside."""
    async with Memory.open(process.store, embedder=None, worker=False) as memory:
        async with asyncio.timeout(PATIENCE):
            while await memory.store.cards("telegram", tenant="default"):
                await asyncio.sleep(0.02)


async def stored(process, chat):
    """What was said in a chat, and which messages were answered by each answer."""
    async with Memory.open(process.store, embedder=None, worker=False) as memory:
        entries = await memory.read(f"telegram:{chat}")
        assert (await memory.verify(f"telegram:{chat}")).ok
    said = [entry.message.text for entry in entries if entry.message.role == "user"]
    answers = [entry.message for entry in entries if entry.message.role == "assistant"]
    return said, [message.metadata["answers"] for message in answers]


@pytest.mark.requirement("B10")
@pytest.mark.promise("durable")
async def test_killed_repeatedly_during_conversations(tmp_path, parent, doubles):
    telegram, model = doubles
    chats, per_chat, seed = [1, 2, 3], 2 * CYCLES, random.Random(1138)
    async with Process(parent, tmp_path, telegram, model) as process:
        talking = [asyncio.create_task(talk(telegram, process, chat, per_chat)) for chat in chats]
        for _ in range(CYCLES):
            await process.start()
            before = len(telegram.sent)
            await until(lambda before=before: len(telegram.sent) > before or all_done(talking))
            await asyncio.sleep(seed.uniform(0, 0.3))  # not to wait for something: any time will do
            await process.kill()
        await process.start()
        await asyncio.gather(*talking)
        await settled(process)
    for chat in chats:
        said, answers = await stored(process, chat)
        assert said == [f"{chat}-{number}" for number in range(per_chat)]
        answered = Counter(seq for seqs in answers for seq in seqs)
        assert len(answered) == per_chat, "every message is answered"
        assert set(answered.values()) == {1}, "and once"
        assert len(telegram.texts(chat)) >= len(answers), "and Telegram told at least once"
        assert len(telegram.texts(chat)) <= len(answers) + CYCLES, "twice where it was killed"


async def talk(telegram, process, chat, count):
    """Send a message until it is accepted, and then another one."""
    for number in range(count):
        update = telegram.said(f"{chat}-{number}", chat_id=chat)
        await asyncio.to_thread(telegram.push, update, process.url, SECRET)
        if number % 2:
            await until(lambda: telegram.texts(chat))


def all_done(tasks):
    return all(task.done() for task in tasks)
