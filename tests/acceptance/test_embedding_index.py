"""Search by meaning: vectors are created in the background by any process, and no call waits."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline import Memory, Message
from firnline.embedding import MiniLM
from firnline.embedding.quantize import pack, split_tokens, unpack
from firnline.errors import ModelError
from firnline.log import limits
from firnline.log.entry import Key, Scope
from firnline.log.message import ToolCall
from firnline.models.guard import Backoff
from firnline.protocols import Vector
from firnline.recall.passages import passages
from firnline.recall.vectors import NearestVectors
from firnline.store import RamStore
from support.synonym_embedder import Senses

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)
CHAT = Key("default", "c")


class Hanging(Senses):
    async def embed(self, texts):
        await asyncio.Event().wait()


class Gated(Senses):
    """Embeds a page for each time that it is let."""

    def __init__(self, name="senses-2"):
        super().__init__(name)
        self.gate, self.pages = asyncio.Semaphore(0), 0

    async def embed(self, texts):
        if len(texts) > 1:  # not for a question
            await self.gate.acquire()
            self.pages += 1
        return await super().embed(texts)


WRONG = {
    "a model error": ModelError("out of order"),
    "any other error": RuntimeError("a mistake in it"),
    "NaN": lambda texts: [[float("nan")] * 5 for _ in texts],
    "infinite": lambda texts: [[float("inf"), 1.0] for _ in texts],
    "too few": lambda texts: [[1.0, 2.0]] * (len(texts) - 1),
    "too many": lambda texts: [[1.0, 2.0]] * (len(texts) + 1),
    "empty": lambda texts: [[] for _ in texts],
    "of different sizes": lambda texts: [[1.0] * (len(text) % 5) for text in texts],
    "no numbers": lambda texts: [["a", "b"] for _ in texts],
    "nothing": lambda _: None,
}


class Broken(Senses):
    """Fails in one way or another until it is repaired."""

    def __init__(self, wrong):
        super().__init__()
        self.wrong = wrong

    async def embed(self, texts):
        if self.wrong is None:
            return await super().embed(texts)
        if isinstance(self.wrong, Exception):
            raise self.wrong
        return self.wrong(texts)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(limits, "EMBED_IDLE_SECONDS", 0.01)
    monkeypatch.setattr(
        "firnline.engine.embedding_indexer.Backoff", lambda: Backoff(first=0.01, most=0.05)
    )


def opened(url, embedder, **options):
    return Memory.open(url, clock=lambda: NOW, embedder=embedder, **options)


@pytest.fixture
async def store():
    """An open store for memories that are not opened themselves."""
    store = RamStore(clock=lambda: NOW)
    await store.open()
    yield store
    await store.close()


async def until(true, seconds=60.0):
    """Wait for what happens in the background."""
    end = time.monotonic() + seconds
    while not await true():
        assert time.monotonic() < end, "it does not happen"
        await asyncio.sleep(0.01)


def embedded(memory, model="senses-1/5", entries=1, name="c"):
    async def true():
        return await memory.store.embedded(Key("default", name), model) >= entries

    return until(true)


async def seqs(memory, question, name="c", **more):
    return [hit.seq for hit in await memory.recall(name, question, **more)]


async def rows(memory, name="c", model="senses-1/5"):
    return await memory.store.vectors(Key("default", name), model, 0, 10**6)


async def check_vectors(memory, embedder, name="c"):
    """Each entry has exactly the vectors that the embedder makes of it."""
    wanted = {
        (entry.seq, part): embedder.vector(text)
        for entry in await memory.read(name)
        for part, text in enumerate(passages(entry.message))
    }
    found = await rows(memory, name, f"{embedder.name}/{5 + embedder.extra}")
    assert [(row.seq, row.part) for row in found] == sorted(wanted)
    for row in found:
        vector = np.array(wanted[row.seq, row.part])
        assert np.allclose(unpack(row.body), vector / np.linalg.norm(vector), atol=0.01)


TALK = ["The puppy sleeps.", "My automobile is red.", "A storm is coming.", "Wages are low."]
FILLER = [f"Something else altogether, number {number}." for number in range(20)]


def messages(texts):
    return [Message.user(text) for text in texts]


# -- by meaning -------------------------------------------------------------------------------


@pytest.mark.requirement("B4")
async def test_synonyms_are_found(url):
    async with opened(url, Senses()) as memory:
        await memory.append("c", messages([*FILLER, *TALK]))
        await embedded(memory, entries=24)
        assert await seqs(memory, "dog") == [20]
        assert await seqs(memory, "vehicle") == [21]
        (hit,) = await memory.recall("c", "money")
        assert hit.message.text == "Wages are low."
        assert hit.parts["meaning"] > 0
        assert hit.score == pytest.approx(sum(hit.parts.values()))
        await memory.archive("c", keep=0)
        assert await seqs(memory, "vehicle") == [21], "archived or not"
    async with opened(url, None) as memory:
        assert await seqs(memory, "vehicle") == [], "no embedder, no meaning"


@pytest.mark.requirement("C9")
async def test_meaning_holds_across_conversations_and_ends_at_the_tenant(store):
    async with Memory(store, tenant="other", embedder=Senses()) as other:
        await other.append("theirs", messages(TALK))
        assert await other.embed("theirs") == 4
        memory = Memory(store, embedder=Senses())
        for number in range(5):
            await memory.append(f"c{number}", messages([f"{number}", TALK[number % 4]]))
            await memory.embed(f"c{number}")
        hits = await memory.recall(None, "hound", limit=50)
        assert {(hit.conversation, hit.seq) for hit in hits} == {("c0", 1), ("c4", 1)}
        assert await memory.recall("theirs", "hound") == []


async def test_meaning_is_found_behind_a_thousand_conversations_too(store, monkeypatch):
    monkeypatch.setattr(limits, "PAGE_MAX", 3)  # in place of a thousand
    async with Memory(store, embedder=Senses()) as memory:
        for number in range(8):
            await memory.append(f"c{number}", messages([TALK[0] if number == 7 else "nothing"]))
            await memory.embed(f"c{number}")
        assert [hit.conversation for hit in await memory.recall(None, "hound", limit=3)] == ["c7"]


async def test_a_filter_leaves_the_nearest_of_what_it_leaves(url):
    """Hundreds of nearer ones outside the filter do not hide what is inside it."""
    async with opened(url, Senses()) as memory:
        old = [Message.user("puppy hound", created_at=NOW - timedelta(days=9))] * 200
        await memory.append("c", old)
        await memory.append("c", [Message.assistant("A hound in the rain.", created_at=NOW)])
        await memory.append("c", messages(FILLER))
        await memory.embed("c")
        assert 200 not in await seqs(memory, "dog", limit=40)
        assert await seqs(memory, "dog", roles=["assistant"]) == [200]
        day = timedelta(days=1)
        assert await seqs(memory, "dog", since=NOW - day, until=NOW + day, limit=1) == [200]


async def test_projects_and_topics_hold_for_meaning_and_dates_too(url):
    async with opened(url, Senses(), worker=False) as memory:
        await memory.append("c", messages(TALK))
        await memory.describe("c", project="p")
        await memory.embed("c")
        question = "hound, said today"
        assert 0 in await seqs(memory, question, project="p")
        for how in ({"limit": 5}, {"tokens": 200}):
            assert await memory.recall("c", question, project="q", **how) == []
            assert await memory.recall(None, question, project="q", **how) == []
        topics = [topic.topic_id for topic in await memory.topics("c")]
        for topic in topics:
            members = {entry.seq for entry in await memory.topic_history("c", topic)}
            found = await seqs(memory, question, topic=topic, tokens=200)
            assert set(found) <= members


async def test_recalls_own_results_are_not_embedded(url):
    embedder = Senses()
    async with opened(url, embedder, worker=False) as memory:
        await memory.append("c", messages(TALK))
        result = await memory.tools("c")["search_history"](query="puppy")
        asked = ToolCall.of("1", "search_history", {"query": "puppy"})
        await memory.append("c", Message("assistant", None, tool_calls=(asked,)))
        await memory.append("c", Message.tool(result, tool_call_id="1"))
        await memory.append("c", Message.tool("the dog of another tool", tool_call_id="2"))
        await memory.append("c", Message.user("   "))
        assert await memory.embed("c") == 8
        assert {row.seq for row in await rows(memory)} == {0, 1, 2, 3, 6}
        assert not any("recalled" in text for text in embedder.texts)


async def test_speakers_are_embedded_with_what_they_say(url):
    embedder = Senses()
    async with opened(url, embedder) as memory:
        await memory.append("c", Message.user("I like tea.", name="Ana"))
        await memory.embed("c")
        assert "Ana: I like tea." in embedder.texts


# -- nothing waits for it ---------------------------------------------------------------------


async def test_append_returns_and_close_too_while_the_embedder_hangs_for_ever(
    url, monkeypatch, caplog
):
    monkeypatch.setattr(limits, "EMBED_SECONDS", 0.05)
    memory = opened(url, Hanging())
    async with asyncio.timeout(60):
        async with memory:
            for text in TALK:
                await memory.append("c", Message.user(text))
            await asyncio.sleep(0.1)  # it hangs by now
            await memory.append("c", Message.user("And a puppy more."))
            assert set(await seqs(memory, "puppy")) == {0, 4}
            assert "search by words only: the embedder failed" in caplog.text
            context = await memory.context("c", 500, question="puppy")
            assert context.tokens <= 500


async def test_closing_does_not_wait_for_an_embedder_that_cannot_be_cancelled(url, monkeypatch):
    monkeypatch.setattr("firnline.engine.embedding_indexer.EMBED_STOP_SECONDS", 0.05)
    let_go = asyncio.Event()

    class Stubborn(Senses):
        cancelled = 0

        async def embed(self, texts):
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    self.cancelled += 1
            return await super().embed(texts)

    embedder = Stubborn()
    try:
        async with asyncio.timeout(60):
            async with opened(url, embedder) as memory:
                await memory.append("c", messages(TALK))
                await asyncio.sleep(0.05)
        assert embedder.cancelled >= 1, "closing has cancelled it, and has not waited for it"
    finally:
        let_go.set()


async def test_questions_do_not_wait_again_and_again_for_an_embedder_that_hangs(url, monkeypatch):
    monkeypatch.setattr(limits, "EMBED_SECONDS", 0.02)
    asked = []

    class Counting(Hanging):
        async def embed(self, texts):
            asked.append(texts)
            await super().embed(texts)

    async with opened(url, Counting(), worker=False) as memory:
        await memory.append("c", messages(TALK))
        for _ in range(10):
            assert await seqs(memory, "storm") == [2]
        assert len(asked) == 3, "then it is left alone for a while"


@pytest.mark.parametrize("wrong", WRONG)
async def test_while_the_embedder_fails_words_are_enough_and_the_log_says_so(url, wrong, caplog):
    caplog.set_level(logging.WARNING, "firnline.recall")
    embedder = Broken(WRONG[wrong])
    async with opened(url, embedder) as memory:
        await memory.append("c", messages(TALK))
        assert await seqs(memory, "storm") == [2]
        assert "search by words only: the embedder failed: " in caplog.text
        with pytest.raises(ModelError) as error:
            await memory.embed("c")
        if not isinstance(embedder.wrong, ModelError):
            assert "the embedder senses-1" in str(error.value)
        assert await memory.recall("c", "storm", tags=["t"]) == []

        async def told():
            return "messages are not embedded: " in caplog.text

        await until(told)
        assert await memory.store.embedded(CHAT, "senses-1/5") == 0
        assert await rows(memory) == []
        embedder.wrong = None  # repaired: it continues by itself
        await embedded(memory, entries=4)
        assert await seqs(memory, "shower") == [2]
        await check_vectors(memory, embedder)


async def test_one_conversation_that_fails_does_not_hold_up_the_others(url):
    class Choosy(Senses):
        async def embed(self, texts):
            if any("poison" in text for text in texts):
                raise ModelError("I do not read that")
            return await super().embed(texts)

    async with opened(url, Choosy(), worker=False) as memory:
        await memory.append("first", Message.user("poison"))  # by the clock all are as new
        for number in range(30):
            await memory.append(f"c{number}", messages(TALK))
        async with (
            opened(url, Choosy())
            if url != "memory:"
            else Memory(memory.store, embedder=Choosy()) as worker
        ):
            await worker.append("c0", Message.user("go"))
            for number in range(30):
                await embedded(memory, entries=4, name=f"c{number}")
            assert await memory.store.embedded(Key("default", "first"), "senses-1/5") == 0


async def test_closing_closes_the_embedder_whatever_happened_before(url):
    embedder = Broken(RuntimeError("no"))
    async with opened(url, embedder) as memory:
        await memory.append("c", messages(TALK))
        await asyncio.sleep(0.05)
    assert embedder.closed


# -- other processes continue it --------------------------------------------------------------


async def test_what_was_not_embedded_is_embedded_by_the_next_opener(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url, None) as memory:
        for name in ("a", "b", "c"):
            await memory.append(name, messages(TALK))
    async with opened(url, Senses(), worker=False) as memory:
        assert await seqs(memory, "hound") == []
        await asyncio.sleep(0.1)
        assert await memory.store.embedded(CHAT, "senses-1/5") == 0, "not where none may work"
    async with opened(url, Senses()) as memory:  # nothing is appended
        for name in ("a", "b", "c"):
            await embedded(memory, entries=4, name=name)
        assert await seqs(memory, "hound") == [0]


async def test_entries_of_others_are_embedded_by_the_searching_process(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    memory, looked = opened(url, Senses()), asyncio.Event()
    look = memory.store.unembedded

    async def noted(*given, **more):
        found = await look(*given, **more)
        looked.set()
        return found

    memory.store.unembedded = noted
    async with memory, opened(url, None) as other:
        await looked.wait()  # what it looks for when it is opened, it has not found
        await other.append("c", messages(TALK))
        await asyncio.sleep(0.1)
        assert await memory.store.embedded(CHAT, "senses-1/5") == 0
        await seqs(memory, "hound")
        await embedded(memory, entries=4)
        assert await seqs(memory, "hound") == [0]


async def test_appends_do_not_walk_through_all_conversations_each_time(url, monkeypatch):
    """While that is slow, entries appended here are embedded without it."""
    monkeypatch.setattr("firnline.engine.embedding_indexer._REST", 100)
    async with opened(url, Senses()) as memory:
        look, looks = memory.store.unembedded, []

        async def slow(*given, **more):
            looks.append(given)
            await asyncio.sleep(0.1)
            return await look(*given, **more)

        monkeypatch.setattr(memory.store, "unembedded", slow)
        for number in range(10):
            await memory.append(f"c{number}", messages(TALK))
            await embedded(memory, entries=4, name=f"c{number}")
            await asyncio.sleep(0.03)
        assert len(looks) <= 2


async def test_what_others_left_is_looked_for_again_after_a_rest(tmp_path, monkeypatch):
    monkeypatch.setattr("firnline.engine.embedding_indexer._REST", 5)
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url, Senses()) as memory, opened(url, None) as other:
        look = memory.store.unembedded

        async def slow(*given, **more):
            await asyncio.sleep(0.1)
            return await look(*given, **more)

        monkeypatch.setattr(memory.store, "unembedded", slow)
        await memory.append("mine", messages(TALK))
        await embedded(memory, entries=4, name="mine")
        await asyncio.sleep(0.2)  # it has looked, and rests
        await other.append("c", messages(TALK))
        await memory.append("mine", messages(TALK))  # the last event that this memory sees
        await embedded(memory, entries=4)
        await check_vectors(memory, Senses())


async def test_a_store_that_can_only_be_read_is_searched_and_left_alone(tmp_path, caplog):
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url, Senses(), worker=False) as memory:
        await memory.append("c", messages(TALK))
        await memory.embed("c")
        await memory.append("c", messages(["A late shower."]))
    embedder = Senses()
    async with opened(f"{url}?mode=ro", embedder) as memory:
        for _ in range(5):
            assert await seqs(memory, "hound") == [0]
            assert 4 in await seqs(memory, "shower")
            await asyncio.sleep(0.05)
    assert embedder.texts.count("A late shower.") <= 1, "it is not tried again and again"
    assert "not embedded" not in caplog.text


async def test_another_embedder_starts_over_while_search_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "EMBED_PAGE", 8)
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url, Senses()) as memory:
        await memory.append("c", messages([*TALK, *FILLER]))
        await embedded(memory, entries=24)
    second = Gated()
    async with opened(url, second) as memory:
        for done in (0, 8, 16):
            assert await memory.store.embedded(CHAT, "senses-2/5") == done
            assert len(await rows(memory)) == 24, "the old ones are kept until it is done"
            assert 2 in await seqs(memory, "storm"), "by words, at any time"
            assert await seqs(memory, "hound") == ([0] if done else []), "by meaning, so far"
            second.gate.release()
            await embedded(memory, "senses-2/5", done + 8)
        assert await rows(memory) == [], "now nobody asks for them"
        assert await memory.store.embedded(CHAT, "senses-1/5") == 0
        await check_vectors(memory, second)
        assert second.pages == 3
        # Those who still use the old one find by words, and make theirs again if they may.
    async with opened(url, Senses(), worker=False) as memory:
        assert await seqs(memory, "hound") == []
        assert await seqs(memory, "storm") == [2]


async def test_an_embedder_that_changes_its_dimension_starts_over(url):
    async with opened(url, Senses(), worker=False) as memory:
        await memory.append("c", messages(TALK))
        await memory.embed("c")
        wider = Memory(memory.store, embedder=Senses(extra=3), worker=False)
        await wider.append("c", Message.user("One more storm."))
        assert sorted(await seqs(wider, "storm")) == [2, 4], "by words"
        assert await wider.embed("c") == len(TALK) + 1
        await check_vectors(wider, Senses(extra=3))
        assert await rows(memory) == [], "nobody can compare them any more"
        assert sorted(await seqs(wider, "storm")) == [2, 4]


async def test_progress_is_reported_and_a_second_run_has_nothing_to_do(url, monkeypatch):
    monkeypatch.setattr(limits, "EMBED_PAGE", 10)
    told = []
    async with opened(url, Senses(), worker=False) as memory:
        await memory.append("c", messages([*TALK, *FILLER]))
        assert await memory.embed("c", progress=lambda *at: told.append(at)) == 24
        assert told == [(10, 24), (20, 24), (24, 24)]
        assert await memory.embed("c") == 0
        assert await memory.embed("unknown") == 0
        await check_vectors(memory, Senses())


async def test_concurrent_embedding_makes_one_set(url, monkeypatch):
    monkeypatch.setattr(limits, "EMBED_PAGE", 3)
    async with opened(url, Senses(), worker=False) as memory:
        await memory.append("c", messages([*TALK, *FILLER]))
        others = [Memory(memory.store, embedder=Senses(), worker=False) for _ in range(4)]
        done = await asyncio.gather(*(m.embed("c") for m in [memory, *others]))
        assert sum(done) == 24
        await check_vectors(memory, Senses())


# -- real processes ---------------------------------------------------------------------------

PROCESS = """
import asyncio, sys
sys.path.insert(0, {folder!r})
import os
from firnline import Memory
from firnline.log import limits
from support.synonym_embedder import Senses

