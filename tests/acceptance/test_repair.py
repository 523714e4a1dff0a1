"""Damaged rows outside the log: named, never served, and restored from the journal."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.errors import StoreCorrupt, StoreUnavailable
from firnline.log.entry import Key, Project
from firnline.log.message import Message
from firnline.memory import DEFAULT_TENANT, Memory
from firnline.store import journal
from firnline.store.sqlite import SqliteStore
from support.damage import damage_documents, damage_postgres_rows, damage_rows

KEY = Key(DEFAULT_TENANT, "c")
PROJECTS = Key(DEFAULT_TENANT, "")
DATA = {"user_preferences": {"language": "German"}, "key_decisions": ["The rope is red."]}


@pytest.fixture(params=["sqlite", "postgres", "mongo"])
def place(request, tmp_path):
    """A store's URL, and a function that damages its rows."""
    if request.param == "sqlite":
        path = tmp_path / "store.db"
        return f"sqlite:///{path}", lambda what: damage_rows(path, _damage(what)[0])
    database = request.getfixturevalue(request.param)
    if request.param == "mongo":
        return database.url, lambda what: damage_documents(database.look, *_damage(what)[1])
    return database.url, lambda what: damage_postgres_rows(database, _damage(what)[0])


def _damage(what):
    """SQL, and a change of a document: of a known kind, or of a card that changes or is gone."""
    if what in DAMAGES:
        return DAMAGES[what]
    kind, name, *gone = what
    if any(gone):
        sql = f"DELETE FROM card WHERE kind = '{kind}' AND name = '{name}'"
        return sql, ("cards", {"kind": kind, "name": name}, None)
    sql = f"UPDATE card SET updated_at = 5 WHERE kind = '{kind}' AND name = '{name}'"
    return sql, ("cards", {"kind": kind, "name": name}, {"$set": {"updated_at": 5}})


async def _fill(memory):
    await memory.save_project(Project("alps", task="Climb the Eiger."))
    await memory.save_project(Project("andes", task="Climb Huascarán."))
    texts = ["We meet at the hut.", "The rope is red.", "Bring bread."]
    await memory.append("c", [Message.user(text) for text in texts])
    await memory.describe("c", project="alps", metadata={"mood": "glad"})
    await memory.set_strategy("c", "rolling")
    await memory.pin("c", 0)
    await memory.pin("c", 1)
    await memory.unpin("c", 0)
    await memory.remember("c", DATA)


async def _state(memory):
    """All that the application stated."""
    head = await memory.head("c")
    return (
        (head.project, head.metadata, head.strategy),
        [entry.seq for entry in await memory.pinned("c")],
        (await memory.state("c")).important_data,
        await memory.projects(),
    )


DAMAGES = {
    "project": (
        "UPDATE conversation SET project = 'andes'",
        ("conversations", {}, {"$set": {"project": "andes"}}),
    ),
    "metadata": (
        "UPDATE conversation SET metadata = '{}'",
        ("conversations", {}, {"$set": {"metadata": "{}"}}),
    ),
    "strategy": (
        "UPDATE conversation SET strategy = NULL",
        ("conversations", {}, {"$set": {"strategy": None}}),
    ),
    "end": (
        "UPDATE conversation SET next_seq = next_seq - 1",
        ("conversations", {}, {"$inc": {"next_seq": -1}}),
    ),
    "tokens": (
        "UPDATE conversation SET total = total + 256",
        ("conversations", {}, {"$inc": {"total": 256}}),
    ),
    "hash": (
        "UPDATE conversation SET hash = replace(hash, 'a', 'b')",
        ("conversations", {}, {"$set": {"hash": "sha256:b"}}),
    ),
    "time": (
        "UPDATE conversation SET updated_at = updated_at - 4096",
        ("conversations", {}, {"$inc": {"updated_at": -4096}}),
    ),
    "lease": (
        "UPDATE conversation SET lease_until = 8000000000000000",
        ("conversations", {}, {"$set": {"lease_until": 8_000_000_000_000_000}}),
    ),
    "pin": ("UPDATE pin SET seq = 2", ("conversations", {}, {"$set": {"pins": [2]}})),
    "pin gone": ("DELETE FROM pin", ("conversations", {}, {"$set": {"pins": []}})),
    "digest": (
        "UPDATE digest SET status = 'complated'",
        ("digests", {}, {"$set": {"status": "complated"}}),
    ),
    "digest gone": ("DELETE FROM digest", ("digests", {}, None)),
    "message gone": (
        "DELETE FROM entry WHERE total = (SELECT max(total) FROM entry)",
        ("entries", {"seq": 2}, None),
    ),
    "task": (
        "UPDATE project SET task = 'Climb the Ogre.' WHERE name = 'alps'",
        ("projects", {"name": "alps"}, {"$set": {"task": "Climb the Ogre."}}),
    ),
    "project gone": (
        "DELETE FROM project WHERE name = 'andes'",
        ("projects", {"name": "andes"}, None),
    ),
}


