"""Connections that send or read too little are closed; too many leave room for health checks."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

import httpx2
import pytest

from firnline.log import limits
from firnline.server.limits import JOBS_RUNNING_MAX
from support.live_server import free_port, running
from support.rest_client import Api, parse_events

IMPORT = (
    b"POST /api/v1/import HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/jsonl\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
LINES = {"content-type": "application/jsonl"}
HEALTH = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def hasty():
    """A server with short limits."""
    with running(
        header_seconds=0.3,
        body_seconds=1.5,
        body_stall_seconds=0.3,
        body_bytes_per_second=1_000,
        idle_seconds=0.3,
        send_seconds=0.3,
        header_bytes_max=8_192,
        background=False,
    ) as server:
        yield server


def connect(server):
    place = urlsplit(server.url)
    return socket.create_connection((place.hostname, place.port), timeout=20)


def answer(client):
    """Everything until the server closes the connection."""
    said = b""
    while piece := client.recv(65_536):
        said += piece
    return said


def status(said):
    return int(said.split()[1]) if said else None


def post(path, *headers, body=b""):
    lines = [f"POST {path} HTTP/1.1", "host: localhost", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


TYPE = "content-type: application/json"
BOTH = "accept: application/json, text/event-stream"
UNFINISHED = [
    (b"", None),
    (b"GET /livez HTTP/1.1\r\nhost: loc", 408),
    (post("/api/v1/conversations/c/messages", TYPE, "content-length: 50", body=b"{"), 408),
    (post("/v1/chat/completions", "content-length: 9"), 408),
    (post("/mcp", TYPE, BOTH, "content-length: 9", body=b"{"), 408),
    (IMPORT + b'5\r\n{"fir\r\n', 408),
]


@pytest.mark.parametrize(("sent", "expected"), UNFINISHED)
def test_an_unfinished_request_is_closed_and_told_why(hasty, sent, expected):
    with connect(hasty) as client:
        client.sendall(sent)
        assert status(answer(client)) == expected


def test_a_connection_is_closed_between_requests_and_in_the_middle_of_the_next(hasty):
    for more in (b"", b"GET /livez HT"):
        with connect(hasty) as client:
            client.sendall(HEALTH + more)
            said = answer(client)
            assert said.startswith(b"HTTP/1.1 200")
            assert (b"408 Request Timeout" in said) == bool(more)


def test_headers_that_arrive_drop_by_drop_are_late_too(hasty):
    with connect(hasty) as client:
        began = time.monotonic()
        with pytest.raises(OSError):  # a broken pipe, or a reset
            while time.monotonic() < began + 20:
                client.sendall(b"x")
                time.sleep(0.02)


def test_a_body_that_is_too_slow_ends_the_import_and_frees_its_slot(hasty):
    """Endless uploads, a piece at a time: as many as a tenant may have; then another one."""
    with Api(hasty.url) as api, ExitStack() as slow:
        before = {job["id"] for job in api.get("/jobs")["data"]}
        for _ in range(JOBS_RUNNING_MAX):
            client = slow.enter_context(connect(hasty))
            client.sendall(IMPORT)
            drip(client)
        jobs = [job for job in api.get("/jobs")["data"] if job["id"] not in before]
        for job in jobs:
            events = parse_events(api.ask("GET", f"/jobs/{job['id']}/events").text)
            assert events[-1][1]["error"]["detail"] == "the upload was interrupted"
        assert len(jobs) == JOBS_RUNNING_MAX
        assert api.ask("POST", "/import", content=b"x", headers=LINES).status_code == 202


def drip(client, piece=b"1\r\n \r\n", pause=0.03):
    """Send pieces until the server has had enough."""
    deadline = time.monotonic() + 20
    client.settimeout(pause)
    while time.monotonic() < deadline:
        try:
            client.sendall(piece)
            if client.recv(65_536).startswith(b"HTTP/1.1 408"):
                return
        except TimeoutError:
            continue
        except OSError:
            return
    raise AssertionError("the server never had enough")


def test_a_body_has_a_total_limit_however_fast_it_is(hasty):
    with connect(hasty) as client:
        client.sendall(IMPORT)
        drip(client, b"%x\r\n%s\r\n" % (4_000, b" " * 4_000), 0.2)


def test_a_body_as_slow_as_allowed_arrives(hasty):
    body = b'{"messages": [{"role": "user", "content": "' + b"x" * 2_000 + b'"}]}'

    def pieces():
        for at in range(0, len(body), 250):
            yield body[at : at + 250]
            time.sleep(0.1)

    headers = {"content-type": "application/json"}
    path = f"{hasty.url}/api/v1/conversations/slow/messages"
    assert httpx2.post(path, content=pieces(), headers=headers, timeout=20).status_code == 201


def test_a_stream_may_take_longer_than_every_limit(hasty):
    """The events of a job that waits, and an answer whose client waits for it."""
    with Api(hasty.url) as api:
        job = hasty.parts.jobs.open("default", "export")
        events = []

        def listen():
            events.extend(parse_events(api.ask("GET", f"/jobs/{job.id}/events").text))

        listening = threading.Thread(target=listen)
        listening.start()
        time.sleep(1.5)
        hasty.loop.call_soon_threadsafe(hasty.parts.jobs._end, job, "done")
        listening.join(20)
        assert [name for name, _ in events] == ["progress", "done"]


def test_a_client_that_does_not_read_its_answer_is_disconnected(hasty):
    with Api(hasty.url) as api:
        for _ in range(8):
            api.say("long", "word " * 300_000)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        client.settimeout(20)
        client.connect(("127.0.0.1", urlsplit(hasty.url).port))
        client.sendall(b"GET /api/v1/export HTTP/1.1\r\nhost: localhost\r\n\r\n")
        time.sleep(1.2)
        assert not answer(client).endswith(b"0\r\n\r\n"), "what the system had buffered, and no end"


@pytest.mark.parametrize("size", [9_000, 40_000, 400_000])
@pytest.mark.parametrize("kind", ["one", "many", "path"])
def test_headers_over_the_limit_are_answered_with_431(hasty, kind, size):
    lines = {
        "one": b"GET /livez HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * size + b"\r\n\r\n",
        "many": b"GET /livez HTTP/1.1\r\nhost: h\r\n" + b"a: 12345\r\n" * (size // 6) + b"\r\n",
        "path": b"GET /livez?" + b"x" * size + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
    }
    with connect(hasty) as client:
        client.sendall(lines[kind])
        said = answer(client)
        assert status(said) == 431
        problem = json.loads(said.partition(b"\r\n\r\n")[2])
        assert problem["detail"] == "headers too large: the limit is 8,192 bytes"


def test_what_is_not_http_is_answered_with_400(hasty):
    for sent in (b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET\r\n\r\n", IMPORT + b"zz\r\n"):
        with connect(hasty) as client:
            client.sendall(sent)
            assert status(answer(client)) == 400


REJECTED = [
    (post("/api/v1/conversations/c/messages", TYPE, "content-length: 9000000"), 413),
    (post("/api/v1/import", "content-type: text/plain", "content-length: 9000000"), 415),
    (post("/api/v1/nothing", TYPE, "content-length: 8000000"), 404),
]


@pytest.mark.parametrize(("head", "expected"), REJECTED)
def test_a_client_that_sends_all_before_it_reads_gets_the_rejection(hasty, head, expected):
    """Closing with unread data would reset the connection; Python's urllib sends like this."""
    size = int(head.rpartition(b": ")[2])
    with connect(hasty) as client:
        client.sendall(head.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        for _ in range(size // 100_000):
            client.sendall(b"x" * 100_000)
        assert status(answer(client)) == expected


def test_the_rest_of_a_rejected_body_is_not_awaited_for_long(hasty, monkeypatch):
    monkeypatch.setattr(limits, "DRAIN_SECONDS", 0.2)
    with connect(hasty) as client:
        client.sendall(REJECTED[0][0].replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        assert status(answer(client)) == 413


# -- too many ---------------------------------------------------------------------------------


def test_beyond_the_cap_health_checks_are_answered_and_nothing_else():
    with running(connections_max=5) as server, ExitStack() as crowd:
        for _ in range(5):
            crowd.enter_context(connect(server))
        for _ in range(100):  # silent ones, more than are awaited
            crowd.enter_context(connect(server))
        for path, expected in (("/livez", 200), ("/readyz", 200), ("/api/v1/me", 503)):
            response = httpx2.get(server.url + path, timeout=20)
            assert response.status_code == expected
        assert response.json()["detail"].startswith("too many connections: the limit is 5")
        assert response.headers["retry-after"] == "1"
        crowd.close()
        while httpx2.get(f"{server.url}/api/v1/me", timeout=20).status_code != 200:
            time.sleep(0.01)


LIMITED = "ulimit -n 256; exec {} -m firnline serve --store memory: --port {} 2>{}"


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors have no limit there")
def test_at_the_limit_of_descriptors_the_server_lives_and_its_log_is_short(tmp_path):
    port, log = free_port(), tmp_path / "log"
    command = ["sh", "-c", LIMITED.format(sys.executable, port, log)]
    variables = {**os.environ, "FIRNLINE_EMBEDDER": "none"}
    process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(url)
        with ExitStack() as crowd:
            for _ in range(600):
                crowd.enter_context(closing(socket.create_connection(("127.0.0.1", port), 20)))
            for path in ("/livez", "/readyz"):
                assert httpx2.get(url + path, timeout=20).status_code == 200
            assert httpx2.get(f"{url}/api/v1/me", timeout=20).status_code == 503
        assert log.stat().st_size < 50_000
        assert "out of system resource" not in log.read_text()
    finally:
        process.terminate()
        process.wait(60)


def wait_until_ready(url):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if httpx2.get(f"{url}/readyz", timeout=20).is_success:
                return
        except httpx2.TransportError:
            time.sleep(0.05)
    raise AssertionError("the server is not ready")
