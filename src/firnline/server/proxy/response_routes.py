"""The routes of OpenAI's Responses API. Its state is in the log; see `response_places`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from firnline.errors import ConflictError, InputError, NotFound
from firnline.log.threads import run_by_size
from firnline.log.tokens import counter
from firnline.memory import Memory
from firnline.server.auth import Administering, Reading, Writing, parts_of
from firnline.server.bodies import json_response
from firnline.server.proxy.dialect import Location
from firnline.server.proxy.locate import locate_conversation
from firnline.server.proxy.request import ProxyRequest
from firnline.server.proxy.response_erasure import erase_response
from firnline.server.proxy.response_events import NO_USAGE, new_id, whole_events
from firnline.server.proxy.response_places import (
    COMPACTION,
    RESPONSE,
    ItemQuery,
    ResponsePlace,
    card_name,
    failed_response,
    find_response,
    list_items,
    read_response,
)
from firnline.server.proxy.response_request import (
    COMPACTED,
    parse_response_request,
    parse_state_request,
)
from firnline.server.proxy.routes import answer_request

router = APIRouter(tags=["proxy"])

_EXAMPLE: Final = {"model": "gpt-5-mini", "input": "Which order was it?"}
_SCHEMA: Final = {"type": "object", "required": ["model"]}
_DOCUMENT: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": _SCHEMA, "example": _EXAMPLE}},
    }
}
_STREAM: Final = "text/event-stream"
Order = Literal["asc", "desc"]
PageLimit = Annotated[int, Query(ge=1, le=100)]


@router.post("/v1/responses", summary="A response, remembered", openapi_extra=_DOCUMENT)
async def create_response(request: Request, memory: Writing) -> Response:
    """OpenAI's responses: with `previous_response_id`, `conversation`, or the whole history."""
    parsed, _ = await parse_response_request(request, memory, None)
    return await answer_request(parsed)


@router.post("/c/{conversation}/v1/responses", openapi_extra=_DOCUMENT)
async def create_response_in(request: Request, memory: Writing, conversation: str) -> Response:
    """The same for the conversation in the path: the client may send only what is new."""
    parsed, _ = await parse_response_request(request, memory, conversation)
    return await answer_request(parsed)


@router.post("/v1/responses/compact", summary="A history in one item", openapi_extra=_DOCUMENT)
async def compact_response(request: Request, memory: Writing) -> Response:
    """One item that stands for the whole history, of which nothing is lost: it is in the log."""
    parsed, task = await parse_state_request(request, memory)
    tokens = await _count_tokens(parsed)
    await _keep_place(parsed)
    compaction, now = task.head["id"], task.head["created_at"]
    item = {"id": new_id("cmp"), "type": "compaction"}
    output = [{**item, "encrypted_content": f"{COMPACTED}{compaction}"}]
    body = {"id": compaction, "object": "response.compaction", "created_at": now}
    usage = {**NO_USAGE, "input_tokens": tokens, "total_tokens": tokens}
    return json_response({**body, "output": output, "usage": usage})


@router.post("/v1/responses/input_tokens", summary="Tokens of a request", openapi_extra=_DOCUMENT)
async def count_input_tokens(request: Request, memory: Reading) -> Response:
    """The tokens of a request and of all that it continues, by our own counter."""
    parsed, _ = await parse_state_request(request, memory)
    tokens = await _count_tokens(parsed)
    return json_response({"object": "response.input_tokens", "input_tokens": tokens})


async def _keep_place(request: ProxyRequest) -> None:
    """Store what is new of a history, and keep where it ends."""
    thread, load = request.thread, partial(request.dialect.load_messages, request.body)
    messages = await run_by_size(request.size, load)
    if thread is None or len(messages) > thread.given:
        await locate_conversation(request)
        return
    seq = thread.seq
    if seq is None:
        head = await request.memory.head(thread.conversation)
        seq = head.seq if head else -1
    source, name = "previous_response_id", thread.conversation
    location = Location(conversation=name, source=source, named=False, hashes=(), question=seq)
    await request.memory.cards.put(*request.dialect.start_cards(request.memory.tenant, location))


