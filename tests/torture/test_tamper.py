"""Rows changed with SQL, by an attacker who knows the tables: verify finds it."""

import apsw
import pytest
from torture_kit import memory_at, said, soon, store_at

from firnline.engine.signer import new_key
from firnline.errors import StoreCorrupt
from firnline.log.entry import Key, genesis, next_hash
from firnline.memory import DEFAULT_TENANT, Memory
from firnline.store.sqlite.checksums import checksum_vfs

SEQS = 8
ARCHIVED = 3
A, B = 1, 2  # the two conversations' numbers


@pytest.fixture
async def tampered(database):
    """Runs SQL on a closed store with two conversations; returns the names verify complains of."""
    async with memory_at(database) as memory:
        for name in ("a", "b"):
            await memory.append(name, said(f"{name}{i}" for i in range(SEQS)))
            await memory.store.archive(Key(DEFAULT_TENANT, name), 0, ARCHIVED - 1)

    async def tamper(*statements):
        execute(database, statements)
        return await complaints(database)

    return tamper


def execute(path, statements, vfs=None):
    """Run SQL, given as text or with its values behind it, on a closed store."""
    connection = apsw.Connection(str(path), vfs=vfs)
    with connection:
        for statement in statements:
            sql, *values = statement if isinstance(statement, tuple) else (statement,)
            connection.execute(sql, values)
            assert connection.changes(), f"{sql} changed nothing"
    connection.close()


async def complaints(path):
    """The conversations that verify finds wrong; no text that was not said is read from any."""
    found = set()
    async with memory_at(path) as memory:
        for name in ("a", "b"):
            if not await verified(memory, name):
                found.add(name)
            try:
                texts = [entry.message.text for entry in await soon(memory.read(name))]
            except StoreCorrupt:
                continue
            assert texts == [f"{name}{i}" for i in range(SEQS)]
    return found


async def verified(memory, name):
    try:
        return (await soon(memory.verify(name))).ok
    except StoreCorrupt:
        return False


def entry_id(conversation, seq):
    return conversation << 32 | seq


@pytest.mark.promise("tamper-evident")
async def test_nothing_changed(tampered):
    assert await tampered() == set()


@pytest.mark.promise("tamper-evident")
@pytest.mark.parametrize("seq", [SEQS - 1, 5, ARCHIVED])
async def test_an_entry_is_deleted(tampered, seq):
    assert await tampered(f"DELETE FROM entry WHERE id = {entry_id(A, seq)}") == {"a"}


@pytest.mark.promise("tamper-evident")
async def test_the_end_is_deleted_and_the_head_set_back(tampered):
    """The head's hash is that of the last entry, so a number alone does not hide it."""
    last = SEQS - 1
    assert await tampered(
        f"DELETE FROM entry WHERE id = {entry_id(A, last)}",
        f"UPDATE conversation SET next_seq = {last} WHERE id = {A}",
    ) == {"a"}


@pytest.mark.promise("tamper-evident")
async def test_a_segment_is_deleted(tampered):
    assert await tampered(f"DELETE FROM segment WHERE id = {entry_id(A, 0)}") == {"a"}


@pytest.mark.promise("tamper-evident")
async def test_every_entry_is_deleted(tampered):
    assert await tampered(
        f"DELETE FROM entry WHERE id >> 32 = {A}", f"DELETE FROM segment WHERE id >> 32 = {A}"
    ) == {"a"}


@pytest.mark.promise("tamper-evident")
@pytest.mark.parametrize("table", ["entry", "segment"])
async def test_rows_are_swapped_between_conversations(tampered, table):
    seq = 0 if table == "segment" else 5
    ours, theirs, aside = entry_id(A, seq), entry_id(B, seq), -1
    swap = f"UPDATE {table} SET id = ? WHERE id = ?"
    assert await tampered((swap, aside, ours), (swap, ours, theirs), (swap, theirs, aside)) == {
        "a",
        "b",
    }


@pytest.mark.promise("tamper-evident")
async def test_entries_are_swapped_within_a_conversation(tampered):
    swap = "UPDATE entry SET id = ? WHERE id = ?"
    first, second = entry_id(A, 4), entry_id(A, 5)
    assert await tampered((swap, -1, first), (swap, first, second), (swap, second, -1)) == {"a"}


@pytest.mark.promise("tamper-evident")
async def test_an_entry_is_copied_to_the_end(tampered, database):
    names = ", ".join(columns(database))
    copy = f"INSERT INTO entry (id, {names}) SELECT ?, {names} FROM entry WHERE id = ?"
    assert await tampered((copy, entry_id(A, SEQS), entry_id(A, SEQS - 1))) == {"a"}


@pytest.mark.promise("tamper-evident")
@pytest.mark.parametrize("seq", [SEQS - 1, 5])
async def test_an_entry_is_replaced_together_with_its_hash(tampered, database, seq):
    before = column_of(database, "hash", entry_id(A, seq - 1))
    body, hash_ = forge(database, before, seq)
    sql = "UPDATE entry SET body = ?, hash = ? WHERE id = ?"
    assert await tampered((sql, body, hash_, entry_id(A, seq))) == {"a"}


