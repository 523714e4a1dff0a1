"""The command line: contexts, digests, strategies, pins and the worker."""

import json
import os
import signal
import subprocess
import sys

import pytest

from firnline.sync import Memory
from firnline.testing.model_server import ModelServer

PROGRAM = [sys.executable, "-m", "firnline"]


@pytest.fixture
def trip(run):
    """A conversation called "trip" of 61 entries, about 1,500 tokens."""
    messages = [{"role": "system", "content": "You plan trips."}]
    for i in range(30):
        asked = f"Day {i}: we decided to stay in hotel number {i + 100}, it costs {i + 50} euros."
        messages.append({"role": "user", "content": asked})
        messages.append({"role": "assistant", "content": f"Noted: hotel {i + 100} for day {i}."})
    assert run("append", "trip", "--openai", json.dumps(messages))[0] == 0
    return run


def test_a_context_is_shown_with_its_sections(trip):
    code, out, err = trip("context", "trip", "--budget", "600", "--system", "Be brief.")
    assert code == 0
    assert "system: Be brief." in out
    assert " of this conversation, messages 0 to" in out
    assert "60 20" in out, "the newest entry has its number and its time"
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
    assert rows["recent"][1:3] != ["0", "0"]
    assert int(rows["all"][2]) <= 600
    assert "firnline digests" in err, "it is said that digests were made"
    code, out, err = trip("context", "trip", "--budget", "600", "--explain")
    assert (code, err) == (0, ""), "nothing is due any more"
    assert out.splitlines()[0].startswith("trip: ")
    assert "strategy layered" in out


def test_a_context_for_machines(trip):
    code, out, _ = trip("context", "trip", "--budget", "600", "--reserve", "100", "--json")
    shown = json.loads(out)
    assert (code, shown["strategy"], shown["budget"]["reserve_tokens"]) == (0, "layered", 100)
    assert shown["tokens"] <= 500
    assert shown["messages"][0] == {"role": "system", "content": "You plan trips."}
    assert shown["seqs"][-1] == 60
    assert shown["tokens"] == sum(s["tokens"] for s in shown["sections"]) + 3
    code, out, _ = trip("context", "trip", "--budget", "600", "--reserve", "100", "--openai")
    assert json.loads(out) == shown["messages"]
    _, out, _ = trip("context", "trip", "--budget", "600", "--anthropic")
    assert json.loads(out)["system"] == "You plan trips."
    _, out, _ = trip("context", "trip", "--model", "gpt-4o-mini", "--json")
    assert json.loads(out)["budget"]["window_tokens"] == 128_000
    code, _, err = trip("context", "trip", "--model", "prod")
    assert code
    assert "the window of 'prod' is unknown; pass --budget TOKENS" in err
    _, out, _ = trip("context", "trip", "--model", "prod", "--budget", "600", "--explain")
    assert "tokens are estimates: o200k_base x 1.25" in out


def test_a_question_recalls_what_is_out_of_sight(trip):
    trip("context", "trip", "--budget", "800")
    _, out, _ = trip("context", "trip", "--budget", "800", "--question", "hotel number 103")
    assert "── recalled" in out
    assert "Day 3: we decided to stay in hotel number 103" in out


@pytest.mark.promise("typed-failure")
def test_an_overflow_has_a_floor_and_blockers(trip):
    trip("pin", "trip", "1")
    code, out, err = trip("context", "trip", "--budget", "20")
    assert (code, out) == (7, "")
    assert "pinned" in err
    assert "firnline unpin" in err
    code, _, err = trip("context", "trip", "--budget", "20", "--json")
    facts = json.loads(err)["context"]
    assert set(facts["blockers"]) >= {"system", "pinned", "question"}
    assert trip("context", "trip", "--budget", str(facts["floor"] - 1))[0] == 7
    assert trip("context", "trip", "--budget", str(facts["floor"]))[0] == 0


