"""The server that `service` measures, as a separate process, with a route that does nothing."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import uvicorn
from fastapi import APIRouter

from firnline.server import serve
from firnline.server.app import create_app
from firnline.server.auth import Writing
from firnline.server.bodies import StrictRoute
from firnline.server.settings import load

router = APIRouter(route_class=StrictRoute)


@router.post("/api/v1/nothing/{conversation}/messages", status_code=201)
async def nothing(memory: Writing, conversation: str, ask: dict[str, Any]) -> dict[str, Any]:
    """What a request costs before any work: authentication, body, answer."""
    return {"conversation": conversation, "tenant": memory.tenant, "fields": len(ask)}


def main(store: str, upstream: str) -> None:
    settings = load(
        store=store, port=0, embedder="none", upstream=upstream, requests_per_minute=0,
        log_level="error",
    )  # fmt: skip
    app = create_app(settings)
    app.include_router(router)
    listener = serve.bind(settings)
    print(serve.address(listener), flush=True)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on")
    asyncio.run(uvicorn.Server(config).serve([listener]))


if __name__ == "__main__":
    main(*sys.argv[1:])
