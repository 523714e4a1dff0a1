"""The best prompt for every budget: what fits is there word for word, nothing twice or too much."""

import asyncio
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline import Budget, Memory, Message, strategies
from firnline.context.plan import units
from firnline.errors import BudgetError
from firnline.log.entry import live
from firnline.testing.conversations import conversations
from firnline.testing.strategy_conformance import prove_context
from support.seed_chats import play

quiet = settings(deadline=None, suppress_health_check=list(HealthCheck))
CHOICES = (
    strategies.layered(),
    strategies.progressive(),
    strategies.project(threshold_tokens=3_000, keep_tokens=2_700),
    strategies.project(lean=True, last=4),
    strategies.topics(),
    strategies.window(),
    strategies.rolling(),
)
WORDS = [f"{a}{b}" for a in ("lo", "ri", "ma", "ten", "sol") for b in ("bar", "ka", "vin", "del")]


def chatter(seed, messages, words=(5, 30)):
    """Messages that say nothing in particular."""
    pick = random.Random(seed)
    for n in range(messages):
        text = " ".join(pick.choices(WORDS, k=pick.randint(*words)))
        yield Message("assistant" if n % 2 else "user", text)


def sendable(entries):
    """The sequence numbers of what a provider accepts."""
    found = (unit for unit in units(live(entries)) if not unit.problem)
    return sorted(entry.seq for unit in found for entry in unit.entries)


# -- random logs, budgets, strategies, and switches between them ----------------------------------


async def _prove(strategy, messages, windows, question, model):
    async with Memory.open("memory:", strategy=strategy, background=False) as memory:
        await memory.append("c", messages)
        entries = await memory.read("c")
        for window in windows:
            try:
                context = await memory.context("c", Budget(window, model=model), question)
            except BudgetError:
                continue
            prove_context(context, entries)
            assert context.tokens <= min(window, context.whole_tokens)
            if strategy.name == "layered" and context.whole_tokens <= window and model is None:
                assert list(context.seqs) == sendable(entries)
                assert {section.name for section in context.sections} <= {"system", "recent"}


@pytest.mark.promise("verbatim-first")
def test_a_context_is_never_larger_than_its_budget_or_the_plain_history():
    @quiet
    @given(
        st.sampled_from(CHOICES),
        conversations(),
        st.lists(
            st.sampled_from((90, 200, 450, 1_000, 2_500, 9_000, 60_000)), min_size=2, max_size=4
        ),
        st.sampled_from((None, "which order?")),
        st.sampled_from((None, "claude-opus-4-5")),
    )
    def prove(strategy, messages, windows, question, model):
        asyncio.run(_prove(strategy, messages, windows, question, model))

    prove()


@pytest.mark.promise("verbatim-first")
@pytest.mark.parametrize("question", [None, "Which vinka did sollo name?"])
def test_what_is_free_is_used_while_something_is_left_to_show(question):
    @quiet
    @given(
        st.integers(0, 10_000),
        st.integers(1_000, 12_000),
        st.sampled_from(((3, 9), (5, 30), (20, 60))),
    )
    def prove(seed, window, words):
        async def run():
            async with Memory.open("memory:", background=False, embedder=None) as memory:
                await memory.append("c", list(chatter(seed, 500, words)))
                context = await memory.context("c", window, question)
                everything = context.whole_tokens <= window
                assert everything or context.tokens >= window * 0.9, context.explain()

        asyncio.run(run())

    prove()


@pytest.mark.promise("verbatim-first")
@pytest.mark.parametrize("place", [3, 29])
@pytest.mark.parametrize("question", [None, "Which vinka did sollo name?"])
async def test_one_large_message_leaves_no_room_empty(memory, question, place):
    messages = list(chatter(9, 30, (30, 50)))
    pick = random.Random(9)
    large = "Which vinka did sollo name? " + " ".join(pick.choices(WORDS, k=600))
    messages[place] = Message(messages[place].role, large)
    await memory.append("c", messages)
    context = await memory.context("c", 1_000, question)
    assert context.whole_tokens > 1_500
    assert context.tokens >= 900, context.explain()


# -- digests for a small budget and a large one ---------------------------------------------------


@pytest.mark.promise("verbatim-first")
@pytest.mark.parametrize("strategy", ["layered", "progressive", "project", "window"])
async def test_digests_for_a_small_budget_do_no_harm_to_a_larger_one(memory, strategy):
    await memory.set_strategy("c", strategy)
    await memory.append("c", list(chatter(1, 60)))
    small = await memory.context("c", 1_000)
    assert await memory.in_force("c")
    assert len(small.seqs) < 60
    for question in (None, "Which vinka did sollo name?"):
        large = await memory.context("c", 100_000, question)
        assert list(large.seqs) == list(range(60))
        assert [section.name for section in large.sections] == ["recent"]
        assert large.tokens == large.whole_tokens
        assert not large.left_out
    again = await memory.context("c", 1_000)
    assert again.tokens <= 1_000


