"""Erase leaves no byte: not in the file, not next to it, not even if it is killed halfway."""

import asyncio
import itertools
import json
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from canaries import canary, ideographs, left
from faulty_disk import DISK_FULL, FaultyDisk
from torture_kit import SCRIPTS, TORTURE, Script, assert_healthy, memory_at, said, soon

from firnline.errors import ConflictError, StoreError, UnknownConversation
from firnline.log.entry import Card, Digest, Key
from firnline.log.message import Message, Part, ToolCall
from firnline.memory import DEFAULT_TENANT

CONVERSATIONS = 400 if TORTURE else 50
KILL_STEP = 1 if TORTURE else 5
NOW = datetime(2026, 3, 4, tzinfo=UTC)


class Talk:
    """A conversation with canaries in every place where a word can be kept."""

    def __init__(self, rng):
        self.rng = rng
        self.name = canary(rng)
        self.words = [self.name]

    def word(self):
        self.words.append(canary(self.rng))
        return self.words[-1]

    def message(self):
        shape = self.rng.randrange(4)
        if shape == 0:
            return Message.user(f"Hello {self.word()}", metadata={self.word(): self.word()})
        if shape == 1:
            call = ToolCall.of(self.word(), self.word(), {"what": self.word()})
            return Message.assistant(None, tool_calls=[call])
        if shape == 2:
            self.words.append(ideographs(self.rng))
            text = f"{self.words[-1]} {self.word()} " + "filler words " * self.rng.randrange(2000)
            return Message.user([Part.of_text(text), Part.image(f"https://x.test/{self.word()}")])
        return Message.assistant(f"{self.word()}, indeed.", name=self.word())

    async def write(self, memory):
        for _ in range(self.rng.randint(1, 6)):
            batch = [self.message() for _ in range(self.rng.randint(1, 4))]
            await memory.append(self.name, batch, idempotency_key=self.word())
            if self.rng.random() < 0.3:
                await memory.archive(self.name, keep=self.rng.randrange(4))
        await memory.describe(self.name, project=self.word(), metadata={self.word(): self.word()})
        await self.mark(memory.store)
        if self.rng.random() < 0.5:
            await self.digest(memory.store)

    async def mark(self, store):
        key = Key(DEFAULT_TENANT, self.name)
        await store.describe(key, strategy={self.word(): self.word()})
        await store.pin(key, 0)
        await store.mark_pending(key, NOW)
        await store.put_cards([self.card(f"{self.word()} replaced")])
        await store.put_cards([self.card(self.word()) for _ in range(2)])
        # Longer than a page, so that it continues in others.
        await store.put_cards([self.card(f"{'filler ' * 2000}{self.word()}")])

    def card(self, text):
        return Card(
            tenant=DEFAULT_TENANT,
            kind="draft",
            name=f"{self.name}/{self.rng.randrange(2)}",
            body=text.encode(),
            conversation=self.name,
        )

    async def digest(self, store):
        lease = await store.lease(Key(DEFAULT_TENANT, self.name), self.word(), 60)
        begun = await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=0))
        done = replace(begun, status="completed", text=self.word(), data={self.word(): self.word()})
        await store.finish_digest(lease, done)


async def fill(memory, rng, count):
    """Conversations that are half indexed for search when this returns."""
    talks = [Talk(rng) for _ in range(count)]
    for i, talk in enumerate(talks):
        await talk.write(memory)
        if i == count // 2:
            await memory.recall(None, "hello")
    return talks


def words_of(talks):
    return [word for talk in talks for word in talk.words]