@pytest.mark.promise("tamper-evident")
@pytest.mark.promise("typed-failure")
@pytest.mark.parametrize("damage", [*DAMAGES.keys() - {"message gone"}])
async def test_damaged_rows_are_named_and_restored_from_the_journal(place, damage):
    url, harm = place
    async with Memory.open(url) as memory:
        await _fill(memory)
        before, head = await _state(memory), await memory.head("c")
    harm(damage)
    async with Memory.open(url) as memory:
        whole = await memory.verify("c") and not await memory.store.damage(PROJECTS)
        assert not whole
        assert "broken" in {finding.state for finding in await memory.check(thorough=True)}
        with pytest.raises(StoreCorrupt):
            await _state(memory)
        lines = await memory.repair()
        assert lines, damage
        assert all("restored" in line or "made again" in line for line in lines)
        assert (await _state(memory), await memory.head("c")) == (before, head)
        assert await memory.verify("c")
        assert await memory.repair() == []
        assert {finding.state for finding in await memory.check(thorough=True)} <= {"ok", "warning"}


@pytest.mark.promise("tamper-evident")
@pytest.mark.parametrize("damage", ["metadata", "pin", "task", "project gone"])
async def test_without_a_journal_damage_stays_damage(place, damage):
    """A new seal would make it look right, and nothing else is deleted."""
    url, harm = place
    async with Memory.open(url) as memory:
        await _fill(memory)
        await memory.store.drop_cards(journal.KIND, DEFAULT_TENANT, prefix="")
    harm(damage)
    key = PROJECTS if damage in ("task", "project gone") else KEY
    async with Memory.open(url) as memory:
        before = await memory.store.damage(key)
        assert all("not restored" in line for line in await memory.repair())
        assert await memory.store.damage(key) == before != []
        with pytest.raises(StoreCorrupt):
            await _state(memory)


@pytest.mark.promise("tamper-evident")
@pytest.mark.parametrize("key", [KEY, PROJECTS])
@pytest.mark.parametrize(("at", "gone"), [(-1, False), (0, False), (0, True)])
async def test_a_damaged_journal_is_made_again_from_what_is_stored(place, key, at, gone):
    """Otherwise nothing could be pinned, described or remembered any more."""
    url, harm = place
    async with Memory.open(url) as memory:
        await _fill(memory)
        before = await _state(memory)
        own = [
            card.name
            for card in await memory.store.cards(journal.KIND, tenant=KEY.tenant)
            if (card.conversation or "") == key.conversation
        ]
    harm((journal.KIND, own[at], gone))
    async with Memory.open(url) as memory:
        with pytest.raises(StoreCorrupt):
            await journal.read(memory.store, key)
        assert "its journal is damaged: made again" in str(await memory.repair())
        assert await _state(memory) == before
        await _change_all(memory)
        assert await memory.verify("c")
        assert await memory.repair() == []


async def _change_all(memory):
    await memory.pin("c", 2)
    await memory.describe("c", metadata={"mood": "calm"})
    await memory.set_strategy("c", "layered")
    await memory.remember("c", DATA)
    await memory.save_project(Project("alps", task="Climb the Ogre."))


