"""What the hooks of coding agents lead to: their sessions in the log, compactions noted.

Claude Code and Codex send the same events. Each names the agent's transcript, which is imported in
the background. Cursor's events have the messages themselves. A compaction is noted with a receipt
of what its summary lost.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from weakref import WeakValueDictionary

from firnline.adapters.compactions import begin_compaction, finish_compaction, list_compactions
from firnline.errors import FirnlineError, InputError
from firnline.log import fence
from firnline.log.json_text import parse_json
from firnline.memory import Memory
from firnline.server.cursor_events import CURSOR, event_key, event_messages
from firnline.transfer.importer import name_of

logger: Final = logging.getLogger("firnline.server")

_FORMATS: Final[Mapping[str, str]] = {
    "claude-code": "claude_code",
    "codex": "codex",
    CURSOR: CURSOR,
}
PROMPTS: Final = frozenset({"UserPromptSubmit", "beforeSubmitPrompt"})
"""Events to whose answer something may be added for the model."""
_COMPACTS: Final = frozenset({"PreCompact", "preCompact"})
_TRANSCRIPT: Final = ".jsonl"


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One event of an agent's session."""

    agent: str
    name: str
    session: str
    transcript: Path | None
    """None if the events themselves have the messages."""
    fields: Mapping[str, Any]

    @property
    def conversation(self) -> str:
        """The conversation that the transcript is imported into."""
        return name_of(_FORMATS[self.agent], self.session)

    @property
    def has_compacted(self) -> bool:
        """Whether the agent has just replaced its history by a summary."""
        restarted = self.name == "SessionStart" and self.fields.get("source") == "compact"
        return restarted or self.name == "PostCompact"


@dataclass(slots=True)
class Captures:
    """Imports of transcripts that are running or waiting, one after the other for each session."""

    locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    waiting: set[str] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    read: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Size and time of each transcript when it was imported."""

    async def take(self, memory: Memory, event: HookEvent) -> None:
        """Store what the event has: no transcript would bring it later."""
        key = f"{memory.tenant}\n{event.conversation}"
        async with self.locks.setdefault(key, asyncio.Lock()):
            if messages := event_messages(event.fields):
                done = event_key(event.fields)
                await memory.append(event.conversation, messages, idempotency_key=done)
            await note_compaction(memory, event)

    def start(self, memory: Memory, event: HookEvent) -> None:
        """Import in the background; an import that waits already is enough for both."""
        marks = event.name in _COMPACTS or event.has_compacted
        key = f"{memory.tenant}\n{event.conversation}"
        if key in self.waiting and not marks:
            return
        if not marks:
            self.waiting.add(key)
        task = asyncio.create_task(self._run(memory, event, key))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _run(self, memory: Memory, event: HookEvent, key: str) -> None:
        lock = self.locks.setdefault(key, asyncio.Lock())
        async with lock:
            self.waiting.discard(key)
            try:
                await self._import(memory, event)
                await note_compaction(memory, event)
            except FirnlineError as error:
                logger.warning("hook: cannot capture %s: %s", event.conversation, error)
            except Exception:
                logger.exception("hook: internal error")

    async def _import(self, memory: Memory, event: HookEvent) -> None:
        """Import what is new in the transcript, if it is still there and has changed."""
        if event.transcript is None or not event.transcript.is_file():
            return
        status = event.transcript.stat()
        state = status.st_size, status.st_mtime_ns
        if self.read.get(event.transcript) != state:
            await memory.import_file(event.transcript, as_format=_FORMATS[event.agent])
            self.read[event.transcript] = state

    async def close(self) -> None:
        """Wait for what is running."""
        if self.tasks:
            await asyncio.wait(self.tasks)


def read_event(agent: str, body: Mapping[str, Any], folders: Sequence[str]) -> HookEvent:
    """The event in a hook's input; `InputError` if it names no transcript of an agent."""
    if agent == CURSOR:
        return _read_cursor(body)
    names = ("hook_event_name", "session_id", "transcript_path")
    name, session, path = (body.get(each) for each in names)
    if not isinstance(name, str) or not isinstance(session, str) or not isinstance(path, str):
        raise InputError(f"expected {', '.join(names)}, as the hooks of {agent} send them")
    transcript = Path(path).expanduser().resolve()
    roots = [Path(folder).expanduser().resolve() for folder in folders]
    if transcript.suffix != _TRANSCRIPT or not any(map(transcript.is_relative_to, roots)):
        raise InputError(
            f"transcript_path: expected a {_TRANSCRIPT} file in {', '.join(folders)}"
            " (FIRNLINE_TRANSCRIPT_FOLDERS)"
        )
    return HookEvent(agent, name, session, transcript, body)


def _read_cursor(body: Mapping[str, Any]) -> HookEvent:
    name, session = body.get("hook_event_name"), body.get("conversation_id")
    if not isinstance(name, str) or not isinstance(session, str) or not session:
        raise InputError(
            "expected hook_event_name, conversation_id, as the hooks of cursor send them"
        )
    return HookEvent(CURSOR, name, session, None, body)


async def note_compaction(memory: Memory, event: HookEvent) -> None:
    """Note that a compaction begins, or what it left."""
    if event.name in _COMPACTS:
        await begin_compaction(memory, event.conversation, str(event.fields.get("trigger") or ""))
    if event.has_compacted and event.transcript is not None:
        summary = await asyncio.to_thread(read_summary, event.transcript)
        await finish_compaction(memory, event.conversation, summary)


def read_summary(transcript: Path) -> str:
    """The newest summary in a transcript; empty if there is none."""
    found = ""
    if not transcript.is_file():
        return found
    with transcript.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if '"isCompactSummary"' not in line and '"compacted"' not in line:
                continue
            try:
                value = parse_json(line)
            except (ValueError, RecursionError):
                continue
            found = _summary_in(value) or found
    return found


def _summary_in(line: Any) -> str:
    if not isinstance(line, Mapping):
        return ""
    if line.get("isCompactSummary"):
        message: Any = line.get("message")
        content = message.get("content") if isinstance(message, Mapping) else None
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    payload = line.get("payload")
    if line.get("type") == "compacted" and isinstance(payload, Mapping):
        return str(payload.get("message") or "")
    return ""


async def recall_dropped(memory: Memory, conversation: str, prompt: object, most: int) -> str:
    """Messages that the agent has dropped and that fit its prompt, in at most so many tokens."""
    dropped = await list_compactions(memory, conversation)
    if not dropped or not isinstance(prompt, str) or not prompt.strip() or not most:
        return ""
    hits = await memory.recall(conversation, prompt, tokens=most)
    said = sorted((hit.seq, hit.message.role, hit.text) for hit in hits)
    last = dropped[-1].last
    lines = [f"[{role}, message {seq}] {text.strip()}" for seq, role, text in said if seq <= last]
    if not lines:
        return ""
    head = "From this session, before it was compacted (the messages themselves, not a summary):"
    return "\n".join([head, *map(fence.escape, lines)])
