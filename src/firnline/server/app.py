"""The application: its parts, routes, startup and shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Final, Literal

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, JSONResponse

from firnline import __version__
from firnline.embedding import LOCAL
from firnline.engine.options import MemoryOptions
from firnline.engine.recall import AUTO
from firnline.errors import FirnlineError, StoreUnavailable
from firnline.log.message import Message
from firnline.memory import Memory
from firnline.models import open_model
from firnline.protocols import ChatModel
from firnline.server import health, hooks, mcp_mount, page, problems, rest
from firnline.server.auth import AuthMiddleware
from firnline.server.drafts import Drafts
from firnline.server.keys import NO_TENANT, Keys
from firnline.server.limits import OPEN_RETRY_SECONDS
from firnline.server.metrics import Metrics
from firnline.server.middleware import RequestMiddleware, join_observers, open_tracer
from firnline.server.proxy import conversation_routes, response_routes
from firnline.server.proxy import routes as proxy
from firnline.server.proxy.upstream import Upstream
from firnline.server.rate_limit import RateLimiter
from firnline.server.reference import POLICY, render_reference
from firnline.server.settings import Settings
from firnline.server.state import Parts
from firnline.server.streams import Streams
from firnline.server.telegram import webhook
from firnline.server.telegram.settings import BotSettings, named
from firnline.server.telegram.worker import TelegramWorker
from firnline.server.tenants import Tenants
from firnline.store import open_store
from firnline.store.cards import TenantCards
from firnline.store.scratch import remove_stale
from firnline.strategies import strategy as strategy_named

logger: Final = logging.getLogger("firnline.server")

_DESCRIPTION: Final = """The conversation memory that can prove it lost nothing.

