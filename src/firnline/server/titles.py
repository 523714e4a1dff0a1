"""What conversations are called in lists."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from firnline.context import marks
from firnline.log.entry import Head
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.memory import Memory
from firnline.server.limits import TITLE_CHARS_MAX
from firnline.topics import title_of as short_title

_ENTRIES: Final = 10
_TAG: Final = regex(r"\s*<([A-Za-z][\w.-]{0,63})(?:\s[^<>]{0,200})?>")
_INSTRUCTIONS: Final = "# AGENTS.md instructions"
"""How a message begins in which Codex repeats a project's instructions."""


async def title_of(memory: Memory, head: Head) -> str:
    """The title in the metadata, or else how its first user begins. The log is not changed by it.

    It is not stored, so it goes with the message that it is taken from.
    """
    given = head.metadata.get("title")
    if isinstance(given, str) and given.strip():
        return short_title(given, TITLE_CHARS_MAX)
    first = await memory.read(head.conversation, limit=_ENTRIES) if head.entries else ()
    said = [entry.message for entry in first if entry.message.role == "user"]
    return short_title(next(filter(None, _candidates(said)), ""), TITLE_CHARS_MAX)


async def titles_of(memory: Memory, heads: Sequence[Head]) -> list[str]:
    """The titles of several conversations."""
    return await asyncio.gather(*(title_of(memory, head) for head in heads))


def _candidates(messages: Sequence[Message]) -> Iterator[str]:
    """What the messages may be titled by: what a person wrote, attachments, any text."""
    texts = [marks.said(message).strip() for message in messages]
    yield from map(without_blocks, texts)
    yield from (_attachment(message) for message in messages if not marks.is_put_in(message))
    yield from texts


def without_blocks(text: str) -> str:
    """A text without what a program wrote before it: blocks in tags, as coding agents send them."""
    if text.startswith(_INSTRUCTIONS):
        text = text[text.find("<") :] if "<" in text else ""
    at = 0
    while (tag := _TAG.match(text, at)) is not None:
        end = f"</{tag[1]}>"
        found = text.find(end, tag.end())
        if found < 0:
            break
        at = found + len(end)
    return text[at:].strip()


def _attachment(message: Message) -> str:
    """The name of the first attachment, or its kind."""
    parts = message.content if isinstance(message.content, tuple) else ()
    shown = (part for part in parts if part.kind in ("image", "file", "audio"))
    return next((_file_name(part.fields) or f"[{part.kind}]" for part in shown), "")


def _file_name(fields: Mapping[str, Any]) -> str:
    inner = fields.get("file")
    known = {**fields, **(inner if isinstance(inner, Mapping) else {})}
    names = (known.get(name) for name in ("filename", "title", "name"))
    return next((name for name in names if isinstance(name, str) and name), "")
