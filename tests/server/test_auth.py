"""Permissions of every route and method, generated from the OpenAPI document."""

import asyncio
import re
import socket

import httpx2
import pytest

from firnline.cli.program import _parser
from firnline.errors import InputError
from firnline.server import health
from firnline.server.rate_limit import RateLimiter
from firnline.server.settings import load
from support.http_server import logged
from support.live_server import running
from support.rest_client import Api, conforms, document, key_for, operations

FILLED = {"conversation": "known", "project": "garden", "seq": "0", "version": "1", "topic": "0"}
FILLED |= {"job": "0123456789abcdef"}
FILLED |= {"person": "ana", "fact": "0"}
QUERY = {"search": {"query": "x"}, "search_conversation": {"query": "x"}}
QUERY |= {"list_messages_by_date": {"when": "today"}, "compare_digests": {"before": 1}}
QUERY |= {"erase_old_messages": {"until": "2001-01-01T00:00:00Z"}}
QUERY |= {"erase_messages": {"first_seq": 0}}
CREATES = {"append_messages", "take_turn", "save_project"}
READS = {"verify_conversation", "build_context", "search_by_body", "search_conversation_by_body"}
READS |= {"match_topic", "build_topic_context", "begin_export", "make_checkpoint", "prove"}
RULES = {"erase_conversation", "erase_message", "erase_messages", "erase_old_messages"}
RULES |= {"erase_person"}
OPERATIONS = [
    pytest.param(method, path, operation, id=operation["operationId"])
    for method, path, operation in operations()
]
OF_CONVERSATIONS = [p for p in OPERATIONS if "{conversation}" in p.values[1]]


def filled(path, **names):
    return path.format(**{**FILLED, **names})


def example_of(operation):
    """A body that the document itself gives as an example, and its type."""
    if "requestBody" not in operation:
        return {}
    ((kind, content),) = operation["requestBody"]["content"].items()
    if kind != "application/json":
        return {"content": content["example"], "headers": {"content-type": kind}}
    schema = content["schema"]
    for option in schema.get("anyOf", [schema]):
        if "$ref" in option:
            found = document()["components"]["schemas"][option["$ref"].rsplit("/", 1)[1]]
            return {"json": found["examples"][0]}
    raise AssertionError(operation["operationId"])


def request(http, method, path, operation, **names):
    body = example_of(operation)
    query = QUERY.get(operation["operationId"])
    return http.request(method.upper(), filled(path, **names), params=query, **body)


@pytest.fixture(scope="module")
def guarded():
    """A server where everybody needs a key, with a conversation of the tenant ann's."""
    with running(auth="required", background=False) as server:
        with Api(server.url, key_for(server, "ann")) as ann:
            ann.put("/projects/garden", {"task": "ann's own"})
            ann.say("known", "ann's own words", "noted")
            ann.post("/conversations/known/important", {"important_data": {"entities": ["ann"]}})
        yield server


@pytest.fixture(scope="module")
def http(guarded):
    with httpx2.Client(base_url=guarded.url, timeout=60) as http:
        yield http


# -- without a key ----------------------------------------------------------------------------


def test_the_matrix_is_complete():
    assert len(OPERATIONS) > 50
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_without_a_key_nothing_is_answered(http, method, path, operation):
    for headers in (
        {},
        {"authorization": "Bearer"},
        {"authorization": "Bearer nonsense"},
        {"authorization": "Basic Zm9vOmJhcg=="},
        {"authorization": f"Bearer fl_{'0' * 16}_{'0' * 64}"},
        {"authorization": "Bearer fl_"},
        {"authorization": "Bearer fl__"},
        {"x-api-key": "fl_x_y"},
        {"authorization": b"Bearer fl_\xff\xfe_\x80"},
    ):
        response = http.request(method.upper(), filled(path), headers=headers)
        conforms(method, filled(path), response)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert response.json()["code"] == "Unauthorized"


