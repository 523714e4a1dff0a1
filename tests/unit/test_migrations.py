"""The schema: migrations add up to it, newer ones are rejected, foreign files are not changed."""

import hashlib
import re
import threading
from contextlib import closing
from importlib import resources

import apsw
import pytest

from firnline.errors import StoreError, StoreReadOnly, StoreTooNew
from firnline.log.entry import Card, genesis
from firnline.store import SqliteStore
from firnline.store.sqlite import migrate
from firnline.store.sqlite.connection import PRAGMAS, DatabaseFile, connect
from firnline.testing.drafts import KEY, drafts

pytestmark = pytest.mark.promise("typed-failure")


def _schema(connection):
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema")
    return sorted((kind, name, _in_one_line(sql)) for kind, name, sql in rows)


def _in_one_line(sql):
    """ALTER TABLE leaves line breaks where a hand would not."""
    return re.sub(r" ([,)])", r"\1", " ".join(sql.split())) if sql else sql


def test_all_migrations_together_are_the_schema(tmp_path):
    stepwise, at_once = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    migrate.migrate(stepwise, migrate.shipped_migrations())
    schema = resources.files("firnline").joinpath("store/sqlite/schema.sql").read_text()
    at_once.execute(schema)
    assert _schema(stepwise) == _schema(at_once)


async def test_a_store_of_an_older_firnline_is_brought_up_to_date(tmp_path):
    """With all that is in it; what came later is empty, and can be used."""
    path = tmp_path / "x.db"
    older = {number: sql for number, sql in migrate.shipped_migrations().items() if number <= 2}
    with closing(connect(DatabaseFile(path), writer=True)) as connection:
        assert migrate.migrate(connection, older) == 2
        start = genesis(KEY)
        connection.execute(
            "INSERT INTO conversation (tenant, name, genesis, hash, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, 0, 0)",
            (*KEY, start, start),
        )
    reader = SqliteStore(path, read_only=True)
    await reader.open()
    assert not [finding for finding in await reader.check() if finding.state == "broken"]
    await reader.close()
    store = SqliteStore(path)
    await store.open()
    card = Card(tenant=KEY.tenant, kind="draft", name="a", conversation=KEY.conversation)
    assert await store.cards("draft") == []
    assert await store.put_cards([card]) == 1
    assert [head.conversation for head in await store.conversations(KEY.tenant)] == ["ticket-42"]
    await store.close()
    with closing(apsw.Connection(str(path))) as look:
        assert look.execute("PRAGMA user_version").get == max(migrate.shipped_migrations())


async def test_words_of_an_older_store_are_indexed_again(tmp_path):
    """Its index has other terms: a reader reads the log instead, a writer rebuilds the index."""
    path = tmp_path / "x.db"
    store = SqliteStore(path)
    await store.open()
    await store.append(KEY, drafts(["organized files", "find_order", "東京都", "no"]))
    await store.close()
    older = migrate.shipped_migrations()[2].partition("CREATE VIRTUAL TABLE search")[2]
    with closing(connect(DatabaseFile(path), writer=True)) as connection:
        connection.execute(
            "DROP TABLE search; CREATE VIRTUAL TABLE search" + older.partition("ALTER TABLE")[0]
        )
        connection.execute("INSERT INTO search (rowid, terms) SELECT id, 'organized' FROM entry")
        connection.execute(
            "UPDATE conversation SET indexed = next_seq; DROP INDEX conversation_person;"
            " DROP INDEX conversation_unread; PRAGMA legacy_alter_table = 1;"
            " ALTER TABLE conversation DROP COLUMN unread;"
            " ALTER TABLE conversation DROP COLUMN mark;"
            " ALTER TABLE conversation DROP COLUMN person; DROP TABLE known_card;"
            " PRAGMA user_version = 6"
        )
    for read_only in (True, False, True):
        store = SqliteStore(path, read_only=read_only)
        await store.open()
        for query, seq in (("organize", 0), ("orders", 1), ("find_order", 1), ("東京", 2)):
            assert [hit.seq for hit in await store.search(KEY.tenant, query)] == [seq]
        await store.close()


