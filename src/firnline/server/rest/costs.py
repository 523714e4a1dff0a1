"""Costs: the tokens of recorded prompts, compared with the full history in every prompt."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from fastapi import Request, Response

from firnline.engine import stats
from firnline.log import limits
from firnline.memory import Memory
from firnline.server import prompts
from firnline.server.auth import Reading
from firnline.server.bodies import etag_response
from firnline.server.limits import TURNS_PRICED_MAX
from firnline.server.rest import paging, schemas
from firnline.server.rest.openapi import FOUND, router
from firnline.server.rest.stats import Price

routes = router("numbers")

_POINTS: Final = 100


class _PromptSize(NamedTuple):
    """The prompt of one turn."""

    time: str
    sent: int
    whole: int


@routes.get("/costs", response_model=schemas.Costs, responses=FOUND)
async def get_costs(request: Request, memory: Reading, price: Price = stats.PRICE) -> Response:
    """Tokens sent over time in all conversations, compared with sending the full history.

    Counts turns that this server handled, up to 5,000, most recently active conversations first.
    """
    found, complete = await _read_sizes(memory)
    sent, whole = sum(turn.sent for turn in found), sum(turn.whole for turn in found)
    body = {
        "turns": len(found),
        "sent": sent,
        "whole": whole,
        "price": price,
        "spent": stats.cost_of(sent, price),
        "saved": stats.cost_of(whole - sent, price),
        "complete": complete,
        "data": [_point(part) for part in split(found, _POINTS)],
    }
    return etag_response(request, body)


async def _read_sizes(memory: Memory) -> tuple[list[_PromptSize], bool]:
    """The recorded prompts, oldest first, and whether these are all."""
    heads = [head async for head in paging.heads(memory)]
    found: list[_PromptSize] = []
    for head in sorted(heads, key=lambda head: head.updated_at, reverse=True):
        before: int | None = None
        while True:
            page = await prompts.list_records(
                memory, head.conversation, before=before, limit=limits.PAGE_MAX
            )
            found += map(_size, page)
            if len(found) > TURNS_PRICED_MAX:
                return sorted(found[:TURNS_PRICED_MAX]), False
            if len(page) < limits.PAGE_MAX:
                break
            before = page[-1]["answer"]
    return sorted(found), True


def _size(record: dict[str, Any]) -> _PromptSize:
    tokens: int = record["tokens"]
    return _PromptSize(record["recorded_at"] or "", tokens, record.get("whole_tokens", tokens))


def split(turns: Sequence[_PromptSize], count: int) -> list[Sequence[_PromptSize]]:
    """Split the turns into at most `count` runs of similar length."""
    count = min(count, len(turns))
    edges = [len(turns) * number // count for number in range(count + 1)] if count else []
    return [turns[first:last] for first, last in pairwise(edges)]


def _point(part: Sequence[_PromptSize]) -> dict[str, Any]:
    return {
        "since": part[0].time or None,
        "until": part[-1].time or None,
        "turns": len(part),
        "sent": sum(turn.sent for turn in part),
        "whole": sum(turn.whole for turn in part),
    }