def test_every_route_there_is_needs_a_key(guarded, http):
    """Those that are in no document, too."""
    open_ = {"/livez", "/readyz", "/openapi.json", "/docs"}
    page = {"/", "/favicon.svg", "/page/x"}  # the same for everybody
    seen = set()
    routes = list(_routes(guarded.app.router))
    assert len(routes) > len(OPERATIONS)
    for route in routes:
        path = re.sub(r"\{[^}]+\}", "x", route.path)
        for method in route.methods or ():
            response = http.request(method, path)
            seen.add(path)
            if path.startswith("/telegram/"):
                assert response.status_code in (401, 404)
            elif path not in open_ and not (path in page and method in ("GET", "HEAD")):
                assert response.status_code == 401, f"{method} {path}"
    assert open_ <= seen
    for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
        for path in ("/redoc", "/nothing", "/api/v1/nothing", "/api/v1/../livez"):
            assert http.request(method, path).status_code == 401


def _routes(router):
    for route in router.routes:
        included = getattr(route, "effective_route_contexts", None)
        yield from included() if included else [route]


def test_no_answer_can_be_rendered_as_a_page(guarded, http):
    headers = {"authorization": f"Bearer {key_for(guarded, 'ann')}"}
    for path in ("/livez", "/openapi.json", "/api/v1/me", "/api/v1/nothing"):
        for sent in ({}, headers):
            assert http.get(path, headers=sent).headers["x-content-type-options"] == "nosniff"


def test_open_paths_tell_nothing(http):
    assert http.get("/livez").json() == {"status": "ok"}
    assert http.get("/readyz").status_code == 200
    assert "ann's own" not in http.get("/openapi.json").text


class _Mute:
    async def head(self, key):
        await asyncio.Event().wait()


def test_a_probe_does_not_wait_for_a_store_that_is_gone(guarded, http, monkeypatch):
    """Calls do, for half a minute; probes would pile up."""
    with monkeypatch.context() as gone:
        gone.setattr(health, "PROBE_SECONDS", 0.01)
        gone.setattr(guarded.parts.tenants, "root", _Mute())
        answer = http.get("/readyz")
    assert (answer.status_code, answer.json()["store"]) == (503, "StoreUnavailable")
    assert http.get("/readyz").status_code == 200


# -- with too little a key --------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_a_key_does_what_its_scopes_allow_and_no_more(guarded, http, method, path, operation):
    name = operation["operationId"]
    needed = "admin" if name in RULES else "read" if method == "get" or name in READS else "write"
    order = ("read", "write", "admin")
    for scope in order:
        headers = {"authorization": f"Bearer {key_for(guarded, f'tenant-{scope}', scope)}"}
        with httpx2.Client(base_url=guarded.url, headers=headers, timeout=60) as client:
            response = request(client, method, path, operation)
        conforms(method, filled(path), response)
        allowed = order.index(scope) >= order.index(needed)
        assert (response.status_code != 403) == allowed, f"{scope}: {response.text}"
        if not allowed:
            assert response.json()["detail"] == f"the API key lacks the scope {needed}"


def test_a_key_for_metrics_reads_the_metrics_and_nothing_else(guarded, http):
    keys = {scope: key_for(guarded, "scraped", scope) for scope in ("metrics", "write", "admin")}
    headers = {scope: {"authorization": f"Bearer {key}"} for scope, key in keys.items()}
    answers = {scope: http.get("/metrics", headers=one) for scope, one in headers.items()}
    assert {scope: one.status_code for scope, one in answers.items()} == {
        "metrics": 200,
        "write": 403,
        "admin": 200,
    }
    refused = http.get("/api/v1/conversations", headers=headers["metrics"])
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "the API key lacks the scope read",
    )


# -- with another's key -----------------------------------------------------------------------


