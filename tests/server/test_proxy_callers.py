"""Callers whose histories are alike: nothing of one of them is ever in a prompt of another one.

The messages come from a tiny alphabet, so histories collide all the time. Some have a marker that
occurs nowhere else: whoever sees it in a prompt must have sent or received it.
"""

import itertools
import json
import os
import random
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx2
import pytest

from firnline import Message
from firnline.server.auth import Caller
from firnline.server.proxy.request import find_conversation_name, find_sender
from firnline.testing import ModelServer, call_tool
from support.live_server import running
from support.rest_client import key_for

MODEL = "gpt-4o-mini"
SEEDS = range(60 if os.environ.get("FIRNLINE_TORTURE") else 2)
MARKER = re.compile(r"mark\d+")
ALPHABET = ("hi", "please say more about the river and the old mill " * 6)
FACT = "the river at the old mill is important"
CHAT_MESSAGES = 20
COMMON = "Hello! How can I help?"
HTTP = httpx2.Client(timeout=60, limits=httpx2.Limits(max_keepalive_connections=0))
NEXT = itertools.count()
HELD = threading.Lock()


def marked(text):
    with HELD:
        return f"{text} mark{next(NEXT)}"


def markers(value):
    return set(MARKER.findall(json.dumps(value)))


class Endpoint:
    """A model that often says the same to everyone, and searches the history if it can."""

    def __init__(self, seed):
        self._random, self._lock = random.Random(seed), threading.Lock()

    def __call__(self, request):
        with self._lock:
            chance = self._random.random()
        if request.get("tools") and request["messages"][-1]["role"] != "tool" and chance < 0.5:
            tool, arguments = ("search_history", {"query": "mark river"})
            if chance < 0.25:
                tool, arguments = ("get_extended_context", {"count": 50})
            return call_tool(tool, arguments)
        answer = {"content": COMMON if chance < 0.85 else f"{marked('Remember')} {FACT}"}
        return {**answer, "reasoning_content": marked("thinking")} if chance > 0.6 else answer


