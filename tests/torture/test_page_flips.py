"""Random bits of a closed store are flipped: each one is named, whatever it hits."""

from contextlib import closing
from datetime import timedelta

import apsw
import pytest
from torture_kit import TORTURE, memory_at, said, soon

from firnline.errors import FirnlineError, StoreCorrupt
from firnline.log.entry import Card, Key, Project
from firnline.log.message import EPOCH
from firnline.memory import DEFAULT_TENANT, Memory
from firnline.store.sqlite import SqliteStore, checksums
from firnline.store.sqlite.connection import DatabaseFile, connect
from firnline.store.sqlite.write_buffer import WriteBuffer

FLIPS = 10_000 if TORTURE else 150
ROWS = "UPDATE entry SET hash = 'x' WHERE id = (1 << 32) + 27"

pytestmark = [
    pytest.mark.promise("tamper-evident"),
    pytest.mark.skipif(checksums.checksum_vfs() is None, reason="apsw is not from its wheel"),
]


async def fill(memory):
    """Everything that a store can have."""
    for name in ("glacier", "valley"):
        await memory.append(name, said(f"{name} {i}: how deep is the firn?" for i in range(30)))
        await memory.remember(name, {"important_facts": [f"{name} is 42 m deep"]})
        await memory.pin(name, 3)
    await memory.save_project(Project("survey", task="measure"))
    await memory.describe("glacier", project="survey", metadata={"mood": "calm"})
    await memory.set_strategy("valley", "topics")
    await memory.context("valley", 2_000, "How deep is it?")
    await memory.archive("glacier", keep=5)
    cards = [Card(tenant="", kind="key", name=f"k{i}", body=b"{}" * 20) for i in range(5)]
    await memory.store.put_cards(cards)
    said_by_ana = said(["I live in Berlin. I have a dog named Rex.", "I work as a nurse."])
    await memory.append("talk", said_by_ana, person="ana")
    assert await memory.facts(person="ana")
    await memory.recall(None, "firn")


@pytest.fixture
async def filled(tmp_path):
    path = tmp_path / "filled.db"
    async with memory_at(path) as memory:
        await fill(memory)
        assert all(finding.state == "ok" for finding in await memory.check(thorough=True))
    return path


async def answers(memory):
    """What a store answers, or the type of the error."""
    asks = [
        memory.read("glacier"),
        memory.newest("valley", tokens=200),
        memory.pinned("glacier"),
        memory.digests("valley"),
        memory.head("glacier"),
        memory.recent(),
        memory.projects(),
        memory.store.cards("key"),
        memory.store.cards("key", tenant="", names=["k3"]),
        memory.facts(person="ana"),
        memory.state("glacier"),
        memory.store.topics(Key(DEFAULT_TENANT, "valley")),
        memory.conversations(person="ana"),
        memory.recall(None, "glacier deep"),
    ]
    return [await _answer(ask) for ask in asks]


async def _answer(ask):
    try:
        return repr(await soon(ask))
    except FirnlineError as error:
        return type(error)


async def look(path):
    """What is answered, and whether the store or its thorough check says that it is damaged."""
    try:
        async with memory_at(path, read_only=True) as memory:
            found = await answers(memory)
            checked = await soon(memory.check(thorough=True))
    except FirnlineError:
        return [], True
    return found, any(finding.state == "broken" for finding in checked)


async def test_every_flipped_bit_is_named(filled, tmp_path, rng):
    data = filled.read_bytes()
    truth, damaged = await look(filled)
    assert not damaged
    silent, wrong = [], []
    copy = tmp_path / "copy.db"
    for _ in range(FLIPS):
        bit = rng.randrange(len(data) * 8)
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        copy.write_bytes(flipped)
        found, named = await look(copy)
        where = f"page {bit // 8 // 4096 + 1}, byte {bit // 8 % 4096}, bit {bit % 8}"
        pairs = enumerate(zip(found, truth, strict=False))
        wrong += [(where, n, a, b) for n, (a, b) in pairs if a != b and not isinstance(a, type)]
        if not named:
            silent.append(where)
    assert not silent, f"{len(silent)} flips: {silent[:20]}"
    assert not wrong, f"{len(wrong)} changed an answer: {wrong[:20]}"


