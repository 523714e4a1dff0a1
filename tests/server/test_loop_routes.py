"""No route holds up the server's event loop, whatever is sent to it."""

import json
import os
import re

import httpx2
import pytest

from firnline.testing import ModelServer, TelegramServer
from support.live_server import running
from support.loop_watch import SECONDS, is_light
from support.rest_client import METHODS, document
from support.telegram_server import SECRET, TOKEN

MODEL = "gpt-4o-mini"
TORTURE = "FIRNLINE_TORTURE" in os.environ
SIZE = 6_000_000 if TORTURE else 400_000
SENTENCE = "I live in Porto and prefer tea over coffee since 12 March 2024. "
PROSE = SENTENCE * (SIZE // len(SENTENCE))
VALUES = "[" + "[]," * (SIZE // 4) + "[]]"
OBJECTS = "[" + '{"a":{}},' * (SIZE // 10) + "{}]"
FIELDS = ",".join(f'"field{i}":1' for i in range(SIZE // 14))
BODIES = {
    "text": json.dumps(PROSE),
    "values": VALUES,
    "objects": OBJECTS,
    "fields": f"{{{FIELDS}}}",
}
"""What each field of a body is replaced with."""
KNOWN = {
    "conversation": "long", "seq": "0", "version": "1", "topic": "0", "project": "p",
    "person": "ana", "fact": "0" * 16, "job": "0" * 32, "response_id": "resp_1",
    "conversation_id": "conv_1", "item_id": "msg_1",
}  # fmt: skip
LESS = {"conversation": "c7", "person": "person 9"}
"""What is erased: others are needed later."""
PLAIN = {
    "/chat/completions": {"model": MODEL, "messages": [{"role": "user", "content": "?"}]},
    "/messages": {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]},
    "/responses": {"model": MODEL, "input": "?"},
    "/conversations": {"items": [{"role": "user", "content": "?"}]},
    "/items": {"items": [{"role": "user", "content": "?"}]},
}
"""Bodies of routes whose schema says nothing."""
UPDATE = {
    "update_id": 7,
    "message": {
        "message_id": 7,
        "date": 1_700_000_000,
        "chat": {"id": 7, "type": "private", "first_name": "?"},
        "from": {"id": 7, "is_bot": False, "first_name": "?"},
        "text": "?",
    },
}
MORE = [
    ("post", "/api/v1/hooks/claude-code", {"hook_event_name": "UserPromptSubmit", "prompt": "?",
     "session_id": "s", "cwd": "/", "transcript_path": "/none"}),
    ("post", "/api/v1/hooks/cursor", {"hook_event_name": "beforeSubmitPrompt", "prompt": "?",
     "conversation_id": "c", "generation_id": "g", "transcript_path": None}),
    ("post", "/api/v1/hooks/cursor", {"hook_event_name": "postToolUse", "tool_output": "?",
     "tool_input": {"command": "?"}, "tool_use_id": "t", "conversation_id": "c",
     "generation_id": "g", "transcript_path": None, "tool_name": "Shell"}),
    ("post", "/telegram/house/webhook", UPDATE),
    *(
        ("post", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
         "params": {"name": name, "arguments": arguments}})
        for name, arguments in {
            "append": {"conversation": "mcp", "messages": [{"role": "user", "text": "?"}]},
            "recall": {"query": "?"},
            "get_context": {"conversation": "long", "question": "?"},
            "remember": {"conversation": "long", "important_data": {"entities": ["?"]}},
        }.items()
    ),
]  # fmt: skip


def sample(schema, schemas, depth=4):
    """A body that has each field."""
    way = next((schema[way][0] for way in ("anyOf", "oneOf", "allOf") if way in schema), None)
    if "$ref" in schema:
        way = schemas[schema["$ref"].rpartition("/")[2]]
    if way is not None:
        return sample(way, schemas, depth)
    if schema.get("type") == "object":
        fields = schema.get("properties", {}).items()
        return {name: sample(one, schemas, depth - 1) for name, one in fields if depth}
    if schema.get("type") == "array":
        return [sample(schema.get("items", {}), schemas, depth - 1)] if depth else []
    plain = {"integer": 1, "number": 1, "boolean": False}.get(schema.get("type"), "?")
    return schema.get("default") or schema.get("const") or schema.get("enum", [plain])[0]


def places(value, path=()):
    """The places of all values within a body, itself too."""
    yield path
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for name, one in inner:
        yield from places(one, (*path, name))


def replaced(value, path, mark):
    if not path:
        return mark
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], mark)
    return copy


def routes():
    """Each method of each path, with a plain body if it takes one."""
    schemas = document()["components"]["schemas"]
    for path, found in document()["paths"].items():
        if path.startswith("/c/") and not TORTURE:
            continue  # as without the name of a conversation
        for method in METHODS:
            if method not in found:
                continue
            body = None
            content = found[method].get("requestBody", {}).get("content", {})
            if "application/json" in content:
                body = sample(content["application/json"]["schema"], schemas)
            if method == "post" and not (isinstance(body, dict) and body):
                body = next((v for end, v in PLAIN.items() if path.endswith(end)), body)
            yield method, path, body
    yield from MORE


ROUTES = list(routes())


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    store = f"sqlite:///{tmp_path_factory.mktemp('routes')}/log.db"
    with ModelServer(model=MODEL, window_tokens=10**9) as model, TelegramServer() as telegram:
        model.answer = lambda request: "Yes."
        bot = {"token": TOKEN, "secret": SECRET, "api_url": telegram.url}
        options = {"upstream": model.url, "anthropic": model.url, "telegram": {"house": bot}}
        with running(store=store, worker=False, requests_per_minute=0, **options) as server:
            fill(server)
            yield server


def fill(server):
    """Long conversations, and many."""
    api = f"{server.url}/api/v1"
    texts = [f"I moved to Xaville{i}. {SENTENCE * 10}" for i in range(1_000 if TORTURE else 200)]
    said = [{"role": "user", "content": text} for text in texts]
    with httpx2.Client(timeout=120) as client:
        body = {"messages": said, "person": "ana"}
        client.post(f"{api}/conversations/long/messages", json=body).raise_for_status()
        for number in range(60):
            body = {"messages": said[:1], "person": f"person {number}"}
            client.post(f"{api}/conversations/c{number}/messages", json=body).raise_for_status()
        for number in range(60):
            client.put(f"{api}/projects/p{number}", json={"task": SENTENCE})


def ask(server, method, path, content):
    known = {**KNOWN, **LESS} if method == "delete" else KNOWN
    named = re.sub(r"{(\w+)}", lambda match: known[match[1]], path)
    kind = "application/jsonl" if path.endswith("/import") else "application/json"
    answer = httpx2.request(
        method,
        f"{server.url}{named}",
        content=content,
        headers={
            "content-type": kind,
            "accept": "application/json, text/event-stream",
            "x-telegram-bot-api-secret-token": SECRET,
        },
        timeout=120,
    )
    assert answer.status_code in {*range(200, 500), 502}, answer.text[:500]


def bodies(body):
    """The body with one value replaced by a large one; in plain runs, a few of these."""
    where = list(places(body))
    for number, path in enumerate(where if TORTURE else where[:: max(len(where) // 4, 1)]):
        mark = "@here@"
        whole = json.dumps(replaced(body, path, mark))
        kinds = list(BODIES) if TORTURE else [list(BODIES)[number % len(BODIES)]]
        for kind in kinds:
            yield whole.replace(f'"{mark}"', BODIES[kind])


@pytest.mark.parametrize(
    ("method", "path", "body"), ROUTES, ids=[f"{method} {path}" for method, path, _ in ROUTES]
)
def test_no_route_holds_up_the_loop(server, method, path, body):
    def ask_all():
        if body is None:
            ask(server, method, path, VALUES if path.endswith("/import") else None)
        for one in bodies(body) if body is not None else ():
            ask(server, method, path, one)

    report = is_light(server.loop, ask_all)
    assert not report, f"more than {SECONDS} s: {report}"