@pytest.mark.promise("verbatim-first")
async def test_what_the_application_stated_is_there_even_if_the_whole_log_is(memory):
    await memory.append("c", [Message.user("Hello."), Message.assistant("Hi.")])
    await memory.remember("c", {"user_preferences": {"language": "German"}})
    context = await memory.context("c", 4_000)
    assert "German" in context["important"].messages[0].text
    assert context["recent"].entries == tuple(await memory.read("c"))


async def test_messages_shown_word_for_word_are_not_repeated_as_important_data(memory):
    await memory.append("c", list(chatter(2, 200)))
    await memory.append("c", Message.user("I prefer vegetarian food."))
    await memory.append("c", list(chatter(3, 6)))
    context = await memory.context("c", 3_000)
    assert 200 in context.seqs
    assert "vegetarian" not in "".join(m.text for m in context["important"].messages)


# -- recall ---------------------------------------------------------------------------------------


@pytest.mark.promise("recall-earned")
@pytest.mark.parametrize(
    "strategy",
    CHOICES[1:],
    ids=lambda strategy: strategy.name + "-lean" * bool(strategy.parameters.get("lean")),
)
async def test_one_answer_recalls_little_else_whatever_the_window(memory, strategy):
    await memory.set_strategy("c", strategy)
    await memory.append("c", Message.user("The code of the blue locker is 7731."))
    await memory.append("c", list(chatter(4, 240)))
    for _ in range(3):
        context = await memory.context("c", 128_000, "What is the code of the blue locker?")
    assert context.tokens <= context.whole_tokens
    assert len(context["recalled"].entries) <= 4
    if len(context.seqs) < 241:
        assert 0 in context.seqs
    if context.seqs[:20] == tuple(range(20)):
        assert "are not shown" not in "".join(m.text for m in context.messages)


@pytest.mark.promise("recall-earned")
@pytest.mark.requirement("A6")
async def test_progressive_stays_below_its_threshold_with_a_question(memory):
    await memory.set_strategy("c", "progressive")
    await memory.append("c", Message.user("The code of the blue locker is 7731."))
    for start in range(0, 120, 6):
        await memory.append("c", list(chatter(start, 6)))
        context = await memory.context("c", 128_000, "What is the code of the blue locker?")
        assert context.tokens <= 3_000
        assert 0 in context.seqs


@pytest.mark.promise("verbatim-first")
async def test_quoted_entries_are_named(memory):
    await memory.append("c", Message.user("The code of the blue locker is 7731."))
    await memory.append("c", list(chatter(5, 400)))
    context = await memory.context("c", 2_000, "What is the code of the blue locker?")
    assert 0 in {entry.seq for entry in context["recalled"].entries}
    quoted = [e.seq for name in ("opened", "recalled") for e in context[name].entries]
    assert set(quoted) <= set(context.seqs)
    text = "\n".join(message.text for message in context.messages)
    entries = await memory.read("c")
    assert all(entries[seq].message.text in text for seq in context.seqs)
    assert len(context.seqs) == sum(len(section.entries) for section in context.sections)


# -- never on the request path --------------------------------------------------------------------


@pytest.mark.promise("no-wait")
async def test_a_context_waits_for_no_digest_by_default(url):
    async with Memory.open(url) as memory:
        await memory.append("c", list(chatter(6, 1_500)))
        first = await memory.context("c", 4_000)
        assert first.tokens > 3_600
        assert not [d for d in await memory.digests("c") if d.status == "completed"]
        async with asyncio.timeout(30):
            while not await memory.in_force("c"):
                await asyncio.sleep(0.01)
        assert "digests" in {s.name for s in (await memory.context("c", 4_000)).sections}


async def test_digests_are_made_at_once_for_those_who_want_it(url):
    async with Memory.open(url, background=False) as memory:
        await memory.append("c", list(chatter(7, 300)))
        await memory.context("c", 4_000)
        assert await memory.in_force("c")


async def test_a_log_that_fits_easily_costs_no_digest(memory):
    await memory.append("c", list(chatter(8, 60)))
    tokens = (await memory.head("c")).tokens
    await memory.context("c", tokens * 2)
    assert await memory.digests("c") == []


@pytest.mark.promise("prefix-stable")
async def test_a_chat_repeats_its_prompt_while_it_is_digested(memory):
    stability = []
    for turn in range(150):
        await memory.append("c", list(chatter(turn, 1, (8, 16))))
        context = await memory.context("c", 2_500)
        if context.stability is not None:
            stability.append(context.stability)
        await memory.append("c", Message.assistant("Good. " * 6))
    assert await memory.in_force("c")
    assert sum(stability) / len(stability) > 0.8
    assert context.tokens > 2_500 * 0.85


async def test_the_seeds_own_chat_is_unchanged_below_its_threshold(memory):
    await memory.set_strategy("c", "progressive")
    await play(memory, "c", 8)
    context = await memory.context("c", 8_000, "Which sources?")
    assert context.tokens == context.whole_tokens
