"""A store on a medium that cannot be written: a cleanly closed one is read like any other."""

import os
import shutil
import subprocess

import pytest
from torture_kit import memory_at, said

from firnline.errors import FirnlineError
from firnline.log.entry import Key
from firnline.memory import DEFAULT_TENANT
from firnline.store.sqlite.commit_record import log_path


@pytest.fixture
def medium(tmp_path):
    """A folder, and how to make it read-only: by a mount, because root may write any folder."""
    folder = tmp_path / "medium"
    folder.mkdir()
    root = not os.geteuid()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if root and (
        not shutil.which("mount")
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting is not possible here")

    def seal(mode="ro"):
        if root:
            subprocess.run(["mount", "-o", f"remount,{mode}", str(folder)], check=True)
        else:
            folder.chmod(0o555 if mode == "ro" else 0o755)

    yield folder / "store.db", seal
    if root:
        subprocess.run(["umount", str(folder)], check=True)
    else:
        folder.chmod(0o755)


@pytest.mark.promise("typed-failure")
async def test_a_closed_store_is_read_on_a_read_only_medium(medium, tmp_path):
    path, seal = medium
    async with memory_at(path) as memory:
        await memory.append("a", said(["one", "two"]))
        await memory.recall(None, "one")
    seal()
    with pytest.raises(FirnlineError):
        await memory_at(path).start()
    async with memory_at(path, read_only=True) as memory:
        assert (await memory.verify("a")).entries == 2
        assert [hit.seq for hit in await memory.recall(None, "two")] == [1]
        assert {finding.state for finding in await memory.check(thorough=True)} <= {"ok", "warning"}
        await memory.prove_growth("a", await memory.checkpoint("a"))
        await memory.backup(tmp_path / "copy.db")
    async with memory_at(tmp_path / "copy.db") as memory:
        assert (await memory.verify("a")).entries == 2


@pytest.mark.promise("durable")
async def test_a_store_with_a_log_is_not_read_without_it(medium, tmp_path):
    """What is in the log would be missing."""
    path, seal = medium
    other = tmp_path / "other.db"
    async with memory_at(other) as memory:
        await memory.append("a", said(["one", "two"]))
        shutil.copy(other, path)
        shutil.copy(log_path(other), log_path(path))
    seal()
    store = memory_at(path, read_only=True)
    with pytest.raises(FirnlineError, match="write-ahead log"):
        await store.start()
    seal("rw")
    await store.start()
    assert (await store.verify("a")).entries == 2
    assert await store.store.head(Key(DEFAULT_TENANT, "a"))
    await store.close()
