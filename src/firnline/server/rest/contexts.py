"""Contexts: the messages to send to a model, and why."""

from __future__ import annotations

from functools import partial

from fastapi import Request, Response

from firnline.context.budget import Budget, as_budget, window_of
from firnline.errors import InputError
from firnline.log.threads import run_by_size
from firnline.log.tokens import DEFAULT_MODEL
from firnline.memory import Memory
from firnline.server.auth import Reading, charge, may_write, parts_of, person_of
from firnline.server.bodies import json_response, require_head
from firnline.server.rest import requests, responses, schemas
from firnline.server.rest.openapi import CONVERSATION, problems, router
from firnline.server.rest.path_params import Conversation
from firnline.server.rest.validation import BUDGET_HELP
from firnline.server.state import Parts

routes = router("contexts", CONVERSATION)


@routes.post("/context", response_model=schemas.Context, responses=problems(404, 409, 415))
async def build_context(
    request: Request, memory: Reading, conversation: Conversation, body: requests.ContextRequest
) -> Response:
    """Build the messages to send, within the token budget, with an account of all tokens.

    Digests that are due are created first, or scheduled if they are created in the background; not
    with a read-only key. 422 if required parts do not fit: `floor` is what they need, `blockers`
    lists them.
    """
    person = person_of(request, body.person)
    if person is None:
        await require_head(memory, conversation)
    context = await memory.context(
        conversation,
        budget_of(parts_of(request), memory, body.budget),
        body.question,
        system=body.system,
        tools=body.tools,
        task=body.task,
        fold=body.fold and may_write(request),
        person=person,
    )
    charge(request, context.tokens)
    write = partial(responses.context, context, body.format)
    return json_response(await run_by_size(context.tokens, write))


def budget_of(parts: Parts, memory: Memory, given: requests.BudgetLike | None) -> Budget:
    """The requested budget; default: the window of the server's model."""
    if isinstance(given, requests.BudgetRequest):
        return Budget(**given.model_dump())
    own = parts.tenants.model.name if parts.tenants.model else DEFAULT_MODEL
    if given is None or given == own:  # the server's model may be unknown
        return memory.budget_of(own)
    windows = parts.settings.windows
    if isinstance(given, str) and not given.isdecimal() and window_of(given, windows) is None:
        text = f"budget: unknown model {given!r}; name its window in FIRNLINE_WINDOWS"
        raise InputError(f"{text}, or pass another budget: {BUDGET_HELP}")
    return as_budget(given, windows)
