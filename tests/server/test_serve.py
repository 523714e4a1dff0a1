"""`firnline serve`: its output leads a newcomer to a first remembered answer."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from urllib.parse import urlsplit

import httpx2
import pytest

from firnline.cli import main
from firnline.server.sample import CONVERSATION
from firnline.server.serve import lines_for
from firnline.server.settings import load
from support.live_server import running


@pytest.fixture
def serve(tmp_path):
    """Start the command; returns the process and what it says before it waits."""
    started = []

    def serve():
        command = [sys.executable, "-m", "firnline", "serve", "--sample", "--port", "0"]
        store = ["--store", f"sqlite:///{tmp_path}/f.db", "--log-level", "error"]
        process = subprocess.Popen([*command, *store], stdout=subprocess.PIPE, text=True)
        started.append(process)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Press Ctrl-C"):
                break
        return process, "".join(lines)

    yield serve
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def place(said, name):
    return re.search(rf"^  {name} +(\S+)", said, re.MULTILINE)[1]


@pytest.mark.requirement("X1")
def test_what_is_printed_leads_to_a_first_remembered_answer(serve):
    process, said = serve()
    page = httpx2.get(place(said, "Page"), timeout=60)
    assert (page.status_code, page.headers["content-type"][:9]) == (200, "text/html")
    assert place(said, "Page").endswith(f"/#/c/{CONVERSATION}")
    listed = httpx2.get(f"{place(said, 'API')}/conversations", timeout=60).json()
    assert CONVERSATION in [one["conversation"] for one in listed["data"]]
    assert httpx2.get(place(said, "Metrics"), timeout=60).status_code == 200
    base = place(said, "OpenAI").replace("/v1", f"/c/{CONVERSATION}/v1")
    asked = {"messages": [{"role": "user", "content": "Which order never arrived?"}]}
    answer = httpx2.post(f"{base}/chat/completions", json=asked, timeout=60).json()
    assert "1138" in answer["choices"][0]["message"]["content"]
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130, "as the shell knows it"


def test_a_file_that_cannot_be_created_ends_the_start(tmp_path, capsys):
    store = f"sqlite:///{tmp_path}/no/such/folder/f.db"
    assert main(["serve", "--port", "0", "--store", store]) == 5
    assert f"the folder {tmp_path}/no/such/folder does not exist" in capsys.readouterr().err


@pytest.mark.thorough
@pytest.mark.long
def test_the_sample_is_there_once(serve):
    seen = []
    for _ in range(2):
        process, said = serve()
        head = httpx2.get(f"{place(said, 'API')}/conversations/{CONVERSATION}", timeout=60).json()
        seen.append(head["entries"])
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert seen[0] == seen[1] > 10


@pytest.mark.parametrize(
    ("setting", "value", "code", "said"),
    [
        ("FIRNLINE_EMBEDDER", "bogus", 2, "one of minilm, multilingual, words, or PROVIDER/MODEL"),
        ("FIRNLINE_STORE", "sqlite:///text.db", 6, "not a database"),
        ("FIRNLINE_STORE", "sqlite:///.", 2, "is a folder"),
        ("FIRNLINE_CONFIG", "wrong.toml", 2, "wrong.toml cannot be read"),
    ],
)
def test_what_is_wrong_is_named_at_the_start(tmp_path, setting, value, code, said):
    (tmp_path / "text.db").write_text("hello")
    (tmp_path / "wrong.toml").write_text("port = what")
    command = [sys.executable, "-m", "firnline", "serve", "--port", "0"]
    others = {name: said for name, said in os.environ.items() if not name.startswith("FIRNLINE_")}
    done = subprocess.run(
        command, cwd=tmp_path, env={**others, setting: value},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_connection_during_shutdown_leaves_no_socket():
    """At the tests' own server; the warning would fail whichever test comes next."""
    with running() as server:
        server.loop.call_soon_threadsafe(time.sleep, 0.05)  # then it hears both at once
        there = ("127.0.0.1", urlsplit(server.url).port)
        visitor = socket.create_connection(there, timeout=20)
    with visitor, suppress(ConnectionResetError):
        assert visitor.recv(1) == b""


def test_without_a_sample_the_page_begins_at_its_start():
    (page,) = [line for line in lines_for(load(), "http://h:1") if "Page" in line]
    assert page.split() == ["Page", "http://h:1/"]


FREEZES = """
import asyncio, gc, os, signal
from firnline.server.serve import serve
from firnline.server.settings import load

def tell(_):
    print(gc.get_freeze_count())
    os.kill(os.getpid(), signal.SIGTERM)

asyncio.run(serve(load(store="memory:", port=0, embedder="none"), tell=tell))
"""


def test_no_request_waits_for_a_search_for_garbage_in_what_was_imported():
    done = subprocess.run(
        [sys.executable, "-c", FREEZES], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout.split()[0]) > 10_000
