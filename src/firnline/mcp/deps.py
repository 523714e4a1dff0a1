"""What every tool works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo

from firnline.errors import UnknownConversation
from firnline.language.calendar import make_frame
from firnline.language.dates import Interval, interval
from firnline.log.entry import Head, Key
from firnline.log.tokens import TokenCounter
from firnline.mcp.paging import Quoter
from firnline.memory import Memory
from firnline.protocols import Clock


@dataclass(frozen=True, slots=True)
class Desk:
    """What a tool works with: the caller's memory and account, the server's zone and clock."""

    memory: Memory
    zone: tzinfo
    clock: Clock
    count: TokenCounter
    charge: Callable[[int], None] = lambda _: None

    def quoter(self, tokens: int, zone: str = "") -> Quoter:
        """Who quotes messages within so many tokens, in the zone that is asked for."""
        chosen = make_frame(self.clock(), zone).zone if zone else self.zone
        return Quoter(chosen, tokens, self.count)

    def key(self, conversation: str) -> Key:
        """The conversation, as stores know it."""
        return Key(self.memory.tenant, conversation)

    async def head(self, conversation: str) -> Head:
        """The conversation's head; one that does not exist is an error here."""
        head = await self.memory.head(conversation)
        if head is None:
            raise UnknownConversation(
                f"there is no conversation {conversation!r}; the tool conversations lists them"
            )
        return head

    def span(self, date: str, quoter: Quoter) -> Interval:
        """The time that is meant."""
        return interval(date, now=self.clock(), zone=quoter.zone)
