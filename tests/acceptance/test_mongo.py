"""MongoDB only: its documents, limits and errors, and interrupted steps."""

import asyncio
import contextlib
import random
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from pymongo.errors import AutoReconnect, ServerSelectionTimeoutError

from firnline import Memory, Message, strategies
from firnline.errors import (
    BadURL,
    ConflictError,
    InputError,
    MessageTooLarge,
    StoreCorrupt,
    StoreError,
    StoreTimeout,
    StoreTooNew,
    StoreUnavailable,
)
from firnline.log import limits
from firnline.log.chain import Audit
from firnline.log.entry import Card, Digest, Idempotency, Key
from firnline.protocols import Vector
from firnline.store import open_store, redact_url, restore_backup
from firnline.store.mongo import MongoStore, archive, backup, cards, flush, intents, schema, writer
from firnline.store.mongo.connection import MongoDatabase, check_url
from firnline.store.mongo.errors import translate_error
from firnline.store.mongo.heads import find
from firnline.testing.drafts import FOREIGN, KEY, OTHER, START, draft, drafts
from support import clock_skew

OWN = {"tenant": KEY.tenant, "conversation": KEY.conversation}


@asynccontextmanager
async def opened(url, **options):
    store = MongoStore(url, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def store(mongo):
    async with opened(mongo.url) as store:
        yield store


@pytest.fixture
def rng():
    return random.Random(1138)


def numbered(number):
    return KEY._replace(conversation=f"c{number}")


class CutError(Exception):
    """The process ends here."""


def cut(monkeypatch, where, name):
    """Let the process die at the next call of a function."""

    async def end(*_, **__):
        monkeypatch.undo()
        raise CutError

    monkeypatch.setattr(where, name, end)


# -- the URL ----------------------------------------------------------------------------------


@pytest.mark.promise("durable")
@pytest.mark.parametrize(
    "asked",
    ["w=1", "w=0", "w=2", "w=anything", "journal=false", "j=false", "W=1", "wTimeoutMS=10",
     "readPreference=secondary", "readConcernLevel=local", "readConcernLevel=available"],
)  # fmt: skip
def test_a_url_that_weakens_durability_is_rejected(asked):
    with pytest.raises(BadURL, match=asked.partition("=")[0]):
        open_store(f"mongodb://host/db?{asked}")


def test_what_a_url_may_say():
    assert check_url("mongodb://a,b/chats?replicaSet=r&w=majority&journal=true") == "chats"
    assert check_url("mongodb://a") == "firnline"
    assert (
        redact_url("mongodb://ann:secret@a/chats?w=majority")
        == "mongodb://ann:***@a/chats?w=majority"
    )


def test_a_server_that_is_not_there_is_named_and_the_driver_s_state_is_not():
    said = (
        "h:1: refused (configured timeouts: connectTimeoutMS: 10000.0ms), Timeout: 10.0s, Topology"
        " Description: <TopologyDescription id: 1, servers: []>"
    )
    error = translate_error(ServerSelectionTimeoutError(said), "mongodb://h:1/x")
    assert str(error) == "mongodb://h:1/x: cannot reach the server: h:1: refused"


async def test_an_invalid_mongodb_url_is_rejected():
    for url in ("mongodb://", "mongodb://host:port/x", "mongodb://host/a.b", "mongodb://host/$x"):
        with pytest.raises(BadURL):
            await open_store(url).open()


@pytest.mark.promise("durable")
async def test_a_server_alone_is_asked_for_its_journal(store):
    writes = store._database.writes.document
    assert writes["j"] is True
    assert writes["w"] in (1, "majority")
    assert store._database["entries"].write_concern.document == writes


# -- batches ----------------------------------------------------------------------------------


@pytest.mark.promise("dense")
async def test_a_batch_is_there_by_one_write(store, mongo, monkeypatch):
    """Whatever is interrupted after it: the complete write is visible to every process."""
    name = Idempotency("k", "f")
    cut(monkeypatch, flush, "put_new")
    appended = await store.append(KEY, drafts(["a"] * (writer.TAIL_ENTRIES + 3)), idempotency=name)
    with pytest.raises(CutError):
        await asyncio.gather(*store._writer._pumps.values())
    assert mongo.look.entries.count_documents({}) == 0, "nothing was moved"
    async with opened(mongo.url) as other:
        assert await other.read(KEY) == list(appended)
        assert (await other.append(KEY, drafts(["b"]), idempotency=name)).replayed
        assert len(await other.search("acme", "a", limit=100)) == len(appended)
        assert mongo.look.entries.count_documents(OWN) == len(appended)
        assert (await other.append(KEY, drafts(["b"]), idempotency=name)).replayed
        assert await other.read(KEY) == list(appended)


@pytest.mark.promise("dense")
async def test_a_move_that_was_cut_short_is_done_again(store, mongo, monkeypatch):
    appended = await store.append(KEY, drafts("abcdef"))
    cut(monkeypatch, flush, "_cut")
    with pytest.raises(CutError):
        await store.search("acme", "a")
    assert mongo.look.entries.count_documents(OWN) == 6
    for _ in range(2):
        assert [match.seq for match in await store.search("acme", "e")] == [4]
        assert await store.read(KEY) == list(appended)
    await store.append(KEY, drafts("g"))
    assert [entry.seq for entry in await store.read(KEY)] == list(range(7))


@pytest.mark.promise("byte-exact")
async def test_batches_larger_than_a_document(store, mongo, monkeypatch):
    texts = [f"{i} snow " + "." * 1_500_000 for i in range(12)]
    appended = await store.append(KEY, drafts(texts), idempotency=Idempotency("k", "f"))
    assert [entry.message.text for entry in await store.read(KEY)] == texts
    await asyncio.gather(*store._writer._pumps.values())
    assert mongo.look.staged.count_documents({}) == 0
    cut(monkeypatch, writer, "put_new")  # before the commit: it is never visible
    with pytest.raises(StoreTimeout):
        await store.append(KEY, drafts(texts[:2]))
    assert (await store.head(KEY)).entries == 12
    assert (await store.append(KEY, drafts(["x"]), idempotency=Idempotency("k", "f"))).replayed
    assert (await store.append(KEY, drafts(["x"]))).seq == 12
    assert appended.seq == 11


@pytest.mark.promise("exact-tokens")
async def test_numbers_of_more_than_32_bits_are_numbers(store):
    await store.append(KEY, [draft(str(i), tokens=(1 << 39) + i) for i in range(60)])
    await store.archive(KEY, 0, 9)
    assert len(await store.read(KEY)) == 60
    assert len(await store.newest(KEY, 3 << 39)) == 2
    assert await store.tokens_between(KEY, 5, 6) == (1 << 40) + 11
    assert (await store.head(KEY)).tokens == 60 * (1 << 39) + 1770
    assert [match.seq for match in await store.search("acme", "33")] == [33]


@pytest.mark.promise("typed-failure")
async def test_a_message_larger_than_a_document_is_rejected(store):
    message = draft("x")
    for size in (writer.BODY_MAX + 1, limits.MESSAGE_BYTES_MAX):
        with pytest.raises(MessageTooLarge):
            await store.append(KEY, [message, message._replace(body=b"x" * size)])
    assert await store.head(KEY) is None


@pytest.mark.promise("idempotent")
@pytest.mark.parametrize("name", [None, Idempotency("k", "f")])
async def test_an_answer_that_does_not_come_is_looked_up(store, monkeypatch, name):
    """The write was done, or it was not; in both cases it is there once."""
    await store.append(KEY, drafts("ab"))
    write, fails = MongoDatabase.write, []

    async def lose(database, work):
        if not fails:  # done, and the answer is lost
            fails.append(await write(database, work))
            raise StoreTimeout("lost") from AutoReconnect("lost")
        if len(fails) == 1:  # lost on its way
            fails.append(None)
            raise StoreTimeout("lost") from AutoReconnect("lost")
        return await write(database, work)

    monkeypatch.setattr(MongoDatabase, "write", lose)
    first = await store.append(KEY, drafts(["once", "more"]), idempotency=name)
    fails[:] = [None]
    second = await store.append(OTHER, drafts(["elsewhere"]))
    assert (first.replayed, second.replayed) == (False, False)
    assert [entry.message.text for entry in await store.read(KEY)] == ["a", "b", "once", "more"]
    assert [entry.message.text for entry in await store.read(OTHER)] == ["elsewhere"]


@pytest.mark.promise("typed-failure")
async def test_what_never_becomes_known_says_so(store, monkeypatch):
    async def lose(*_):
        raise StoreTimeout("lost") from AutoReconnect("lost")

    monkeypatch.setattr(MongoDatabase, "write", lose)
    with pytest.raises(StoreTimeout):
        await store.append(KEY, drafts("a"))


@pytest.mark.promise("typed-failure")
async def test_a_write_with_unknown_outcome_is_not_reported_as_not_written(store, monkeypatch):
    """The answer is lost, and the server stays away until the caller has given up."""
    await store.append(KEY, drafts("a"))
    write = MongoDatabase.write

    async def lose(database, work):
        await write(database, work)
        raise StoreTimeout("lost") from AutoReconnect("lost")

    async def away(*_):
        raise StoreUnavailable("no server")

    with monkeypatch.context() as patch:
        patch.setattr(limits, "BUSY_SECONDS", 0.0)
        patch.setattr(MongoDatabase, "write", lose)
        patch.setattr(MongoDatabase, "read", away)
        with pytest.raises(StoreTimeout):
            await store.append(KEY, drafts("b"))
    assert [entry.message.text for entry in await store.read(KEY)] == ["a", "b"]


@pytest.mark.promise("typed-failure")
async def test_no_server_is_an_error_that_says_so():
    store = MongoStore("mongodb://%2Fnowhere%2Fno.sock/x?serverSelectionTimeoutMS=100")
    with pytest.raises(StoreUnavailable):
        await store.open()
    with pytest.raises(StoreError, match="not open"):
        await store.head(KEY)
    await store.close()


# -- cards, digests and vectors ---------------------------------------------------------------


@pytest.mark.promise("one-digester")
async def test_a_change_that_was_cut_short_is_carried_out_by_the_next(store, mongo, monkeypatch):
    await store.append(KEY, drafts("abcdef"))
    lease = await store.lease(KEY, "w", 60)
    cut(monkeypatch, intents, "carry_out")
    with pytest.raises(CutError):
        await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=3))
    assert mongo.look.digests.count_documents({}) == 0
    async with opened(mongo.url) as other:
        (begun,) = await other.digests(KEY)
        assert (begun.version, begun.status) == (1, "processing")
        cut(monkeypatch, intents, "carry_out")
        with pytest.raises(CutError):
            await other.put_vectors(KEY, "m", [Vector(0, 0, b"v")], first_seq=0, next_seq=1)
        assert await other.embedded(KEY, "m") == 1
        assert await other.vectors(KEY, "m", 0, 9) == [Vector(0, 0, b"v")]
    done = await store.finish_digest(lease, replace(begun, status="completed", text="x"))
    assert await store.newest_digest(KEY) == done


