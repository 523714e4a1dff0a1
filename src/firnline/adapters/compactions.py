"""What the compactions of a coding agent dropped: a receipt of each, and the messages themselves.

The messages are in the log word for word; a card next to the log says which of them an agent has
replaced by a summary.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Final

from firnline.digest.receipt import receipt
from firnline.log import limits
from firnline.log.entry import Card, Entry, live
from firnline.log.threads import run_by_size
from firnline.log.wire import parse_unique
from firnline.memory import Memory

_KIND: Final = "compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The entries `first` to `last` of a conversation were replaced by a summary."""

    conversation: str
    number: int
    first: int
    last: int
    trigger: str = ""
    summary: str = ""
    receipt: Mapping[str, Any] = field(default_factory=dict)

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


async def begin_compaction(memory: Memory, conversation: str, trigger: str) -> Compaction | None:
    """Note that all messages so far will be replaced; None if there are no new ones."""
    head, known = await memory.head(conversation), await list_compactions(memory, conversation)
    first = known[-1].last + 1 if known else 0
    if head is None or head.seq < first:
        return None
    begun = Compaction(
        conversation=conversation, number=len(known), first=first, last=head.seq, trigger=trigger
    )
    return await _keep(memory, begun)


async def finish_compaction(memory: Memory, conversation: str, summary: str) -> Compaction | None:
    """Note the summary of the newest compaction, with the receipt of what it lost."""
    known = await list_compactions(memory, conversation)
    if not known or (known[-1].summary and known[-1].summary == summary):
        return known[-1] if known else None
    return await _keep(memory, replace(known[-1], summary=summary))


async def _keep(memory: Memory, compaction: Compaction) -> Compaction:
    entries = await dropped_entries(memory, compaction)
    size = sum(len(entry.message.text) for entry in entries)
    made = await run_by_size(size, partial(receipt, entries, compaction.summary, []))
    kept = replace(compaction, receipt=made)
    await memory.cards.put(kept.card(memory.tenant))
    return kept


async def dropped_entries(memory: Memory, compaction: Compaction) -> list[Entry]:
    """The messages that a compaction replaced, word for word."""
    found: list[Entry] = []
    for first in range(compaction.first, compaction.last + 1, limits.PAGE_MAX):
        last = min(first + limits.PAGE_MAX - 1, compaction.last)
        found += await memory.read(compaction.conversation, first_seq=first, last_seq=last)
    return list(live(found))
