"""Many concurrent contexts need the same digest: one of them creates it, none fails."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from torture_kit import TORTURE, assert_healthy, soon

from firnline import Memory, Message
from firnline.digest import offline_summarizer
from firnline.log.message import utc_now
from firnline.log.tokens import counter
from firnline.strategies import layered, progressive, project, window

TASKS = 8
BURSTS = 20 if TORTURE else 3
ROUNDS = 20  # in a burst: more than fit into the budget
BUDGET = 600
STRATEGIES = {
    "layered": layered(digest_tokens=80),
    "progressive": progressive(threshold_tokens=500, keep_tokens=200, data_tokens=60),
    "project": project(threshold_tokens=500, keep_tokens=250, summary_tokens=80),
    "window": window(trigger=0.7, summary_tokens=80),
}


def a_memory(url, strategy, rng):
    """A memory that lets others run before it acquires a lease and while it summarizes.

    So some find the lease held, and some get it when the digest that they planned exists already.
    """
    summarize = offline_summarizer(counter().text)

    async def slowly(brief):
        await asyncio.sleep(0.005)
        return await summarize(brief)

    memory = Memory.open(url, strategy=strategy, summarizer=slowly, worker=False, background=False)
    lease = memory.store.lease

    async def lease_later(*arguments):
        await asyncio.sleep(rng.uniform(0, 0.05))
        return await lease(*arguments)

    memory.store.lease = lease_later
    return memory


def burst(first):
    for number in range(first, first + ROUNDS):
        order = 500 + number
        yield Message.user(f"Question {number}: where is order {order}? It costs {number} euros.")
        yield Message.assistant(f"Order {order} left Hamburg on Monday and comes by rail.")


async def storm(memories):
    """All of them want the context at once; none gets an error or too much."""
    wanted = [memories[i % len(memories)].context("chat", BUDGET) for i in range(TASKS)]
    contexts = await soon(asyncio.gather(*wanted))
    assert all(context.tokens <= BUDGET for context in contexts)


async def check_one_chain(memory):
    """Every version was made once: none failed, no span twice, each on the one before."""
    digests = await memory.digests("chat")
    assert {digest.status for digest in digests} == {"completed"}
    assert [d.version for d in digests] == list(range(1, len(digests) + 1))
    assert [d.base for d in digests] == [None, *(d.version for d in digests[:-1])]
    spans = [(d.first_seq, d.last_seq, d.layer) for d in digests]
    assert len(set(spans)) == len(spans)
    return len(digests)


async def torment(memories):
    memory = memories[0]
    for number in range(BURSTS):
        await memory.append("chat", list(burst(number * ROUNDS)))
        await storm(memories)
        made = await check_one_chain(memory)
        assert made, "a digest was due"
    assert made >= BURSTS
    # Late calls noted pending work; it is done already, or is done now.
    await memory.work(once=True)
    await check_one_chain(memory)
    assert not await memory.store.due(utc_now())
    assert not (await memory.context("chat", BUDGET)).degraded
    assert (await memory.verify("chat")).ok


@pytest.mark.promise("one-digester")
@pytest.mark.requirement("A8")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_of_many_concurrent_callers_one_creates_the_digest(url, strategy, rng):
    async with a_memory(url, STRATEGIES[strategy], rng) as memory:
        await torment([memory])


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_it_is_one_across_connections_too(database, strategy, rng):
    async with AsyncExitStack() as stack:
        url = f"sqlite:///{database}"
        opened = [a_memory(url, STRATEGIES[strategy], rng) for _ in range(3)]
        memories = [await stack.enter_async_context(memory) for memory in opened]
        await torment(memories)
        await assert_healthy(memories[0])