def scan(folder, words):
    """From another process: reading a file drops the locks that this one has on it."""
    command = [sys.executable, str(SCRIPTS / "canaries.py"), str(folder)]
    done = subprocess.run(
        command, input=json.dumps(words), capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


def assert_gone(folder, words):
    assert scan(folder, words) == []


async def assert_whole(memory, talks):
    for talk in talks:
        assert (await soon(memory.verify(talk.name))).ok
        assert await memory.read(talk.name)


@pytest.fixture
def temporary_files(database, monkeypatch):
    """SQLite's temporary files go where the scan sees them."""
    monkeypatch.setenv("SQLITE_TMPDIR", str(database.parent))


@pytest.mark.promise("erase-total")
async def test_nothing_is_left(database, tmp_path, rng, temporary_files):
    async with memory_at(database) as memory:
        talks = await fill(memory, rng, CONVERSATIONS)
        rng.shuffle(talks)
        gone, kept = talks[: len(talks) // 2], talks[len(talks) // 2 :]
        assert len(scan(database.parent, words_of(talks))) >= len(words_of(talks)) // 2
        await soon(memory.erase(gone[0].name))
        assert_gone(database.parent, gone[0].words)
        for talk in gone[1:]:
            await soon(memory.erase(talk.name))
        assert_gone(database.parent, words_of(gone))
        for talk in gone:
            assert await memory.head(talk.name) is None
            assert await memory.recall(None, talk.words[-1]) == []
        await assert_whole(memory, kept)
        owed = await memory.store.due(NOW, limit=len(talks))
        assert {key.conversation for key in owed} == {talk.name for talk in kept}
        pins = await memory.store._read(lambda con: con.execute("SELECT count(*) FROM pin").get)
        assert pins == len(kept), "one of each"
        cards = await memory.store.cards("draft", tenant=DEFAULT_TENANT, limit=10 * len(talks))
        assert {card.conversation for card in cards} == {talk.name for talk in kept}
        await assert_healthy(memory)
        backup = tmp_path / "backup" / "copy.db"
        backup.parent.mkdir()
        await soon(memory.backup(backup))
        await soon(memory.export(backup.with_name("export.jsonl")))
        assert_gone(backup.parent, words_of(gone))
        assert scan(backup.parent, [talk.name for talk in kept])
    assert_gone(database.parent, words_of(gone))
    assert len(scan(database.parent, [talk.name for talk in kept])) >= len(kept)


@pytest.mark.promise("erase-total")
async def test_the_scan_finds_index_terms(database, rng):
    """Else the tests here would not see what they look for. Only the index has small letters."""
    word = canary(rng)
    async with memory_at(database) as memory:
        await memory.append("a", said([word]))
        await memory.recall("a", word)
    assert word.lower().encode()[3:] in database.read_bytes()
    assert left(database.parent, [word])


@pytest.mark.promise("erase-total")
async def test_readers_may_read_meanwhile(database, rng, temporary_files):
    async with memory_at(database) as memory, memory_at(database) as other:
        talks = await fill(memory, rng, 8)
        gone, kept = talks[0], talks[1:]
        done = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for which in (memory, other) * 3:
                group.create_task(read_until(done, which, talks))
            await soon(memory.erase(gone.name))
            assert_gone(database.parent, gone.words)
            done.set()
        await assert_whole(other, kept)


async def read_until(done, memory, talks):
    """Reads whatever there is; an erased conversation is not there, and that is all."""
    for talk in itertools.cycle(talks):
        if done.is_set():
            return
        entries = await memory.read(talk.name)
        assert [entry.seq for entry in entries] == list(range(len(entries)))
        await memory.newest(talk.name, tokens=1000)
        await memory.recall(None, talk.words[-1])


@pytest.mark.promise("erase-total")
async def test_two_may_erase_while_others_write(database, rng):
    """None of them is refused, and none waits for the others to become quiet."""
    async with memory_at(database) as memory, memory_at(database) as other:
        gone = await fill(memory, rng, 8)
        done = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for which in (memory, other):
                group.create_task(write_until(done, which))
            for one, two in zip(gone[::2], gone[1::2], strict=True):
                await soon(asyncio.gather(memory.erase(one.name), other.erase(two.name)), 20)
            assert_gone(database.parent, words_of(gone))
            done.set()
        assert (await memory.verify("written")).ok


async def write_until(done, memory):
    while not done.is_set():
        await memory.append("written", said(["meanwhile"]))


@pytest.mark.promise("typed-failure")
async def test_verifying_meanwhile_is_no_alarm(database):
    """What is erased while it is being verified is gone, not damaged."""
    async with memory_at(database) as memory:
        await memory.append("a", said(["one"]))
        records = memory.store.records

        async def late(*arguments):
            memory.store.records = records
            await memory.erase("a")
            return await records(*arguments)

        memory.store.records = late
        with pytest.raises(UnknownConversation):
            await soon(memory.verify("a"))


@pytest.mark.promise("erase-total")
async def test_another_process_does_not_bring_it_back(database, rng):
    """A process that appended to the conversation before remembers its head."""
    async with memory_at(database) as memory, memory_at(database) as other:
        word = canary(rng)
        await other.append("a", said([word]))
        await memory.erase("a")
        appended = await other.append("a", said(["anew"]))
        assert appended.seq == 0
        assert (await other.verify("a")).ok
        assert_gone(database.parent, [word])


@pytest.mark.promise("erase-total")
async def test_archiving_meanwhile_does_not_bring_it_back(database, rng):
    """Archiving packs first and stores then; in between, the entries may become another's."""
    word = canary(rng)
    async with memory_at(database) as memory:
        await memory.append("erased", said([f"{word} {i}" for i in range(4)]))
        write = memory.store._write

        async def late(work, **options):
            memory.store._write = write
            await memory.erase("erased")
            await memory.append("other", said([f"hello {i}" for i in range(4)]))
            return await write(work, **options)

        memory.store._write = late
        with suppress(ConflictError, UnknownConversation):
            await soon(memory.archive("erased", keep=0))
        assert (await memory.verify("other")).ok
        texts = [entry.message.text for entry in await memory.read("other")]
        assert texts == [f"hello {i}" for i in range(4)]
        assert_gone(database.parent, [word])


@pytest.mark.promise("erase-total")
async def test_a_kept_error_does_not_hold_up_erase(database, rng):
    """An error that the application keeps must not keep a reader's old pages with it."""
    word = canary(rng)
    async with memory_at(database) as memory:
        await memory.append("damaged", said(["one", "two", "three"]))
        await memory.store.archive(Key(DEFAULT_TENANT, "damaged"), 0, 0)
        await memory.store._write(lambda con: con.execute("UPDATE segment SET body = x'00'").get)
        await memory.append("a", said([word]))
        with pytest.raises(StoreError) as kept:
            await memory.read("damaged")
        await soon(memory.erase("a"), 10)
        assert_gone(database.parent, [word])
        assert kept.value


@pytest.mark.promise("erase-total")
async def test_a_full_disk_holds_it_up_only(database, rng):
    disk = FaultyDisk()
    word = canary(rng)
    try:
        async with memory_at(database, vfs=disk.name) as memory:
            await memory.append("a", said([word]))
            await memory.append("b", said(["stays"]))
            disk.on(("write",), "wal", 20, DISK_FULL, stuck=True)
            with pytest.raises(StoreError):
                await soon(memory.erase("a"))
            assert disk.hits
            disk.off()
            if await memory.head("a") is None:
                with pytest.raises(UnknownConversation):
                    await soon(memory.erase("a"))
            else:
                await soon(memory.erase("a"))
            assert_gone(database.parent, [word])
            assert (await memory.verify("b")).ok
    finally:
        disk.unregister()


@pytest.mark.promise("erase-total")
async def test_killed_on_the_way(database, tmp_path, rng, temporary_files):
    """At every operation on the disk: the conversation is complete, or no byte of it is left."""
    async with memory_at(database) as memory:
        talks = await fill(memory, rng, 4)
        await memory.recall(None, "hello")
    outcomes = set()
    async with Script("erase_kill.py") as script:
        for nth in itertools.count(1, KILL_STEP):
            copy = tmp_path / f"copy {nth}" / "torture.db"
            shutil.copytree(database.parent, copy.parent)
            outcomes.add(await one_kill(script, copy, talks, nth))
            if (nth, "finished") in outcomes:
                break
    kinds = {outcome[1] for outcome in outcomes}
    assert kinds == {"whole", "erased", "finished"}, "each of them happens, or the test is blind"


@pytest.mark.promise("erase-total")
async def test_erasing_messages_killed_on_the_way(database, tmp_path, rng, temporary_files):
    """At every operation on the disk: the messages are all there, or no byte of them is left."""
    gone, kept = [[canary(rng) for _ in range(6)] for _ in range(2)]
    async with memory_at(database) as memory:
        await memory.append("a", said([*kept[:3], *gone, *kept[3:]]))
        await memory.archive("a", keep=6)
        await memory.topics("a")
        await memory.recall("a", "hello")
    outcomes = set()
    async with Script("erase_kill.py") as script:
        for nth in itertools.count(1, KILL_STEP):
            copy = tmp_path / f"copy {nth}" / "torture.db"
            shutil.copytree(database.parent, copy.parent)
            order = {"erase": str(copy), "conversation": "a", "nth": nth, "span": [3, 8]}
            (ended,) = await script.ask(order)
            said_, there, whole = await script.ask({"open": str(copy), "conversations": ["a"]})
            assert (said_, there, whole) == ("opened", ["a"], True), f"killed at {nth}"
            assert await script.ask({"close": 1}) == ["closed"]
            async with memory_at(copy) as memory:
                erased = [e.seq for e in await memory.read("a") if e.erased_at is not None]
                assert erased in ([], list(range(3, 9))), f"killed at {nth}"
                await assert_healthy(memory)
            if erased:
                assert left(copy.parent, gone) == [], f"killed at {nth}"
            shutil.rmtree(copy.parent)
            outcomes.add((ended, bool(erased)))
            if ended == "finished":
                break
    assert outcomes == {("killed", False), ("killed", True), ("finished", True)}


async def one_kill(script, path, talks, nth):
    gone, kept = talks[0], [talk.name for talk in talks[1:]]
    ended = await script.ask({"erase": str(path), "conversation": gone.name, "nth": nth})
    assert ended in (["killed"], ["finished"])
    names = [talk.name for talk in talks]
    said, there, whole = await script.ask({"open": str(path), "conversations": names})
    assert said == "opened"
    assert whole, f"killed at {nth}: not whole"
    if gone.name in there:
        assert ended == ["killed"]
    else:
        assert left(path.parent, gone.words) == [], f"killed at {nth}"
    assert set(kept) <= set(there)
    assert await script.ask({"close": 1}) == ["closed"]
    if gone.name not in there:
        assert left(path.parent, gone.words) == [], f"killed at {nth}, then closed"
    shutil.rmtree(path.parent)
    if ended == ["finished"]:
        return nth, "finished"
    return nth, "whole" if gone.name in there else "erased"
