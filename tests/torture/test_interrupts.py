"""Ctrl-C in the middle of a write on the caller's own thread, at every point where it can come."""

import asyncio
import dis
import sys
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from torture_kit import Ledger, assert_healthy, memory_at, said, soon

from firnline import limits
from firnline.store import sqlite

HERE = str(Path(sqlite.__file__).parent)
BUSY_SECONDS = 20.0
# After these, the interpreter looks whether there was a signal.
LOOKS = {"RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD"} | {
    name for name in dis.opname if name.startswith("POP_JUMP_BACKWARD")
}


class Interruption:
    """Raises `KeyboardInterrupt` at the `nth` look."""

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
            now = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            looked = self._before.get(frame) in LOOKS
            self._before[frame] = now
            self._left -= looked
            if not self._left:
                self.came = f"{frame.f_code.co_filename}:{frame.f_lineno} before {now}"
                self._before.clear()
                raise KeyboardInterrupt
        return self._trace


@pytest.fixture
def _at_once(monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 3_600.0)
    monkeypatch.setattr(limits, "COMMITS_PROVING", 0)


async def interrupted(memory, conversation, texts, nth):
    """Whether it was, and where; driven by hand, so that the loop goes on."""
    interruption = Interruption(nth)
    steps = memory.append(conversation, said(texts)).__await__()
    try:
        while True:
            with interruption.on():
                waits = steps.send(None)
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
@pytest.mark.parametrize("new", [False, True])
@pytest.mark.usefixtures("_at_once")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
async def test_an_interrupted_write_is_whole_or_not_there(database, new):
    ledger, nth, where = Ledger(), 0, "before the first"
    async with memory_at(database, busy_seconds=BUSY_SECONDS) as memory:
        while where:
            nth += 1
            conversation = f"c{nth}" if new else "c"
            where = await interrupted(memory, conversation, [f"{nth} a", f"{nth} b"], nth)
            try:
                await goes_on(memory, ledger, conversation, nth, database)
            except Exception as error:
                raise AssertionError(f"after an interruption at {where}") from error
        await ledger.check(memory)
        await assert_healthy(memory)
    assert nth > 50


async def goes_on(memory, ledger, conversation, nth, database):
    """Both ways to write; the thread waits for another process, which is not kept out."""
    other = apsw.Connection(str(database))
    other.execute("BEGIN IMMEDIATE")
    waits = asyncio.create_task(memory.append(conversation, said([f"{nth} " + "x" * 20_000])))
    await asyncio.sleep(0.005)
    other.execute("ROLLBACK")
    other.close()
    ledger.ack_all(conversation, await soon(waits))
    ledger.ack_all(conversation, await soon(memory.append(conversation, said([f"{nth} after"]))))
    texts = [entry.message.text for entry in await memory.read(conversation)]
    assert texts.count(f"{nth} a") == texts.count(f"{nth} b") <= 1
