"""Metrics: parsed by Prometheus' own parser, and correct after known work."""

import asyncio
import re
import socket
from pathlib import Path

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from firnline import Budget, Memory, Message, strategies
from firnline.errors import StoreUnavailable
from firnline.log.entry import Card, Digest, Key
from firnline.models import callable_model, open_model
from firnline.protocols import Event, Pending
from firnline.server import metrics as metrics_
from firnline.server.metrics import Metrics
from firnline.testing import ModelServer
from firnline.testing.drafts import START, Ticking
from support.live_server import running

TEXT = "The harbour crane in Rotterdam lifts forty tonnes in a light wind, they say. " * 5


@pytest.fixture
def metrics():
    return Metrics()


def read(metrics):
    """Every sample by its name and the values of its labels, in the order of their names."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


async def play(memory, rounds, conversation="c"):
    for number in range(rounds):
        await memory.append(conversation, Message.user(f"{number}: {TEXT}"))
        await memory.append(conversation, Message.assistant(f"Noted {number}. {TEXT}"))


async def test_appends_recalls_and_erasures_are_counted(url, metrics):
    async with Memory.open(url, observer=metrics.observe) as memory:
        pair = [Message.user("One."), Message.assistant("Two, and more.")]
        first = await memory.append("c", pair, idempotency_key="k")
        await memory.append("c", pair, idempotency_key="k")
        second = await memory.append("d", Message.user("Three."))
        hits = await memory.recall("c", "more")
        await memory.erase("c")
    seen = read(metrics)
    assert seen["firnline_appended_entries_total",] == 3
    assert seen["firnline_appended_tokens_total",] == sum(e.tokens for e in (*first, *second))
    assert seen["firnline_replays_total", "append"] == 1
    assert seen["firnline_recalled_entries_total",] == len(hits) == 1
    assert seen["firnline_erased_entries_total",] == 2
    took = "firnline_operation_duration_seconds_count"
    assert [seen[took, name, "ok"] for name in ("append", "erase", "recall")] == [3, 1, 1]


@pytest.mark.requirement("D4")
async def test_the_tokens_of_contexts_are_counted_by_section(url, metrics):
    async with Memory.open(url, observer=metrics.observe) as memory:
        await play(memory, 10)
        contexts = [
            await memory.context("c", Budget(1_500, 100), system="Be brief."),
            await memory.context("c", Budget(2_000), "What does the crane lift?"),
        ]
        log = (await memory.head("c")).tokens
    seen = read(metrics)
    sections = {
        labels[0]: value
        for (name, *labels), value in seen.items()
        if name == "firnline_context_tokens_total"
    }
    for name in contexts[0].accounting.__slots__[1:]:
        told = sum(getattr(context.accounting, name) for context in contexts)
        assert sections.pop(name) == told, name
    assert sections == {}
    assert seen["firnline_prompt_tokens_total", "sent"] == sum(c.tokens for c in contexts)
    given = contexts[0]["system"].tokens + sum(c.framing_tokens for c in contexts)
    assert seen["firnline_prompt_tokens_total", "whole"] == 2 * log + given


@pytest.mark.requirement("D6")
@pytest.mark.requirement("E7")
async def test_compactions_and_fallbacks_are_counted(url, metrics):
    async def small(messages):
        return "small"

    async with Memory.open(url, strategy=strategies.window(), observer=metrics.observe) as memory:
        await play(memory, 30)
        await memory.context("c", 3_000)
        await memory.turn(
            "c",
            "word " * 4_000,
            callable_model(small, name="gpt-4"),
            budget=Budget(3_000),
            larger=callable_model(small, name="gpt-4o"),
        )
        digests = await memory.digests("c")
    seen = read(metrics)
    made = [digest for digest in digests if digest.status == "completed"]
    assert seen["firnline_folds_total", "offline", "completed", "window"] == len(made) > 0
    covered = sum(digest.last_seq - digest.first_seq + 1 for digest in made)
    assert seen["firnline_folded_entries_total",] == covered
    times = [digest.milliseconds / 1e3 for digest in made]
    assert seen["firnline_fold_duration_max_seconds",] == pytest.approx(max(times))
    total = seen["firnline_operation_duration_seconds_sum", "fold", "ok"]
    assert total == pytest.approx(sum(times))
    assert seen["firnline_operation_duration_seconds_count", "fold", "ok"] == len(made)
    assert seen["firnline_fallbacks_total",] == 1
    assert seen["firnline_operation_duration_seconds_count", "turn", "ok"] == 1


async def test_a_model_that_fails_is_counted_with_what_came_of_it(url, metrics):
    async with ModelServer() as server:
        model = open_model("test-model", url=server.url, api_key="k", retries=0)
        async with Memory.open(
            url, strategy=strategies.window(), model=model, observer=metrics.observe
        ) as memory:
            await play(memory, 30)
            server.fail("401", repeat=True)
            context = await memory.context("c", 3_000)
            assert context.degraded
            done = await memory.turn("c", "Hello?", budget=8_000, apology="Sorry.")
            assert done.degraded
    seen = read(metrics)
    assert seen["firnline_folds_total", "none", "failed", "window"] >= 1
    assert seen["firnline_contexts_degraded_total",] >= 1
    assert seen["firnline_contexts_degraded_by_kind_total", "model"] >= 1
    assert seen["firnline_contexts_degraded_by_kind_total", "backlog"] == 0
    assert seen["firnline_turns_degraded_total",] == 1
    assert seen["firnline_operation_duration_seconds_count", "chat", "failed"] == 1


async def test_the_tokens_that_models_tell_are_counted(url, metrics):
    async with ModelServer() as server:
        model = open_model("test-model", url=server.url, api_key="k", retries=0)
        async with Memory.open(url, model=model, observer=metrics.observe) as memory:
            turns = [await memory.turn("c", "Hello?"), await memory.turn("c", "And now?")]
    seen = read(metrics)
    assert seen["firnline_model_tokens_total", "prompt"] == sum(t.prompt_tokens for t in turns)
    told = sum(t.completion_tokens for t in turns)
    assert seen["firnline_model_tokens_total", "completion"] == told > 0


# -- what the store knows -------------------------------------------------------------------------


@pytest.mark.requirement("E7")
async def test_pending_leased_and_stuck_work_is_read_from_the_store(url):
    clock = Ticking()
    metrics = Metrics(clock=clock)
    async with Memory.open(url, clock=clock, worker=False) as memory:
        store = memory.store
        for name in ("c", "d"):
            await memory.append(name, [Message.user("One."), Message.assistant("Two.")])
            await store.mark_pending(Key("default", name), START)
        lease = await store.lease(Key("default", "c"), "w", 1_000)
        await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=1))
        await store.put_cards([Card(tenant="default", kind="draft", name="x/0")])
        clock.pass_(301)
        await metrics.refresh(memory)
    seen = read(metrics)
    assert seen["firnline_store_up",] == 1
    assert seen["firnline_debt_conversations",] == 2
    assert seen["firnline_debt_oldest_age_seconds",] == 301
    assert seen["firnline_digests_in_progress",] == seen["firnline_leases_held",] == 1
    assert seen["firnline_digests_stuck",] == 1
    assert seen["firnline_draft_cards",] == 1


class Slow:
    """A memory that counts how often it is asked."""

    def __init__(self, *answers):
        self.asked, self._answers = 0, list(answers)

    async def pending(self, *, all_tenants):
        assert all_tenants
        self.asked += 1
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        return answer


async def test_the_store_is_asked_once_in_a_few_seconds_however_many_look(metrics, monkeypatch):
    store = Slow(Pending(conversations=3), Pending(conversations=4))
    await asyncio.gather(*(metrics.refresh(store) for _ in range(20)))
    assert store.asked == 1
    assert read(metrics)["firnline_debt_conversations",] == 3
    monkeypatch.setattr(metrics_, "GAUGES_FRESH_SECONDS", 0.0)
    await metrics.refresh(store)
    assert read(metrics)["firnline_debt_conversations",] == 4


@pytest.mark.parametrize("trouble", [StoreUnavailable("busy"), None])
async def test_an_unresponsive_store_is_reported_without_waiting(metrics, monkeypatch, trouble):
    monkeypatch.setattr(metrics_, "PROBE_SECONDS", 0.01)
    monkeypatch.setattr(metrics_, "GAUGES_FRESH_SECONDS", 0.0)
    store = Slow(Pending(conversations=3), trouble)
    await metrics.refresh(store)
    await metrics.refresh(store)
    seen = read(metrics)
    assert seen["firnline_store_up",] == 0
    assert seen["firnline_debt_conversations",] == 3


def test_gauges_are_read_when_they_are_scraped(metrics):
    streams = [1, 2]
    metrics.watch(streams=lambda: len(streams), drafts=lambda: 7)
    streams.append(3)
    seen = read(metrics)
    assert seen["firnline_streams_in_progress",] == 3
    assert seen["firnline_drafts_in_progress",] == 7


# -- names and labels -----------------------------------------------------------------------------


def test_requests_are_counted_by_route_method_and_status(metrics):
    for status, cut in ((200, False), (200, True), (404, False)):
        metrics.start_request()
        metrics.end_request("/api/{x}", "GET", status, 0.02, cut=cut)
    metrics.start_request()
    metrics.end_request("/api/{x}", "BREW", 405, 0.02, cut=False)
    metrics.start_request()
    seen = read(metrics)
    assert seen["firnline_http_requests_total", "GET", "/api/{x}", "200"] == 2
    assert seen["firnline_http_requests_total", "GET", "/api/{x}", "404"] == 1
    assert seen["firnline_http_requests_total", "other", "/api/{x}", "405"] == 1
    assert seen["firnline_http_request_duration_seconds_count", "GET", "/api/{x}"] == 3
    assert seen["firnline_http_responses_cut_total", "/api/{x}"] == 1
    assert seen["firnline_http_requests_in_progress",] == 1


def test_labels_are_few_whatever_clients_send(metrics):
    for number in range(1_000):
        metrics.start_request()
        metrics.end_request(f"/{number}", "GET", 200, 0.0, cut=False)
        values = {"strategy": f"s{number}", "made_by": f"m{number}", "milliseconds": 1}
        metrics.observe(Event("fold", f"tenant-{number}", f"conversation-{number}", values))
    text = metrics.render().decode()
    most = metrics_.LABELS_MAX + 1
    routes = [key for key in read(metrics) if key[0] == "firnline_http_requests_total"]
    assert len(routes) == most
    assert text.count("firnline_folds_total{") == most
    assert "tenant-" not in text
    assert "conversation-" not in text


def test_every_metric_has_a_name_a_unit_and_help_and_names_no_user(metrics):
    families = list(text_string_to_metric_families(metrics.render().decode()))
    ours = [family for family in families if not family.name.startswith("process_")]
    assert len(ours) > 25
    for family in ours:
        assert family.name.startswith("firnline_"), family.name
        assert family.documentation.endswith("."), family.name
        assert "milliseconds" not in family.name
        for sample in family.samples:
            assert set(sample.labels) <= {
                *("route", "method", "status", "operation", "outcome", "strategy", "made_by"),
                *("section", "kind", "version", "python", "le"),
            }
    info = [family for family in ours if family.name == "firnline_build_info"]
    assert info[0].samples[0].labels["version"]


def test_what_an_event_lacks_or_has_wrong_is_no_reason_to_fail(metrics):
    for name in ("append", "context", "fold", "turn", "chat", "recall", "erase", "new", "x_failed"):
        metrics.observe(Event(name, "t", "c", {}))
        metrics.observe(Event(name, "t", "c", {"entries": "many", "tokens": -5}))
    assert read(metrics)["firnline_appended_tokens_total",] == 0


def test_the_document_lists_every_metric_and_no_other(metrics):
    page = (Path(__file__).parents[2] / "docs" / "observability.md").read_text()
    table = page.split("## Metrics")[1].split("### Ready queries")[0]
    listed = set(re.findall(r"`(firnline_\w+)`", table))
    families = text_string_to_metric_families(metrics.render().decode())
    names = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in families
        if family.name.startswith("firnline_")
    }
    created = {name for name in names if name.endswith("_created")}
    assert listed == names - created
    queried = set(re.findall(r"(firnline_\w+)", page.split("### Ready queries")[1]))
    known = {*names, *(f"{name}_{end}" for name in names for end in ("sum", "count", "bucket"))}
    assert queried <= known


# -- endpoints behind the proxy ---------------------------------------------------------------


def upstream_calls(server):
    """The calls that were counted, by how they ended, and how many have a time of which kind."""
    seen = read(server.parts.metrics)
    calls = {
        tuple(labels): value
        for (name, *labels), value in seen.items()
        if name == "firnline_upstream_requests_total"
    }
    times = {
        kind: seen.get((f"firnline_upstream_{kind}_seconds_count", "openai"), 0)
        for kind in ("first_byte", "first_token", "duration")
    }
    return calls, times


def ask_upstream(server, **more):
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello."}], **more}
    return httpx2.post(f"{server.url}/v1/chat/completions", json=body, timeout=60)


def test_calls_of_the_endpoint_are_measured(tmp_path):
    with (
        ModelServer() as model,
        running(upstream=model.url, store=f"sqlite:///{tmp_path}/a.db") as server,
    ):
        assert ask_upstream(server).status_code == 200
        assert "data:" in ask_upstream(server, stream=True).text
        model.fail("500")
        assert ask_upstream(server).status_code == 500
        calls, times = upstream_calls(server)
    assert calls == {("openai", "ok"): 2, ("openai", "500"): 1}
    assert times == {"first_byte": 3, "first_token": 1, "duration": 3}


def test_an_endpoint_that_is_not_there_is_named_with_the_cause(tmp_path, caplog):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    with running(upstream=url, store=f"sqlite:///{tmp_path}/a.db") as server:
        answer = ask_upstream(server)
        calls, times = upstream_calls(server)
    assert answer.status_code == 502
    problem = answer.json()["error"]["message"]
    assert f"cannot connect to {url}: Connection refused; check FIRNLINE_UPSTREAM" in problem
    assert url in caplog.text
    assert calls == {("openai", "unreachable"): 1}
    assert times == {"first_byte": 0, "first_token": 0, "duration": 1}


def test_a_silent_endpoint_is_given_up_after_the_time_that_is_set(tmp_path):
    with ModelServer() as model:
        model.fail("slow", repeat=True)
        model.pause = 60
        store = f"sqlite:///{tmp_path}/a.db"
        with running(upstream=model.url, store=store, upstream_seconds=0.2) as server:
            answer = ask_upstream(server)
            calls, _ = upstream_calls(server)
    assert answer.status_code == 504
    problem = answer.json()["error"]["message"]
    assert f"{model.url} was silent for 0.2 s; FIRNLINE_UPSTREAM_SECONDS" in problem
    assert calls == {("openai", "timeout"): 1}