def test_each_is_applied_once_and_in_one_transaction(tmp_path):
    path = tmp_path / "x.db"
    connection = connect(DatabaseFile(path), writer=True)
    first = {1: "CREATE TABLE a (x); INSERT INTO a VALUES (1)"}
    second = {**first, 2: "INSERT INTO a VALUES (2); CREATE TABLE b (x)"}
    broken = {**second, 3: "INSERT INTO a VALUES (3); CREATE TABLE b (x)"}
    for migrations, expected in ((first, 1), (first, 1), (second, 2)):
        assert migrate.migrate(connection, migrations) == expected
    with pytest.raises(apsw.SQLError):
        migrate.migrate(connection, broken)
    assert connection.execute("PRAGMA user_version").get == 2
    assert connection.execute("SELECT sum(x) FROM a").get == 3
    connection.close()


def test_several_processes_may_open_a_new_file_at_once(tmp_path):
    failures = []

    def open_it():
        try:
            connection = connect(DatabaseFile(tmp_path / "x.db"), writer=True)
            migrate.migrate(connection, migrate.shipped_migrations())
            connection.close()
        except apsw.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


async def test_a_newer_schema_is_rejected_and_not_touched(tmp_path):
    path = tmp_path / "x.db"
    store = SqliteStore(path)
    await store.open()
    await store.close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 99; PRAGMA journal_mode = DELETE")
    connection.close()
    before = hashlib.sha256(path.read_bytes()).digest()
    for read_only in (True, False):
        with pytest.raises(StoreTooNew, match="newer"):
            await SqliteStore(path, read_only=read_only).open()
    after = apsw.Connection(str(path))
    assert after.execute("PRAGMA user_version").get == 99
    after.close()
    assert hashlib.sha256(path.read_bytes()).digest() == before


async def test_a_foreign_database_is_rejected_and_not_changed(tmp_path):
    path = tmp_path / "x.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not one of Firnline's"):
        await SqliteStore(path).open()
    assert path.read_bytes() == before


def test_migrations_must_be_numbered_without_holes(tmp_path):
    (tmp_path / "0001_a.sql").write_text("")
    (tmp_path / "0003_c.sql").write_text("")
    (tmp_path / "README").write_text("")
    with pytest.raises(StoreError, match="gaps"):
        migrate.load(tmp_path)


@pytest.mark.parametrize("writer", [True, False])
def test_every_connection_has_the_settings_our_promises_rest_on(tmp_path, writer):
    connect(DatabaseFile(tmp_path / "x.db"), writer=True).close()
    connection = connect(DatabaseFile(tmp_path / "x.db"), writer=writer)
    found = {name: str(connection.execute(f"PRAGMA {name}").get) for name in PRAGMAS}
    assert found == PRAGMAS
    assert connection.execute("PRAGMA journal_mode").get == "wal"
    assert connection.execute("PRAGMA synchronous").get == 2
    assert connection.execute("PRAGMA wal_autocheckpoint").get == (2000 if writer else 0)
    connection.close()


def _crashed_while_created(path):
    """A file and its journal as a kill leaves them before the file is in WAL mode."""
    original = path.with_name("original.db")
    creator = apsw.Connection(str(original))
    creator.execute("PRAGMA application_id = 1181315694; PRAGMA cache_size = 1")
    creator.execute("BEGIN; CREATE TABLE half (done); INSERT INTO half VALUES (zeroblob(100000))")
    for ending in ("", "-journal"):
        copy = path.with_name(path.name + ending)
        copy.write_bytes(original.with_name(original.name + ending).read_bytes())
    creator.close()


@pytest.mark.promise("durable")
async def test_a_file_whose_creator_was_killed_is_opened(tmp_path):
    path = tmp_path / "x.db"
    _crashed_while_created(path)
    with pytest.raises(StoreReadOnly, match="open it once for writing"):
        await SqliteStore(path, read_only=True).open()
    store = SqliteStore(path)
    await store.open()
    await store.close()
    with closing(apsw.Connection(str(path))) as look:
        assert "half" not in {name for (name,) in look.execute("SELECT name FROM sqlite_schema")}
