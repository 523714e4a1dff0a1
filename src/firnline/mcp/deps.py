"""What every tool works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo

from firnline.errors import InputError, UnknownConversation
from firnline.language.calendar import make_frame
from firnline.language.dates import Interval, interval
from firnline.log.entry import Head
from firnline.log.tokens import TokenCounter
from firnline.mcp.paging import Quoter
from firnline.memory import Memory
from firnline.protocols import Clock


@dataclass(frozen=True, slots=True)
class ToolDeps:
    """What a tool works with: the caller's memory, the server's zone and clock, a token counter.

    With a `person` it sees and continues only conversations that are with them.
    """

    memory: Memory
    zone: tzinfo
    clock: Clock
    count: TokenCounter
    charge: Callable[[int], None] = lambda _: None
    person: str | None = None

    def quoter(self, tokens: int, zone: str = "") -> Quoter:
        """A quoter with this token limit, in `zone` or the server's."""
        chosen = make_frame(self.clock(), zone).zone if zone else self.zone
        return Quoter(chosen, tokens, self.count)

    async def head(self, conversation: str) -> Head:
        """The conversation's head; `UnknownConversation` if it does not exist for the caller."""
        head = await self.memory.head(conversation)
        if head is None or not self.may_see(head):
            raise UnknownConversation(
                f"there is no conversation {conversation!r}; the tool conversations lists them"
            )
        return head

    def may_see(self, head: Head) -> bool:
        """Whether the conversation is with the caller's person, if the caller is bound to one."""
        return self.person in (None, head.person)

    def known_person(self) -> str:
        """The caller's person; `InputError` if there is none."""
        if self.person is None:
            raise InputError("this access is not bound to a person")
        return self.person

    def time_span(self, date: str, quoter: Quoter) -> Interval:
        """The interval that a date means."""
        return interval(date, now=self.clock(), zone=quoter.zone)