@pytest.mark.promise("one-digester")
async def test_a_late_write_does_not_replace_newer_data(store, monkeypatch):
    await store.append(KEY, drafts("abcdef"))
    lease = await store.lease(KEY, "w", 60)
    cut(monkeypatch, intents, "carry_out")
    with pytest.raises(CutError):
        await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=3))
    late = await find(store._database, KEY)
    (begun,) = await store.digests(KEY)
    done = await store.finish_digest(lease, replace(begun, status="completed", text="x"))
    await intents.carry_out(store._database, late)
    assert await store.digests(KEY) == [done]


async def test_digests_larger_than_a_head_are_written_together(store, mongo):
    await store.append(KEY, drafts("ab"))
    made = [
        Digest(version=i, first_seq=0, last_seq=1, status="completed", text=str(i % 10) * 900_000)
        for i in range(1, 21)
    ]
    await store.put_digests(KEY, made)
    assert await store.digests(KEY) == made
    assert mongo.look.staged.count_documents({}) == 0


@pytest.mark.promise("archive-transparent")
async def test_archiving_that_was_cut_short_or_comes_late_loses_nothing(store, mongo, monkeypatch):
    appended = await store.append(KEY, drafts([f"t{i}" for i in range(20)]))
    cut(monkeypatch, archive, "_delete_entries")
    with pytest.raises(CutError):
        await store.archive(KEY, 0, 9)
    assert mongo.look.entries.count_documents(OWN) == 20, "what is archived lies there, too"
    now = await store.read(KEY)
    assert [entry.archived for entry in now] == [True] * 10 + [False] * 10
    assert [replace(entry, archived=False) for entry in now] == list(appended)
    late = await find(store._database, KEY)
    assert await store.restore(KEY, 0, 9) == 10
    await archive._delete_entries(store._database, late, archive.SegmentSpan(0, 9))
    assert await store.read(KEY) == list(appended), "what was restored since is not deleted"


