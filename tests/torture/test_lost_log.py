"""A write-ahead log that was cut, damaged or deleted: no acknowledged message vanishes silently."""

import shutil
from contextlib import suppress

import pytest
from torture_kit import assert_healthy, memory_at, said

from firnline.errors import StoreCorrupt
from firnline.log.entry import Card
from firnline.store.sqlite.commit_record import CommitRecord, log_path, read_record, record_path

FRAME = 24 + 4096
TEXTS = [f"message {i}" for i in range(8)]
CHANGES = {
    "append": lambda memory: memory.append("a", said(["newest"])),
    "append with a key": lambda memory: memory.append("a", said(["newest"]), idempotency_key="k"),
    "new conversation": lambda memory: memory.append("b", said(["newest"])),
    "card": lambda memory: memory.store.put_cards(
        [Card(tenant="", kind="key", name="k", body=b"{}")]
    ),
    "pin": lambda memory: memory.pin("a", 1),
    "project": lambda memory: memory.describe("a", project="névé"),
    "fact": lambda memory: memory.remember("a", {"important_facts": ["Ida leads"]}),
    "archive": lambda memory: memory.archive("a", keep=2),
}


@pytest.fixture
async def crashed(database, tmp_path):
    """Copies the files of an open store, as a SIGKILL leaves them; returns the copy's path."""
    async with memory_at(database) as memory:
        for text in TEXTS[:2]:
            await memory.append("a", said([text]))
        await memory.store._write(
            lambda con: con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall(), alone=True
        )
        for text in TEXTS[2:]:
            await memory.append("a", said([text]))
        await memory.recall(None, "message")  # so that nothing is written in quiet moments

        def copy(name="crashed"):
            place = tmp_path / name / "store.db"
            place.parent.mkdir()
            for file in database.parent.iterdir():
                if not file.name.endswith("-shm"):
                    shutil.copy(file, place.with_name(file.name.replace(database.name, place.name)))
            return place

        copy.memory = memory
        yield copy


async def texts(path, **options):
    async with memory_at(path, **options) as memory:
        return [entry.message.text for entry in await memory.read("a")]


def contents(folder):
    """What is in the files, but the index of the log, which readers write, too."""
    found = {file.name: file.read_bytes() for file in folder.iterdir()}
    return {name: data for name, data in found.items() if data and not name.endswith("-shm")}


async def assert_noticed(path, match, fewer=True):
    """Nothing is written; what is there can be read; the owner can go on without the rest."""
    before = contents(path.parent)
    with pytest.raises(StoreCorrupt, match=match):
        await texts(path)
    async with memory_at(path, read_only=True) as memory:
        found = {finding.what: finding for finding in await memory.check()}
        assert found["commits"].state == "broken"
        assert (await memory.head("a") is None) or (await memory.verify("a")).ok
    assert contents(path.parent) == before
    record_path(path).write_bytes(b"")
    left = await texts(path)
    assert left == TEXTS[: len(left)]
    assert len(left) < len(TEXTS) or not fewer
    async with memory_at(path) as memory:
        await assert_healthy(memory)


@pytest.mark.promise("durable")
async def test_a_killed_store_opens_with_everything(crashed):
    path = crashed()
    assert read_record(path) is not None
    assert await texts(path) == TEXTS
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.promise("durable")
async def test_a_log_that_was_cut_is_noticed(crashed):
    path = crashed()
    with log_path(path).open("r+b") as log:
        log.truncate(32 + FRAME * 6)
    await assert_noticed(
        path, r"was deleted, cut off or damaged.*make store\.db-head an empty file"
    )


