"""Claude Code's transcripts: a line for each message, which names the one before it.

A turn, from one prompt to the next, is a node, so that calls and results stay together. Where the
user went back and wrote another prompt, there is a branch. Subagents have their own conversations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from firnline.log import limits
from firnline.transfer.formats.blocks import BlockConverter
from firnline.transfer.formats.cursor import records
from firnline.transfer.formats.records import (
    ConversationTree,
    LinearConversation,
    Notes,
    SourceConversation,
    SourceFile,
    SourceMessage,
    TreeNode,
    as_dict,
    as_objects,
    as_text,
    build_message,
    checked_time,
    source_metadata,
    time_from_iso,
)

FORMAT: Final = "claude_code"
_TITLES: Final = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}


@dataclass(slots=True)
class _Transcript:
    """The state of a transcript while it is read."""

    name: str = ""
    title: str = ""
    turns: dict[str, list[SourceMessage]] = field(default_factory=dict)
    parents: dict[str, str | None] = field(default_factory=dict)
    turn_of: dict[str, str] = field(default_factory=dict)
    side_of: dict[str, str] = field(default_factory=dict)
    sides: dict[str, list[SourceMessage]] = field(default_factory=dict)
    last: str | None = None


def read(source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    """The transcript with its branches, then the subagents' conversations."""
    known = _Transcript()
    for number, (where, value) in enumerate(records(source, notes)):
        if number >= limits.IMPORT_HELD_MAX:
            notes.reject("the rest of a transcript over the size limit", where)
            break
        line = as_dict(value)
        known.name = known.name or as_text(line.get("sessionId"))
        kind = as_text(line.get("type"))
        if kind in ("user", "assistant"):
            _add_line(known, line, where, notes)
        elif kind in _TITLES:
            known.title = as_text(line.get(_TITLES[kind])) or known.title
        elif not kind:
            notes.reject("a line without a type", where)
        else:
            notes.skip(f"an internal line: {kind:.60}", where)
            _add_empty(known, line)
    name = known.name or source.name
    nodes = {key: TreeNode(known.parents[key], tuple(said)) for key, said in known.turns.items()}
    if nodes:
        yield ConversationTree(name, known.title, nodes, known.last)
    for side, said in known.sides.items():
        yield LinearConversation(f"{name}/{side}", f"{known.title} (subagent)".strip(), said)


def _add_line(known: _Transcript, line: Mapping[str, Any], where: str, notes: Notes) -> None:
    key = as_text(line.get("uuid"))
    if not key:
        notes.reject("a message without a uuid", where)
        return
    if key in known.turn_of or key in known.side_of:
        notes.skip("a duplicate message", where)
        return
    said = list(_messages(key, line, where, notes))
    parent = _parent(line)
    if line.get("isSidechain"):
        agent = as_text(line.get("agentId")) or known.side_of.get(parent, f"side-{key}")
        known.side_of[key] = agent
        known.sides.setdefault(agent, []).extend(said)
        return
    before = _turn_before(known, line)
    if before is None or _is_prompt(line):
        known.parents[key] = before
        known.turns[key] = []
        before = key
    known.turn_of[key] = known.last = before
    known.turns[before].extend(said)


def _add_empty(known: _Transcript, line: Mapping[str, Any]) -> None:
    """Record a line without a message, which may be the parent of one with a message."""
    key, parent = as_text(line.get("uuid")), _parent(line)
    if key and parent in known.side_of:
        known.side_of[key] = known.side_of[parent]
    elif key and not line.get("isSidechain") and (turn := _turn_before(known, line)) is not None:
        known.turn_of[key] = turn


def _parent(line: Mapping[str, Any]) -> str:
    return as_text(line.get("parentUuid")) or as_text(line.get("logicalParentUuid"))


def _turn_before(known: _Transcript, line: Mapping[str, Any]) -> str | None:
    """The turn that a line continues; None if it is the first of the transcript or goes back there.

    A line whose parent is not in the file continues the line before it: after a compaction, and
    where a line could not be read.
    """
    parent = _parent(line)
    if parent in known.turn_of:
        return known.turn_of[parent]
    lost = parent or line.get("subtype") == "compact_boundary"
    return known.last if lost else None


def _is_prompt(line: Mapping[str, Any]) -> bool:
    """Whether this is a prompt: tool results are messages of the user, too."""
    content = as_dict(line.get("message")).get("content")
    results = any(block.get("type") == "tool_result" for block in as_objects(content))
    return line.get("type") == "user" and not results and not line.get("isMeta")


def _messages(
    key: str, line: Mapping[str, Any], where: str, notes: Notes
) -> Iterator[SourceMessage]:
    if line.get("isMeta"):
        notes.skip("a message of the program itself", where)
        return
    if line.get("isCompactSummary"):
        notes.skip("a summary of messages that are imported", where)
        return
    message = as_dict(line.get("message"))
    content = message.get("content")
    blocks = (
        [{"type": "text", "text": content}] if isinstance(content, str) else as_objects(content)
    )
    converter = BlockConverter(key, where, notes)
    for block in blocks:
        converter.add_block(block)
    time = checked_time(time_from_iso(given := line.get("timestamp")), given, where, notes)
    model = message.get("model")
    messages = converter.messages(str(line["type"]))
    if not messages:
        notes.skip("an empty message", where)
    for number, fields in enumerate(messages):
        message_id = f"{key}#{number}" if number else key
        about = source_metadata(FORMAT, message_id, model=model)
        yield from build_message(where, notes, **fields, metadata=about, created_at=time)