@pytest.mark.promise("tamper-evident")
async def test_a_small_column_is_changed(tampered, database):
    for name in columns(database):
        value = column_of(database, name, entry_id(A, 5))
        other = value + 1 if isinstance(value, int) else "x"
        change = f"UPDATE entry SET {name} = ? WHERE id = {entry_id(A, 5)}"
        if name != "body":
            assert await tampered((change, other)) == {"a"}, name
            assert await tampered((change, value)) == set(), name


def forge(path, before, seq):
    """Another text for an entry of ours, and the hash it has behind the hash `before`."""
    number = entry_id(A, seq)
    body = column_of(path, "body", number).replace(b'"a', b'"I never said ')
    count = [column_of(path, name, number) for name in ("tokens", "tokenizer")]
    return body, next_hash(before, body, *count)


def columns(path):
    """The columns of an entry but the first, its number."""
    connection = apsw.Connection(str(path))
    names = [row[1] for row in connection.execute("PRAGMA table_info(entry)")]
    connection.close()
    assert names[0] == "id"
    return names[1:]


def column_of(path, name, number):
    connection = apsw.Connection(str(path))
    value = connection.execute(f"SELECT {name} FROM entry WHERE id = ?", (number,)).get
    connection.close()
    return value


@pytest.mark.promise("tamper-evident")
async def test_a_conversation_is_renamed(tampered):
    """The chain begins with the tenant's and the conversation's names."""
    swap = "UPDATE conversation SET name = ? WHERE id = ?"
    assert await tampered((swap, "c", A), (swap, "a", B), (swap, "b", A)) == {"a", "b"}


@pytest.mark.promise("tamper-evident")
async def test_an_anchor_detects_a_rewritten_log(tampered, database):
    """An attacker who can write the file can rewrite all of it; a hash kept elsewhere shows it."""
    async with memory_at(database) as memory:
        anchor = (await memory.head("a")).hash
    body, hash_ = forge(database, genesis(Key(DEFAULT_TENANT, "a")), 5)
    forgery = (
        f"DELETE FROM entry WHERE id >> 32 = {A} AND id != {entry_id(A, 5)}",
        f"DELETE FROM segment WHERE id >> 32 = {A}",
        ("UPDATE entry SET id = ?, body = ?, hash = ? WHERE id >> 32 = ?", A << 32, body, hash_, A),
        f"UPDATE entry SET total = tokens WHERE id = {A << 32}",
        (f"UPDATE conversation SET next_seq = 1, hash = ?, mark = NULL WHERE id = {A}", hash_),
        "UPDATE conversation SET total = e.total FROM entry e WHERE e.id = conversation.id << 32",
    )
    execute(database, forgery)
    async with memory_at(database) as memory:
        assert (await memory.verify("a")).ok, "without the anchor it is a perfect log"
        assert not (await memory.verify("a", anchor=anchor)).ok


@pytest.mark.promise("proof-for-strangers")
@pytest.mark.parametrize("size", [100, 512])
@pytest.mark.parametrize("forgotten", [False, True])
async def test_a_history_that_was_written_again_is_not_proven(database, size, forgotten):
    """All hashes and the head are made again; the tree's stored nodes are those of the old log.

    If the kept checkpoint is deleted too, only those who have one elsewhere find out.
    """
    key = new_key("example.com/log")
    async with Memory(store_at(database), signer=key, embedder=None) as memory:
        await memory.append("a", said(f"a{i}" for i in range(size)))
        noted = await memory.checkpoint("a")
        await memory.prove("a", 5)
    statements = [*written_again(database), *(FORGET if forgotten else [])]
    execute(database, statements, vfs=checksum_vfs())
    async with Memory(store_at(database), signer=key, embedder=None) as memory:
        with pytest.raises(StoreCorrupt, match="rewritten"):
            await memory.prove_growth("a", noted)
        assert forgotten == (await memory.verify("a")).ok
        if forgotten:
            return
        for verb in (memory.checkpoint, lambda name: memory.prove(name, 5)):
            with pytest.raises(StoreCorrupt, match="rewritten"):
                await verb("a")


FORGET = [f"DELETE FROM {table} WHERE kind = 'checkpoint'" for table in ("card", "known_card")]


def written_again(path):
    """The SQL that changes message 5 and makes every hash again."""
    connection = apsw.Connection(str(path), vfs=checksum_vfs())
    rows = list(connection.execute("SELECT id, tokens, tokenizer, body FROM entry ORDER BY id"))
    connection.close()
    previous = genesis(Key(DEFAULT_TENANT, "a"))
    for at, (row, tokens, tokenizer, stored) in enumerate(rows):
        body = stored.replace(b"a5", b"a!") if at == 5 else stored
        previous = next_hash(previous, body, tokens, tokenizer)
        yield "UPDATE entry SET body = ?, hash = ? WHERE id = ?", body, previous, row
    yield "UPDATE conversation SET hash = ?, mark = NULL", previous
