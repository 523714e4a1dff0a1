"""SIGKILL at the worst moments: every message is stored once and answered, and Telegram told."""

import asyncio
import json
import os
import random
import socket
import sys
from collections import Counter

import pytest

import telegram_kit
from firnline.memory import Memory
from firnline.testing import ModelServer
from firnline.testing.telegram_server import TelegramServer
from telegram_kit import PATIENCE, SECRET, TOKEN, until

CYCLES = 40 if os.environ.get("FIRNLINE_TORTURE") else 6


class Process:
    """The server in a process of its own, on the same port again and again."""

    def __init__(self, folder, telegram, model):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._given = {
            "store": f"sqlite:///{folder}/house.db",
            "telegram": telegram.url,
            "model": model.url,
            "port": self.port,
        }
        self.store = self._given["store"]
        self.url = f"http://127.0.0.1:{self.port}/telegram/house/webhook"

    async def start(self, dies=None):
        given = json.dumps({**self._given, "dies": dies})
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, telegram_kit.__file__, given
        )

    async def kill(self):
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def died(self):
        async with asyncio.timeout(PATIENCE):
            await self.process.wait()


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
async def test_killed_at_a_moment(tmp_path, doubles, dies, sent, when):
    telegram, model = doubles
    process = Process(tmp_path, telegram, model)
    await process.start(dies)
    update = telegram.said("Are you there?")
    delivering = asyncio.create_task(asyncio.to_thread(telegram.push, update, process.url, SECRET))
    await process.died()
    await process.start()
    try:
        await delivering
        await asyncio.to_thread(telegram.push, update, process.url, SECRET)
        await until(lambda: told(telegram, 7, "Are you there?") >= sent)
        await settled(process)
        assert told(telegram, 7, "Are you there?") == sent
    finally:
        await process.kill()
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
async def test_killed_again_and_again_while_people_talk(tmp_path, doubles):
    telegram, model = doubles
    chats, per_chat, seed = [1, 2, 3], 2 * CYCLES, random.Random(1138)
    process = Process(tmp_path, telegram, model)
    talking = [asyncio.create_task(talk(telegram, process, chat, per_chat)) for chat in chats]
    try:
        for _ in range(CYCLES):
            await process.start()
            before = len(telegram.sent)
            moment = seed.uniform(0, 0.3)
            await until(lambda before=before: len(telegram.sent) > before or all_done(talking))
            await asyncio.sleep(moment)  # not to wait for anything: to die at any time
            await process.kill()
        await process.start()
        await asyncio.gather(*talking)
        await settled(process)
    finally:
        await process.kill()
    for chat in chats:
        said, answers = await stored(process, chat)
        assert said == [f"{chat}-{number}" for number in range(per_chat)]
        answered = Counter(seq for seqs in answers for seq in seqs)
        assert len(answered) == per_chat, "every message is answered"
        assert set(answered.values()) == {1}, "and once"
        assert len(telegram.texts(chat)) >= len(answers), "and Telegram told at least once"
        assert len(telegram.texts(chat)) <= len(answers) + CYCLES, "twice where it was killed"


async def talk(telegram, process, chat, count):
    """Say something, again and again until it is taken, and then something else."""
    for number in range(count):
        update = telegram.said(f"{chat}-{number}", chat_id=chat)
        await asyncio.to_thread(telegram.push, update, process.url, SECRET)
        if number % 2:
            await until(lambda: telegram.texts(chat))


def all_done(tasks):
    return all(task.done() for task in tasks)