@pytest.mark.promise("archive-transparent")
async def test_what_was_archived_twice_over_is_there_once(store, mongo, monkeypatch):
    """One who was killed has left the documents of what he archived; the next one deletes them."""
    appended = await store.append(KEY, drafts([f"t{i}" for i in range(20)]))
    await store.archive(KEY, 0, 4)
    cut(monkeypatch, archive, "_delete_entries")
    with pytest.raises(CutError):
        await store.archive(KEY, 5, 9)
    assert mongo.look.entries.count_documents(OWN) == 15
    assert (await store.archive(KEY, 0, 9)).entries == 0
    assert mongo.look.entries.count_documents(OWN) == 10
    assert await store.restore(KEY, 0, 9) == 10
    assert await store.read(KEY) == list(appended)


@pytest.mark.promise("archive-transparent")
async def test_entries_are_archived_and_restored_while_others_write_and_read(store, mongo, rng):
    done = asyncio.Event()

    async def write(own, name):
        for i in range(15):
            await own.append(KEY, drafts([f"{name}.{i} {j}/3" for j in range(3)]))

    async def move(own):
        while not done.is_set():
            head = await own.head(KEY)
            first = rng.randrange(head.entries if head else 1)
            with contextlib.suppress(ConflictError):  # another task has moved them
                await own.archive(KEY, first, first + rng.randrange(30))
                await own.restore(KEY, first + 2, first + 5)

    async def read(own):
        while not done.is_set():
            entries = await own.read(KEY)
            assert [entry.seq for entry in entries] == list(range(len(entries)))
            assert len(await own.newest(KEY, 10**6)) >= len(entries)

    async with opened(mongo.url) as other, opened(mongo.url) as third:
        others = [asyncio.create_task(task) for task in (move(store), move(other), read(third))]
        await asyncio.gather(*(write(own, i) for i, own in enumerate((store, other, third))))
        done.set()
        await asyncio.gather(*others)
        texts = [entry.message.text for entry in await third.read(KEY)]
        assert len(set(texts)) == 135
        audit = Audit(KEY)
        audit.take(await store.records(KEY, 0, 1_000))
        assert audit.close(await store.head(KEY)).problems == ()


