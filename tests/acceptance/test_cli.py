"""The command line: output for people and for scripts."""

import base64
import gc
import io
import json
import os
import pty
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from firnline.cli.terminal import plain, progress_bar, table
from firnline.context.marks import INTERRUPTED
from firnline.log.entry import Project
from firnline.sync import Memory, Message
from firnline.testing import ModelServer


def test_a_first_session(run):
    code, out, _ = run("append", "hello", "My", "first", "message")
    assert (code, out.split(":")[0]) == (0, "hello 0")
    assert run("append", "hello", "--role", "assistant", "--name", "Bot", "Hi!")[0] == 0
    code, out, _ = run("show", "hello")
    assert code == 0
    assert "user: My first message" in out
    assert "assistant (Bot): Hi!" in out
    code, out, _ = run("conversations")
    assert out.splitlines()[0].split()[:2] == ["conversation", "title"]
    assert out.splitlines()[2].split()[:5] == ["hello", "My", "first", "message", "2"]
    code, out, _ = run("search", "first")
    assert "My first message" in out
    code, out, _ = run("verify")
    assert (code, "1 of 1 conversations intact" in out) == (0, True)
    code, out, _ = run("doctor")
    assert (code, "pages" in out) == (0, True)


def test_json_for_machines(run):
    _, out, _ = run("append", "c", "x", "--json")
    entry = json.loads(out)
    assert (entry["seq"], entry["message"]["content"], entry["replayed"]) == (0, "x", False)
    for arguments in (
        ["show", "c"],
        ["conversations"],
        ["search", "x"],
        ["verify"],
        ["doctor"],
        ["export", "x.jsonl"],
        ["import", "x.jsonl"],
        ["backup", "copy.db"],
        ["archive", "c", "--keep", "0"],
        ["restore", "c"],
        ["erase", "c", "--yes"],
    ):
        code, out, err = run(*arguments, "--json")
        assert (code, err) == (0, ""), arguments
        for line in out.splitlines():
            json.loads(line)


def test_openai_messages_and_standard_input(run, monkeypatch):
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}]
    assert run("append", "c", "--openai", json.dumps(messages))[0] == 0
    monkeypatch.setattr("sys.stdin", _Input("two\nlines\n"))
    assert run("append", "c")[0] == 0
    _, out, _ = run("show", "c", "--json")
    shown = [json.loads(line)["message"] for line in out.splitlines()]
    assert shown == [*messages, {"role": "user", "content": "two\nlines"}]
    assert "→ f({})" in run("show", "c")[1]


class _Input:
    def __init__(self, text):
        self._text = text

    def read(self):
        return self._text

    def isatty(self):
        return False


@pytest.mark.promise("idempotent")
def test_a_retry_adds_nothing(run):
    run("append", "c", "x", "--idempotency-key", "k")
    code, out, _ = run("append", "c", "x", "--idempotency-key", "k")
    assert (code, "already stored" in out) == (0, True)
    assert run("append", "c", "y", "--idempotency-key", "k")[0] == 4


@pytest.mark.promise("typed-failure")
def test_exit_codes_mean_something(run, tmp_path):
    assert run("show", "c")[0] == 2  # no store yet, and none is made
    assert not (tmp_path / "firnline.db").exists()
    run("append", "c", "x")
    assert run("show", "nobody")[0] == 3
    assert run("append", "", "x")[0] == 2
    assert run("append", "c", "--openai", "{oops")[0] == 2
    assert run("import", "missing.jsonl")[0] == 2
    assert run("export", "no/such/folder.jsonl")[0] == 2
    assert run("conversations", "--store", "mysql://x")[0] == 2
    assert run("append", "c", "x", "--store", "sqlite:///firnline.db?mode=ro")[0] == 5
    assert run("frobnicate")[0] == 2
    (tmp_path / "text.db").write_text("this is not a database, and it is longer than a header" * 50)
    code, _, err = run("conversations", "--store", "sqlite:///text.db")
    assert (code, "not a database" in err) == (6, True)


