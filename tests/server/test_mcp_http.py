"""MCP over HTTP in a real server: access, answers, and bad requests."""

import asyncio
import json
import logging
import os
import threading
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from starlette.routing import Route

from firnline import Memory, Message
from firnline.log.limits import MCP_VALUES_MAX
from firnline.mcp import Endpoint, by_key
from firnline.mcp.tools import TOOLS
from firnline.server.keys import NO_TENANT, Grant, Keys
from firnline.store import open_store
from firnline.store.cards import TenantCards
from support.http_server import Server, tcp

MODES = ["auto", "legacy"]
TENANTS = 50 if "FIRNLINE_TORTURE" in os.environ else 25
BODY_BYTES_MAX = 100_000
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class Tenants:
    """A memory for each tenant of a store, opened when it is needed."""

    def __init__(self, store_url):
        self.store_url, self.store, self.memories = store_url, open_store(store_url), {}

    async def __aenter__(self):
        await self.store.open()
        return self

    async def __aexit__(self, *_):
        for opening in self.memories.values():
            await (await opening).close()
        await self.store.close()

    async def memory(self, tenant):
        if tenant not in self.memories:
            self.memories[tenant] = asyncio.ensure_future(self._opened(tenant))
        return await self.memories[tenant]

    async def _opened(self, tenant):
        memory = Memory.open(self.store_url, tenant=tenant, embedder=None, worker=False)
        await memory.start()
        return memory


class Served:
    """A server in a thread, as `firnline serve` has it: one store, many tenants, one address."""

    def __init__(self, store_url, who=None):
        self.store_url, self.who, self.charged = store_url, who, []
        self.socket = tcp()
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/mcp"

    def app(self):
        tenants = Tenants(self.store_url)
        endpoint = Endpoint(
            tenants.memory,
            self.who or by_key(Keys(TenantCards(tenants.store, NO_TENANT))),
            charge=lambda *charged: self.charged.append(charged),
            body_bytes_max=BODY_BYTES_MAX,
        )

        @asynccontextmanager
        async def lifespan(_):
            async with tenants, endpoint.running():
                yield

        app = FastAPI(lifespan=lifespan)
        app.router.routes.append(Route("/mcp", endpoint=endpoint, include_in_schema=False))
        return app

    def __enter__(self):
        config = uvicorn.Config(
            self.app(), log_level="warning", lifespan="on", timeout_keep_alive=75
        )
        self.server = Server(config)
        self.thread = threading.Thread(target=asyncio.run, args=[self.serve()])
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive()
            self.thread.join(0.01)
        return self

    async def serve(self):
        self.loop = asyncio.get_running_loop()
        await self.server.serve([self.socket])

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.server.told.set)
        self.thread.join()
        self.socket.close()


@pytest.fixture
def store_url(tmp_path):
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def served(store_url):
    with Served(store_url) as server:
        yield server


async def key_for(store_url, tenant, **options):
    store = open_store(store_url)
    await store.open()
    try:
        return await Keys(TenantCards(store, NO_TENANT)).create(tenant, **options)
    finally:
        await store.close()


@asynccontextmanager
async def agent(url, token=None, mode="auto"):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def rpc(method, params=None, number=1):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}


@pytest.fixture(autouse=True)
def _http(monkeypatch):
    """One client for a test: creating one takes longer than its requests."""
    with httpx2.Client(timeout=60) as http:
        monkeypatch.setattr(httpx2, "request", http.request)
        yield


def post(url, body, **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.request("POST", url, content=data, headers={**HEADERS, **headers}, timeout=60)


# -- who is let in ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
async def test_a_key_opens_its_tenant(served, store_url, mode):
    _, token = await key_for(store_url, "acme")
    async with agent(served.url, token, mode) as client:
        messages = [{"role": "user", "text": "the code is 1138"}]
        done = await client.call_tool("append", {"conversation": "c", "messages": messages})
        assert not done.is_error, done.content[0].text
        found = await client.call_tool("search", {"query": "code"})
        assert found.structured_content["messages"][0]["text"] == "the code is 1138"
        assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS)
    async with Memory.open(store_url, tenant="acme") as memory:
        assert [entry.message.text for entry in await memory.read("c")] == ["the code is 1138"]


