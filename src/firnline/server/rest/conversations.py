"""Conversations: list, change, verify, archive, branch and pin them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Request, Response

from firnline.client.paths import conversation_path
from firnline.engine.digest_history import state_of
from firnline.errors import ConflictError, InputError, NotFound
from firnline.log import limits
from firnline.log.entry import Head
from firnline.memory import Memory
from firnline.server.auth import Reading, Writing, person_of
from firnline.server.bodies import etag_response, json_response, read_cursor, require_head
from firnline.server.rest import responses, schemas
from firnline.server.rest.messages import AtSeq
from firnline.server.rest.openapi import (
    CONVERSATION,
    FOUND,
    FOUND_OR_MISSING,
    LOCATION,
    MISSING,
    problems,
    router,
)
from firnline.server.rest.path_params import Conversation
from firnline.server.rest.requests import (
    ArchiveRequest,
    BranchRequest,
    ConversationRequest,
    Cursor,
    Limit,
    Name,
    ProofRequest,
    VerifyRequest,
)
from firnline.server.titles import title_of, titles_of
from firnline.strategies import strategy as strategy_named

routes = router("conversations")

_KEEP_DEFAULT: Final = 1_000


@routes.get("/conversations", response_model=schemas.HeadPage, responses=FOUND)
async def list_conversations(  # noqa: PLR0913, PLR0917 - each is a parameter of the query
    request: Request,
    memory: Reading,
    project: Annotated[
        Name | None, Query(description="Only conversations of this project.")
    ] = None,
    person: Annotated[
        Name | None, Query(description="Only conversations with this person.")
    ] = None,
    order: Annotated[
        Literal["name", "newest"],
        Query(description="By name, so that pages are stable, or the last updated ones first."),
    ] = "name",
    failed: Annotated[
        bool, Query(description="Also conversations that are only a request that failed.")
    ] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """List the conversations."""
    after, person = read_cursor(cursor, str) or "", person_of(request, person)
    if order == "name":
        found = await memory.conversations(project=project, person=person, after=after, limit=limit)
    else:
        found = await memory.recent(project=project, after=_place(after), limit=limit)
    following = _position(found[-1], order) if len(found) == limit else None
    heads = [head for head in found if failed or not head.has_failed]
    heads = [head for head in heads if person in (None, head.person)]
    titles = await titles_of(memory, heads)
    rows = [responses.head(head, title) for head, title in zip(heads, titles, strict=True)]
    return etag_response(request, responses.page(rows, following))


def _position(head: Head, order: str) -> str:
    """What a cursor says: the conversation's name, and its time if that decides."""
    seconds = f"{head.updated_at.isoformat()} " if order == "newest" else ""
    return f"{seconds}{head.conversation}"


def _place(position: str) -> Head | None:
    """The place in a list by time; `InputError` if the cursor is of another list."""
    if not position:
        return None
    at, _, name = position.partition(" ")
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        raise InputError("cursor: invalid; use `next_cursor` of the previous page") from None
    if time.tzinfo is None or not name:
        raise InputError("cursor: invalid; use `next_cursor` of the previous page")
    return Head(name, seq=-1, hash="", tokens=0, created_at=time, updated_at=time)


@routes.get(CONVERSATION, response_model=schemas.Conversation, responses=FOUND_OR_MISSING)
async def get_conversation(
    request: Request, memory: Reading, conversation: Conversation
) -> Response:
    """A conversation: head, strategy, state, digests in force and pins."""
    head = await require_head(memory, conversation)
    return etag_response(request, await _describe(memory, head))


async def _describe(memory: Memory, head: Head) -> dict[str, Any]:
    name = head.conversation
    force = await memory.in_force(name)
    pinned = await memory.pinned(name)
    return {
        **responses.head(head, await title_of(memory, head)),
        "strategy": responses.strategy(await memory.strategy(name), head),
        "state": responses.plain(await asyncio.to_thread(state_of, force)),
        "digests": len(await memory.digests(name)),
        "in_force": [digest.version for digest in force],
        "pinned": [entry.seq for entry in pinned],
    }


@routes.patch(CONVERSATION, response_model=schemas.Conversation, responses=problems(404, 409, 415))
async def change_conversation(
    memory: Writing, conversation: Conversation, body: ConversationRequest
) -> Response:
    """Change the project, person, strategy or metadata of a conversation."""
    for _ in range(limits.ANSWER_TRIES):
        head = await require_head(memory, conversation)
        # After a conflict, check again whether it was erased.
        with suppress(ConflictError):
            return json_response(await _describe(memory, await _change(memory, head, body)))
    raise ConflictError(f"{conversation}: too many concurrent changes; retry")