def test_digests_are_listed_shown_compared_and_undone(trip):
    assert "No digests yet" in trip("digests", "trip")[1]
    trip("context", "trip", "--budget", "600")
    code, out, _ = trip("digests", "trip")
    assert (code, "in force" in out, "offline" in out) == (0, True, True)
    code, out, _ = trip("digests", "trip", "--show", "1")
    assert code == 0
    for part in ("Text\n", "Important data\n", "Receipt\n", "covers messages", "hotel number"):
        assert part in out
    code, out, _ = trip("rebuild", "trip", "--only-offline")
    assert (code, "in force" in out) == (0, True)
    versions = [json.loads(line) for line in trip("digests", "trip", "--json")[1].splitlines()]
    newest = versions[-1]["version"]
    assert versions[-1]["in_force"] is True
    assert trip("digests", "trip", "--diff", "1", str(newest))[0] == 0
    assert json.loads(trip("digests", "trip", "--diff", "1", "1", "--json")[1])["text"] == ""
    code, out, _ = trip("undo", "trip")
    assert (code, f"digest {newest} " in out, "is undone" in out) == (0, True, True)
    while trip("undo", "trip")[0] == 0:
        pass
    code, _, err = trip("undo", "trip")
    assert (code, "no digest to undo" in err) == (2, True)


def test_expand_gives_every_word_back(trip):
    trip("context", "trip", "--budget", "600")
    digest = json.loads(trip("digests", "trip", "--show", "1", "--json")[1])
    code, out, _ = trip("expand", "trip", "1", "--json")
    entries = [json.loads(line) for line in out.splitlines()]
    assert (code, len(entries)) == (0, digest["last_seq"] - digest["first_seq"] + 1)
    assert entries[1]["message"]["content"].startswith("Day 0: we decided")
    assert "Day 0: we decided" in trip("expand", "trip", "1")[1]
    assert trip("expand", "trip", "99")[0] == 2
    assert trip("digests", "trip", "--show", "99")[0] == 2


@pytest.mark.requirement("X3")
def test_a_strategy_is_shown_and_set(trip):
    assert trip("strategy", "trip")[1].startswith("trip: layered (the default)\n")
    code, out, _ = trip("strategy", "trip", "rolling", "--set", "window=20", "--set", "words=99")
    assert (code, "firnline worker" in out) == (0, True)
    assert trip("strategy", "trip")[1] == out
    _, out, _ = trip("strategy", "trip", "--set", "words=88", "--json")
    assert json.loads(out)["parameters"] == {"window": 20, "after_seq": 5, "words": 88}
    _, out, _ = trip("strategy", "trip", "window", "--set", "prefix=Zusammenfassung:", "--json")
    assert json.loads(out)["parameters"]["prefix"] == "Zusammenfassung:"
    for wrong in (["--set", "words"], ["--set", "nothing=1"], ["--set", "trigger=7"]):
        code, _, err = trip("strategy", "trip", *wrong)
        assert (code, bool(err)) == (2, True), wrong
    assert trip("strategy", "trip", "nonsense")[0] == 2
    assert trip("strategy", "trip", "window", "rolling")[0] == 2


def test_pins_are_set_listed_and_removed(trip):
    assert trip("pin", "trip")[1] == "Nothing is pinned.\n"
    assert trip("pin", "trip", "3")[0] == 0
    assert "Day 1: we decided" in trip("pin", "trip")[1]
    _, out, _ = trip("context", "trip", "--budget", "600")
    assert "── pinned" in out
    assert json.loads(trip("unpin", "trip", "3", "--json")[1])["pinned"] is False
    assert trip("pin", "trip")[1] == "Nothing is pinned.\n"
    assert trip("pin", "trip", "999")[0] == 2
    assert trip("pin", "trip", "first")[0] == 2
    assert trip("pin", "trip", "--json", "3", "5")[1].count("true") == 2