class Someone:
    """A caller with several chats; `known` is all that was sent or received."""

    def __init__(self, number, seed, url, named):
        self.number, self.url, self.named = number, url, named
        self.random = random.Random(f"{seed} {number}")
        self.known, self.chats = set(), [[] for _ in range(2)]

    def step(self):
        """Ask something in one of the chats, or edit what is known of it."""
        chance, at = self.random.random, self.random.randrange(len(self.chats))
        history = self.chats[at]
        if len(history) > CHAT_MESSAGES or chance() < 0.1:  # another chat, or an earlier question
            del history[self.random.randrange(len(history) // 2 + 1) * 2 :]
        sent = [*history, *self.said(), {"role": "user", "content": self.words()}]
        if chance() < 0.05:
            sent[-1]["name"] = self.sent(marked("n")).replace(" ", "_")
        status, answer = self.ask(sent)
        if status != 200 or not answer.get("content"):
            return
        self.known |= markers(answer)
        if chance() < 0.5:
            answer.pop("reasoning_content", None)
        self.chats[at] = [m for m in sent if m["role"] != "system" or chance() < 0.5] + [answer]

    def words(self):
        common = self.random.choice(ALPHABET)
        return common if self.random.random() < 0.9 else self.sent(marked(f"I live in {common}"))

    def said(self):
        """What the application says in between."""
        if self.random.random() < 0.3:
            return [{"role": "system", "content": f"{self.sent(marked('File'))}: {FACT}"}]
        return []

    def sent(self, text):
        self.known |= markers(text)
        return text

    def ask(self, messages):
        body = {"model": MODEL, "messages": messages, "stream": self.random.random() < 0.4}
        headers = {"x-title": str(self.number)}
        if self.random.random() < 0.1:
            headers["x-stainless-retry-count"] = "1"
        if self.named:
            place, name = self.named
            (headers if place == "x-firnline-user" else body)[place] = name
        answer = HTTP.post(f"{self.url}/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code in (200, 500, 502)  # 500 is the endpoint's own
        self.edit(answer.headers.get("x-firnline-conversation"))
        if body["stream"]:
            return self.read(answer.text)
        if answer.status_code != 200:
            return answer.status_code, {}
        return 200, answer.json()["choices"][0]["message"]

    def read(self, events):
        """The answer in the events, or what there is of it."""
        answer, status = {"role": "assistant"}, 500
        for line in events.splitlines():
            chunk = json.loads(line[6:]) if line.startswith("data: {") else {}
            for choice in chunk.get("choices") or ():
                for name in ("content", "reasoning_content"):
                    if isinstance(piece := choice["delta"].get(name), str):
                        answer[name] = answer.get(name, "") + piece
            status = 200 if line == "data: [DONE]" and "error" not in events else status
        self.known |= markers(answer)
        return status, answer

    def edit(self, conversation):
        """The application adds to what is known of a conversation: of whose, only a user says."""
        if conversation is None or self.random.random() > 0.1:
            return
        fact = marked("was told that")
        if self.named:
            self.known |= markers(fact)
        body = {"important_data": {"important_facts": [fact]}}
        HTTP.post(f"{self.url}/api/v1/conversations/{conversation}/important", json=body)


@pytest.mark.promise("tenants-apart")
@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_prompt_has_what_its_caller_did_not_send_or_receive(seed, tools):
    names = [None, None, None, ("user", "ann"), ("safety_identifier", "bob"),
             ("x-firnline-user", "eve")]  # fmt: skip
    with (
        ModelServer(model=MODEL, pause=0.001) as model,
        running(
            upstream=model.url, window_tokens=3_000 if tools else 500, recall_tools=tools,
            background=False,
        ) as server,
        ThreadPoolExecutor(len(names)) as pool,
    ):  # fmt: skip
        model.answer = Endpoint(seed)
        model.shake(0.15, ["cut", "cut", "500"])
        callers = [Someone(at, seed, server.url, name) for at, name in enumerate(names)]
        for _ in range(20):
            list(pool.map(Someone.step, callers))
        for request, headers in zip(model.requests, model.headers, strict=True):
            foreign = markers(request["messages"]) - callers[int(headers["x-title"])].known
            assert not foreign, (headers["x-title"], foreign, request["messages"])


def spoken(*texts):
    """A history of these texts, the user's and the model's in turn."""
    return [
        {"role": "assistant" if at % 2 else "user", "content": text}
        for at, text in enumerate(texts)
    ]


def posted(server, messages, **more):
    body = {"model": MODEL, "messages": messages, **more}
    return HTTP.post(f"{server.url}/v1/chat/completions", json=body)


@pytest.fixture
def model():
    with ModelServer(model=MODEL, pause=0.001) as server:
        server.answer = lambda _: COMMON
        yield server


def test_an_answer_that_broke_off_is_in_no_prompt_of_who_did_not_get_it(model):
    with running(upstream=model.url) as server:
        history = spoken("hi", COMMON, "tell me")
        model.say("mark1 " * 20)
        model.fail("cut")
        posted(server, history, stream=True)
        model.heal()
        model.say(COMMON)
        for _ in range(2):
            posted(server, history)
            assert model.requests[-1]["messages"] == history
            history = [*history, *spoken("x", COMMON, "more")[1:]]


@pytest.mark.parametrize("tools", [False, True])
def test_what_an_application_says_of_one_caller_is_neither_digested_nor_recalled(model, tools):
    window = 4_000 if tools else 600
    digests = {"model": f"openai/{MODEL}", "model_url": model.url, "background": False}
    with running(upstream=model.url, window_tokens=window, recall_tools=tools, **digests) as server:
        texts = ("hi", COMMON) if tools else ("hi", COMMON, *[ALPHABET[1], COMMON] * 12)
        file = {"role": "system", "content": "The vault's code word is mark1. Remember that."}
        history = spoken(*texts, "Where is the vault?")
        posted(server, [*history[:2], file, *history[2:]])
        assert len(model.requests) > 1 or tools, "a digest was requested"
        assert not any(map(markers, model.requests[:-1]))
        posted(server, history)
        if tools:
            model.say(call_tool("search_history", {"query": "code word vault"}))
        asked = [*history, *spoken("", COMMON, "What is the vault's code word?")[1:]]
        posted(server, asked)
        sent = model.requests[-1]["messages"]
        assert sent[-1]["role"] == "tool" if tools else len(sent) < len(asked)
        assert not markers(sent)


def test_what_another_caller_adds_meanwhile_is_not_in_the_prompt(model):
    with running(upstream=model.url, window_tokens=600, background=False) as server:
        memory, added = server.memory(), []
        built = memory.context

        async def meanwhile(conversation, *arguments, **options):
            """Another caller with the same history gets an answer, and goes on."""
            if not added:
                added.append(conversation)
                theirs = [Message.assistant("The code word is mark1, remember that. ")] * 30
                await memory.append(conversation, theirs)
            return await built(conversation, *arguments, **options)

        history = spoken("hi", COMMON, "What is the code word?")
        posted(server, history[:1])
        memory.context = meanwhile
        answer = posted(server, history)
        assert answer.headers["x-firnline-status"] == "ok"
        assert answer.headers["x-firnline-conversation"] not in added
        assert model.requests[-1]["messages"] == history


def test_users_and_addresses_are_told_apart():
    ann, bob = (Caller(name, "t", frozenset()) for name in ("ann", "bob"))
    senders = [
        find_sender(ann, {}, {}, "10.0.0.1"),
        find_sender(ann, {}, {}, "10.0.0.2"),
        find_sender(bob, {}, {}, "10.0.0.1"),
        find_sender(replace(ann, token="sk-1"), {}, {}, "10.0.0.1"),
        find_sender(ann, {}, {"user": "a"}, "10.0.0.1"),
        find_sender(ann, {}, {"safety_identifier": "a"}, "10.0.0.1"),
        find_sender(ann, {}, {"metadata": {"user_id": "a"}}, "10.0.0.1"),
        find_sender(ann, {"x-firnline-user": "a"}, {}, "10.0.0.1"),
        find_sender(ann, {"x-openwebui-user-id": "a"}, {}, "10.0.0.1"),
        find_sender(ann, {"x-firnline-user": "a"}, {"user": "a"}, "10.0.0.1"),
    ]
    assert len({sender.id for sender in senders}) == len(senders)
    assert [sender.named for sender in senders] == [False] * 4 + [True] * 6
    # A user who has another address is the same user, and what is not a name names none.
    assert find_sender(ann, {}, {"user": "a"}, "10.0.0.9") == senders[4]
    assert find_sender(ann, {}, {"user": 3, "metadata": "x"}, "10.0.0.1") == senders[0]


def test_behind_a_trusted_proxy_callers_are_told_apart_by_their_own_address():
    with (
        ModelServer(model=MODEL) as model,
        running(upstream=model.url, auth="proxy", trusted_proxies="127.0.0.1") as server,
    ):
        key = key_for(server, "ann")

        def ask(address, *messages):
            said = [{"role": role, "content": text} for role, text in messages]
            answer = HTTP.post(
                f"{server.url}/v1/chat/completions",
                json={"model": MODEL, "messages": said},
                headers={"x-forwarded-for": address, "x-api-key": key},
            )
            content = answer.json()["choices"][0]["message"]["content"]
            return content, answer.headers["x-firnline-conversation"]

        content, first = ask("203.0.113.1", ("user", "hi"))
        history = (("user", "hi"), ("assistant", content), ("user", "more"))
        assert ask("203.0.113.2", *history)[1] != first
        assert ask("203.0.113.1", *history)[1] == first


def _claude_code(session, **ids):
    user = json.dumps({"device_id": "d" * 64, **ids, "session_id": session})
    return {"metadata": {"user_id": user}}


@pytest.mark.promise("one-person")
def test_two_sessions_of_claude_code_are_one_person_and_two_conversations():
    ann = Caller("ann", "default", frozenset())
    sent = [_claude_code(session, account_uuid="acc-1") for session in ("s-1234567", "s-7654321")]
    assert {find_sender(ann, {}, body, "::1").person for body in sent} == {"acc-1"}
    names = [find_conversation_name(None, {}, body).conversation for body in sent]
    assert names == ["s-1234567", "s-7654321"]
    assert find_sender(ann, {}, _claude_code("s-1234567"), "::1").person == "d" * 64
    for broken in ('{"session_id": 1}', "{", '{"a": ' + "[" * 3_000):
        assert find_conversation_name(None, {}, {"metadata": {"user_id": broken}}) is None


@pytest.mark.promise("one-person")
def test_a_user_is_one_person_whatever_the_spaces_and_the_length():
    ann = Caller("ann", "default", frozenset())

    def person(user):
        return find_sender(ann, {}, {"user": user}, "::1").person

    assert person("ana ") == person("ana") == person("ana\n") == "ana"
    assert person("a" * 300) == person("a" * 300) != person("a" * 301)
    assert len(person("a" * 10_000)) <= 200
    assert person("  ") is None
