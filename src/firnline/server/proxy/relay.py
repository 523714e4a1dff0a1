"""What the proxy passes on as it is: the list of models, embeddings and the like."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from firnline.errors import NotFound
from firnline.server.gate import Reading, caller_of, parts_of
from firnline.server.offline import NAME

router = APIRouter(include_in_schema=False)

_PASSED: Final = frozenset({"models", "embeddings", "moderations", "audio", "images"})


@router.api_route("/v1/{path:path}", methods=["GET", "POST"])
@router.api_route("/c/{conversation}/v1/{path:path}", methods=["GET", "POST"])
async def relay(request: Request, memory: Reading, path: str) -> Response:  # noqa: ARG001
    """The endpoint's own answer."""
    parts = parts_of(request)
    first = path.partition("/")[0]
    if first not in _PASSED:
        raise NotFound(f"/v1/{path} is not passed on; see docs/proxy.md for what is")
    theirs = parts.anthropic if "anthropic-version" in request.headers else None
    upstream = theirs or parts.upstream
    if upstream is None:
        if path == "models":
            return JSONResponse({"object": "list", "data": [_offline()]})
        raise NotFound("there is no endpoint behind this server: set FIRNLINE_UPSTREAM")
    reply = await upstream.send(
        request.method,
        f"/{path}",
        content=await request.body(),
        headers=request.headers,
        token=caller_of(request).token,
        query=request.url.query,
    )
    return StreamingResponse(reply.raw(), reply.status, reply.headers)


def _offline() -> dict[str, Any]:
    return {"id": NAME, "object": "model", "created": 0, "owned_by": "firnline"}
