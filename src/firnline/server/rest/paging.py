"""Pages of long lists."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Final

from firnline.log import limits
from firnline.log.draft import messages_size
from firnline.log.entry import Entry, Head
from firnline.log.message import Message, encode
from firnline.log.threads import run_by_size
from firnline.memory import Memory
from firnline.server.bodies import read_cursor
from firnline.server.rest import responses

ENTRIES_READ: Final = 25
"""Messages read at once: each may have many megabytes."""


async def heads(memory: Memory, project: str | None = None) -> AsyncIterator[Head]:
    """Every conversation of the tenant, or of a project."""
    after = ""
    while page := await memory.conversations(project=project, after=after, limit=limits.PAGE_MAX):
        for head in page:
            yield head
        after = page[-1].conversation


async def entries(
    memory: Memory, conversation: str, seqs: Sequence[int], cursor: str | None, limit: int
) -> dict[str, Any]:
    """A page of the messages `seqs`, in ascending or descending order.

    The cursor is the next sequence number, so messages that are added meanwhile change nothing. A
    page ends early if its messages are large.
    """
    start = _start(seqs, read_cursor(cursor, int))
    end = min(start + limit, len(seqs))
    size, page = 0, list[Entry]()
    while start < end and size < limits.PAGE_BYTES_MAX:
        wanted = seqs[start : min(start + ENTRIES_READ, end)]
        found = {entry.seq: entry for entry in await _read(memory, conversation, wanted)}
        page += [found[seq] for seq in wanted if seq in found]
        messages = [entry.message for entry in found.values()]
        size += await run_by_size(messages_size(messages), partial(_bytes_of, messages))
        start += len(wanted)
    following = seqs[start] if start < len(seqs) else None
    return responses.page(responses.entries(page), following)


def _bytes_of(messages: Sequence[Message]) -> int:
    return sum(len(encode(message)) for message in messages)


def _start(seqs: Sequence[int], seq: int | None) -> int:
    """The index of `seq`, or of the first one after it."""
    if seq is None:
        return 0
    down = len(seqs) > 1 and seqs[0] > seqs[-1]
    sign = -1 if down else 1
    return bisect_left(seqs, sign * seq, key=lambda other: sign * other)


async def _read(memory: Memory, conversation: str, seqs: Sequence[int]) -> list[Entry]:
    first, last = min(seqs), max(seqs)
    if last - first + 1 == len(seqs):
        return await memory.read(conversation, first_seq=first, last_seq=last)
    return await memory.read_at(conversation, seqs)
