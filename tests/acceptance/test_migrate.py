"""Migrating a store to another: all data of every tenant, and nothing twice."""

import asyncio
import hashlib
import json
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from firnline import Memory, Message
from firnline.cli import main
from firnline.errors import ConflictError, InputError
from firnline.log.entry import Card, Digest, Key, Project, Topic
from firnline.log.message import utc_now
from firnline.store import RamStore, open_store
from firnline.transfer.migrate import move

NAMES = ("a", "b/ü 雪", "~c")


@pytest.fixture
def source_url(tmp_path):
    return f"sqlite:///{tmp_path}/source.db"


async def fill(memory, count):
    """Conversations with all that can belong to one."""
    store, tenant = memory.store, memory.tenant
    await memory.save_project(Project("p", task="Find the leak."))
    for name in NAMES:
        texts = [Message.user(f"{tenant} {name} {i} \u202e雪\x01") for i in range(count)]
        await memory.append(name, texts)
        await memory.pin(name, 1)
        key = Key(tenant, name)
        whole = {"first_seq": 0, "last_seq": 1, "status": "completed", "text": "Snow."}
        await store.put_digests(
            key, [Digest(version=1, base=0, **whole), Digest(version=2, base=1, **whole)]
        )
    await memory.describe("a", project="p", metadata={"title": "Ä"})
    await memory.set_strategy("a", "rolling")
    key = Key(tenant, "a")
    now = utc_now()
    topic = Topic(id=0, title="Snow", created_at=now, last_active_at=now, entries=2, last_seq=2)
    known = await store.topics(key)
    await store.assign(key, [topic], {0: 0, 2: 0}, revision=known.revision, next_seq=3)
    await memory.archive("a", keep=2)
    await store.put_cards(
        [
            Card(tenant=tenant, kind="prompt", name="x", body=b"\x00\xff", conversation="a"),
            Card(tenant="", kind="key", name=f"of {tenant}", body=b"secret"),
        ]
    )


async def everything(url, tenant, folder):
    """Everything an export contains of a tenant, and its cards."""
    file = folder / "all.jsonl"
    async with Memory.open(url, tenant=tenant, worker=False) as memory:
        for head in await memory.conversations():
            assert (await memory.verify(head.conversation)).ok
        await memory.export(file)
        cards = [
            (card.kind, card.name, card.body, card.conversation)
            for kind in ("prompt", "key", "journal")
            for card in await memory.store.cards(kind)
        ]
        return file.read_bytes(), cards


LONG_AGO = datetime(2001, 2, 3, 4, 5, 6, 789012, tzinfo=UTC)
LATER = LONG_AGO + timedelta(days=9_000)


async def live_through_much(memory):
    """Everything that a store can hold and a caller can see, at times long ago."""
    store, tenant = memory.store, memory.tenant
    await fill(memory, 7)
    await memory.describe("empty", metadata={"no": "messages"})
    await memory.append("old", Message.user("first", created_at=LONG_AGO))
    for number in range(3):
        said = [Message.user(f"apartment {number}", name="Ana"), Message.assistant("noted")]
        await memory.append("old", said, idempotency_key=f"k/{number} ü")
    await memory.branch("old", 3, "old, branch")
    lease = await store.lease(Key(tenant, "old"), "w", 30)
    begun = await store.begin_digest(lease, Digest(version=0, base=None, first_seq=0, last_seq=2))
    await store.finish_digest(lease, replace(begun, status="completed", text="Apartments."))
    await store.undo_digest(lease, begun.version)
    again = await store.begin_digest(lease, Digest(version=0, base=None, first_seq=0, last_seq=3))
    await store.finish_digest(lease, replace(again, status="failed", error="no"))
    await store.release(lease)
    await store.mark_pending(Key(tenant, "old"), LONG_AGO)
    await store.mark_pending(Key(tenant, "a"), LONG_AGO + timedelta(days=1))
    await store.put_cards([Card(tenant=tenant, kind="job", name="x", body=b"1")])


