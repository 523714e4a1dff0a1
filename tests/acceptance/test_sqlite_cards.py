"""SQLite: pins, digests and pending work: cost, crashes, damage, several processes."""

import asyncio
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import apsw
import pytest

from firnline.errors import ConflictError, StoreCorrupt, StoreError
from firnline.log.entry import Digest, Key, Lease
from firnline.store import SqliteStore
from firnline.store.digests import checksum_of, encode_digest
from firnline.store.sqlite import leases, log, pending
from firnline.store.sqlite.checksums import checksum_vfs
from firnline.store.sqlite.connection import watch_rows
from firnline.testing import draft, drafts
from support.damage import damage_rows

KEY = Key("default", "c")
OTHER = Key("default", "d")
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
async def store(path):
    store = SqliteStore(path)
    await store.open()
    yield store
    await store.close()


# -- cost -------------------------------------------------------------------------------------


class Steps:
    """Counts the steps of SQLite's machine: the same in every run, whatever the disk."""

    def __init__(self, path):
        self._connection = apsw.Connection(str(path))
        watch_rows(self._connection)
        self._count = 0
        self._connection.set_progress_handler(self._step, 1)

    def _step(self):
        self._count += 1
        return False

    def of(self, work):
        self._count = 0
        work(self._connection)
        return self._count

    def close(self):
        self._connection.close()


async def _digested(path, count):
    """A conversation with `count` digests: mostly failed ones after the newest completed one."""
    store = SqliteStore(path)
    await store.open()
    await store.append(KEY, drafts("ab"))
    made = [
        Digest(
            version=version,
            first_seq=0,
            last_seq=1,
            status="completed" if version <= count // 2 else "failed",
            text="x",
        )
        for version in range(1, count + 1)
    ]
    await store.put_digests(KEY, made)
    lease = await store.lease(KEY, "w", 60)
    await store.close()
    return lease


def _digest_once(lease: Lease, base: int):
    def work(connection):
        wanted = Digest(version=0, base=base, first_seq=0, last_seq=1)
        leases.begin(connection, lease, wanted, NOW)
        begun = leases.begin(connection, lease, wanted, NOW)
        leases.finish(connection, lease, replace(begun, status="completed", text="y"))
        leases.undo(connection, lease, begun.version)
        found = log.find(connection, KEY)
        assert leases.newest_digest(connection, found).version == base
        assert leases.digests(connection, found, [base, begun.version])[1].status == "undone"

    return work


