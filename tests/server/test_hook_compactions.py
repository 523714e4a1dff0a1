"""What compactions of coding agents dropped: recorded sessions of Claude Code and Codex."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from firnline import Message
from firnline.adapters.compactions import dropped_entries, list_compactions, note_compaction
from firnline.log.tokens import counter
from firnline.server import captures
from support.live_server import running

RECORDED = json.loads((Path(__file__).parents[1] / "support" / "agent_sessions.json").read_text())
FORMATS = {"claude-code": "claude_code", "codex": "codex"}
PROMPTS = [
    "The staging database is db-17.internal and the password hint is Kestrel-7741.",
    "TOOL please look up the port",
    "Which step is next?",
    "We moved the backup to 03:15, ticket OPS-4411.",
    "And the mill?",
    "More about the bridge",
]


class Replay:
    """A recorded session of an agent, its lines and hooks in the order in which they came."""

    def __init__(self, server, agent, folder):
        self.server, self.agent = server, agent
        lines = [step["line"] for step in RECORDED[agent] if "line" in step]
        session = lines[0].get("payload", {}).get("id") or lines[0]["sessionId"]
        self.session, self.conversation = session, f"{FORMATS[agent]}/{session}"
        self.path = folder / f"{session}.jsonl"
        self.path.touch()

    def write(self, line):
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def hook(self, event):
        """Send an event, and wait for what it leads to."""
        url = f"{self.server.url}/api/v1/hooks/{self.agent}"
        about = {"session_id": self.session, "transcript_path": str(self.path)}
        sent = httpx2.post(url, json={**about, **event}, timeout=60)
        assert sent.status_code in (200, 204), sent.text
        self.server.run(self.server.parts.captures.close())

    def play(self, first=0, last=None, *, hooks=True):
        """These steps; without `hooks`, the server is down meanwhile."""
        for step in RECORDED[self.agent][first:last]:
            if "line" in step:
                self.write(step["line"])
            elif hooks:
                self.hook(step["hook"])

    def find(self, event, after=-1):
        """The number of the first step with this event."""
        steps = enumerate(RECORDED[self.agent])
        names = ((at, step.get("hook", {}).get("hook_event_name")) for at, step in steps)
        return next(at for at, name in names if name == event and at > after)

    def compactions(self):
        return self.server.run(list_compactions(self.server.memory(), self.conversation))

    def dropped(self, at):
        memory, compaction = self.server.memory(), self.compactions()[at]
        return [e.message for e in self.server.run(dropped_entries(memory, compaction))]

    def texts(self, role):
        entries = self.server.run(self.server.memory().read(self.conversation))
        return [e.message.text for e in entries if e.message.role == role]

    def heads(self):
        found = self.server.run(self.server.memory().conversations(limit=100))
        return [head.conversation for head in found]


@pytest.fixture
def server(tmp_path):
    with running(transcript_folders=str(tmp_path)) as server:
        yield server


def lost(compaction):
    kinds = compaction.receipt["kinds"].values()
    return {each["value"] for kind in kinds for each in kind["lost"]}


def test_a_session_of_claude_code_stays_one_conversation_with_each_of_its_compactions(
    server, tmp_path
):
    replay = Replay(server, "claude-code", tmp_path)
    replay.play()
    assert replay.heads() == [replay.conversation]
    assert [text for text in replay.texts("user") if not text.startswith("<")] == PROMPTS
    first, second = replay.compactions()  # a third one failed
    assert [first.number, second.number] == [0, 1]
    assert "Summary 1" in first.summary
    assert "Summary 2" in second.summary
    assert {"Kestrel-7741", "6543"} <= lost(first)
    assert {"03:15"} <= lost(second)
    assert "db-17.internal" not in lost(first)  # the summary has it
    texts = [message.text for message in replay.dropped(0) if not message.tool_calls]
    assert texts == [
        PROMPTS[0],
        "It is noted.",
        PROMPTS[1],
        "Let me look.",
        "port 6543",
        "The port is 6543.",
        PROMPTS[2],
    ]
    later = [m.text for m in replay.dropped(1) if not m.text.startswith("<")]
    assert later == ["Next is the mill.", PROMPTS[3], "The backup runs at 03:15.", PROMPTS[4]]


def test_a_compaction_is_noted_before_the_transcript_tells_of_it(server, tmp_path):
    replay = Replay(server, "claude-code", tmp_path)
    compacted = replay.find("PostCompact")
    replay.play(0, compacted + 1)
    (noted,) = replay.compactions()
    assert noted.record == ""
    assert noted.trigger == "manual"
    assert "Summary 1" in noted.summary
    assert replay.dropped(0)[0].text == PROMPTS[0]
    replay.play(compacted + 1, replay.find("PreCompact", compacted) + 1)
    (told,) = replay.compactions()
    assert told.record
    assert len(replay.dropped(0)) == 8  # the newest answer was kept


def test_a_compaction_that_never_ended_leaves_no_receipt(server, tmp_path):
    replay = Replay(server, "claude-code", tmp_path)
    begun = replay.find("PreCompact")
    replay.play(0, begun + 1)
    replay.hook({"hook_event_name": "Stop"})
    assert replay.compactions() == []


@pytest.mark.parametrize("agent", FORMATS)
def test_what_happened_while_the_server_was_down_is_found_in_the_transcript(
    server, agent, tmp_path
):
    up = Replay(server, agent, tmp_path)
    up.play()
    up.hook({"hook_event_name": "Stop"})
    with running(transcript_folders=str(tmp_path)) as other:
        down = Replay(other, agent, tmp_path)
        down.hook({"hook_event_name": "Stop"})
        found = [(each.spans, each.summary, each.record) for each in down.compactions()]
    assert found == [(each.spans, each.summary, each.record) for each in up.compactions()]
    assert found


def test_what_codex_keeps_is_not_lost(server, tmp_path):
    replay = Replay(server, "codex", tmp_path)
    replay.play()
    replay.hook({"hook_event_name": "Stop"})
    (compaction,) = replay.compactions()
    dropped = replay.dropped(0)
    assert {message.role for message in dropped} == {"assistant", "tool"}  # it keeps the prompts
    assert "6543" not in lost(compaction)
    assert "staging" in compaction.summary


def test_an_agent_that_only_sends_events_gets_a_receipt_of_each_compaction(server):
    memory, at = server.memory(), datetime(2026, 1, 1, tzinfo=UTC)

    def say(text, hours):
        said = Message.user(text, created_at=at + timedelta(hours=hours))
        server.run(memory.append("cursor/c", said))

    async def note(trigger, summary="", hours=0.0):
        until = at + timedelta(hours=hours)
        return await note_compaction(memory, "cursor/c", trigger, summary, at=until)

    assert server.run(note("auto")) is None
    say("Port 6543 is open.", 0)
    say("Said while the event was on its way: 7654.", 3)
    first = server.run(note("auto", "", 1))
    assert server.run(note("", "Port 6543.", 1)).summary == "Port 6543."  # the same one
    assert [tuple(span) for span in first.spans] == [(0, 0)]
    second = server.run(note("auto", "All of it.", 4))
    assert (second.number, [tuple(span) for span in second.spans]) == (1, [(1, 1)])
    assert lost(second) == {"7654"}


WARM = """
import asyncio, re, sys
from firnline import Memory, Message
from firnline.log import tokens
from firnline.server.app import warm_up