Every message is kept, every summary is reversible, every context fits its budget. Errors are
RFC 9457 problems; lists are paged with `cursor`; a write with an `Idempotency-Key` can be retried
safely.
"""

# FastAPI analyzes routes at the first request, which takes a tenth of a second: share them between
# all applications of a process. They are matched in order, so the most frequent ones are first.
_ROUTES: Final = APIRouter()
for _router in (
    proxy.router,
    response_routes.router,
    rest.router,
    conversation_routes.router,
    hooks.router,
    health.router,
    proxy.passthrough,
    page.router,
):
    _ROUTES.include_router(_router)


def create_app(settings: Settings) -> FastAPI:
    """Create the application; nothing is opened before it starts."""
    parts = create_parts(settings)
    requests = Middleware(
        RequestMiddleware, metrics=parts.metrics, tracer=parts.tracer, proxies=settings.proxies
    )
    app = FastAPI(
        title="Firnline",
        version=__version__,
        description=_DESCRIPTION,
        routes=[*_ROUTES.routes],
        lifespan=_lifespan,
        middleware=[requests, Middleware(AuthMiddleware, parts=parts)],
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
        # Its own spans and logs contain error messages; the middleware reports without them.
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
    mcp_mount.mount(app, parts)

    reference = cache(lambda: render_reference(app.openapi()))

    @app.get("/openapi.json", include_in_schema=False)
    async def describe_api() -> JSONResponse:
        # It takes a fifth of a second to create, once.
        return JSONResponse(await asyncio.to_thread(app.openapi))

    @app.get("/docs", include_in_schema=False)
    async def show_api() -> HTMLResponse:
        page = await asyncio.to_thread(reference)
        return HTMLResponse(page, headers={"content-security-policy": POLICY})

    return app


def create_parts(settings: Settings) -> Parts:
    """Create the parts of a server."""
    store = open_store(settings.store)
    secret = settings.secret.get_secret_value().encode() if settings.secret else None
    metrics, tracer = Metrics(), open_tracer(settings.otlp_endpoint)
    observe = join_observers(metrics, tracer) or metrics.observe
    keys = Keys(TenantCards(store, NO_TENANT), secret=secret)
    bots = named(settings.telegram)
    tenants = Tenants(
        store,
        {**_options(settings), "observer": observe},
        _model(settings),
        find_served=partial(_served, keys, bots),
        all_tenants=settings.worker_tenants == "all",
    )
    parts = Parts(
        settings=settings,
        metrics=metrics,
        tracer=tracer,
        observer=observe,
        tenants=tenants,
        keys=keys,
        requests=RateLimiter(settings.requests_per_minute),
        tokens=RateLimiter(settings.tokens_per_minute),
        streams=Streams(settings.streams_max),
        drafts=Drafts(tenants.root, tenants.memory),
        telegram_worker=TelegramWorker(bots, tenants.memory, model=tenants.model, observer=observe),
        upstream=_upstream(settings, metrics, "openai"),
        anthropic=_upstream(settings, metrics, "anthropic"),
    )
    metrics.watch(streams=lambda: parts.streams.live, drafts=lambda: parts.drafts.live)
    return parts


async def _served(keys: Keys, bots: Sequence[BotSettings]) -> set[str]:
    """The tenants to which this server gives access: those of its keys and bots."""
    return {bot.tenant for bot in bots} | await keys.tenants()


def _upstream(
    settings: Settings, metrics: Metrics, endpoint: Literal["openai", "anthropic"]
) -> Upstream | None:
    """The endpoint behind the proxy for the clients of this protocol, if it is set."""
    ours = endpoint == "openai"
    url = settings.upstream if ours else settings.anthropic
    key = settings.upstream_key if ours else settings.anthropic_key
    if url is None:
        return None
    return Upstream(
        url,
        key.get_secret_value() if key else None,
        key_header="authorization" if ours else "x-api-key",
        seconds=settings.upstream_seconds,
        begin_call=partial(metrics.upstream.begin, endpoint),
    )


def _options(settings: Settings) -> MemoryOptions:
    """The options of every tenant's memory."""
    options: MemoryOptions = {
        "embedder": None if settings.embedder == "none" else settings.embedder,
        "background": settings.background,
        "worker": settings.worker,
        "windows": settings.windows,
        "log_origin": settings.log_origin,
        "signer": settings.signing_key.get_secret_value() if settings.signing_key else None,
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
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    parts: Parts = app.state.parts
    await asyncio.to_thread(remove_stale)  # uploads that a killed server was receiving
    opening = asyncio.create_task(_open(parts))
    warming = asyncio.create_task(asyncio.to_thread(warm_up, parts.settings.embedder))
    try:
        # A store that is unavailable for a moment does not prevent the start.
        await asyncio.wait([opening], timeout=OPEN_RETRY_SECONDS)
        if opening.done():
            opening.result()
        async with mcp_mount.running(parts):
            yield
    finally:
        parts.ready = False
        opening.cancel()
        await asyncio.wait([opening, warming])
        await parts.streams.close(parts.settings.drain_seconds)
        await parts.drafts.stop()
        await parts.telegram_worker.stop()
        await parts.captures.close()
        await parts.jobs.close()
        for upstream in filter(None, [parts.upstream, parts.anthropic]):
            await upstream.close()
        await parts.tenants.close()
        if parts.tracer is not None:
            await asyncio.to_thread(parts.tracer.close)


_WARM: Final[set[str]] = set()


def warm_up(embedder: str) -> None:
    """Load what the first requests and the first recall need: vocabulary, patterns, local model.

    Once in a process. It takes half a second, and with a model up to two.
    """
    name = embedder if embedder in (AUTO, *LOCAL) else None
    if str(name) in _WARM:
        return
    _WARM.add(str(name))
    try:
        asyncio.run(_recall_once(name))
    except FirnlineError as error:  # requests will say so, too
        logger.warning("warm-up: %s", error)


async def _recall_once(embedder: str | None) -> None:
    said = "On 3 May 2026 at 9:30 we moved the database to https://example.com, port 6543."
    async with Memory.open("memory:", embedder=embedder, background=False) as memory:
        await memory.append("warm-up", [Message.user(said), Message.assistant("I like that.")])
        await memory.embed("warm-up")
        await memory.recall("warm-up", "When did we move the database last May?", tokens=100)


async def _open(parts: Parts) -> None:
    logged = ""
    while True:
        try:
            await parts.tenants.start()
            await parts.drafts.start()
        except StoreUnavailable as error:
            if str(error) != logged:  # retries may last for hours
                logger.warning("store: unavailable, retrying: %s", error)
            logged = str(error)
            await asyncio.sleep(OPEN_RETRY_SECONDS)
        else:
            if parts.settings.worker and parts.telegram_worker.bots:
                parts.telegram_worker.start()
            parts.ready = True
            parts.opened.set()
            return
