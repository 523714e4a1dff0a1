"""A disk that fails: every error is typed, nothing acknowledged is lost, and work goes on after."""

import itertools

import apsw
import pytest
from faulty_disk import DISK_FULL, FaultyDisk
from torture_kit import TORTURE, Ledger, assert_healthy, memory_at, said, soon

from firnline.errors import FirnlineError, StoreCorrupt, StoreError, StoreTimeout
from firnline.log import Digest, Key
from firnline.memory import DEFAULT_TENANT

FILES = ("main", "wal", "journal", "temp")
STRIDE = 1 if TORTURE else 3


@pytest.fixture
def disk():
    disk = FaultyDisk()
    yield disk
    disk.unregister()


class Scenario:
    """A store's day, from opening to closing, with whatever goes wrong noted down."""

    def __init__(self, path, disk):
        self.path = path
        self.disk = disk
        self.memory = memory_at(path, vfs=disk.name)
        self.ledger = Ledger()
        self.failures = []
        self.refused = []

    async def run(self):
        """Returns whether the disk failed on the way."""
        opened = await self.attempt(self.memory.start())
        if opened:
            await self.day()
        hits = bool(self.disk.hits)
        self.disk.off()
        if not opened:
            await soon(self.memory.start())  # the same store can be opened once the fault is over
        if not any(isinstance(error, StoreCorrupt) for error in self.failures):
            await self.append("a", ["after the fault"], must=True)
        await soon(self.memory.close())
        return hits

    async def day(self):
        await self.append("a", ["one"])
        await self.append("a", [f"batch {i}/12" for i in range(12)])
        await self.append("b", ["another conversation", "of two"])
        await self.attempt(self.memory.archive("a", keep=4))
        await self.attempt(self.digest("a"))
        await self.attempt(self.memory.describe("a", project="névé", metadata={"mood": "calm"}))
        await self.attempt(self.memory.recall("a", "batch"))
        await self.append("c", ["to be erased"])
        await self.attempt(self.erase("c"))
        await self.append("a", ["before the checkpoint"])
        await self.attempt(self.checkpoint())
        await self.append("b", ["after the checkpoint"])
        await self.attempt(self.memory.restore("a"))

    async def append(self, conversation, texts, *, must=False):
        appended = await self.attempt(self.memory.append(conversation, said(texts)), must=must)
        if appended:
            self.ledger.ack_all(conversation, appended)
        elif not isinstance(self.failures[-1], StoreTimeout):
            self.refused.append((conversation, texts))

    async def erase(self, conversation):
        self.ledger.acked.pop(conversation, None)
        await self.memory.erase(conversation)

    async def digest(self, conversation):
        store = self.memory.store
        lease = await store.lease(Key(DEFAULT_TENANT, conversation), "torturer", 60)
        begun = await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=0))
        await store.finish_digest(lease, _completed(begun))
        await store.release(lease)

    async def checkpoint(self):
        """What the writer does of itself, but only after a thousand pages."""
        await self.memory.store._write(
            lambda con: con.execute("PRAGMA wal_checkpoint(FULL)").get, alone=True
        )

    async def attempt(self, action, *, must=False):
        """The result; a typed error gives None, any other fails the test by itself."""
        try:
            return await soon(action) or True
        except FirnlineError as error:
            # Only the first has to be the store's: after it, a conversation may not be there.
            assert not must, f"the fault has passed, and yet: {error!r} after {self.failures}"
            assert self.failures or isinstance(error, StoreError), repr(error)
            self.failures.append(error)
            return None

    async def check(self):
        """Through the real disk: all that was acknowledged is there, and nothing of the refused."""
        async with memory_at(self.path) as memory:
            await self.ledger.check(memory)
            for conversation, texts in self.refused:
                stored = {entry.message.text for entry in await memory.read(conversation)}
                assert stored.isdisjoint(texts), f"{texts} were refused, and stored"
            await assert_healthy(memory)


def _completed(digest):
    return Digest(
        version=digest.version,
        first_seq=digest.first_seq,
        last_seq=digest.last_seq,
        base=digest.base,
        status="completed",
        text="a summary",
        created_at=digest.created_at,
    )


async def fail_everywhere(folder, disk, operation, file, code=None, *, stuck=False):  # noqa: PLR0913
    """Fail the first, the second, the third operation ... until the day goes by without."""
    for nth in itertools.count(1, STRIDE if stuck else 1):
        disk.on((operation,), file, nth, code, stuck=stuck)
        scenario = Scenario(folder / f"{nth}.db", disk)
        try:
            failed = await scenario.run()
            await scenario.check()
        except (AssertionError, TimeoutError, apsw.Error) as error:
            pytest.fail(f"{operation} {nth} of {file}: {error!r}; before it {scenario.failures}")
        if not failed:
            return nth - 1
    return None


@pytest.mark.promise("durable")
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("operation", ["write", "sync", "truncate"])
async def test_an_operation_fails_once(tmp_path, disk, operation, file):
    await fail_everywhere(tmp_path, disk, operation, file)


@pytest.mark.promise("durable")
@pytest.mark.parametrize("file", FILES)
async def test_the_disk_is_full_once(tmp_path, disk, file):
    await fail_everywhere(tmp_path, disk, "write", file, DISK_FULL)


@pytest.mark.promise("durable")
@pytest.mark.parametrize("file", ["main", "wal"])
@pytest.mark.parametrize("operation", ["write", "sync"])
async def test_the_disk_fails_for_a_while(tmp_path, disk, operation, file):
    await fail_everywhere(tmp_path, disk, operation, file, stuck=True)


@pytest.mark.promise("durable")
async def test_the_disk_is_full_for_a_while(tmp_path, disk):
    await fail_everywhere(tmp_path, disk, "write", "any", DISK_FULL, stuck=True)