limits.EMBED_PAGE = 5

class Slow(Senses):
    async def embed(self, texts):
        Slow.pages = getattr(Slow, "pages", 0) + 1
        await asyncio.sleep({seconds} if Slow.pages <= {pages} else 3600)
        os.write(1, b"page\\n")
        return await super().embed(texts)

async def main():
    async with Memory.open({url!r}, embedder=Slow(), worker=False) as memory:
        os.write(1, b"open\\n")
        sys.stdin.readline()
        await memory.embed("c")

asyncio.run(main())
"""


def process(url, seconds, pages=1_000):
    """An embedder that embeds so many pages, and then stops."""
    folder = str(Path(__file__).parents[1])
    code = PROCESS.format(folder=folder, url=url, seconds=seconds, pages=pages)
    started = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert started.stdout.readline() == b"open\n"
    return started


async def test_concurrent_embedding_of_one_file_ends_with_one_complete_set(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url, None) as memory:
        await memory.append("c", messages([*TALK, *FILLER, "puppy. " * 800]))
    both = [process(url, 0.005) for _ in range(3)]
    for one in both:
        one.stdin.write(b"go\n")
        one.stdin.flush()
    for one in both:
        out, _ = one.communicate(timeout=60)
        assert one.returncode == 0
        assert out.count(b"page") >= 1
    async with opened(url, Senses(), worker=False) as memory:
        assert await memory.embed("c") == 0, "nothing is left"
        await check_vectors(memory, Senses())


async def test_killed_in_the_middle_nothing_is_lost_and_the_next_one_continues(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    texts = [f"{TALK[n % 4]} {n}" for n in range(100)]
    async with opened(url, None) as memory:
        await memory.append("c", messages(texts))
    done = 0
    for pages in (2, 1, 5):
        one = process(url, 0.01, pages + 4)  # it must not come to its end before it is killed
        one.stdin.write(b"go\n")
        one.stdin.flush()
        for _ in range(pages + 1):  # the first is for the dimension
            assert one.stdout.readline() == b"page\n"
        one.send_signal(signal.SIGKILL)
        one.communicate(timeout=60)
        async with opened(url, Senses(), worker=False) as memory:
            now = await memory.store.embedded(CHAT, "senses-1/5")
            assert done + (pages - 1) * 5 <= now < 100
            assert {row.seq for row in await rows(memory)} == set(range(now)), "whole pages"
            done = now
            assert (await memory.verify("c")).ok
    async with opened(url, Senses()) as memory:
        await embedded(memory, entries=100)
        await check_vectors(memory, Senses())
        assert not [f for f in await memory.check(thorough=True) if f.state == "broken"]


# -- nearest ----------------------------------------------------------------------------------


def unit(matrix):
    return matrix / np.linalg.norm(matrix, axis=-1, keepdims=True)


async def stored(store, vectors, name="c", parts=None):
    """A conversation whose entries have these vectors; `parts` is how many each has."""
    memory = Memory(store, embedder=None)
    parts = parts or [1] * len(vectors)
    key = Key("default", name)
    for first in range(0, len(parts), 500):
        await memory.append(name, messages(["x"] * len(parts[first : first + 500])))
    places = [(seq, part) for seq, count in enumerate(parts) for part in range(count)]
    made = [Vector(*at, pack(list(map(float, v)))) for at, v in zip(places, vectors, strict=True)]
    assert await store.put_vectors(key, "m", made, first_seq=0, next_seq=len(parts))
    return key


def exact(vectors, question, parts):
    """The cosine of each entry: that of its best part."""
    cosines = vectors @ (question / np.linalg.norm(question))
    ends = np.cumsum(parts)
    return {seq: max(cosines[end - n : end]) for seq, (n, end) in enumerate(zip(parts, ends))}  # noqa: B905


@pytest.mark.parametrize("spread", [0.7, 1.5])
async def test_the_nearest_are_those_that_comparing_all_would_find(store, spread):
    rng = np.random.default_rng(7)
    count, dimension = 4_000, 384
    centres = rng.standard_normal((60, dimension))  # what is talked about
    said = centres[rng.integers(0, 60, count)] + spread * rng.standard_normal((count, dimension))
    vectors = unit(said)
    key, nearest = await stored(store, vectors), NearestVectors(store)
    shares = []
    for _ in range(30):
        question = unit(centres[rng.integers(60)] + spread * rng.standard_normal(dimension))
        found = await nearest.find(key, "m", question, 40)  # as many as a search asks for
        cosines = exact(vectors, question, [1] * count)
        best = sorted(cosines, key=lambda seq: -cosines[seq])[:20]
        shares.append(len(set(best) & set(list(found)[:20])) / 20)
        assert len(found) == 40
        assert list(found.values()) == sorted(found.values(), reverse=True)
        for seq, cosine in found.items():
            assert cosine == pytest.approx(cosines[seq], abs=0.01)
    assert np.mean(shares) >= 0.95, shares


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_of_few_vectors_none_is_missed(data):
    dimension = data.draw(st.sampled_from([1, 2, 3, 8, 63, 64, 65, 130]))
    parts = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=30))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    vectors = unit(rng.standard_normal((sum(parts), dimension)))
    question = rng.standard_normal(dimension) * data.draw(st.sampled_from([1e-3, 1.0, 1e3]))
    limit = data.draw(st.integers(1, 40))

    async def run():
        store = RamStore()
        await store.open()
        key = await stored(store, vectors, parts=parts)
        return await NearestVectors(store).find(key, "m", list(question), limit)

    found = asyncio.run(run())
    cosines = exact(vectors, question, parts)
    for seq, cosine in found.items():
        assert cosine == pytest.approx(cosines[seq], abs=0.02)
    if sum(parts) <= limit * 4:  # all of them are weighed
        assert len(found) == min(limit, len(parts))
        least = min(found.values())
        assert all(cosines[seq] <= least + 0.02 for seq in cosines if seq not in found)


async def test_new_vectors_are_found_at_once_and_none_twice(url, monkeypatch):
    monkeypatch.setattr(limits, "VECTOR_PAGE", 4)
    async with opened(url, Senses(), worker=False) as memory:
        for number in range(1, 8):
            await memory.append("c", messages([*TALK, "hound " * 400]))
            await memory.embed("c")
            found = await seqs(memory, "dog", limit=100)
            assert sorted(found) == sorted(seq for n in range(number) for seq in (5 * n, 5 * n + 4))
        known = list(memory._engine.recaller._near._known.values())
        assert len(known) == 1 or url.startswith("postgresql"), "pgvector may do without"
        for codes in known:
            assert len(codes.seqs) == len(await rows(memory))
            assert codes.next_seq == 35


async def test_vectors_that_arrive_during_a_read_are_not_read_twice(store):
    class Growing:
        """More is embedded between two reads."""

        def __init__(self):
            self.late = Vector(2, 0, pack([0.0, 1.0]))

        async def embedded(self, *_):
            return 2

        async def vectors(self, key, model, first_seq, limit):
            return [*await store.vectors(key, model, first_seq, limit), self.late]

        async def vectors_at(self, *given):
            return await store.vectors_at(*given)

    key = await stored(store, unit(np.array([[1.0, 0.1], [0.5, 1.0]])))
    nearest = NearestVectors(Growing())
    for _ in range(3):
        assert set(await nearest.find(key, "m", [1.0, 0.0], 10)) == {0, 1}
        assert len(nearest._known[key, "m"].seqs) == 2


async def test_codes_of_a_restarted_conversation_are_detected_as_stale(store):
    vectors = unit(np.random.default_rng(11).standard_normal((200, 64)))
    key, nearest = await stored(store, vectors), NearestVectors(store)
    for seq in (0, 70, 199):
        assert list(await nearest.find(key, "m", list(vectors[seq]), 1)) == [seq]
    for anew in (vectors[::-1], np.concatenate([vectors[100:], vectors]), vectors[:50]):
        await Memory(store, embedder=None).erase("c")  # another process, without a notification
        await stored(store, anew)
        for seq in (0, 20, len(anew) - 1):
            best = next(iter((await nearest.find(key, "m", list(anew[seq]), 1)).values()))
            assert best == pytest.approx(1.0, abs=0.01)


async def test_codes_are_kept_within_bounds_and_those_not_used_longest_go_first(store):
    rng = np.random.default_rng(3)
    vectors = unit(rng.standard_normal((100, 64)))
    keys = [await stored(store, vectors, f"c{number}") for number in range(5)]
    nearest = NearestVectors(
        store, bytes_max=100 * 16 * 3
    )  # a number and a word each: three of them
    question = list(vectors[0])
    for key in (*keys[:3], keys[0], *keys[3:]):
        assert 0 in await nearest.find(key, "m", question, 1)
        assert sum(codes.size for codes in nearest._known.values()) <= 100 * 16 * 3
    assert [key for key, _ in nearest._known] == [keys[0], keys[3], keys[4]]
    small = NearestVectors(store, bytes_max=1)
    for key in keys:
        assert 0 in await small.find(key, "m", question, 1), "one is always kept"
        assert len(small._known) == 1
    nearest.forget(keys[0])
    assert [key for key, _ in nearest._known] == [keys[3], keys[4]]


# -- several conversations at once ----------------------------------------------------------------


ANYWHERE = Scope()


async def found_in(nearest, question, scope=ANYWHERE, limit=1):
    return [
        (near.conversation, near.seq)
        for near in await nearest.find_in("default", "m", list(question), limit, scope)
    ]


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_one_scan_finds_what_asking_each_conversation_would(data):
    sizes = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=12))
    dimension = data.draw(st.sampled_from([3, 64, 65]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    limit = data.draw(st.integers(1, 90))

    async def run():
        store = RamStore()
        await store.open()
        nearest, question = NearestVectors(store), rng.standard_normal(dimension)
        exact_cosines = {}
        for number, size in enumerate(sizes):
            vectors = unit(rng.standard_normal((size, dimension)))
            key = await stored(store, vectors, f"c{number}")
            for seq, cosine in exact(vectors, question, [1] * size).items():
                exact_cosines[key.conversation, seq] = cosine
        found = await nearest.find_in("default", "m", list(question), limit, Scope())
        if len(exact_cosines) <= 2 * limit:  # all of them are weighed
            assert len(found) == min(limit, len(exact_cosines))
            least = min(near.cosine for near in found)
            there = {near[:2] for near in found}
            assert all(exact_cosines[at] <= least + 0.02 for at in exact_cosines.keys() - there)
        for near in found:
            assert near.cosine == pytest.approx(exact_cosines[near[:2]], abs=0.02)
        assert [near.cosine for near in found] == sorted((n.cosine for n in found), reverse=True)

    asyncio.run(run())


async def test_what_changes_is_seen_by_the_scan_of_several_conversations(store):
    vectors = unit(np.random.default_rng(12).standard_normal((60, 64)))
    memory, nearest = Memory(store, embedder=None), NearestVectors(store)
    for number in range(3):
        await stored(store, vectors[20 * number : 20 * number + 10], f"c{number}")
    await memory.describe("c1", person="ana")
    for number in range(3):
        assert await found_in(nearest, vectors[20 * number]) == [(f"c{number}", 0)]
    assert await found_in(nearest, vectors[0], Scope(person="ana")) != [("c0", 0)]
    assert await found_in(nearest, vectors[25], Scope(person="ana")) == [("c1", 5)]
    assert await found_in(nearest, vectors[25], Scope(project="none")) == []
    # More is embedded, erased, and written anew by a process that tells nothing.
    await memory.append("c0", messages(["x"] * 10))
    late = [Vector(10 + n, 0, pack(list(map(float, vectors[10 + n])))) for n in range(10)]
    await store.put_vectors(Key("default", "c0"), "m", late, first_seq=10, next_seq=20)
    assert await found_in(nearest, vectors[15]) == [("c0", 15)]
    await memory.erase("c2")
    assert await found_in(nearest, vectors[40]) != [("c2", 0)]
    await memory.erase("c1")
    await stored(store, vectors[30:40], "c1")
    assert await found_in(nearest, vectors[30]) == [("c1", 0)]
    assert ("c1", 0) not in await found_in(nearest, vectors[20], limit=5)
    nearest.forget(Key("default", "c1"))
    (pool,) = (pool for at, pool in nearest._pools.items() if at[-2:] == (None, None))
    assert "c1" not in pool.ends
    assert len(pool.seqs) == 20


async def test_the_scan_of_several_conversations_asks_the_store_by_page_and_not_by_conversation(
    store, monkeypatch
):
    vectors = unit(np.random.default_rng(13).standard_normal((300, 64)))
    for number in range(100):
        await stored(store, vectors[3 * number : 3 * number + 3], f"c{number}")
    nearest, calls = NearestVectors(store), []
    assert await found_in(nearest, vectors[0]) == [("c0", 0)]
    for name in ("embedded", "vectors", "head", "conversations", "vectors_at"):
        read = getattr(store, name)
        monkeypatch.setattr(
            store, name, lambda *given, read=read, name=name: calls.append(name) or read(*given)
        )
    assert await found_in(nearest, vectors[200]) == [("c66", 2)]
    assert set(calls) <= {"vectors_at"}
    assert len(calls) <= 2


# -- gone, and elsewhere ----------------------------------------------------------------------


@pytest.mark.promise("erase-total")
async def test_an_erased_conversation_leaves_nothing_in_the_index(url, tmp_path):
    async with opened(url, Senses()) as memory:
        for name in ("c", "kept"):
            await memory.append(name, messages(TALK))
            await embedded(memory, entries=4, name=name)
            assert await seqs(memory, "hound", name) == [0]
        await memory.erase("c")
        assert await rows(memory) == []
        assert await memory.store.embedded(CHAT, "senses-1/5") == 0
        assert CHAT not in {key for key, _ in memory._engine.recaller._near._known}
        assert await seqs(memory, "hound") == []
        assert len(await rows(memory, "kept")) == 4
        await memory.append("c", messages(["Nothing at all.", "A vehicle."]))
        await embedded(memory, entries=2)
        assert await seqs(memory, "hound") == []
        assert await seqs(memory, "car") == [1]


async def test_a_conversation_that_others_erased_and_restarted_is_read_again(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url, Senses()) as memory, opened(url, Senses(), worker=False) as other:
        await memory.append("c", messages([*FILLER[:4], *TALK]))
        await embedded(memory, entries=8)
        assert await seqs(memory, "hound") == [4]
        await other.erase("c")
        await other.append("c", messages([*reversed(TALK), *FILLER]))
        await other.embed("c")
        assert await seqs(memory, "hound") == [3]
        assert await seqs(memory, "shower") == [1]


async def test_exports_and_backups_need_no_vectors(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url, Senses()) as memory:
        await memory.append("c", messages(TALK))
        await embedded(memory, entries=4)
        await memory.export(tmp_path / "chat.jsonl")
        await memory.backup(tmp_path / "copy.db")
    assert b"senses-1" not in (tmp_path / "chat.jsonl").read_bytes()
    async with opened("memory:", Senses()) as memory:
        await asyncio.sleep(0.1)
        await memory.import_(tmp_path / "chat.jsonl")
        assert await seqs(memory, "storm") == [2]
        await embedded(memory, entries=4)  # the search began it
        assert await seqs(memory, "hound") == [0]
    async with opened(f"sqlite:///{tmp_path}/copy.db", None) as memory:
        assert await seqs(memory, "storm") == [2]
    async with opened(f"sqlite:///{tmp_path}/copy.db", Senses(), worker=False) as memory:
        assert await seqs(memory, "hound") == [0], "a backup has them, though"


# -- the packaged model -----------------------------------------------------------------------

MINILM = "all-MiniLM-L6-v2-int8/384+tokens-1"
FACTS = [
    "We booked a room at the Miramar for the second week of May.",
    "My daughter is allergic to peanuts.",
    "The invoice of the plumber is still unpaid.",
    "I would rather take the train than fly.",
]
ASKED = {
    "What food must the kid avoid?": 1,
    "Which bill do I still owe?": 2,
    "Where will we stay on our holiday?": 0,
    "What is my favourite way of travelling?": 3,
}


def prose(words):
    """Many words that no question asks for."""
    line = "The committee then discussed the agenda of the previous quarter in some detail. "
    return (line * (words // len(line.split()) + 1))[: words * 7]


async def test_meaning_with_minilm(url):
    async with opened(url, "minilm", worker=False) as memory:
        await memory.append("c", messages([*FACTS, *FILLER]))
        assert await memory.embed("c") == 24
        for question, seq in ASKED.items():
            assert await seqs(memory, question, limit=1) == [seq], question
            assert seq in await seqs(memory, question, tokens=300), question
        made = await rows(memory, model=MINILM)
        assert {len(split_tokens(row.body)[0]) for row in made} == {388}


async def test_the_tokens_of_a_question_are_compared_with_those_of_the_best_entries(url):
    async with opened(url, "minilm", worker=False) as memory:
        await memory.append("c", messages([*FACTS, *FILLER]))
        await memory.embed("c")
        made = await rows(memory, model=MINILM)
        sizes = [len(split_tokens(row.body)[1]) for row in made]
        assert all(size > 2 for size in sizes), "two bytes a token"
        assert sum(sizes) / len(sizes) <= 150
        for question, seq in ASKED.items():
            hits = await memory.recall("c", question, tokens=2_000)
            nearest = max(hits, key=lambda hit: hit.parts["tokens"])
            assert nearest.seq == seq, question


async def test_codes_of_tokens_go_with_their_message(url):
    async with opened(url, "minilm", worker=False) as memory:
        await memory.append("c", messages([*FACTS, *FILLER]))
        await memory.embed("c")
        (before,) = [row for row in await rows(memory, model=MINILM) if row.seq == 1]
        await memory.erase_messages("c", 1, 1)
        assert all(row.seq != 1 for row in await rows(memory, model=MINILM))
        assert split_tokens(before.body)[1]
        hits = await memory.recall("c", "What food must the kid avoid?", tokens=2_000)
        assert all(hit.seq != 1 for hit in hits)


class Sentences:
    """MiniLM without the vectors of its tokens, as another embedder would be."""

    def __init__(self):
        self._whole = MiniLM()
        self.name, self.embed, self.close = self._whole.name, self._whole.embed, self._whole.close


async def test_without_token_codes_everything_works_by_words_and_sentence_vectors(url):
    async with opened(url, Sentences(), worker=False) as memory:
        await memory.append("c", messages([*FACTS, *FILLER]))
        await memory.embed("c")
        made = await rows(memory, model="all-MiniLM-L6-v2-int8/384")
        assert {len(row.body) for row in made} == {388}
        for question, seq in ASKED.items():
            hits = await memory.recall("c", question, tokens=2_000)
            assert hits[0].seq == seq, question
            assert not any("tokens" in hit.parts for hit in hits)
        renewed = Memory(memory.store, embedder=MiniLM())
        await renewed.embed("c")
        assert not await rows(memory, model="all-MiniLM-L6-v2-int8/384"), "made again with codes"
        assert len(await rows(memory, model=MINILM)) == 24


async def test_a_question_is_near_enough_to_its_answer_and_far_from_the_rest(url):
    async with opened(url, "minilm", worker=False) as memory:
        hotel = "Our hotel is the Miramar, room 204; it costs 120 euros."
        await memory.append("c", messages([hotel, "My script fails with KeyError: 'user_id'."]))
        await memory.embed("c")
        for question in ("Where will we stay?", "where do we sleep?"):
            assert await seqs(memory, question) == [0], question
        for question in ("zebra", "Who wrote Hamlet?", "What is the capital of Mongolia?"):
            assert await seqs(memory, question) == [], question


async def test_the_end_of_a_message_of_5000_words_is_found_by_meaning(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    long = f"{prose(5_000)} Also, the kid must not eat peanuts. That is all."
    assert len(long.split()) > 5_000
    async with opened(url, "minilm", worker=False) as memory:
        await memory.append("c", messages(["Hello.", long, "Goodbye."]))
        await memory.embed("c")
        parts = [row.part for row in await rows(memory, model=MINILM)]
        assert max(parts) < limits.PASSAGES_MAX
        (hit,) = await memory.recall("c", "Is the daughter allergic to nuts?", limit=1)
        assert hit.seq == 1
        assert not hit.parts.get("words")
        assert hit.parts["meaning"] > 0


def test_long_messages_are_embedded_in_passages_that_hold_all_their_words():
    for words in (100, 140, 300, 3_000):
        message = Message.user(prose(words), name="Ana")
        found = passages(message)
        assert all(part.startswith("Ana: ") for part in found)
        assert all(len(part) <= limits.PASSAGE_CHARS + len("Ana: ") for part in found)
        said = " ".join(part.removeprefix("Ana: ") for part in found)
        assert said.split() == message.text.split()
    for text in ("x" * 100_000, "東京に行きたい。" * 20_000, "a\n" * 50_000, " . " * 9_000):
        found = passages(Message.user(f"first {text} last"))
        assert 1 <= len(found) <= limits.PASSAGES_MAX
        assert found[0].startswith("first")
        assert found[-1].endswith("last")
        assert all(0 < len(part) <= limits.PASSAGE_CHARS for part in found)
    assert passages(Message.user(" \n ")) == []


@pytest.mark.default_embedder
async def test_the_installed_model_is_used_unless_an_embedder_or_none_is_given(url):
    async with Memory.open(url) as memory:
        await memory.append("c", messages([*FACTS, *FILLER]))
        await embedded(memory, MINILM, 24)  # in the background
        assert await seqs(memory, "What food must the kid avoid?", limit=1) == [1]
        words = Memory(memory.store, embedder=None)
        assert await seqs(words, "What food must the kid avoid?") == []
        assert await words.embed("c") == 0


LOADS = """
import os, sys, time
if "control" in sys.argv:
    import onnxruntime
from firnline.embedding.onnx import Session
assert len(Session.load().texts([[101, 7592, 102]])[0]) == 384
time.sleep(0.3)
links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
print([os.readlink(link) for link in links if os.path.islink(link)])
"""


def _loaded(folder, *arguments):
    folder.mkdir()
    places = dict.fromkeys(("TMPDIR", "HOME", "XDG_CACHE_HOME"), str(folder))
    kept = {k: v for k, v in os.environ.items() if k not in ("ORT_DISABLE_TELEMETRY", "TEMP")}
    done = subprocess.run(
        [sys.executable, "-c", LOADS, *arguments],
        env=kept | places,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout, sorted(path.name for path in folder.rglob("*"))


@pytest.mark.promise("offline")
def test_onnxruntime_is_loaded_without_its_telemetry(tmp_path):
    open_files, left = _loaded(tmp_path / "ours")
    assert left == []
    assert "socket" not in open_files
    assert "onnxruntime.db" not in open_files
    _, left = _loaded(tmp_path / "theirs", "control")
    if ".ses" not in left:
        pytest.skip("this build of onnxruntime has no telemetry, so there is nothing to see")
