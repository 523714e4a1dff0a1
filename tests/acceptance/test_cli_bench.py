"""`firnline bench` as people run it, on a small set of our own."""

import json
import os
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree as ET

import pytest

import bench_sets

PROGRAM = (sys.executable, "-m", "firnline", "bench")


@pytest.fixture
def bench(tmp_path):
    """Run the command in a folder of its own; its temporary files have one, too."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "set.json").write_text(json.dumps(bench_sets.locomo()))
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}

    def bench(*arguments):
        done = subprocess.run(
            [*PROGRAM, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert not any((tmp_path / "tmp").glob("firnline*"))
        return done.returncode, done.stdout, done.stderr

    return bench


def test_from_a_file_to_figures(bench, tmp_path):
    files = ("--json", "out.json", "--plot", "out.svg")
    code, out, err = bench("locomo", "set.json", "--ask", "both", "--tokens", "1000,500", *files)
    assert (code, err) == (0, "")
    assert "1 conversation, 6 messages; 3 questions counted" in out
    assert "left out: 1 (adversarial: made to have no answer)" in out
    assert "FTS5 bm25, porter" in out
    made = json.loads((tmp_path / "out.json").read_text())
    assert made["tokens"] == [500, 1_000]
    assert made["methods"]["Firnline recall"]["all"]["500"]["mean"] == 1.0  # all of it fits
    assert made["methods"]["Firnline context"]["all"]["1000"]["mean"] == 1.0
    assert len(made["sha256"]) == 64
    assert str(tmp_path) not in json.dumps(made)
    assert ET.parse(tmp_path / "out.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize("form", sorted(bench_sets.SETS))
def test_every_format(bench, tmp_path, form):
    (tmp_path / "set.json").write_text(json.dumps(bench_sets.SETS[form]()))
    code, out, err = bench(form, "set.json", "--embedder", "none")
    assert (code, err) == (0, "")
    assert ("SQL LIKE" in out) == (form == "locomo")
    assert "embedder: none" in out


def test_a_quick_try(bench):
    code, out, _ = bench(
        "locomo", "set.json", "--limit-questions", "1", "--limit-conversations", "1"
    )
    assert code == 0
    assert "1 question counted" in out


def test_a_store_of_ones_own_is_used_once(bench):
    assert bench("locomo", "set.json", "--url", "sqlite:///own.db")[0] == 0
    code, _, err = bench("locomo", "set.json", "--url", "sqlite:///own.db")
    assert (code, "a benchmark needs an empty one" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("locomo", "none.json"), "there is no file none.json"),
        (("beam", "set.json"), "set.json, conversation 1: expected a field 'chat'"),
        (("locomo", "set.json", "--tokens", "many"), "expected numbers with commas"),
        (("locomo", "set.json", "--limit-questions", "0"), "--limit-questions 0: at least 1"),
        (("locomo", "set.json", "--plot", "no/where.svg"), "there is no folder no"),
        (("poems", "set.json"), "invalid choice: 'poems'"),
    ],
)
def test_mistakes(bench, arguments, complaint):
    code, out, err = bench(*arguments)
    assert (code, out) == (2, "")
    assert complaint in err


def test_an_interruption_leaves_no_files(tmp_path):
    row = bench_sets.locomo()[0]
    row["qa"] = row["qa"][:3] * 10_000
    (tmp_path / "set.json").write_text(json.dumps(row))
    folder = tmp_path / "tmp"
    folder.mkdir()
    process = subprocess.Popen(
        [*PROGRAM, "locomo", "set.json"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not list(folder.glob("*/bench.db")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert not any(folder.glob("firnline*"))