@pytest.mark.promise("archive-transparent")
async def test_a_segment_that_is_on_its_way_is_read(store, mongo, monkeypatch):
    appended = await store.append(KEY, drafts([f"t{i}" for i in range(20)]))
    cut(monkeypatch, intents, "carry_out")
    with pytest.raises(CutError):
        await store.archive(KEY, 0, 9)
    assert mongo.look.segments.count_documents({}) == 0
    assert len([r for r in await store.records(KEY, 0, 100) if not r.problem]) == 20
    assert [replace(entry, archived=False) for entry in await store.read(KEY)] == list(appended)
    assert mongo.look.segments.count_documents({}) == 1
    assert await store.restore(KEY, 0, 9) == 10
    assert await store.read(KEY) == list(appended)


@pytest.mark.promise("erase-total")
async def test_an_erasure_that_was_cut_short_is_finished(store, mongo, monkeypatch):
    for key in (KEY, OTHER):
        await store.append(key, [draft(f"secret {i}", pinned=True) for i in range(60)])
        await store.put_cards([Card(tenant=key.tenant, kind="k", name=key.conversation,
                                    conversation=key.conversation)])  # fmt: skip
    await store.search("acme", "secret")
    await store.archive(KEY, 0, 9)
    cut(monkeypatch, flush, "sweep")
    monkeypatch.setattr("firnline.store.mongo.erase.sweep", flush.sweep)
    with pytest.raises(CutError):
        await store.erase(KEY)
    assert await store.head(KEY) is None
    assert await store.read(KEY) == []
    assert {match.conversation for match in await store.search("acme", "secret")} == {"ticket-43"}
    assert [card.name for card in await store.cards("k")] == [OTHER.conversation]
    assert mongo.look.entries.count_documents(OWN)
    async with opened(mongo.url):
        left = {name: mongo.look[name].count_documents(OWN) for name in schema.OWNED}
    assert not any(left.values()), left
    assert len(await store.read(OTHER)) == 60