async def all_that_is_readable(memory):
    """The answers of every call that reads, by call."""
    found = {
        "projects": await memory.projects(),
        "due": await memory.due(until=utc_now() + timedelta(days=1)),
        "pending": (await memory.pending()).conversations,
        "recall": [(h.conversation, h.entry) for h in await memory.recall(None, "apartments snow")],
    }
    for kind in await memory.store.kinds():
        found["cards", kind] = await memory.store.cards(kind)
    for head in await memory.conversations():
        name = head.conversation
        entries = await memory.read(name)
        key = Key(memory.tenant, name)
        found |= {
            (name, "head"): head,
            (name, "same"): await memory.head(name),
            (name, "entries"): entries,
            (name, "pinned"): await memory.pinned(name),
            (name, "dated"): await memory.dated(name, LONG_AGO, LATER + timedelta(days=1)),
            (name, "newest"): await memory.newest(name, tokens=20),
            (name, "tokens"): await memory.tokens_between(name, 1, 3),
            (name, "digests"): await memory.digests(name),
            (name, "in force"): await memory.in_force(name),
            (name, "state"): await memory.state(name),
            (name, "lineage"): await memory.lineage(name),
            (name, "strategy"): (await memory.strategy(name)).to_json(),
            (name, "topics"): await memory.store.topics(key) if name == "a" else None,
            (name, "members"): await memory.store.members(key, 0),
            (name, "keys"): await memory.store.used_keys(key),
            (name, "verified"): await memory.verify(name),
            (name, "stats"): await memory.stats(name),
        }
    return found


@pytest.mark.promise("round-trip")
async def test_nothing_that_can_be_read_changes_on_the_way_through_all_stores(
    tmp_path, postgres, mongo
):
    urls = [f"sqlite:///{tmp_path}/1.db", postgres.url, mongo.url, f"sqlite:///{tmp_path}/2.db"]
    stores = [RamStore(), *map(open_store, urls), RamStore()]
    async with AsyncExitStack() as opened:
        memories = [Memory(s, tenant="acme", worker=False, embedder=None, clock=lambda: LATER)
                    for s in stores]  # fmt: skip
        for memory in memories:
            await opened.enter_async_context(memory)
        await live_through_much(memories[0])
        before = await all_that_is_readable(memories[0])
        assert before["old", "head"].created_at == LONG_AGO
        assert [key.conversation for key in before["due"]] == ["old", "a"]
        assert len(before["old", "keys"]) == 3
        assert before["a", "head"].archived == 5
        for source, target in pairwise(stores):
            done = await move(source, target)
            assert done.added == done.entries == 32
        for memory in memories[1:]:
            now = await all_that_is_readable(memory)
            assert now.keys() == before.keys()
            assert not [what for what in now if now[what] != before[what]]
            said = [Message.user("apartment 1", name="Ana"), Message.assistant("noted")]
            again = await memory.append("old", said, idempotency_key="k/1 ü")
            assert (again.replayed, [entry.seq for entry in again]) == (True, [3, 4])
            assert (await memory.branch("old", 3, "old, branch")).entries == 4


@pytest.mark.promise("round-trip")
async def test_an_export_keeps_when_a_conversation_was_created(url, tmp_path):
    file = tmp_path / "all.jsonl"
    source = RamStore(clock=lambda: LONG_AGO)
    async with Memory(source, worker=False, clock=lambda: LATER) as memory:
        await memory.describe("described first", project="p")
        await memory.append("described first", [Message.user("a"), Message.user("b")])
        await memory.describe("empty", metadata={"a": 1})
        heads = await memory.conversations()
        assert [head.created_at for head in heads] == [LONG_AGO, LONG_AGO]
        await memory.export(file)
    async with Memory.open(url, worker=False) as memory:
        await memory.import_(file)
        assert await memory.conversations() == heads
        await memory.import_(file)
        assert await memory.conversations() == heads


