"""Conversations: where they stand, what they belong to, and their end."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response

from firnline.client.paths import conversation_path
from firnline.engine.digest_history import state_of
from firnline.errors import ConflictError, NotFound
from firnline.log import limits
from firnline.log.entry import Head
from firnline.memory import Memory
from firnline.server.auth import Reading, Ruling, Writing, caller_of, parts_of
from firnline.server.bodies import head_of, position_of, sent, tagged
from firnline.server.rest import responses, schemas
from firnline.server.rest.messages import AtSeq
from firnline.server.rest.openapi import FOUND, LOCATION, MISSING, problems, router
from firnline.server.rest.path_params import Conversation
from firnline.server.rest.requests import (
    ArchiveRequest,
    BranchRequest,
    ConversationRequest,
    Cursor,
    Limit,
    Name,
    VerifyRequest,
)
from firnline.strategies import strategy as strategy_named

routes = router("conversations")

_KEPT: Final = 1_000


@routes.get("/conversations", response_model=schemas.HeadPage, responses=FOUND)
async def list_conversations(
    request: Request,
    memory: Reading,
    project: Annotated[Name | None, Query(description="Only those of this project.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The conversations by name."""
    after = position_of(cursor, str) or ""
    found = await memory.conversations(project=project, after=after, limit=limit)
    following = found[-1].conversation if len(found) == limit else None
    return tagged(request, responses.page([responses.head(head) for head in found], following))


@routes.get(
    "/conversations/{conversation}",
    response_model=schemas.Conversation,
    responses={**FOUND, **MISSING},
)
async def get_conversation(
    request: Request, memory: Reading, conversation: Conversation
) -> Response:
    """All about a conversation: head, strategy, state, digests in force, pins."""
    head = await head_of(memory, conversation)
    return tagged(request, await _described(memory, head))


async def _described(memory: Memory, head: Head) -> dict[str, Any]:
    name = head.conversation
    force = await memory.in_force(name)
    pinned = await memory.pinned(name)
    return {
        **responses.head(head),
        "strategy": responses.strategy(await memory.strategy(name), head),
        "state": responses.plain(state_of(force)),
        "digests": len(await memory.digests(name)),
        "in_force": [digest.version for digest in force],
        "pinned": [entry.seq for entry in pinned],
    }


@routes.patch(
    "/conversations/{conversation}",
    response_model=schemas.Conversation,
    responses={**MISSING, **problems(409, 415)},
)
async def change_conversation(
    memory: Writing, conversation: Conversation, body: ConversationRequest
) -> Response:
    """Say what project it belongs to, how its contexts are planned, what to keep with it."""
    for _ in range(limits.ANSWER_TRIES):
        head = await head_of(memory, conversation)
        # If others describe it first, it is looked again whether it was erased.
        with suppress(ConflictError):
            return sent(await _described(memory, await _changed(memory, head, body)))
    raise ConflictError(f"{conversation}: others change it all the time")


async def _changed(memory: Memory, head: Head, body: ConversationRequest) -> Head:
    named, name = body.strategy, head.conversation
    chosen = strategy_named(named.name, named.parameters) if named else None
    if body.project is not None or body.metadata is not None:
        head = await memory.describe(name, project=body.project, metadata=body.metadata, known=head)
    return head if chosen is None else await memory.set_strategy(name, chosen, known=head)


@routes.delete("/conversations/{conversation}", response_model=schemas.Erased, responses=MISSING)
async def erase_conversation(
    request: Request, memory: Ruling, conversation: Conversation
) -> Response:
    """Destroy a conversation and all that is derived from it: no byte is left on disk.

    The answer is the certificate. Exports that this server still kept for the tenant are gone, too.
    """
    await head_of(memory, conversation)
    jobs, tenant = parts_of(request).jobs, caller_of(request).tenant
    await jobs.forget(tenant)
    erased = await memory.erase(conversation)
    await jobs.forget(tenant)  # what was begun in between may have read it
    return sent(responses.plain(erased))


@routes.post(
    "/conversations/{conversation}/verify",
    response_model=schemas.Verified,
    responses={**MISSING, **problems(415)},
)
async def verify_conversation(
    memory: Reading, conversation: Conversation, body: VerifyRequest | None = None
) -> Response:
    """Derive every hash again; `ok` is false if anything is not as it was acknowledged."""
    result = await memory.verify(conversation, anchor=body.anchor if body else None)
    listed = [str(problem) for problem in result.problems]
    return sent({**responses.plain(result), "ok": result.ok, "problems": listed})


@routes.post(
    "/conversations/{conversation}/archive",
    response_model=schemas.Archived,
    responses={**MISSING, **problems(415)},
)
async def archive_conversation(
    memory: Writing, conversation: Conversation, body: ArchiveRequest | None = None
) -> Response:
    """Compress old entries; reading, searching and verifying go on as before."""
    done = await memory.archive(conversation, keep=body.keep if body else _KEPT)
    return sent(responses.plain(done))


@routes.post(
    "/conversations/{conversation}/restore", response_model=schemas.Restored, responses=MISSING
)
async def restore_conversation(memory: Writing, conversation: Conversation) -> Response:
    """Take archived entries back."""
    await head_of(memory, conversation)
    return sent({"entries": await memory.restore(conversation)})


@routes.post(
    "/conversations/{conversation}/branch",
    status_code=201,
    response_model=schemas.Head,
    responses={
        200: {"description": "It was there already.", "model": schemas.Head, "headers": LOCATION},
        201: {"description": "Made.", "headers": LOCATION},
        **MISSING,
        **problems(409, 415),
    },
)
async def branch_conversation(
    memory: Writing, conversation: Conversation, body: BranchRequest
) -> Response:
    """A new conversation that begins with the entries up to `seq`, word for word.

    It is a copy: what becomes of one does not touch the other, not even erasing.
    """
    await _there(memory, conversation, body.seq)
    before = await memory.head(body.name)
    made = await memory.branch(conversation, body.seq, body.name)
    headers = {"location": conversation_path(body.name)}
    return sent(responses.head(made), 201 if before is None else 200, headers)


# -- pins -------------------------------------------------------------------------------------


@routes.get(
    "/conversations/{conversation}/pins",
    response_model=schemas.EntryPage,
    responses={**FOUND, **MISSING},
)
async def list_pins(request: Request, memory: Reading, conversation: Conversation) -> Response:
    """The entries that every context shows."""
    await head_of(memory, conversation)
    found = await memory.pinned(conversation)
    return tagged(request, responses.page(responses.entries(found), None))


@routes.put(
    "/conversations/{conversation}/pins/{seq}", response_model=schemas.Pinned, responses=MISSING
)
async def pin_message(memory: Writing, conversation: Conversation, seq: AtSeq) -> Response:
    """Show this entry in every context from now on, word for word."""
    await _there(memory, conversation, seq)
    await memory.pin(conversation, seq)
    return sent({"conversation": conversation, "seq": seq, "pinned": True})


@routes.delete(
    "/conversations/{conversation}/pins/{seq}", response_model=schemas.Pinned, responses=MISSING
)
async def unpin_message(memory: Writing, conversation: Conversation, seq: AtSeq) -> Response:
    """Treat the entry like any other again."""
    await _there(memory, conversation, seq)
    await memory.unpin(conversation, seq)
    return sent({"conversation": conversation, "seq": seq, "pinned": False})


async def _there(memory: Memory, conversation: str, seq: int) -> None:
    head = await head_of(memory, conversation)
    if seq > head.seq:
        raise NotFound(f"there is no entry {seq}")
