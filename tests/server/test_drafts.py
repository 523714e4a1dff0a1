"""An answer that is being streamed is stored once, complete or interrupted: whoever comes first."""

import asyncio
import os
import signal
import time
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx2
import pytest

from firnline import Memory, Message
from firnline.errors import ConflictError
from firnline.log.message import utc_now
from firnline.server import drafts
from firnline.server.drafts import INTERRUPTED, Drafts
from firnline.store.sqlite.store import SqliteStore
from firnline.testing import ModelServer
from support.live_server import Process, free_port, running

MODEL = "gpt-4o-mini"
ANSWER = " ".join(f"word{n}" for n in range(8))
LAST = "word7"
TORTURE = bool(os.environ.get("FIRNLINE_TORTURE"))


@asynccontextmanager
async def another_server(url, clock=utc_now):
    """The drafts as another server of the same store sees them."""
    store = SqliteStore(url.removeprefix("sqlite:///"), clock=clock)
    async with Memory(store, embedder=None, worker=False) as memory:

        async def memory_of(_):
            return memory

        yield Drafts(memory, memory_of), memory


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/drafts.db"


@pytest.fixture
def all_are_stale(monkeypatch):
    monkeypatch.setattr(drafts, "_STALE", timedelta(seconds=-1))


@pytest.fixture
def model():
    with ModelServer(model=MODEL, pause=0.0005) as server:
        server.answer = lambda _: ANSWER
        yield server


@asynccontextmanager
async def draft_of(url, *texts, clock=utc_now):
    """A draft of a server on another machine, which then does nothing, and its memory."""
    async with another_server(url, clock) as (server, memory):
        server.owner = "elsewhere:1:0"
        (question,) = await memory.append("c", Message.user("tell me"))
        draft = server.begin(memory, "c", question.seq, question.hash)
        for text in texts:
            await draft.add(text)
        yield memory, draft


async def answers(memory, conversation="c"):
    found = await memory.read(conversation)
    return [entry.message for entry in found if entry.message.role == "assistant"]


def test_a_draft_is_abandoned_only_if_nobody_renews_it_for_a_minute(url, monkeypatch):
    """By the watching process's own clock alone, however wrong the times in the store are."""
    now, wrong = [1_000.0], [timedelta()]
    monkeypatch.setattr(drafts.time, "monotonic", lambda: now[0])

    async def watched():
        async with (
            draft_of(url, "Once ", clock=lambda: utc_now() + wrong[0]) as (memory, draft),
            another_server(url) as (other, _),
        ):
            for days in (-1, 1, 0):
                wrong[0] = timedelta(days=days)
                await draft.beat()
                for _ in range(3):
                    assert await other.recover() == 0
                    now[0] += 20
            assert await other.recover() == 0, "renewed 60 seconds ago"
            now[0] += 1
            assert await other.recover() == 1
            assert [message.text for message in await answers(memory)] == ["Once "]
            with pytest.raises(ConflictError, match="another process"):
                await draft.add("upon a time")
            await draft.beat()
            await draft.cut("canceled")
            assert await memory.store.cards("draft") == []
            assert len(await answers(memory)) == 1

    asyncio.run(watched())


@pytest.mark.parametrize("path", ["/c/named/v1", "/v1", "/api"])
def test_a_paused_server_does_not_store_a_second_answer(url, path, model, all_are_stale):
    """Another server takes its draft for abandoned, while the answer is still coming."""
    model.fail("trickle")
    chosen = {"model": f"openai/{MODEL}", "model_url": model.url} if path == "/api" else {}
    with running(upstream=model.url, store=url, **chosen) as server:

        async def recovered():
            async with another_server(url) as (other, _):
                while not await other.recover():
                    await asyncio.sleep(0.005)

        if path == "/api":
            address = f"{server.url}/api/v1/conversations/named/turns"
            body = {"message": "tell me", "stream": True}
        else:
            address = f"{server.url}{path}/chat/completions"
            message = {"role": "user", "content": "tell me"}
            body = {"model": MODEL, "messages": [message], "stream": True}
        with httpx2.stream("POST", address, json=body, timeout=60) as response:
            asyncio.run(recovered())
            text = response.read().decode()
        # A chat goes on without its memory; a turn is nothing without it.
        assert ("another process" if path == "/api" else LAST) in text
        while server.parts.streams.live:
            time.sleep(0.005)
        memory = server.memory()
        heads = server.run(memory.conversations(limit=10))
        found = server.run(answers(memory, heads[0].conversation))
        assert len(heads) == len(found) == 1
        assert found[0].metadata[INTERRUPTED]
        server.run(server.parts.drafts.recover())
        assert server.run(memory.store.cards("draft")) == []


@pytest.mark.parametrize("first", ["owner", "other"])
def test_an_answer_that_moved_to_a_branch_is_settled_there_or_not_at_all(url, first, all_are_stale):
    async def settled():
        async with draft_of(url, "Once ") as (memory, draft), another_server(url) as (other, _):
            await memory.branch("c", 0, "c--1")
            if first == "owner":
                await draft.move("c--1")
                await other.recover()
                assert [m.text for m in await answers(memory, "c--1")] == ["Once "]
                assert await answers(memory) == []
                with pytest.raises(ConflictError):
                    await memory.append(
                        "c--1", Message.assistant("Once upon a time"), idempotency_key=draft.key
                    )
            else:
                await other.recover()
                with pytest.raises(ConflictError):
                    await draft.move("c--1")
                assert await answers(memory, "c--1") == []
                assert len(await answers(memory)) == 1
            await draft.end()
            assert await memory.store.cards("draft") == []

    asyncio.run(settled())


@pytest.mark.thorough
@pytest.mark.skipif(not TORTURE, reason="it takes as long as a draft is kept for a paused server")
def test_servers_that_are_stopped_and_continued(url, model):
    model.fail("trickle")
    model.pause = 0.02
    servers = [Process(url, free_port(), "--upstream", model.url) for _ in range(2)]
    message = {"role": "user", "content": "tell me"}
    body = {"model": MODEL, "messages": [message], "stream": True}
    address = f"{servers[0].url}/c/named/v1/chat/completions"
    with httpx2.stream("POST", address, json=body, timeout=300) as response:
        lines = response.iter_lines()
        while "word3" not in next(lines):
            pass
        servers[0]._running.send_signal(signal.SIGSTOP)
        time.sleep(drafts._STALE.total_seconds() + 2 * drafts._BEAT_SECONDS + 5)
        servers[0]._running.send_signal(signal.SIGCONT)
        list(lines)
    for server in servers:
        server.terminate()

    async def read():
        async with Memory.open(url, embedder=None, worker=False) as memory:
            return await answers(memory, "named"), await memory.store.cards("draft")

    found, cards = asyncio.run(read())
    assert len(found) == 1
    assert found[0].metadata[INTERRUPTED]
    assert cards == []