async def test_an_export_of_an_older_firnline_is_imported(tmp_path):
    """Its conversations have no time of their own: the first message's is taken."""
    file = tmp_path / "all.jsonl"
    async with Memory.open("memory:", worker=False) as memory:
        await memory.append("a", Message.user("a", created_at=LONG_AGO))
        await memory.export(file)
    *lines, manifest = file.read_bytes().splitlines(keepends=True)
    created = b',"created_at":"2001-02-03T04:05:06.789012Z","project"'
    older = b"".join(lines).replace(created, b',"project"')
    assert older != b"".join(lines)
    known = json.loads(manifest)["manifest"]["sha256"].encode()
    file.write_bytes(older + manifest.replace(known, hashlib.sha256(older).hexdigest().encode()))
    async with Memory.open("memory:", worker=False) as memory:
        await memory.import_(file)
        assert (await memory.head("a")).created_at == LONG_AGO


async def moved(source, target, **options):
    a, b = open_store(source), open_store(target)
    await a.open()
    await b.open()
    try:
        return await move(a, b, **options)
    finally:
        await a.close()
        await b.close()


@pytest.fixture
async def filled(source_url):
    for tenant in ("acme", "zoo"):
        async with Memory.open(source_url, tenant=tenant, worker=False) as memory:
            await fill(memory, 7)
    return source_url


@pytest.fixture(params=["sqlite", "postgres", "mongo"])
def target_url(request, tmp_path):
    if request.param != "sqlite":
        return request.getfixturevalue(request.param).url
    return f"sqlite:///{tmp_path}/target.db"


@pytest.mark.promise("round-trip")
async def test_all_tenants_arrive_and_a_second_time_adds_nothing(filled, target_url, tmp_path):
    seen = []
    done = await moved(filled, target_url, progress=lambda now, whole: seen.append((now, whole)))
    assert (done.tenants, done.conversations, done.entries, done.added) == (2, 6, 42, 42)
    assert (done.digests, done.cards) == (12, 24)  # with the journals
    assert seen[-1] == (42, 42)
    for tenant in ("acme", "zoo"):
        there = await everything(target_url, tenant, tmp_path)
        assert there == await everything(filled, tenant, tmp_path)
    again = await moved(filled, target_url)
    assert (again.entries, again.added, again.digests, again.cards) == (42, 0, 0, 0)


async def test_and_back_again(filled, target_url, tmp_path):
    await moved(filled, target_url)
    third = f"sqlite:///{tmp_path}/third.db"
    await moved(f"{target_url}", third)
    assert await everything(third, "zoo", tmp_path) == await everything(filled, "zoo", tmp_path)


async def test_one_tenant_alone(filled, target_url):
    done = await moved(filled, target_url, tenants=["zoo"])
    assert (done.tenants, done.entries) == (1, 21)
    async with Memory.open(target_url, tenant="acme", worker=False) as memory:
        assert await memory.conversations() == []
    with pytest.raises(InputError, match="at least one"):
        await moved(filled, target_url, tenants=[])
    with pytest.raises(InputError, match="no tenant 'nobody'"):
        await moved(filled, target_url, tenants=["zoo", "nobody"])


async def test_newer_messages_are_copied_the_next_time(filled, target_url, tmp_path):
    await moved(filled, target_url)
    async with Memory.open(filled, tenant="acme", worker=False) as memory:
        await memory.append("a", Message.user("more"))
        await memory.append("new", Message.user("entirely"))
    again = await moved(filled, target_url)
    assert again.added == 2
    assert await everything(target_url, "acme", tmp_path) == await everything(
        filled, "acme", tmp_path
    )


async def test_another_conversation_of_the_same_name_is_a_conflict(filled, target_url):
    async with Memory.open(target_url, tenant="zoo", worker=False) as memory:
        await memory.append("~c", Message.user("mine"))
    with pytest.raises(ConflictError, match="differ from the source"):
        await moved(filled, target_url)
    async with Memory.open(target_url, tenant="zoo", worker=False) as memory:
        assert [entry.message.text for entry in await memory.read("~c")] == ["mine"]


