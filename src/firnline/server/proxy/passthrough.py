"""What the proxy passes on as it is: the list of models, embeddings and the like."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from firnline.errors import NotFound
from firnline.server.auth import Reading, Writing, caller_of, parts_of
from firnline.server.offline_model import NAME

router = APIRouter(include_in_schema=False)

_PASSED: Final = frozenset({"models", "embeddings", "moderations", "audio", "images"})
_ELSEWHERE: Final = frozenset({"", ".", ".."})


@router.get("/v1/{path:path}")
@router.get("/c/{conversation}/v1/{path:path}")
async def looked_up(request: Request, memory: Reading, path: str) -> Response:  # noqa: ARG001
    """The endpoint's own answer."""
    return await _relay(request, path)


@router.post("/v1/{path:path}")
@router.post("/c/{conversation}/v1/{path:path}")
async def asked(request: Request, memory: Writing, path: str) -> Response:  # noqa: ARG001
    """The endpoint's own answer, which may cost something: whoever only reads may not ask."""
    return await _relay(request, path)


async def _relay(request: Request, path: str) -> Response:
    parts = parts_of(request)
    segments = path.split("/")
    # It goes there with the server's own key, so no path may lead to another place.
    if segments[0] not in _PASSED or not _ELSEWHERE.isdisjoint(segments):
        raise NotFound(f"/v1/{path} is not passed on; see docs/proxy.md for what is")
    theirs = parts.anthropic if "anthropic-version" in request.headers else None
    upstream = theirs or parts.upstream
    if upstream is None:
        if path == "models":
            return JSONResponse({"object": "list", "data": [_offline()]})
        raise NotFound("there is no endpoint behind this server: set FIRNLINE_UPSTREAM")
    reply = await upstream.send(
        request.method,
        "".join(f"/{quote(segment, safe='')}" for segment in segments),
        content=await request.body(),
        headers=request.headers,
        token=caller_of(request).token,
        query=request.url.query,
    )
    return StreamingResponse(reply.raw(), reply.status, reply.headers)


def _offline() -> dict[str, Any]:
    return {"id": NAME, "object": "model", "created": 0, "owned_by": "firnline"}