@pytest.mark.promise("erase-total")
async def test_a_late_write_leaves_nothing_of_erased_data(store, mongo):
    await store.append(KEY, drafts("abc"))
    late = await find(store._database, KEY)
    await store.erase(KEY)
    await store.append(KEY, drafts("new"))
    assert await flush.flush(store._database, late) is None
    assert mongo.look.entries.count_documents({"life": late.life}) == 0
    assert [entry.message.text for entry in await store.read(KEY)] == ["n", "e", "w"]


@pytest.mark.promise("erase-total")
async def test_an_erasure_does_not_wait_behind_old_notes(mongo, monkeypatch):
    now = [START]
    monkeypatch.setattr("firnline.store.mongo.erase._AT_ONCE", 2)
    async with opened(mongo.url, clock=lambda: now[0]) as store:
        for i in range(9):
            await store.append(numbered(i), drafts("a"))
            await store.erase(numbered(i))
        now[0] += timedelta(minutes=11)
        await store.append(KEY, drafts(["secret"]))
        assert await store.search(KEY.tenant, "secret")
        await store.erase(KEY)
    left = {name: mongo.look[name].count_documents(OWN) for name in schema.OWNED}
    assert not any(left.values()), left


async def test_cards_of_a_writer_that_was_killed_are_not_put_over_newer_ones(mongo, monkeypatch):
    now = [START]
    old = [Card(tenant="acme", kind="k", name=n, body=b"old") for n in "abc"]
    async with opened(mongo.url, clock=lambda: now[0]) as store:
        cut(monkeypatch, cards, "_apply")
        with pytest.raises(CutError):
            await store.put_cards(old)
        now[0] += timedelta(minutes=2)
        await store.put_cards([replace(old[0], body=b"new")])
        async with opened(mongo.url, clock=lambda: now[0]) as other:
            assert [card.body for card in await other.cards("k")] == [b"new", b"old", b"old"]
    assert mongo.look.batches.count_documents({}) == 0


async def test_cards_that_are_dropped_do_not_come_back(store, mongo, monkeypatch):
    both = [Card(tenant="acme", kind="k", name=n, body=b"x") for n in "ab"]
    cut(monkeypatch, cards, "_apply")
    with pytest.raises(CutError):
        await store.put_cards(both)
    assert await store.drop_cards("k", "acme", names=["b"]) == 1
    assert [card.name for card in await store.cards("k")] == ["a"]
    mongo.look.batches.update_many({}, {"$set": {"at": 0}})
    async with opened(mongo.url) as other:
        assert [card.name for card in await other.cards("k")] == ["a"]


async def test_a_search_takes_few_heads_at_once(store, monkeypatch):
    """Each holds up to 32 KB of its newest entries, and a tenant has any number of them."""
    monkeypatch.setattr("firnline.store.mongo.search._HEADS_AT_ONCE", 3)
    for i in range(10):
        await store.append(numbered(i), drafts(["rope"]))
    read, taken = MongoDatabase.read, []

    async def noted(database, work):
        found = await read(database, work)
        taken.append(sum("tail" in doc for doc in found) if isinstance(found, list) else 0)
        return found

    monkeypatch.setattr(MongoDatabase, "read", noted)
    assert len(await store.search(KEY.tenant, "rope")) == 10
    assert sum(taken) == 10
    assert max(taken) <= 3


async def test_several_cards_are_there_together(store, mongo, monkeypatch):
    await store.append(KEY, drafts("a"))
    both = [Card(tenant="acme", kind="k", name=n, body=n.encode()) for n in "ab"]
    cut(monkeypatch, cards, "_apply")
    with pytest.raises(CutError):
        await store.put_cards(both)
    assert [card.body for card in await store.cards("k", tenant="acme")] == [b"a", b"b"]
    assert mongo.look.cards.count_documents({}) == 0
    mongo.look.batches.update_many({}, {"$set": {"at": 0}})
    async with opened(mongo.url) as other:
        assert [card.body for card in await other.cards("k")] == [b"a", b"b"]
    assert mongo.look.batches.count_documents({}) == 0
    assert mongo.look.cards.count_documents({}) == 2
    with pytest.raises(InputError):
        large = b"x" * limits.CARD_BYTES_MAX
        await store.put_cards([replace(both[0], name=f"{i}", body=large) for i in range(4)])


