"""The size of a conversation, and the cost of an answer in three ways."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from firnline.log import limits
from firnline.log.entry import Entry, Head
from firnline.log.message import EPOCH
from firnline.log.text import plural
from firnline.recall.tools import RecallMemory

FIXED_TOKENS: Final = 4_000
"""Tokens in every request besides messages: the system text and the task."""
LEAN_MESSAGES: Final = 12
"""The number of newest messages in a lean request."""
LEAN_TOKENS: Final = 20_000
"""Their maximum in tokens."""
PRICE: Final = 0.2
"""Default price in dollars per million prompt tokens; prices differ a hundredfold."""

_RESULT_FRAME: Final = 40
"""Tokens of a message in a result besides its text: its id, time and speaker, as JSON."""
_TICK: Final = timedelta(microseconds=1)
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cost:
    """The prompt tokens of one answer and their price."""

    tokens: int
    price: float

    def __str__(self) -> str:
        return f"{plural(self.tokens, 'token')}, ${self.price:,.4f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The size of a conversation, and what an answer costs.

    `lean`: the newest messages alone; `with_tools`: the same, and once more with what the recall
    tools return; `whole`: the whole history in every request.
    """

    conversation: str
    messages: int
    oldest: datetime | None
    newest: datetime | None
    tokens: int
    lean: Cost
    with_tools: Cost
    whole: Cost

    def __str__(self) -> str:
        span = f", {self.oldest:%Y-%m-%d} to {self.newest:%Y-%m-%d}" if self.messages else ""
        return (
            f"{self.conversation}: {plural(self.messages, 'message')}{span}, "
            f"{plural(self.tokens, 'token')}\n"
            f"lean        {self.lean}\nwith tools  {self.with_tools}\nwhole       {self.whole}"
        )


def cost_of(tokens: int, price: float) -> float:
    """What these tokens cost, at a price per million."""
    return tokens * price / 1_000_000


def stats(
    head: Head,
    *,
    said: tuple[datetime, datetime] | None = None,
    recent_tokens: int = LEAN_TOKENS,
    tool_tokens: int | None = None,
    fixed_tokens: int = FIXED_TOKENS,
    price: float = PRICE,
) -> Stats:
    """The stats of the conversation at `head`. Pure.

    `said` are the times of its oldest and its newest message, `recent_tokens` is what a lean
    request shows of it, `tool_tokens` what the tools return for a question (by default, as many
    messages of mean size as `search_history` returns), `fixed_tokens` what every request holds, and
    `price` that of a million prompt tokens.
    """
    recent = min(recent_tokens, head.tokens)
    lean = fixed_tokens + recent
    returned = _result_tokens(head) if tool_tokens is None else tool_tokens
    found = min(returned, head.tokens - recent)
    costs = {
        "lean": lean,
        "with_tools": lean + lean + found,  # the request that calls, and the one that answers
        "whole": fixed_tokens + head.tokens,
    }
    return Stats(
        conversation=head.conversation,
        messages=head.entries,
        oldest=said[0] if said else None,
        newest=said[1] if said else None,
        tokens=head.tokens,
        **{name: Cost(tokens, cost_of(tokens, price)) for name, tokens in costs.items()},
    )


def _result_tokens(head: Head) -> int:
    """The tokens of one result of `search_history`, about."""
    mean = head.tokens // max(head.entries, 1)
    found = limits.RECALL_HITS_DEFAULT * (mean + _RESULT_FRAME)
    return min(found, limits.RECALL_FOUND_TOKENS)


async def measured(memory: RecallMemory, head: Head, *, price: float = PRICE) -> Stats:
    """The stats of the conversation at `head`, with its times and its newest messages read."""
    name = head.conversation
    if not head.entries:
        return stats(head, price=price)
    first = max(head.seq - LEAN_MESSAGES + 1, 0)
    newest = await memory.read(name, first_seq=first, last_seq=head.seq)
    start = await memory.read(name, first_seq=0, last_seq=0)
    said = (
        await _farthest(memory, name, start[0].message.created_at or head.created_at, _FIRST),
        await _farthest(memory, name, newest[-1].message.created_at or head.updated_at, _LAST),
    )
    recent = min(sum(entry.tokens for entry in newest), LEAN_TOKENS)
    return stats(head, said=said, recent_tokens=recent, price=price)


def _time(entry: Entry) -> datetime:
    return entry.message.created_at or EPOCH


async def _farthest(memory: RecallMemory, name: str, best: datetime, far: datetime) -> datetime:
    """The message time nearest to `far`, given the time of one message.

    One query if messages were stored in the order of their times, else a few more: each query
    halves the remaining span.
    """
    back = far < best

    async def beyond(near: datetime) -> list[Entry]:
        since, until = (far, near) if back else (near + _TICK, far)
        return await memory.dated(name, since, until, limit=1) if since < until else []

    while best != far and (found := await beyond(best)):
        best = _time(found[0])
        middle = best + (far - best) / 2
        if found := await beyond(middle):
            best = _time(found[0])
        else:
            far = middle if back else middle + _TICK
    return best
