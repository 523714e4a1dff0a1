"""The worker: pending digests are created one at a time."""

import asyncio

from firnline import Memory, Message, ModelError
from firnline.engine.worker import Worker
from firnline.log.entry import Key
from firnline.log.message import utc_now
from firnline.store import RamStore

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
        await memory.store.clear_pending(key, 0)
        at_once -= 1
        return 1

    async with Memory.open("memory:", worker=False) as memory:
        await memory.append("c", Message.user("x"))
        await memory.store.mark_pending(KEY, utc_now())
        worker = Worker(memory.store, pay, clock=utc_now)
        assert sum(await asyncio.gather(worker.once(), worker.once())) == 1
    assert (most, paid) == (1, [KEY])


async def test_what_is_not_digested_is_named_as_its_user_names_it(caplog):
    async def pay(key):
        raise ModelError("busy")

    async with Memory.open("memory:", worker=False) as memory:
        await memory.append("c", Message.user("x"))
        await memory.store.mark_pending(KEY, utc_now())
        assert await Worker(memory.store, pay, clock=utc_now).once() == 0
    assert caplog.messages[-1].startswith("c (tenant default) is not digested: ModelError")


async def test_stopping_never_waits_for_a_worker_that_was_just_woken():
    looks = []

    class Store(RamStore):
        async def due(self, *args):
            looks.append(args)
            return await super().due(*args)

    worker = Worker(Store(), None, clock=utc_now)
    for _ in range(300):
        worker.start()
        await asyncio.sleep(0)
        worker.wake()
        # Not `timeout`, which would cancel it once more.
        assert (await asyncio.wait([asyncio.ensure_future(worker.stop())], timeout=60))[0]
    done = len(looks)
    worker.wake()
    await asyncio.sleep(0.1)
    assert len(looks) == done >= 300, "each has worked, and none works on"