INDEXES = {
    "sqlite_autoindex_conversation_1": 4000,
    "conversation_project": 4000,
    "conversation": 4000,
    "card": 0,
    "project": 3900,
    "embedder": 4000,
    "embedded": 4000,
    "vector": 0,
    "search_data": 0,
    "search_idx": 4000,
    "said": 3000,
    "member_entry": 3500,
    "idempotency": 3900,
}
"""Tables and indexes that no row proves, or hardly, and where in a page their contents begin."""


def worded(path):
    return Memory(SqliteStore(path), embedder="words")


async def test_no_flip_of_an_index_changes_an_answer(filled, tmp_path, rng, monkeypatch):
    """Nothing vanishes because an index does not lead to it: neither a conversation nor a hit."""
    async with worded(filled) as memory:
        for name in ("glacier", "valley"):
            await memory.embed(name)
            await memory.append(name, said(["once"]), idempotency_key=f"once {name}")
        await memory.recall(None, "firn")
    await leave_unindexed(filled, monkeypatch)
    data, copy = filled.read_bytes(), tmp_path / "copy.db"
    with closing(apsw.Connection(str(filled))) as connection:
        pages = connection.execute("SELECT name, pageno FROM dbstat ORDER BY path").fetchall()
    truth = await indexed_answers(copy, data)
    for name, start in INDEXES.items():
        own = [number for of, number in pages if of == name]
        assert own, name
        for number in range(100 if TORTURE else 6):
            # In turns: a page that indexing writes again, and any.
            page = rng.choice(own if number % 2 else own[-1:])
            byte = (page - 1) * 4096 + rng.randrange(start, 4088)
            flipped = bytearray(data)
            flipped[byte] ^= 1 << rng.randrange(8)
            found = await indexed_answers(copy, bytes(flipped))
            for ask, answer in found.items():
                right = isinstance(answer, type) or answer == truth[ask]
                assert right, f"{name}, byte {byte % 4096}: {ask} answers {answer}"


async def leave_unindexed(path, monkeypatch):
    """Append an entry that the next search indexes, which writes pages of the indexes."""
    with monkeypatch.context() as patch:
        patch.setattr(WriteBuffer, "idle", lambda *_: False)
        async with worded(path) as memory:
            await memory.append("valley", said(["the glacier and its firn"]))
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.execute("SELECT sum(next_seq - indexed) FROM conversation").get == 1


async def indexed_answers(path, data):
    """What a store of these bytes answers that an index leads to."""
    path.write_bytes(data)
    asks = {
        "glacier": lambda m: m.read("glacier"),
        "head": lambda m: m.head("valley"),
        "recent": lambda m: m.recent(),
        "conversations": lambda m: m.conversations(),
        "of the project": lambda m: m.conversations(project="survey"),
        "projects": lambda m: m.projects(),
        "cards": lambda m: m.store.cards("key"),
        "card": lambda m: m.store.cards("key", tenant="", names=["k3"]),
        "keys": lambda m: m.store.used_keys(Key(DEFAULT_TENANT, "glacier")),
        "recall": lambda m: _hits(m.recall(None, "how deep is the glacier")),
        "words": lambda m: m.store.search(DEFAULT_TENANT, "glacier 7"),
        "again": lambda m: _replayed(m, "valley"),
    }
    try:
        async with worded(path) as memory:
            return {name: await _answer(ask(memory)) for name, ask in asks.items()}
    except FirnlineError:
        return {}


async def _hits(recalling):
    """Hits, unless recall says that some are missing."""
    hits = await recalling
    if hits.degraded:
        raise StoreCorrupt("named")
    return [(hit.conversation, hit.seq) for hit in hits]


async def _replayed(memory, name):
    return (await memory.append(name, said(["once"]), idempotency_key=f"once {name}")).replayed


