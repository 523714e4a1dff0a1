"""What every tool works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo

from firnline.errors import UnknownConversation
from firnline.language.calendar import make_frame
from firnline.language.dates import Interval, interval
from firnline.log.entry import Head
from firnline.log.tokens import TokenCounter
from firnline.mcp.paging import Quoter
from firnline.memory import Memory
from firnline.protocols import Clock


@dataclass(frozen=True, slots=True)
class ToolDeps:
    """What a tool works with: the caller's memory, the server's zone and clock, a token counter."""

    memory: Memory
    zone: tzinfo
    clock: Clock
    count: TokenCounter
    charge: Callable[[int], None] = lambda _: None

    def quoter(self, tokens: int, zone: str = "") -> Quoter:
        """A quoter with this token limit, in `zone` or the server's."""
        chosen = make_frame(self.clock(), zone).zone if zone else self.zone
        return Quoter(chosen, tokens, self.count)

    async def head(self, conversation: str) -> Head:
        """The conversation's head; `UnknownConversation` if it does not exist."""
        head = await self.memory.head(conversation)
        if head is None:
            raise UnknownConversation(
                f"there is no conversation {conversation!r}; the tool conversations lists them"
            )
        return head

    def time_span(self, date: str, quoter: Quoter) -> Interval:
        """The interval that a date means."""
        return interval(date, now=self.clock(), zone=quoter.zone)