async def test_without_a_valid_key_every_method_is_rejected_in_the_same_words(served, store_url):
    old, expired = await key_for(store_url, "acme", expires_in=timedelta(microseconds=1))
    gone, revoked = await key_for(store_url, "acme")
    store = open_store(store_url)
    await store.open()
    await Keys(TenantCards(store, NO_TENANT)).revoke(gone.id)
    await store.close()
    _, valid = await key_for(store_url, "acme")
    tokens = [None, "x", "fl_", f"fl_{old.id}_{'0' * 64}", expired, revoked, valid[:-1]]
    tokens += [valid.upper(), f"{valid} x", "é", "x" * 9_000]
    answers = set()
    for token in tokens:
        headers = {} if token is None else {"Authorization": f"Bearer {token}".encode("latin-1")}
        for method in ("POST", "GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD"):
            got = httpx2.request(
                method, served.url, headers={**HEADERS, **headers}, json=rpc("ping"), timeout=60
            )
            assert got.status_code == 401, (method, token, got.text)
            answers.add((got.headers["www-authenticate"], got.text * (method != "HEAD")))
    for wrong in ("Bearer", "Basic eDp5", f"bearer{valid}", valid, f"Token {valid}"):
        assert post(served.url, rpc("ping"), Authorization=wrong).status_code == 401
    assert len({challenge for challenge, _ in answers}) == 1
    assert len({text for _, text in answers if text}) == 1
    assert post(served.url, rpc("ping"), Authorization=f"Bearer {valid}").status_code == 200


async def test_a_key_in_the_address_is_no_key(served, store_url):
    _, token = await key_for(store_url, "acme")
    got = post(f"{served.url}?access_token={token}&api_key={token}", rpc("ping"))
    assert got.status_code == 401


@pytest.mark.parametrize("mode", MODES)
async def test_a_key_that_may_only_read_cannot_append(served, store_url, mode):
    _, token = await key_for(store_url, "acme", scopes=["read"])
    asked = {"conversation": "c", "messages": [{"role": "user", "text": "x"}]}
    async with agent(served.url, token, mode) as client:
        done = await client.call_tool("append", asked)
        assert done.is_error
        assert "is read-only" in done.content[0].text
        assert not (await client.call_tool("conversations", {})).is_error
    async with Memory.open(store_url, tenant="acme") as memory:
        assert await memory.head("c") is None


async def test_a_key_without_the_right_to_read_gets_nowhere(store_url):
    async def odd(_):
        return Grant("1", "acme", frozenset({"write"}))

    with Served(store_url, odd) as server:
        got = post(server.url, rpc("tools/list"), Authorization="Bearer x")
        assert (got.status_code, "insufficient_scope" in got.text) == (403, True)


async def test_a_revoked_key_is_rejected_from_then_on(served, store_url):
    key, token = await key_for(store_url, "acme")
    assert post(served.url, rpc("ping"), Authorization=f"Bearer {token}").status_code == 200
    store = open_store(store_url)
    await store.open()
    await Keys(TenantCards(store, NO_TENANT)).revoke(key.id)
    await store.close()
    for _ in range(100):
        status = post(served.url, rpc("ping"), Authorization=f"Bearer {token}").status_code
        if status == 401:
            break
        await asyncio.sleep(0.05)  # keys are remembered for a second
    assert status == 401


async def test_there_is_no_stream_to_hold_open(served, store_url):
    _, token = await key_for(store_url, "acme")
    bearer = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    for method in ("GET", "DELETE", "PUT", "PATCH", "OPTIONS"):
        got = httpx2.request(method, served.url, headers=bearer, timeout=10)
        assert (got.status_code, got.headers["allow"]) == (405, "POST")


async def test_what_is_stored_and_sent_is_charged_to_the_key(served, store_url):
    key, token = await key_for(store_url, "acme")
    async with agent(served.url, token) as client:
        messages = [{"role": "user", "text": "one two three"}, {"role": "assistant", "text": "ok"}]
        await client.call_tool("append", {"conversation": "c", "messages": messages})
        made = await client.call_tool("context", {"conversation": "c"})
        await client.call_tool("append", {"conversation": "c", "messages": []})
        await client.call_tool("conversations", {})
    async with Memory.open(store_url, tenant="acme") as memory:
        stored = (await memory.head("c")).tokens
    assert served.charged == [(key.id, stored), (key.id, made.structured_content["tokens"])]


# -- authenticated by an outer application ----------------------------------------------------


async def everybody(_):
    """As the server's gate has it on this machine: who is asking was settled before."""
    return Grant("local", "home", frozenset({"read", "write"}))


@pytest.fixture
def opened(store_url):
    with Served(store_url, everybody) as server:
        yield server