async def test_vectors_on_a_damaged_page_are_created_again(filled):
    """Writing the pages again would make a wrong vector look right."""
    async with worded(filled) as memory:
        await memory.embed("glacier")
        whole = await memory.recall("glacier", "how deep is the glacier")
    execute(filled, "UPDATE vector SET body = zeroblob(length(body)) WHERE id & 4294967295 = 7")
    async with worded(filled) as memory:
        with pytest.raises(StoreCorrupt, match="a page does not match its checksum"):
            await memory.recall("glacier", "how deep is the glacier")
        context = await memory.context("glacier", 400, "how deep is the glacier")
        assert "nothing is recalled: " in str(context.degraded), context.explain()
        await memory.rebuild_index()
        await memory.embed("glacier")
        assert await memory.recall("glacier", "how deep is the glacier") == whole


def misspell(path, word):
    """Change a word in the word index, as a few flipped bits can."""
    data = path.read_bytes()
    with closing(apsw.Connection(str(path))) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'search_data'"
        ).fetchall()
    for (page,) in pages:
        span = slice((page - 1) * 4096, page * 4096)
        data = data[: span.start] + data[span].replace(word, word[:-1] + b"!") + data[span.stop :]
    assert path.read_bytes() != data
    path.write_bytes(data)


async def test_indexing_does_not_make_a_damaged_page_look_right(tmp_path, monkeypatch):
    path = tmp_path / "words.db"
    async with memory_at(path) as memory:
        texts = [f"n{i} a{7 * i} b{13 * i} c{17 * i}" for i in range(150)]
        await memory.append("valley", said([*texts, "zoo"]))
        assert await memory.recall("valley", "zoo")
    await leave_unindexed(path, monkeypatch)
    misspell(path, b"zoo")  # on the last page, which indexing does not read until it writes it
    async with memory_at(path) as memory:
        for _ in range(2):
            with pytest.raises(StoreCorrupt, match="a page does not match its checksum"):
                await memory.recall("valley", "zoo")
        await memory.rebuild_index()
        assert [hit.seq for hit in await memory.recall("valley", "zoo")] == [150]


DAMAGES = {
    "words": lambda path: misspell(path, b"valley"),
    "dates": lambda path: execute(path, "UPDATE said SET at = at + 9999999999999 WHERE seq = 7"),
    "vectors": lambda path: execute(path, "UPDATE vector SET body = zeroblob(length(body))"),
}


async def found(memory):
    """What the indexes lead to: by words, by meaning and by dates."""
    hits = await memory.recall("valley", "how deep is the valley 7")
    matches = await memory.store.search(DEFAULT_TENANT, "valley 7")
    dated = await memory.dated("valley", EPOCH, memory.clock() + timedelta(days=1))
    key = Key(DEFAULT_TENANT, "valley")
    (embedder,) = await memory.store.embedders(key)
    return (
        [hit.seq for hit in hits],
        [(match.conversation, match.seq) for match in matches],
        [entry.seq for entry in dated],
        await memory.store.vectors(key, embedder, 0, 100),
    )


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("what", DAMAGES)
async def test_erasing_does_not_make_a_damaged_page_look_right(filled, what, whole):
    """It writes all pages again; what was damaged is made again from the log."""
    names = ("glacier", "valley", "moraine")
    async with worded(filled) as memory:
        await memory.append("moraine", said(["how deep is the moraine?"]))
        for name in names:
            await memory.embed(name)
        truth = await found(memory)
    DAMAGES[what](filled)
    async with worded(filled) as memory:
        await (memory.erase("moraine") if whole else memory.erase_messages("moraine", 0))
        for name in names[:2]:
            await memory.embed(name)
        assert await found(memory) == truth
        assert {one.state for one in await memory.check(thorough=True)} <= {"ok", "warning"}


async def test_every_bit_of_the_header_is_named(filled, tmp_path, rng):
    """Among them the mark that the pages have checksums at all."""
    bits = range(100 * 8)
    mark = bits[20 * 8 : 21 * 8]
    data, copy = filled.read_bytes(), tmp_path / "copy.db"
    for bit in bits if TORTURE else [*mark, *rng.sample(bits, 50)]:
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        copy.write_bytes(flipped)
        _, named = await look(copy)
        assert named, f"byte {bit // 8}, bit {bit % 8}"