@pytest.mark.promise("tamper-evident")
def test_damage_is_found_and_reported(run, tmp_path):
    run("append", "c", "the original text")
    path = tmp_path / "firnline.db"
    path.write_bytes(path.read_bytes().replace(b"the original text", b"the 0riginal text"))
    code, out, _ = run("verify")
    assert (code, "DAMAGED" in out, "message 0" in out) == (1, True, True)
    assert run("show", "c")[0] == 6
    assert "page checksums: damaged" in out
    code, out, _ = run("verify", "c", "--json")
    assert json.loads(out)["ok"] is False
    code, out, _ = run("verify", "--json")
    conversation, store = map(json.loads, out.splitlines())
    assert conversation["ok"] is False
    assert (store["what"], store["state"]) == ("page checksums", "broken")


@pytest.mark.promise("erase-total")
def test_erase_asks_first(run):
    run("append", "c", "secret")
    code, _, err = run("erase", "c")
    assert (code, "--yes" in err) == (2, True)
    assert run("show", "c")[0] == 0
    code, out, _ = run("erase", "c", "--yes")
    assert (code, "1 message" in out) == (0, True)
    assert run("show", "c")[0] == 3


def test_conversations_have_titles_and_the_newest_is_first(run):
    run("append", "a-old", "Where is\norder 1138?")
    run("append", "b-new", "Hello", "--role", "system")
    listed = run("conversations")[1]
    assert listed.index("b-new") < listed.index("a-old")
    assert "Where is order 1138?" in listed
    assert run("title", "a-old", "The", "late", "order")[0] == 0
    first, second = map(json.loads, run("conversations", "--json")[1].splitlines())
    assert {first["conversation"], second["conversation"]} == {"a-old", "b-new"}
    assert {first["title"], second["title"]} == {"The late order", ""}


def test_a_branch_begins_as_another_did(run):
    for text in ("one", "two", "three"):
        run("append", "c", text)
    code, out, _ = run("branch", "c", "1", "d")
    assert (code, out) == (0, "d: 2 messages, copied from c up to message 1\n")
    assert run("show", "d")[1] == "".join(run("show", "c")[1].splitlines(keepends=True)[:2])
    _, out, _ = run("branch", "c", "1", "d", "--json")
    head = json.loads(out)
    assert (head["entries"], head["metadata"]) == (2, {"branch": {"of": "c", "at": 1}})
    code, _, err = run("branch", "c", "2", "d")
    assert (code, "choose another name" in err) == (4, True)
    assert run("branch", "c", "3", "e")[0] == 2
    assert run("branch", "nothing", "0", "e")[0] == 3


def test_what_is_attached_and_what_broke_off_is_shown(run):
    """An interrupted answer and a message of a picture alone looked like any other."""
    data = base64.b64encode(bytes(600)).decode()
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    report = {"type": "file", "file": {"file_id": "f-1", "filename": "report.pdf"}}
    messages = [{"role": "user", "content": [picture, report]}]
    run("append", "c", "--openai", json.dumps(messages))
    answer = Message.assistant("It is on", metadata={INTERRUPTED: "canceled"})
    with Memory.open("sqlite:///firnline.db") as memory:
        memory.append("c", answer)
    _, out, _ = run("show", "c")
    assert "[image, image/png, 600 bytes]" in out
    assert "[file, report.pdf]" in out
    assert "It is on\n     [interrupted: canceled]" in out
    assert data not in out


def test_important_data_is_listed_added_and_reverted(run):
    run("append", "c", "Hello.")
    assert "No important data" in run("important", "c")[1]
    code, out, _ = run("important", "c", "--add", '{"user_preferences": {"diet": "vegan"}}')
    assert (code, "diet: vegan" in out) == (0, True)
    _, out, _ = run("important", "c", "--add", '{"user_preferences": {"diet": "fish"}}')
    assert "diet: fish" in out
    assert "diet: vegan\n  [the application], replaced by the application" in out
    _, out, _ = run("important", "c", "--revert", "-1", "--json")
    now = [json.loads(line) for line in out.splitlines()]
    assert [item["value"] for item in now if item["superseded_by"] is None] == ["vegan"]
    assert run("important", "c", "--add", '{"diet": 1}')[0] == 2
    assert run("important", "nothing")[0] == 3


