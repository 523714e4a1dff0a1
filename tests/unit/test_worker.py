"""The worker: what is owed is made by one at a time."""

import asyncio

from firnline import Memory, Message, ModelError
from firnline.engine.worker import Worker
from firnline.log.entry import Key
from firnline.log.message import utc_now

KEY = Key("default", "c")


async def test_work_that_is_asked_for_twice_is_done_once():
    """Two at the same conversation would meet at its lease, and the second be put off."""
    at_once, most, paid = 0, 0, []

    async def pay(key):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        paid.append(key)
        await memory.store.settle(key, 0)
        at_once -= 1
        return 1

    async with Memory.open("memory:", worker=False) as memory:
        await memory.append("c", Message.user("x"))
        await memory.store.owe(KEY, utc_now())
        worker = Worker(memory.store, pay, clock=utc_now)
        assert sum(await asyncio.gather(worker.once(), worker.once())) == 1
    assert (most, paid) == (1, [KEY])


async def test_what_is_not_digested_is_named_as_its_user_names_it(caplog):
    async def pay(key):
        raise ModelError("busy")

    async with Memory.open("memory:", worker=False) as memory:
        await memory.append("c", Message.user("x"))
        await memory.store.owe(KEY, utc_now())
        assert await Worker(memory.store, pay, clock=utc_now).once() == 0
    assert caplog.messages[-1].startswith("c (tenant default) is not digested: ModelError")