@pytest.mark.parametrize("mode", MODES)
async def test_a_request_that_is_authenticated_earlier_needs_no_key(opened, store_url, mode):
    asked = {"conversation": "c", "messages": [{"role": "user", "text": "x"}]}
    async with agent(opened.url, mode=mode) as client:
        assert not (await client.call_tool("append", asked)).is_error
    async with Memory.open(store_url, tenant="home") as memory:
        assert len(await memory.read("c")) == 1


# -- whose conversations ----------------------------------------------------------------------


async def _everything(client, name):
    """What each tool, resource and prompt says of a conversation."""
    said = []
    given = {"query": "canary", "date": "today"}
    for tool, spec in TOOLS.items():
        needed = spec.takes.model_json_schema().get("required", ())
        if tool not in ("append", "conversations"):
            asked = {key: value for key, value in given.items() if key in needed}
            done = await client.call_tool(tool, {"conversation": name, **asked})
            said.append((done.is_error, done.content[0].text, done.structured_content))
    for asked in (
        client.read_resource(f"firnline://conversations/{name}"),
        client.read_resource(f"firnline://conversations/{name}?first_seq=0"),
        client.read_resource(f"firnline://conversations/{name}/digest"),
        client.get_prompt("continue_conversation", {"name": name}),
    ):
        try:
            said.append(str(await asked))
        except MCPError as error:
            said.append((error.error.code, error.error.message))
    return said


@pytest.mark.promise("tenants-apart")
@pytest.mark.parametrize("mode", MODES)
async def test_another_tenants_conversation_answers_exactly_like_a_missing_one(
    served, store_url, mode
):
    async with Memory.open(store_url, tenant="other") as memory:
        await memory.append("there", Message.user("canary"))
    _, token = await key_for(store_url, "acme", scopes=["admin"])
    async with agent(served.url, token, mode) as client:
        foreign = await _everything(client, "there")
        missing = await _everything(client, "nopes")
        assert str(foreign).replace("there'", "nopes'") == str(missing)
        assert len(foreign) == len(TOOLS) - 2 + 4
        listed = await client.list_resources()
        assert [resource.name for resource in listed.resources] == ["conversations"]
    _, own = await key_for(store_url, "other", scopes=["read"])
    async with agent(served.url, own, mode) as client:
        assert all("canary" in str(said) for said in (await _everything(client, "there"))[:4])


@pytest.mark.promise("tenants-apart")
@pytest.mark.long
async def test_many_tenants_at_once_see_nothing_of_each_other(served, store_url, caplog):
    store = open_store(store_url)
    await store.open()
    keys = Keys(TenantCards(store, NO_TENANT))
    tokens = [(await keys.create(f"tenant-{i}"))[1] for i in range(TENANTS)]
    await store.close()
    seen = [[] for _ in range(TENANTS)]

    async def live(number):
        """One tenant's agent, with the same names and questions as everybody's."""
        canary, mode = f"canary-{number:03}-end", MODES[number % 2]
        async with agent(served.url, tokens[number], mode) as client:
            for turn in range(2):
                messages = [
                    {"role": "user", "text": f"Where is parcel {turn}? {canary}"},
                    {"role": "assistant", "text": f"Parcel {turn} is on its way. {canary}"},
                ]
                asked = {"conversation": "same", "messages": messages}
                done = await client.call_tool("append", asked)
                assert done.structured_content["first_seq"] == 2 * turn
                wrong = await client.call_tool("read", {"conversation": "same", "limit": -1})
                assert wrong.is_error
            seen[number] += await _everything(client, "same")
            for tool in ("search", "by_date", "conversations"):
                asked = {"search": {"query": "canary parcel"}, "by_date": {"date": "today"}}
                done = await client.call_tool(tool, asked.get(tool, {}))
                seen[number].append((done.content[0].text, done.structured_content))
            seen[number].append(str(await client.list_resources()))

    with caplog.at_level(logging.INFO):
        await asyncio.gather(*(live(number) for number in range(TENANTS)))
    for number, answers in enumerate(seen):
        text = str(answers)
        assert f"canary-{number:03}-end" in text
        foreign = [i for i in range(TENANTS) if i != number and f"canary-{i:03}-end" in text]
        assert foreign == []
    assert "canary" not in caplog.text
    assert not any(token in caplog.text for token in tokens)


# -- whatever is sent -------------------------------------------------------------------------


def _call(tool, arguments):
    """The bytes of a call, whose arguments no encoder would write."""
    start = (
        f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":'
    )
    return start.encode() + arguments + b"}}"


