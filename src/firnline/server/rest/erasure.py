"""Erasing: a conversation, some of its messages, or old messages of all conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Query, Request, Response

from firnline.log.message import Role
from firnline.server.auth import Administering, Reading, caller_of, parts_of
from firnline.server.bodies import etag_response, json_response, require_head
from firnline.server.rest import responses, schemas
from firnline.server.rest.messages import AtSeq
from firnline.server.rest.openapi import CONVERSATION, FOUND_OR_MISSING, MISSING, problems, router
from firnline.server.rest.path_params import Conversation
from firnline.server.rest.requests import Name, Seq, Time

routes = router("conversations")

WithBranches = Annotated[
    bool, Query(description="Whether copies in other conversations are erased, too.")
]
OfRole = Annotated[Role | None, Query(description="Only messages of this role.")]


@asynccontextmanager
async def without_exports(request: Request) -> AsyncIterator[None]:
    """Delete the tenant's finished exports, which may hold copies of what is erased."""
    jobs, tenant = parts_of(request).jobs, caller_of(request).tenant
    await jobs.forget(tenant)
    yield
    await jobs.forget(tenant)  # exports started in between


@routes.delete(CONVERSATION, response_model=schemas.Erased, responses=MISSING)
async def erase_conversation(
    request: Request,
    memory: Administering,
    conversation: Conversation,
    branches: WithBranches = False,
) -> Response:
    """Erase a conversation and everything derived from it; no byte is left on disk.

    Returns the certificate, which names the conversations that still hold copies of its messages.
    Finished exports of the tenant are deleted too.
    """
    await require_head(memory, conversation)
    async with without_exports(request):
        erased = await memory.erase(conversation, branches=branches)
    return json_response(responses.plain(erased))


@routes.get(f"{CONVERSATION}/branches", response_model=schemas.Branches, responses=FOUND_OR_MISSING)
async def list_branches(request: Request, memory: Reading, conversation: Conversation) -> Response:
    """The conversations that hold copies of its messages: its branches and their source."""
    await require_head(memory, conversation)
    return etag_response(request, {"data": await memory.branches(conversation)})


@routes.delete(f"{CONVERSATION}/messages/{{seq}}", response_model=schemas.Erased, responses=MISSING)
async def erase_message(
    request: Request,
    memory: Administering,
    conversation: Conversation,
    seq: AtSeq,
    branches: WithBranches = False,
) -> Response:
    """Erase one message and everything derived from it; its number stays, empty.

    A call of a tool and its results are erased together.
    """
    await require_head(memory, conversation)
    async with without_exports(request):
        erased = await memory.erase_messages(conversation, seq, seq, branches=branches)
    return json_response(responses.plain(erased))


@routes.delete(f"{CONVERSATION}/messages", response_model=schemas.Erased, responses=MISSING)
async def erase_messages(  # noqa: PLR0913, PLR0917 - each is a parameter of the query
    request: Request,
    memory: Administering,
    conversation: Conversation,
    first_seq: Annotated[Seq | None, Query(description="The first message.")] = None,
    last_seq: Annotated[Seq | None, Query(description="The last; default: the first.")] = None,
    role: OfRole = None,
    since: Annotated[Time | None, Query(description="Only messages sent from then on.")] = None,
    until: Annotated[Time | None, Query(description="Only messages sent before then.")] = None,
    branches: WithBranches = False,
) -> Response:
    """Erase the messages of a span, of a role or of a time, and everything derived from them."""
    await require_head(memory, conversation)
    async with without_exports(request):
        erased = await memory.erase_messages(
            conversation,
            first_seq,
            last_seq,
            role=role,
            since=since,
            until=until,
            branches=branches,
        )
    return json_response(responses.plain(erased))


@routes.delete("/old-messages", response_model=schemas.ErasedList, responses=problems())
async def erase_old_messages(
    request: Request,
    memory: Administering,
    until: Annotated[Time, Query(description="Messages sent before then are erased.")],
    project: Annotated[Name | None, Query(description="Only of this project.")] = None,
    role: OfRole = None,
    branches: WithBranches = False,
) -> Response:
    """Erase old messages of all conversations; a certificate for each that had some."""
    async with without_exports(request):
        erased = await memory.erase_before(until, project=project, role=role, branches=branches)
    return json_response({"data": responses.plain(erased)})
