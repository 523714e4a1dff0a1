"""Run the server: checks before it listens, and an orderly shutdown."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Final
from urllib.parse import unquote, urlsplit

import uvicorn
from fastapi import FastAPI

from firnline.errors import InputError, StoreUnavailable
from firnline.log import limits
from firnline.log.message import utc_now
from firnline.memory import DEFAULT_TENANT
from firnline.server import connections, logs
from firnline.server.app import create_app
from firnline.server.keys import NO_TENANT, Keys
from firnline.server.limits import DRAIN_DELAY_SECONDS
from firnline.server.sample import CONVERSATION, add_samples
from firnline.server.settings import Settings
from firnline.server.state import Parts
from firnline.store import is_unusable_file, open_store, redact_url
from firnline.store.cards import TenantCards

_BACKLOG: Final = 2_048


async def serve(
    settings: Settings, *, sample: bool = False, tell: Callable[[str], None] | None = None
) -> None:
    """Serve until a signal arrives. `InputError` if it may not listen at this address.

    `sample` adds an example conversation. `tell` gets a text with the URLs.
    """
    logs.configure(settings.log_level, settings.log_json, secrets=_secrets(settings))
    await check(settings)
    connections.raise_descriptor_limit()
    listener = bind(settings)
    app = create_app(settings)
    parts: Parts = app.state.parts
    gc.freeze()  # permanent objects: scanning them for garbage would pause all requests
    server = _Server(server_config(app, settings), parts)
    # uvicorn raises the signal again at the end; a requested stop is not a failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    announcing = asyncio.create_task(_announce(parts, listener, sample=sample, tell=tell))
    try:
        await server.serve([listener])
    finally:
        announcing.cancel()
        await asyncio.wait([announcing])


def server_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves the application."""
    return uvicorn.Config(
        app,
        http=connections.protocol(settings),
        proxy_headers=False,  # `firnline.server.peer` believes only trusted proxies
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=settings.idle_seconds,  # type: ignore[arg-type]  # a float works
        timeout_graceful_shutdown=max(int(settings.drain_seconds), 1),
        backlog=limits.ACCEPTED_AT_ONCE,  # asyncio accepts as many before it looks at the first
        lifespan="on",
        ws="none",
    )


async def _announce(
    parts: Parts, listener: socket.socket, *, sample: bool, tell: Callable[[str], None] | None
) -> None:
    """When the server is ready, add the sample and report the URLs."""
    await parts.opened.wait()
    if sample:
        await add_samples(await parts.tenants.memory(DEFAULT_TENANT))
    if tell is not None:
        tell("\n".join(lines_for(parts.settings, address(listener), sample=sample)))


def lines_for(settings: Settings, url: str, *, sample: bool = False) -> list[str]:
    """The URLs of the server, as lines."""
    place = f"#/c/{CONVERSATION}" if sample else ""
    answers = settings.upstream or settings.model or "quotes from memory; no model is configured"
    return [
        f"Firnline serves {redact_url(settings.store)}",
        f"  Page       {url}/{place}",
        f"  API        {url}/api/v1      (its reference: {url}/docs)",
        f"  OpenAI     {url}/v1          (base_url of any OpenAI client; answers: {answers})",
        f"  Anthropic  {url}             (base_url of any Anthropic client)",
        f"  MCP        {url}/mcp",
        f"  Metrics    {url}/metrics",
        "  No API key is needed on this machine, unless a request comes through a proxy."
        if settings.open
        else "  Every request needs an API key.",
        "Press Ctrl-C to stop.",
    ]


def _secrets(settings: Settings) -> list[str]:
    """Secrets that must never be logged."""
    given = [settings.secret, settings.model_key, settings.upstream_key, settings.anthropic_key]
    given += [secret for bot in settings.telegram.values() for secret in (bot.token, bot.secret)]
    password = urlsplit(settings.store).password
    of_store = [password, unquote(password)] if password else []
    return [secret.get_secret_value() for secret in given if secret is not None] + of_store


async def check(settings: Settings) -> None:
    """Check the store, and that there is an API key if the server is reachable from outside.

    An unavailable store is retried later, unless keys have to be read from it now, or it is a file
    that cannot be created.
    """
    open_to_all = settings.open or settings.auth == "proxy"
    store = open_store(settings.store)
    try:
        await store.open()
        keys = [] if open_to_all else await Keys(TenantCards(store, NO_TENANT)).all()
    except StoreUnavailable:
        if open_to_all and not is_unusable_file(settings.store):
            return
        raise
    finally:
        await store.close()
    if open_to_all:
        return
    if not any(key.state(utc_now()) == "active" for key in keys):
        raise InputError(
            f"listening at {settings.host} requires an API key, and there is none: create one with"
            f" `firnline keys create --store {redact_url(settings.store)}`, or listen at 127.0.0.1"
        )


def bind(settings: Settings) -> socket.socket:
    """The socket to listen on; `InputError` if it cannot be bound."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With an explicit protocol, asyncio sets TCP_NODELAY and sends small responses at once.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        place = f"{settings.host}:{settings.port}"
        raise InputError(f"cannot listen at {place}: {error}; try --port") from error
    return listener


def address(listener: socket.socket) -> str:
    """The URL of the server."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """On the first SIGTERM, reports that it is not ready, and stops a moment later."""

    def __init__(self, config: uvicorn.Config, parts: Parts) -> None:
        super().__init__(config)
        self._parts = parts

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, with a longer queue of connections than are accepted at once."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_BACKLOG)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A second signal or Ctrl-C stops the server at once."""
        if sig != signal.SIGTERM or self._parts.draining or not self._parts.ready:
            super().handle_exit(sig, frame)
            return
        self._parts.draining = True
        pause = min(DRAIN_DELAY_SECONDS, self._parts.settings.drain_seconds / 10)
        loop = asyncio.get_running_loop()
        loop.call_later(pause, super().handle_exit, sig, frame)


def unknown_variables(settings: Settings) -> list[str]:
    """Environment variables that look like settings but are not."""
    known = {f"FIRNLINE_{name.upper()}" for name in type(settings).model_fields}
    given = [name for name in os.environ if name.startswith("FIRNLINE_")]
    return sorted(name for name in given if name.split("__")[0] not in known)
