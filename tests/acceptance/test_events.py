"""Events for observers: every important call, its time and its numbers, and no text."""

import asyncio
import contextvars
import logging

import pytest

from firnline import Budget, Memory, Message, strategies
from firnline.errors import ModelError, ModelRefused, StoreFull, UnknownConversation, outline
from firnline.models import callable_model
from firnline.protocols import Event
from support.seed_chats import FACTS, TOPICS, play

WORDS = {word for text in (*FACTS, *TOPICS) for word in text.split() if len(word) > 7}


class Told(list):
    """The events, to be asked by name."""

    def __call__(self, name) -> Event:
        (event,) = [event for event in self if event.name == name]
        return event


@pytest.fixture
def told():
    return Told()


async def test_an_append_is_reported_with_its_entries_and_tokens(url, told):
    async with Memory.open(url, observer=told.append, tenant="acme") as memory:
        pair = [Message.user("One."), Message.assistant("Two, and more.")]
        await memory.append("c", Message.user("Before."))
        told.clear()
        appended = await memory.append("c", pair, idempotency_key="k")
        event = told("append")
        assert event[:3] == ("append", "acme", "c")
        assert event.values["entries"] == 2
        assert event.values["tokens"] == sum(entry.tokens for entry in appended)
        assert event.values["replayed"] == 0
        assert event.values["milliseconds"] >= 0
        await memory.append("c", pair, idempotency_key="k")
        assert told[-1].values["replayed"] == 1


async def test_recall_context_and_erase_are_reported(url, told):
    async with Memory.open(url, observer=told.append) as memory:
        await play(memory, "c", 20)
        hits = await memory.recall("c", "harbour crane", limit=3)
        assert told("recall").values["hits"] == len(hits) == 3
        await memory.recall(None, "harbour crane")
        assert told[-1].conversation == ""
        context = await memory.context("c", 1_500, "Where is the crane?", system="Be brief.")
        values = told("context").values
        accounting = context.accounting
        for name in accounting.__slots__:
            assert values[name] == getattr(accounting, name), name
        assert values["tokens"] == context.tokens
        assert values["hits"] == len(context.hits) > 0
        log = (await memory.head("c")).tokens
        assert values["whole"] == log + context["system"].tokens + context.framing_tokens
        assert values["whole"] > values["tokens"]
        erased = await memory.erase("c")
        assert told("erase").values["entries"] == erased.entries == 40
        assert all(event.values["milliseconds"] >= 0 for event in told)


@pytest.mark.requirement("D4")
async def test_the_sections_of_a_context_add_up_to_the_window(url, told):
    async with Memory.open(url, observer=told.append) as memory:
        await play(memory, "c", 30)
        await memory.context("c", Budget(3_000, 300))
        values = told("context").values
        whole = ("window", "tokens", "whole", "hits", "degraded", "milliseconds", "strategy")
        kinds = [name for name in values if name.startswith("degraded_")]
        assert sum(n for k, n in values.items() if k not in (*whole, *kinds)) == 3_000


@pytest.mark.requirement("D6")
async def test_a_digest_is_reported_with_its_author_and_its_span(url, told):
    strategy = strategies.window()
    async with Memory.open(url, strategy=strategy, observer=told.append) as memory:
        await play(memory, "c", 60)
        await memory.context("c", 5_000)
        (digest,) = await memory.digests("c")
        values = told("fold").values
        assert values["entries"] == digest.last_seq - digest.first_seq + 1
        assert values["milliseconds"] == digest.milliseconds
        assert (values["strategy"], values["made_by"]) == ("window", "offline")
        assert memory.events["fold"] == 1
        told.clear()
        await memory.rebuild("c")
        assert told("fold").values["version"] == 2


@pytest.mark.requirement("D6")
async def test_a_failed_digest_and_a_degraded_context_are_reported(url, told):
    async def broken(messages):
        raise ValueError(messages[-1]["content"])

    model = callable_model(broken, name="gpt-4o")
    async with Memory.open(
        url, strategy=strategies.window(), model=model, observer=told.append
    ) as memory:
        await play(memory, "c", 60)
        context = await memory.context("c", 5_000)
        assert context.degraded
        failed = told("fold_failed").values
        assert (failed["error"], failed["strategy"]) == ("ModelError", "window")
        assert failed["milliseconds"] >= 0
        values = told("context").values
        assert values["degraded"] == len(context.degraded)
        assert values["degraded_model"] == 1


