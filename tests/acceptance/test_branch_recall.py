"""Recall and branches: a branch is found like its source, and a shared message once."""

import asyncio
import json

import pytest

from firnline import Hits, Memory, Message
from firnline.cli import main
from firnline.engine.embedding_indexer import EmbeddingIndexer
from firnline.log import limits
from firnline.log.entry import Key
from firnline.protocols import Vector
from support.synonym_embedder import Senses

TALK = ["The puppy sleeps.", "My automobile is red.", "A storm is coming.", "Wages are low."]


def opened(url, embedder="none", **options):
    return Memory.open(
        url, embedder=None if embedder == "none" else embedder, worker=False, **options
    )


def places(hits):
    return [(hit.conversation, hit.seq, hit.also_in) for hit in hits]


async def family(memory, branches=3, texts=TALK):
    """A conversation and branches of it, each with a message of its own."""
    await memory.append("a", [Message.user(text) for text in texts])
    names = [f"b{number}" for number in range(branches)]
    for number, name in enumerate(names):
        await memory.branch(names[number - 1] if number % 2 else "a", len(texts) - 1, name)
        await memory.append(name, Message.user(f"Only here: automobile number {number}."))
    return names


# -- vectors ----------------------------------------------------------------------------------


@pytest.mark.requirement("B4")
async def test_a_branch_is_recalled_as_well_as_its_source_at_once(url, monkeypatch):
    monkeypatch.setattr(limits, "VECTORS_COPIED", 2)
    embedder = Senses()
    async with opened(url, embedder) as memory:
        await memory.append("a", [Message.user(text) for text in TALK])
        await memory.embed("a")
        asked = len(embedder.texts)
        await memory.branch("a", 2, "b")
        assert embedder.texts[asked:] == []
        for question, seq in (("hound", 0), ("vehicle", 1), ("rain", 2)):
            there, here = await memory.recall("a", question), await memory.recall("b", question)
            assert [hit.seq for hit in here] == [seq] == [hit.seq for hit in there]
            assert here.degraded == ()
        assert await memory.embed("b") == 0


async def test_a_branch_gets_its_vectors_without_the_embedder(url):
    """It may take seconds to load, or be down; and the source may have no vectors."""
    embedder = Senses()
    async with opened(url, embedder) as memory:
        for name in ("a", "bare"):
            await memory.append(name, [Message.user(text) for text in TALK])
        elsewhere = EmbeddingIndexer(memory.store, Senses(), "default")
        await elsewhere.embed(Key("default", "a"))
        await memory.branch("a", 2, "b")
        await memory.branch("bare", 2, "c")
        assert embedder.texts == []
        assert [hit.seq for hit in await memory.recall("b", "vehicle")] == [1]
        assert [await memory.embed(name) for name in ("b", "c")] == [0, 3]


async def test_a_branch_gets_the_vectors_of_an_embedder_that_is_not_through(url):
    """Those of its older version are there, too, and complete."""
    async with opened(url, Senses(extra=1)) as memory:
        await memory.append("a", [Message.user(text) for text in TALK])
        await EmbeddingIndexer(memory.store, Senses(), "default").embed(Key("default", "a"))
        newer = EmbeddingIndexer(memory.store, Senses(extra=1), "default")
        page, model = (await memory.read("a", last_seq=2)), "senses-1/6"
        vectors = [Vector(entry.seq, 0, b"x" * 10) for entry in page]
        await memory.store.put_vectors(Key("default", "a"), model, vectors, first_seq=0, next_seq=3)
        await memory.branch("a", 3, "b")
        reached = {"senses-1/5": 4, "senses-1/6": 3}
        assert await memory.store.embedders(Key("default", "b")) == reached
        assert await newer.embed(Key("default", "b")) == 1
        await memory.branch("a", 1, "c")
        assert await memory.store.embedders(Key("default", "c")) == {"senses-1/6": 2}


async def test_the_words_of_a_branch_are_found_at_once(url):
    async with opened(url, "words") as memory:
        await memory.append("a", [Message.user(text) for text in TALK])
        await memory.embed("a")
        await memory.branch("a", 3, "b")
        for question in ("puppies", "storms coming", "wage"):
            there, here = await memory.recall("a", question), await memory.recall("b", question)
            assert [(hit.seq, hit.score) for hit in here] == [(h.seq, h.score) for h in there]


async def test_a_source_that_is_partly_embedded_gives_what_it_has(url):
    embedder = Senses()
    async with opened(url, embedder) as memory:
        await memory.append("a", [Message.user(text) for text in TALK[:2]])
        await memory.embed("a")
        await memory.append("a", [Message.user(text) for text in TALK[2:]])
        await memory.branch("a", 3, "b")
        hits = await memory.recall("b", "vehicle")
        assert [hit.seq for hit in hits] == [1]
        assert hits.degraded == (
            "2 messages have no vectors yet and are searched by their words only",
        )
        assert (await memory.recall(None, "vehicle")).degraded == (
            "4 messages have no vectors yet and are searched by their words only",
        )
        assert await memory.embed("b") == 2
        assert (await memory.recall("b", "vehicle")).degraded == ()


