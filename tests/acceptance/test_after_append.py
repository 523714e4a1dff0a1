"""What fails after the messages are stored does not fail the append: its caller would repeat it."""

import asyncio
import logging

import pytest

from firnline import Memory, Message
from firnline.errors import StoreFull, StoreUnavailable
from firnline.store.sqlite import SqliteStore

ROUND = [Message.user("How deep is the firn?"), Message.assistant("42 m.")]


async def _refuse(*_, **__):
    raise StoreFull("no space left, nothing was written")


def _fail(*_, **__):
    raise ZeroDivisionError


def _follow_ups(memory):
    """Everything that follows a stored append, by what is to be replaced with a failure."""
    engine = memory._engine
    return {
        "marking": (memory.store, "mark_pending", _refuse),
        "reading the head": (memory.store, "head", _refuse),
        "recording the plan": (memory.store, "describe", _refuse),
        "the embedder": (engine.recaller, "poke", _fail),
        "the worker": (engine.worker, "wake", _fail),
        "a strategy": (engine.pending.strategies, "strategy_of", _fail),
        "the observer": (engine.events, "_observer", _fail),
    }


@pytest.mark.promise("durable")
async def test_what_follows_an_append_does_not_fail_it(url, monkeypatch, caplog):
    async with Memory.open(url, background=True, embedder=None) as memory:
        for number, (what, fault) in enumerate(_follow_ups(memory).items()):
            caplog.clear()
            with monkeypatch.context() as patch:
                patch.setattr(*fault)
                stored = await memory.append(f"c{number}", ROUND)
            assert stored.seq == 1, what
            assert caplog.records, what
            assert len(await memory.read(f"c{number}")) == 2
        await memory.append("c0", ROUND)  # and what was not recorded then is recorded now
        assert "c0" in [key.conversation for key in await memory.due()]


@pytest.mark.promise("durable")
async def test_a_log_handler_that_fails_does_not_fail_an_append(monkeypatch):
    logger = logging.getLogger("firnline.events")
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    monkeypatch.setattr(logger, "filters", [_fail])
    async with Memory.open("memory:", embedder=None) as memory:
        assert (await memory.append("c", ROUND)).seq == 1


@pytest.mark.promise("durable")
async def test_what_follows_a_commit_does_not_fail_it(tmp_path, monkeypatch):
    """On the caller's thread and on the writer's, alone and in a shared commit."""
    async with Memory(SqliteStore(tmp_path / "x.db"), embedder=None) as memory:
        for error in (ZeroDivisionError, OSError, StoreUnavailable, MemoryError):

            def fail(*_, error=error):
                raise error("after the commit")

            with monkeypatch.context() as patch:
                patch.setattr(memory.store._heads._commits, "committed", fail)
                tries = [memory.append(f"c{i}", ROUND[0]) for i in range(3)]
                await asyncio.gather(*tries)
        for i in range(3):
            assert (await memory.head(f"c{i}")).entries == 4
            assert (await memory.append(f"c{i}", ROUND[0])).seq == 4
