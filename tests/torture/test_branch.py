"""A branch that is killed halfway starts as its source, and the same call finishes it."""

import itertools
import shutil

import pytest
from torture_kit import TORTURE, Script, memory_at, said

from firnline.log.entry import Digest, Key
from firnline.memory import DEFAULT_TENANT

ENTRIES = 30
SEQ = 24
KILL_STEP = 1 if TORTURE else 3


@pytest.mark.promise("durable")
@pytest.mark.promise("idempotent")
async def test_killed_on_the_way(database, tmp_path):
    """At every operation on the disk."""
    key = Key(DEFAULT_TENANT, "c")
    made = Digest(version=3, first_seq=0, last_seq=SEQ, status="completed", text="so far")
    async with memory_at(database) as memory:
        await memory.append("c", said([f"message {i}" for i in range(ENTRIES)]))
        await memory.store.put_digests(key, [made])
    halves = set()
    async with Script("branch_kill.py") as script:
        for nth in itertools.count(1, KILL_STEP):
            copy = tmp_path / f"copy {nth}" / "torture.db"
            shutil.copytree(database.parent, copy.parent)
            killed, half, same, metadata, digests = await script.ask(
                {"path": str(copy), "seq": SEQ, "nth": nth}
            )
            assert same, f"killed at {nth}"
            assert metadata == {"branch": {"of": "c", "at": SEQ}}, f"killed at {nth}"
            assert digests == [3], f"killed at {nth}"
            shutil.rmtree(copy.parent, ignore_errors=True)
            if not killed:
                break
            halves.add(half)
    assert half == SEQ + 1
    assert halves == {0, 7, 14, 21, SEQ + 1}, "a kill in each part, or the test is blind"
