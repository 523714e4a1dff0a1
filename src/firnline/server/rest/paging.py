"""Lists that are walked page by page, however long they are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from firnline.log import limits
from firnline.log.entry import Entry, Head
from firnline.log.message import encode
from firnline.memory import Memory
from firnline.server.bodies import position_of
from firnline.server.rest import responses

_STEP: Final = 25  # entries read at once: each may have many megabytes


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
    """A page of the entries at `seqs`, which go up or down; the cursor is the next one's number.

    So nothing is shown twice or left out when entries are added meanwhile. A page ends early where
    its messages are large.
    """
    start = _place(seqs, position_of(cursor, int))
    end = min(start + limit, len(seqs))
    size, taken = 0, list[Entry]()
    while start < end and size < limits.PAGE_BYTES_MAX:
        wanted = seqs[start : min(start + _STEP, end)]
        found = {entry.seq: entry for entry in await _read(memory, conversation, wanted)}
        taken += [found[seq] for seq in wanted if seq in found]
        size += sum(len(encode(entry.message)) for entry in found.values())
        start += len(wanted)
    following = seqs[start] if start < len(seqs) else None
    return responses.page(responses.entries(taken), following)


def _place(seqs: Sequence[int], seq: int | None) -> int:
    """Where to go on: at `seq`, or behind where it would be."""
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
