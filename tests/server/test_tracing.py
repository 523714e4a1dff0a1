"""Spans: their content, their parents, and that they arrive at a collector."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from firnline import Memory, Message, open_model, strategies
from firnline.errors import InputError, ModelError
from firnline.protocols import Event
from firnline.server import span_info
from firnline.server.middleware import open_tracer
from firnline.server.spans import Spans
from firnline.testing import ModelServer

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


class Seen(InMemorySpanExporter):
    def __call__(self, name):
        (span,) = [span for span in self.get_finished_spans() if span.name == name]
        return span


@pytest.fixture
def seen():
    return Seen()


@pytest.fixture
def tracer(seen):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(seen))
    return Spans(provider)


async def test_what_a_memory_does_are_spans_by_the_conventions(url, tracer, seen):
    async with Memory.open(
        url, tenant="acme", strategy=strategies.window(), observer=tracer.observe
    ) as memory:
        await memory.append("c", [Message.user(f"crane {i} " * 40) for i in range(60)])
        hits = await memory.recall("c", "crane", limit=3)
        context = await memory.context("c", 3_000)
        await memory.erase("c")
    for name in ("create_memory", "search_memory", "upsert_memory", "delete_memory"):
        span = seen(name)
        assert span.kind == SpanKind.INTERNAL
        assert span.attributes["gen_ai.operation.name"] == name
        assert span.attributes["gen_ai.memory.store.id"] == "acme"
        assert span.attributes["gen_ai.conversation.id"] == "c"
        assert span.start_time <= span.end_time
        assert span.status.status_code == StatusCode.UNSET
    assert seen("create_memory").attributes["gen_ai.memory.record.count"] == 60
    assert seen("search_memory").attributes["gen_ai.memory.record.count"] == len(hits)
    assert seen("upsert_memory").attributes["gen_ai.memory.record.id"] == "1"
    assert seen("upsert_memory").attributes["firnline.made_by"] == "offline"
    built = seen("build_context").attributes
    assert built["firnline.digests"] == context.accounting.digests > 0
    assert built["firnline.tokens"] == context.tokens


def test_a_span_is_as_long_as_what_it_stands_for(tracer, seen):
    tracer.observe(Event("recall", "t", "", {"milliseconds": 1_500.5, "hits": 2}))
    span = seen("search_memory")
    assert span.end_time - span.start_time == 1_500_500_000
    assert "gen_ai.conversation.id" not in span.attributes


async def test_a_question_to_a_model_is_a_span_with_its_tokens(url, tracer, seen):
    async with ModelServer() as server:
        model = open_model("gpt-4o-mini", url=server.url, api_key="k", retries=0)
        async with Memory.open(url, model=model, observer=tracer.observe) as memory:
            turn = await memory.turn("c", "How much does it lift?")
            server.fail("401")
            with pytest.raises(ModelError):
                await memory.turn("c", "And now?")
    span = seen("chat gpt-4o-mini")
    assert span.kind == SpanKind.CLIENT
    said = dict(span.attributes)
    assert said["gen_ai.operation.name"] == "chat"
    assert said["gen_ai.provider.name"] == "openai"
    assert said["gen_ai.request.model"] == "gpt-4o-mini"
    assert said["gen_ai.usage.input_tokens"] == turn.prompt_tokens > 0
    assert said["gen_ai.usage.output_tokens"] == turn.completion_tokens > 0
    assert said["gen_ai.request.stream"] is False
    assert said["gen_ai.conversation.compacted"] is False
    failed = seen("chat")
    assert failed.attributes["error.type"] == "ModelRefused"
    assert failed.status.status_code == StatusCode.ERROR
    assert failed.status.description is None


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("openai/gpt-4o", "openai"),
        ("claude-sonnet-4", "anthropic"),
        ("grok-4", "x_ai"),
        ("some-model", "other"),
    ],
)
def test_the_provider_is_derived_from_the_models_name(model, provider):
    found = span_info.describe_event(Event("chat", "t", "c", {"model": model}))
    assert found.attributes["gen_ai.provider.name"] == provider


# -- requests -------------------------------------------------------------------------------------


def test_a_request_continues_the_clients_trace_and_contains_its_events(tracer, seen):
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=x"}
    with tracer.request(headers) as answered:
        tracer.observe(Event("recall", "t", "c", {"milliseconds": 1}))
        tracer.observe(Event("fallback", "t", "c", {"model": "large"}))
        answered(span_info.describe_response("/x/{id}", "GET", 200, "r-1", "acme", ""))
    request, inner = seen("GET /x/{id}"), seen("search_memory")
    assert request.kind == SpanKind.SERVER
    assert f"{request.context.trace_id:032x}" == TRACE
    assert f"{request.parent.span_id:016x}" == PARENT
    assert request.context.trace_state.get("vendor") == "x"
    assert inner.parent.span_id == request.context.span_id
    assert [note.name for note in request.events] == ["firnline.fallback"]
    assert dict(request.attributes) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": "/x/{id}",
        "firnline.request.id": "r-1",
        "gen_ai.memory.store.id": "acme",
    }
    tracer.observe(Event("recall", "t", "d", {"milliseconds": 1}))
    assert seen.get_finished_spans()[-1].parent is None, "the request is over"


@pytest.mark.parametrize(
    "header", ["", "00-x-y-01", f"00-{'0' * 32}-{PARENT}-01", f"ff-{TRACE}-{PARENT}-01", "é"]
)
def test_an_invalid_trace_is_ignored(tracer, seen, header):
    with tracer.request({"traceparent": header}) as answered:
        answered(span_info.describe_response(None, "GET", 404, "r-1", None, ""))
    assert seen("GET").parent is None


def test_an_answer_that_failed_is_an_error(tracer, seen):
    with pytest.raises(ValueError, match="x"), tracer.request({}) as answered:
        answered(span_info.describe_response("/x", "GET", 500, "r-1", None, "ValueError"))
        raise ValueError("x")
    span = seen("GET /x")
    assert span.status.status_code == StatusCode.ERROR
    assert span.attributes["error.type"] == "ValueError"
    assert span.events == ()
    assert span_info.describe_response("/x", "GET", 503, "", None, "").error == "503"
    assert span_info.describe_response("/x", "GET", 404, "", None, "").error == ""


def test_nothing_global_is_touched(tracer):
    before = trace.get_tracer_provider()
    with tracer.request({}):
        pass
    assert trace.get_tracer_provider() is before


# -- sending them ---------------------------------------------------------------------------------


class Collector:
    """A collector of OTLP over HTTP: decodes what it gets with the packages' own classes."""

    def __init__(self):
        self.requests = received = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                received.append((self.path, ExportTraceServiceRequest.FromString(body)))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def spans(self):
        return [
            (span, {a.key: a.value.string_value for a in resource.resource.attributes})
            for _, request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@pytest.mark.parametrize("how", ["setting", "environment"])
async def test_spans_arrive_at_a_real_collector(how, monkeypatch):
    with Collector() as collector:
        if how == "environment":
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
            tracer = open_tracer()
        else:
            tracer = open_tracer(collector.url)
        async with Memory.open("memory:", observer=tracer.observe) as memory:
            with tracer.request({"traceparent": f"00-{TRACE}-{PARENT}-01"}) as answered:
                await memory.append("c", Message.user("What the user said."))
                answered(span_info.describe_response("/x", "POST", 201, "r-1", "default", ""))
        tracer.close()
    assert {path for path, _ in collector.requests} == {"/v1/traces"}
    found = {span.name: (span, resource) for span, resource in collector.spans()}
    assert set(found) == {"create_memory", "POST /x"}
    span, resource = found["create_memory"]
    assert span.trace_id.hex() == TRACE
    assert span.parent_span_id == found["POST /x"][0].span_id
    assert resource["service.name"] == "firnline"
    attributes = {a.key: a.value for a in span.attributes}
    assert attributes["gen_ai.operation.name"].string_value == "create_memory"
    assert attributes["gen_ai.memory.record.count"].int_value == 1
    assert "What the user said" not in str(collector.requests)


async def test_a_collector_that_is_away_stops_nothing(monkeypatch, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with Collector() as collector:
        url = collector.url
    tracer = open_tracer(url)
    async with Memory.open("memory:", observer=tracer.observe) as memory:
        await memory.append("c", Message.user("Hello."))
        assert [entry.message.text for entry in await memory.read("c")] == ["Hello."]
    tracer.close()
    exporters = [record.name for record in caplog.records if "export" in record.message]
    assert exporters, "the export was tried, and its failure logged"
    assert all(name.startswith("opentelemetry.") for name in exporters)


@pytest.mark.parametrize("environ", [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, {"PATH": "/bin"}])
def test_without_an_address_there_is_nothing(environ):
    assert open_tracer(None, environ) is None


def test_the_standard_switch_turns_it_off():
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_SDK_DISABLED": "true"}
    assert open_tracer(None, environ) is None
    assert open_tracer("http://localhost:4318", environ) is None


def test_an_address_without_the_extra_is_a_clear_error(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "firnline.server.spans")
    assert open_tracer(None, {}) is None
    with pytest.raises(InputError, match=r'pip install "firnline\[otel\]"'):
        open_tracer("http://localhost:4318", {})


def test_spans_hold_names_and_numbers_alone(tracer, seen):
    tracer.observe(Event("append", "t", "c", {"milliseconds": 1, "entries": 2, "tokens": 9}))
    said = json.loads(seen("create_memory").to_json())["attributes"]
    assert said == {
        "gen_ai.operation.name": "create_memory",
        "gen_ai.memory.store.id": "t",
        "gen_ai.conversation.id": "c",
        "gen_ai.memory.record.count": 2,
        "firnline.entries": 2,
        "firnline.tokens": 9,
    }