def execute(path, sql):
    """As another program does, which keeps no checksums."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(sql)


async def test_a_damaged_page_is_named_and_its_neighbors_are_read(filled):
    """Only the row is lost that was changed."""
    execute(filled, ROWS)
    async with memory_at(filled) as memory:
        found = {finding.what: finding for finding in await memory.check(thorough=True)}
        assert found["page checksums"].state == "broken"
        assert "(entry)" in found["page checksums"].detail
        assert (await memory.verify("valley")).ok
        assert not (await memory.verify("glacier")).ok
        with pytest.raises(FirnlineError, match="a page does not match its checksum"):
            await memory.backup(filled.with_name("backup.db"))
        await memory.append("valley", said(["more"]))
    assert not filled.with_name("backup.db").exists()


async def test_pages_written_by_another_program_get_checksums_again(filled):
    execute(filled, "VACUUM")
    async with memory_at(filled) as memory:
        found = {finding.what: finding.state for finding in await memory.check(thorough=True)}
        assert found["page checksums"] == "broken"
        await memory.rebuild_index()
        found = {finding.what: finding.state for finding in await memory.check(thorough=True)}
        assert set(found.values()) == {"ok"}


async def test_an_older_store_works_without_and_its_backup_has_them(tmp_path, monkeypatch):
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    async with Memory(SqliteStore(old, vfs="unix"), embedder=None) as memory:
        await fill(memory)
    async with memory_at(old) as memory:
        found = {finding.what: finding for finding in await memory.check(thorough=True)}
        assert found["page checksums"].state == "warning"
        assert "firnline backup" in found["page checksums"].detail
        await memory.append("glacier", said(["more"]))
        await memory.erase("valley")
        await memory.backup(new)
    for path, states in ((old, {"ok", "warning"}), (new, {"ok"})):
        async with memory_at(path) as memory:
            assert {finding.state for finding in await memory.check(thorough=True)} == states
            assert (await memory.verify("glacier")).entries == 31


async def test_a_store_with_checksums_is_not_written_without_them(filled):
    """An apsw that was built without the extension can read it."""
    with pytest.raises(FirnlineError, match="mode=ro"):
        await SqliteStore(filled, vfs="unix").open()
    async with Memory(SqliteStore(filled, vfs="unix", read_only=True), embedder=None) as memory:
        assert (await memory.verify("glacier")).ok


def test_other_databases_of_the_process_are_left_alone(tmp_path):
    connect(DatabaseFile(tmp_path / "ours.db"), writer=True).close()
    assert apsw.vfs_names()[0] != checksums.CHECKSUM_VFS
    theirs = apsw.Connection(str(tmp_path / "theirs.db"))
    assert not checksums.has_room(theirs)
    theirs.close()


async def test_a_value_of_another_type_is_a_typed_error(filled, tmp_path):
    """One flipped bit makes a text of bytes; then it is the text's type that is wrong."""
    data, copy = filled.read_bytes(), tmp_path / "copy.db"
    with closing(apsw.Connection(str(filled))) as connection:
        columns = connection.execute(
            "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c"
            " WHERE t.type = 'table' AND t.sql LIKE '%STRICT%' AND c.type IN ('TEXT', 'BLOB')"
        ).fetchall()
    for table, column in columns:
        copy.write_bytes(data)
        if _change_type(copy, table, column):
            await look(copy)
    assert len(columns) > 40


def _change_type(path, table, column):
    """Swap texts and bytes in a column; False if that breaks another rule of the table."""
    with closing(apsw.Connection(str(path), vfs=checksums.checksum_vfs())) as connection:
        loose = "UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ') ') WHERE name = ?"
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute(loose, (table,))
    other = f"CAST({column} AS {'BLOB' if column not in ('body', 'checksum') else 'TEXT'})"
    with closing(apsw.Connection(str(path), vfs=checksums.checksum_vfs())) as connection:
        try:
            connection.execute(f"UPDATE {table} SET {column} = {other}")
        except apsw.Error:
            return False
        return True
