"""Whatever dies in the middle of an answer: what was said and what was seen of it is stored."""

import asyncio
import json
import os
import random
import threading
import time
from contextlib import suppress

import httpx2
import openai
import pytest

from firnline import Memory
from firnline.server import streams
from firnline.server.drafts import INTERRUPTED
from firnline.testing import ModelServer
from firnline.testing.replies import FAULTS
from support.live_server import Forked, free_port, running

MODEL = "gpt-4o-mini"
ANSWER = " ".join(f"word{n}" for n in range(40))
KILLS = 40 if os.environ.get("FIRNLINE_TORTURE") else 4


def question(text):
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], "stream": True}


def texts_of(lines):
    """The text in the events that a client got."""
    text = ""
    for line in lines:
        if line.startswith("data: {"):
            for choice in json.loads(line[6:]).get("choices") or ():
                text += choice["delta"].get("content") or ""
    return text


def log(store, conversation):
    async def read():
        async with Memory.open(store, embedder=None, worker=False) as memory:
            drafts = await memory.store.cards("draft", limit=100)
            return [entry.message for entry in await memory.read(conversation)], drafts

    return asyncio.run(read())


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def model():
    with ModelServer(model=MODEL) as server:
        server.answer = lambda _: ANSWER
        yield server


def read_some(url, body, events):
    """What a client got of an answer that hangs up after so many events."""
    got = []
    with httpx2.stream("POST", url, json=body, timeout=30) as response:
        for line in response.iter_lines():
            if len(got) >= events:
                break
            if line:
                got.append(line)
    return texts_of(got)


@pytest.mark.promise("durable")
def test_a_client_that_hangs_up_at_any_event_has_its_answer_stored(model, tmp_path):
    store = f"sqlite:///{tmp_path}/a.db"
    with running(upstream=model.url, store=store) as server:
        seen = {}
        for events in range(0, 43, 2):
            url = f"{server.url}/c/chat-{events}/v1/chat/completions"
            seen[f"chat-{events}"] = read_some(url, question("tell me"), events)
        wait_for(lambda: server.parts.streams.live == 0)
    for conversation, text in seen.items():
        messages, drafts = log(store, conversation)
        assert drafts == []
        assert [message.role for message in messages] == ["user", "assistant"]
        assert messages[1].text == ANSWER  # read to its end without the client
        assert ANSWER.startswith(text)


def test_an_answer_that_is_given_up_is_stored_as_far_as_it_came(model, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "READ_ON_SECONDS", 0.05)
    store = f"sqlite:///{tmp_path}/a.db"
    model.pause = 0.002
    model.fail("trickle", repeat=True)
    with running(upstream=model.url, store=store) as server:
        url = f"{server.url}/c/slow/v1/chat/completions"
        text = read_some(url, question("tell me"), 8)
        wait_for(lambda: server.parts.streams.live == 0)
        model.heal()
        # The client shows what it got, and goes on.
        history = [
            {"role": "user", "content": "tell me"},
            {"role": "assistant", "content": text},
            {"role": "user", "content": "go on"},
        ]
        with openai.OpenAI(base_url=f"{server.url}/c/slow/v1", api_key="x", max_retries=0) as sdk:
            sdk.chat.completions.create(model=MODEL, messages=history)
    messages, drafts = log(store, "slow")
    assert drafts == []
    assert [message.role for message in messages] == ["user", "assistant", "user", "assistant"]
    assert messages[1].metadata == {INTERRUPTED: "canceled"}
    assert messages[1].text.startswith(text)
    assert len(messages[1].text) < len(ANSWER)


