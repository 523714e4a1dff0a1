"""Workers that are killed and paused at random: no digest overlaps another, none gets stuck."""

import asyncio
import itertools
import sys
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest
from torture_kit import TORTURE, Clock, Ledger, Script, assert_healthy, settle_all, soon, store_at

from firnline.log.entry import Key
from firnline.log.message import Message, utc_now
from firnline.memory import DEFAULT_TENANT, Memory
from firnline.strategies import layered, rolling

SECONDS = 25 if TORTURE else 4
STORMS_MAX = 8
ENTRIES_MIN = 30  # more than fit into the budget
WORKERS = 6
BUDGET = 500
CHATS = {
    "rolling-0": rolling(window=8, after_seq=3, words=60),
    "rolling-1": rolling(window=4, after_seq=3, words=30),
    "rolling-2": rolling(words=80),
    "layered-0": layered(digest_tokens=60, fan=3),
    "layered-1": layered(tail=0.4, digest_tokens=80, fan=2),
    "layered-2": layered(),
}


@pytest.mark.promise("one-digester")
@pytest.mark.requirement("E6")
async def test_killed_and_paused_workers_never_overlap_and_leave_nothing_undone(shared, rng):
    clock, ledger = Clock(), Ledger()
    store = store_at(shared, clock=clock)
    async with Memory(store, clock=clock, background=True, worker=False) as memory:
        for name, strategy in CHATS.items():
            await memory.set_strategy(name, strategy)
        happened = Counter()
        async with Script("digesters.py") as digesters:
            order = {"path": str(shared), "seconds": SECONDS, "count": WORKERS}
            for calm in range(1, STORMS_MAX + 1):  # one, unless the machine has much else to do
                digesters.tell({**order, "seed": rng.randrange(2**32), "calm": calm})
                storm = asyncio.create_task(digesters.hear())
                for name in itertools.cycle(CHATS):
                    await talk(memory, ledger, rng, name)
                    await check_one_at_a_time(memory)
                    if storm.done():
                        break
                    await asyncio.sleep(0.01)  # the workers are what this is about
                said, blown = storm.result()
                assert said == "done", blown
                happened.update(blown)
                if await is_enough(memory, happened):
                    break
            else:
                pytest.fail(f"too little happened to prove something: {happened}")
        await settle_all(memory, clock)
        for name in CHATS:
            await check_digests(memory, name)
        await ledger.check(memory)
        await assert_healthy(memory)


async def talk(memory, ledger, rng, name):
    number = rng.randrange(10**9)
    texts = [
        f"Question {number}: where is order {number % 977} for Ana? It costs {number % 61} euros.",
        f"Answer {number}: the order left Hamburg on Monday and is on its way to Bremen by rail.",
    ]
    messages = [Message.user(texts[0]), Message.assistant(texts[1])]
    ledger.ack_all(name, await soon(memory.append(name, messages)))
    context = await soon(memory.context(name, BUDGET))
    assert context.tokens <= BUDGET


async def check_one_at_a_time(memory):
    for name in CHATS:
        making = [d.version for d in await memory.digests(name) if d.status == "processing"]
        assert len(making) <= 1, f"{name}: {making} are all in the making"


async def is_enough(memory, happened):
    """Whether enough happened for the test to prove something."""
    digests = [digest for name in CHATS for digest in await memory.digests(name)]
    completed = sum(digest.status == "completed" for digest in digests)
    abandoned = sum("lost the lease" in digest.error for digest in digests)
    shortest = min([(await memory.head(name)).entries for name in CHATS])
    about = f"{completed} digests completed, {abandoned} abandoned, {shortest} messages or more"
    sys.stdout.write(f"{dict(happened)}, {about}\n")
    often = min(happened["killed"], happened["paused"], completed) > SECONDS // 2
    return often and abandoned > 0 and shortest >= ENTRIES_MIN


async def check_digests(memory, name):
    digests = await memory.digests(name)
    assert [digest.version for digest in digests] == list(range(1, len(digests) + 1))
    assert {digest.status for digest in digests} <= {"completed", "failed"}
    completed = [digest for digest in digests if digest.status == "completed"]
    bases = [digest.base for digest in completed]
    assert bases == [None, *(digest.version for digest in completed[:-1])], "not one chain"
    assert not (await memory.lineage(name)).stuck
    (check_windows if name.startswith("rolling") else check_layers)(completed)
    await check_the_end(memory, name, completed[-1])


def check_windows(completed):
    """Each digest reaches further than the one before, and its window only moves forward."""
    for before, after in pairwise(completed):
        assert after.last_seq > before.last_seq
        assert after.first_seq >= before.first_seq


def check_layers(completed):
    """Whatever is in force at any time covers the log from its start, once and without a hole."""
    known = {}
    for digest in completed:
        known[digest.version] = digest
        force = [known[version] for version in (*digest.beside, digest.version)]
        spans = sorted((one.first_seq, one.last_seq) for one in force)
        assert spans[0][0] == 0
        for (_, end), (start, _) in pairwise(spans):
            assert start == end + 1, f"version {digest.version}: {spans}"


async def check_the_end(memory, name, newest):
    """The digests reach as far as they should: nothing is left that the strategy would fold."""
    head = await memory.head(name)
    if name.startswith("rolling"):
        assert newest.last_seq == head.seq
    context = await memory.context(name, BUDGET)
    assert not context.degraded
    assert Key(DEFAULT_TENANT, name) not in await memory.store.due(utc_now() + timedelta(days=99))