@pytest.mark.promise("tenants-apart")
@pytest.mark.parametrize(("method", "path", "operation"), OF_CONVERSATIONS)
def test_anothers_conversation_is_exactly_like_none(guarded, method, path, operation):
    """Byte for byte the same answer: before it exists, and when another tenant has it."""
    name = operation["operationId"]
    conversation = f"c-{name}"
    headers = {"authorization": f"Bearer {key_for(guarded, f'bob-{name}')}"}
    with (
        httpx2.Client(base_url=guarded.url, headers=headers, timeout=60) as bob,
        Api(guarded.url, key_for(guarded, "ann")) as ann,
    ):
        if name in CREATES:
            ann.say(conversation, "ann's own words")
            assert request(bob, method, path, operation, conversation=conversation).is_success
            assert "ann" not in bob.get(f"/api/v1/conversations/{conversation}/messages").text
            assert ann.get(f"/conversations/{conversation}")["entries"] == 1
            return
        before = request(bob, method, path, operation, conversation=conversation)
        ann.say(conversation, "ann's own words", "noted")
        ann.post(
            f"/conversations/{conversation}/important", {"important_data": {"entities": ["a"]}}
        )
        after = request(bob, method, path, operation, conversation=conversation)
        assert before.status_code == after.status_code == 404
        assert before.content == after.content
        assert _told(before) == _told(after)
        assert bob.get("/api/v1/conversations").json()["data"] == []
        assert ann.get(f"/conversations/{conversation}")["entries"] == 2


def _told(response):
    own = ("date", "x-request-id")
    return {name: value for name, value in response.headers.items() if name not in own}


def test_anothers_project_is_exactly_like_none(guarded):
    with Api(guarded.url, key_for(guarded, "bob")) as bob:
        theirs = bob.ask("GET", "/projects/garden")
        none = bob.ask("GET", "/projects/nobody")
        assert theirs.status_code == 404
        assert theirs.content == none.content.replace(b"nobody", b"garden")
        assert bob.get("/projects")["data"] == []


def test_a_tenant_cannot_be_asked_for(guarded):
    """Whatever a request says of itself, its tenant is its key's."""
    with Api(guarded.url, key_for(guarded, "bob")) as bob:
        headers = {"X-Tenant": "ann", "X-Firnline-Tenant": "ann"}
        assert bob.ask("GET", "/me", headers=headers).json()["tenant"] == "bob"
        assert bob.ask("GET", "/me", params={"tenant": "ann"}).status_code == 422
        body = {"messages": [{"role": "user", "content": "x"}], "tenant": "ann"}
        assert bob.refused("POST", "/conversations/c/messages", body)["status"] == 422


def test_me_returns_the_caller_and_its_rights(guarded):
    with Api(guarded.url, key_for(guarded, "bob", "write")) as bob:
        me = bob.get("/me")
        assert (me["tenant"], me["scopes"]) == ("bob", ["read", "write"])
        assert re.fullmatch("[0-9a-f]{16}", me["key"])
        assert me["limits"]["body_bytes"] == guarded.parts.settings.body_bytes_max


def test_a_read_only_key_creates_no_digests():
    said = [f"message {n} about the garden and its roses" for n in range(40)]
    with running(auth="required", background=False, worker=False) as server:
        path, ask = "/conversations/long", {"budget": 400}
        with Api(server.url, key_for(server, "ann", "write")) as writer:
            writer.say("long", *said)
        with Api(server.url, key_for(server, "ann", "read")) as reader:
            before = reader.get(path)
            assert reader.post(f"{path}/context", ask)["tokens"] <= 400
            assert reader.post(f"{path}/topics/context", ask)["tokens"] <= 400
            assert reader.get(path) == before
        with Api(server.url, key_for(server, "ann", "write")) as writer:
            for verb in ("context", "topics/context"):
                writer.post(f"{path}/{verb}", ask)
                assert writer.get(path) != before
                before = writer.get(path)


# -- keys in use ------------------------------------------------------------------------------


def test_a_key_that_is_revoked_or_runs_out_is_rejected(guarded):
    keys = guarded.parts.keys
    token = key_for(guarded, "carl")
    with Api(guarded.url, token) as carl:
        assert carl.get("/me")["tenant"] == "carl"
        guarded.run(keys.revoke(token.split("_")[1]))
        assert carl.refused("GET", "/me")["status"] == 401


def test_the_key_may_come_as_anthropics_clients_send_it(guarded):
    headers = {"x-api-key": key_for(guarded, "dora")}
    response = httpx2.get(f"{guarded.url}/api/v1/me", headers=headers, timeout=60)
    assert response.json()["tenant"] == "dora"


# -- without a key on this machine ------------------------------------------------------------


