"""Spans by OpenTelemetry's SDK, sent to a collector by OTLP over HTTP.

Needs the extra ``firnline[otel]``; `firnline.server.span_info` defines the contents of spans.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from firnline import __version__
from firnline.protocols import Event
from firnline.server.span_info import ReportResponse, SpanInfo, describe_event, describe_note

_PATH: Final = "/v1/traces"
_NANOSECONDS: Final = 1_000_000
_PROPAGATOR: Final = TraceContextTextMapPropagator()


def open_spans(endpoint: str | None = None) -> Spans:
    """Spans that are sent in the background to `endpoint`, or to the one in the environment."""
    if endpoint is not None and not endpoint.endswith(_PATH):
        endpoint = endpoint.rstrip("/") + _PATH
    resource = {SERVICE_VERSION: __version__}
    if not os.environ.get("OTEL_SERVICE_NAME"):
        resource[SERVICE_NAME] = "firnline"
    provider = TracerProvider(resource=Resource.create(resource), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return Spans(provider)


class Spans:
    """A `Tracer` whose spans go to the provider's exporters. Changes no global state."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("firnline", __version__)

    def observe(self, event: Event) -> None:
        """See `Tracer.observe`; part of the current request, if there is one."""
        found = describe_event(event)
        if found is None:
            name, attributes = describe_note(event)
            trace.get_current_span().add_event(name, attributes)
            return
        ended = time.time_ns()
        took = int(float(event.values.get("milliseconds", 0)) * _NANOSECONDS)
        kind = SpanKind.CLIENT if found.remote else SpanKind.INTERNAL
        span = self._tracer.start_span(found.name, kind=kind, start_time=ended - took)
        _fill(span, found)
        span.end(ended)

    @contextmanager
    def request(self, headers: Mapping[str, str]) -> Iterator[ReportResponse]:
        """See `Tracer.request`."""
        parent = _PROPAGATOR.extract(headers)
        span = self._tracer.start_span("request", context=parent, kind=SpanKind.SERVER)
        token = context.attach(trace.set_span_in_context(span, parent))
        try:
            yield lambda found: _fill(span, found)
        finally:
            context.detach(token)
            span.end()

    def close(self) -> None:
        """See `Tracer.close`."""
        self._provider.shutdown()


def _fill(span: trace.Span, found: SpanInfo) -> None:
    span.update_name(found.name)
    span.set_attributes(dict(found.attributes))
    if found.error:
        span.set_status(Status(StatusCode.ERROR))
