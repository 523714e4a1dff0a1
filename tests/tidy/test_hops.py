"""How far a call reaches is a test: depth and files of four calls, and the walk through each.

To see what is counted, read `support.hops`. `PYTHONPATH=tests python tests/tidy/test_hops.py`
writes the walks and the budgets into ARCHITECTURE.md and prints every function that ran.
"""

import asyncio
import sys
import tempfile
from functools import cache
from pathlib import Path

import httpx2
import pytest

from firnline import Budget, Memory, Message
from firnline.log import limits
from firnline.server.app import warm_up
from firnline.testing import ModelServer
from support.hops import Hops
from support.live_server import running

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"

BEGIN = "<!-- walk: written by python tests/tidy/test_hops.py -->"
END = "<!-- /walk -->"

BUDGETS = {  # depth and files of the flow, then of all; lower them when you can
    "append": (4, 7, 10, 24),  # with the record of the commit and the mark of the head
    # What is read next to the log is compared with its seals.
    # Repeats are left out of what is recalled, and chances say where it stops.
    # Values are counted before they are written as JSON: many are written in a thread.
    # A store scores what it finds as every other store does, and reads what is small.
    "context": (19, 49, 22, 91),
    # Found messages are read for statements that newer ones outdate, long ones for passages.
    "recall": (8, 16, 13, 52),
    # The server limits its connections itself and looks at who is at their other end;
    # anonymous requests are kept apart. Known prefixes of histories have a module of their own.
    "chat": (19, 49, 26, 79),
}
CALLS = {
    "append": "One append",
    "context": "One context that makes a digest",
    "recall": "One recall",
    "chat": "One chat through the proxy",
}
WALKS = {  # the hops of each call in the order of their first run
    "append": [
        ("memory.Memory.append", "checks the arguments"),
        (
            "log.wire.load_openai",
            "turns what was passed into `Message` values, cleaned and checked",
        ),
        ("log.draft.encode_messages", "gives each its time and its canonical bytes"),
        ("log.draft.count_drafts", "counts its tokens"),
        ("store.sqlite.store.SqliteStore.append", "hands the drafts to the writer"),
        (
            "store.sqlite.writer.Writer.run",
            "queues them; appends that wait together share a commit",
        ),
        ("store.sqlite.transactions.Transactions.finish", "runs the batch and commits it"),
        ("store.sqlite.log.append", "gives sequence numbers, chain hashes and running totals"),
        (
            "store.sqlite.write_buffer.WriteBuffer.flush",
            "writes the rows; COMMIT; the caller gets its entries",
        ),
    ],
    "context": [
        ("memory.Memory.context", "checks the arguments"),
        (
            "engine.context_builder.ContextBuilder.build",
            "looks, plans, digests, looks again, assembles",
        ),
        ("context.view.look", "reads the digests in force and the newest entries"),
        ("strategies.layered.layered.plan", "decides what to show and what to digest; pure"),
        ("engine.digester.Digester.fold", "takes the lease and begins a digest"),
        ("engine.digest_writer.DigestWriter.write", "reads the span, a bounded part at a time"),
        (
            "digest.offline_summarizer.summarize",
            "writes the summary (a model's, if there is a model)",
        ),
        ("digest.rules.extract", "finds the important data"),
        ("digest.items.merge", "adds it to what is known"),
        (
            "store.sqlite.store.SqliteStore.finish_digest",
            "commits it if the lease and the base still hold",
        ),
        ("engine.recall.Recaller.for_context", "finds old entries for the question"),
        ("context.assemble.assemble", "puts the sections together within the budget; pure"),
    ],
    "recall": [
        ("memory.Memory.recall", "checks the arguments"),
        ("engine.recall.Recaller.recall", "turns the filters into a scope"),
        ("recall.search.EntryFinder.find", "asks for candidates by words, by meaning and by dates"),
        ("recall.query.parse_question", "reads the query: terms, names, dates"),
        ("store.sqlite.store.SqliteStore.search", "finds entries by their words"),
        ("recall.rank.features", "measures what speaks for candidates and their neighbors; pure"),
        ("recall.rank.order", "weighs that, before and after the tokens of the best are compared"),
        ("recall.chance.chances", "says how likely each is to be evidence; pure"),
        ("recall.updates.put_current_first", "marks what newer messages outdate"),
        ("engine.events.Timed.done", "counts the event"),
    ],
    "chat": [
        (
            "server.middleware.RequestMiddleware.__call__",
            "gives the request an id, measures and logs it",
        ),
        ("server.auth.AuthMiddleware.__call__", "checks key, scopes, size and rate"),
        ("server.tenants.Tenants.memory", "opens the tenant's memory"),
        ("server.proxy.request.parse_request", "reads the body and the conversation's name"),
        ("server.proxy.routes.answer_request", "calls the steps below, one after the other"),
        (
            "server.proxy.locate.locate_conversation",
            "finds where the history that was sent continues the log",
        ),
        ("memory.Memory.append", "stores what is new"),
        (
            "server.proxy.request_context.build_request_context",
            "puts as much as fits into the request",
        ),
        ("memory.Memory.context", "builds the context for the window"),
        ("server.proxy.routes.send_upstream", "asks the model"),
        ("server.proxy.locate.record_answer", "stores the answer and its prompt"),
    ],
}
QUESTION = "What does the ferry cost on day 12?"


