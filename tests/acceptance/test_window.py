"""Seed D at the library: the window, retrieval within what is left, accounting, fallback."""

import logging
import os

import pytest

from firnline import Budget, Memory, Message, count_tokens, strategies
from firnline.errors import BudgetError
from firnline.models import callable_model, open_model
from firnline.testing import ModelServer
from support.seed_chats import play

WINDOW = 262_144
LOOKED_AT = range(1, 56) if "FIRNLINE_TORTURE" in os.environ else (1, 5, 50, 55)


@pytest.fixture
async def memory(url):
    async with Memory.open(url, strategy=strategies.window()) as memory:
        yield memory


def words(number):
    return "word " * number


# -- D1 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("D1")
async def test_at_85_percent_all_but_the_last_four_are_summarized(memory):
    budget = Budget(4_000)
    made = 0
    for number in range(70):
        await memory.append("c", Message.user(f"Message {number}: {words(120)}"))
        context = await memory.context("c", budget)
        digests = await memory.digests("c")
        if len(digests) > made:
            made = len(digests)
            assert context.seqs == tuple(range(number - 3, number + 1))
        else:
            assert context.tokens <= 3_400
    assert made >= 2


@pytest.mark.requirement("D1")
async def test_the_summary_has_at_most_a_thousand_tokens(memory):
    await play(memory, "c", 150)
    await memory.context("c", 16_000)
    (digest,) = await memory.in_force("c")
    assert count_tokens(digest.text) <= 1_000


@pytest.mark.requirement("D1")
@pytest.mark.requirement("D6")
async def test_prompt_and_prefix_are_configurable_in_any_language(url):
    seen = []

    async def model(messages):
        seen.append(str(messages))
        return "The crane in Rotterdam was discussed at length, with much about Lyon and Vienna."

    prefix = "## Предыдущее обсуждение / Previous conversation:"
    strategy = strategies.window(prefix=prefix, prompt="Keep every part number.")
    async with Memory.open(url, strategy=strategy, model=model) as memory:
        await play(memory, "c", 60)
        context = await memory.context("c", 5_000)
        assert context["digests"].messages[0].text.startswith(prefix)
        again = await memory.strategy("c")
    assert again.parameters["prefix"] == prefix
    assert any("Keep every part number." in text for text in seen)


# -- D2 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("D2")
async def test_the_question_is_durable_before_the_model_runs_and_the_answer_after(url):
    stored = []

    async def model(messages):
        stored.append([e.message.text for e in await memory.read("c")])
        return "Hello!"

    async with Memory.open(url) as memory:
        turn = await memory.turn("c", "Hi.", model)
        assert stored == [["Hi."]]
        assert [e.message.text for e in await memory.read("c")] == ["Hi.", "Hello!"]
        assert (turn.text, turn.answer.seq) == ("Hello!", 1)


# -- D3 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("D3")
@pytest.mark.long
async def test_the_seeds_flow_on_a_262144_window(memory):
    """Turns 1, 5, 50 and 60: the articles' share shrinks with the history, then is restored."""
    budget = Budget(WINDOW)
    system = words(1_990)
    seen = {}
    articles = [words(20_000) for _ in range(20)]

    async def retriever(question, *, reserved_tokens):
        seen["room"] = WINDOW - reserved_tokens
        return articles

    def said(number):
        return [Message.user(f"Question {number}: {words(490)}"), Message.assistant(words(3_300))]

    async def turn(number):
        question, answer = said(number)
        await memory.append("c", question)
        context = await memory.context("c", budget, system=system, retriever=retriever)
        assert context.tokens <= WINDOW
        taken = context.tokens - context["retrieved"].tokens
        assert seen["room"] == WINDOW - taken
        assert context["retrieved"].tokens <= seen["room"]
        assert len(context["retrieved"].pieces) == min(20, seen["room"] // 20_020)
        await memory.append("c", answer)
        return seen["room"]

    rooms = {}
    for number in range(1, 56):
        if number in LOOKED_AT:
            rooms[number] = await turn(number)
        else:
            await memory.append("c", said(number))
    assert 259_000 < rooms[1] < 260_000
    assert 242_000 < rooms[5] < 252_000
    assert 60_000 < rooms[50] < 111_000
    assert rooms[1] > rooms[5] > rooms[50]
    assert await memory.digests("c") == []
    for number in range(56, 66):
        rooms[number] = await turn(number)
        if await memory.digests("c"):
            break
    assert rooms[number] > 245_000, "after compaction the articles' share is restored"
    assert 58 <= number <= 62


@pytest.mark.requirement("D3")
async def test_a_retriever_that_returns_too_much_does_not_overflow(memory):
    async def retriever(question, *, reserved_tokens):
        return [words(600), words(600), words(100)]

    await memory.append("c", Message.user("Which one?"))
    context = await memory.context("c", Budget(1_000, 100), retriever=retriever)
    assert context.tokens <= 900
    assert [p.tokens > 500 for p in context["retrieved"].pieces] == [True, False]
    assert "document 2" in context.explain()
    assert context.room_for_retrieval() == 900 - context.tokens


# -- D4, D6 -------------------------------------------------------------------------------------


@pytest.mark.requirement("D4")
async def test_every_request_is_accounted_for(url, caplog):
    events = []
    async with Memory.open(url, strategy=strategies.window(), observer=events.append) as memory:
        await play(memory, "c", 60)
        with caplog.at_level(logging.DEBUG, "firnline.context"):
            context = await memory.context("c", Budget(5_000, 500), system="Be brief.")
    numbers = context.accounting
    assert numbers.window == 5_000
    parts = [getattr(numbers, name) for name in numbers.__slots__ if name != "window"]
    assert sum(parts) == 5_000
    assert numbers.history == context["recent"].tokens
    assert str(numbers) in caplog.text
    (event,) = [event for event in events if event.name == "context"]
    assert event.values["digests"] == numbers.digests > 0


@pytest.mark.requirement("D6")
async def test_compaction_and_fallback_are_counted(url):
    async def small(messages):
        return "small"

    async def large(messages):
        return "large"

    async with Memory.open(url, strategy=strategies.window()) as memory:
        await play(memory, "c", 60)
        await memory.context("c", 5_000)
        assert memory.events["fold"] == 1
        turn = await memory.turn(
            "c",
            words(6_000),
            callable_model(small, name="gpt-4"),
            budget=Budget(5_000),
            larger=callable_model(large, name="gpt-4o"),
        )
        assert memory.events["fallback"] == 1
        assert memory.events["turn"] == 1
        assert turn.text == "large"


# -- D5 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("D5")
async def test_without_a_larger_model_an_overflow_is_an_error_and_the_question_is_kept(url):
    async def model(messages):
        return "never"

    async with Memory.open(url) as memory:
        with pytest.raises(BudgetError):
            await memory.turn("c", words(6_000), model, budget=5_000)
        assert (await memory.head("c")).seq == 0


@pytest.mark.requirement("D5")
@pytest.mark.requirement("D2")
async def test_over_real_http_the_larger_model_is_asked(url):
    async with ModelServer(model="gpt-4o-mini") as server, Memory.open(url) as memory:
        server.say("Here is the answer.")
        near = open_model("gpt-4", url=server.url, api_key="k")
        far = open_model("gpt-4o-mini", url=server.url, api_key="k")
        turn = await memory.turn("c", words(9_000), near, larger=far)
        assert turn.text == "Here is the answer."
        assert [request["model"] for request in server.requests] == ["gpt-4o-mini"]
        assert memory.events["fallback"] == 1
        await near.close()
        await far.close()
