"""Costs: what recorded turns sent, and what the whole history in every prompt would have been."""

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
from firnline.server.bodies import tagged
from firnline.server.rest import paging, schemas
from firnline.server.rest.openapi import FOUND, router
from firnline.server.rest.stats import Price

routes = router("numbers")

_TURNS_MAX: Final = 5_000  # each is a record to unpack
_POINTS: Final = 100
_MILLION: Final = 1_000_000


class _Sent(NamedTuple):
    """The prompt of one turn."""

    time: str
    sent: int
    whole: int


@routes.get("/costs", response_model=schemas.Costs, responses=FOUND)
async def get_costs(request: Request, memory: Reading, price: Price = stats.PRICE) -> Response:
    """Tokens sent against the whole history, over time, in all conversations.

    Of the turns that went through this server. Those of the conversations that something happened
    in last are counted, up to some thousand turns.
    """
    found, complete = await _turns(memory)
    sent, whole = sum(turn.sent for turn in found), sum(turn.whole for turn in found)
    told = {
        "turns": len(found),
        "sent": sent,
        "whole": whole,
        "price": price,
        "spent": sent * price / _MILLION,
        "saved": (whole - sent) * price / _MILLION,
        "complete": complete,
        "data": [_point(part) for part in parts(found, _POINTS)],
    }
    return tagged(request, told)


async def _turns(memory: Memory) -> tuple[list[_Sent], bool]:
    """What is recorded, oldest first, and whether it is all there is."""
    heads = [head async for head in paging.heads(memory)]
    found: list[_Sent] = []
    for head in sorted(heads, key=lambda head: head.updated_at, reverse=True):
        before: int | None = None
        while True:
            page = await prompts.turns(
                memory, head.conversation, before=before, limit=limits.PAGE_MAX
            )
            found += map(_sent, page)
            if len(found) > _TURNS_MAX:
                return sorted(found[:_TURNS_MAX]), False
            if len(page) < limits.PAGE_MAX:
                break
            before = page[-1]["answer"]
    return sorted(found), True


def _sent(kept: dict[str, Any]) -> _Sent:
    tokens: int = kept["tokens"]
    return _Sent(kept["recorded_at"] or "", tokens, kept.get("whole_tokens", tokens))


def parts(turns: Sequence[_Sent], count: int) -> list[Sequence[_Sent]]:
    """The turns in at most `count` runs of much the same length."""
    count = min(count, len(turns))
    edges = [len(turns) * number // count for number in range(count + 1)] if count else []
    return [turns[first:last] for first, last in pairwise(edges)]


def _point(part: Sequence[_Sent]) -> dict[str, Any]:
    return {
        "since": part[0].time or None,
        "until": part[-1].time or None,
        "turns": len(part),
        "sent": sum(turn.sent for turn in part),
        "whole": sum(turn.whole for turn in part),
    }