@pytest.mark.promise("durable")
@pytest.mark.long
def test_a_server_killed_in_the_middle_of_answers_stores_what_was_seen(model, tmp_path):
    store, port = f"sqlite:///{tmp_path}/k.db", free_port()
    model.pause = 0.0005
    model.fail("trickle", repeat=True)
    chance = random.Random(7)
    seen = {}
    for number in range(KILLS):
        server = Forked(store, port, "--upstream", model.url)
        names = [f"chat-{number}-{n}" for n in range(3)]
        clients = [
            threading.Thread(target=_watch, args=(server.url, name, seen), daemon=True)
            for name in names
        ]
        for client in clients:
            client.start()
        wait_for(lambda names=names: all(seen.get(name) for name in names))
        time.sleep(chance.uniform(0, 0.4))
        server.kill()
        for client in clients:
            client.join(30)
    Forked(store, port, "--upstream", model.url).terminate()
    assert len(seen) == 3 * KILLS
    for name, text in seen.items():
        messages, drafts = log(store, name)
        assert drafts == []  # nothing is left in the making
        assert [message.role for message in messages] == ["user", "assistant"]
        assert messages[1].text.startswith(text), name
        assert messages[1].text == ANSWER or messages[1].metadata[INTERRUPTED]


def _watch(url, name, seen):
    seen[name] = ""
    lines = []
    address = f"{url}/c/{name}/v1/chat/completions"
    with (
        suppress(httpx2.TransportError),
        httpx2.stream("POST", address, json=question("tell me"), timeout=60) as response,
    ):
        for line in response.iter_lines():
            lines.append(line)
            seen[name] = texts_of(lines)


def test_a_question_repeated_after_a_crash_is_stored_once(model, tmp_path):
    store, port = f"sqlite:///{tmp_path}/k.db", free_port()
    model.pause = 0.002
    model.fail("trickle", repeat=True)
    server = Forked(store, port, "--upstream", model.url)
    seen = {}
    client = threading.Thread(target=_watch, args=(server.url, "once", seen), daemon=True)
    client.start()
    wait_for(lambda: seen.get("once"))
    server.kill()
    client.join(30)
    model.heal()
    server = Forked(store, port, "--upstream", model.url)
    got = read_some(f"{server.url}/c/once/v1/chat/completions", question("tell me"), 1_000)
    server.terminate()
    assert got == ANSWER
    messages, _ = log(store, "once")
    assert [message.role for message in messages] == ["user", "assistant", "assistant"]
    assert INTERRUPTED in messages[1].metadata
    assert messages[2].text == ANSWER


@pytest.mark.long
def test_sigterm_lets_answers_come_to_their_end(model, tmp_path):
    store, port = f"sqlite:///{tmp_path}/t.db", free_port()
    model.pause = 0.0005
    model.fail("trickle", repeat=True)
    server = Forked(store, port, "--upstream", model.url)
    seen = {}
    names = [f"chat-{n}" for n in range(8)]
    clients = [
        threading.Thread(target=_watch, args=(server.url, name, seen), daemon=True)
        for name in names
    ]
    for client in clients:
        client.start()
    wait_for(lambda: all(seen.get(name) for name in names))
    assert server.terminate() == 0
    for client in clients:
        client.join(30)
    for name in names:
        messages, drafts = log(store, name)
        assert seen[name] == ANSWER == messages[1].text
        assert drafts == []


@pytest.mark.promise("dead-model")
@pytest.mark.parametrize("stream", [False, True])
def test_every_fault_of_the_endpoint_leaves_the_question_stored_once(model, tmp_path, stream):
    store = f"sqlite:///{tmp_path}/f.db"
    model.pause, model.retry_after = 0.01, "0"
    faults = [fault for fault in FAULTS if fault != "trickle"]
    with running(upstream=model.url, store=store) as server:
        for fault in faults:
            model.heal()
            model.fail(fault)
            url = f"{server.url}/c/{fault}/v1/chat/completions"
            with suppress(httpx2.TransportError):
                body = {**question(f"tell me, {fault}"), "stream": stream}
                answer = httpx2.post(url, json=body, timeout=30)
                assert answer.status_code < 600
                assert "Traceback" not in answer.text
        wait_for(lambda: server.parts.streams.live == 0)
    for fault in faults:
        messages, drafts = log(store, fault)
        assert drafts == []
        assert messages[0].text == f"tell me, {fault}"
        assert [message.role for message in messages[1:]] in ([], ["assistant"])
