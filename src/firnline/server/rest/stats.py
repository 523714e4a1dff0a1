"""Statistics: sizes of conversations, costs of answers, progress of digests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response

from firnline.engine import stats
from firnline.engine.digest_history import Lineage
from firnline.log import limits
from firnline.log.entry import Digest, Head
from firnline.log.message import format_time, utc_now
from firnline.memory import Memory
from firnline.server.auth import Reading
from firnline.server.bodies import etag_response, require_head
from firnline.server.rest import paging, responses, schemas
from firnline.server.rest.openapi import CONVERSATION, FOUND, FOUND_OR_MISSING, router
from firnline.server.rest.path_params import Conversation

routes = router("numbers")

Price = Annotated[
    float,
    Query(ge=0, le=1_000_000, allow_inf_nan=False, description="US dollars per million tokens."),
]
_FAR_FUTURE: Final = datetime.max.replace(tzinfo=UTC)
_LISTED: Final = 100
_COST_KINDS: Final = ("lean", "with_tools", "whole")


@routes.get(
    f"{CONVERSATION}/stats", response_model=schemas.ConversationStats, responses=FOUND_OR_MISSING
)
async def get_stats(
    request: Request, memory: Reading, conversation: Conversation, price: Price = stats.PRICE
) -> Response:
    """The size of the conversation, and what an answer costs in three ways."""
    return etag_response(request, responses.plain(await memory.stats(conversation, price=price)))


@routes.get("/stats", response_model=schemas.TenantStats, responses=FOUND)
async def get_tenant_stats(
    request: Request, memory: Reading, price: Price = stats.PRICE
) -> Response:
    """The size of all conversations, and the cost of one answer in each."""
    sums: Counter[str] = Counter()
    costs: Counter[str] = Counter()
    oldest, newest = "", ""
    async for head in paging.heads(memory):
        one = stats.stats(head, recent_tokens=await _recent_tokens(memory, head), price=price)
        sums.update(
            conversations=1, messages=one.messages, archived=head.archived, tokens=one.tokens
        )
        costs.update({kind: getattr(one, kind).tokens for kind in _COST_KINDS})
        began, last = format_time(head.created_at), format_time(head.updated_at)
        oldest, newest = min(oldest or began, began), max(newest, last)
    names = ("conversations", "messages", "archived", "tokens")
    priced = {
        kind: {"tokens": costs[kind], "price": costs[kind] * price / 1e6} for kind in _COST_KINDS
    }
    times = {"oldest": oldest or None, "newest": newest or None}
    return etag_response(request, {**{name: sums[name] for name in names}, **times, **priced})


async def _recent_tokens(memory: Memory, head: Head) -> int:
    """Tokens of the conversation in a lean request."""
    if not head.entries:
        return 0
    first = max(head.seq - stats.LEAN_MESSAGES + 1, 0)
    tokens = await memory.tokens_between(head.conversation, first, head.seq)
    return min(tokens, stats.LEAN_TOKENS)


# -- progress of digests ----------------------------------------------------------------------


@routes.get(f"{CONVERSATION}/lineage", response_model=schemas.Lineage, responses=FOUND_OR_MISSING)
async def get_lineage(request: Request, memory: Reading, conversation: Conversation) -> Response:
    """The chain of digests, stuck ones, coverage of the log, and durations."""
    head = await require_head(memory, conversation)
    lineage = await memory.lineage(conversation)
    body = {
        "conversation": conversation,
        "chain": list(lineage.chain),
        "versions": [responses.fill(schemas.DigestVersion, one) for one in lineage.digests],
        "stuck": [digest.version for digest in lineage.stuck],
        "window": await _coverage(memory, head),
        "pending": conversation in await list_pending(memory),
        "mean_milliseconds": lineage.mean_milliseconds,
        "max_milliseconds": lineage.max_milliseconds,
    }
    return etag_response(request, body)


async def _coverage(memory: Memory, head: Head) -> dict[str, Any]:
    """How much of the log the digests in force cover."""
    force = [d for d in await memory.in_force(head.conversation) if d.last_seq >= 0]
    last = max((digest.last_seq for digest in force), default=-1)
    newest = max(force, key=lambda digest: digest.version, default=None)
    open_tokens = 0
    if last < head.seq:
        open_tokens = await memory.tokens_between(head.conversation, last + 1, head.seq)
    return {
        "entries": head.entries,
        "tokens": head.tokens,
        "first_seq": newest.first_seq if newest else None,
        "last_seq": last if newest else None,
        "open_entries": head.seq - last,
        "open_tokens": open_tokens,
    }


async def list_pending(memory: Memory, until: datetime = _FAR_FUTURE) -> list[str]:
    """The conversations whose digests are due by `until`."""
    keys = await memory.due(until=until, limit=limits.PAGE_MAX)
    return [key.conversation for key in keys]


@routes.get("/work", response_model=schemas.Work, responses=FOUND)
async def get_work(request: Request, memory: Reading) -> Response:
    """The digests of all conversations: pending, stuck, failed, and how long they take."""
    totals = _WorkTotals()
    async for head in paging.heads(memory):
        name = head.conversation
        totals.add(head, await memory.lineage(name), await memory.in_force(name))
    due = await list_pending(memory, utc_now())
    waiting = [name for name in await list_pending(memory) if name not in set(due)]
    lists = {
        "pending_since": responses.plain((await memory.pending()).oldest),
        "due": due[:_LISTED],
        "waiting": waiting[:_LISTED],
    }
    return etag_response(request, {**totals.to_json(), **lists, "events": dict(memory.events)})


class _WorkTotals:
    """Totals over the lineages of many conversations."""

    def __init__(self) -> None:
        self._sums: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._times = [0, 0, 0]  # count, sum, maximum
        self._stuck: list[dict[str, Any]] = []
        self._failed: list[dict[str, Any]] = []

    def add(self, head: Head, lineage: Lineage, force: Sequence[Digest]) -> None:
        """Add a conversation."""
        covered = sum(digest.last_seq - digest.first_seq + 1 for digest in force)
        self._sums.update(conversations=1, entries=head.entries, covered_entries=covered)
        self._statuses.update(digest.status for digest in lineage.digests)
        for digest in lineage.digests:
            if digest.status == "completed":
                count, total, longest = self._times
                took = digest.milliseconds
                self._times = [count + 1, total + took, max(longest, took)]
        for digest in lineage.stuck[: _LISTED - len(self._stuck)]:
            self._stuck.append(_digest_json(head, digest))
        for digest in list_failed(lineage.digests)[: _LISTED - len(self._failed)]:
            self._failed.append({**_digest_json(head, digest), "error": digest.error})

    def to_json(self) -> dict[str, Any]:
        """The totals as JSON."""
        names = ("conversations", "entries", "covered_entries")
        count, total, longest = self._times
        return {
            **{name: self._sums[name] for name in names},
            "digests": dict(self._statuses),
            "mean_milliseconds": total / count if count else 0.0,
            "max_milliseconds": longest,
            "stuck": self._stuck,
            "failed": self._failed,
        }


def list_failed(digests: Sequence[Digest]) -> list[Digest]:
    """The digests that failed, with no later success."""
    done = {digest.topic: digest.version for digest in digests if digest.status == "completed"}
    return [d for d in digests if d.status == "failed" and d.version > done.get(d.topic, 0)]


def _digest_json(head: Head, digest: Digest) -> dict[str, Any]:
    return {
        "conversation": head.conversation,
        "version": digest.version,
        "created_at": responses.plain(digest.created_at),
    }