@pytest.fixture(scope="module")
def local():
    with running() as server:
        yield server


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost:8080", True),
        ("127.0.0.1", True),
        ("[::1]:8080", True),
        ("127.5.5.5", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        ("[", False),
        ("[::1", False),
        ("localhost@evil.example", False),
        ("evil.example/localhost", False),
        ("10.0.0.1", False),
    ],
)
def test_without_a_key_only_this_machines_name_is_answered(local, host, allowed):
    """Against DNS rebinding: another site's name that leads here."""
    response = httpx2.get(f"{local.url}/api/v1/me", headers={"host": host}, timeout=60)
    assert response.status_code in ((200,) if allowed else (400, 403))


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (None, True),
        ("http://{host}", True),
        ("http://evil.example", False),
        ("null", False),
        ("http://127.0.0.1:1", False),
        ("http://[", False),
        ("", False),
    ],
)
def test_without_a_key_another_sites_page_is_not_answered(local, origin, allowed):
    host = local.url.removeprefix("http://")
    headers = {} if origin is None else {"origin": origin.format(host=host)}
    response = httpx2.get(f"{local.url}/api/v1/me", headers=headers, timeout=60)
    assert response.status_code == (200 if allowed else 403)
    assert "access-control-allow-origin" not in response.headers


EDGES = [
    ("GET", "/api/v1/conversations"),
    ("DELETE", "/api/v1/conversations/c"),
    ("GET", "/api/v1/export"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/messages"),
    ("GET", "/v1/models"),
    ("POST", "/mcp"),
    ("GET", "/metrics"),
]
FORWARDING = ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded", "Via"]
FORWARDING += ["X-Real-IP", "CF-Connecting-IP", "True-Client-IP", "X-Client-IP", "Fly-Client-IP"]
FORWARDING += ["x-forwarded-anything", "Fastly-Client-IP", "X-Original-Forwarded-For", "CDN-Loop"]
RARE = ["X_Forwarded_For", "X-Forward-For", "CF-Worker", "CF-Access-Jwt-Assertion", "X-Remote-Addr"]
RARE += [
    "X-Originating-IP",
    "X-Real-Port",
    "X-Scheme",
    "Front-End-Https",
    "Max-Forwards",
    "X-Varnish",
    "X-Source-IP",
    "X-Rewrite-URL",
    "X-Sucuri-ClientIP",
]
RARE += [
    "X-Amz-Cf-Id",
    "X-Akamai-Edgescape",
    "Proxy-Connection",
    "X-Auth-Request-User",
    "Remote-User",
]
RARE += [
    "Ngrok-Trace-Id",
    "X-Github-Codespaces-User",
    "X-Goog-Iap-Jwt-Assertion",
    "SSL-Client-Cert",
]


@pytest.mark.parametrize(("method", "path"), EDGES)
def test_what_a_proxy_on_this_machine_forwards_needs_a_key(local, method, path):
    """Its connections come from a loopback address, and often with a loopback name."""
    with httpx2.Client(base_url=local.url, timeout=60) as http:
        for name in FORWARDING:
            for value in ("127.0.0.1", "203.0.113.9", ""):
                response = http.request(method, path, headers={name: value})
                assert response.status_code == 401, f"{name}: {response.text}"
        headers = {"x-forwarded-for": "1.2.3.4", "authorization": f"Bearer {key_for(local, 'a')}"}
        assert http.request(method, path, headers=headers).status_code != 401


def test_headers_of_rarer_proxies_need_a_key_too(local):
    with httpx2.Client(base_url=local.url, timeout=60) as http:
        allowed = [name for name in RARE if http.get("/api/v1/me", headers={name: "x"}).is_success]
    assert allowed == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (["Host: localhost"], b"200"),
        (["Host: LOCALHOST:80"], b"200"),
        (["Host: [::1]:80"], b"200"),
        (["Host: 127.0.0.1"], b"200"),
        (["Host: localhost."], b"403"),
        (["Host: a.localhost"], b"403"),
        (["Host: localhost.evil.example"], b"403"),
        (["Host: evil.example@localhost"], b"403"),
        (["Host: localhost/evil.example"], b"403"),
        (["Host: localhost?evil.example"], b"403"),
        (["Host: localhost#evil.example"], b"403"),
        (["Host: localhost", "Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"], b"403"),
        (["Host: localhost", "Origin: http://localhost", "Origin: http://evil.example"], b"403"),
        (["Host: localhost", "Host: evil.example"], b"400"),
    ],
)
def test_without_a_key_the_name_is_local_and_no_header_says_otherwise(local, headers, status):
    address = local.url.removeprefix("http://").split(":")
    with socket.create_connection(address, timeout=20) as client:
        lines = ["GET /api/v1/me HTTP/1.1", *headers, "Connection: close", "", ""]
        client.sendall("\r\n".join(lines).encode())
        assert client.recv(100)[9:12] == status


