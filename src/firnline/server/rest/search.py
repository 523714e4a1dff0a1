"""Search: old messages by words, meaning and date."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response

from firnline.engine.recall import Filters
from firnline.language.dates import Interval, interval
from firnline.log.message import format_time, utc_now
from firnline.memory import Memory
from firnline.server.auth import Reading, person_of
from firnline.server.bodies import etag_response, json_response, read_cursor, require_head
from firnline.server.rest import responses, schemas
from firnline.server.rest.openapi import CONVERSATION, FOUND, FOUND_OR_MISSING, problems, router
from firnline.server.rest.path_params import Conversation
from firnline.server.rest.requests import Cursor, Limit, SearchQuery, SearchRequest, When, Zone

routes = router("search")

SearchParams = Annotated[SearchQuery, Query()]


@routes.get("/search", response_model=schemas.Hits, responses=FOUND)
async def search(request: Request, memory: Reading, query: SearchParams) -> Response:
    """Search all conversations."""
    return etag_response(request, await _search(memory, None, _own(request, query)))


@routes.post("/search", response_model=schemas.Hits, responses=problems(415))
async def search_by_body(request: Request, memory: Reading, body: SearchRequest) -> Response:
    """The same with the query in the body, so that it is not in the URL."""
    return json_response(await _search(memory, None, _own(request, body)))


@routes.get(f"{CONVERSATION}/search", response_model=schemas.Hits, responses=FOUND_OR_MISSING)
async def search_conversation(
    request: Request, memory: Reading, conversation: Conversation, query: SearchParams
) -> Response:
    """Search one conversation."""
    await require_head(memory, conversation)
    return etag_response(request, await _search(memory, conversation, _own(request, query)))


@routes.post(f"{CONVERSATION}/search", response_model=schemas.Hits, responses=problems(404, 415))
async def search_conversation_by_body(
    request: Request, memory: Reading, conversation: Conversation, body: SearchRequest
) -> Response:
    """The same with the query in the body, so that it is not in the URL."""
    await require_head(memory, conversation)
    return json_response(await _search(memory, conversation, _own(request, body)))


def _own(request: Request, query: SearchQuery) -> SearchQuery:
    """The query, with the person of the key."""
    return query.model_copy(update={"person": person_of(request, query.person)})


async def _search(
    memory: Memory, conversation: str | None, query: SearchQuery
) -> dict[str, object]:
    filters = Filters()
    for name in ("roles", "since", "until", "project", "person", "topic", "tags"):
        value = getattr(query, name)
        if value not in (None, []):
            filters[name] = value
    hits = await memory.recall(
        conversation, query.query, limit=query.limit, tokens=query.tokens, **filters
    )
    data = [responses.hit(hit) for hit in hits]
    return {"data": data, "earned": hits.earned, "degraded": hits.degraded}


@routes.get("/dates", response_model=schemas.Span, responses=FOUND)
async def read_date(request: Request, _: Reading, when: When, zone: Zone = "UTC") -> Response:
    """The time range that a date expression means now: `since` and `until` for a search."""
    return etag_response(request, _span(interval(when, now=utc_now(), zone=zone)))


def _span(range_: Interval) -> dict[str, Any]:
    return {
        "since": format_time(range_.since),
        "until": format_time(range_.until),
        "when": range_.words,
    }


@routes.get(f"{CONVERSATION}/dates", response_model=schemas.DatedPage, responses=FOUND_OR_MISSING)
async def list_messages_by_date(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    when: When,
    zone: Zone = "UTC",
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The messages of a day or time range in words: `yesterday`, `last tuesday`."""
    await require_head(memory, conversation)
    range_ = interval(when, now=utc_now(), zone=zone)
    first = max(read_cursor(cursor, int) or 0, 0)
    found = await memory.dated(
        conversation, range_.since, range_.until, first_seq=first, limit=limit
    )
    following = found[-1].seq + 1 if len(found) == limit else None
    page = responses.page(responses.entries(found), following)
    return etag_response(request, {**page, **_span(range_)})
