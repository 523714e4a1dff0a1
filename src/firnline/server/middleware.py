"""Every request: an id, the time it took, a line in the log, a count and a span.

Pure ASGI, outermost: nothing is buffered, and a streamed answer is over when its last byte is sent.
Paths are told by their route's template and queries not at all, for names of conversations, words
that are searched for and secrets can be in them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firnline.errors import InputError
from firnline.log.regex import regex
from firnline.protocols import Event, Observer
from firnline.server import tracing
from firnline.server.logs import Asked, asked, redacted
from firnline.server.metrics import Metrics
from firnline.server.tracing import Answered, Tracer

logger: Final = logging.getLogger("firnline.access")

HEADER: Final = "x-request-id"
UNMATCHED: Final = "unmatched"
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
DISABLED: Final = "OTEL_SDK_DISABLED"
_SANE_ID: Final = regex(r"[A-Za-z0-9._-]{1,64}")
_QUIET: Final = frozenset({"/livez", "/readyz", "/metrics"})
_FAILED: Final = 500
_GONE: Final = 499  # nginx's: the client did not wait for an answer


class Observing:
    """ASGI middleware around the whole application."""

    def __init__(
        self, app: ASGIApp, *, metrics: Metrics | None = None, tracer: Tracer | None = None
    ) -> None:
        self._app, self._metrics, self._tracer = app, metrics, tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, and tell how it went."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        answer = _Answer(_id_of(headers))
        state = scope.setdefault("state", {})
        state["request_id"] = answer.id
        span = self._tracer.request(headers) if self._tracer else nullcontext(_ignored)
        token = asked.set(Asked(answer.id, state))
        if self._metrics:
            self._metrics.begun()
        try:
            with span as told:
                try:
                    await self._app(scope, receive, answer.sending(send))
                except BaseException as error:
                    answer.failed(error)
                    raise
                finally:
                    self._tell(scope, answer, told)
        finally:
            asked.reset(token)

    def _tell(self, scope: Scope, answer: _Answer, told: Answered) -> None:
        """Say how the request was answered: in its span, in the metrics, in the log."""
        method, route, current = scope["method"], template(scope), asked.get()
        about = (answer.id, current.tenant if current else None, answer.error)
        told(tracing.answered(route, method, answer.status, *about))
        seconds = time.perf_counter() - answer.started
        place = route or UNMATCHED
        if self._metrics:
            self._metrics.ended(place, method, answer.status, seconds, cut=answer.cut)
        ms = round(seconds * 1e3, 1)
        fields = {"method": method, "route": place, "status": answer.status, "ms": ms}
        if answer.cut:
            fields["cut"] = True
        if answer.error:
            fields["error"] = answer.error
        quiet = place in _QUIET and answer.status < _FAILED
        level = logging.DEBUG if quiet else logging.INFO
        line = "%s %s %d %s ms"
        logger.log(level, line, method, place, answer.status, ms, extra={"fields": fields})


@dataclass(slots=True)
class _Answer:
    """What has been answered so far."""

    id: str
    started: float = field(default_factory=time.perf_counter)
    status: int = _FAILED  # what a server answers for an application that does not
    error: str = ""
    begun: bool = False
    whole: bool = False

    @property
    def cut(self) -> bool:
        """Whether the answer began and did not come to its end."""
        return self.begun and not self.whole

    def failed(self, error: BaseException) -> None:
        """The application gave up."""
        self.error = type(error).__name__
        if isinstance(error, asyncio.CancelledError) and not self.begun:
            self.status = _GONE

    def sending(self, send: Send) -> Send:
        """`send`, with the request's id in the answer; each piece is passed on at once."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.begun, self.status = True, message["status"]
                headers = MutableHeaders(scope=message)
                headers[HEADER] = self.id
                headers["x-content-type-options"] = "nosniff"  # JSON is never a page
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                self.whole = True

        return sent


def _id_of(headers: Headers) -> str:
    """The client's own id for its request if it is a sane one; else a new one."""
    given = headers.get(HEADER, "")
    sane = _SANE_ID.fullmatch(given) and redacted(given) == given  # some send their key by mistake
    return given if sane else secrets.token_hex(16)


def _ignored(_: tracing.Described) -> None:
    """Nobody makes spans."""


def template(scope: Scope) -> str | None:
    """The template of the route that a request was for; None if there is no such route."""
    included = scope.get("fastapi", {}).get("effective_route_context")
    route = scope.get("route")
    found = getattr(included, "path_format", None) or getattr(route, "path_format", None)
    own, root = scope.get("app_root_path", scope.get("root_path", "")), scope.get("root_path", "")
    mounted = root.removeprefix(own)
    if mounted:
        # What is mounted has routes of its own, and its place can have a name in it.
        return f"/{mounted.split('/')[1]}/*"
    return str(found) if found else None


def open_tracer(
    endpoint: str | None = None, environ: Mapping[str, str] = os.environ
) -> Tracer | None:
    """What makes spans and sends them to `endpoint`, or to where the environment says.

    `endpoint` is the collector's address for OTLP over HTTP, for example
    ``http://localhost:4318``. None if there is nothing to send them to.
    """
    named = endpoint or next((environ[name] for name in ENDPOINTS if environ.get(name)), None)
    if named is None or environ.get(DISABLED, "").lower() == "true":
        return None
    try:
        from firnline.server.spans import open_spans  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        text = f'spans for {named} need an extra: pip install "firnline[otel]"'
        raise InputError(text) from error
    return open_spans(endpoint)


def observer(metrics: Metrics | None, tracer: Tracer | None) -> Observer | None:
    """What memories are to be opened with, so that both are told of their events."""
    told: list[Callable[[Event], None]] = []
    if metrics is not None:
        told.append(metrics.observe)
    if tracer is not None:
        told.append(tracer.observe)
    if not told:
        return None

    def observe(event: Event) -> None:
        for tell in told:
            tell(event)

    return observe