def _talk(rounds: int) -> list[Message]:
    return [
        message
        for day in range(rounds)
        for message in (
            Message.user(f"What does the ferry to Oslo cost on day {day}? " + "Really. " * 40),
            Message.assistant(f"The ferry costs {day * 3} kroner. " + "Certainly. " * 60),
        )
    ]


async def _call(name: str, memory: Memory) -> None:
    if name == "append":
        await memory.append("c", Message.assistant("It is open."))
    elif name == "recall":
        assert await memory.recall("c", QUESTION)
    else:
        budget = Budget(window_tokens=4_000, reserve_tokens=500)
        context = await memory.context("c", budget, QUESTION)
        assert context.accounting.digests


async def _measure(name: str, folder: str) -> Hops:
    """One append, one recall, or one context that makes a digest, on SQLite."""
    with Hops().installed() as hops:
        url = f"sqlite:///{folder}/{name}.db"
        async with Memory.open(url, embedder=None, background=False) as memory:
            await memory.append("c", _talk(60))
            await memory.append("c", [Message.user("And the harbor?")])
            await memory.recall("c", "harbor")  # now the index is up to date
            with hops.counted():
                await _call(name, memory)
    return hops


def _measure_chat(folder: str) -> Hops:
    """One chat through the proxy, to a model on this machine; not streamed, without a worker."""
    hops = Hops()
    warm_up("none")  # else the server does so meanwhile
    with hops.installed(), ModelServer(model="gpt-4o-mini") as model:
        store = f"sqlite:///{folder}/chat.db"
        with running(store=store, upstream=model.url, background=False, worker=False) as server:
            history = [{"role": m.role, "content": m.text} for m in _talk(3)]
            history.append({"role": "user", "content": "And on day 4?"})
            history.append(_post(server.url, history))
            history.append({"role": "user", "content": "And on day 5?"})
            with hops.counted():
                _post(server.url, history)
    return hops


def _post(url: str, messages: list[dict]) -> dict:
    """The message that the proxy answers with."""
    body = {"model": "gpt-4o-mini", "messages": messages}
    answer = httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]


@cache
def measured() -> dict[str, Hops]:
    # Whether a small commit runs on its caller's thread depends on the disk; here it does not.
    proving, limits.COMMITS_PROVING = limits.COMMITS_PROVING, sys.maxsize
    try:
        with tempfile.TemporaryDirectory() as folder:
            calls = ("append", "context", "recall")
            found = {name: asyncio.run(_measure(name, folder)) for name in calls}
            return found | {"chat": _measure_chat(folder)}
    finally:
        limits.COMMITS_PROVING = proving


@pytest.mark.parametrize("name", BUDGETS)
def test_a_call_keeps_to_its_budget(name, record_property):
    hops = measured()[name]
    record_property("hops", (name, hops.figures()))
    over = [got > most for got, most in zip(hops.figures(), BUDGETS[name], strict=True)]
    assert not any(over), (hops.figures(), hops.deepest_flow, sorted(hops.flow_files))


@pytest.mark.parametrize("name", BUDGETS)
def test_the_walk_names_functions_that_run_in_this_order(name):
    walk, entered = [hop for hop, _ in WALKS[name]], list(measured()[name].entered)
    missing = [hop for hop in walk if hop not in entered]
    assert not missing, f"they do not run: {missing}"
    assert walk == sorted(walk, key=entered.index)


def walk_text() -> str:
    """The walks and the budgets, as ARCHITECTURE.md has them."""
    parts = []
    for name, title in CALLS.items():
        hops = enumerate(WALKS[name], 1)
        steps = [f"{number}. `{hop}` {phrase}" for number, (hop, phrase) in hops]
        parts.append("\n".join([f"**{title}**", "", *steps]))
    rows = ["| call | flow: depth | files | all: depth | files |", "|---|---|---|---|---|"]
    for name, figures in BUDGETS.items():
        rows.append(f"| {CALLS[name]} | {' | '.join(map(str, figures))} |")
    parts.append("\n".join(rows))
    return "\n\n".join(parts)


def test_the_walk_in_the_documentation_is_generated():
    """To write it: PYTHONPATH=tests python tests/tidy/test_hops.py"""
    assert walk_text() in PAGE.read_text()


if __name__ == "__main__":
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    PAGE.write_text(f"{before}{begin}\n{walk_text()}\n{end}{after}")
    for name, hops in measured().items():
        shown = [f"{name} {hops.figures()}", "  deepest:", *hops.deepest_flow]
        shown += ["  files:", *sorted(hops.flow_files), "  functions:", *hops.entered]
        sys.stdout.write("\n    ".join(shown) + "\n")