async def _change(memory: Memory, head: Head, body: ConversationRequest) -> Head:
    named, name = body.strategy, head.conversation
    chosen = strategy_named(named.name, named.parameters) if named else None
    about = {"project": body.project, "person": body.person, "metadata": body.metadata}
    if any(value is not None for value in about.values()):
        head = await memory.describe(name, **about, known=head)  # type: ignore[arg-type]
    return head if chosen is None else await memory.set_strategy(name, chosen, known=head)


@routes.post(
    f"{CONVERSATION}/verify", response_model=schemas.Verified, responses=problems(404, 415)
)
async def verify_conversation(
    memory: Reading, conversation: Conversation, body: VerifyRequest | None = None
) -> Response:
    """Recompute every hash; `ok` is false if anything was changed."""
    result = await memory.verify(conversation, anchor=body.anchor if body else None)
    listed = [str(problem) for problem in result.problems]
    return json_response({**responses.plain(result), "ok": result.ok, "problems": listed})


@routes.post(f"{CONVERSATION}/checkpoint", response_model=schemas.Checkpoint, responses=MISSING)
async def make_checkpoint(memory: Reading, conversation: Conversation) -> Response:
    """The log as it is now, as a signed note that shows any rewriting to those who keep it."""
    return json_response({"checkpoint": await memory.checkpoint(conversation)})


@routes.post(f"{CONVERSATION}/proof", response_model=schemas.Proof, responses=problems(404, 415))
async def prove(memory: Reading, conversation: Conversation, body: ProofRequest) -> Response:
    """A proof for strangers: that a message is in the log, or that the log only grew."""
    if body.since is not None:
        return json_response({"proof": await memory.prove_growth(conversation, body.since)})
    await require_head(memory, conversation)
    return json_response({"proof": await memory.prove(conversation, body.seq or 0)})


@routes.post(
    f"{CONVERSATION}/archive", response_model=schemas.Archived, responses=problems(404, 415)
)
async def archive_conversation(
    memory: Writing, conversation: Conversation, body: ArchiveRequest | None = None
) -> Response:
    """Compress old messages; they can still be read, searched and verified."""
    done = await memory.archive(conversation, keep=body.keep if body else _KEEP_DEFAULT)
    return json_response(responses.plain(done))


@routes.post(f"{CONVERSATION}/restore", response_model=schemas.Restored, responses=MISSING)
async def restore_conversation(memory: Writing, conversation: Conversation) -> Response:
    """Decompress archived messages."""
    await require_head(memory, conversation)
    return json_response({"entries": await memory.restore(conversation)})


@routes.post(
    f"{CONVERSATION}/branch",
    status_code=201,
    response_model=schemas.Head,
    responses={
        200: {"description": "Already existed.", "model": schemas.Head, "headers": LOCATION},
        201: {"description": "Created.", "headers": LOCATION},
        **MISSING,
        **problems(409, 415),
    },
)
async def branch_conversation(
    memory: Writing, conversation: Conversation, body: BranchRequest
) -> Response:
    """Create a conversation that starts with the messages up to `seq`.

    It is an independent copy: changes to one, even erasing it, do not affect the other.
    """
    await _require_entry(memory, conversation, body.seq)
    before = await memory.head(body.name)
    made = await memory.branch(conversation, body.seq, body.name)
    headers = {"location": conversation_path(body.name)}
    return json_response(
        responses.head(made, await title_of(memory, made)), 201 if before is None else 200, headers
    )


# -- pins -------------------------------------------------------------------------------------


@routes.get(f"{CONVERSATION}/pins", response_model=schemas.EntryPage, responses=FOUND_OR_MISSING)
async def list_pins(request: Request, memory: Reading, conversation: Conversation) -> Response:
    """The messages that are in every context."""
    await require_head(memory, conversation)
    found = await memory.pinned(conversation)
    return etag_response(request, responses.page(responses.entries(found), None))


@routes.put(f"{CONVERSATION}/pins/{{seq}}", response_model=schemas.Pinned, responses=MISSING)
async def pin_message(memory: Writing, conversation: Conversation, seq: AtSeq) -> Response:
    """Include this message in every context from now on, word for word."""
    await _require_entry(memory, conversation, seq)
    await memory.pin(conversation, seq)
    return json_response({"conversation": conversation, "seq": seq, "pinned": True})


@routes.delete(f"{CONVERSATION}/pins/{{seq}}", response_model=schemas.Pinned, responses=MISSING)
async def unpin_message(memory: Writing, conversation: Conversation, seq: AtSeq) -> Response:
    """Unpin the message."""
    await _require_entry(memory, conversation, seq)
    await memory.unpin(conversation, seq)
    return json_response({"conversation": conversation, "seq": seq, "pinned": False})


async def _require_entry(memory: Memory, conversation: str, seq: int) -> None:
    head = await require_head(memory, conversation)
    if seq > head.seq:
        raise NotFound(f"there is no message {seq}")