# -- damage -----------------------------------------------------------------------------------


@pytest.mark.promise("tamper-evident")
@pytest.mark.parametrize(
    ("where", "change"),
    [
        ("entries", {"$set": {"body": b"other"}}),
        ("entries", {"$set": {"tokens": 99}}),
        ("entries", {"$unset": {"hash": ""}}),
        ("conversations", {"$set": {"tail.0.body": b"other"}}),
        ("conversations", {"$set": {"next_seq": 2}}),
        ("conversations", {"$unset": {"total": ""}}),
        ("conversations", {"$set": {"tenant": "evil", "conversation": "x"}}),
    ],
)
async def test_what_was_changed_is_not_served(store, mongo, where, change):
    await store.append(KEY, drafts([f"t{i}" for i in range(30)]))
    await store.search("acme", "t1")
    await store.append(KEY, drafts(["in the tail"]))
    mongo.look[where].update_one({**OWN, **({"seq": 3} if where == "entries" else {})}, change)
    if "tenant" in change.get("$set", {}):
        with pytest.raises(StoreCorrupt):
            await store.conversations("evil")
        return
    with pytest.raises(StoreCorrupt):
        await store.read(KEY)


@pytest.mark.promise("tamper-evident")
async def test_verify_finds_what_is_missing_and_what_is_too_much(mongo):
    async with Memory.open(mongo.url) as memory:
        await memory.append("c", [Message.user(f"t{i}") for i in range(60)])
        await memory.recall("c", "t1")
        assert (await memory.verify("c")).ok
        last = mongo.look.entries.find_one({"seq": 59})
        del last["_id"]
        mongo.look.entries.insert_one({**last, "seq": 60})
        assert not (await memory.verify("c")).ok
        mongo.look.entries.delete_one({"seq": 60})
        mongo.look.entries.delete_one({"seq": 7})
        assert "missing" in str(await memory.verify("c"))


async def test_a_newer_or_a_strange_database_is_left_alone(mongo):
    mongo.meddle()
    mongo.look.drop_collection("schema")
    mongo.look.conversations.insert_one({"tenant": "x", "conversation": "y", "title": "not ours"})
    with pytest.raises(StoreError, match="not Firnline's"):
        await MongoStore(mongo.url).open()
    mongo.look.conversations.delete_many({})
    mongo.look.schema.insert_one({"_id": 1, "version": schema.VERSION + 1})
    with pytest.raises(StoreTooNew):
        await MongoStore(mongo.url).open()


async def test_a_database_of_an_older_firnline_is_brought_up_to_date(mongo, store):
    """Of the first version, in which a project's conversations had no index."""
    mongo.meddle()
    await store.describe(KEY, project="mine")
    added = "tenant_1_project_1_conversation_1"
    mongo.look.conversations.drop_index(added)
    mongo.look.schema.update_one({"_id": 1}, {"$set": {"version": 1}})
    async with opened(mongo.url) as newer:
        (found,) = await newer.conversations(KEY.tenant, project="mine")
    assert found.conversation == KEY.conversation
    assert added in mongo.look.conversations.index_information()
    assert mongo.look.schema.find_one()["version"] == schema.VERSION


async def test_words_of_an_older_store_are_indexed_again_in_the_background(mongo, store):
    await store.append(KEY, [draft("repricing invoices"), draft("more")])
    await store.search(KEY.tenant, "more")
    await store.close()
    mongo.look.words.update_many({}, {"$set": {"terms": [], "own": 0}})
    mongo.look.schema.update_one({"_id": 1}, {"$set": {"version": schema.WORDS_SINCE - 1}})
    await store.open()
    async with asyncio.timeout(20):
        while mongo.look.schema.find_one({"owed": "words"}):
            await store.search(KEY.tenant, "pricing")
            await asyncio.sleep(0.01)
    assert [hit.seq for hit in await store.search(KEY.tenant, "pricing invoice")] == [0]


