"""Imports that are killed: nothing is there twice, nothing is missing; and a gigabyte of chats."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from torture_kit import TORTURE, assert_healthy, memory_at

import foreign

KILLS = 40 if TORTURE else 3
MEGABYTES = 1_024 if TORTURE else 2
PEAK_MAX = 300 * 1024  # kilobytes, as the system counts them

# The system's figure for a child begins with its parent's, so the process looks at itself.
IMPORT = """
import re, sys
from pathlib import Path
from firnline.cli import main
code = main(["import", sys.argv[1], "--store", f"sqlite:///{sys.argv[2]}", "--json"])
status = Path("/proc/self/status").read_text()
print(re.search(r"VmHWM:\\s+([0-9]+) kB", status)[1], file=sys.stderr)
sys.exit(code)
"""


async def importing(export, store):
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-c", IMPORT, str(export), str(store))
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)


async def entries_at(store):
    """How many messages the store has; none if there is no store yet."""
    if not store.exists():
        return 0
    async with memory_at(store) as memory:
        return sum(head.entries for head in await memory.conversations(limit=1_000))


async def killed(export, store, more):
    """Kill an import once it has stored more; False if it came to its end before."""
    before = await entries_at(store)
    process = await importing(export, store)
    while process.returncode is None and await entries_at(store) < before + more:
        await asyncio.sleep(0.1)
    if process.returncode is not None:
        await process.communicate()
        return False
    os.kill(process.pid, signal.SIGKILL)
    await process.communicate()
    return True


@pytest.mark.promise("durable")
async def test_a_killed_import_goes_on_without_a_duplicate(tmp_path, rng):
    export, store, whole = tmp_path / "export.zip", tmp_path / "store.db", tmp_path / "whole.db"
    conversations = foreign.chatgpt_export(export, 2, shards=2, kilobytes=40)
    reference = await importing(export, whole)
    expected = json.loads((await reference.communicate())[0])
    kills = 0
    for _ in range(KILLS):
        kills += await killed(export, store, rng.randrange(1, 400))
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
    conversations = await asyncio.to_thread(foreign.chatgpt_export, export, MEGABYTES, 4)
    if TORTURE:
        assert await killed(export, store, 10_000)
    process = await importing(export, store)
    printed, peak = await process.communicate()
    report = json.loads(printed)
    assert report["conversations"] == conversations
    assert report["added"] + report["known"] == report["messages"]
    assert int(peak.split()[-1]) < PEAK_MAX
