"""The application: its parts, its routes, its beginning and its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import APIRouter, FastAPI
from pydantic import SecretStr
from starlette.middleware import Middleware

from firnline import __version__
from firnline.engine.options import MemoryOptions
from firnline.errors import StoreUnavailable
from firnline.models import open_model
from firnline.protocols import ChatModel
from firnline.server import health, mcp_mount, page, problems, rest
from firnline.server.auth import AuthMiddleware
from firnline.server.drafts import Drafts
from firnline.server.keys import Keys
from firnline.server.metrics import Metrics
from firnline.server.middleware import Observing, observer, open_tracer
from firnline.server.proxy import chat, messages, passthrough
from firnline.server.proxy.upstream import Upstream
from firnline.server.rate_limit import RateLimiter
from firnline.server.settings import Settings
from firnline.server.state import Parts
from firnline.server.streams import Streams
from firnline.server.telegram import webhook
from firnline.server.telegram.settings import named
from firnline.server.telegram.worker import TelegramWorker
from firnline.server.tenants import Tenants
from firnline.store import open_store
from firnline.strategies import strategy as strategy_named

logger: Final = logging.getLogger("firnline.server")

_AGAIN_SECONDS: Final = 1.0
_DESCRIPTION: Final = """The conversation memory that can prove it lost nothing.

Every message is kept, every summary is reversible, every context fits its budget. Errors are
problems of RFC 9457; lists are paged with `cursor`; a write with an `Idempotency-Key` may be
repeated safely.
"""

# FastAPI works out what a route takes at the first request, for a tenth of a second: once for all
# applications of a process. In the order of how often they are asked: they are tried one by one.
_ROUTES: Final = APIRouter()
for _each in (chat, messages, rest, health, passthrough, page):
    _ROUTES.include_router(_each.router)


def create_app(settings: Settings) -> FastAPI:
    """The server's application; nothing is opened before it starts."""
    parts = parts_for(settings)
    observing = Middleware(Observing, metrics=parts.metrics, tracer=parts.tracer)
    app = FastAPI(
        title="Firnline",
        version=__version__,
        description=_DESCRIPTION,
        routes=[*_ROUTES.routes],
        lifespan=_life,
        middleware=[observing, Middleware(AuthMiddleware, parts=parts)],
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
        # Its own spans and logs repeat what errors say; `observing` tells without a word of it.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.parts = parts
    problems.install(app)
    app.include_router(
        webhook.router(
            parts.telegram_worker.bots,
            parts.tenants.memory,
            observer=parts.observer,
            wake=parts.telegram_worker.wake,
        )
    )
    mcp_mount.offer(app, parts)
    return app


def parts_for(settings: Settings) -> Parts:
    """The parts of a server with these settings."""
    store = open_store(settings.store)
    secret = settings.secret.get_secret_value().encode() if settings.secret else None
    metrics, tracer = Metrics(), open_tracer(settings.otlp_endpoint)
    told = observer(metrics, tracer) or metrics.observe
    tenants = Tenants(store, {**_options(settings), "observer": told}, _model(settings))
    parts = Parts(
        settings=settings,
        metrics=metrics,
        tracer=tracer,
        observer=told,
        tenants=tenants,
        keys=Keys(store, secret=secret),
        requests=RateLimiter(settings.requests_per_minute),
        tokens=RateLimiter(settings.tokens_per_minute),
        streams=Streams(settings.streams_max),
        drafts=Drafts(store, tenants.memory),
        telegram_worker=TelegramWorker(
            store, named(settings.telegram), tenants.memory, model=tenants.model, observer=told
        ),
        upstream=_upstream(settings.upstream, settings.upstream_key),
        anthropic=_upstream(settings.anthropic, settings.anthropic_key, "x-api-key"),
    )
    metrics.watch(streams=lambda: parts.streams.live, drafts=lambda: parts.drafts.live)
    return parts


def _upstream(
    url: str | None, key: SecretStr | None, key_header: str = "authorization"
) -> Upstream | None:
    if url is None:
        return None
    return Upstream(url, key.get_secret_value() if key else None, key_header=key_header)


def _options(settings: Settings) -> MemoryOptions:
    """How the memories of all tenants are opened."""
    options: MemoryOptions = {
        "embedder": None if settings.embedder == "none" else settings.embedder,
        "background": settings.background,
        "worker": settings.worker,
    }
    if settings.strategy is not None:
        options["strategy"] = strategy_named(settings.strategy)
    return options


def _model(settings: Settings) -> ChatModel | None:
    if settings.model is None:
        return None
    key = settings.model_key.get_secret_value() if settings.model_key else None
    return open_model(settings.model, url=settings.model_url, api_key=key)


@asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    parts: Parts = app.state.parts
    opening = asyncio.create_task(_open(parts))
    try:
        # A store that is only away for a moment does not keep the server from starting.
        await asyncio.wait([opening], timeout=_AGAIN_SECONDS)
        if opening.done():
            opening.result()
        async with mcp_mount.answering(parts):
            yield
    finally:
        parts.ready = False
        opening.cancel()
        await asyncio.wait([opening])
        await parts.streams.close(parts.settings.drain_seconds)
        await parts.drafts.stop()
        await parts.telegram_worker.stop()
        await parts.jobs.close()
        for upstream in filter(None, [parts.upstream, parts.anthropic]):
            await upstream.close()
        await parts.tenants.close()
        if parts.tracer is not None:
            await asyncio.to_thread(parts.tracer.close)


async def _open(parts: Parts) -> None:
    told = ""
    while True:
        try:
            await parts.tenants.start()
            await parts.drafts.start()
        except StoreUnavailable as error:
            if str(error) != told:  # it may be tried for hours
                logger.warning("the store cannot be reached yet: %s", error)
            told = str(error)
            await asyncio.sleep(_AGAIN_SECONDS)
        else:
            if parts.settings.worker and parts.telegram_worker.bots:
                parts.telegram_worker.start()
            parts.ready = True
            parts.opened.set()
            return
