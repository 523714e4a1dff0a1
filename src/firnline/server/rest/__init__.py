"""The REST API: everything that `Memory` does, under ``/api/v1``."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Security
from fastapi.security import HTTPBearer

from firnline.client.paths import PREFIX
from firnline.server.rest import (
    contexts,
    conversations,
    costs,
    digests,
    erasure,
    me,
    messages,
    past_turns,
    people,
    projects,
    search,
    stats,
    topics,
    transfer,
    turns,
)
from firnline.server.rest.openapi import ALWAYS, operation_id

_BEARER: Final = HTTPBearer(
    auto_error=False,
    scheme_name="key",
    description="An API key from `firnline keys create`. Local requests need none.",
)

# The middleware has checked the key already; this documents it.
router = APIRouter(
    prefix=PREFIX,
    dependencies=[Security(_BEARER)],
    responses=ALWAYS,
    generate_unique_id_function=operation_id,
)
# Routes are matched in this order: the most frequent ones first.
for _routes in (
    messages.routes,
    turns.routes,
    contexts.routes,
    conversations.routes,
    erasure.routes,
    me.routes,
    projects.routes,
    people.routes,
    past_turns.routes,
    search.routes,
    topics.routes,
    digests.routes,
    stats.routes,
    costs.routes,
    transfer.routes,
    transfer.raw_routes,
):
    router.include_router(_routes)