def test_a_request_as_nginx_sends_it_by_default_needs_a_key(local):
    """HTTP/1.0, with its own address as the name and without a header of its own."""
    host = local.url.removeprefix("http://")
    with socket.create_connection(host.split(":"), timeout=20) as client:
        client.sendall(f"GET /api/v1/me HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(("method", "path"), EDGES)
def test_without_a_key_a_browser_may_ask_only_for_our_own_page(local, method, path):
    with httpx2.Client(base_url=local.url, timeout=60) as http:
        for site in ("cross-site", "same-site", "Cross-Site", "", "nonsense"):
            response = http.request(method, path, headers={"sec-fetch-site": site})
            assert response.status_code == 403, site
        for site in ("same-origin", "none"):
            response = http.request(method, path, headers={"sec-fetch-site": site})
            assert response.status_code not in (401, 403)


def test_forwarded_addresses_are_believed_only_of_trusted_proxies():
    ask = {"x-forwarded-for": "6.6.6.6, 203.0.113.9, 10.1.2.3"}
    for trusted, expected in (
        ((), None),
        ("10.0.0.0/8", None),
        ("127.0.0.1", "10.1.2.3"),
        ("127.0.0.1, 10.0.0.0/8", "203.0.113.9"),
    ):
        with running(trusted_proxies=trusted) as server, logged(level="info") as log:
            for number in range(2):
                forged = {"x-forwarded-for": f"6.6.6.{number}, {ask['x-forwarded-for'][9:]}"}
                assert httpx2.get(f"{server.url}/api/v1/me", headers=forged).status_code == 401
        clients = {record.get("client") for record in log.records("firnline.access")}
        assert clients == {expected}


def test_wrong_keys_are_limited_by_the_address_of_the_client():
    def tries(server, *chain):
        headers = {"x-forwarded-for": ", ".join(chain), "authorization": "Bearer fl_0_0"}
        return httpx2.get(f"{server.url}/api/v1/me", headers=headers).status_code

    with running(trusted_proxies="127.0.0.1", requests_per_minute=3) as server:
        assert [tries(server, f"6.6.6.{n}", "203.0.113.9") for n in range(4)] == [401] * 3 + [429]
        assert tries(server, "203.0.113.10") == 401
    with running(requests_per_minute=3) as server:
        assert [tries(server, f"203.0.113.{n}") for n in range(4)] == [401] * 3 + [429]


def test_by_an_explicit_setting_a_trusted_proxy_answers_for_its_clients():
    host = {"x-forwarded-for": "203.0.113.9"}
    cases = [
        ({**host, "host": "memory.example"}, 200),
        ({**host, "host": "memory.example", "origin": "https://memory.example"}, 200),
        ({**host, "sec-fetch-site": "cross-site"}, 403),
        ({**host, "origin": "http://evil.example"}, 403),
        ({"via": "1.1 other"}, 401),
        ({}, 200),
    ]
    with (
        running(auth="proxy", trusted_proxies=("127.0.0.1",)) as server,
        httpx2.Client(base_url=server.url, timeout=60) as http,
    ):
        for headers, expected in cases:
            assert http.get("/api/v1/me", headers=headers).status_code == expected, headers
    with running(auth="proxy", trusted_proxies="10.0.0.1") as server:
        headers = {"x-forwarded-for": "203.0.113.9"}
        assert httpx2.get(f"{server.url}/api/v1/me", headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"auth": "proxy"}, "auth=proxy requires trusted_proxies"),
        ({"trusted_proxies": "everybody"}, "expected addresses or networks"),
    ],
)
def test_wrong_proxies_are_reported(given, said):
    with pytest.raises(InputError, match=said):
        load(**given)


