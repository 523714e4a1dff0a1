"""No integer makes the server fail, wherever it enters: path, query, cursor, header, or JSON."""

import base64
import json
import socket

import httpx2
import pytest

from support.live_server import running
from support.rest_client import Api, operations

HUGE = [2**31, 2**63 - 1, 2**63, 2**64, 10**400, -1, -(2**63) - 1]
TEXTS = [*map(str, HUGE), "9" * 4_300, "9" * 4_301, "1e999", "٣"]
KNOWN = {"conversation": "known", "project": "garden", "seq": "0", "version": "1", "topic": "0"}
KNOWN |= {"job": "0123456789abcdef", "person": "ana", "fact": "0"}
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
SECRET = "a-secret-of-the-tests"
CHAT = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "Hi."}]}
OPERATIONS = [
    pytest.param(method, path, operation, id=operation["operationId"])
    for method, path, operation in operations()
    if operation["operationId"] != "erase_conversation"
]


@pytest.fixture(scope="module")
def api():
    bot = {"token": f"123456:{'A' * 35}", "secret": SECRET}
    with (
        running(background=False, worker=False, telegram={"bot": bot}) as server,
        Api(server.url) as api,
    ):
        api.say("known", *(f"The ferry {number} leaves at nine." for number in range(8)))
        api.put("/projects/garden", {"task": "x"})
        api.post("/conversations/known/turns", {"message": "When?", "budget": 2_000})
        yield api


def fine(response, what):
    assert response.status_code < 500, f"{what:.100}: {response.text}"


def cursor(text):
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_integers_in_paths_queries_and_cursors(api, method, path, operation):
    query = {"query": "ferry", "when": "today", "before": "1"}
    names = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"}
    required = {name: value for name, value in query.items() if name in names}
    for text in TEXTS:
        for name in names:
            given = {**required, name: cursor(text) if name == "cursor" else text}
            response = api.http.request(method, path.format(**KNOWN), params=given)
            fine(response, f"{name}={text}")
            if name == "cursor" and text != TEXTS[0]:
                assert response.status_code in (400, 404, 422), text
        for name in KNOWN:
            if f"{{{name}}}" in path:
                filled = path.format(**{**KNOWN, name: text})
                fine(api.http.request(method, filled, params=required), filled)


HEADERS = ["x-stainless-retry-count", "idempotency-key", "if-none-match", "x-session-id"]


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/c/name/v1/messages"])
def test_integers_in_headers(api, path, name):
    for text in TEXTS:
        response = api.http.post(path, json=CHAT, headers={name.encode(): text.encode()})
        fine(response, text)
        if name == HEADERS[0] and text != str(2**31):
            assert response.status_code == 400
            assert f"{name}: expected a number of at most 9 digits" in response.text


@pytest.mark.parametrize("text", ["9" * 4_301, "1" + "0" * 25, "-1", "0x10", "٣"])
def test_a_length_that_is_no_number(api, text):
    head = f"POST /api/v1/import HTTP/1.1\r\nhost: localhost\r\ncontent-length: {text}\r\n\r\n"
    place = httpx2.URL(str(api.http.base_url))
    with socket.create_connection((place.host, place.port), 20) as client:
        client.sendall(head.encode())
        assert client.recv(100).split()[1] in (b"400", b"413")


FIELDS = ["max_tokens", "n", "seed", "max_completion_tokens", "temperature", "top_k", "metadata"]
FIELDS += ["stream", "tools", "thinking", "stream_options", "logit_bias"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_integers_in_bodies_of_the_proxy(api, path):
    for value in HUGE:
        for name in FIELDS:
            body = json.dumps({**CHAT, name: value})
            fine(api.http.post(path, content=body, headers=JSON), f"{name}={value}")


def test_integers_in_arguments_of_tools(api):
    def call(method, number, **params):
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return api.http.post("/mcp", content=json.dumps(body), headers=JSON)

    for tool in call("tools/list", 1).json()["result"]["tools"]:
        names = tool["inputSchema"]["properties"]
        known = {"conversation": "known", "query": "ferry", "date": "today"}
        for name in names:
            for value in HUGE:
                given = {key: known[key] for key in known if key in names} | {name: value}
                response = call("tools/call", 1, name=tool["name"], arguments=given)
                fine(response, f"{tool['name']} {name}={value}")
                assert "internal" not in response.text.lower()
    for value in HUGE:
        fine(call("tools/list", value), f"id {value}")


def test_integers_in_updates_of_telegram(api):
    chat = {"id": 7, "type": "private"}
    message = {"message_id": 1, "date": 1, "chat": chat, "from": {"id": 7}, "text": "Hi."}
    update = {"update_id": 1, "message": {**message, "edit_date": 1, "message_thread_id": 1}}
    headers = {**JSON, "x-telegram-bot-api-secret-token": SECRET}
    for value in HUGE:
        for spoiled in spoil(update, value):
            body = json.dumps(spoiled)
            fine(api.http.post("/telegram/bot/webhook", content=body, headers=headers), body)


def spoil(fields, value):
    """The object with each of its numbers replaced."""
    for name, old in fields.items():
        if isinstance(old, dict):
            yield from ({**fields, name: inner} for inner in spoil(old, value))
        elif isinstance(old, int):
            yield {**fields, name: value}
