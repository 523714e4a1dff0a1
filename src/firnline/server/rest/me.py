"""The caller, its scopes, and the server's limits."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from firnline import __version__
from firnline.log import limits
from firnline.server.auth import Reading, caller_of, parts_of
from firnline.server.bodies import etag_response
from firnline.server.keys import SCOPES
from firnline.server.rest import schemas
from firnline.server.rest.openapi import FOUND, router
from firnline.server.settings import Settings

routes = router("me")


@routes.get("/me", response_model=schemas.Me, responses=FOUND)
async def who_am_i(request: Request, _: Reading) -> Response:
    """The tenant and scopes of the key, and the server's limits."""
    caller, settings = caller_of(request), parts_of(request).settings
    allowed = {
        "body_bytes": settings.body_bytes_max,
        "import_bytes": settings.import_bytes_max,
        "message_bytes": limits.MESSAGE_BYTES_MAX,
        "messages_per_append": limits.BATCH_MESSAGES_MAX,
        "page": limits.PAGE_MAX,
        "requests_per_minute": settings.requests_per_minute,
        "tokens_per_minute": settings.tokens_per_minute,
    }
    scopes = [scope for scope in SCOPES if scope in caller.scopes]
    about = {"key": caller.id, "tenant": caller.tenant, "scopes": scopes, "limits": allowed}
    return etag_response(request, {**about, "server": _server_info(settings)})


def _server_info(settings: Settings) -> dict[str, Any]:
    """The server's version and configuration, without paths and URLs."""
    return {
        "version": __version__,
        "store": settings.store.partition(":")[0],
        "answers": settings.model,
        "proxy": settings.upstream is not None or settings.anthropic is not None,
        "upstream": settings.upstream is not None,
        "embedder": settings.embedder,
        "worker": settings.worker,
    }