def test_a_worker_writes_digests_with_the_model_of_the_servers_settings(run, monkeypatch):
    """In the same environment, a server's digests had a model and a worker's had none."""
    for number in range(12):
        run("append", "c", f"{number}: The harbour crane lifts forty tonnes in a light wind. " * 8)
    run("context", "c", "--budget", "600")
    with ModelServer() as model:
        monkeypatch.setenv("FIRNLINE_MODEL", model.model)
        monkeypatch.setenv("FIRNLINE_MODEL_URL", model.url)
        monkeypatch.setenv("FIRNLINE_MODEL_KEY", "sk-own")
        assert run("rebuild", "c")[0] == 0
        assert model.requests
        assert {headers["authorization"] for headers in model.headers} == {"Bearer sk-own"}
        code, _, err = run("rebuild", "c", "--model", "openai/gpt-4o-mini")  # another endpoint
        assert (code, "OPENAI_API_KEY" in err) == (2, True)


def test_projects_are_listed_shown_and_changed(run):
    run("append", "c", "Hello.")
    assert "No projects yet" in run("projects")[1]
    assert run("projects", "boats")[0] == 2
    code, out, _ = run("projects", "boats", "--task", "Build the first one", "--add", "c")
    assert (code, "conversations: c" in out) == (0, True)
    run("projects", "boats", "--status", "paused")
    assert json.loads(run("projects", "--json")[1]) == json.loads(
        json.dumps(asdict(Project("boats", status="paused", task="Build the first one")))
    )
    assert "paused" in run("projects")[1]
    assert "c" in run("conversations", "--project", "boats")[1]
    assert run("projects", "boats", "--add", "nothing")[0] == 3
    assert run("projects", "--task", "whose?")[0] == 2


@pytest.mark.promise("round-trip")
def test_export_import_and_backup(run):
    run("append", "c", "x")
    assert run("export", "x.jsonl")[0] == 0
    assert run("import", "x.jsonl", "--store", "sqlite:///other.db")[0] == 0
    assert "x" in run("show", "c", "--store", "sqlite:///other.db")[1]
    assert run("backup", "copy.db")[0] == 0
    assert run("backup", "copy.db")[0] == 2
    assert run("verify", "--store", "sqlite:///copy.db")[0] == 0


@pytest.mark.promise("backup-whole")
def test_a_backup_is_restored_into_an_empty_place_and_checked(run, tmp_path):
    run("append", "c", "Order 1138 never arrived.", "--person", "ana")
    run("keys", "create", "--name", "app")
    run("backup", "copy.db")
    new = ("--store", "sqlite:///new.db")
    code, out, _ = run("restore-backup", "copy.db", *new)
    assert (code, "pages" in out) == (0, True)
    for command in (["show", "c"], ["people"], ["keys", "list", "--json"], ["verify"]):
        assert run(*command, *new) == run(*command)
    code, _, err = run("restore-backup", "copy.db", *new)  # nothing is written over
    assert (code, "new.db exists" in err) == (2, True)
    assert run("restore-backup", "no.db", "--store", "sqlite:///b.db")[0] == 2
    assert run("restore-backup", "copy.db", "--store", "memory:")[0] == 2
    (tmp_path / "half.db").write_bytes((tmp_path / "copy.db").read_bytes()[:-9_000])
    (tmp_path / "no store.db").write_text("Order 1138 never arrived." * 200)
    for file in ("half.db", "no store.db"):
        assert run("restore-backup", file, "--store", f"sqlite:///of {file}")[0] == 6
        assert not (tmp_path / f"of {file}").exists()


def test_exports_and_imports_go_through_pipes(run, tmp_path):
    run("append", "a", "Order 1138 never arrived.")
    run("append", "b", "Another one.")

    def piped(command, **more):
        line = command.replace("firnline", f"{sys.executable} -m firnline")
        return subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, capture_output=True, check=False, **more
        )

    there = "--store sqlite:///other.db"
    moved = piped(f"firnline export - | firnline import - {there}")
    assert (moved.returncode, moved.stderr) == (0, b"")
    assert b"2 messages, 2 added" in moved.stdout
    pipe = piped(f"firnline import <(firnline export - a) {there}")
    assert (pipe.returncode, b"0 added" in pipe.stdout) == (0, True)
    _, shown, _ = run("export", "-", "a", "--format", "markdown")
    assert "Order 1138 never arrived." in shown
    assert "1 conversation" not in shown, "nothing but the export"
    code, out, err = run("export", "-", "--format", "markdown")
    assert (code, out) == (2, "")
    assert "name a folder, or one conversation" in err
    assert piped("firnline export - | head -c 1").stderr == b""


