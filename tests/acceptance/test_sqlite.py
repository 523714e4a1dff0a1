"""SQLite only: shared commits, views that lag behind, several openers."""

import asyncio
import time
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from firnline import Memory, Message, sync
from firnline.errors import ConflictError, InputError, StoreError, StoreUnavailable
from firnline.log.entry import Idempotency, Key
from firnline.store import SqliteStore
from firnline.store.sqlite import log
from firnline.testing import draft, drafts

KEY = Key("default", "c")


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def store(path):
    store = SqliteStore(path)
    await store.open()
    yield store
    await store.close()


def _sql(path, sql):
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    connection.close()


@pytest.mark.promise("durable")
async def test_an_append_that_fails_half_way_stores_nothing(store, path):
    """Rows are written late, with others; a caller that gets an error must not have been stored."""
    await store.append(KEY, [draft("first")])
    _sql(path, "CREATE TRIGGER t BEFORE INSERT ON idempotency BEGIN SELECT raise(ABORT, 'no'); END")
    tries = [
        store.append(KEY, [draft("refused")], idempotency=Idempotency("k", "f")),
        *(store.append(KEY, [draft(f"taken {i}")]) for i in range(5)),
    ]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert isinstance(results[0], StoreError)
    texts = [entry.message.text for entry in await store.read(KEY)]
    assert sorted(texts) == ["first", *(f"taken {i}" for i in range(5))]


@pytest.mark.promise("typed-failure")
async def test_a_failed_write_fails_alone_and_no_other_hangs(store):
    wrong = [draft("x", tokens=10**25), draft("x", tokens=-1), draft("x")._replace(tokenizer="?")]
    tries = [store.append(KEY, [item]) for item in (*wrong, draft("fine"))]
    results = await asyncio.wait_for(asyncio.gather(*tries, return_exceptions=True), 20)
    assert [type(result) for result in results[:3]] == [InputError] * 3
    assert [entry.message.text for entry in await store.read(KEY)] == ["fine"]


@pytest.mark.promise("typed-failure")
async def test_all_that_wait_for_a_lock_fail_with_the_first(path):
    store = SqliteStore(path, busy_seconds=0.3)
    await store.open()
    await store.append(KEY, [draft("x")])
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    tries = [store.append(KEY, [draft(f"{i}")]) for i in range(20)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    waited = time.monotonic() - started
    other.execute("ROLLBACK")
    other.close()
    assert {type(result) for result in results} == {StoreUnavailable}
    assert waited < 20 * 0.3 / 2
    assert (await store.append(KEY, [draft("y")])).seq == 1
    await store.close()


@pytest.mark.promise("typed-failure")
async def test_the_writer_lives_on_when_idle_work_meets_damage(store, path):
    await store.append(KEY, drafts(["one", "two"]))
    _sql(path, "UPDATE entry SET hash = CAST(x'ff' AS TEXT) WHERE id & 1 = 1")
    await asyncio.sleep(0.6)  # longer than the writer waits before it catches up with its views
    assert (await asyncio.wait_for(store.append(KEY, [draft("three")]), 20)).seq == 2


@pytest.mark.promise("search-total")
async def test_a_damaged_search_index_stops_searches_only(store, path):
    await store.append(KEY, drafts(["one", "two"]))
    await store.search("default", "one")
    _sql(path, "UPDATE search_data SET block = x'00ff00ff' WHERE id > 10")
    with pytest.raises(StoreError, match="rebuild-index"):
        await store.search("default", "two")
    await store.append(KEY, [draft("three")])
    await store.rebuild_index()
    for word, seq in (("one", 0), ("three", 2)):
        assert [hit.seq for hit in await store.search("default", word)] == [seq]


@pytest.mark.promise("search-total")
async def test_searching_ends_while_others_continue_writing(store):
    stop = asyncio.Event()

    async def write():
        while not stop.is_set():
            await store.append(KEY, [draft("meanwhile")])

    await store.append(KEY, [draft("needle")])
    writers = [asyncio.create_task(write()) for _ in range(8)]
    for _ in range(5):
        hits = await asyncio.wait_for(store.search("default", "needle"), 20)
        assert [hit.seq for hit in hits] == [0]
    stop.set()
    await asyncio.gather(*writers)


@pytest.mark.promise("search-total")
async def test_a_store_that_is_only_read_finds_what_is_not_indexed(path):
    store = SqliteStore(path)
    await store.open()
    await store.append(KEY, drafts(["a needle", "hay", "東京"]))
    await store.close()
    _sql(path, "UPDATE conversation SET indexed = 0; DELETE FROM said")
    _sql(path, "INSERT INTO search (search) VALUES ('delete-all')")
    async with Memory.open(f"sqlite:///{path}?mode=ro") as memory:
        assert [hit.seq for hit in await memory.recall("c", "needle")] == [0]
        assert [hit.seq for hit in await memory.recall(None, "東京")] == [2]
        assert await memory.recall(None, "yurt") == []


@pytest.mark.promise("one-digester")
async def test_a_lease_does_not_outlive_its_conversation(store):
    await store.append(KEY, [draft("old")])
    old = await store.lease(KEY, "w", 60)
    await store.erase(KEY)
    await store.append(KEY, [draft("new")])
    new = await store.lease(KEY, "w", 60)
    assert new.fence > old.fence
    with pytest.raises(ConflictError):
        await store.renew(old, 60)


@pytest.mark.promise("erase-total")
async def test_cancelling_an_erasure_does_not_leave_it_half_done(store):
    await store.append(KEY, [draft("secret")])
    task = asyncio.create_task(store.erase(KEY))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.close()
    await store.open()
    assert await store.head(KEY) is None
    findings = {finding.what: finding.state for finding in await store.check()}
    assert findings["erasures"] == "ok"


@pytest.mark.promise("dense")
async def test_many_statements_worth_of_entries_in_one_append(store):
    texts = [f"m{i}" for i in range(1_111)]
    appended = await store.append(KEY, drafts(texts))
    assert appended.seq == 1_110
    assert [entry.message.text for entry in await store.read(KEY)] == texts


def test_the_sync_face_says_what_would_hang(path):
    with sync.Memory.open(f"sqlite:///{path}") as memory:
        memory.append("c", [Message.user("x")] * 3)
        with pytest.raises(RuntimeError, match="already started"):
            memory.start()
        with pytest.raises(RuntimeError, match="own thread"):
            memory.verify("c", progress=lambda *_: memory.head("c"))
        assert memory.verify("c")


class Explained:
    """A connection that returns the query plan instead of the result."""

    def __init__(self, connection):
        self.connection, self.told = connection, ""

    def execute(self, sql, values):
        self.told = str(list(self.connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)))
        return []


@pytest.mark.parametrize(("project", "index"), [("mine", "conversation_project"), (None, "auto")])
async def test_pages_of_conversations_come_from_an_index(store, path, project, index):
    with closing(apsw.Connection(str(path))) as connection:
        explained = Explained(connection)
        log.conversations(explained, "acme", (project, None), "", 10)
    assert index in explained.told
    assert "SCAN" not in explained.told
    assert "TEMP B-TREE" not in explained.told