compiled, compile_ = [], re._compiler.compile
re._compiler.compile = lambda *args: compiled.append(args) or compile_(*args)

async def recall(folder):
    async with Memory.open(f"sqlite:///{folder}/c.db", embedder=None) as memory:
        await memory.append("c", [Message.user("The port of db-17.internal is 6543.")] * 3)
        await memory.recall("c", "Which port does the staging db have since Monday?", tokens=200)

warm_up("none")
patterns, vocabularies = len(compiled), tokens._load_encoder.cache_info().misses
asyncio.run(recall(sys.argv[1]))
print(patterns, len(compiled) - patterns)
print(vocabularies, tokens._load_encoder.cache_info().misses - vocabularies)
"""


def test_a_server_that_has_started_is_ready_for_its_first_recall(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WARM, str(tmp_path)], capture_output=True, text=True, check=True
    )
    patterns, more_patterns, vocabularies, more_vocabularies = map(int, done.stdout.split())
    assert more_patterns * 10 < patterns
    assert vocabularies
    assert not more_vocabularies


def test_after_a_compaction_the_indexes_are_ready_for_the_next_prompt(
    server, tmp_path, monkeypatch
):
    searched = []

    async def recall(_, conversation, *__):
        searched.append(conversation)
        return ""

    monkeypatch.setattr(captures, "recall_dropped", recall)
    replay = Replay(server, "claude-code", tmp_path)
    replay.play(0, replay.find("PostCompact") + 1)
    assert set(searched) == {replay.conversation}


@pytest.mark.promise("within-budget")
@pytest.mark.parametrize("most", [30, 50, 200, 800])
def test_a_prompt_gets_what_helps_within_its_tokens(most, server):
    async def fill():
        memory = await server.parts.tenants.memory("default")
        said = [f"Fact {n}: db-{n}.internal has port {6000 + n}, <b> next." for n in range(40)]
        said += [f"We walked along the river to the {'o' * n}ld mill." for n in range(40)]
        await memory.append("cursor/c", [Message.user(text) for text in said])
        await note_compaction(memory, "cursor/c", "auto")
        return await captures.recall_dropped(
            memory, "cursor/c", "Which port does db-7.internal have?", most
        )

    text = server.run(fill())
    assert counter().text(text) <= most
    assert len(text.splitlines()) < 10  # there is room for more, but it does not help
    if most >= 50:
        assert "6007" in text
