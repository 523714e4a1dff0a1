"""Imports that are killed: nothing is duplicated or missing; and a gigabyte of chats."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest
from torture_kit import TORTURE, assert_healthy, memory_at

from support import foreign_exports

KILLS = 40 if TORTURE else 3
MEGABYTES = 1_024 if TORTURE else 2
PEAK_MAX = 300 * 1024  # kilobytes, as the system counts them

# The system's figure for a child begins with its parent's, so the process looks at itself. It also
# kills itself: a kill from outside could come after the end.
IMPORT = """
import os, re, signal, sys, threading
from pathlib import Path
from firnline.cli import main
from firnline.memory import Memory

append, left, delay = Memory.append, int(sys.argv[3]), float(sys.argv[4])

async def fatal(self, *given, **options):
    global left
    done = await append(self, *given, **options)
    left -= 0 if done.replayed else len(done)
    if left <= 0:
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return done

if left:
    Memory.append = fatal
code = main(["import", sys.argv[1], "--store", f"sqlite:///{sys.argv[2]}", "--json"])
status = Path("/proc/self/status").read_text()
print(re.search(r"VmHWM:\\s+([0-9]+) kB", status)[1], file=sys.stderr)
sys.exit(code)
"""


async def importing(export, store, killed_after=0, delay=0.0):
    """An import; it dies some seconds after it has stored so many more messages."""
    pipe = asyncio.subprocess.PIPE
    given = map(str, (export, store, killed_after, delay))
    command = (sys.executable, "-c", IMPORT, *given)
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)


async def killed(export, store, more, delay=0.0):
    """Whether an import was killed, once it had stored more, before it came to its end."""
    process = await importing(export, store, more, delay)
    await process.communicate()
    return process.returncode == -signal.SIGKILL


@pytest.mark.promise("durable")
async def test_a_killed_import_continues_without_a_duplicate(tmp_path, rng):
    export, store, whole = tmp_path / "export.zip", tmp_path / "store.db", tmp_path / "whole.db"
    conversations = foreign_exports.chatgpt_export(export, 2, shards=2, kilobytes=40)
    reference = await importing(export, whole)
    expected = json.loads((await reference.communicate())[0])
    kills = 0
    for _ in range(KILLS):
        kills += await killed(export, store, rng.randrange(1, 400), rng.uniform(0, 0.05))
    assert kills >= 2, "it was never in the middle of anything; the test proves nothing"
    last = await importing(export, store)
    report = json.loads((await last.communicate())[0])
    assert report["messages"] == expected["messages"]
    assert report["conversations"] == conversations
    async with memory_at(store) as resumed, memory_at(whole) as reference:
        await assert_healthy(resumed)
        heads = await resumed.conversations(limit=1_000)
        others = await reference.conversations(limit=1_000)
        assert [head.conversation for head in heads] == [head.conversation for head in others]
        for head, other in zip(heads, others, strict=True):
            assert (head.hash, head.metadata) == (other.hash, other.metadata)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
async def test_a_gigabyte_is_imported_in_little_memory(tmp_path):
    """In `make test` it is not a gigabyte; see the acceptance tests for how memory grows."""
    export, store = tmp_path / "export.zip", tmp_path / "store.db"
    conversations = await asyncio.to_thread(foreign_exports.chatgpt_export, export, MEGABYTES, 4)
    if TORTURE:
        assert await killed(export, store, 10_000)
    process = await importing(export, store)
    printed, peak = await process.communicate()
    report = json.loads(printed)
    assert report["conversations"] == conversations
    assert report["added"] + report["known"] == report["messages"]
    assert int(peak.split()[-1]) < PEAK_MAX
