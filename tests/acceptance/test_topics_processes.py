"""Topics under many threads and many processes, one of which is killed (C7)."""

import asyncio
import multiprocessing
import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from firnline import Message, strategies, sync
from firnline.errors import ConflictError
from firnline.log.message import utc_now
from support.interleave import meanwhile
from support.topic_chats import (
    BUDGET,
    RULES,
    Subjects,
    about,
    answer,
    ask,
    check_books,
    open_memory,
    talk,
    topic,
    work,
)

IN_A_THREAD = 12 if "FIRNLINE_TORTURE" in os.environ else 5
ROUNDS = 40
FOREVER = 1_000_000
PROCESSES = 4
PATIENCE = 60


# -- threads ----------------------------------------------------------------------------------


@pytest.mark.requirement("C7")
@pytest.mark.long
def test_eight_threads_share_one_memory(url):
    options = {"embedder": Subjects(), "topic_rules": RULES, "strategy": strategies.topics()}
    with sync.Memory.open(url, worker=False, **options) as memory:

        def one_thread(thread):
            rng = random.Random(thread)
            for number in range(IN_A_THREAD):
                subject = rng.randrange(4)
                memory.append(
                    "c", [Message.user(about(subject, number)), Message.assistant("It does.")]
                )
                if number % 3 == 0:
                    assert memory.context("c", BUDGET).tokens <= BUDGET
                if number % 4 == 1:
                    memory.topics("c")
                if number % 6 == 2:
                    memory.feedback("c", rng.randrange(4), 1)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one_thread, range(8)))
        found = memory.topics("c")
        questions = 8 * IN_A_THREAD
        assert sum(one.total_messages for one in found) == 2 * questions
        assert len(found) == 4
        accesses = sum(one.access_count for one in found)
        praise = 8 * len(range(2, IN_A_THREAD, 6))
        assert accesses == questions - 4 + praise, (
            "each message but the first ones, and each praise"
        )
        assert memory.verify("c")


# -- processes --------------------------------------------------------------------------------


def start(url, rounds):
    """Real processes, which begin together and talk for so many rounds each."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(rounds) + 1)
    running = [
        context.Process(target=work, args=(url, seed, count, barrier))
        for seed, count in enumerate(rounds)
    ]
    for process in running:
        process.start()
    barrier.wait(PATIENCE)
    return running


def join(running):
    for process in running:
        process.join(PATIENCE)
        assert process.exitcode == 0


@pytest.mark.requirement("C7")
@pytest.mark.parametrize(
    ("url", "rounds"), [("sqlite", 40), ("postgres", 10), ("mongo", 10)], indirect=["url"]
)
async def test_processes_share_a_database_and_lose_nothing(url, rounds):
    async with open_memory(url, utc_now) as memory:
        await talk(memory, 0)
        await asyncio.to_thread(join, await asyncio.to_thread(start, url, [rounds] * PROCESSES))
        found = await memory.topics("c")
        total = 2 * (1 + PROCESSES * rounds)
        assert sum(one.total_messages for one in found) == total
        assert len(found) == 4
        praise = PROCESSES * rounds // 10
        questions = 1 + PROCESSES * rounds
        assert sum(one.access_count for one in found) == questions - 4 + praise
        await check_books(memory)
        await check_archived(memory)


@pytest.mark.requirement("C7")
async def test_a_killed_process_leaves_topics_complete(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    rng = random.Random(7)
    async with open_memory(url, utc_now) as memory:
        await talk(memory, 0)
        rounds = [ROUNDS, *[FOREVER] * (PROCESSES - 1)]
        survivor, *victims = await asyncio.to_thread(start, url, rounds)
        for victim in victims:
            await asyncio.sleep(rng.uniform(0.05, 0.4))
            os.kill(victim.pid, signal.SIGKILL)
            await asyncio.to_thread(victim.join, PATIENCE)
            assert victim.exitcode == -signal.SIGKILL
        await asyncio.to_thread(join, [survivor])
        await settled(memory)
        await check_books(memory)
        for subject in range(4):
            for number in range(8):
                await ask(memory, subject, number)
                await memory.context("c", BUDGET)
        await settled(memory)
        await check_books(memory)
        assert all(one.active_messages <= 13 for one in await memory.topics("c"))


async def settled(memory):
    """Pending digests are created when the lease of a killed process has expired."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            await memory.digest("c")
        except ConflictError:
            assert time.monotonic() < until
            await asyncio.sleep(0.2)
        else:
            return


async def check_archived(memory):
    """Exactly the entries that topics list as archived are compressed."""
    entries = {entry.seq for entry in await memory.read("c") if entry.archived}
    said = sum(found.archived_messages for found in await memory.topics("c"))
    assert len(entries) == said


@pytest.mark.requirement("C7")
async def test_two_memories_fold_and_come_back_side_by_side(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    async with open_memory(url) as one, open_memory(url) as two:
        for number in range(30):
            await ask(one, number // 3 % 3, number)
            contexts = await asyncio.gather(
                *(memory.context("c", BUDGET) for memory in (one, two, one, two)), two.topics("c")
            )
            for context in contexts[:-1]:
                assert context.messages[-1].text == answer(number // 3 % 3, number)
        await check_books(one)
        await check_archived(two)


@pytest.mark.requirement("C7")
async def test_a_late_move_of_entries_uses_the_current_state_of_the_topic(url):
    async with open_memory(url) as memory:
        await talk(memory, *[0] * 8)

        async def come_back():
            await talk(memory, 1)
            await memory.append("c", Message.user(about(0, 99)))
            await memory.topics("c")

        async def fold_again():
            await talk(memory, *[0] * 8)
            await memory.context("c", BUDGET)

        with meanwhile(memory.store, "archive", come_back):
            await memory.context("c", BUDGET)
        assert not (await topic(memory, 0)).archived_messages
        await check_archived(memory)
        await fold_again()
        with meanwhile(memory.store, "restore", fold_again):
            await come_back()
        assert (await topic(memory, 0)).archived_messages
        await check_books(memory)
        await check_archived(memory)


@pytest.mark.requirement("C7")
async def test_many_votes_at_once_are_all_counted(url):
    async with open_memory(url) as memory:
        await ask(memory, 1)
        await memory.topics("c")
        await asyncio.gather(*(memory.feedback("c", 0, 1) for _ in range(12)))
        assert (await memory.topic_stats("c")).access_count == 12
