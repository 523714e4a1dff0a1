"""A backup during writes is complete, and has every message acknowledged before it."""

import asyncio
import itertools

import pytest
from torture_kit import TORTURE, Ledger, assert_healthy, memory_at, said, soon

from firnline.errors import InputError
from firnline.log.entry import Card

WRITERS = 8
PAGES_MIN = 40_000 if TORTURE else 6_000
BACKUPS = 10 if TORTURE else 3
PAGE = 4096
CARD = Card(tenant="default", kind="key", name="a", body=b"kept", conversation="big")


@pytest.mark.promise("backup-whole")
async def test_a_backup_under_load(database, tmp_path):
    """Of a store larger than one step of the copy: it must end although the source changes."""
    ledger = Ledger()
    async with memory_at(database) as memory, memory_at(database) as other:
        await grow(memory)
        await memory.store.put_cards([CARD])
        done = asyncio.Event()
        copies = []
        async with asyncio.TaskGroup() as group:
            for i in range(WRITERS):
                group.create_task(write_until(done, (memory, other)[i % 2], ledger, f"w{i}"))
            for number in range(BACKUPS):
                acked = {name: dict(seqs) for name, seqs in ledger.acked.items()}
                copies.append((tmp_path / f"{number}.db", acked))
                await soon(memory.backup(copies[-1][0]))
            done.set()
        await ledger.check(memory)
    for copy, acked in copies:
        before = Ledger()
        before.acked.update(acked)
        async with memory_at(copy) as memory:
            await before.check(memory)
            assert (await memory.verify("big")).ok
            assert [card.body for card in await memory.store.cards(CARD.kind)] == [CARD.body]
            await assert_healthy(memory)
    assert not list(tmp_path.glob("*.partial"))


async def grow(memory):
    """Enough pages for several steps."""
    text = "snow " * 20_000
    for number in range(PAGES_MIN * PAGE // len(text) // 10 + 1):
        await memory.append("big", said([f"{number} {i} {text}" for i in range(10)]))


async def write_until(done, memory, ledger, name):
    for number in itertools.count():
        if done.is_set():
            return
        texts = [f"{name}-{number} {i}/2" for i in range(2)]
        conversation = name if number % 2 else "shared"
        ledger.ack_all(conversation, await soon(memory.append(conversation, said(texts))))


@pytest.mark.promise("backup-whole")
async def test_a_failed_backup_leaves_nothing(database, tmp_path):
    """Neither a file that looks like a backup nor half of one."""
    async with memory_at(database) as memory:
        await memory.append("a", said(["one"]))
        with pytest.raises(InputError, match="cannot be written"):
            await soon(memory.backup(tmp_path / "missing" / "copy.db"))

        def stop(*_):
            raise InterruptedError

        with pytest.raises(InterruptedError):
            await soon(memory.backup(tmp_path / "copy.db", progress=stop))
        left = {path.name for path in tmp_path.iterdir()} - {database.parent.name}
        assert left == set()
        await soon(memory.backup(tmp_path / "copy.db"))
    async with memory_at(tmp_path / "copy.db") as memory:
        assert (await memory.verify("a")).ok
