"""The black box of coding agents: a session with a compaction and a deleted transcript.

The hooks are run as the agent runs them: the command of its configuration, in a shell.
"""

import json
import subprocess
import time

import httpx2
import pytest

from firnline.cli import main
from firnline.cli.hook import with_hooks
from firnline.errors import InputError
from firnline.server import hooks
from support.live_server import free_port, running

AGENTS = {"claude-code": "claude_code", "codex": "codex", "cursor": "cursor"}
SESSION = "0198-session"
FACT = "The staging database is db-17.internal and its port is 6543."
SUMMARY = "The user set up a staging database."


@pytest.fixture(params=AGENTS)
def agent(request):
    return request.param


class Session:
    """An agent's session: its transcript, and the hooks of its configuration."""

    def __init__(self, agent, home, config):
        self.agent, self.lines = agent, 0
        self.config = json.loads(config.read_text())
        self.path = home / "sessions" / f"{SESSION}.jsonl"
        self.path.parent.mkdir(parents=True)
        self.path.touch()
        if agent == "codex":
            self._write({"type": "session_meta", "payload": {"id": SESSION, "cwd": "/project"}})

    def _write(self, line):
        self.lines += 1
        with self.path.open("a") as file:
            file.write(json.dumps({"timestamp": "2026-11-19T05:00:00Z", **line}) + "\n")

    def say(self, role, text, **more):
        if self.agent == "cursor":
            self.lines += 1
            if role == "assistant":
                self.hook("afterAgentResponse", text=text)
            else:
                self.hook("beforeSubmitPrompt", prompt=text, attachments=[])
        elif self.agent == "codex":
            kind = "output_text" if role == "assistant" else "input_text"
            item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
            self._write({"type": "response_item", "payload": item})
        else:
            self._claude(role, text, **more)

    def _claude(self, role, text, **more):
        about = {"uuid": f"u{self.lines}", "sessionId": SESSION, "type": role}
        parent = {"parentUuid": f"u{self.lines - 1}" if self.lines else None}
        self._write({**about, **parent, "message": {"role": role, "content": text}, **more})

    def work(self):
        self.say("user", FACT)
        if self.agent != "cursor":
            assert self.hook("SessionStart", source="startup") is None
            assert self.hook("UserPromptSubmit", prompt=FACT) is None  # nothing is forgotten yet
        for number in range(8):
            self.say("assistant", f"Step {number}: I looked at the file main_{number}.py.")
            self.say("user", f"And now part {number}?")
        if self.agent != "cursor":
            self.hook("PostToolUse", tool_name="Bash", tool_input={}, tool_response="ok")

    def compact(self, summary):
        self.hook("preCompact" if self.agent == "cursor" else "PreCompact", trigger="auto")
        if self.agent == "cursor":
            return  # it does not tell its summary
        if self.agent == "codex":
            self._write({"type": "compacted", "payload": {"message": summary}})
            self.hook("PostCompact")
        else:
            self.say("user", summary, isCompactSummary=True)
            self.hook("SessionStart", source="compact")

    def hook(self, event, **fields):
        """What the agent gets when it runs its hook for an event."""
        ((group,),) = [self.config["hooks"][event]]
        told = {"session_id": SESSION, "transcript_path": str(self.path), "hook_event_name": event}
        if self.agent == "cursor":
            told |= {"conversation_id": SESSION, "generation_id": f"g{self.lines}"}
        done = subprocess.run(
            ["sh", "-c", group.get("command") or group["hooks"][0]["command"]],
            input=json.dumps({**told, **fields}),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0
        assert done.stderr == ""
        return json.loads(done.stdout) if done.stdout else None


@pytest.fixture
def home(agent, tmp_path, monkeypatch):
    folder = tmp_path / f".{agent}"
    folder.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
    monkeypatch.setenv("CODEX_HOME", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def config_of(agent, home):
    return home / ("settings.json" if agent == "claude-code" else "hooks.json")


def wait_for(check):
    for _ in range(600):
        if found := check():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def test_a_session_with_a_compaction_and_a_deleted_transcript(
    agent, home, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(hooks, "HOOK_RECALL_SECONDS", 30)  # other tests run at the same time
    store = f"sqlite:///{tmp_path}/box.db"
    name = f"{AGENTS[agent]}/{SESSION}"
    with running(store=store, transcript_folders=str(home), hook_tokens=200) as server:
        assert main(["hook", "install", agent, "--url", server.url]) == 0
        session = Session(agent, home, config_of(agent, home))

        def texts():
            memory = server.memory()
            if server.run(memory.head(name)) is None:
                return []
            return [entry.message.text for entry in server.run(memory.read(name))]

        session.work()
        wait_for(lambda: len(texts()) == 17)
        session.compact(SUMMARY)

        def noted():
            capsys.readouterr()
            main(["uncompact", name, "--store", store, "--json"])
            shown = capsys.readouterr().out
            return shown.startswith("{") and json.loads(shown)

        told = "" if agent == "cursor" else SUMMARY
        compaction = wait_for(lambda: (found := noted()) and found["summary"] == told and found)
        session.say("assistant", "Done.")
        if agent != "cursor":
            session.hook("Stop")
        wait_for(lambda: texts()[-1] == "Done.")
        session.path.unlink()
        context = asked(session, "Which port does the staging db have?")
        assert "6543" in context
        assert len(context) < 200 * 8
        assert len(texts()) == 18 + (
            agent == "cursor"
        )  # readable, although the agent has deleted it
    assert compaction["trigger"] == "auto"
    assert compaction["entries"][0]["message"]["content"] == FACT
    assert len(compaction["entries"]) == 17
    lost = [each["value"] for each in compaction["receipt"]["kinds"]["numbers"]["lost"]]
    assert "6543" in lost
    assert main(["uncompact", name, "--store", store]) == 0
    shown = capsys.readouterr().out
    assert FACT in shown
    assert "lost: 6543" in shown


def asked(session, prompt):
    """What the hook adds for the model."""
    if session.agent == "cursor":
        answer = session.hook("beforeSubmitPrompt", prompt=prompt)
        assert answer["continue"] is True
        return answer["additional_context"]
    answer = session.hook("UserPromptSubmit", prompt=prompt)
    return answer["hookSpecificOutput"]["additionalContext"]


def test_cursors_tool_calls_are_kept_with_their_results_and_once():
    about = {"conversation_id": "c", "generation_id": "g", "transcript_path": None}
    call = {"tool_use_id": "t1", "tool_name": "Shell", "tool_input": {"command": "ls"}}
    with running() as server, httpx2.Client(base_url=server.url) as http:

        def send(event, **more):
            body = {"hook_event_name": event, **about, **more}
            return http.post("/api/v1/hooks/cursor", json=body).status_code

        for _ in range(2):  # by the hooks of the user and of the project
            assert send("beforeSubmitPrompt", prompt="List the files.") == 204
            assert send("postToolUse", **call, tool_output='{"output": "a.txt"}') == 204
        assert (
            send("postToolUseFailure", **{**call, "tool_use_id": "t2"}, error_message="no") == 204
        )
        for _ in range(2):  # a model may say the same twice
            assert send("afterAgentResponse", text="Done.") == 204
        assert send("stop", status="completed") == 204
        assert http.post("/api/v1/hooks/cursor", json=about).status_code == 400
        found = server.run(server.memory().read("cursor/c"))
    messages = [entry.message for entry in found]
    roles = ["user", *["assistant", "tool"] * 2, "assistant", "assistant"]
    assert [message.role for message in messages] == roles
    assert messages[1].tool_calls[0].id == messages[2].tool_call_id == "t1"
    assert json.loads(messages[1].tool_calls[0].arguments) == {"command": "ls"}
    assert [messages[2].text, messages[4].text] == ['{"output": "a.txt"}', "no"]


def test_a_server_that_is_gone_never_breaks_the_agent(agent, home):
    url = f"http://127.0.0.1:{free_port()}"
    main(["hook", "install", agent, "--url", url])
    session = Session(agent, home, config_of(agent, home))
    prompt = "beforeSubmitPrompt" if agent == "cursor" else "UserPromptSubmit"
    assert session.hook(prompt, prompt="hi") is None


def timeouts(hooks):
    for groups in hooks.values():
        for group in groups:
            yield from (each.get("timeout") for each in group.get("hooks", [group]))


def test_installing_shows_what_it_changes_and_can_be_undone(agent, home, capsys):
    config = config_of(agent, home)
    event = "afterAgentResponse" if agent == "cursor" else "Stop"
    own = {"hooks": {event: [{"hooks": [{"type": "command", "command": "say done"}]}]}}
    before = {"version": 1, "model": "opus", **own}
    config.write_text(json.dumps(before, indent=2))
    main(["hook", "install", agent, "--dry-run"])
    assert json.loads(config.read_text()) == before
    assert "+" in capsys.readouterr().out
    for _ in range(2):  # again changes nothing
        main(["hook", "install", agent])
        installed = json.loads(config.read_text())
        assert installed["hooks"][event][0] == own["hooks"][event][0]
        assert len(installed["hooks"][event]) == 2
        assert set(timeouts(installed["hooks"])) <= {3, None}  # all that agents allow at the end
    assert "nothing to change" in capsys.readouterr().out
    main(["hook", "install", agent, "--undo"])
    assert json.loads(config.read_text()) == before
    config.write_text("{not json")
    assert main(["hook", "install", agent]) == 2
    assert config.read_text() == "{not json"


def test_hooks_that_are_not_lists_are_left_alone():
    with pytest.raises(InputError, match="a list for each event"):
        with_hooks({"hooks": {"Stop": {}}}, "codex", "http://x")


@pytest.mark.parametrize("path", ["/etc/passwd", "{home}/../secret.jsonl", "{home}/a.txt", "", 7])
def test_only_transcripts_of_agents_are_read(path, tmp_path):
    home = tmp_path / "agent"
    home.mkdir()
    (tmp_path / "secret.jsonl").write_text("{}")
    if isinstance(path, str):
        path = path.format(home=home)
    body = {"session_id": "s", "hook_event_name": "Stop", "transcript_path": path}
    with running(transcript_folders=str(home)) as server, httpx2.Client() as http:
        url = f"{server.url}/api/v1/hooks/codex"
        assert http.post(url, json=body).status_code == 400
        assert http.post(url, json={}).status_code == 400
        assert http.post(f"{server.url}/api/v1/hooks/other", json=body).status_code == 422
