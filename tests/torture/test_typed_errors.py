"""Every failure is a typed error that says what is wrong, and nothing was changed."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime

import apsw
import pytest
from torture_kit import Ledger, Script, assert_healthy, memory_at, said, soon

from firnline.errors import (
    BadURL,
    FirnlineError,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
    UnknownConversation,
)
from firnline.log.entry import Key, Lease, Project
from firnline.memory import DEFAULT_TENANT

TEXTS = [f"message {i} " + "and more " * 20 for i in range(60)]


async def make(path):
    """A closed store with one conversation, half of it archived."""
    async with memory_at(path) as memory:
        await memory.append("a", said(TEXTS))
        await memory.archive("a", keep=30)


def digest(path):
    """The hash of a file, taken by another process."""
    script = (
        "import hashlib, pathlib, sys;"
        "print(hashlib.sha256(pathlib.Path(sys.argv[1]).read_bytes()).hexdigest())"
    )
    command = [sys.executable, "-c", script, str(path)]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


async def open_fails(path, error, **options):
    """Opening raises just this error and changes no byte; returns its message."""
    before = digest(path) if path.is_file() else None
    with pytest.raises(FirnlineError) as failure:
        async with memory_at(path, **options):
            pytest.fail("it was opened")
    assert type(failure.value) is error, repr(failure.value)
    assert before == (digest(path) if path.is_file() else None)
    return str(failure.value)


# -- what is at the path ----------------------------------------------------------------------


@pytest.mark.promise("typed-failure")
@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("content", [b"Dear diary,\n" * 1000, b"xyz", b"\0" * 8192])
async def test_a_file_that_is_not_a_database(database, content, read_only):
    database.write_bytes(content)
    await open_fails(database, StoreCorrupt, read_only=read_only)


@pytest.mark.promise("typed-failure")
async def test_an_empty_file_is_a_new_store(database):
    database.touch()
    async with memory_at(database) as memory:
        assert (await memory.append("a", said(["hello"]))).seq == 0


@pytest.mark.promise("typed-failure")
async def test_a_folder(database):
    database.mkdir()
    assert "is a folder" in await open_fails(database, BadURL)


@pytest.mark.promise("typed-failure")
async def test_a_missing_folder(tmp_path):
    with pytest.raises(StoreUnavailable, match="does not exist"):
        async with memory_at(tmp_path / "missing" / "torture.db"):
            pass
    assert not (tmp_path / "missing").exists()


@pytest.mark.promise("typed-failure")
async def test_reading_a_missing_file(database):
    await open_fails(database, StoreUnavailable, read_only=True)


@pytest.mark.promise("typed-failure")
@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("read_only", [False, True])
async def test_another_application(database, mode, read_only):
    connection = apsw.Connection(str(database))
    assert connection.execute(f"PRAGMA journal_mode = {mode}").get == mode
    connection.execute("CREATE TABLE song (title); INSERT INTO song VALUES ('Firn')")
    connection.close()
    assert "not one of Firnline's" in await open_fails(database, StoreError, read_only=read_only)


@pytest.mark.promise("typed-failure")
@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_newer_version(database, mode, read_only):
    await make(database)
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA user_version = 9999")
    assert connection.execute(f"PRAGMA journal_mode = {mode}").get == mode
    connection.close()
    await open_fails(database, StoreTooNew, read_only=read_only)


@pytest.mark.promise("typed-failure")
async def test_a_truncated_database(database, tmp_path):
    await make(database)
    whole = database.read_bytes()
    end = len(whole.rstrip(b"\0"))  # zeros that are missing are read as zeros: nothing is lost
    sizes = {2, 15, 16, 99, 100, 511, 512, 4095, *range(4096, end, 4096), end - 1}
    unnoticed = []
    for size in sorted(sizes):
        cut = tmp_path / f"{size}.db"
        cut.write_bytes(whole[:size])
        if not await finds_damage(cut):
            unnoticed.append(size)
    assert not unnoticed, f"of {len(whole)} bytes, so many are as good as all of them: {unnoticed}"


async def finds_damage(path):
    """Whether damage is reported, by opening, reading or verifying; no text is ever wrong."""
    try:
        async with memory_at(path) as memory:
            if any(finding.state == "broken" for finding in await memory.check()):
                return True
            noticed = not (await memory.verify("a")).ok
            texts = [entry.message.text for entry in await memory.read("a")]
            return noticed or texts != TEXTS
    except StoreCorrupt:
        return True
    except UnknownConversation:
        return False  # it was opened as a new store


@pytest.mark.promise("typed-failure")
async def test_read_only(database):
    await make(database)
    before = hashlib.sha256(database.read_bytes()).digest()
    key = Key(DEFAULT_TENANT, "a")
    async with memory_at(database, read_only=True) as memory:
        assert [entry.message.text for entry in await memory.read("a")] == TEXTS
        assert (await memory.verify("a")).ok
        assert await memory.recall("a", "message") is not None
        assert all(finding.state != "broken" for finding in await memory.check(thorough=True))
        for write in (
            memory.append("a", said(["no"])),
            memory.archive("a", keep=0),
            memory.restore("a"),
            memory.erase("a"),
            memory.describe("a", project="no"),
            memory.save_project(Project("no")),
            memory.store.lease(key, "me", 60),
            memory.store.rebuild_index(),
        ):
            with pytest.raises(StoreReadOnly):
                await soon(write)
    assert hashlib.sha256(database.read_bytes()).digest() == before


# -- other processes --------------------------------------------------------------------------


@pytest.mark.promise("typed-failure")
async def test_another_process_holds_the_database(database):
    async with memory_at(database, busy_seconds=0.3) as memory:
        await memory.append("a", said(["before"]))
        async with Script("holder.py", database) as holder:
            assert await holder.hear() == ["held"]
            with pytest.raises(StoreUnavailable):
                await soon(memory.append("a", said(["meanwhile"])), 10)
            assert len(await memory.read("a")) == 1, "readers do not wait"
            assert await holder.ask("release") == ["released"]
        assert (await memory.append("a", said(["after"]))).seq == 1
        assert (await memory.verify("a")).ok


@pytest.mark.promise("typed-failure")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
async def test_fork_after_open(database):
    async with Script("fork_after_open.py", database) as forker:
        assert await forker.hear() == ["child", ["StoreError"] * 3]
        assert await forker.hear() == ["child closes", "done"]
        assert await forker.hear() == ["parent", 0]
        assert await forker.hear() == ["parent", "done"]
        async with memory_at(database) as memory:
            await memory.append("a", said(["from another process"]))
        forker.tell("close")
        assert await soon(forker.process.wait()) == 0
    async with memory_at(database) as memory:
        texts = [entry.message.text for entry in await memory.read("a")]
        assert texts == ["before the fork", "after the fork", "from another process"]
        assert (await memory.verify("a")).ok
        await assert_healthy(memory)


# -- a full disk ------------------------------------------------------------------------------


@pytest.fixture
def tiny_disk(tmp_path):
    """A real file system of two megabytes."""
    disk = tmp_path / "tiny"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if (
        not shutil.which("mount")
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting is not possible here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.promise("typed-failure")
async def test_a_full_disk(tiny_disk):
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(b"x" * 1_000_000)
    path = tiny_disk / "torture.db"
    ledger = Ledger()
    async with memory_at(path) as memory:
        await memory.append("erased", said(["something"]))
        with pytest.raises(StoreFull):
            for number in range(1000):
                text = f"message {number} " + "x" * 10_000
                ledger.ack_all("a", await soon(memory.append("a", said([text]))))
        await ledger.check(memory)
        with pytest.raises(StoreError):
            await soon(memory.erase("erased"))
        ballast.unlink()
        ledger.ack_all("a", await soon(memory.append("a", said(["room again"]))))
        await ledger.check(memory)
    async with memory_at(path) as memory:
        await ledger.check(memory)
        await assert_healthy(memory)


# -- opening, closing, cancelling -------------------------------------------------------------


def everything(memory, path):
    """One call of everything a store can be asked for."""
    store, key, now = memory.store, Key(DEFAULT_TENANT, "a"), datetime.now(UTC)
    return {
        "append": memory.append("a", said(["x"])),
        "read": memory.read("a"),
        "newest": memory.newest("a", tokens=10),
        "dated": store.dated(key, now, now, 1),
        "tokens_between": memory.tokens_between("a", 0, 1),
        "records": store.records(key, 0, 1),
        "head": memory.head("a"),
        "conversations": memory.conversations(),
        "describe": memory.describe("a", project="p"),
        "projects": memory.projects(),
        "save_project": memory.save_project(Project("p")),
        "recall": memory.recall("a", "x"),
        "verify": memory.verify("a"),
        "check": memory.check(),
        "archive": memory.archive("a"),
        "restore": memory.restore("a"),
        "erase": memory.erase("a"),
        "pin": store.pin(key, 0),
        "pinned": store.pinned(key),
        "lease": store.lease(key, "me", 1),
        "undo_digest": store.undo_digest(Lease(key, "me", 1, now), 1),
        "fail_damaged": store.fail_damaged(Lease(key, "me", 1, now)),
        "digests": memory.digests("a"),
        "newest_digest": store.newest_digest(key),
        "mark_pending": store.mark_pending(key, now),
        "due": store.due(now),
        "clear_pending": store.clear_pending(key, 0),
        "put_digests": store.put_digests(key, []),
        "rebuild_index": store.rebuild_index(),
        "export": memory.export(path / "export.jsonl"),
        "backup": memory.backup(path / "backup.db"),
    }


async def all_fail(memory, path):
    for name, call in everything(memory, path).items():
        try:
            await soon(call)
        except StoreError:
            continue
        pytest.fail(f"{name} did something on a store that is not open")


@pytest.mark.promise("typed-failure")
async def test_before_it_is_opened(database, tmp_path):
    await make(database)
    await all_fail(memory_at(database), tmp_path)


@pytest.mark.promise("typed-failure")
async def test_after_it_is_closed(database, tmp_path):
    memory = memory_at(database)
    async with memory:
        await memory.append("a", said(["x"]))
    await memory.close()  # twice is fine
    await all_fail(memory, tmp_path)
    async with memory:
        assert len(await memory.read("a")) == 1


@pytest.mark.promise("typed-failure")
async def test_opening_twice(database):
    async with memory_at(database) as memory:
        with pytest.raises(StoreError):
            await memory.start()
        await memory.append("a", said(["still open"]))


@pytest.mark.promise("durable")
async def test_closing_with_appends_in_flight(database):
    """Each of them is stored or refused; none is left without an answer."""
    memory = memory_at(database)
    await memory.start()
    appends = [
        asyncio.create_task(memory.append("a", said([f"{i} 0/2", f"{i} 1/2"]))) for i in range(200)
    ]
    await asyncio.sleep(0)
    late = asyncio.create_task(append_until_refused(memory))
    await soon(memory.close())
    results = await soon(asyncio.gather(*appends, return_exceptions=True))
    await soon(late)
    ledger = Ledger()
    for result in results:
        if isinstance(result, BaseException):
            assert isinstance(result, StoreError), repr(result)
        else:
            ledger.ack_all("a", result)
    assert ledger.acked["a"]
    async with memory_at(database) as memory:
        await ledger.check(memory)


async def append_until_refused(memory):
    with suppress(StoreError):
        while True:
            await memory.append("late", said(["x"]))


@pytest.mark.promise("durable")
async def test_cancelled_appends(database, rng):
    """A caller that gives up early leaves a full batch or nothing, and affects no other."""
    ledger = Ledger()
    async with memory_at(database) as memory:
        for number in range(100):
            gives_up = asyncio.create_task(
                memory.append("a", said([f"c{number} {i}/3" for i in range(3)]))
            )
            stays = asyncio.create_task(memory.append("a", said([f"stays {number}"])))
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
            gives_up.cancel()
            ledger.ack_all("a", await soon(stays))
            with suppress(asyncio.CancelledError):
                ledger.ack_all("a", await soon(gives_up))
        await ledger.check(memory)


# -- errors that must not outlive themselves --------------------------------------------------


@pytest.mark.promise("durable")
async def test_a_kept_error_does_not_freeze_its_reader(database):
    """The application may keep an error; later reads must not be of that moment."""
    async with memory_at(database) as memory:
        await memory.append("damaged", said(["one", "two", "three"]))
        await memory.store.archive(Key(DEFAULT_TENANT, "damaged"), 0, 0)
        await memory.store._write(lambda con: con.execute("UPDATE segment SET body = x'00'").get)
        with pytest.raises(StoreCorrupt) as kept:
            await memory.read("damaged")
        for number in range(20):
            await memory.append("a", said([f"{number}"]))
            assert len(await memory.read("a")) == number + 1, f"stale after {kept.value}"


@pytest.mark.promise("durable")
@pytest.mark.parametrize("idle", [True, False])
@pytest.mark.parametrize(
    "damage",
    ["hash = CAST(x'ff' AS TEXT)", "body = x'ff'", "body = 'a text'", "tokens = 'x'", "hash = 1"],
)
async def test_the_writer_survives_what_it_cannot_index(database, monkeypatch, damage, idle):
    """Whether the quiet moment's work or a search meets damage: who writes next gets an answer."""
    async with memory_at(database) as memory:
        await memory.append("damaged", said(["one", "two"]))
    loosen(database)
    execute(database, f"UPDATE entry SET {damage}")
    monkeypatch.setattr("firnline.log.limits.INDEX_IDLE_SECONDS", 0.0001 if idle else 60)
    async with memory_at(database) as memory:
        if not idle:
            with suppress(StoreError):
                await soon(memory.recall("damaged", "one"), 10)
        for number in range(10):
            await asyncio.sleep(0.002)  # a quiet moment
            assert (await soon(memory.append("a", said(["hello"])), 10)).seq == number


def loosen(path):
    """Let the entry table take what only damage can put there."""
    connection = apsw.Connection(str(path))
    schema = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'entry'").get
    loose = schema.replace(" NOT NULL", "").replace("STRICT", "")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'entry'", (loose,))
    connection.close()


def execute(path, sql):
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    connection.close()