def test_pending_digests_are_created_by_digest_or_by_a_worker(trip):
    assert trip("digest", "trip")[1] == "digests of trip: nothing is pending\n"
    trip("strategy", "trip", "rolling")
    assert trip("digest", "trip")[1] == "digests of trip: 1 created\n"
    trip("append", "trip", "Thanks!")
    trip("append", "trip", "--role", "assistant", "You are welcome.")
    for tenant in ("a", "b"):
        trip("append", "c", "--tenant", tenant, "x")
        trip("strategy", "c", "--tenant", tenant, "rolling", "--set", "after_seq=1")
        trip("append", "c", "--tenant", tenant, "--role", "assistant", "A long enough answer to x.")
    code, out, _ = trip("worker", "--once", "--tenant", "a")
    assert code == 0
    assert "a/c: digested in " in out
    assert "worker: 1 digest created, 1 conversation" in out
    code, out, _ = trip("worker", "--once")
    assert code == 0
    for name in ("default/trip", "b/c"):
        assert f"{name}: digested in " in out
    assert "worker: 2 digests created, 2 conversations" in out
    _, out, _ = trip("worker", "--once", "--json")
    assert json.loads(out)["digests"] == 0


def test_a_model_writes_digests_where_one_is_named(trip):
    trip("strategy", "trip", "rolling")
    with ModelServer() as server:
        model = ("--model", "test-model", "--url", server.url)
        assert trip("digest", "trip", *model)[1] == "digests of trip: 1 created\n"
        assert "test-model" in trip("digests", "trip")[1]
        assert trip("digest", "trip", *model, "--key-variable", "FIRNLINE_NO_SUCH_KEY")[0] == 2
    assert trip("digest", "trip", "--url", server.url)[0] == 2
    assert trip("digest", "trip", "--model", "nonsense")[0] == 2
    code, _, err = trip("rebuild", "trip", "--model", "openai/gpt-4o-mini", "--url", "x://")
    assert (code, bool(err)) == (2, True)


@pytest.mark.promise("typed-failure")
def test_a_model_that_fails_leaves_everything_as_it_was(trip):
    trip("strategy", "trip", "rolling")
    with ModelServer() as server:
        url = server.url  # no server answers there any more
    code, _, err = trip("digest", "trip", "--model", "m", "--url", url)
    assert (code, bool(err)) == (8, True)
    assert trip("digest", "trip")[1] == "digests of trip: 1 created\n"


def test_unknown_conversations_and_stores_are_reported(run):
    commands = (
        ["context", "c"],
        ["digests", "c"],
        ["undo", "c"],
        ["expand", "c", "1"],
        ["rebuild", "c"],
        ["digest", "c"],
        ["strategy", "c"],
        ["strategy", "c", "window"],
        ["pin", "c", "0"],
        ["unpin", "c", "0"],
    )
    for command in commands:
        assert run(*command)[0] == 2, "there is no store yet, and none is made"
    run("append", "other", "x")
    for command in commands:
        assert run(*command)[0] == 3, command
    assert run("worker", "--once", "--poll", "0")[0] == 2
    assert run("context", "other", "--budget", "0")[0] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_stops_cleanly_on_a_signal(tmp_path, number):
    environment = {**os.environ, "FIRNLINE_STORE": f"sqlite:///{tmp_path / 'w.db'}"}
    with Memory.open(environment["FIRNLINE_STORE"], worker=False) as memory:
        memory.append("c", {"role": "user", "content": "Let us meet in Oslo on 2026-05-01."})
        memory.set_strategy("c", "rolling")
        messages = [{"role": r, "content": f"{r} says more"} for r in ("assistant", "user") * 3]
        memory.append("c", [*messages, {"role": "assistant", "content": "Until then, in Oslo."}])
    with subprocess.Popen(
        [*PROGRAM, "worker", "--poll", "0.05"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        assert "watching" in worker.stderr.readline()
        assert worker.stdout.readline().startswith("default/c: digested in ")
        worker.send_signal(number)
        out, err = worker.communicate(timeout=30)
        assert (worker.returncode, err) == (0, "")
    assert out.startswith("worker: 1 digest created, 1 conversation")
    with Memory.open(environment["FIRNLINE_STORE"], worker=False) as memory:
        assert [digest.status for digest in memory.digests("c")] == ["completed"]