async def test_a_target_that_went_on_is_left_as_it_is(filled, target_url):
    await moved(filled, target_url)
    async with Memory.open(target_url, tenant="acme", worker=False) as memory:
        await memory.append("a", Message.user("said here since"))
        await memory.describe("a", metadata={"title": "changed here"})
    assert (await moved(filled, target_url)).added == 0
    async with Memory.open(target_url, tenant="acme", worker=False) as memory:
        assert (await memory.head("a")).entries == 8
        assert (await memory.head("a")).metadata == {"title": "changed here"}


async def test_digests_that_were_made_since_are_not_passed_over_in_silence(filled, target_url):
    await moved(filled, target_url)
    store = open_store(filled)
    await store.open()
    lease = await store.lease(Key("acme", "a"), "w", 30)
    await store.undo_digest(lease, 2)
    made = await store.begin_digest(lease, Digest(version=0, base=1, first_seq=2, last_seq=3))
    assert made.version == 3
    await store.close()
    with pytest.raises(ConflictError, match="digests since"):
        await moved(filled, target_url)


async def test_of_two_cards_the_newer_one_counts():
    later = utc_now() + timedelta(hours=1)
    source, target = RamStore(), RamStore(clock=lambda: later)
    await source.open()
    await target.open()
    await source.put_cards([Card(tenant="", kind="key", name="a", body=b"old")])
    await target.put_cards([Card(tenant="", kind="key", name="a", body=b"revoked here")])
    assert (await move(source, target)).cards == 0
    (card,) = await target.cards("key")
    assert card.body == b"revoked here"


def test_the_command(filled, tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/target.db"
    assert main(["migrate", "--from", filled, "--to", url]) == 0
    assert "2 tenants, 6 conversations, 42 messages, 42 added" in capsys.readouterr().out
    assert main(["migrate", "--from", filled, "--to", url, "--only", "zoo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == 0
    assert main(["migrate", "--from", filled, "--to", filled]) == 2
    assert "the same store" in capsys.readouterr().err
    assert main(["migrate", "--from", f"sqlite:///{tmp_path}/no.db", "--to", url]) == 2
    assert "there is no store" in capsys.readouterr().err
    assert main(["migrate", "--from", filled, "--to", "memory:"]) == 2
    assert "a permanent store" in capsys.readouterr().err


# The process kills itself: a kill from outside could come after the end.
MORTAL = """
import asyncio, os, signal, sys, threading
from firnline.log import limits
from firnline.transfer import migrate
from firnline.cli import main

limits.READ_PAGE = 100
entries = migrate._ConversationCopy.entries

async def fatal(self):
    async for reached in entries(self):
        if reached == 100:
            threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGKILL)).start()
        if reached == 400:
            await asyncio.sleep(60)
        yield reached

migrate._ConversationCopy.entries = fatal
sys.exit(main(["migrate", *sys.argv[1:]]))
"""


@pytest.mark.promise("durable")
async def test_killed_in_the_middle_it_continues_where_it_was(source_url, target_url, tmp_path):
    async with Memory.open(source_url, worker=False) as memory:
        await memory.append("long", [Message.user(f"{i}") for i in range(600)])
        await memory.export(tmp_path / "source.jsonl")
    command = [sys.executable, "-c", MORTAL, "--from", source_url, "--to", target_url]
    process = await asyncio.create_subprocess_exec(*command)
    assert await asyncio.wait_for(process.wait(), 60) == -signal.SIGKILL
    async with Memory.open(target_url, worker=False) as memory:
        there = (await memory.head("long")).entries
    assert 100 <= there < 600
    assert (await moved(source_url, target_url)).added == 600 - there
    async with Memory.open(target_url, worker=False) as memory:
        await memory.export(tmp_path / "target.jsonl")
    source, target = (tmp_path / f"{name}.jsonl" for name in ("source", "target"))
    assert source.read_bytes() == target.read_bytes()
