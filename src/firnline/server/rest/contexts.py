"""Contexts: what a model should see, what it takes, and why."""

from __future__ import annotations

from fastapi import Request, Response

from firnline.context.budget import Budget, as_budget
from firnline.errors import InputError
from firnline.log.tokens import DEFAULT_MODEL, is_known_model
from firnline.server.auth import Reading, charge, may_write, parts_of
from firnline.server.bodies import head_of, sent
from firnline.server.rest import requests, responses, schemas
from firnline.server.rest.openapi import MISSING, problems, router
from firnline.server.rest.path_params import Conversation
from firnline.server.rest.validation import BUDGET_HELP
from firnline.server.state import Parts

routes = router("contexts")


@routes.post(
    "/conversations/{conversation}/context",
    response_model=schemas.Context,
    responses={**MISSING, **problems(409, 415)},
)
async def build_context(
    request: Request, memory: Reading, conversation: Conversation, body: requests.ContextRequest
) -> Response:
    """The messages to send, never more tokens than the budget, with where each of them went.

    Digests that are due are made first, or owed if that is done in the background; a key that only
    reads looks without either. 422 if what must be in it does not fit: `floor` says what it takes,
    `blockers` what is in the way.
    """
    await head_of(memory, conversation)
    context = await memory.context(
        conversation,
        budget_of(parts_of(request), body.budget),
        body.question,
        system=body.system,
        tools=body.tools,
        task=body.task,
        fold=body.fold and may_write(request),
    )
    charge(request, context.tokens)
    return sent(responses.context(context, body.format))


def budget_of(parts: Parts, asked: requests.BudgetLike | None) -> Budget:
    """The budget that is meant; the window of the server's model if nothing is."""
    if isinstance(asked, requests.BudgetRequest):
        return Budget(**asked.model_dump())
    own = parts.tenants.model.name if parts.tenants.model else DEFAULT_MODEL
    if asked is None or asked == own:  # the server's own may be one that nobody knows
        return Budget.of(own)
    if isinstance(asked, str) and not asked.isdecimal() and not is_known_model(asked):
        raise InputError(f"budget: {asked!r} is no model that is known here; {BUDGET_HELP}")
    return as_budget(asked)