STATED = ["I live in Berlin. I have a dog named Rex.", "I work as a nurse.", "I like tea."]


async def _tell(memory):
    """Facts of a person in two conversations, one of which is reverted."""
    for number, text in enumerate(STATED):
        await memory.append(f"p{number % 2}", [Message.user(text)], person="ana")
    facts = await memory.facts(person="ana")
    (dog,) = [fact for fact in facts if "Rex" in str(fact.value)]
    await memory.revert_fact("ana", dog.id)
    await memory.append("p9", [Message.user("I have a cat.")], person="ana")
    await memory.erase("p9")
    return await _facts(memory)


async def _facts(memory):
    found = await memory.facts(person="ana")
    assert found
    assert not any("Rex" in str(fact.value) for fact in found)
    return [(fact.attribute, fact.value) for fact in found]


async def _cards_of(memory, kind):
    return [card.name for card in await memory.store.cards(kind, tenant=DEFAULT_TENANT)]


@pytest.mark.promise("tamper-evident")
@pytest.mark.parametrize(
    ("kind", "at", "gone"),
    [
        *(("fact", 0, False), ("fact", 0, True), ("fact", -1, False)),
        *((kind, 0, False) for kind in ("fact-erasures", "fact-progress", "profile")),
    ],
)
async def test_damaged_facts_of_a_person_are_made_again(place, kind, at, gone):
    url, harm = place
    async with Memory.open(url) as memory:
        before = await _tell(memory)
        name = (await _cards_of(memory, kind))[at]
    harm((kind, name, gone))
    async with Memory.open(url) as memory:
        context = await memory.context("p0", budget=5_000, question="Where do I live?")
        assert any(STATED[0] in message.text for message in context.messages)
        is_derived = kind in ("fact-progress", "profile")
        is_read = not is_derived and (kind, at) != ("fact", -1)  # of that, there is a profile
        assert not is_read or "the facts of ana are damaged" in str(context.degraded)
        await memory.append("p0", [Message.user("What was it?")])
        hits = await memory.recall(None, "Berlin", person="ana")
        assert not is_read or "the facts of ana are damaged" in str(hits.degraded)
        lines = await memory.repair()
        assert is_derived or "ana: the facts: made again" in str(lines)
        assert await _facts(memory) == before
        assert await memory.repair() == []
        assert (await memory.context("p0", budget=5_000)).degraded == ()
        assert await memory.verify("p0")


@pytest.mark.promise("tamper-evident")
async def test_digests_are_repaired_without_a_sound_journal(tmp_path):
    path = tmp_path / "store.db"
    async with Memory.open(f"sqlite:///{path}") as memory:
        await _fill(memory)
    damage_rows(path, DAMAGES["digest"][0])
    damage_rows(path, "UPDATE card SET updated_at = 5 WHERE kind = 'journal'")
    async with Memory.open(f"sqlite:///{path}") as memory:
        assert "its journal is damaged: made again" in str(await memory.repair())
        await _change_all(memory)
        assert await memory.verify("c")
        assert await memory.repair() == []


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("damage", ["end", "tokens", "hash"])
async def test_a_head_whose_log_lacks_its_end_is_not_restored(place, damage):
    url, harm = place
    async with Memory.open(url) as memory:
        await _fill(memory)
        await memory.archive("c", keep=0)
        await memory.store.restore(KEY, 0, 2)  # so that each message has a row of its own
    harm(damage)
    harm("message gone")
    async with Memory.open(url) as memory:
        assert "not restored: messages are damaged or missing" in str(await memory.repair())
        assert not await memory.verify("c")


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_a_row_that_firnline_deletes_leaves_its_seal(request, tmp_path, backend):
    sqlite = backend == "sqlite"
    url = f"sqlite:///{tmp_path}/a.db" if sqlite else request.getfixturevalue(backend).url
    async with Memory.open(url) as memory:
        await _fill(memory)
        await memory.remember("c", {"key_decisions": ["Start at four."]})
        await memory.topics("c")
        for version in (2, 1):
            number = f"id & 4294967295 = {version}" if sqlite else f"version = {version}"
            await _delete(memory.store, "digest", number)
            assert await memory.store.damage(KEY) == []
            newest = await memory.store.newest_digest(KEY)
            assert (newest and newest.version) == (version - 1 or None)
        await _delete(memory.store, "topic", "true")
        assert await memory.store.damage(KEY) == []


