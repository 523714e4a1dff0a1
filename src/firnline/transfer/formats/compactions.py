"""The compactions that the transcript of a coding agent tells of.

A transcript says which messages an agent replaced by a summary, and which it kept as they were.
Messages have the ids here that they have when the transcript is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from firnline.log import limits
from firnline.transfer.formats import claude_code, codex
from firnline.transfer.formats.cursor import records
from firnline.transfer.formats.records import (
    Notes,
    SourceFile,
    as_dict,
    as_list,
    as_objects,
    as_text,
    to_json,
)

_MARKS: Final = (b'"compact_boundary"', b'"isCompactSummary"', b'"compacted"')


class CompactionRecord(NamedTuple):
    """A compaction: `before` are the ids of the messages until then, `kept` those that stayed.

    `key` is the same whenever the transcript is read. The summary may be empty: some agents write
    it later, or encrypt it.
    """

    key: str
    before: frozenset[str]
    kept: frozenset[str]
    summary: str = ""
    trigger: str = ""


def read_compactions(agent_format: str, source: SourceFile) -> list[CompactionRecord]:
    """The compactions in a transcript, oldest first."""
    lines = iter(partial(source.stream.readline, limits.IMPORT_VALUE_CHARS_MAX), b"")
    if not any(mark in line for line in lines for mark in _MARKS):
        return []
    source.stream.seek(0)
    values = (as_dict(value) for _, value in records(source, Notes()))
    return list(_READERS[agent_format](values))


def _of_claude_code(lines: Iterator[Mapping[str, Any]]) -> Iterator[CompactionRecord]:
    """A boundary says what stayed; the line after it has the summary."""
    ids: dict[str, None] = {}
    begun: CompactionRecord | None = None
    for line in lines:
        key = as_text(line.get("uuid"))
        if line.get("subtype") == "compact_boundary":
            yield from [begun] if begun else []
            about = as_dict(line.get("compactMetadata"))
            kept = _preserved(about, list(ids))
            begun = CompactionRecord(
                key, frozenset(ids), kept, trigger=as_text(about.get("trigger"))
            )
        elif line.get("isCompactSummary"):
            content = as_dict(line.get("message")).get("content")
            summary = content if isinstance(content, str) else _text_of(content)
            known = begun or CompactionRecord(key, frozenset(ids), frozenset())
            yield known._replace(summary=summary)
            begun = None
        elif key:
            ids[key] = None
    yield from [begun] if begun else []


def _preserved(about: Mapping[str, Any], ids: list[str]) -> frozenset[str]:
    """The messages that stayed, as a list or as the first and the last one."""
    listed = as_dict(about.get("preservedMessages"))
    span = as_dict(about.get("preservedSegment"))
    first, last = as_text(span.get("headUuid")), as_text(span.get("tailUuid"))
    between = ids[ids.index(first) : ids.index(last) + 1] if {first, last} <= {*ids} else []
    names = [*as_list(listed.get("uuids")), *as_list(listed.get("allUuids")), *between]
    return frozenset(filter(None, map(as_text, names)))


def _of_codex(lines: Iterator[Mapping[str, Any]]) -> Iterator[CompactionRecord]:
    """One line has the summary and the new history, in which some messages stayed."""
    ids: list[str] = []
    known: dict[str, str] = {}
    for number, line in enumerate(lines):
        payload = as_dict(line.get("payload"))
        if line.get("type") == "compacted":
            stayed = as_objects(payload.get("replacement_history"))
            marks = {mark for item in stayed for mark in _codex_marks(item)}
            kept = frozenset(known[mark] for mark in marks & known.keys())
            summary = as_text(payload.get("message"))
            yield CompactionRecord(str(number), frozenset(ids), kept, summary)
        elif line.get("type") == "response_item" or not payload:
            ids.append(str(number))
            known |= dict.fromkeys(_codex_marks(payload or line), str(number))


def _codex_marks(item: Mapping[str, Any]) -> Iterator[str]:
    """What an item is known by: its id, and what it says."""
    if item_id := as_text(item.get("id")):
        yield f"id {item_id}"
    said = [item.get(name) for name in ("type", "role", "content", "call_id", "name", "output")]
    yield f"said {to_json(said)}"


def _text_of(content: object) -> str:
    """The text of blocks."""
    return "\n".join(as_text(block.get("text")) for block in as_objects(content))


_READERS: Final[
    Mapping[str, Callable[[Iterator[Mapping[str, Any]]], Iterator[CompactionRecord]]]
] = {claude_code.FORMAT: _of_claude_code, codex.FORMAT: _of_codex}
