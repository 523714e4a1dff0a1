"""Whatever a path names, the answer is a typed error in bounded time, or the work is done."""

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from firnline import Memory, Message
from firnline.cli.bench.datasets import load as load_dataset
from firnline.cli.program import main
from firnline.client import Client
from firnline.errors import FirnlineError, InputError, StoreCorrupt
from firnline.log import limits
from firnline.server.settings import load as load_settings
from firnline.store import SqliteStore
from firnline.store.files import atomic_write

KINDS = ("folder", "fifo", "zero", "null", "nul", "long", "foreign", "below", "loop", "socket")


@pytest.fixture(params=KINDS)
def odd(request, tmp_path):
    """The kind of a path, and the path."""
    place = tmp_path / "odd"
    paths = {
        "zero": "/dev/zero",
        "null": "/dev/null",
        "nul": f"{place}\0.db",
        "long": f"{tmp_path}/{'x' * 300}",
        "below": f"{place}/deeper",
    }
    if request.param == "folder":
        place.mkdir()
    elif request.param == "fifo":
        os.mkfifo(place)
    elif request.param in ("foreign", "below"):
        place.write_bytes(b"not a database, nor an export " * 300)
    elif request.param == "loop":
        place.symlink_to(place)
    elif request.param == "socket":
        os.mknod(place, 0o140600)
    return request.param, paths.get(request.param, str(place))


@pytest.fixture(autouse=True)
def _bounds(monkeypatch):
    monkeypatch.setattr(limits, "PIPE_SECONDS", 0.2)
    monkeypatch.setattr(limits, "INPUT_BYTES_MAX", 10_000_000)


@pytest.fixture
async def memory():
    async with Memory.open("memory:") as opened:
        await opened.append("c", Message.user("Hello"))
        yield opened


@pytest.mark.parametrize("mode", ["rw", "ro"])
async def test_a_store(odd, mode):
    _, path = odd
    with pytest.raises(FirnlineError):
        async with Memory(SqliteStore(path, read_only=mode == "ro")):
            pytest.fail("it was opened")


async def test_an_import(odd, memory):
    kind, path = odd
    for read in (memory.import_, memory.import_file):
        if (kind, read) == ("folder", memory.import_file):
            continue
        with pytest.raises(FirnlineError) as failure:
            await read(path)
        assert kind == "nul" or path[:50] in str(failure.value) or kind in ("null", "foreign")
    async with Client("http://127.0.0.1:9", retries=0) as client:
        for send in (client.import_, client.import_file):
            with pytest.raises(FirnlineError):
                await send(path)


async def test_an_export(odd, memory):
    kind, path = odd
    for as_format in ("jsonl", "openai", "markdown"):
        if kind in ("null", "zero", "foreign") or (kind, as_format) == ("folder", "markdown"):
            continue  # they are written
        with pytest.raises(FirnlineError):
            await memory.export(path, as_format=as_format)


async def test_a_backup(odd, tmp_path):
    _, path = odd
    async with Memory.open(f"sqlite:///{tmp_path}/own.db") as memory:
        with pytest.raises(FirnlineError):
            await memory.backup(path)


def test_settings_and_datasets(odd):
    _, path = odd
    with pytest.raises(InputError):
        load_settings(path)
    with pytest.raises(InputError):
        load_dataset("locomo", path)


def test_commands(odd, tmp_path, capfd):
    kind, path = odd
    own = ["--store", f"sqlite:///{tmp_path}/own.db"]
    assert main(["append", "c", "Hello", *own]) == 0
    calls = [["conversations", "--store", f"sqlite:///{path}"], ["import", path, *own]]
    calls += [["backup", path, *own], ["serve", "--config", path]]
    calls += [] if kind in ("null", "zero", "foreign") else [["export", path, *own]]
    for call in calls:
        if (kind, call[0]) == ("folder", "import"):
            continue
        capfd.readouterr()
        try:
            code = main(call)
        except SystemExit as stop:
            code = stop.code
        assert code in (2, 5, 6), call
        told = capfd.readouterr().err
        assert told.startswith(("firnline: ", "usage: "))
        assert "Traceback" not in told


async def test_paths_of_a_wrong_type(memory):
    for wrong in (5, None, b"bytes", ["a"]):
        with pytest.raises(InputError, match="expected a path"):
            await memory.import_(wrong)


def test_a_pipe_is_imported_and_an_endless_one_ends(tmp_path, monkeypatch, capfd):
    own = ["--store", f"sqlite:///{tmp_path}/own.db"]
    pipe, lines = tmp_path / "pipe", '{"messages": [{"role": "user", "content": "Hi"}]}\n'
    os.mkfifo(pipe)
    for text, code in ((lines, 0), ("x" * 20_000_000, 2)):
        writer = threading.Thread(target=_write, args=(pipe, text))
        writer.start()
        assert main(["import", str(pipe), *own]) == code, capfd.readouterr().err
        writer.join(30)
    monkeypatch.setattr(sys, "stdin", open("/dev/zero", encoding="latin-1"))  # noqa: PTH123, SIM115
    assert main(["import", "-", *own]) == 2
    sys.stdin.close()
    assert "device" in capfd.readouterr().err


def _write(pipe, text):
    with suppress(BrokenPipeError):  # it was too much for the reader
        pipe.write_text(text)


ROOTS = (
    "import apsw, sys; db = apsw.Connection(sys.argv[1]);"
    "rows = db.execute('SELECT rootpage FROM sqlite_schema WHERE rootpage > 1').fetchall();"
    "print(db.execute('PRAGMA page_size').get, *(row[0] for row in rows))"
)


async def test_damage_in_any_table_is_a_typed_error_from_the_moment_of_opening(tmp_path):
    path, copy = tmp_path / "own.db", tmp_path / "copy.db"
    async with Memory.open(f"sqlite:///{path}") as memory:
        await memory.append("c", Message.user("Hello"))
    command = [sys.executable, "-c", ROOTS, str(path)]
    told = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    size, *roots = map(int, told.split())
    raised = set()
    for root in roots:
        data = bytearray(path.read_bytes())
        data[(root - 1) * size : root * size] = b"\xff" * size
        copy.write_bytes(data)
        try:
            async with Memory.open(f"sqlite:///{copy}") as memory:
                await memory.read("c")
        except FirnlineError as error:
            raised.add(type(error))
    assert StoreCorrupt in raised


def test_the_folder_of_a_replaced_file_is_synced(tmp_path, monkeypatch):
    synced, real = [], os.fsync

    def fsync(number):
        synced.append((os.readlink(f"/proc/self/fd/{number}"), sorted(os.listdir(tmp_path))))  # noqa: PTH115, PTH208
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_write(tmp_path / "export.jsonl") as half_done:
        half_done.write_text(json.dumps({}))
    (file, before), (folder, after) = synced
    assert file.endswith(".partial")
    assert before != ["export.jsonl"]
    assert (folder, after) == (str(tmp_path), ["export.jsonl"])