def test_output_that_is_closed_early_is_no_error(run, tmp_path):
    run("append", "a", "x")
    line = f"{sys.executable} -m firnline conversations >&-"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_impossible_numbers_are_rejected(run):
    run("append", "c", "x")
    for wrong in (["show", "c", "--last", "-3"], ["archive", "c", "--keep", "-1"]):
        code, _, err = run(*wrong)
        assert (code, "is not a whole number of at least 0" in err) == (2, True)
    assert run("restore", "nowhere")[0] == 3
    assert "in the project nowhere" in run("conversations", "--project", "nowhere")[1]


def test_show_pages_and_says_what_it_left_out(run):
    lines = [json.dumps([{"role": "user", "content": f"m{i}"} for i in range(60)])]
    run("append", "c", "--openai", *lines)
    code, out, err = run("show", "c")
    assert (code, len(out.splitlines()), "10 earlier" in err) == (0, 50, True)
    assert len(run("show", "c", "--all")[1].splitlines()) == 60
    assert len(run("show", "c", "--first", "57")[1].splitlines()) == 3


def test_the_search_index_can_be_rebuilt(run):
    run("append", "c", "hello")
    assert run("doctor", "--rebuild-index", "--quick")[0] == 0
    assert "hello" in run("search", "hello", "--conversation", "c")[1]
    assert run("search", "yurt")[1] == "Nothing found.\n"


def test_a_tenant_and_a_store_can_be_named(run, monkeypatch):
    run("append", "c", "x", "--tenant", "a")
    assert "No conversations yet" in run("conversations")[1]
    assert "c" in run("conversations", "--tenant", "a")[1]
    monkeypatch.setenv("FIRNLINE_STORE", "sqlite:///elsewhere.db")
    assert run("append", "d", "x")[0] == 0
    assert Path("elsewhere.db").exists()


def test_messages_cannot_take_over_the_terminal(run):
    run("append", "c", "evil \x1b[2J\x1b]0;title\x07 \u202e bidi \u200b")
    _, out, _ = run("show", "c")
    assert not set(out) & set("\x1b\x07\u202e\u200b")
    assert "\\u001b[2J" in out
    assert plain("family 👩\u200d👩\u200d👧 ok\n") == "family 👩\u200d👩\u200d👧 ok\n"


def test_tables_align_wide_characters():
    lines = table(("name", "n"), [("東京", "1"), ("Oslo", "1,000")], right=(1,)).splitlines()
    assert lines == ["name      n", "────  ─────", "東京      1", "Oslo  1,000"]


def test_help_does_not_show_the_store_of_the_environment(run, monkeypatch):
    monkeypatch.setenv("FIRNLINE_STORE", "postgresql://u:hidden@host/db")
    for command in ("show", "serve", "keys", "mcp", "worker"):
        code, out, err = run(command, "--help")
        assert (code, "hidden" in out + err) == (0, False)


def test_a_store_that_is_named_by_nothing_is_the_default(run, monkeypatch, tmp_path):
    monkeypatch.setenv("FIRNLINE_STORE", "")
    assert run("append", "c", "x")[0] == 0
    assert (tmp_path / "firnline.db").exists()


def test_only_a_separate_program_freezes_its_imports(run):
    kept = gc.get_freeze_count()
    assert run("append", "c", "x")[0] == 0
    assert gc.get_freeze_count() <= kept, "it was called by another program"
    code = "import gc; from firnline.cli import main; main(); print(gc.get_freeze_count())"
    program = [sys.executable, "-c", code, "conversations"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) > 10_000