async def test_an_embedder_that_hangs_does_not_hold_up_a_branch(url, monkeypatch):
    class Hanging(Senses):
        async def embed(self, texts):
            await asyncio.Event().wait()

    monkeypatch.setattr(limits, "EMBED_SECONDS", 0.01)
    async with opened(url, Hanging()) as memory:
        await memory.append("a", [Message.user(text) for text in TALK])
        assert (await memory.branch("a", 3, "b")).entries == 4
        hits = await memory.recall("b", "puppy")
        assert [hit.seq for hit in hits] == [0]
        (why,) = hits.degraded
        assert why.startswith("the embedder failed")


async def test_a_context_says_that_old_messages_are_not_embedded_yet(url):
    async with opened(url, Senses()) as memory:
        old = [Message.user(f"{TALK[i % 4]} {i} " + "and so on " * 20) for i in range(60)]
        await memory.append("a", old)
        await memory.embed("a")
        context = await memory.context("a", 1_000, "hound", fold=False)
        assert not [why for why in context.degraded if "vectors" in why]
        await memory.append("a", Message.user("hound"))  # the newest never has one yet
        context = await memory.context("a", 1_000, "hound", fold=False)
        assert not [why for why in context.degraded if "vectors" in why]
        await memory.append("late", old)
        context = await memory.context("late", 1_000, "hound", fold=False)
        assert [why for why in context.degraded if why.endswith("searched by their words only")]


# -- copies -----------------------------------------------------------------------------------


@pytest.mark.requirement("B4")
async def test_a_message_that_branches_share_is_found_once(url):
    async with opened(url, Senses()) as memory:
        names = await family(memory)
        for name in ("a", *names):
            await memory.embed(name)
        hits = await memory.recall(None, "storm")
        assert places(hits) == [("a", 2, tuple(names))]
        hits = await memory.recall(None, "vehicle", limit=4)  # by meaning only
        assert {hit.message.text for hit in hits} >= {TALK[1]}
        assert len({hit.message.text for hit in hits}) == len(hits) == 4
        for name in ("a", *names):
            assert len(await memory.recall(name, "storm")) == 1
        hits = await memory.recall(None, "storm", tokens=400)
        assert len({hit.message.text for hit in hits}) == len(hits)
        await memory.erase("a")
        ((name, seq, others),) = places(await memory.recall(None, "storm"))
        assert (seq, {name, *others}) == (2, set(names))


async def test_of_copies_in_a_project_only_those_in_it_are_named(url):
    async with opened(url) as memory:
        await family(memory, branches=2)
        await memory.describe("b1", project="p")
        assert places(await memory.recall(None, "storm", project="p")) == [("b1", 2, ())]


async def test_ten_hits_are_ten_messages_however_many_branches_there_are(url, monkeypatch):
    monkeypatch.setattr(limits, "RECALL_LEAST", 12)
    async with opened(url) as memory:
        texts = [f"The rope is number {number}." for number in range(12)]
        await memory.append("a", [Message.user(text) for text in texts])
        for number in range(8):
            await memory.branch("a", 11, f"b{number}")
        hits = await memory.recall(None, "rope", limit=10)
        assert len({hit.message.text for hit in hits}) == len(hits) == 10
        assert all(len(hit.also_in) == 8 for hit in hits)


async def test_what_only_claims_to_be_a_copy_is_not_one(url):
    """Metadata is anyone's to write, and a name can be in use again."""
    async with opened(url) as memory:
        await memory.append("a", [Message.user("a storm"), Message.user("a rope")])
        await memory.append("b", [Message.user("another storm"), Message.user("no")])
        await memory.describe("b", metadata={"branch": {"of": "a", "at": 1}})
        await memory.describe("a", metadata={"branch": {"of": "b", "at": 1}})
        assert {place[:2] for place in places(await memory.recall(None, "storm"))} == {
            ("a", 0),
            ("b", 0),
        }
        for wrong in ("x", {"of": 1}, {"of": "a", "at": "1"}, {"of": "a", "at": -1}, None):
            await memory.describe("b", metadata={"branch": wrong})
            assert len(await memory.recall(None, "storm")) == 2


def test_the_command_names_the_branches(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/x.db"

    async def fill():
        async with opened(url) as memory:
            await family(memory, branches=1)

    asyncio.run(fill())
    command = ["search", "storm", "--store", url, "--embedder"]
    assert main([*command, "none"]) == 0
    assert "also in b0" in capsys.readouterr().out
    assert main([*command, "words", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["also_in"] == ["b0"]


def test_hits_are_a_list():
    assert Hits() == []
    assert Hits((), ["why"]).degraded == ("why",)