async def test_many_may_open_a_new_database_at_once(mongo):
    mongo.meddle()
    mongo.look.client.drop_database(mongo.name)
    stores = [MongoStore(mongo.url) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    await asyncio.gather(*(store.append(KEY, drafts("a")) for store in stores))
    assert len(await stores[0].read(KEY)) == 4
    await asyncio.gather(*(store.close() for store in stores))
    unique = {
        name: [key for key, about in mongo.look[name].index_information().items()
               if about.get("unique")]
        for name in ("conversations", "entries", "idempotency")
    }  # fmt: skip
    assert all(unique.values()), "sequence, lease and idempotency are each made unique"


def test_every_unique_index_begins_with_the_shard_key():
    tenants = {
        "cards",
        "known_cards",
        "projects",
        "project_names",
    }  # they are a tenant's, and sharded by that
    for name, indexes in schema.INDEXES.items():
        for index in indexes:
            fields = list(index.document["key"])
            if index.document.get("unique"):
                assert fields[0] == "tenant"
                assert name in tenants or fields[1] == "conversation", name


# -- copies -----------------------------------------------------------------------------------


@pytest.mark.promise("backup-whole")
async def test_a_copy_is_complete_while_others_write(mongo, mongo_databases, tmp_path):
    path, done = tmp_path / "copy.bson", asyncio.Event()

    async def write(memory):
        number = 0
        while not done.is_set():
            number += 1
            await memory.append("b", [Message.user(f"{number} {i}/2") for i in range(2)])
            if number % 10 == 0:
                await memory.archive("b", keep=5)

    async with Memory.open(mongo.url, strategy=strategies.progressive()) as memory:
        await memory.append("a", [Message.user(f"rope {i} " * 50) for i in range(80)])
        await memory.archive("a", keep=20)
        await memory.context("a", 3_000)
        await memory.store.put_cards([Card(tenant="default", kind="k", name="a", body=b"kept",
                                           conversation="a")])  # fmt: skip
        writing = asyncio.create_task(write(memory))
        steps = []
        await memory.append("b", [Message.user("first")])
        await memory.backup(path, progress=lambda *step: steps.append(step))
        done.set()
        await writing
        before = await memory.read("a"), await memory.digests("a")
        assert steps[-1] == (2, 2)
        with pytest.raises(InputError, match="exists"):
            await memory.backup(path)
        with pytest.raises(InputError, match="empty"):
            await backup.load(memory.store._open_db, path)
    with mongo_databases.one() as fresh:
        await restore_backup(path, fresh.url)
        async with Memory.open(fresh.url) as copy:
            assert len(await copy.conversations()) == 2
            assert (await copy.verify("a")).ok
            assert (await copy.verify("b")).ok
            assert (await copy.read("a"), await copy.digests("a")) == before
            assert [card.body for card in await copy.store.cards("k")] == [b"kept"]
            assert await copy.recall("a", "rope 3")
            assert all(finding.state != "broken" for finding in await copy.check(thorough=True))
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.promise("backup-whole")
async def test_a_copy_is_not_mixed_with_what_is_there(store, mongo_databases, tmp_path):
    path, card = tmp_path / "copy.bson", Card(tenant="acme", kind="k", name="a", body=b"copied")
    await store.append(KEY, drafts("abc"))
    await store.put_cards([card])
    await store.backup(path)
    with mongo_databases.one() as other:
        async with opened(other.url) as strange:
            await strange.put_cards([replace(card, body=b"another")])
            with pytest.raises(InputError, match="cards"):
                await backup.load(strange._open_db, path)
            assert await strange.head(KEY) is None
            await strange.drop_cards("k", "acme", prefix="")
            await backup.load(strange._open_db, path)
            assert len(await strange.conversations(KEY.tenant)) == 1
            assert [card.body for card in await strange.cards("k")] == [b"copied"]


async def test_half_a_copy_is_no_copy(store, tmp_path):
    whole, half = tmp_path / "copy.bson", tmp_path / "half.bson"
    await store.append(KEY, drafts("abc"))
    await store.backup(whole)
    await store.erase(KEY)
    for size in (30, 200):
        half.write_bytes(whole.read_bytes()[:-size])
        with pytest.raises(StoreCorrupt):
            await backup.load(store._open_db, half)
    for wrong in (tmp_path / "missing", tmp_path):
        with pytest.raises(InputError):
            await backup.load(store._open_db, wrong)


# -- what people read -------------------------------------------------------------------------


@pytest.mark.requirement("A2")
async def test_the_memory_of_a_chat_session_is_a_document(mongo):
    session = {"conversation": "c"}
    async with Memory.open(mongo.url, strategy=strategies.progressive()) as memory:
        await memory.append("c", [Message.user("Hello, I am Ann and I love green tea.")])
        empty = mongo.look.chat_sessions.find_one(session)
        assert empty["memory_compression"] == schema.EMPTY_MEMORY
        assert empty["messages"] == 1
        for i in range(40):
            text = f"{i}: we decided to use MongoDB, see https://example.org/{i}. " + "word " * 100
            await memory.append("c", [Message.user(text), Message.assistant("Noted.")])
        await memory.context("c", 3_000)
        state = await memory.state("c")
        record = mongo.look.chat_sessions.find_one(session)["memory_compression"]
        assert set(record) == set(schema.EMPTY_MEMORY)
        assert set(record["important_data"]) == set(schema.EMPTY_MEMORY["important_data"])
        for name in (
            "important_data", "conversation_summary", "summary_version",
            "messages_summarized_count", "last_keep_window_index",
        ):  # fmt: skip
            assert record[name] == getattr(state, name), name
        assert record["conversation_summary"]
        await memory.erase("c")
        assert mongo.look.chat_sessions.find_one(session) is None


# -- leases -----------------------------------------------------------------------------------


@pytest.mark.promise("one-digester")
async def test_leases_go_by_the_servers_clock(mongo):
    async with opened(mongo.url) as store:
        await store.append(KEY, drafts("a"))
        lease = await store.lease(KEY, "w", 60)
        now = mongo.look.command("serverStatus")["localTime"]
        left = lease.expires_at.replace(tzinfo=None) - now
        assert timedelta(seconds=50) < left <= timedelta(seconds=61)
        await store.erase(KEY)
        await store.append(KEY, drafts("a"))
        again = await store.lease(KEY, "w", 60)
        assert again.fence > lease.fence, "also of a conversation that was made anew"


async def test_what_tenants_say_is_not_readable_in_the_index(store, mongo):
    await store.append(KEY, drafts(["rope"]))
    await store.append(FOREIGN, drafts(["rope"]))
    await store.search("acme", "rope")
    await store.search("evil", "rope")
    terms = [set(doc["terms"]) for doc in mongo.look.words.find()]
    assert len(terms) == 2
    assert not terms[0] & terms[1], "another number for each tenant"
    assert START


@clock_skew.WRONG
async def test_pending_work_uses_the_shared_clock(store, mongo, wrong):
    """A machine whose clock is wrong, or jumps, neither delays nor skips work."""
    async with opened(mongo.url) as other:
        await clock_skew.check_owed(store, other, wrong)


# -- erasing messages -------------------------------------------------------------------------


@pytest.mark.promise("erase-total")
@pytest.mark.parametrize("when", [None, "change", "carry_out"])
async def test_erased_messages_are_in_no_document(mongo, monkeypatch, when):
    secret = "Glacierwolf opens the vault"
    async with Memory(MongoStore(mongo.url), tenant="acme", worker=False) as memory:
        await memory.append("c", [Message.user(f"{secret} {i}") for i in range(6)])
        await memory.topics("c")
        await memory.archive("c", keep=2)
        await memory.append("c", Message.user(f"{secret} 6"))
        vectors = [Vector(seq, 0, b"vector of the vault") for seq in range(7)]
        await memory.store.put_vectors(Key("acme", "c"), "m", vectors, first_seq=0, next_seq=7)
        if when is not None:  # the process dies in between, another one finishes
            cut(monkeypatch, intents, when)
            with pytest.raises(CutError):
                await memory.erase_messages("c", 0, 6)
        if when != "carry_out":
            await memory.erase_messages("c", 0, 6)
        assert (await memory.verify("c")).erased == 7
        assert await memory.recall("c", "Glacierwolf") == []
    async with Memory(MongoStore(mongo.url), tenant="acme", worker=False) as memory:
        assert (await memory.verify("c")).ok
        database = memory.store._database
        for name in await database.database.list_collection_names():
            documents = str(await database[name].find({"tenant": "acme"}).to_list())
            assert "Glacierwolf" not in documents, name
            assert "vector of the vault" not in documents, name
