"""The known prefixes of histories: cards that point to an entry, derived from the log.

A history that a client sends again is found by the hash of the longest prefix that is known.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from firnline.log.entry import Card
from firnline.log.wire import parse_unique
from firnline.memory import Memory
from firnline.server.proxy import limits
from firnline.server.proxy.dialect import Location
from firnline.server.proxy.request import extend_hash

_KIND: Final = "prefix"


class KnownPrefix(NamedTuple):
    """The first `messages` of a history; they end at entry `seq` of a conversation.

    `compacted` if the client has replaced what came before by a summary of its own.
    """

    messages: int
    conversation: str
    seq: int
    compacted: bool = False


async def save_prefixes(
    memory: Memory, location: Location, hashes: Sequence[str], seqs: Sequence[int]
) -> None:
    """Save where these prefixes of histories end; a prefix that is known stays as it is."""
    conversation, flags = location.conversation, [True] if location.compacted else []
    cards = [
        Card(
            tenant=memory.tenant,
            kind=_KIND,
            name=name,
            body=json.dumps([conversation, seq, *flags]).encode(),
            conversation=conversation,
        )
        for name, seq in zip(hashes, seqs, strict=True)
    ]
    await memory.cards.put(*cards, absent=True)


def key_hashes(location: Location) -> tuple[str, ...]:
    """The hash of a request with the client's key for it, if it has one."""
    if not location.key or not location.hashes:
        return ()
    return (extend_hash(location.hashes[-1], f"under the key {location.key}"),)


async def find_prefix(memory: Memory, hashes: Sequence[str]) -> KnownPrefix | None:
    """The longest known prefix of a history."""
    for end in range(len(hashes), 0, -limits.PREFIXES_PER_LOOKUP):
        start = max(end - limits.PREFIXES_PER_LOOKUP, 0)
        names = hashes[start:end]
        cards = await memory.cards.find(_KIND, names=names, limit=len(names))
        if cards:
            longest = max(cards, key=lambda card: names.index(card.name))
            return KnownPrefix(start + names.index(longest.name) + 1, *parse_unique(longest.body))
    return None