async def _delete(store, table, where):
    """Delete rows in a transaction of the store itself."""
    sql = f"DELETE FROM {table} WHERE {where}"
    if isinstance(store, SqliteStore):
        await store._write(lambda connection: connection.execute(sql))
        return

    async def work(transaction):
        transaction.later(sql)

    await store._write(DEFAULT_TENANT, work)


@pytest.mark.requirement("A8")
async def test_a_statement_about_an_erased_message_does_not_fail_a_repair(place):
    url, damage = place
    async with Memory.open(url) as memory:
        await _fill(memory)
        await memory.pin("c", 2)
        await memory.erase_messages("c", 1)
        assert await memory.store.damage(KEY) == []
    damage("pin gone")
    async with Memory.open(url) as memory:
        assert await memory.repair()
        assert [entry.seq for entry in await memory.pinned("c")] == [2]
        assert await memory.store.damage(KEY) == []
        assert (await memory.verify("c")).ok


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("damage", ["digest", "digest gone"])
async def test_a_context_that_meets_a_damaged_digest_says_so_and_restores_what_was_stated(
    place, damage
):
    url, harm = place
    async with Memory.open(url) as memory:
        await _fill(memory)
        before = (await memory.state("c")).important_data
    harm(damage)
    async with Memory.open(url) as memory:
        context = await memory.context("c", 4_000)
        assert "restored from the journal" in context.degraded[0]
        assert "German" in str([piece.message.text for piece in context["important"].pieces])
        assert (await memory.state("c")).important_data == before
        assert not (await memory.context("c", 4_000)).degraded


@pytest.mark.promise("tamper-evident")
async def test_any_changed_column_of_a_sealed_row_is_named(tmp_path):
    path = tmp_path / "store.db"
    async with Memory.open(f"sqlite:///{path}") as memory:
        await _fill(memory)
        await memory.append("c", Message.user("Once."), idempotency_key="once")
        await memory.topics("c")
    tables = {
        "conversation": "genesis project metadata strategy archived fence lease_owner lease_until"
        " owed_at created_at updated_at next_seq total hash unread mark",
        "pin": "conversation seq",
        "digest": "id status fence checksum body topic",
        "project": "tenant name status schedule task metadata",
        "idempotency": "conversation key fingerprint first_seq last_seq mark",
        "seal": "conversation part count mark",
        "card": "kind tenant name conversation updated_at checksum body",
    }
    whole, rng = path.read_bytes(), random.Random(7)
    for table, columns in tables.items():
        for column in columns.split():
            path.write_bytes(whole)
            damage_rows(path, _change(table, column, rng))
            async with Memory.open(f"sqlite:///{path}") as memory:
                states = {finding.state for finding in await memory.check(thorough=True)}
                assert "broken" in states or not await memory.verify("c"), f"{table}.{column}"


BLOBS = {"body", "checksum"}
NUMBERS = {
    *("conversation", "seq", "id", "count", "mark", "first_seq", "last_seq", "next_seq", "total"),
    *("archived", "fence", "lease_until", "owed_at", "created_at", "updated_at", "topic"),
    "unread",
}


def _change(table, column, rng):
    other = "'other'"
    if column in NUMBERS:
        other = f"coalesce({column}, 0) + {rng.randrange(1, 9)}"
    elif column in BLOBS:
        other = f"CAST(coalesce({column}, '') || 'x' AS BLOB)"
    return f"UPDATE {table} SET {column} = {other} WHERE {_ONE[table]}"