def test_proxies_come_from_the_environment_and_the_command_line(monkeypatch):
    monkeypatch.setenv("FIRNLINE_TRUSTED_PROXIES", "10.0.0.1 10.1.0.0/16,::1")
    assert load().trusted_proxies == ("10.0.0.1", "10.1.0.0/16", "::1")
    options = _parser().parse_args(["serve", "--trusted-proxy", "a", "--trusted-proxy", "b"])
    assert options.trusted_proxies == ["a", "b"]


def test_with_a_key_any_name_of_the_host_will_do(local):
    headers = {"authorization": f"Bearer {key_for(local, 't')}", "host": "memory.example"}
    assert httpx2.get(f"{local.url}/api/v1/me", headers=headers, timeout=60).json()["tenant"] == "t"


# -- how large and how fast -------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    with running(body_bytes_max=2_000) as server:
        yield server


def test_a_body_that_is_too_large_is_rejected(small):
    path = f"{small.url}/api/v1/conversations/c/messages"
    headers = {"content-type": "application/json"}

    def pieces(count):
        for _ in range(count):
            yield b" " * 500

    for body in (b" " * 2_001, pieces(5), b'{"messages":[' + b" " * 5_000):
        response = httpx2.post(path, content=body, headers=headers, timeout=60)
        assert response.status_code == 413, response.text
        assert response.json()["code"] == "BodyTooLarge"
    fits = b'{"messages":[{"role":"user","content":"x"}]}'.ljust(2_000)
    assert httpx2.post(path, content=fits, headers=headers, timeout=60).status_code == 201


def test_a_body_without_an_end_is_not_waited_for(small):
    """What says that it is too large is refused before it is sent."""
    host, port = small.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(
            b"POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n"
            b"Content-Type: application/json\r\n\r\n{"
        )
        assert b" 413 " in connection.recv(1_000)


@pytest.mark.parametrize("length", ["9" * 30, "-1", "x", "1e3", "", " ", "٣"])
def test_an_invalid_length_is_rejected(small, length):
    host, port = small.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        start = "GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\n"
        connection.sendall(f"{start}Content-Length: {length}\r\n\r\n".encode())
        assert re.match(rb"HTTP/1.1 (400|413) ", connection.recv(1_000))


def test_requests_are_counted_by_key():
    with running(requests_per_minute=5, auth="required") as server:
        ann, bob = (key_for(server, name) for name in ("ann", "bob"))

        def ask(key):
            headers = {"authorization": f"Bearer {key}"}
            return httpx2.get(f"{server.url}/api/v1/me", headers=headers, timeout=60)

        assert [ask(ann).status_code for _ in range(6)] == [200] * 5 + [429]
        refused = ask(ann)
        assert refused.json()["code"] == "TooFast"
        assert refused.json()["retryable"] is True
        assert 1 <= int(refused.headers["retry-after"]) <= 12
        assert ask(bob).status_code == 200, "another key has its own pace"


def test_tokens_are_counted_by_key():
    with running(tokens_per_minute=100, auth="required") as server:
        with Api(server.url, key_for(server, "ann")) as ann:
            ann.say("c", "word " * 500)
            refused = ann.ask("GET", "/me")
            assert refused.status_code == 429
            assert 200 <= int(refused.headers["retry-after"]) <= 320
        with Api(server.url, key_for(server, "ann")) as other_key:
            assert other_key.get("/me")


def test_the_pace_fills_again_with_time():
    now = 0.0
    pace = RateLimiter(60, clock=lambda: now)
    assert [pace.take("a") for _ in range(61)] == [0.0] * 60 + [1.0]
    now = 1.0
    assert pace.take("a") == 0.0
    assert pace.take("a") == 1.0
    pace.charge("a", 30)
    assert pace.wait("a") == 30.0
    now = 1_000.0
    assert [pace.take("a") for _ in range(61)] == [0.0] * 60 + [1.0], "no more than a minute's"
    assert RateLimiter(0).take("a") == RateLimiter(0).wait("a") == 0.0
