"""A disk that fails: every error is typed, nothing acknowledged is lost, and work continues."""

import asyncio
import itertools
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import apsw
import pytest
from faulty_disk import DISK_FULL, FaultyDisk
from torture_kit import TORTURE, Ledger, assert_healthy, memory_at, said, soon

from firnline.errors import FirnlineError, StoreCorrupt, StoreError, StoreTimeout
from firnline.log import limits
from firnline.log.entry import Digest, Key
from firnline.memory import DEFAULT_TENANT

WRITTEN = ("main", "wal", "journal")
EVERYWHERE = [
    *(("write", file) for file in WRITTEN),
    *(("sync", file) for file in WRITTEN),
    ("truncate", "main"),
    ("truncate", "wal"),
]
STRIDE = 1 if TORTURE else 7
BUSY_SECONDS = 5.0
PATIENCE = 180.0  # it hangs, or the machine does; what does shows after `faulthandler_timeout`
WRONG_MAX = 3


@pytest.fixture
def tmp_path():
    """In memory, if there is room: the disk that fails is in front of it."""
    with TemporaryDirectory(prefix="firnline-torture-") as folder:
        yield Path(folder)


@pytest.fixture
def disk():
    disk = FaultyDisk()
    yield disk
    disk.unregister()


class Scenario:
    """A store's day, from opening to closing, with whatever goes wrong noted down."""

    def __init__(self, path, fault, vfs=None):
        self.path = path
        self.fault = fault
        self.memory = memory_at(path, vfs=vfs, busy_seconds=BUSY_SECONDS)
        self.ledger = Ledger()
        self.failures = []
        self.refused = []

    async def run(self):
        """Returns whether there was a fault on the way."""
        opened = await self.attempt(self.memory.start())
        if opened:
            await self.attempt(self.fault.watch(self.memory))
            await self.day()
        hits = bool(self.fault.hits)
        # Only the first has to be the store's: after it, a conversation may not be there.
        assert isinstance(self.failures[0], StoreError) if self.failures else True
        self.fault.off()
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
        await asyncio.gather(
            *(self.append("b", [f"at once {i}"], key=f"key {i}") for i in range(3)),
            self.append("d", ["at once"], key="key"),
        )
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

    async def append(self, conversation, texts, *, key=None, must=False):
        action = self.memory.append(conversation, said(texts), idempotency_key=key)
        try:
            self.ledger.ack_all(conversation, await soon(action, PATIENCE))
        except StoreError as error:
            self.failures.append(error)
            if must:
                pytest.fail(f"the fault has passed, and yet: {error!r}")
            if not isinstance(error, StoreTimeout):
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

    async def attempt(self, action):
        """Whether it was done; a typed error is noted, any other fails the test by itself."""
        try:
            await soon(action, PATIENCE)
        except FirnlineError as error:
            self.failures.append(error)
            return False
        return True

    async def check(self):
        """On the real disk: everything acknowledged is there, and nothing of failed writes."""
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


@contextmanager
def committing(*, at_once):
    """Small writes are committed on the loop's thread, as on a quick disk; else by the writer's."""
    with (
        mock.patch.object(limits, "COMMIT_QUICK_SECONDS", 3_600.0 if at_once else -1.0),
        mock.patch.object(limits, "COMMITS_PROVING", 0 if at_once else 1),
    ):
        yield


async def fail_everywhere(folder, faults, vfs=None):
    """Fail the first, the second, the third operation ... until the day goes by without."""
    wrong = []
    for number, fault in enumerate(faults):
        scenario = Scenario(folder / f"{number}.db", fault, vfs)
        try:
            with committing(at_once=number % 2 == 0):
                met = await scenario.run()
            await scenario.check()
        except (AssertionError, pytest.fail.Exception, FirnlineError, apsw.Error) as error:
            wrong.append(f"{fault}: {error!r}; before it {scenario.failures}")
            met = len(wrong) < WRONG_MAX
        if not met:
            break
    assert not wrong, "\n".join(wrong)
    assert number, "there was nothing to fail"


async def fail_disk(folder, disk, operation, file, code=None, **how):
    step = how.pop("step", 1)
    plans = (
        disk.on((operation,), file, nth, code, **how) or disk for nth in itertools.count(1, step)
    )
    await fail_everywhere(folder, plans, disk.name)


@pytest.mark.promise("durable")
@pytest.mark.parametrize(("operation", "file"), EVERYWHERE)
async def test_an_operation_fails_once(tmp_path, disk, operation, file):
    # The log is written to hundreds of times, twice for each page: every fifth time is both.
    often = (operation, file) == ("write", "wal") and not TORTURE
    await fail_disk(tmp_path, disk, operation, file, step=5 if often else 1)


@pytest.mark.promise("durable")
@pytest.mark.parametrize("file", WRITTEN)
async def test_the_disk_is_full_once(tmp_path, disk, file):
    await fail_disk(tmp_path, disk, "write", file, DISK_FULL, step=STRIDE)


@pytest.mark.promise("durable")
@pytest.mark.parametrize("file", ["main", "wal"])
async def test_a_read_fails_once(tmp_path, disk, file):
    await fail_disk(tmp_path, disk, "read", file, step=STRIDE)


@pytest.mark.promise("durable")
@pytest.mark.parametrize("file", ["main", "wal"])
@pytest.mark.parametrize("operation", ["write", "sync"])
async def test_the_disk_fails_for_a_while(tmp_path, disk, operation, file):
    step = STRIDE if operation == "write" else 1
    await fail_disk(tmp_path, disk, operation, file, stuck=True, step=step)


@pytest.mark.promise("durable")
async def test_the_disk_is_full_for_a_while(tmp_path, disk):
    await fail_disk(tmp_path, disk, "write", "any", DISK_FULL, stuck=True, step=STRIDE)


@pytest.mark.promise("durable")
@pytest.mark.parametrize("code", [apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_FULL, apsw.SQLITE_BUSY])
async def test_a_commit_fails(tmp_path, code):
    await fail_everywhere(tmp_path, (Refusal(code, nth) for nth in itertools.count(1)))


@pytest.mark.promise("durable")
@pytest.mark.parametrize("code", [apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_FULL])
async def test_a_statement_fails(tmp_path, code):
    """Any statement of the writer, so that an append is rolled back completely."""
    await fail_everywhere(tmp_path, (Failure(code, nth) for nth in itertools.count(1, STRIDE)))


class Nth:
    """Raises an error at the `nth` call of a hook of the writer's connection."""

    def __init__(self, code, nth):
        self._code = code
        self._nth = nth
        self._count = 0
        self.hits = []

    def __str__(self):
        return f"{type(self).__name__} {self._nth} {self.hits}"

    def off(self):
        self._count = self._nth  # it was met, or will not be

    def meet(self, what):
        self._count += 1
        if self._count == self._nth:
            self.hits.append(what)
            raise apsw.exception_for(self._code)


class Refusal(Nth):
    """Refuses the `nth` commit."""

    async def watch(self, memory):
        await memory.store._write(lambda con: con.set_commit_hook(self.commit), alone=True)

    def commit(self):
        self.meet("commit")
        return False


class Failure(Nth):
    """Fails the `nth` statement."""

    async def watch(self, memory):
        await memory.store._write(lambda con: con.set_exec_trace(self.execute), alone=True)

    def execute(self, _cursor, sql, _values):
        self.meet(sql)
        return True
