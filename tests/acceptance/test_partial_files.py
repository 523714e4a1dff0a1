"""Files that are not complete: nothing of them is left by an error, a cancellation or a kill."""

import asyncio
import signal
import subprocess
import sys
import threading
import time

import pytest

from firnline import Memory, Message
from firnline.client.files import save
from firnline.log import limits
from firnline.store.sqlite import backup

FORMATS = ("jsonl", "openai", "markdown", "html")


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch):
    for name in ("READ_PAGE", "BACKLOG_PAGE"):
        monkeypatch.setattr(limits, name, 3)
    monkeypatch.setattr(backup, "_BACKUP_PAGES", 1)


async def fill(memory):
    for name in ("a", "b"):
        await memory.append(name, [Message.user(f"{i} " + "snow " * 100) for i in range(12)])


class Stop:
    """A progress callback that cancels the task, or raises, once it is called."""

    def __init__(self, error=None):
        self.called, self._error = 0, error
        self._thread = threading.get_ident()
        self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()

    def __call__(self, *_):
        self.called += 1
        if self._error is not None:
            raise self._error
        self._loop.call_soon_threadsafe(self._task.cancel)
        if threading.get_ident() != self._thread:  # of a copy that must not end before it hears
            time.sleep(0.05)


async def stopped(call, error=None):
    """Run a call in a task that is stopped at its first progress."""

    async def run():
        stop = Stop(error)
        try:
            await call(stop)
        finally:
            assert stop.called

    with pytest.raises(type(error) if error else asyncio.CancelledError):
        await asyncio.create_task(run())


@pytest.mark.parametrize("error", [None, KeyError("x")])
@pytest.mark.parametrize("as_format", FORMATS)
async def test_an_export_that_is_stopped_leaves_no_file(tmp_path, as_format, error):
    one = {"conversations": ["a"], "as_format": as_format}
    async with Memory.open("memory:", worker=False) as memory:
        await fill(memory)
        await stopped(lambda stop: memory.export(tmp_path / "x", progress=stop, **one), error)
        assert list(tmp_path.iterdir()) == []
        await memory.export(tmp_path / "x", **one)
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("error", [None, KeyError("x")])
async def test_a_backup_that_is_stopped_leaves_no_file(url, tmp_path, error):
    if url == "memory:":
        return  # it has no backup
    folder = tmp_path / "here"
    folder.mkdir()
    async with Memory.open(url, worker=False) as memory:
        await fill(memory)
        await stopped(lambda stop: memory.backup(folder / "x", progress=stop), error)
        assert list(folder.iterdir()) == []
        await memory.backup(folder / "x")
    assert [file.name for file in folder.iterdir()] == ["x"]


@pytest.mark.parametrize("error", [None, InterruptedError("no")])
async def test_a_download_that_is_stopped_leaves_no_file(tmp_path, error):
    async def pieces(stop):
        yield b"{}\n"
        stop()
        await asyncio.sleep(0)
        yield b"{}\n"

    await stopped(lambda stop: save(pieces(stop), tmp_path / "x"), error)
    assert list(tmp_path.iterdir()) == []


KILLED = """
import asyncio, os, signal, sys
from firnline import Memory
from firnline.store.sqlite import backup

backup._BACKUP_PAGES = 1

async def main():
    async with Memory.open(sys.argv[1], worker=False) as memory:
        await memory.backup(sys.argv[2], progress=lambda *_: os.kill(os.getpid(), signal.SIGKILL))

asyncio.run(main())
"""


async def test_what_a_killed_backup_leaves_is_deleted_by_the_next(tmp_path):
    """The half of a database, and its journal."""
    url, folder = f"sqlite:///{tmp_path}/store.db", tmp_path / "here"
    folder.mkdir()
    async with Memory.open(url, worker=False) as memory:
        await memory.append("a", [Message.user("snow " * 1_000) for _ in range(30)])
    done = subprocess.run([sys.executable, "-c", KILLED, url, folder / "x"], check=False)
    assert done.returncode == -signal.SIGKILL
    left = sorted(file.name for file in folder.iterdir())
    assert [name.rpartition(".")[2] for name in left] == ["partial", "partial-journal"]
    own = folder / "firnline-notes.partial-journal"
    own.write_text("of the user")
    async with Memory.open(url, worker=False) as memory:
        await memory.backup(folder / "x")
    assert sorted(file.name for file in folder.iterdir()) == [own.name, "x"]
