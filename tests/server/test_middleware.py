"""Every request gets an id and is measured, counted, logged and traced; streams stay streams."""

import asyncio
import logging

import pytest
from fastapi import APIRouter, FastAPI
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route

from firnline.protocols import Event
from firnline.server import logs
from firnline.server.metrics import Metrics
from firnline.server.middleware import RequestMiddleware, join_observers
from firnline.server.spans import Spans
from support.http_server import logged, served


class Watched:
    """A small application, and all that is known about its requests."""

    def __init__(self):
        self.metrics, self.exporter = Metrics(), InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = Spans(provider)
        self.go_on = asyncio.Event()
        self.app = RequestMiddleware(self._routes(), metrics=self.metrics, tracer=self.tracer)

    def _routes(self):
        app, router = FastAPI(openapi_url=None), APIRouter(prefix="/conversations")

        @router.get("/{name}/entries/{seq}")
        async def entry(name: str, seq: int):
            logging.getLogger("firnline.server").info("answering")
            return {"name": name, "id": logs.request_id()}

        @app.get("/stream")
        async def stream():
            async def pieces():
                yield b"one"
                await self.go_on.wait()
                yield b"two"

            return StreamingResponse(pieces())

        @app.get("/boom")
        async def boom():
            raise KeyError("what the user said")

        @app.get("/livez")
        async def livez():
            return {}

        async def inner(request):
            return PlainTextResponse(request.path_params["z"])

        mounted = Starlette(routes=[Route("/y/{z}", inner)])
        app.include_router(router, prefix="/api/v1")
        app.router.routes.append(Mount("/c/{owner}", mounted))
        return app

    def counted(self, name):
        return {
            tuple(sample.labels[k] for k in ("route", "method", "status") if k in sample.labels):
                sample.value
            for family in text_string_to_metric_families(self.metrics.render().decode())
            for sample in family.samples
            if sample.name == name
        }  # fmt: skip

    @property
    def spans(self):
        return {span.name: span for span in self.exporter.get_finished_spans()}


@pytest.fixture
async def watched():
    return Watched()


ENTRY = "/api/v1/conversations/{name}/entries/{seq}"


async def test_a_request_is_logged_by_its_route_and_never_by_its_path_or_query(watched):
    with logged() as log:
        async with served(watched.app) as client:
            answer = await client.get("/api/v1/conversations/alice/entries/5?q=the+secret+question")
            assert answer.json()["name"] == "alice"
            request_id = answer.headers["x-request-id"]
    assert watched.counted("firnline_http_requests_total") == {(ENTRY, "GET", "200"): 1}
    assert watched.counted("firnline_http_request_duration_seconds_count") == {(ENTRY, "GET"): 1}
    during, access = log.records("firnline")
    assert during["request_id"] == access["request_id"] == request_id == answer.json()["id"]
    assert access["logger"] == "firnline.access"
    assert (access["method"], access["route"], access["status"]) == ("GET", ENTRY, 200)
    assert access["ms"] >= 0
    assert watched.spans[f"GET {ENTRY}"].attributes["firnline.request.id"] == request_id
    everything = log.getvalue() + watched.metrics.render().decode() + str(watched.spans)
    for word in ("alice", "secret"):
        assert word not in everything


async def test_unknown_paths_share_a_label_and_mounts_use_their_first_part(watched):
    with logged():
        async with served(watched.app) as client:
            for number in range(3):
                assert (await client.get(f"/nothing/{number}")).status_code == 404
            assert (await client.get("/c/alice/y/bob")).text == "bob"
            assert (await client.get("/c/alice/none")).status_code == 404
            assert (await client.post("/boom")).status_code == 405
    assert watched.counted("firnline_http_requests_total") == {
        ("unmatched", "GET", "404"): 3,
        ("/c/*", "GET", "200"): 1,
        ("/c/*", "GET", "404"): 1,
        ("/boom", "POST", "405"): 1,
    }


@pytest.mark.parametrize("given", ["abc-1.2_X", "x" * 64])
async def test_a_sane_id_of_the_clients_is_kept(watched, given):
    with logged():
        async with served(watched.app) as client:
            answer = await client.get("/livez", headers={"X-Request-Id": given})
    assert answer.headers.get_list("x-request-id") == [given]


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\tb", '{"a":1}', "é", "<script>"])
async def test_any_other_id_is_not(watched, given):
    with logged():
        async with served(watched.app) as client:
            answer = await client.get("/livez", headers={"X-Request-Id": given.encode("latin-1")})
            again = await client.get("/livez")
    made = answer.headers["x-request-id"]
    assert len(made) == 32
    assert made != again.headers["x-request-id"]


