"""Power cuts: what was not synced is lost, in any combination, and nothing acknowledged is."""

import copy
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from power_cut import Disk
from torture_kit import TORTURE, Ledger, assert_healthy, memory_at, said

from firnline.errors import FirnlineError

DAYS = 200 if TORTURE else 4
CUTS = 12
OPERATIONS = 60


@pytest.fixture
def tmp_path():
    """In memory, if there is room: the disk that loses writes is in front of it."""
    with TemporaryDirectory(prefix="firnline-power-") as folder:
        yield Path(folder)


class Day:
    """What a store does in a day, and what is on the disk after each of its power cuts."""

    def __init__(self, path, seed, *, lying=False):
        self.path, self.ledger, self.cuts = path, Ledger(), []
        self._rng = random.Random(seed)
        self._at = {self._rng.randrange(20, 900) for _ in range(CUTS)}
        self._disk = Disk(self._rng, self._operation, lying=lying)

    def _operation(self, number):
        if number not in self._at:
            return
        files = {Path(name).name: found for name, found in self._disk.after_cut().items()}
        head = self.path.with_name(f"{self.path.name}-head")  # only a hint: old, new or not there
        if head.exists() and self._rng.random() < 0.7:
            files[head.name] = head.read_bytes()
        self.cuts.append((number, copy.deepcopy(self.ledger.acked), files))

    async def run(self):
        try:
            async with memory_at(self.path, vfs=self._disk.name) as memory:
                for number in range(OPERATIONS):
                    await self._operate(memory, number)
        finally:
            self._disk.unregister()

    async def _operate(self, memory, number):
        name, kind = f"c{self._rng.randrange(3)}", self._rng.random()
        there = len(self.ledger.acked.get(name, ()))
        if kind < 0.75 or not there:
            size = self._rng.randrange(1, 4)
            texts = [f"{number}-{i} " + "x" * self._rng.randrange(300) for i in range(size)]
            self.ledger.ack_all(name, await memory.append(name, said(texts)))
        elif kind < 0.80:
            await memory.archive(name, keep=3)
        elif kind < 0.85:
            await memory.pin(name, 0)
        elif kind < 0.90:
            await memory.describe(name, project=f"p{number}")
        else:
            mode = self._rng.choice(["FULL", "TRUNCATE", "PASSIVE"])
            checkpoint = f"PRAGMA wal_checkpoint({mode})"
            await memory.store._write(lambda con: con.execute(checkpoint).get, alone=True)

    async def losses(self):
        """What is wrong after each cut; a store must open, have it all, and go on."""
        for number, acked, files in self.cuts:
            with TemporaryDirectory(dir=self.path.parent) as folder:
                for name, found in files.items():
                    Path(folder, name).write_bytes(found)
                try:
                    await self._check(Path(folder, self.path.name), acked)
                except (AssertionError, FirnlineError) as error:
                    yield f"cut at operation {number}: {error!r}"

    async def _check(self, path, acked):
        ledger = Ledger()
        ledger.acked.update(acked)
        async with memory_at(path) as memory:
            await ledger.check(memory)
            ledger.ack_all("new", await memory.append("new", said(["it goes on"])))
            await ledger.check(memory)
            await assert_healthy(memory)


@pytest.mark.promise("durable")
@pytest.mark.parametrize("number", range(DAYS))
async def test_a_power_cut_loses_nothing_acknowledged(tmp_path, seed, number):
    day = Day(tmp_path / "a.db", seed + number)
    await day.run()
    losses = [loss async for loss in day.losses()]
    assert not losses, "\n".join(losses)
    assert len(day.cuts) > CUTS // 2


async def test_a_disk_that_reports_syncs_too_early_is_found_out(tmp_path):
    """The control: the test sees what a power cut takes."""
    day = Day(tmp_path / "a.db", 1, lying=True)
    await day.run()
    assert [loss async for loss in day.losses()]
