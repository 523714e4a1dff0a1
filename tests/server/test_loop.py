"""No request holds up the server's event loop: long work runs in threads, and in linear time."""

import json
import os
import time
from functools import cache
from importlib import import_module
from itertools import count

import httpx2
import pytest

from firnline.context.marks import RECALLED_START
from firnline.testing import ModelServer
from support.endpoint import Endpoint
from support.live_server import running
from support.loop_watch import SECONDS, is_light, watched

MODEL = "gpt-4o-mini"
TORTURE = "FIRNLINE_TORTURE" in os.environ
SIZE = 6_000_000 if TORTURE else 1_500_000
"""About how many bytes a request has; the server's limit is 8 MiB."""
SENTENCE = "I live in Porto and prefer tea over coffee since 12 March 2024. "
PROSE = SENTENCE * (SIZE // len(SENTENCE))
PLAIN = SENTENCE.replace(" ", "-", 9)  # few words: the model's server sends each in its own event
ANSWER = PLAIN * (1_000_000 // len(PLAIN))
C = "/api/v1/conversations/long"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    store = f"sqlite:///{tmp_path_factory.mktemp('loop')}/log.db"
    with ModelServer(model=MODEL, window_tokens=10**9) as model:
        model.answer = lambda request: ANSWER if "at length" in str(request)[-4_000:] else "Yes."
        with running(store=store, upstream=model.url, anthropic=model.url, worker=False) as server:
            said = {"messages": [{"role": "user", "content": "I live in Porto."}]}
            httpx2.post(f"{server.url}{C}/messages", json=said)
            httpx2.post(f"{server.url}{C}-moves/messages", json=append(*moves()), timeout=60)
            yield server


def chat(text, **more):
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **more}


def claude(text, **more):
    return {**chat(text, **more), "max_tokens": 100}


def append(*messages):
    return {"messages": list(messages)}


def many(number, text):
    return [f"{text} {i}" for i in range(number)]


def moves():
    """Messages that each state another home, often."""
    for number in range(SIZE // 15_000):
        text = " ".join(f"I moved to Xaville{number * 200 + i}." for i in range(200))
        yield {"role": "user", "content": text * 3}


def response(given):
    return {"model": MODEL, "input": given}


def mcp_append(text):
    arguments = {"conversation": "mcp", "messages": [{"role": "user", "text": text}]}
    params = {"name": "append", "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


ITEMS_NUMBER = 40_000
ITEMS = [{"role": "user", "content": "hi"}] * ITEMS_NUMBER
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
CALLS = [CALL] * ITEMS_NUMBER
RECALLED = f"{RECALLED_START}\n" * (400_000 // len(RECALLED_START))
REQUESTS = {
    "prose": ("POST", f"{C}/messages", lambda: append({"role": "user", "content": PROSE})),
    "one word": ("POST", f"{C}/messages", lambda: append({"role": "user", "content": "a" * SIZE})),
    "recalled": ("POST", f"{C}/messages", lambda: append({"role": "user", "content": RECALLED})),
    "halves": (
        "POST",
        f"{C}/messages",
        lambda: append({"role": "user", "content": "\ud800" * (SIZE // 6)}),
    ),
    "many messages": (
        "POST",
        f"{C}/messages",
        lambda: append(*({"role": "user", "content": text} for text in many(5_000, SENTENCE * 4))),
    ),
    "small values": (
        "POST",
        f"{C}/messages",
        lambda: append({"role": "user", "content": "x", "extra": [[1]] * (SIZE // 6)}),
    ),
    "unknown fields": (
        "POST",
        f"{C}/messages",
        lambda: {**append({"role": "user"}), **dict.fromkeys(many(SIZE // 12, "f"), 1)},
    ),
    "malformed": ("POST", f"{C}/messages", lambda: append(*[{"message": {}, "x": 1}] * 9_999)),
    "important": (
        "POST",
        f"{C}/important",
        lambda: {"important_data": {"user_preferences": dict.fromkeys(many(30_000, "a"), "b")}},
    ),
    "one preference": (
        "POST",
        f"{C}/important",
        lambda: {
            "important_data": {
                "user_preferences": {f"a{' ' * (i % 60)}{'_' * (i // 60)}": i for i in range(4_000)}
            }
        },
    ),
    "facts": (
        "POST",
        f"{C}/important",
        lambda: {"important_data": {"important_facts": many(25_000, "A fact")}},
    ),
    "context": (
        "POST",
        f"{C}/context",
        lambda: {"budget": 8_000, "system": PROSE, "question": "tea? " * 2_000},
    ),
    "tools": (
        "POST",
        f"{C}/context",
        lambda: {"budget": 10**7, "tools": [{"type": "function", "x": PROSE[:20_000]}] * 50},
    ),
    "large context": ("POST", f"{C}/context", lambda: {"budget": 10**7}),
    "metadata": ("PATCH", C, lambda: {"metadata": dict.fromkeys(many(50_000, "name"), 1)}),
    "project": (
        "PUT",
        "/api/v1/projects/p",
        lambda: {"metadata": dict.fromkeys(many(50_000, "name"), 1)},
    ),
    "read": ("GET", f"{C}/messages?limit=1000", lambda: None),
    "search": ("POST", f"{C}/search", lambda: {"query": "tea " * 2_000}),
    "outdated": ("POST", f"{C}-moves/search", lambda: {"query": "Where do I live now?"}),
    "many tokens": ("POST", f"{C}-moves/search", lambda: {"query": "moved", "tokens": 10**6}),
    "openapi": ("GET", "/openapi.json", lambda: None),
    "chat": ("POST", "/v1/chat/completions", lambda: chat(PROSE)),
    "long answer": ("POST", "/v1/chat/completions", lambda: chat("at length")),
    "long stream": ("POST", "/v1/chat/completions", lambda: chat("at length!", stream=True)),
    "a long history": (
        "POST",
        "/v1/chat/completions",
        lambda: {**chat(""), "messages": [{"role": "user", "content": "hi"}] * 5_000},
    ),
    "system messages": (
        "POST",
        "/v1/chat/completions",
        lambda: {
            **chat(""),
            "messages": [
                {"role": role, "content": text}
                for role in ("system", "user", "system")
                for text in (many(2_000, "rule") if role == "system" else ["x"])
            ],
        },
    ),
    "response's tokens": ("POST", "/v1/responses/input_tokens", lambda: response(ITEMS)),
    "response's text": ("POST", "/v1/responses/input_tokens", lambda: response(PROSE)),
    "compaction": ("POST", "/v1/responses/compact", lambda: response(CALLS)),
    "conversation": ("POST", "/v1/conversations", lambda: {"items": ITEMS}),
    "mcp": ("POST", "/mcp", lambda: "[" + "[]," * 2_000_000 + "[]]"),
    "mcp's values": (
        "POST",
        "/mcp",
        lambda: mcp_append("?").replace('"?"', "[" + '{"a":1},' * 800_000 + "{}]"),
    ),
    "mcp's text": ("POST", "/mcp", lambda: mcp_append(PROSE)),
    "claude": ("POST", "/v1/messages", lambda: claude(PROSE)),
    "claude's user": (
        "POST",
        "/v1/messages",
        lambda: claude("x", metadata={"user_id": "_session_" * 20_000 + "!"}),
    ),
    "claude's long answer": ("POST", "/v1/messages", lambda: claude("at length")),
    "claude's long stream": ("POST", "/v1/messages", lambda: claude("at length!", stream=True)),
    "claude's blocks": (
        "POST",
        "/v1/messages",
        lambda: claude([{"type": "text", "text": text} for text in many(10_000, "x")]),
    ),
    "claude's count": ("POST", "/v1/messages/count_tokens", lambda: claude(PROSE)),
    "turn": ("POST", f"{C}/turns", lambda: {"message": PROSE[:1_000_000], "budget": 10**7}),
    **({"response": ("POST", "/v1/responses", lambda: response(ITEMS))} if TORTURE else {}),
    "import": (
        "POST",
        "/api/v1/import",
        lambda: "\n".join(json.dumps(chat(text)) for text in many(1_000, SENTENCE)),
    ),
}


# -- answers of an endpoint -------------------------------------------------------------------

HEAD = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
VALUES = 30_000 if TORTURE else 12_000


def call(name, arguments="{}", index=0):
    function = {"name": name, "arguments": arguments}
    return {"id": f"c{index}", "index": index, "type": "function", "function": function}


def complete(reason="stop", **message):
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return json.dumps({**HEAD, "choices": [choice]})


def chunk(reason=None, **delta):
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def frames(*items):
    return "".join(f"data: {json.dumps(item)}\n\n" for item in items) + "data: [DONE]\n\n"


def message(reason, *content):
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "m", "type": "message", "role": "assistant", "model": MODEL}
    return json.dumps({**head, "content": content, "stop_reason": reason, "usage": usage})


MANY_CALLS = [call("clock", index=i) for i in range(VALUES)]
LISTS = '{"query": [' + "[]," * 30 * VALUES + "[]]}"
RECALLS = [call("search_history", index=i) for i in range(VALUES)]
BLOCKS = [{"type": "text", "text": "x"}] * 3 * VALUES
ANSWERS = {
    "many calls": lambda: complete("tool_calls", tool_calls=MANY_CALLS),
    "many recalls": lambda: complete("tool_calls", tool_calls=RECALLS),
    "a recall with long arguments": lambda: complete(
        "tool_calls", tool_calls=[call("search_history", json.dumps({"query": PROSE}))]
    ),
    "a recall with many arguments": lambda: complete(
        "tool_calls", tool_calls=[call("search_history", LISTS)]
    ),
    "a call with many arguments": lambda: complete("tool_calls", tool_calls=[call("clock", LISTS)]),
    "a recall after a long text": lambda: complete(
        "tool_calls", content=PROSE, tool_calls=[call("search_history")]
    ),
    "empty events": lambda: frames(chunk(content="x"), *[{}] * 8 * VALUES, chunk("stop")),
    "events after the end": lambda: frames(
        chunk(content="x"), chunk("stop"), *[chunk(content="y")] * 2 * VALUES
    ),
    "many calls in events": lambda: frames(
        *(chunk(tool_calls=[each]) for each in MANY_CALLS), chunk("tool_calls")
    ),
    "many annotations": lambda: complete(content="x", annotations=[[]] * 30 * VALUES),
    "claude's citations": lambda: message(
        "end_turn", {"type": "text", "text": "x", "citations": [[]] * 30 * VALUES}
    ),
    "claude's many blocks": lambda: message("end_turn", *BLOCKS),
    "claude's call with many arguments": lambda: message(
        "tool_use", {"type": "tool_use", "id": "t", "name": "clock", "input": json.loads(LISTS)}
    ),
}


@pytest.fixture(scope="module")
def endpoint():
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def native(endpoint, tmp_path_factory):
    store = f"sqlite:///{tmp_path_factory.mktemp('native')}/log.db"
    options = {"upstream": endpoint.url, "anthropic": endpoint.url, "store": store}
    with running(**options, recall_tools=True, worker=False) as server:
        yield server


@pytest.fixture(scope="module")
def translating(endpoint, tmp_path_factory):
    store = f"sqlite:///{tmp_path_factory.mktemp('translating')}/log.db"
    with running(upstream=endpoint.url, store=store, recall_tools=True, worker=False) as server:
        yield server


NATIVE = [(name, name.startswith("claude"), True) for name in ANSWERS]
TRANSLATED = [(name, True, False) for name in ANSWERS if not name.startswith("claude")]
FEW = [NATIVE[0], NATIVE[1], NATIVE[3], NATIVE[7], TRANSLATED[4]]


@pytest.mark.parametrize(
    ("name", "is_claude", "is_native"), [*NATIVE, *TRANSLATED] if TORTURE else FEW
)
def test_an_answer_does_not_hold_up_the_loop(
    endpoint, native, translating, name, is_claude, is_native
):
    text, server = ANSWERS[name](), native if is_native else translating
    events = text.startswith("data")
    kind = "text/event-stream" if events else "application/json"
    endpoint.reply = (200, kind, text.encode(), "whole")
    path = "/v1/messages" if is_claude else "/v1/chat/completions"
    asked = claude("x") if is_claude else chat("x")
    tries = count()

    def ask():
        again = next(tries)
        for key, stream in (("1", True), ("1", True), *((("2", False),) if not events else ())):
            answer = httpx2.post(
                f"{server.url}{path}",
                json={**asked, "stream": stream},
                headers={
                    "x-firnline-conversation": f"{name} {again}",
                    "idempotency-key": f"{key} {again}",
                },
                timeout=120,
            )
            assert answer.status_code in (200, 502), answer.text[:500]

    assert not (report := is_light(server.loop, ask)), report


STEPS = {
    "firnline.engine.digest_writer.check_items": ("POST", "digests"),
    "firnline.digest.items.merge": ("POST", "digests"),
    "firnline.topics.merge_topics": ("GET", "topics"),
    "firnline.recall.updates._judge": ("POST", "search"),
    "firnline.recall.search.pack": ("POST", "search"),
}
"""Steps that take long for some conversations, and requests that take them."""


@pytest.mark.parametrize("step", STEPS)
def test_a_long_step_does_not_hold_up_the_loop(server, monkeypatch, step):
    module, _, name = step.rpartition(".")
    take, taken = getattr(import_module(module), name), []

    def take_long(*arguments, **named):
        end = time.thread_time() + (0 if taken else 4 * SECONDS)
        taken.append(step)
        while time.thread_time() < end:
            pass
        return take(*arguments, **named)

    method, path = STEPS[step]
    url = f"{server.url}/api/v1/conversations/{step}"
    texts = [f"I moved to Xaville{i}. {SENTENCE * 300}" for i in range(20)]
    said = append(*({"role": "user", "content": text} for text in texts))
    httpx2.post(f"{url}/messages", json=said, timeout=60).raise_for_status()
    httpx2.post(f"{url}/context", json={"budget": 9_000}, timeout=60).raise_for_status()
    monkeypatch.setattr(step, take_long)
    asked = {"search": {"query": "Where do I live now?", "tokens": 10**5}}
    with watched(server.loop) as watch:
        answer = httpx2.request(method, f"{url}/{path}", json=asked.get(path), timeout=120)
    assert answer.status_code == 200, answer.text
    assert taken
    assert watch.longest < 2 * SECONDS, watch.report()


FULL = ("claude's long stream", "malformed", "many tokens", "mcp's values", "project")
"""Requests like others: of long runs."""


@cache
def body(name):
    made = REQUESTS[name][2]()
    return made.encode() if isinstance(made, str) else json.dumps(made).encode()


@pytest.mark.parametrize("name", [one for one in REQUESTS if TORTURE or one not in FULL])
def test_a_request_does_not_hold_up_the_loop(server, name):
    method, path, _ = REQUESTS[name]
    kind = "application/octet-stream" if name == "import" else "application/json"

    def ask():
        answer = httpx2.request(
            method,
            f"{server.url}{path}",
            content=None if method == "GET" else body(name),
            headers={"content-type": kind, "accept": "application/json, text/event-stream"},
            timeout=120,
        )
        assert answer.status_code < 500, answer.text[:500]
        assert answer.status_code < 300 or len(answer.content) < 5_000

    assert not (report := is_light(server.loop, ask)), report