async def _count_tokens(request: ProxyRequest) -> int:
    """The tokens of a request and of the thread that it continues."""
    count = counter(request.model)

    def counted() -> int:
        messages = request.dialect.load_messages(request.body)
        return int(count.sum([count.messages(messages), count.tools(request.tools)]))

    total = await run_by_size(request.size, counted)
    thread = request.thread
    if thread is None:
        return total
    if thread.seq is None:
        head = await request.memory.head(thread.conversation)
        return total + (head.tokens if head else 0)
    last = await request.memory.read_at(thread.conversation, [thread.seq])
    return total + sum(entry.total for entry in last)


@router.get("/v1/responses/{response_id}", summary="A response")
async def retrieve_response(
    request: Request,
    memory: Reading,
    response_id: str,
    stream: bool = False,
    starting_after: Annotated[int | None, Query(ge=0)] = None,
) -> Response:
    """A stored response; with `stream` its events, after the one with the number given."""
    place = await find_response(memory, response_id)
    if place.head["object"] == COMPACTION:
        raise NotFound(f"Response with id {response_id[:80]!r} not found: it is a compaction.")
    response = await _current(request, memory, place)
    if not stream:
        return json_response(response)
    if response["status"] in ("in_progress", "failed", "cancelled"):
        raise ConflictError(f"{response_id}: {response['status']}; retrieve it without stream")
    begin = 0 if starting_after is None else starting_after + 1
    frames = list(whole_events(response))[begin:]
    return StreamingResponse(_encoded(frames), media_type=_STREAM)


def _encoded(frames: list[str]) -> Iterator[bytes]:
    yield from (frame.encode() for frame in frames)


async def _current(request: Request, memory: Memory, place: ResponsePlace) -> dict[str, Any]:
    """The response as it is now: its process may have stopped before there was an answer."""
    response = await read_response(memory, place)
    if place.answer < 0 and response["status"] == "in_progress":
        parts = parts_of(request)
        own = place.owner == parts.drafts.owner
        lives = parts.streams.is_running(stream_name(place.id)) if own else True
        if not lives or parts.drafts.is_dead(place.owner):
            return failed_response(response)
    return response


def stream_name(response_id: str) -> str:
    """The name of the stream that answers in the background."""
    return f"response {response_id}"


@router.delete("/v1/responses/{response_id}", summary="Delete a response")
async def delete_response(request: Request, memory: Administering, response_id: str) -> Response:
    """Erase a response and its input; one in a conversation loses its id, and its items stay.

    What another response needs stays, too: a call whose result is in the input of that one.
    """
    await parts_of(request).streams.stop(stream_name(response_id))
    place = await find_response(memory, response_id)
    if not place.head.get("conversation"):
        await erase_response(memory, place)
    await memory.cards.drop(RESPONSE, names=[card_name(response_id)])
    return json_response({"id": response_id, "object": "response.deleted", "deleted": True})


@router.post("/v1/responses/{response_id}/cancel", summary="Cancel a response")
async def cancel_response(request: Request, memory: Writing, response_id: str) -> Response:
    """End a response in the background; what there is of its answer is stored."""
    place = await find_response(memory, response_id)
    if not place.head.get("background"):
        raise InputError("only a response that was created with background=true can be cancelled")
    stopped = await parts_of(request).streams.stop(stream_name(response_id))
    place = await find_response(memory, response_id)
    response = await _current(request, memory, place)
    if stopped and response["status"] in ("in_progress", "failed"):
        head = {**place.head, "status": "cancelled"}
        await memory.cards.put(replace(place, head=head).card(memory.tenant))
        response = {**response, "status": "cancelled", "error": None}
    return json_response(response)


@router.get("/v1/responses/{response_id}/input_items", summary="What a response answers")
async def list_input_items(
    memory: Reading, response_id: str, after: str = "", limit: PageLimit = 20, order: Order = "desc"
) -> Response:
    """The items that the model was to answer, those of earlier responses included."""
    place = await find_response(memory, response_id)
    query = ItemQuery(after, limit, order)
    return json_response(await list_items(memory, place.conversation, (0, place.question), query))
