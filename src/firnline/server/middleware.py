"""Observes every request: an id, its duration, a log line, metrics and a span.

Pure ASGI, outermost: nothing is buffered, and a streamed response ends with its last byte. Paths
are reported as route templates and queries not at all, because they can contain names of
conversations, search terms and secrets.
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
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firnline.errors import InputError
from firnline.log.regex import regex
from firnline.protocols import Event, Observer
from firnline.server import span_info
from firnline.server.logs import RequestInfo, current_request, redact
from firnline.server.metrics import Metrics
from firnline.server.peer import Networks, client_address
from firnline.server.settings import is_loopback
from firnline.server.span_info import ReportResponse, Tracer

logger: Final = logging.getLogger("firnline.access")

HEADER: Final = "x-request-id"
UNMATCHED: Final = "unmatched"
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
DISABLED: Final = "OTEL_SDK_DISABLED"
_VALID_ID: Final = regex(r"[A-Za-z0-9._-]{1,64}")
_QUIET: Final = frozenset({"/livez", "/readyz", "/metrics"})
_GONE: Final = 499  # as in nginx: the client closed the request


class RequestMiddleware:
    """ASGI middleware around the whole application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics | None = None,
        tracer: Tracer | None = None,
        proxies: Networks = (),
    ) -> None:
        self._app, self._metrics, self._tracer = app, metrics, tracer
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, and report the result."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        response = _ResponseInfo(_id_of(headers))
        state = scope.setdefault("state", {})
        state["request_id"] = response.id
        span = self._tracer.request(headers) if self._tracer else nullcontext(_ignore)
        token = current_request.set(RequestInfo(response.id, state))
        if self._metrics:
            self._metrics.start_request()
        try:
            with span as report:
                try:
                    await self._app(scope, receive, response.wrap_send(send))
                except BaseException as error:
                    response.fail(error)
                    raise
                finally:
                    self._report(scope, response, report)
        finally:
            current_request.reset(token)

    def _report(self, scope: Scope, response: _ResponseInfo, report: ReportResponse) -> None:
        """Report the response to the span, the metrics and the log."""
        method, route, current = scope["method"], template(scope), current_request.get()
        about = (response.id, current.tenant if current else None, response.error)
        report(span_info.describe_response(route, method, response.status, *about))
        seconds = time.perf_counter() - response.started
        place = route or UNMATCHED
        if self._metrics:
            self._metrics.end_request(place, method, response.status, seconds, cut=response.cut)
        ms = round(seconds * 1e3, 1)
        fields = {"method": method, "route": place, "status": response.status, "ms": ms}
        client = client_address(scope, self._proxies)
        if client and not is_loopback(client):
            fields["client"] = client
        if response.cut:
            fields["cut"] = True
        if response.error:
            fields["error"] = response.error
        quiet = place in _QUIET and response.status < HTTPStatus.INTERNAL_SERVER_ERROR
        level = logging.DEBUG if quiet else logging.INFO
        line = "%s %s %d %s ms"
        logger.log(level, line, method, place, response.status, ms, extra={"fields": fields})


@dataclass(slots=True)
class _ResponseInfo:
    """What has been sent so far."""

    id: str
    started: float = field(default_factory=time.perf_counter)
    status: int = (
        HTTPStatus.INTERNAL_SERVER_ERROR
    )  # what the server sends if the application sends nothing
    error: str = ""
    begun: bool = False
    whole: bool = False

    @property
    def cut(self) -> bool:
        """Whether the response started but was not completed."""
        return self.begun and not self.whole

    def fail(self, error: BaseException) -> None:
        """The application raised an error."""
        self.error = type(error).__name__
        if isinstance(error, asyncio.CancelledError) and not self.begun:
            self.status = _GONE

    def wrap_send(self, send: Send) -> Send:
        """`send` with the request id in the headers; each piece is forwarded at once."""

        async def forward(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.begun, self.status = True, message["status"]
                headers = MutableHeaders(scope=message)
                headers[HEADER] = self.id
                headers["x-content-type-options"] = "nosniff"  # JSON is never a page
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                self.whole = True

        return forward


def _id_of(headers: Headers) -> str:
    """The client's request id if it is valid; otherwise a new one."""
    given = headers.get(HEADER, "")
    valid = _VALID_ID.fullmatch(given) and redact(given) == given  # not an API key sent by mistake
    return given if valid else secrets.token_hex(16)


def _ignore(_: span_info.SpanInfo) -> None:
    """Used without a tracer."""


def template(scope: Scope) -> str | None:
    """The template of the matched route; None if no route matched."""
    included = scope.get("fastapi", {}).get("effective_route_context")
    route = scope.get("route")
    found = getattr(included, "path_format", None) or getattr(route, "path_format", None)
    own, root = scope.get("app_root_path", scope.get("root_path", "")), scope.get("root_path", "")
    mounted = root.removeprefix(own)
    if mounted:
        # A mounted application has its own routes; its path may contain a name.
        return f"/{mounted.split('/')[1]}/*"
    return str(found) if found else None


def open_tracer(
    endpoint: str | None = None, environ: Mapping[str, str] = os.environ
) -> Tracer | None:
    """A tracer that sends spans to `endpoint`, or to the one in the environment.

    `endpoint` is the URL of an OTLP/HTTP collector, for example ``http://localhost:4318``. None if
    no endpoint is set.
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


def join_observers(metrics: Metrics | None, tracer: Tracer | None) -> Observer | None:
    """An observer for memories that passes events to both."""
    observers: list[Callable[[Event], None]] = []
    if metrics is not None:
        observers.append(metrics.observe)
    if tracer is not None:
        observers.append(tracer.observe)
    if not observers:
        return None

    def observe(event: Event) -> None:
        for observer in observers:
            observer(event)

    return observe
