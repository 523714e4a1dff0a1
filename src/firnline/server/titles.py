"""What conversations are called in lists."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from firnline.context import marks
from firnline.log.entry import Head
from firnline.memory import Memory
from firnline.server.limits import TITLE_CHARS_MAX
from firnline.topics import title_of as short_title

_ENTRIES: Final = 5


async def title_of(memory: Memory, head: Head) -> str:
    """The title in the metadata, or else how its first user begins. The log is not changed by it.

    It is not stored, so it goes with the message that it is taken from.
    """
    given = head.metadata.get("title")
    if isinstance(given, str) and given.strip():
        return short_title(given, TITLE_CHARS_MAX)
    first = await memory.read(head.conversation, limit=_ENTRIES) if head.entries else ()
    texts = (marks.said(entry.message) for entry in first if entry.message.role == "user")
    return short_title(next(filter(None, texts), ""), TITLE_CHARS_MAX)


async def titles_of(memory: Memory, heads: Sequence[Head]) -> list[str]:
    """The titles of several conversations."""
    return await asyncio.gather(*(title_of(memory, head) for head in heads))
