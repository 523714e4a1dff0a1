"""Ctrl-C on the caller's own thread, at every point where it can arrive."""

import asyncio
import dis
import gc
import sys
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from torture_kit import Ledger, assert_healthy, memory_at, said, soon

from firnline.errors import StoreTimeout
from firnline.log import limits
from firnline.log.entry import Key
from firnline.memory import DEFAULT_TENANT
from firnline.store import sqlite

HERE = str(Path(sqlite.__file__).parent)
BUSY_SECONDS = 20.0
NEVER = 1_000_000_000
# After these, the interpreter looks whether there was a signal.
LOOKS = {"RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD"} | {
    name for name in dis.opname if name.startswith("POP_JUMP_BACKWARD")
}


class Interruption:
    """Raises `KeyboardInterrupt` at the `nth` look.

    Since Python 3.12, only what was traced before is traced instruction by instruction, and an
    error ends that. So each kind of action is interrupted `NEVER` first, every time.
    """

    def __init__(self, nth):
        self._left = nth
        self._before = {}
        self.came = ""

    @contextmanager
    def on(self):
        outer = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(outer)

    def _trace(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(HERE) or self.came:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before, self._before[frame] = self._before.get(frame), frame.f_lasti
            self._left -= before is not None and _looks(frame.f_code, before, frame.f_lasti)
            if not self._left:
                self.came = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                self._before.clear()
                raise KeyboardInterrupt
        return self._trace


def _looks(code, before, now):
    """Whether it is looked between two instructions; it counts as if in the first one."""
    name = dis.opname[code.co_code[before]]
    return name in LOOKS and _handler(code, before) == _handler(code, now)


def _handler(code, offset):
    entries = dis._parse_exception_table(code)
    return next((entry.target for entry in entries if entry.start <= offset < entry.end), None)


@pytest.fixture
def _at_once(monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 3_600.0)
    monkeypatch.setattr(limits, "COMMITS_PROVING", 0)


async def interrupted(action, nth, meanwhile=None):
    """Whether it was, and where; driven by hand, so that the loop goes on.

    `meanwhile` is called when it first waits.
    """
    interruption = Interruption(nth)
    steps = action.__await__()
    try:
        while True:
            with interruption.on():
                waits = steps.send(None)
            if meanwhile:
                meanwhile, _ = None, meanwhile()
            if waits is not None:
                waits._asyncio_future_blocking = False
                await soon(asyncio.shield(waits))
            await asyncio.sleep(0)
    except StopIteration:
        assert not interruption.came, f"it goes on as if nothing were: {interruption.came}"
    except KeyboardInterrupt:
        pass
    return interruption.came


@pytest.mark.promise("durable")
@pytest.mark.parametrize(("new", "long"), [(False, False), (True, False), (False, True)])
@pytest.mark.usefixtures("_at_once")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
async def test_an_interrupted_write_is_complete_or_not_there(database, new, long, monkeypatch):
    if long:  # the thread writes it
        monkeypatch.setattr(limits, "COMMIT_AT_ONCE_BYTES", 1)
    ledger, nth, where = Ledger(), 0, "before the first"
    async with memory_at(database, busy_seconds=BUSY_SECONDS) as memory:
        while where:
            nth += 1
            conversation = f"c{nth}" if new else "c"
            before = said([f"{nth} before a", f"{nth} before b"])
            await interrupted(memory.append(f"before {conversation}", before), NEVER)
            both = said([f"{nth} a", f"{nth} b"])
            where = await interrupted(memory.append(conversation, both), nth)
            try:
                await goes_on(memory, ledger, conversation, nth, database)
            except Exception as error:
                raise AssertionError(f"after an interruption at {where}") from error
        await ledger.check(memory)
        await assert_healthy(memory)
        assert not memory.store._writer._in_line, "nobody would write at once any more"
    assert nth > (20 if long else 50)


@pytest.mark.promise("durable")
@pytest.mark.usefixtures("_at_once")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
async def test_those_for_whom_an_interrupted_one_wrote_are_answered(database):
    """Stored, or reported as unknown; and never twice."""
    ledger, nth, where, unsure, noise = Ledger(), 0, "before the first", 0, []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
    async with memory_at(database, busy_seconds=BUSY_SECONDS) as memory:
        while where:
            nth += 1
            await interrupted(memory.append("c", said([f"{nth} before"])), NEVER)
            others = []

            def come(nth=nth, others=others):
                for name in "bc":
                    write = memory.append("c", said([f"{nth} {name}"]))
                    others.append(asyncio.create_task(write))

            where = await interrupted(memory.append("c", said([f"{nth} a"])), nth, come)
            for outcome in await soon(asyncio.gather(*others, return_exceptions=True)):
                if isinstance(outcome, BaseException):
                    assert isinstance(outcome, StoreTimeout), where
                    unsure += 1
                else:
                    ledger.ack_all("c", outcome)
            ledger.ack_all("c", await soon(memory.append("c", said([f"{nth} after"]))))
        texts = [entry.message.text for entry in await memory.read("c")]
        assert len(texts) == len(set(texts))
        await ledger.check(memory)
        await assert_healthy(memory)
    assert nth > 50
    assert unsure
    gc.collect()
    assert not noise, "an answer that nobody hears"


async def goes_on(memory, ledger, conversation, nth, database):
    """Both ways to write; the thread waits for another process, which is not kept out."""
    other = apsw.Connection(str(database))
    other.set_busy_timeout(int(BUSY_SECONDS * 1_000))  # the thread may still write what was started
    other.execute("BEGIN IMMEDIATE")
    waits = asyncio.create_task(memory.append(conversation, said([f"{nth} " + "x" * 20_000])))
    await asyncio.sleep(0.005)
    other.execute("ROLLBACK")
    other.close()
    ledger.ack_all(conversation, await soon(waits))
    ledger.ack_all(conversation, await soon(memory.append(conversation, said([f"{nth} after"]))))
    texts = [entry.message.text for entry in await memory.read(conversation)]
    assert texts.count(f"{nth} a") == texts.count(f"{nth} b") <= 1


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
async def test_after_an_interrupted_glance_others_are_answered(database):
    nth, where, key = 0, "before the first", Key(DEFAULT_TENANT, "c")
    async with memory_at(database) as memory:
        await memory.append("c", said(["one"]))
        while where:
            nth += 1
            await interrupted(memory.store.head(key), NEVER)
            where = await interrupted(memory.store.head(key), nth)
            assert await soon(memory.store.head(key)), where
            assert not memory.store._readers._nearby or not _in_the_past(memory), where
            assert await asyncio.to_thread(_at_hand, memory), where
    assert nth > 10


def _in_the_past(memory):
    return memory.store._readers._nearby.in_transaction


def _at_hand(memory):
    lock = memory.store._readers._at_hand
    return lock.acquire(timeout=5) and not lock.release()
