"""Liveness, readiness and metrics; never calls a model."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from firnline.errors import FirnlineError, StoreUnavailable
from firnline.server.auth import Measuring, parts_of
from firnline.server.limits import PROBE_SECONDS
from firnline.server.metrics import CONTENT_TYPE

router = APIRouter(include_in_schema=False)


@router.get("/livez")
async def livez() -> dict[str, str]:
    """The process is alive."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(request: Request, response: Response) -> dict[str, Any]:
    """The store can be read, and the server is neither starting nor stopping."""
    parts = parts_of(request)
    store = "ok"
    if not parts.ready:
        store = "not open"
    else:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await parts.tenants.root.head("readyz")
        except TimeoutError:
            store = StoreUnavailable().code
        except FirnlineError as error:
            store = error.code
    ok = store == "ok" and not parts.draining
    response.status_code = 200 if ok else 503
    return {"status": "ok" if ok else "not ready", "store": store, "draining": parts.draining}


@router.get("/metrics")
async def metrics(request: Request, memory: Measuring) -> Response:  # noqa: ARG001 - of all tenants
    """Metrics in Prometheus' format."""
    parts = parts_of(request)
    await parts.metrics.refresh(parts.tenants.root)
    return Response(parts.metrics.render(), media_type=CONTENT_TYPE)