async def test_digesting_costs_the_same_however_many_digests_there_are(tmp_path):
    costs = []
    for count in (10, 3_000):
        path = tmp_path / f"{count}.db"
        lease = await _digested(path, count)
        with closing(Steps(path)) as steps:
            costs.append(steps.of(_digest_once(lease, count // 2)))
    assert costs[0] == costs[1]


async def test_what_is_due_is_found_however_many_conversations_there_are(tmp_path):
    costs = []
    for count in (3, 300):
        store = SqliteStore(tmp_path / f"{count}.db", full_sync=False)
        await store.open()
        keys = [Key("t", f"{i}") for i in range(count)]
        await asyncio.gather(*(store.append(key, [draft("x")]) for key in keys))
        await store.mark_pending(keys[1], NOW)
        await store.mark_pending(keys[2], NOW + timedelta(days=1))
        await store.close()
        with closing(Steps(tmp_path / f"{count}.db")) as steps:
            costs.append(steps.of(lambda con: pending.due(con, NOW, 10, None)))
    assert costs[0] == costs[1]


async def test_an_append_without_pins_runs_no_statement_for_them(store):
    seen = []

    def trace(_, sql, __):
        seen.append(sql.split("(")[0])
        return True

    await store.append(KEY, [draft("first")])
    await store._write(lambda con: con.set_exec_trace(trace), alone=True)
    await store.append(KEY, [draft("second")])
    plain = list(seen)
    seen.clear()
    await store.append(KEY, [draft("third", pinned=True)])
    await store._write(lambda con: con.set_exec_trace(None), alone=True)
    assert not any("pin" in sql for sql in plain)
    assert [sql for sql in seen if "pin" in sql] == ["INSERT INTO pin VALUES "]
    assert len(seen) == len(plain) + 1


async def test_owing_and_settling_again_write_nothing(store, path):
    await store.append(KEY, [draft("x")])
    await store.search("default", "x")  # so that nothing is written in quiet moments
    await store.mark_pending(KEY, NOW)
    wal = path.with_name(path.name + "-wal")
    before = wal.stat().st_size
    await store.mark_pending(KEY, NOW + timedelta(days=1))
    await store.mark_pending(KEY, NOW, postpone=True)
    assert not await store.clear_pending(KEY, -1)
    assert wal.stat().st_size == before
    assert await store.clear_pending(KEY, 0)
    before = wal.stat().st_size
    assert await store.clear_pending(KEY, 0)
    assert wal.stat().st_size == before


# -- crashes and damage -----------------------------------------------------------------------


@pytest.mark.promise("durable")
async def test_entries_and_their_pins_are_stored_together_or_not_at_all(store, path):
    await store.append(KEY, [draft("first")])
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(
            "CREATE TRIGGER t BEFORE INSERT ON pin BEGIN SELECT raise(ABORT, 'no'); END"
        )
    tries = [
        store.append(KEY, [draft("refused", pinned=True)]),
        *(store.append(KEY, [draft(f"taken {i}")]) for i in range(5)),
    ]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert isinstance(results[0], StoreError)
    texts = [entry.message.text for entry in await store.read(KEY)]
    assert sorted(texts) == ["first", *(f"taken {i}" for i in range(5))]
    assert await store.pinned(KEY) == []


@pytest.mark.promise("typed-failure")
@pytest.mark.parametrize("seq", [3, -1, 1 << 32, 1 << 60])
async def test_a_pin_on_a_missing_entry_is_damage(store, path, seq):
    await store.append(KEY, [draft(text, pinned=text == "b") for text in "abc"])
    await store.append(OTHER, drafts("abcdef"))
    damage_rows(path, f"INSERT INTO pin VALUES (1, {seq})")
    with pytest.raises(StoreCorrupt):
        await store.pinned(KEY)
    assert len(await store.read(KEY)) == 3
    assert await store.pinned(OTHER) == []
    assert {finding.state for finding in await store.check()} == {"ok"}


@pytest.mark.promise("typed-failure")
async def test_a_pinned_entry_that_is_gone_is_damage(store, path):
    await store.append(KEY, [draft(text, pinned=text == "b") for text in "abc"])
    damage_rows(path, "DELETE FROM entry WHERE id = (1 << 32) + 1")
    with pytest.raises(StoreCorrupt):
        await store.pinned(KEY)


def _flip(path, change, *values):
    """Change the second digest of the first conversation as a flipped bit would.

    No rule of the table prevents it, and the indexes do not hear of it.
    """
    second = "WHERE id = (1 << 32) + 2"
    loose = "CREATE TABLE digest (id INTEGER PRIMARY KEY, status, fence, checksum, body)"
    with closing(apsw.Connection(str(path), vfs=checksum_vfs())) as connection:
        schema = list(connection.execute("SELECT * FROM sqlite_schema WHERE tbl_name = 'digest'"))
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "DELETE FROM sqlite_schema WHERE tbl_name = 'digest' AND type IN ('index', 'trigger')"
        )
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'digest'", (loose,))
        connection.execute("PRAGMA writable_schema = RESET")
        connection.execute(f"UPDATE digest SET {change} {second}", values)
        assert connection.changes() == 1
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_schema WHERE tbl_name = 'digest'")
        connection.executemany("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", schema)


async def _three_digests(store):
    """Two completed digests and one that was undone: the second is in force."""
    fields = {"first_seq": 0, "last_seq": 1, "text": "x"}
    statuses = enumerate(("completed", "completed", "undone"), 1)
    made = [Digest(version=version, status=status, **fields) for version, status in statuses]
    for key in (KEY, OTHER):
        await store.append(key, drafts("ab"))
        await store.put_digests(key, made)
    assert await store.newest_digest(KEY) == made[1]
    return made


@pytest.mark.promise("typed-failure")
@pytest.mark.parametrize(
    "change",
    [
        "status = 'completee'",
        "id = id + 4",
        "body = replace(body, 'x', 'y')",
        "checksum = x'00'",
        *(
            f"{column} = {value}"
            for column in ("status", "body", "checksum")
            for value in ("NULL", "7", "CAST(x'ff' AS TEXT)")
        ),
    ],
)
async def test_a_damaged_digest_is_found_and_can_be_set_aside(store, path, change):
    made = await _three_digests(store)
    await store.close()
    _flip(path, change)
    await store.open()
    with pytest.raises(StoreCorrupt):
        await store.digests(KEY)
    with suppress(StoreCorrupt):  # the index and the body know the status, too
        assert await store.newest_digest(KEY) == made[1]
        assert change.startswith("status")
    lease = await store.lease(KEY, "w", 60)
    assert await store.fail_damaged(lease) == 1
    assert await store.fail_damaged(lease) == 0
    now = await store.digests(KEY)
    assert sorted(item.status for item in now) == ["completed", "failed", "undone"]
    assert await store.newest_digest(KEY) == now[0] == made[0]
    begun = await store.begin_digest(lease, Digest(version=0, base=1, first_seq=0, last_seq=1))
    assert begun.version == now[-1].version + 1
    assert await store.digests(OTHER) == made
    assert {finding.state for finding in await store.check(thorough=True)} == {"ok"}


@pytest.mark.promise("typed-failure")
async def test_an_index_that_names_a_digest_that_failed_is_damage(store, path):
    made = await _three_digests(store)
    body = encode_digest(replace(made[1], status="failed"))
    await store.close()
    _flip(path, "status = 'failed', body = ?, checksum = ?", body, checksum_of(body))
    await store.open()
    with pytest.raises(StoreCorrupt):
        await store.newest_digest(KEY)
    assert await store.fail_damaged(await store.lease(KEY, "w", 60)) == 0
    assert await store.newest_digest(KEY) == made[0]


@pytest.mark.promise("typed-failure")
async def test_a_damaged_strategy_is_damage(store, path):
    await store.describe(KEY, strategy={"name": "slide"})
    damage_rows(path, "UPDATE conversation SET strategy = '{'")
    with pytest.raises(StoreCorrupt):
        await store.head(KEY)


# -- several openers --------------------------------------------------------------------------


@pytest.mark.promise("backup-whole")
async def test_a_backup_includes_pins_strategy_and_pending_work(store, tmp_path):
    await store.append(KEY, [draft(text, pinned=text in "bd") for text in "abcd"])
    await store.archive(KEY, 0, 2)
    await store.describe(KEY, strategy={"name": "slide"})
    await store.mark_pending(KEY, NOW)
    await store.backup(tmp_path / "copy.db")
    copy = SqliteStore(tmp_path / "copy.db", read_only=True)
    await copy.open()
    assert await copy.pinned(KEY) == await store.pinned(KEY)
    assert [entry.seq for entry in await copy.pinned(KEY)] == [1, 3]
    assert await copy.head(KEY) == await store.head(KEY)
    assert await copy.due(NOW) == [KEY]
    assert await copy.newest_digest(KEY) is None
    await copy.close()


@pytest.mark.promise("one-digester")
async def test_two_openers_see_each_others_pins_pending_work_and_undo(store, path):
    other = SqliteStore(path)
    await other.open()
    await store.append(KEY, drafts("ab"))
    await other.append(KEY, [draft("c", pinned=True)])
    await store.mark_pending(KEY, NOW)
    await store.pin(KEY, 0)
    assert await other.due(NOW) == [KEY]
    assert [entry.seq for entry in await other.pinned(KEY)] == [0, 2]
    await store.append(KEY, drafts("d"))
    assert not await other.clear_pending(KEY, 2)
    assert await other.clear_pending(KEY, 3)
    assert await store.due(NOW) == []
    await store.put_digests(
        KEY, [Digest(version=1, first_seq=0, last_seq=1, status="completed", text="x")]
    )
    lease = await store.lease(KEY, "w", 60)
    tries = [which.undo_digest(lease, 1) for which in (store, other) * 4]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(result, ConflictError) for result in results) == 7
    await other.erase(KEY)
    assert await store.pinned(KEY) == []
    await other.close()