async def test_a_turn_and_each_model_call_are_reported(url, told, server, model):
    async with Memory.open(url, model=model, observer=told.append) as memory:
        server.say("Forty tonnes.")
        turn = await memory.turn("c", "How much?", idempotency_key="k")
        values = told("turn").values
        assert (values["calls"], values["replayed"], values["degraded"]) == (1, 0, 0)
        assert values["prompt_tokens"] == turn.prompt_tokens > 0
        chat = told("chat").values
        assert (chat["model"], chat["stream"]) == ("test-model", 0)
        assert chat["completion_tokens"] == turn.completion_tokens > 0
        told.clear()
        await memory.turn("c", "How much?", idempotency_key="k")
        assert told("turn").values["replayed"] == 1
        assert not [event for event in told if event.name == "chat"]


async def test_a_streamed_turn_is_reported_once_and_an_abandoned_one_as_failed(
    url, told, server, model
):
    async with Memory.open(url, model=model, observer=told.append) as memory:
        server.say("Forty tonnes.", "Ten " * 50)
        async for item in memory.stream("c", "How much?"):
            if not isinstance(item, str):
                break  # the consumer need not wait for the generator's end
        assert told("turn").values["calls"] == 1
        assert told("chat").values["stream"] == 1
        told.clear()
        left = memory.stream("c", "And in a strong wind?")
        await anext(left)
        await left.aclose()
        assert told("turn_failed").values["error"] == "GeneratorExit"


async def test_failures_are_reported_by_their_kind(url, told, server, model):
    async with Memory.open(url, model=model, observer=told.append) as memory:
        server.fail("401")
        with pytest.raises(ModelRefused):
            await memory.turn("c", "How much?")
        assert told("turn_failed").values["error"] == "ModelRefused"
        assert told("chat_failed").values["error"] == "ModelRefused"
        with pytest.raises(UnknownConversation):
            await memory.erase("unknown")
        assert told("erase_failed").values["error"] == "UnknownConversation"


async def test_no_event_has_a_word_of_a_message(url, told, caplog):
    caplog.set_level(logging.DEBUG, "firnline")
    async with Memory.open(url, strategy=strategies.window(), observer=told.append) as memory:
        await play(memory, "c", 60)
        await memory.context("c", 5_000, "Which harbour crane in Rotterdam?")
        await memory.recall("c", "Rotterdam telescope grandmother")
        await memory.erase("c")
    assert {event.name for event in told} == {"append", "context", "fold", "recall", "erase"}
    seen = caplog.text + repr(told)
    assert "append c: " in caplog.text, "each event is logged, too"
    assert [word for word in WORDS if word in seen] == []


async def test_an_observer_that_fails_harms_nothing(url, caplog):
    def broken(event):
        raise StoreFull("the disk of the metrics")

    async with Memory.open(url, observer=broken) as memory:
        await memory.append("c", Message.user("Hello."))
        assert (await memory.context("c", 1_000)).seqs == (0,)
        assert memory.events == {"append": 1, "context": 1}
    assert "the observer failed at append" in caplog.text


async def test_what_is_done_in_the_background_is_nobodys_request(url):
    request = contextvars.ContextVar("request", default="nobody")
    seen = asyncio.Queue()

    def observe(event):
        if event.name == "fold":
            seen.put_nowait(request.get())

    async with Memory.open(url, strategy=strategies.rolling(), observer=observe) as memory:
        request.set("the request that woke the worker")
        await play(memory, "c", 4)
        assert await asyncio.wait_for(seen.get(), 30) == "nobody"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UnknownConversation("there is no conversation 'x'"), "there is no conversation 'x'"),
        (ModelError("the prompt was: SECRET"), "ModelError"),
        (ModelRefused("SECRET", status=400, code="key"), "ModelRefused (status 400, code key)"),
        (ModelError("SECRET", code="SECRET words"), "ModelError"),
        (ModelError("x", asked=False, retry_after=5.4), "ModelError (not called for another 5 s)"),
        (ValueError("SECRET"), "ValueError"),
    ],
)  # fmt: skip
def test_an_error_is_described_without_foreign_text(error, expected):
    assert outline(error) == expected
