"""`firnline bench` on a small question set."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from xml.etree import ElementTree as ET

import pytest

from firnline.cli import main
from support import question_sets

PROGRAM = (sys.executable, "-m", "firnline", "bench")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Of a command's temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    (tmp_path / "set.json").write_text(json.dumps(question_sets.locomo()))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def bench(folder, capsys):
    """Run the command in a separate folder; its temporary files have one, too."""

    def bench(*arguments):
        try:
            code = main(("bench", *arguments))
        except SystemExit as stop:
            code = stop.code
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        assert not any(folder.glob("firnline*"))
        return code, printed.out, printed.err

    return bench


def test_from_a_file_to_figures(folder, tmp_path):
    files = ("--json", "out.json", "--plot", "out.svg")
    command = (*PROGRAM, "locomo", "set.json", "--ask", "both", "--tokens", "1000,500", *files)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not any(folder.glob("firnline*"))
    out = done.stdout
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


@pytest.mark.parametrize("form", sorted(question_sets.SETS))
def test_every_format(bench, tmp_path, form):
    (tmp_path / "set.json").write_text(json.dumps(question_sets.SETS[form]()))
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


def test_a_custom_store_is_used_once(bench):
    assert bench("locomo", "set.json", "--url", "sqlite:///own.db")[0] == 0
    code, _, err = bench("locomo", "set.json", "--url", "sqlite:///own.db")
    assert (code, "a benchmark needs an empty one" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("locomo", "none.json"), "there is no file none.json"),
        (("beam", "set.json"), "set.json, conversation 1: expected a field 'chat'"),
        (("locomo", "set.json", "--tokens", "many"), "expected numbers with commas"),
        (
            ("locomo", "set.json", "--limit-questions", "0"),
            "--limit-questions 0: must be at least 1",
        ),
        (("locomo", "set.json", "--plot", "no/where.svg"), "there is no folder no"),
        (("poems", "set.json"), "invalid choice: 'poems'"),
    ],
)
def test_errors(bench, arguments, complaint):
    code, out, err = bench(*arguments)
    assert (code, out) == (2, "")
    assert complaint in err


def test_an_interruption_leaves_no_files(folder, tmp_path):
    row = question_sets.locomo()[0]
    row["qa"] = row["qa"][:3] * 10_000
    (tmp_path / "set.json").write_text(json.dumps(row))
    process = subprocess.Popen(
        [*PROGRAM, "locomo", "set.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not list(folder.glob("*/bench.db")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert not any(folder.glob("firnline*"))
