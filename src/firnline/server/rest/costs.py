"""Costs: the tokens of prompts and digests, compared with the full history in every prompt."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from fastapi import Request, Response

from firnline.engine import stats
from firnline.log import limits
from firnline.log.message import format_time
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


class Spending(NamedTuple):
    """What one turn or one digest took: a digest has no prompt, and is part of no history."""

    time: str
    turns: int = 0
    sent: int = 0
    repeated: int = 0
    whole: int = 0
    whole_repeated: int = 0
    digest_tokens: int = 0


@routes.get("/costs", response_model=schemas.Costs, responses=FOUND)
async def get_costs(request: Request, memory: Reading, price: Price = stats.PRICE) -> Response:
    """Tokens spent over time in all conversations, compared with sending the full history.

    Counts turns that this server handled, up to 5,000, most recently active conversations first,
    and what models read and wrote for the digests of these conversations.
    """
    found, complete = await _read_spending(memory)
    total = sum_up(found)
    paid = total["sent"] + total["digest_tokens"]
    body = {
        **total,
        "price": price,
        "spent": stats.cost_of(paid, price),
        "saved": stats.cost_of(total["whole"] - paid, price),
        "complete": complete,
        "data": [_point(part) for part in points(found, _POINTS)],
    }
    return etag_response(request, body)


async def _read_spending(memory: Memory) -> tuple[list[Spending], bool]:
    """The recorded turns and the digests, oldest first, and whether these are all."""
    heads = [head async for head in paging.heads(memory)]
    turns: list[Spending] = []
    digests: list[Spending] = []
    for head in sorted(heads, key=lambda head: head.updated_at, reverse=True):
        own = await _read_turns(memory, head.conversation, TURNS_PRICED_MAX + 1 - len(turns))
        turns += own
        if len(turns) > TURNS_PRICED_MAX:
            turns = sorted(turns[:TURNS_PRICED_MAX])
            since = turns[0].time
            return sorted([*turns, *(one for one in digests if one.time >= since)]), False
        digests += [
            Spending(format_time(one.created_at) if one.created_at else "", digest_tokens=tokens)
            for one in await memory.digests(head.conversation)
            if (tokens := one.spent_tokens)
        ]
    return sorted([*turns, *digests]), True


async def _read_turns(memory: Memory, conversation: str, most: int) -> list[Spending]:
    """Up to `most` recorded turns of a conversation, newest first."""
    found: list[dict[str, Any]] = []
    while len(found) < most:
        page = await prompts.list_records(
            memory,
            conversation,
            before=found[-1]["answer"] if found else None,
            limit=limits.PAGE_MAX,
        )
        found += page
        if len(page) < limits.PAGE_MAX:
            break
    return list(map(turn_spending, found[:most], [*found[1:], None]))


def turn_spending(record: dict[str, Any], before: dict[str, Any] | None) -> Spending:
    """What a turn took; `before` is the record of the turn before it."""
    tokens: int = record["tokens"]
    whole: int = record.get("whole_tokens", tokens)
    repeated = round((record["stability"] or 0) * before["tokens"]) if before else 0
    whole_before = before.get("whole_tokens", before["tokens"]) if before else 0
    return Spending(
        record["recorded_at"] or "",
        turns=1,
        sent=tokens,
        repeated=min(repeated, tokens),
        whole=whole,
        whole_repeated=min(whole_before, whole),  # a full history only grows
    )


def sum_up(found: Sequence[Spending]) -> dict[str, int]:
    """The totals."""
    names = Spending._fields[1:]
    return {name: sum(getattr(one, name) for one in found) for name in names}


def points(found: Sequence[Spending], count: int) -> list[list[Spending]]:
    """What was spent in at most `count` runs with similar numbers of turns.

    A digest is in the run of the turn after it, or in the last one.
    """
    turns = [at for at, one in enumerate(found) if one.turns]
    count = min(count, len(turns))
    ends = [turns[len(turns) * number // count - 1] + 1 for number in range(1, count)]
    edges = [0, *ends, len(found)]
    return [list(found[first:last]) for first, last in pairwise(edges) if last > first]


def _point(part: Sequence[Spending]) -> dict[str, Any]:
    return {"since": part[0].time or None, "until": part[-1].time or None, **sum_up(part)}