@pytest.mark.promise("durable")
async def test_a_log_with_a_flipped_bit_is_noticed(crashed, rng):
    path = crashed()
    log = bytearray(log_path(path).read_bytes())
    at = rng.randrange(32, len(log) * 3 // 4)
    log[at] ^= 1 << rng.randrange(8)
    log_path(path).write_bytes(log)
    await assert_noticed(path, "was deleted, cut off or damaged")


@pytest.mark.promise("durable")
@pytest.mark.parametrize("record", [None, b"not a record"])
async def test_a_flipped_bit_is_noticed_without_a_record(crashed, rng, record):
    """Wherever it is before the last transaction, and never in what was not acknowledged."""
    path = crashed()
    before = log_path(path).read_bytes()
    await crashed.memory.append("a", said(["newest"]))
    log = log_path(crashed("later")).read_bytes()
    record_path(path).unlink()
    if record is not None:
        record_path(path).write_bytes(record)
    last = len(before) - FRAME  # frames of one transaction can be unsynced together
    for at in [*rng.sample(range(32), 3), *(rng.randrange(32, last) for _ in range(12))]:
        damaged = bytearray(log)
        damaged[at] ^= 1 << rng.randrange(8)
        copy = path.parent.with_name(f"flip at {at}") / path.name
        shutil.copytree(path.parent, copy.parent)
        log_path(copy).write_bytes(damaged)
        await assert_noticed(copy, "was deleted, cut off or damaged", fewer=False)
    for end in rng.sample(range(len(before), len(log)), 6):
        torn = bytearray(log)
        torn[end : end + 512] = bytes(len(torn[end : end + 512]))
        for number, tail in enumerate((log[:end], torn)):
            copy = path.parent.with_name(f"torn at {end} {number}") / path.name
            shutil.copytree(path.parent, copy.parent)
            log_path(copy).write_bytes(tail)
            assert (await texts(copy))[: len(TEXTS)] == TEXTS


@pytest.mark.promise("durable")
async def test_a_deleted_log_is_noticed(crashed):
    path = crashed()
    log_path(path).unlink()
    await assert_noticed(path, "was deleted, cut off or damaged")


@pytest.mark.promise("durable")
async def test_a_log_deleted_before_anything_was_in_the_file_is_noticed(database, tmp_path):
    copy = tmp_path / "store.db"
    async with memory_at(database) as memory:
        await memory.append("a", said(TEXTS))
        shutil.copy(database, copy)
        shutil.copy(record_path(database), record_path(copy))
    with pytest.raises(StoreCorrupt, match="was deleted, cut off or damaged"):
        await texts(copy)


@pytest.mark.promise("durable")
async def test_a_file_that_was_moved_without_its_log_is_noticed(crashed):
    path = crashed()
    path.rename(path.with_name("moved.db"))
    with pytest.raises(StoreCorrupt, match=r"store\.db-wal and store\.db-head.*put the file back"):
        await texts(path)
    assert not path.exists()
    path.with_name("moved.db").rename(path)
    assert await texts(path) == TEXTS


@pytest.mark.promise("durable")
async def test_a_file_that_was_replaced_is_noticed(crashed):
    """SQLite would play the old log back into the other database."""
    copy = crashed("copies").with_name("backup.db")
    await crashed.memory.backup(copy)
    path = crashed()
    shutil.copy(copy, path)
    log_path(path).write_bytes(log_path(path).read_bytes()[: 32 + FRAME * 3])
    with pytest.raises(StoreCorrupt, match=r"not the one that store\.db-wal and store\.db-head"):
        await texts(path)
    log_path(path).unlink()
    with pytest.raises(StoreCorrupt, match="not the one"):
        await texts(path)
    record_path(path).unlink()
    assert await texts(path) == TEXTS


@pytest.mark.promise("durable")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_every_lost_commit_is_noticed(crashed, change):
    """An append is told by its conversation, anything else by a count."""
    before = crashed("before")
    await change(crashed.memory)
    path = crashed()
    shutil.copy(log_path(before), log_path(path))
    await assert_noticed(path, "was deleted, cut off or damaged", fewer=False)


@pytest.mark.promise("durable")
async def test_an_erased_conversation_is_not_missed_and_not_recorded(crashed):
    await crashed.memory.append("b", said(["another"]))
    stale = crashed("stale")
    await crashed.memory.erase("b")
    path = crashed()
    record = read_record(path)
    assert (record.conversation, record.next_seq) == (0, 0)
    shutil.copy(record_path(stale), record_path(path))  # of a process that was slow to write it
    assert await texts(path) == TEXTS


@pytest.mark.promise("durable")
async def test_an_unfinished_commit_is_no_loss(crashed):
    """What was never acknowledged may be cut off anywhere, or half written."""
    before = crashed("before")
    await crashed.memory.append("a", said(["never acknowledged"]))
    path = crashed()
    shutil.copy(record_path(before), record_path(path))
    start, log = log_path(before).stat().st_size, log_path(path).read_bytes()
    for end in (start, start + 100, len(log) - 1):
        log_path(path).write_bytes(log[:end])
        for file in (path.with_name(path.name + "-shm"),):
            file.unlink(missing_ok=True)
        copy = path.parent.with_name(f"cut {end}") / path.name
        shutil.copytree(path.parent, copy.parent)
        assert await texts(copy) == TEXTS


@pytest.mark.promise("durable")
async def test_a_half_written_or_missing_record_is_none(crashed):
    path = crashed()
    record = record_path(path).read_bytes()
    for data in (b"", record[:10], record[:-1] + b"x", b"x" * len(record)):
        assert CommitRecord.decode(data) is None
    record_path(path).unlink()
    async with memory_at(path, read_only=True) as memory:
        found = {one.what: one.state for one in await memory.check()}
        assert found["commits"] == "warning", "whether the log is whole is not known"
    assert await texts(path) == TEXTS


@pytest.mark.promise("durable")
async def test_after_a_clean_close_the_file_alone_is_the_store(database, tmp_path):
    """It may be copied, replaced by an older copy, or deleted."""
    async with memory_at(database) as memory:
        await memory.append("a", said(TEXTS[:4]))
    assert [file.name for file in database.parent.iterdir()] == [database.name]
    copy = shutil.copy(database, tmp_path / "copy.db")
    async with memory_at(database) as memory:
        await memory.append("a", said(TEXTS[4:]))
    shutil.copy(copy, database)
    assert await texts(database) == TEXTS[:4]
    database.unlink()
    assert await texts(database) == []


@pytest.mark.promise("durable")
async def test_a_loss_that_the_url_allows_is_a_warning(crashed, caplog):
    path = crashed()
    record = read_record(path)._replace(synced=False)
    record_path(path).write_bytes(record.encode())
    log_path(path).unlink()
    assert len(await texts(path)) < len(TEXTS)
    assert "was deleted, cut off or damaged" in caplog.text


@pytest.mark.promise("durable")
async def test_a_record_that_cannot_be_written_fails_no_append(database, caplog):
    record_path(database).mkdir()
    async with memory_at(database) as memory:
        for text in TEXTS:
            await memory.append("a", said([text]))
        assert await memory.head("a")
    assert caplog.text.count("cannot be written") == 1
    with suppress(OSError):
        record_path(database).rmdir()


MOVES = {
    "moved": [""],
    "moved with all": ["", "-wal", "-shm", "-head"],
    "its log deleted": ["-wal"],
    "its index deleted": ["-shm"],
}


@pytest.mark.parametrize("endings", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("replaced", [False, True])
async def test_nothing_is_acknowledged_in_files_that_are_no_longer_there(
    database, endings, replaced
):
    """They would be gone when the store is closed."""
    async with memory_at(database) as memory:
        await memory.append("a", said(TEXTS))
        files = [database.with_name(database.name + ending) for ending in endings]
        for file in files:
            file.rename(file.with_name(f"moved {file.name}"))
            if replaced:
                shutil.copy(file.with_name(f"moved {file.name}"), file)
        for call in (memory.append("a", said(["lost"])), memory.read("a"), memory.head("a")):
            with pytest.raises(StoreCorrupt, match=f"{files[0].name} was deleted, moved or repl"):
                await call
        assert "broken" in [finding.state for finding in await memory.check()]
        for file in files:
            file.with_name(f"moved {file.name}").replace(file)
        await memory.append("a", said(["newest"]))
    assert await texts(database) == [*TEXTS, "newest"]
