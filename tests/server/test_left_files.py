"""Nothing that users wrote stays in files after a kill -9."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from firnline.store.files import atomic_write
from firnline.store.scratch import PREFIX, ScratchFolder, remove_stale
from support.live_server import Forked, free_port

SECRET = b"the safe is behind the picture "
PIECE = SECRET * 40_000  # more than is buffered before the file is written


def found(folder):
    """The files with what a user wrote."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if SECRET in path.read_bytes()]


def wait_for_unnamed(pid):
    """Wait until the process has the text in a file without a name."""
    deadline = time.monotonic() + 60
    while not any(map(_has_secret, Path(f"/proc/{pid}/fd").iterdir())):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _has_secret(file):
    with suppress(OSError):
        return str(file.readlink()).endswith("(deleted)") and SECRET in file.read_bytes()
    return False


unnamed = pytest.mark.skipif(sys.platform != "linux", reason="files have names elsewhere")


@unnamed
def test_an_upload_to_a_server_that_is_killed_is_gone(tmp_path):
    port = free_port()
    server = Forked("memory:", port, TMPDIR=str(tmp_path))
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), 20) as client:
        client.sendall(
            b"POST /api/v1/import?name=safe.txt HTTP/1.1\r\nhost: localhost\r\n"
            b"content-type: application/jsonl\r\ntransfer-encoding: chunked\r\n\r\n"
            + b"%x\r\n%s\r\n"
            % (len(PIECE), PIECE)
        )
        wait_for_unnamed(server.pid)
        (folder,) = tmp_path.glob(f"{PREFIX}*")
        assert folder.stat().st_mode & 0o077 == 0, "until then, nobody else may read it"
        server.kill()
    assert found(tmp_path) == []
    again = Forked("memory:", port, TMPDIR=str(tmp_path))
    try:
        assert list(tmp_path.glob("firnline-*")) == []
    finally:
        again.kill()


@unnamed
def test_standard_input_of_a_command_that_is_killed_is_gone(tmp_path):
    command = [sys.executable, "-m", "firnline", "import", "-", "--store", f"{tmp_path}/f.db"]
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(command, env=variables, stdin=subprocess.PIPE)
    process.stdin.write(PIECE)
    process.stdin.flush()
    wait_for_unnamed(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    with suppress(BrokenPipeError):
        process.stdin.close()
    assert found(tmp_path) == []


def _never(path):
    return False


def test_an_unnamed_file_is_read_as_often_as_needed(monkeypatch):
    """Each reader has a place of its own; where files have names, too."""
    for is_named in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "exists", _never if is_named else os.path.lexists)
            scratch = ScratchFolder()
            path = scratch.file("notes.txt")
            path.write_bytes(SECRET)
            with path.open("rb") as one, path.open("rb") as two:
                assert (one.read(8), two.read(), one.read()) == (SECRET[:8], SECRET, SECRET[8:])
            assert (path.name, path.is_file(), path.stat().st_size) == (
                "notes.txt", True, len(SECRET),
            )  # fmt: skip
            scratch.close()
            assert not os.path.lexists(scratch.path)


KILLED = """
import os, sys
from pathlib import Path
from firnline.store.files import atomic_write

with atomic_write(Path(sys.argv[1])) as half_done:
    half_done.write_bytes(sys.stdin.buffer.read())
    os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="files are not locked elsewhere")
def test_a_file_half_written_by_a_process_that_is_killed_is_gone_at_the_next(tmp_path):
    export = tmp_path / "export.jsonl"
    subprocess.run([sys.executable, "-c", KILLED, export], input=SECRET, timeout=60, check=False)
    assert len(found(tmp_path)) == 1
    mine = tmp_path / "firnline-notes.partial"
    mine.write_text("not of Firnline")
    with atomic_write(export) as first:
        first.write_bytes(b"of a process that lives")
        with atomic_write(tmp_path / "other") as second:
            second.write_bytes(b"too")
        assert found(tmp_path) == []
        assert first.exists(), "it is being written"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "export.jsonl", "firnline-notes.partial", "other",
    ]  # fmt: skip


def test_a_folder_of_a_process_that_lives_stays(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with ScratchFolder() as folder:
        remove_stale()
        with ScratchFolder() as other:
            assert folder.exists()
            assert other != folder
    assert list(tmp_path.iterdir()) == []
    (tmp_path / f"{PREFIX}link").symlink_to(Path(__file__).parent)
    remove_stale()
    assert Path(__file__).exists()