def test_every_command_has_help_and_runs_as_a_program(run):
    program = [sys.executable, "-m", "firnline", "--help"]
    shown = subprocess.run(program, capture_output=True, text=True, check=True)
    commands = [
        line.split()[0]
        for line in shown.stdout.splitlines()
        if line.startswith("    ") and line[4:5].isalpha() and not line[4:].startswith("COMMAND")
    ]
    assert len(commands) >= 12
    for command in commands:
        code, text, _ = run(command, "--help")
        assert code == 0
        # A command of several actions has its options with each of them.
        alone = command in {"check-proof", "demo", "signing-key"}
        assert alone or "--store" in text or "ACTION" in text or "--from" in text, command
    assert run("--version")[1].startswith("firnline ")


def test_a_reader_that_has_seen_enough_is_no_error(run, tmp_path):
    """Several times as much as pipes and buffers hold."""
    many = json.dumps([{"role": "user", "content": "x" * 2_000}] * 300)
    assert run("append", "c", "--openai", many)[0] == 0
    with subprocess.Popen(
        [sys.executable, "-m", "firnline", "show", "c", "--all"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as show:
        show.stdout.readline()
        show.stdout.close()
        assert show.stderr.read() == b""
        assert show.wait(30) == 0


def test_a_progress_bar_is_drawn_on_a_terminal_only(monkeypatch):
    now = 0.0
    monkeypatch.setattr("firnline.cli.terminal.time.monotonic", lambda: now)
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal, progress_bar("copying", terminal) as progress:
        progress(1, 4)  # too early: most work is done before a bar could be read
        now = 1.0
        progress(2, 4)
    drawn = os.read(leader, 1_000).decode()
    os.close(leader)
    assert "copying ████████████░░░░░░░░░░░░  50% 2/4" in drawn
    assert drawn.count("copying") == 1


@pytest.mark.promise("erase-total")
def test_erase_names_the_branches_and_erases_them_on_request(run, monkeypatch):
    for text in ("one", "two"):
        run("append", "c", text)
    run("branch", "c", "0", "d")
    run("branch", "d", "0", "e")
    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    code, out, _ = run("erase", "c")
    assert (code, "hold copies of its messages and are not erased" in out, "d, e" in out) == (
        2,
        True,
        True,
    )
    code, out, _ = run("erase", "d", "--yes")
    assert (code, "still hold copies of its messages: c, e" in out) == (0, True)
    code, out, _ = run("erase", "c", "--yes", "--with-branches", "--json")
    certificate = json.loads(out)
    assert (code, certificate["branches"], certificate["survives"]) == (0, ["e"], [])
    assert run("conversations", "--json")[1].strip() in ("", "[]")


@pytest.mark.promise("erase-total")
def test_messages_are_erased_by_number_role_and_age(run, tmp_path):
    for text in ("one", "two", "the secret word", "four", "five"):
        run("append", "c", text)
    assert run("erase", "c", "2")[0] == 2  # asks first
    code, out, _ = run("erase", "c", "2", "--yes")
    assert (code, out.startswith("c erased: 1 message")) == (0, True)
    assert b"secret word" not in (tmp_path / "firnline.db").read_bytes()
    assert "(erased " in run("show", "c")[1].splitlines()[2]
    assert "1 of them erased" in run("verify", "c")[1]
    code, out, _ = run("erase", "c", "0-1", "--json", "--yes")
    assert (code, json.loads(out)["spans"]) == (0, [[0, 1]])
    run("append", "c", "--role", "assistant", "six")
    code, out, _ = run("erase", "c", "--role", "assistant", "--json", "--yes")
    assert json.loads(out)["spans"] == [[5, 5]]
    assert run("erase", "--older-than", "90d", "--yes")[1] == "nothing was that old\n"
    code, out, _ = run("erase", "c", "--older-than", "1d", "--json", "--yes")
    assert (code, json.loads(out)["entries"]) == (0, 0)
    for wrong in (("c", "9"), ("c", "x"), (), ("--project", "p"), ("--older-than", "0d")):
        assert run("erase", *wrong, "--yes")[0] == 2, wrong


class Terminal(io.StringIO):
    """Standard input at a terminal."""

    def isatty(self):
        return True