RAW = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"\x00",
    b"\xff\xfe",
    _call("read", rb'{"conversation":"\ud800"}'),
    _call("read", rb'{"conversation":"a\u0000b"}'),
    _call("read", b'{"conversation":"c","limit":' + b"9" * 5_000 + b"}"),
    _call("read", b'{"conversation":"c","limit":1e999}'),
    _call("read", b'{"conversation":' + b"[" * 20_000 + b"]" * 20_000 + b"}"),
    _call("append", b'{"conversation":"c","messages":"' + b"[" * 20_000 + b'"}'),
    _call("read", b'{"conversation":"c","conversation":"d"}'),
    _call("read", b"[1]"),
    _call("read", b"7"),
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    b'{"jsonrpc":"2.0","id":1,"method":"no/such/method"}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
]


def _sound(got):
    assert got.status_code < 500, got.text
    if got.headers.get("content-type") == "application/json" and got.content:
        answer = got.json()
        error = answer.get("error") if isinstance(answer, dict) else None
        assert not isinstance(error, dict) or error["code"] not in (-32603, 0), answer
        assert "internal error" not in got.text
        assert "Traceback" not in got.text


@pytest.mark.parametrize("version", [None, "2025-06-18", "2026-07-28", "1999-01-01", "x" * 200])
def test_no_body_breaks_the_server(opened, version):
    extra = {} if version is None else {"MCP-Protocol-Version": version}
    for body in RAW:
        _sound(post(opened.url, body, **extra))
    assert post(opened.url, rpc("ping")).json()["result"] == {}


def test_what_the_sdk_would_read_otherwise_or_slowly_is_rejected(opened):
    twice = _call("read", b'{"conversation":"c","conversation":"d"}')
    many = _call("read", b'{"conversation":"c","x":[' + b"1," * MCP_VALUES_MAX + b"1]}")
    for body, why in ((twice, "occurs twice"), (many, "send less at once")):
        got = post(opened.url, body)
        assert (got.status_code, got.json()["jsonrpc"]) == (400, "2.0")
        assert why in got.json()["error"]["message"]
    text = '",' + "," * MCP_VALUES_MAX
    said = {"conversation": "c", "messages": [{"role": "user", "text": text}]}
    done = post(opened.url, rpc("tools/call", {"name": "append", "arguments": said}))
    assert done.json()["result"]["structuredContent"]["last_seq"] == 0


def test_a_body_that_is_too_large_is_rejected(opened):
    big = {"conversation": "c", "messages": [{"role": "user", "text": "x" * BODY_BYTES_MAX}]}
    call = rpc("tools/call", {"name": "append", "arguments": big})
    assert post(opened.url, call).status_code == 413
    small = {"conversation": "c", "messages": [{"role": "user", "text": "x" * 90_000}]}
    done = post(opened.url, rpc("tools/call", {"name": "append", "arguments": small}))
    assert done.json()["result"]["structuredContent"]["last_seq"] == 0


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=8,
)
METHODS = """tools/call tools/list resources/read resources/list resources/templates/list
prompts/get prompts/list completion/complete initialize server/discover subscriptions/listen ping
resources/subscribe logging/setLevel"""
methods = st.sampled_from(METHODS.split())
fields = st.sampled_from(["name", "arguments", "uri", "cursor", "ref", "argument", "_meta"])
known = st.sampled_from([*TOOLS, "firnline://conversations/c", "continue_conversation"])
params = st.dictionaries(fields | st.text(max_size=9), known | json_values, max_size=4)
versions = st.sampled_from([None, "2025-06-18", "2026-07-28"])


@given(methods, params, json_values, versions)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_request_breaks_the_server(opened, method, params, number, version):
    extra = {} if version is None else {"MCP-Protocol-Version": version, "Mcp-Method": method}
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    try:
        data = json.dumps(body, allow_nan=True).encode()
    except UnicodeEncodeError:
        return
    _sound(post(opened.url, data, **extra))


async def test_it_answers_only_while_it_runs_and_can_run_again(store_url):
    async with Tenants(store_url) as tenants:
        endpoint = Endpoint(tenants.memory, everybody)
        transport = httpx2.ASGITransport(app=endpoint)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", timeout=60
        ) as http:

            async def status():
                return (await http.post("/mcp", json=rpc("ping"), headers=HEADERS)).status_code

            assert await status() == 503
            for _ in range(2):
                async with endpoint.running():
                    assert await status() == 200
                assert await status() == 503
