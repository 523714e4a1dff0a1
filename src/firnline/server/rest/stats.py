"""Numbers: how large conversations are, what answers cost, how digesting goes."""

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
from firnline.server.bodies import head_of, tagged
from firnline.server.rest import paging, responses, schemas
from firnline.server.rest.openapi import FOUND, MISSING, router
from firnline.server.rest.path_params import Conversation

routes = router("numbers")

Price = Annotated[
    float,
    Query(ge=0, le=1_000_000, allow_inf_nan=False, description="Dollars for a million tokens."),
]
_EVER: Final = datetime.max.replace(tzinfo=UTC)
_LISTED: Final = 100
_WAYS: Final = ("lean", "with_tools", "whole")


@routes.get(
    "/conversations/{conversation}/stats",
    response_model=schemas.ConversationStats,
    responses={**FOUND, **MISSING},
)
async def get_stats(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    price: Price = stats.PRICE,
) -> Response:
    """How large the conversation is, and what an answer costs in three ways."""
    return tagged(request, responses.plain(await memory.stats(conversation, price=price)))


@routes.get("/stats", response_model=schemas.TenantStats, responses=FOUND)
async def get_tenant_stats(
    request: Request, memory: Reading, price: Price = stats.PRICE
) -> Response:
    """The same over all conversations: their sizes, and the cost of one answer in each."""
    sums: Counter[str] = Counter()
    costs: Counter[str] = Counter()
    oldest, newest = "", ""
    async for head in paging.heads(memory):
        one = stats.stats(head, recent_tokens=await _recent(memory, head), price=price)
        sums.update(
            conversations=1, messages=one.messages, archived=head.archived, tokens=one.tokens
        )
        costs.update({way: getattr(one, way).tokens for way in _WAYS})
        began, last = format_time(head.created_at), format_time(head.updated_at)
        oldest, newest = min(oldest or began, began), max(newest, last)
    names = ("conversations", "messages", "archived", "tokens")
    priced = {way: {"tokens": costs[way], "price": costs[way] * price / 1e6} for way in _WAYS}
    times = {"oldest": oldest or None, "newest": newest or None}
    return tagged(request, {**{name: sums[name] for name in names}, **times, **priced})


async def _recent(memory: Memory, head: Head) -> int:
    """What a lean request shows of the conversation."""
    if not head.entries:
        return 0
    first = max(head.seq - stats.LEAN_MESSAGES + 1, 0)
    tokens = await memory.tokens_between(head.conversation, first, head.seq)
    return min(tokens, stats.LEAN_TOKENS)


# -- digesting --------------------------------------------------------------------------------


@routes.get(
    "/conversations/{conversation}/lineage",
    response_model=schemas.Lineage,
    responses={**FOUND, **MISSING},
)
async def get_lineage(request: Request, memory: Reading, conversation: Conversation) -> Response:
    """The version chain, what is stuck, how far the window got, how long digests took."""
    head = await head_of(memory, conversation)
    lineage = await memory.lineage(conversation)
    about = {
        "conversation": conversation,
        "chain": list(lineage.chain),
        "versions": [_version(digest) for digest in lineage.digests],
        "stuck": [digest.version for digest in lineage.stuck],
        "window": await _window(memory, head),
        "owed": conversation in await list_pending(memory),
        "mean_milliseconds": lineage.mean_milliseconds,
        "max_milliseconds": lineage.max_milliseconds,
    }
    return tagged(request, about)


def _version(digest: Digest) -> dict[str, Any]:
    return {
        name: responses.plain(getattr(digest, name)) for name in schemas.DigestVersion.model_fields
    }


async def _window(memory: Memory, head: Head) -> dict[str, Any]:
    """How far the digests in force reach into the log."""
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


async def list_pending(memory: Memory, until: datetime = _EVER) -> list[str]:
    """The conversations whose digests are due by `until`."""
    keys = await memory.due(until=until, limit=limits.PAGE_MAX)
    return [key.conversation for key in keys]


@routes.get("/work", response_model=schemas.Work, responses=FOUND)
async def get_work(request: Request, memory: Reading) -> Response:
    """The digesting of all conversations: what is owed, what is stuck, how long it takes."""
    tally = _Tally()
    async for head in paging.heads(memory):
        name = head.conversation
        tally.add(head, await memory.lineage(name), await memory.in_force(name))
    due = await list_pending(memory, utc_now())
    waiting = [name for name in await list_pending(memory) if name not in set(due)]
    lists = {
        "owed_since": responses.plain((await memory.pending()).oldest),
        "due": due[:_LISTED],
        "waiting": waiting[:_LISTED],
    }
    return tagged(request, {**tally.told(), **lists, "events": dict(memory.events)})


class _Tally:
    """The sum of many lineages."""

    def __init__(self) -> None:
        self._sums: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._times = [0, 0, 0]  # how many, their sum, the longest
        self._stuck: list[dict[str, Any]] = []
        self._failed: list[dict[str, Any]] = []

    def add(self, head: Head, lineage: Lineage, force: Sequence[Digest]) -> None:
        """One conversation more."""
        covered = sum(digest.last_seq - digest.first_seq + 1 for digest in force)
        self._sums.update(conversations=1, entries=head.entries, covered_entries=covered)
        self._statuses.update(digest.status for digest in lineage.digests)
        for digest in lineage.digests:
            if digest.status == "completed":
                count, total, longest = self._times
                took = digest.milliseconds
                self._times = [count + 1, total + took, max(longest, took)]
        for digest in lineage.stuck[: _LISTED - len(self._stuck)]:
            self._stuck.append(_about(head, digest))
        for digest in failed(lineage.digests)[: _LISTED - len(self._failed)]:
            self._failed.append({**_about(head, digest), "error": digest.error})

    def told(self) -> dict[str, Any]:
        """All of it."""
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


def failed(digests: Sequence[Digest]) -> list[Digest]:
    """Those that failed, and that no later one made good."""
    done = {digest.topic: digest.version for digest in digests if digest.status == "completed"}
    return [d for d in digests if d.status == "failed" and d.version > done.get(d.topic, 0)]


def _about(head: Head, digest: Digest) -> dict[str, Any]:
    return {
        "conversation": head.conversation,
        "version": digest.version,
        "created_at": responses.plain(digest.created_at),
    }
