"""What the hooks of coding agents lead to: their sessions in the log, compactions noted.

Claude Code and Codex send the same events. Each names the agent's transcript, which is imported in
the background; it also says what a compaction left. Cursor's events have the messages themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from weakref import WeakValueDictionary

from firnline.adapters.compactions import list_compactions, note_compaction, note_records
from firnline.errors import FirnlineError, InputError
from firnline.log import fence
from firnline.log.hit import Hit
from firnline.log.tokens import counter
from firnline.memory import Memory
from firnline.server.cursor_events import CURSOR, event_key, event_messages
from firnline.transfer.formats.compactions import CompactionRecord, read_compactions
from firnline.transfer.formats.records import SourceFile
from firnline.transfer.importer import name_of

logger: Final = logging.getLogger("firnline.server")

_FORMATS: Final[Mapping[str, str]] = {
    "claude-code": "claude_code",
    "codex": "codex",
    CURSOR: CURSOR,
}
PROMPTS: Final = frozenset({"UserPromptSubmit", "beforeSubmitPrompt"})
"""Events to whose answer something may be added for the model."""
_COMPACTED: Final = frozenset({"PostCompact", "preCompact"})
"""Events of a compaction. It may fail after the event before it, except with Cursor, which has no
other one.
"""
_TRANSCRIPT: Final = ".jsonl"
_ANY_PROMPT: Final = "Which port did we choose?"
_ANY_TOKENS: Final = 100
_RECALLED: Final = (
    "From this session, before it was compacted (the messages themselves, not a summary):"
)


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One event of an agent's session."""

    agent: str
    name: str
    session: str
    transcript: Path | None
    """None if the events themselves have the messages."""
    fields: Mapping[str, Any]
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def conversation(self) -> str:
        """The conversation that the transcript is imported into."""
        return name_of(_FORMATS[self.agent], self.session)

    @property
    def has_compacted(self) -> bool:
        """Whether the agent has just replaced its history by a summary."""
        restarted = self.name == "SessionStart" and self.fields.get("source") == "compact"
        return restarted or self.name in _COMPACTED

    @property
    def trigger(self) -> str:
        """What a compaction was begun by."""
        return str(self.fields.get("trigger") or "")


@dataclass(slots=True)
class Captures:
    """Imports of transcripts that are running or waiting, one after the other for each session."""

    locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    waiting: set[str] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    read: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Size and time of each transcript when it was imported."""
    triggers: dict[str, str] = field(default_factory=dict)
    """What compactions were begun by that have not ended yet."""

    async def take(self, memory: Memory, event: HookEvent) -> None:
        """Store what the event has: no transcript would bring it later."""
        key = f"{memory.tenant}\n{event.conversation}"
        async with self.locks.setdefault(key, asyncio.Lock()):
            if messages := event_messages(event.fields):
                done = event_key(event.fields)
                await memory.append(event.conversation, messages, idempotency_key=done)
            await self._note(memory, event)

    def start(self, memory: Memory, event: HookEvent) -> None:
        """Import in the background; an import that waits already is enough for both."""
        marks = event.has_compacted or bool(event.trigger)
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
                await self._capture(memory, event)
                if event.has_compacted:  # so that indexes are up to date for the next prompt
                    await recall_dropped(memory, event.conversation, _ANY_PROMPT, _ANY_TOKENS)
            except FirnlineError as error:
                logger.warning("hook: cannot capture %s: %s", event.conversation, error)
            except Exception:
                logger.exception("hook: internal error")

    async def _capture(self, memory: Memory, event: HookEvent) -> None:
        """Import what is new in the transcript, if it is still there, and note compactions."""
        path, kind = event.transcript, _FORMATS[event.agent]
        state = _state_of(path)
        if path is None or state is None or self.read.get(path) == state:
            await self._note(memory, event)
            return
        await memory.import_file(path, as_format=kind)
        await self._note(memory, event)
        records = await asyncio.to_thread(_read_records, path, kind)
        await note_records(memory, event.conversation, records)
        self.read[path] = state

    async def _note(self, memory: Memory, event: HookEvent) -> None:
        """Note a compaction as soon as an event tells of it."""
        trigger = event.trigger
        if event.has_compacted:
            trigger = trigger or self.triggers.pop(event.conversation, "")
            summary = event.fields.get("compact_summary")
            told = summary if isinstance(summary, str) else ""
            until = event.at if event.transcript else None
            await note_compaction(memory, event.conversation, trigger, told, at=until)
        elif trigger:
            self.triggers[event.conversation] = trigger

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


def _state_of(transcript: Path | None) -> tuple[int, int] | None:
    """Size and time of a transcript; None if there is none."""
    if transcript is None or not transcript.is_file():
        return None
    status = transcript.stat()
    return status.st_size, status.st_mtime_ns


def _read_records(transcript: Path, kind: str) -> list[CompactionRecord]:
    with transcript.open("rb") as stream:
        return read_compactions(kind, SourceFile(transcript.name, stream))


async def recall_dropped(memory: Memory, conversation: str, prompt: object, most: int) -> str:
    """Messages that the agent has dropped and that fit its prompt, in at most so many tokens.

    What is not likely to help is left out, even if there is room for it.
    """
    compactions = await list_compactions(memory, conversation)
    if not compactions or not isinstance(prompt, str) or not prompt.strip() or not most:
        return ""
    dropped = {seq for each in compactions for seq in each.seqs}
    hits = await memory.recall(conversation, prompt, tokens=most)
    chosen: list[Hit] = []
    for hit in hits[: hits.earned]:
        more = sorted([*chosen, hit], key=lambda each: each.seq)
        if hit.seq in dropped and counter().text(_recalled_text(more)) <= most:
            chosen = more
    return _recalled_text(chosen) if chosen else ""


def _recalled_text(hits: Sequence[Hit]) -> str:
    lines = (
        f"[{hit.message.role}, message {hit.seq}] {fence.escape(hit.text.strip())}" for hit in hits
    )
    return "\n".join([_RECALLED, *lines])