_ONE = {
    "conversation": "id = 1",
    "pin": "seq = 1",
    "digest": "1",
    "project": "name = 'alps'",
    "idempotency": "1",
    "seal": "part = 'pins'",
    "card": "name = (SELECT min(name) FROM card)",
}


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("pin"), st.integers(0, 3)),
            st.tuples(st.just("unpin"), st.integers(0, 3)),
            st.tuples(st.just("describe"), st.sampled_from(["p", "q"])),
            st.tuples(st.just("metadata"), st.integers(0, 3)),
            st.tuples(st.just("remember"), st.sampled_from(["Bern", "Rome", "Oslo"])),
            st.tuples(st.just("revert"), st.just(-1)),
            st.tuples(st.just("clear"), st.just(None)),
        ),
        max_size=10,
    )
)
async def test_the_journal_gives_the_same_state_again(tmp_path_factory, steps):
    async with Memory.open(f"sqlite:///{tmp_path_factory.mktemp('journal')}/store.db") as memory:
        await memory.append("c", [Message.user(text) for text in "abcd"])
        for verb, value in steps:
            await _step(memory, verb, value)
        before = await _state(memory)
        stated = await journal.read(memory.store, KEY)
        pins = [seq for seq, pinned in stated.pinned.items() if pinned] if stated else []
        about = (stated.project, stated.metadata, stated.strategy) if stated else (None, {}, None)
        assert (about, sorted(pins)) == before[:2]
        await memory.clear("c")
        await journal.record(
            memory.store, KEY, "state", **journal.to_json(stated or journal.Stated())
        )
        await memory._engine.repairer.restore_data(KEY)
        assert (await memory.state("c")).important_data == before[2]


async def _step(memory, verb, value):
    match verb:
        case "pin":
            await memory.pin("c", value)
        case "unpin":
            await memory.unpin("c", value)
        case "describe":
            await memory.describe("c", project=value)
        case "metadata":
            await memory.describe("c", metadata={"n": value})
        case "remember":
            await memory.remember("c", {"user_preferences": {"city": value}})
        case "revert":
            await memory.revert("c", value)
        case "clear":
            await memory.clear("c")


@pytest.mark.promise("round-trip")
@pytest.mark.parametrize("how", ["import", "branch"])
async def test_what_was_imported_or_branched_can_be_restored_too(tmp_path, how):
    path = tmp_path / "other.db"
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        await _fill(memory)
        await memory.export(tmp_path / "all.jsonl")
    async with Memory.open(f"sqlite:///{path}") as memory:
        await memory.import_(tmp_path / "all.jsonl")
        if how == "branch":
            await memory.branch("c", 2, "d")
            await memory.erase("c")
            await memory.branch("d", 2, "c")
        before = await _state(memory)
    for damage in ("metadata", "pin", "digest", "task"):
        damage_rows(path, DAMAGES[damage][0])
        async with Memory.open(f"sqlite:///{path}") as memory:
            assert await memory.repair()
            assert await _state(memory) == before, damage
            assert await memory.verify("c")


@pytest.mark.promise("tamper-evident")
async def test_a_journal_is_read_while_it_is_replaced(memory, monkeypatch):
    """A process may die between writing the new state and dropping what it replaces."""
    await memory.append("c", [Message.user("hello")])
    await memory.describe("c", project="p")
    before = await journal.read(memory.store, KEY)

    async def killed(*arguments, **options):
        raise StoreUnavailable("killed")

    with monkeypatch.context() as patch:
        patch.setattr(memory.store, "drop_cards", killed)
        with pytest.raises(StoreUnavailable):
            await journal.adopt(memory.store, KEY)
    assert await journal.read(memory.store, KEY) == before
    await memory.describe("c", project="q")
    assert (await journal.read(memory.store, KEY)).project == "q"
    assert await memory.verify("c")


@pytest.mark.promise("tamper-evident")
async def test_a_journal_without_its_beginning_is_damaged(memory):
    await memory.append("c", [Message.user("hello")])
    await memory.describe("c", project="p")
    cards = await memory.store.cards(journal.KIND, tenant=KEY.tenant, prefix="")
    oldest = max(card.name for card in cards)
    await memory.store.drop_cards(journal.KIND, KEY.tenant, names=[oldest])
    with pytest.raises(StoreCorrupt, match="journal is damaged"):
        await journal.read(memory.store, KEY)
