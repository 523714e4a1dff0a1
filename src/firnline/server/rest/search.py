"""Search: old entries by words, meaning and date."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response

from firnline.engine.recall import Filters
from firnline.language.dates import Interval, interval
from firnline.log.message import format_time, utc_now
from firnline.memory import Memory
from firnline.server.auth import Reading
from firnline.server.bodies import head_of, position_of, sent, tagged
from firnline.server.rest import responses, schemas
from firnline.server.rest.openapi import FOUND, MISSING, problems, router
from firnline.server.rest.path_params import Conversation
from firnline.server.rest.requests import Cursor, Limit, SearchQuery, SearchRequest, When, Zone

routes = router("search")

Asked = Annotated[SearchQuery, Query()]


@routes.get("/search", response_model=schemas.Hits, responses=FOUND)
async def search(request: Request, memory: Reading, query: Asked) -> Response:
    """Search all conversations."""
    return tagged(request, await _found(memory, None, query))


@routes.post("/search", response_model=schemas.Hits, responses=problems(415))
async def search_by_body(memory: Reading, body: SearchRequest) -> Response:
    """The same, for what is better not in an address."""
    return sent(await _found(memory, None, body))


@routes.get(
    "/conversations/{conversation}/search",
    response_model=schemas.Hits,
    responses={**FOUND, **MISSING},
)
async def search_conversation(
    request: Request, memory: Reading, conversation: Conversation, query: Asked
) -> Response:
    """Search one conversation."""
    await head_of(memory, conversation)
    return tagged(request, await _found(memory, conversation, query))


@routes.post(
    "/conversations/{conversation}/search",
    response_model=schemas.Hits,
    responses={**MISSING, **problems(415)},
)
async def search_conversation_by_body(
    memory: Reading, conversation: Conversation, body: SearchRequest
) -> Response:
    """The same, for what is better not in an address."""
    await head_of(memory, conversation)
    return sent(await _found(memory, conversation, body))


async def _found(memory: Memory, conversation: str | None, asked: SearchQuery) -> dict[str, object]:
    filters = Filters()
    for name in ("roles", "since", "until", "project", "topic", "tags"):
        value = getattr(asked, name)
        if value not in (None, []):
            filters[name] = value
    hits = await memory.recall(
        conversation, asked.query, limit=asked.limit, tokens=asked.tokens, **filters
    )
    return {"data": [responses.hit(hit) for hit in hits]}


@routes.get("/dates", response_model=schemas.Span, responses=FOUND)
async def read_date(request: Request, _: Reading, when: When, zone: Zone = "UTC") -> Response:
    """What words for a time mean now: `since` and `until` for a search."""
    return tagged(request, _span(interval(when, now=utc_now(), zone=zone)))


def _span(meant: Interval) -> dict[str, Any]:
    return {
        "since": format_time(meant.since),
        "until": format_time(meant.until),
        "when": meant.words,
    }


@routes.get(
    "/conversations/{conversation}/dates",
    response_model=schemas.DatedPage,
    responses={**FOUND, **MISSING},
)
async def list_messages_by_date(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    when: When,
    zone: Zone = "UTC",
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """What was said on a day or in a span of days, in words: `yesterday`, `last tuesday`."""
    await head_of(memory, conversation)
    meant = interval(when, now=utc_now(), zone=zone)
    first = max(position_of(cursor, int) or 0, 0)
    found = await memory.dated(conversation, meant.since, meant.until, first_seq=first, limit=limit)
    following = found[-1].seq + 1 if len(found) == limit else None
    page = responses.page(responses.entries(found), following)
    return tagged(request, {**page, **_span(meant)})
