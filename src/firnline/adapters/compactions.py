"""What the compactions of a coding agent dropped: a receipt of each, and the messages themselves.

The messages are in the log word for word; a card next to the log says which of them an agent has
replaced by a summary. An agent's transcript decides what it dropped. Its events come earlier, so
they count until the transcript says more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import zip_longest
from typing import Any, Final

from firnline.digest.receipt import receipt
from firnline.log import limits
from firnline.log.entry import Card, Entry, live, runs
from firnline.log.threads import run_by_size
from firnline.log.wire import parse_unique
from firnline.memory import Memory
from firnline.transfer.formats.compactions import CompactionRecord
from firnline.transfer.formats.records import ID

_KIND: Final = "compaction"
_INSTRUCTIONS: Final = frozenset({"system", "developer"})
"""Roles of what the agent's program says; it says it again after a compaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The entries of the `spans` were replaced by a summary; `end` was the last one then.

    `record` is the line of the transcript that tells of it; empty if only an event did.
    """

    conversation: str
    number: int
    spans: Sequence[tuple[int, int]]
    end: int
    trigger: str = ""
    summary: str = ""
    record: str = ""
    receipt: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seqs(self) -> set[int]:
        """The entries that were dropped."""
        return {seq for first, last in self.spans for seq in range(first, last + 1)}

    def card(self, tenant: str) -> Card:
        """The card that keeps it."""
        name = f"{_prefix(self.conversation)}{self.number:06d}"
        body = json.dumps(asdict(self)).encode()
        return Card(tenant=tenant, kind=_KIND, name=name, body=body, conversation=self.conversation)


def _prefix(conversation: str) -> str:
    return f"{hashlib.blake2b(conversation.encode(), digest_size=12).hexdigest()}/"


async def list_compactions(memory: Memory, conversation: str) -> list[Compaction]:
    """The compactions of a conversation, oldest first."""
    found = await memory.cards.find(_KIND, prefix=_prefix(conversation), limit=limits.PAGE_MAX)
    return [Compaction(**parse_unique(card.body)) for card in found]


async def dropped_entries(memory: Memory, compaction: Compaction) -> list[Entry]:
    """The messages that a compaction replaced, word for word."""
    found: list[Entry] = []
    for first, last in compaction.spans:
        found += await _read(memory, compaction.conversation, first, last)
    return found


async def _read(memory: Memory, conversation: str, first: int, last: int) -> list[Entry]:
    """The entries of a span that are messages of the session."""
    found: list[Entry] = []
    for start in range(first, last + 1, limits.PAGE_MAX):
        end = min(start + limits.PAGE_MAX - 1, last)
        found += await memory.read(conversation, first_seq=start, last_seq=end)
    return [entry for entry in live(found) if entry.message.role not in _INSTRUCTIONS]


# -- noting -----------------------------------------------------------------------------------


async def note_compaction(
    memory: Memory,
    conversation: str,
    trigger: str,
    summary: str = "",
    *,
    at: datetime | None = None,
) -> Compaction | None:
    """Note that an agent has replaced all messages until then; None if there are none.

    Events of the same compaction are those between which there is no new message.
    """
    known, head = await list_compactions(memory, conversation), await memory.head(conversation)
    newest = known[-1] if known else None
    dropped = {seq for each in known for seq in each.seqs}
    entries = [
        entry
        for entry in await _read(memory, conversation, 0, head.seq if head else -1)
        if entry.seq not in dropped and not _is_after(entry, at)
    ]
    if newest and not any(entry.seq > newest.end for entry in entries):
        told = summary if summary and not newest.record else newest.summary
        same = replace(newest, summary=told, trigger=newest.trigger or trigger)
        return newest if same == newest else await _keep(memory, same, ())
    if not entries:
        return None
    compaction = Compaction(
        conversation=conversation,
        number=len(known),
        spans=_spans(entries),
        end=entries[-1].seq,
        trigger=trigger,
        summary=summary,
    )
    return await _keep(memory, compaction, ())


def _is_after(entry: Entry, at: datetime | None) -> bool:
    written = entry.message.created_at
    return at is not None and written is not None and written > at


async def note_records(
    memory: Memory, conversation: str, records: Sequence[CompactionRecord]
) -> None:
    """Note what a transcript tells of compactions, if it tells more than is known."""
    known, head = await list_compactions(memory, conversation), await memory.head(conversation)
    pairs = list(zip_longest(records, known[: len(records)]))
    if head is None or all(_is_told(*pair) for pair in pairs):
        return
    entries = await _read(memory, conversation, 0, head.seq)
    dropped: set[int] = set()
    for number, (record, old) in enumerate(pairs):
        here = [entry for entry in entries if _id(entry) in record.before]
        kept = [entry for entry in here if _id(entry) in record.kept]
        stayed = {entry.seq for entry in kept}
        compaction = Compaction(
            conversation=conversation,
            number=number,
            spans=_spans(entry for entry in here if entry.seq not in dropped | stayed),
            end=here[-1].seq if here else -1,
            trigger=record.trigger or (old.trigger if old else ""),
            summary=record.summary or (old.summary if old else ""),
            record=record.key,
        )
        if not _is_told(record, old):
            await _keep(memory, compaction, kept)
        dropped |= compaction.seqs


def _is_told(record: CompactionRecord, known: Compaction | None) -> bool:
    """Whether all that a transcript tells of a compaction is known."""
    if known is None or known.record != record.key:
        return False
    return record.summary in ("", known.summary)


def _id(entry: Entry) -> str:
    """The id of an entry's line in the transcript, which may be several messages."""
    return str(entry.message.metadata.get(ID)).partition("#")[0]


def _spans(entries: Iterable[Entry]) -> list[tuple[int, int]]:
    return list(runs([entry.seq for entry in entries]))


async def _keep(memory: Memory, compaction: Compaction, kept: Sequence[Entry]) -> Compaction:
    """Store a compaction with its receipt: what stayed in the agent's history is not lost."""
    entries = await dropped_entries(memory, compaction)
    text = "\n\n".join([compaction.summary, *(entry.message.text for entry in kept)])
    size = len(text) + sum(len(entry.message.text) for entry in entries)
    made = await run_by_size(size, partial(receipt, entries, text, []))
    noted = replace(compaction, receipt=made)
    await memory.cards.put(noted.card(memory.tenant))
    return noted
