"""Messages: the full history, and appends to it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Final, Literal

from fastapi import Path, Query, Request, Response

from firnline.client.paths import conversation_path
from firnline.client.wire import encode_entry
from firnline.errors import NotFound
from firnline.log.message import Message
from firnline.log.threads import run_by_size, text_size
from firnline.server.auth import Reading, Writing, charge, person_of
from firnline.server.bodies import etag_response, json_response, require_head
from firnline.server.rest import paging, responses, schemas
from firnline.server.rest.openapi import (
    CONVERSATION,
    FOUND_OR_MISSING,
    LOCATION,
    REPLAYED,
    Responses,
    problems,
    router,
)
from firnline.server.rest.path_params import Conversation
from firnline.server.rest.requests import (
    AppendRequest,
    Cursor,
    IdempotencyKey,
    Item,
    Limit,
    Seq,
    TimedMessage,
)

routes = router("messages", CONVERSATION)

AtSeq = Annotated[Seq, Path(description="The message's sequence number.")]


@routes.get("/messages", response_model=schemas.EntryPage, responses=FOUND_OR_MISSING)
async def list_messages(  # noqa: PLR0913, PLR0917 - each is a parameter of the query
    request: Request,
    memory: Reading,
    conversation: Conversation,
    first_seq: Annotated[Seq, Query(description="First message to return.")] = 0,
    last_seq: Annotated[Seq | None, Query(description="Last message to return.")] = None,
    order: Annotated[Literal["asc", "desc"], Query(description="desc: newest first.")] = "asc",
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """List the full history in pages; digests never remove messages.

    A page may have fewer than `limit` messages if they are large; follow `next_cursor`.
    """
    head = await require_head(memory, conversation)
    last = head.seq if last_seq is None else min(last_seq, head.seq)
    seqs = range(first_seq, last + 1)
    chosen = seqs if order == "asc" else seqs[::-1]
    return etag_response(request, await paging.entries(memory, conversation, chosen, cursor, limit))


@routes.get("/messages/{seq}", response_model=schemas.Entry, responses=FOUND_OR_MISSING)
async def get_message(
    request: Request, memory: Reading, conversation: Conversation, seq: AtSeq
) -> Response:
    """Get one message."""
    await require_head(memory, conversation)
    found = await memory.read(conversation, first_seq=seq, last_seq=seq)
    if not found:
        raise NotFound(f"there is no message {seq}")
    return etag_response(request, encode_entry(found[0]))


_STORED: Final[Responses] = {
    200: {
        "description": "Stored by an earlier request with this `Idempotency-Key`.",
        "model": schemas.Appended,
        "headers": {**LOCATION, **REPLAYED},
    },
    201: {"description": "Stored durably.", "headers": LOCATION},
    **problems(409, 415),
}


@routes.post("/messages", status_code=201, response_model=schemas.Appended, responses=_STORED)
async def append_messages(
    request: Request,
    memory: Writing,
    conversation: Conversation,
    body: AppendRequest,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Append messages to a conversation; the first append creates it.

    All of them are stored or none; they are on disk before the response is sent.
    """
    items = [
        (each.message, each.metadata) if isinstance(each, TimedMessage) else each
        for each in body.messages
    ]
    size = text_size(items)
    messages = await run_by_size(size, partial(_messages_of, body.messages))
    appended = await memory.append(
        conversation,
        messages,
        expected_seq=body.expected_seq,
        idempotency_key=idempotency_key,
        person=person_of(request, body.person),
    )
    headers = {"location": f"{conversation_path(conversation)}/messages/{appended.seq}"}
    if appended.replayed:
        headers["idempotent-replayed"] = "true"
    else:
        charge(request, sum(entry.tokens for entry in appended))
    stored = {
        "data": await run_by_size(size, partial(responses.entries, appended)),
        "seq": appended.seq,
        "replayed": appended.replayed,
    }
    return json_response(stored, 200 if appended.replayed else 201, headers)


def _messages_of(items: Iterable[Item]) -> list[Message]:
    return [message_of(item) for item in items]


def message_of(item: Item) -> Message:
    """The message with its time and metadata."""
    if isinstance(item, TimedMessage):
        return Message.from_openai(item.message, created_at=item.created_at, metadata=item.metadata)
    return Message.from_openai(item)
