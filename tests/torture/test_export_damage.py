"""Damaged export files: import rejects them, and stores nothing of them."""

import pytest
from torture_kit import TORTURE, memory_at, said, soon

from firnline.errors import InputError
from firnline.log.entry import Digest, Key, Project
from firnline.log.message import Message, ToolCall
from firnline.memory import DEFAULT_TENANT

STEP = 1 if TORTURE else 2


@pytest.fixture
async def exported(database, tmp_path):
    """An export with all that one can hold."""
    path = tmp_path / "export.jsonl"
    async with memory_at(database) as memory:
        call = ToolCall.of("call-1", "measure", {"what": "depth"})
        await memory.append("a", said(["How deep?", "万年雪 🧊", '\\ and "']))
        await memory.append("a", Message.assistant(None, tool_calls=[call]))
        await memory.append("b", said(["another", "one"]))
        await memory.describe("b", project="Alps", metadata={"mood": "calm", "n": 1.5})
        await memory.save_project(Project("Alps", task="measure"))
        digest = Digest(version=1, first_seq=0, last_seq=1, status="completed", text="They spoke.")
        await memory.store.put_digests(Key(DEFAULT_TENANT, "a"), [digest])
        await memory.export(path)
    return path


@pytest.fixture
async def importer(tmp_path):
    """Tries to import some bytes, and checks that nothing of them is stored."""
    path = tmp_path / "damaged.jsonl"
    async with memory_at(tmp_path / "target.db") as memory:

        async def refused(data, what):
            path.write_bytes(data)
            with pytest.raises(InputError):
                await soon(memory.import_(path))
                pytest.fail(f"taken: {what}")
            assert await memory.conversations() == [], what
            assert await memory.projects() == [], what

        yield refused


@pytest.mark.promise("tamper-evident")
async def test_the_undamaged_file_is_imported(exported, tmp_path):
    """Else the tests below would prove nothing."""
    async with memory_at(tmp_path / "target.db") as memory:
        assert (await memory.import_(exported)).added == 6
        assert (await memory.verify("a")).ok
        again = tmp_path / "again.jsonl"
        await memory.export(again)
        assert again.read_bytes() == exported.read_bytes()


@pytest.mark.promise("tamper-evident")
async def test_a_byte_is_flipped(exported, importer, rng):
    data = exported.read_bytes()
    for at in range(rng.randrange(STEP), len(data), STEP):
        mask = 1 << rng.randrange(8)
        flipped = bytearray(data)
        flipped[at] ^= mask
        await importer(bytes(flipped), f"byte {at} ^ {mask:#04x}: {data[at - 20 : at + 20]!r}")


@pytest.mark.promise("tamper-evident")
async def test_the_file_is_cut_off(exported, importer, rng):
    data = exported.read_bytes()
    for size in range(rng.randrange(STEP), len(data), STEP):
        await importer(data[:size], f"the first {size} bytes")


@pytest.mark.promise("tamper-evident")
async def test_lines_are_moved_dropped_or_doubled(exported, importer):
    lines = exported.read_bytes().splitlines(keepends=True)
    assert len(lines) > 8
    for i, line in enumerate(lines):
        rest = lines[:i] + lines[i + 1 :]
        await importer(b"".join(rest), f"without line {i}")
        await importer(b"".join([*lines[: i + 1], line, *lines[i + 1 :]]), f"line {i} twice")
        if i + 1 < len(lines):
            swapped = [*lines[:i], lines[i + 1], line, *lines[i + 2 :]]
            await importer(b"".join(swapped), f"lines {i} and {i + 1} swapped")


@pytest.mark.promise("tamper-evident")
async def test_something_else_is_added(exported, importer):
    data = exported.read_bytes()
    for extra in (b"\n", b"{}\n", b" ", data):
        await importer(data + extra, f"{extra[:10]!r} behind it")
        await importer(extra + data, f"{extra[:10]!r} in front of it")
