"""Canaries: no text of users and no secret is in a log line, a metric or a span.

At DEBUG, over real HTTP, through every verb, with every kind of failure that knows a message: an
endpoint, a tool, an embedder, a summariser and a retriever that repeat it in their errors.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest
from fastapi import FastAPI, Request
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from firnline import Memory, Message, Tool, open_model, strategies
from firnline.server import problems
from firnline.server.metrics import Metrics
from firnline.server.middleware import RequestMiddleware, join_observers
from firnline.server.spans import Spans
from firnline.testing import ModelServer, call_tool
from support.http_server import logged, served
from support.live_server import running

SAID = "CANARYpelican"
KEY = "fl_0123456789abcdef_" + "ca9a47" * 10
UPSTREAM = "sk-CANARYupstream000"
BOT = "987654321:CANARYbotCANARYbotCANARYbotCANARYb"
SECRETS = (KEY, "ca9a47", UPSTREAM, BOT)
LONG = f"{SAID} " * 400


class Echo:
    """An endpoint that fails, and repeats the request with its key in what it says."""

    def __init__(self, status):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                said = f"{self.headers['authorization']} asked: {body}"
                error = {"message": said, "code": SAID, "type": SAID}
                answer = json.dumps({"error": error}).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.01,)).start()
        return open_model("test-model", url=self.url, api_key=UPSTREAM, retries=0)

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class Repeating:
    """An embedder that fails with the words it was given."""

    name = "repeating"

    async def embed(self, texts):
        raise RuntimeError(f"cannot embed {texts} with {UPSTREAM}")

    async def close(self):
        pass


async def repeating(brief):
    raise ValueError(f"cannot read {brief.entries} {BOT}")


def look(what: str):
    """Look something up."""
    raise OSError(5, f"no {SAID} here", what)


LOOK = Tool("look", look, parameters={"type": "object", "properties": {"what": {"type": "string"}}})


async def retrieve(question, *, reserved_tokens):
    raise LookupError(f"nothing for {question} {KEY}")


def answer(request):
    """A model that looks once, and then answers."""
    asked = request["messages"][-1]["role"] == "user" and request.get("tools")
    return call_tool("look", {"what": SAID}) if asked else f"I have not seen the {SAID}."


def application(memory):
    """The verbs of a memory as routes."""
    app = FastAPI(openapi_url=None)
    problems.install(app)

    @app.post("/{name}/append")
    async def append(name: str, request: Request):
        body = await request.json()
        return len(await memory.append(name, body, idempotency_key=body.get("key")))

    @app.get("/{name}/context")
    async def context(name: str, tokens: int, q: str | None = None, fail: bool = False):
        retriever = retrieve if fail else None
        return (await memory.context(name, tokens, q, retriever=retriever)).tokens

    @app.get("/{name}/recall")
    async def recall(name: str, q: str):
        return len(await memory.recall(name, q))

    @app.post("/{name}/turn")
    async def turn(name: str, request: Request):
        said = (await request.body()).decode()
        return (await memory.turn(name, said, tools=[LOOK], apology="Sorry.")).calls

    @app.delete("/{name}")
    async def erase(name: str):
        return (await memory.erase(name)).entries

    return app


@pytest.fixture
def watching():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Metrics(), Spans(provider), exporter


async def everything(client):
    """Every verb, well and badly; returns the statuses."""
    client.headers |= {"authorization": f"Bearer {KEY}", "x-api-key": UPSTREAM}
    asked = []

    async def ask(method, path, **options):
        answer = await client.request(method, path, **options)
        asked.append((method, path.split("?")[0], answer.status_code))

    for number in range(30):
        said = {"role": "user", "content": f"{number}: {SAID} flies to {BOT}. " * 8}
        await ask("POST", "/c/append", json={**said, "key": f"k{number}"})
    await ask("POST", "/c/append", json={"role": "user", "content": SAID, "key": "k1"})
    await ask("POST", "/c/append", json={"role": "nobody", "content": SAID})
    await ask("POST", "/c/append", content=SAID.encode())
    await ask("POST", f"/{KEY}/append", json={"role": "user", "content": SAID})
    await ask("GET", f"/{BOT}/context?tokens=1000", headers={"x-request-id": UPSTREAM})
    await ask("GET", f"/c/context?tokens=1000&q={SAID}&token={KEY}")
    await ask("GET", f"/c/context?tokens=5&q={SAID}")
    await ask("GET", f"/c/context?tokens=900&q={SAID}&fail=1")
    await ask("GET", f"/c/recall?q={SAID}")
    await ask("POST", "/c/turn", content=f"Where is the {SAID}?")
    await ask("POST", "/c/turn", content=LONG)
    await ask("GET", f"/{SAID}/nothing?q={SAID}")
    await ask("DELETE", "/unknown")
    await ask("DELETE", "/c")
    return {status for _, _, status in asked}


def found(log, metrics, exporter):
    spans = "".join(span.to_json() for span in exporter.get_finished_spans())
    places = {"log": log.getvalue(), "metrics": metrics.render().decode(), "spans": spans}
    assert all(places.values())
    canaries = (SAID, *SECRETS)
    return [(place, word) for place, text in places.items() for word in canaries if word in text]


@pytest.mark.requirement("E7")
async def test_a_run_without_errors_leaks_nothing(url, watching):
    metrics, tracer, exporter = watching
    with logged("debug") as log:
        async with ModelServer() as server:
            server.answer = answer
            model = open_model("test-model", url=server.url, api_key=UPSTREAM, retries=0)
            async with Memory.open(
                url,
                model=model,
                strategy=strategies.window(),
                observer=join_observers(metrics, tracer),
            ) as memory:
                app = RequestMiddleware(application(memory), metrics=metrics, tracer=tracer)
                async with served(app) as client:
                    assert await everything(client) >= {200, 400, 409, 422, 404, 500}
    text = log.getvalue()
    assert "Summarized messages" in text, "digests were made"
    assert "the tool look failed" in text
    assert "LookupError" in text
    assert "firnline.events" in text
    assert found(log, metrics, exporter) == []


@pytest.mark.parametrize("status", [400, 500])
async def test_the_text_of_an_endpoint_does_not_leak(url, watching, status):
    metrics, tracer, exporter = watching
    with logged("debug") as log, Echo(status) as model:
        async with Memory.open(
            url,
            model=model,
            embedder=Repeating(),
            strategy=strategies.window(),
            observer=join_observers(metrics, tracer),
        ) as memory:
            app = RequestMiddleware(application(memory), metrics=metrics, tracer=tracer)
            async with served(app) as client:
                await everything(client)
            await memory.append("d", [Message.user(LONG), Message.assistant("Yes.")])
            await memory.standalone("d", "And where is it now?")
    text = log.getvalue()
    assert f"(status {status})" in text
    assert "the embedder failed: ModelError" in text
    assert "the model failed" in text
    assert found(log, metrics, exporter) == []


async def test_the_text_of_a_summarizer_does_not_leak(url, watching):
    metrics, tracer, exporter = watching
    with logged("debug") as log:
        async with Memory.open(
            url,
            summarizer=repeating,
            extractor=repeating,
            worker=False,
            strategy=strategies.rolling(),
            observer=join_observers(metrics, tracer),
        ) as memory:
            for number in range(4):
                await memory.append("c", [Message.user(SAID), Message.assistant(f"{number}")])
            assert await memory.work(once=True) == 0
    text = log.getvalue()
    assert "is not digested: ModelError" in text
    assert "is extracted by rules: ModelError" in text
    assert found(log, metrics, exporter) == []


async def test_the_canaries_would_be_seen(watching):
    metrics, tracer, exporter = watching
    with logged("debug") as log:
        app = RequestMiddleware(application(None), metrics=metrics, tracer=tracer)
        async with served(app) as client:
            await client.get("/c/recall")
        log.write(SAID)
    assert found(log, metrics, exporter) == [("log", SAID)]


def test_the_web_framework_logs_nothing_itself(monkeypatch):
    """In a process that has OpenTelemetry set up, and even asked to send it all."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    with running() as server:
        wrong = httpx2.post(f"{server.url}/api/v1/conversations/{SAID}/messages", json={SAID: SAID})
        assert wrong.status_code == 422
    assert exporter.get_finished_spans() == ()