async def test_a_stream_is_passed_on_piece_by_piece_and_is_over_at_its_end(watched):
    name = "firnline_http_requests_total"
    with logged():
        async with served(watched.app) as client, client.stream("GET", "/stream") as answer:
            pieces = answer.aiter_bytes()
            assert await anext(pieces) == b"one", "before the second one is even made"
            assert watched.counted(name) == {}
            assert watched.counted("firnline_http_requests_in_progress") == {(): 1}
            watched.go_on.set()
            assert [piece async for piece in pieces] == [b"two"]
            assert answer.headers["x-request-id"]
    assert watched.counted(name) == {("/stream", "GET", "200"): 1}
    assert watched.counted("firnline_http_requests_in_progress") == {(): 0}
    assert watched.counted("firnline_http_responses_cut_total") == {}


async def test_a_client_that_disconnects_is_logged_as_cut(watched):
    with logged() as log:
        async with served(watched.app) as client:
            async with client.stream("GET", "/stream") as answer:
                assert await anext(answer.aiter_bytes()) == b"one"
            while not watched.counted("firnline_http_requests_total"):
                await asyncio.sleep(0.01)
    assert watched.counted("firnline_http_responses_cut_total") == {("/stream",): 1}
    assert [record["cut"] for record in log.records("firnline.access")] == [True]


async def test_an_internal_error_is_counted_and_logged_without_its_text(watched):
    with logged() as log:
        async with served(watched.app) as client:
            assert (await client.get("/boom")).status_code == 500
    assert watched.counted("firnline_http_requests_total") == {("/boom", "GET", "500"): 1}
    (access,) = log.records("firnline.access")
    assert (access["status"], access["error"]) == (500, "KeyError")
    (mistake,) = [record for record in log.records() if "exception" in record]
    assert "in boom" in mistake["exception"]
    assert "what the user said" not in log.getvalue()
    span = watched.spans["GET /boom"]
    assert span.attributes["error.type"] == "KeyError"
    assert "what the user said" not in span.to_json()


async def test_probes_are_quiet_unless_they_fail(watched):
    with logged("info") as log:
        async with served(watched.app) as client:
            await client.get("/livez")
            await client.get("/boom")
    assert [record["route"] for record in log.records("firnline.access")] == ["/boom"]


async def test_the_clients_trace_continues(watched):
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with logged():
        async with served(watched.app) as client:
            await client.get("/livez", headers={"traceparent": f"00-{trace}-{parent}-01"})
    span = watched.spans["GET /livez"]
    assert f"{span.context.trace_id:032x}" == trace
    assert f"{span.parent.span_id:016x}" == parent


async def test_without_metrics_and_tracer_there_is_still_a_log_and_an_id(watched):
    bare = RequestMiddleware(watched._routes())
    with logged() as log:
        async with served(bare) as client:
            assert len((await client.get("/livez")).headers["x-request-id"]) == 32
    assert [record["route"] for record in log.records("firnline.access")] == ["/livez"]


async def test_an_application_cancelled_before_its_answer_is_no_error(watched):
    async def waits(scope, receive, send):
        scope["route"] = None
        await asyncio.Event().wait()

    app = RequestMiddleware(waits, metrics=watched.metrics)
    with logged():
        asking = asyncio.create_task(
            app({"type": "http", "method": "GET", "headers": []}, None, None)
        )
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert watched.counted("firnline_http_requests_total") == {("unmatched", "GET", "499"): 1}
    assert logs.current_request.get() is None


async def test_what_is_not_a_request_passes_untouched(watched):
    seen = []

    async def app(scope, receive, send):
        seen.append((scope, receive, send))

    given = ({"type": "lifespan"}, object(), object())
    await RequestMiddleware(app, metrics=watched.metrics)(*given)
    assert seen == [given]
    assert "state" not in given[0]


def test_both_observers_get_the_events(watched):
    assert join_observers(None, None) is None
    join_observers(watched.metrics, watched.tracer)(Event("recall", "t", "c", {"milliseconds": 1}))
    assert watched.counted("firnline_recalled_entries_total") == {(): 0}
    assert list(watched.spans) == ["search_memory"]
