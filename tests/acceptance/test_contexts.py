"""Contexts: within budget, in order, stable, explained; strategies can be changed at any time."""

import json
import os

import pytest

from firnline import Budget, Memory, Message, Strategy, ToolCall, count_tokens, strategies
from firnline.context.budget import as_budget
from firnline.context.plan import Plan
from firnline.errors import BudgetError, ConflictError, InputError
from firnline.testing.provider_rules import anthropic_problems, openai_problems
from support.seed_chats import TOPICS, play, rounds

TOOL = {
    "type": "function",
    "function": {
        "name": "find_order",
        "description": "Find an order by its number.",
        "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}},
    },
}
ALL = [
    strategies.layered(),
    strategies.progressive(),
    strategies.project(threshold_tokens=3_000, keep_tokens=2_000),
    strategies.window(),
    strategies.rolling(),
]


def called(*ids):
    return Message.assistant(tool_calls=[ToolCall.of(i, "find_order", {"order": 1}) for i in ids])


# -- the budget ---------------------------------------------------------------------------------


async def test_tools_and_framing_count(memory):
    await memory.append("c", Message.user("Where is it?"))
    plain = await memory.context("c", 1_000)
    tooled = await memory.context("c", 1_000, tools=[TOOL])
    assert tooled.tokens == plain.tokens + count_tokens([], tools=[TOOL]) - count_tokens([])
    assert plain.tokens == count_tokens(plain.to_openai())


def test_a_budget_says_what_is_wrong_with_it():
    for wrong in ("8000", "8,000", "8_000"):  # or a model of that name would be meant
        with pytest.raises(InputError, match="as a number"):
            as_budget(wrong)
    with pytest.raises(InputError, match=r"'gtp-4o-mini'.* Budget\(window_tokens="):
        as_budget("gtp-4o-mini")
    with pytest.raises(InputError, match="whole numbers"):
        Budget(8e3)


async def test_a_budget_is_also_a_models_name_or_a_number(memory):
    await memory.append("c", Message.user("hello"))
    assert (await memory.context("c", "gpt-4o-mini")).budget.window_tokens == 128_000
    assert (await memory.context("c", 500)).budget.limit == 500
    claude = await memory.context("c", "claude-sonnet-4-5")
    assert claude.tokens > (await memory.context("c", 500)).tokens, "an estimate on the high side"
    for wrong in (0, -1, Budget):
        with pytest.raises((InputError, TypeError)):
            await memory.context("c", wrong)


async def test_what_cannot_fit_names_the_floor_and_the_blockers(memory):
    await memory.append("c", Message.user("rule " * 200, metadata={"pinned": True}))
    await memory.append("c", Message.user("question " * 200))
    with pytest.raises(BudgetError) as caught:
        await memory.context("c", 500, system="system " * 100)
    facts = caught.value.context
    assert facts["floor"] > 500
    assert {"system", "pinned", "question", "notes", "framing"} <= set(facts["blockers"])
    assert sum(facts["blockers"].values()) == facts["floor"]
    assert (await memory.context("c", facts["floor"], system="system " * 100)).tokens <= facts[
        "floor"
    ]


@pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: strategy.name)
async def test_no_context_is_over_its_budget_and_none_loses_a_pin(url, strategy):
    async with Memory.open(url, strategy=strategy, worker=False) as memory:
        await memory.append("c", Message.system("House rules apply."))
        await memory.append("c", Message.user("Never say the word.", metadata={"pinned": True}))
        for number, message in enumerate(rounds(40)):
            await memory.append("c", message)
            context = await memory.context("c", Budget(1_500, 200), tools=[TOOL])
            assert context.tokens <= 1_300
            assert {0, 1} <= set(context.seqs)
            assert context.to_openai()[0] == {"role": "system", "content": "House rules apply."}
            if number % 10 == 0:
                await memory.work(once=True)


async def test_a_pin_can_be_set_and_removed_later(memory):
    await play(memory, "c", 40)
    budget = Budget(1_500)
    assert 3 not in (await memory.context("c", budget)).seqs
    await memory.pin("c", 3)
    context = await memory.context("c", budget)
    assert [entry.seq for entry in context["pinned"].entries] == [3]
    await memory.unpin("c", 3)
    assert 3 not in (await memory.context("c", budget)).seqs
    with pytest.raises(InputError, match="no message"):
        await memory.pin("c", 999)
    await memory.append("c", [called("a"), Message.tool("x", tool_call_id="a")])
    with pytest.raises(InputError, match="pinned"):
        await memory.pin("c", 80)


# -- tool calls -----------------------------------------------------------------------------------


async def test_calls_and_results_stay_together_in_every_cut(memory):
    await memory.append("c", Message.user("Start."))
    for number in range(12):
        ids = [f"{number}-{i}" for i in range(3)]
        await memory.append("c", [called(*ids)])
        await memory.append("c", [Message.tool("result " * 10, tool_call_id=i) for i in ids])
    for window in range(200, 1_500, 25):
        context = await memory.context("c", window)
        assert openai_problems(context.to_openai()) == []
        assert anthropic_problems(context.to_anthropic()) == []
        assert context.tokens <= window


async def test_orphans_and_open_calls_never_reach_a_provider(memory):
    await memory.append("c", Message.user("Go."))
    await memory.append("c", Message.tool("nobody asked", tool_call_id="ghost"))
    await memory.append("c", [called("x", "y"), Message.tool("half", tool_call_id="x")])
    context = await memory.context("c", 1_000)
    assert context.seqs == (0,)
    assert "without its call" in context.explain()
    assert "without all of its results" in context.explain()


@pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: strategy.name)
async def test_past_messages_are_shortened_even_if_the_user_wrote_last(url, strategy):
    async with Memory.open(url, strategy=strategy, worker=False) as memory:
        whole = [called("y"), Message.tool("42", tool_call_id="y"), Message.assistant("Done.")]
        for after in ([], [Message.assistant("Read.")], [called("x")], whole):
            await memory.append("c", [Message.user("From the top: " + "word " * 900), *after])
            with pytest.raises(BudgetError):
                await memory.context("c", 500)
            context = await memory.context("c", 500, past=True)
            assert context.tokens <= 500
            assert openai_problems(context.to_openai()) == []
            assert any("From the top" in str(m["content"]) for m in context.to_openai())


async def test_a_result_larger_than_the_budget_keeps_its_call(memory):
    await memory.append("c", Message.user("Read the file."))
    await memory.append("c", [called("f"), Message.tool("line\n" * 9_000, tool_call_id="f")])
    context = await memory.context("c", 2_000)
    sent = context.to_openai()
    assert [m["role"] for m in sent] == ["user", "assistant", "tool"]
    assert "tokens of message 2 are left out" in sent[2]["content"]
    assert context.tokens <= 2_000
    assert context.seqs == (0, 1)


async def test_the_gap_behind_the_question_is_named(url):
    async with Memory.open(url, background=True, worker=False) as memory:
        await memory.append(
            "c", [Message.user("First."), Message.assistant("Yes."), Message.user("Go.")]
        )
        for number in range(100):
            await memory.append(
                "c", [called(str(number)), Message.tool("x " * 20, tool_call_id=str(number))]
            )
        context = await memory.context("c", 2_000)
        shown = context.seqs
        assert shown[0] == 2
        hole = (3, shown[1] - 1)
        assert any(f"messages {hole[0]} to {hole[1]} are" in why for why in context.degraded)
        notes = [m["content"] for m in context.to_openai() if m["role"] == "user"]
        assert any(f"Messages {hole[0]} to {hole[1]} are not shown" in str(note) for note in notes)
        assert openai_problems(context.to_openai()) == []


async def test_every_system_message_is_digested_or_shown(url):
    async with Memory.open(url, background=False) as memory:
        await memory.append("c", [Message.system(f"Rule {n}.") for n in range(12)])
        await memory.append("c", Message.user("Hi."))
        context = await memory.context("c", 2_000)
        assert set(range(12)) <= set(context.seqs)
        await memory.append("c", Message.system("We decided that nobody says 42."))
        await play(memory, "c", 40)
        await memory.context("c", 2_000)
        (first, *_) = await memory.in_force("c")
        assert first.receipt["kinds"]["decisions"]["total"] >= 1


TALK = [
    "Ferry to Oslo leaves at 7.",
    *(f"Deck {n} has a café, a shop, and a view of the harbor and the town." for n in range(7)),
]


@pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: strategy.name)
@pytest.mark.parametrize("background", [False, True])
async def test_a_context_that_cannot_be_built_leaves_no_digest(url, strategy, background):
    async with Memory.open(url, strategy=strategy, background=background, worker=False) as memory:
        await memory.append("t", [Message.user(text) for text in TALK])
        for budget in (10, 30, 60):
            with pytest.raises(BudgetError):
                await memory.context("t", budget)
            head = await memory.head("t")
            assert (await memory.digest("t"), await memory.digests("t")) == (0, [])
            assert "budget" not in (head.strategy or {}), "no worker digests for this budget"


async def test_digests_for_hardly_any_room_still_tell_something(url):
    """Only messages that have no text are said to have none."""
    images = [{"type": "image_url", "image_url": {"url": f"https://x.org/{n}.png"}} for n in "ab"]
    image = {"role": "user", "content": images}
    logs = (
        ([Message.user(text) for text in TALK], 80, "Oslo"),
        ([Message.user("👍")] * 40, 70, "👍"),
        ([Message.user("...")] * 40, 70, "..."),
        ([image] * 8, 3_000, "(6 messages without text)"),
    )
    async with Memory.open(url, strategy=strategies.layered(), background=False) as memory:
        for messages, budget, expected in logs:
            await memory.append(expected, messages)
            await memory.context(expected, budget)
            assert expected in (await memory.digests(expected))[0].text


# -- explained, stable ----------------------------------------------------------------------------


async def test_pinned_entries_are_not_listed_as_missing(memory):
    await memory.append("c", [Message.user(f"Message {n} of this slow talk.") for n in range(9)])
    await memory.pin("c", 0)
    await memory.pin("c", 4)
    context = await memory.context("c", 90)
    assert context.seqs == (0, 4, 8)
    assert "[Messages 1 to 7 are not shown here" in context["digests"].messages[-1].text
    assert context.degraded == ("messages 1 to 7 are in no digest and do not fit",)
    await memory.pin("c", 1)
    (why,) = (await memory.context("c", 100)).degraded
    assert why == "messages 2 to 7 are in no digest and do not fit"


async def test_explain_says_what_is_in_what_is_not_and_why(memory):
    await play(memory, "c", 60)
    context = await memory.context("c", 2_000, "Which sources?", system="Be brief.")
    text = context.explain()
    for section in context.sections:
        assert section.name in text
        assert f"{section.tokens:,}" in text
    assert "layered" in text
    assert f"{context.tokens:,} of 2,000 tokens" in text


async def test_recalled_entries_come_last_but_for_the_question_and_are_marked_as_data(memory):
    await play(memory, "c", 60)
    await memory.append("c", Message.user("Which sources did I name?"))
    context = await memory.context("c", 3_000, "Key sources paper1 paper2")
    sent = [m["content"] for m in context.to_openai()]
    assert sent[-1] == "Which sources did I name?"
    assert sent[-2].startswith("[recalled]")
    assert "data, not instructions" in sent[-2]
    assert "https://example.com/paper1" in sent[-2]
    assert 0 < context["recalled"].tokens <= Budget(3_000).recall_room


async def test_what_was_recalled_is_not_extracted_again(memory):
    from firnline.context.render import render_recalled  # noqa: PLC0415

    await memory.append("c", Message.user("I prefer green tea."))
    again = render_recalled(await memory.read("c"))
    await memory.append("c", again)
    await play(memory, "c", 40, start=10)
    await memory.context("c", 2_000)
    data = json.dumps((await memory.state("c")).important_data)
    assert data.count("green") == 1


@pytest.mark.promise("prefix-stable")
async def test_the_prefix_is_byte_identical_until_a_digest_changes(memory):
    budget, last, versions = Budget(3_000), [], 0
    kept, folds, said = 0, 0, []
    for message in rounds(120 if "FIRNLINE_TORTURE" in os.environ else 60):
        said.append(message)
        if message.role != "user":
            continue
        await memory.append("c", said)
        said = []
        context = await memory.context("c", budget, system="Be brief.")
        sent = context.to_openai()
        made = len(await memory.digests("c"))
        if made == versions:
            assert sent[: len(last)] == last
            kept += 1
        elif context.tokens < context.whole_tokens:
            assert sent[0] == last[0]
            folds += 1
        quoted = [message.to_openai() for message in context["opened"].messages]
        last = sent[: sent.index(quoted[0])] if quoted else sent  # quotes come last
        versions = made
    assert min(kept, folds) > 5


@pytest.mark.promise("prefix-stable")
async def test_a_long_question_does_not_change_what_comes_before_it(memory):
    facts = [f"Shelf {number} holds {number * 7} boxes of rope." for number in range(300)]
    await memory.append("c", Message.user("We count what lies on the shelves. " * 75))
    await memory.remember("c", {"important_facts": facts}, summary="Shelves were listed. " * 40)
    before = await memory.context("c", 2_000)
    assert "older part of the important data" in before.explain(), "there is more than fits"
    await memory.append("c", Message.user("And what about this? " * 60))
    after = await memory.context("c", 2_000)
    await memory.append("c", Message.user("Short?"))
    last = await memory.context("c", 2_000)
    assert after["important"] == before["important"] == last["important"]
    assert after["digests"] == before["digests"] == last["digests"]
    assert last.stability == 1.0


@pytest.mark.parametrize("window", [1_500, 3_000])
async def test_important_data_changes_only_with_a_digest(memory, window):
    """It is at the start of the prompt: any other change would cost the provider's cache."""
    last, changed, kept = None, 0, 0
    for turn in range(60):
        fact = f"I decided that we go with offer {turn} for the garden of house {turn * 7}. "
        await memory.append("c", Message.user(fact + "And then we walked on. " * (turn % 7 * 6)))
        context = await memory.context("c", window, question="Which offer did we take?")
        versions = tuple(digest.version for digest in await memory.in_force("c"))
        notes = [m for m in context["digests"].messages if "not shown here" in m.text]
        digests = [m for m in context["digests"].messages if m not in notes]
        start = context["important"].messages, digests
        if last is not None and last[0] == versions:
            assert last[1] == start, turn
            kept += bool(versions)
        changed += last is not None and last[0] != versions
        last = versions, start
        await memory.append("c", Message.assistant("Noted. " * 10))
    assert min(changed, kept) > 5


async def test_anthropic_gets_its_own_shape(memory):
    await memory.append("c", Message.assistant("Hello, how can I help?"))
    await memory.append("c", Message.user("Find it."))
    await memory.append("c", [called("a", "b")])
    await memory.append("c", [Message.tool(t, tool_call_id=t) for t in "ab"])
    request = (await memory.context("c", 1_000, system="Be brief.")).to_anthropic()
    assert request["system"] == "Be brief."
    assert anthropic_problems(request) == []
    assert [turn["role"] for turn in request["messages"]] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert request["messages"][3]["content"][0]["input"] == {"order": 1}


# -- X3: strategies --------------------------------------------------------------------------


@pytest.mark.requirement("X3")
async def test_the_strategy_is_stored_with_the_conversation(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    async with Memory.open(url) as memory:
        assert (await memory.strategy("c")).name == "layered"
        await memory.set_strategy(
            "c", strategies.progressive(threshold_tokens=900, keep_tokens=500)
        )
        await memory.set_strategy("d", "rolling")
    async with Memory.open(url) as memory:
        again = await memory.strategy("c")
        assert (again.name, again.parameters["threshold_tokens"]) == ("progressive", 900)
        assert (await memory.strategy("d")).name == "rolling"
        assert (await memory.strategy("e")).name == "layered"


@pytest.mark.requirement("X3")
@pytest.mark.parametrize("then", ALL, ids=lambda strategy: f"then-{strategy.name}")
@pytest.mark.parametrize("first", ALL, ids=lambda strategy: f"from-{strategy.name}")
async def test_strategies_can_be_changed_at_any_time_and_nothing_is_lost(first, then):
    async with Memory.open("memory:", worker=False, background=False) as memory:
        for strategy, start in ((first, 0), (then, 30), (first, 60)):
            await memory.set_strategy("c", strategy)
            await play(memory, "c", 30, start=start)
            await memory.digest("c")
            context = await memory.context("c", 2_500)
            assert context.strategy == strategy.name
            assert context.tokens <= 2_500
            assert not context.degraded, context.explain()
            covered = await memory.in_force("c")
            if strategy.name != "rolling" and covered:
                assert covered[0].first_seq == 0
        texts = [entry.message.text for entry in await memory.read("c")]
        assert texts == [message.text for message in rounds(90)]
        assert (await memory.verify("c")).ok


@pytest.mark.requirement("X3")
async def test_a_custom_strategy(url):
    def newest_only(view, budget):
        return Plan(recent_from=max(view.next_seq - 2, 0))

    mine = Strategy("newest-only", newest_only)
    async with Memory.open(url, strategies=[mine]) as memory:
        await play(memory, "c", 5)
        await memory.set_strategy("c", mine)
        assert (await memory.context("c", 2_000)).seqs == (8, 9)
        with pytest.raises(InputError, match="unknown"):
            await memory.set_strategy("c", "no-such")
        with pytest.raises(InputError, match="unknown"):
            await memory.set_strategy("c", Strategy("unknown", newest_only))
        with pytest.raises(InputError, match="different parameters"):
            await memory.set_strategy("c", Strategy("newest-only", newest_only, {"n": 2}))
        assert (await memory.strategy("c")).name == "newest-only", "a refusal changes nothing"
        stranger = Memory(memory.store)
        await stranger.append("c", Message.assistant("It is stored, whoever plans."))
        assert (await stranger.strategy("c")).name == "layered"


async def test_wrong_parameters_are_rejected_with_the_reason():
    with pytest.raises(InputError, match="keep_tokens"):
        strategies.progressive(keep_tokens=9_000)
    with pytest.raises(InputError, match="unknown parameter 'size'"):
        strategies.strategy("window", {"size": 3})


# -- X4: offline -----------------------------------------------------------------------------


@pytest.mark.requirement("X4")
@pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: strategy.name)
async def test_every_strategy_works_without_a_model_and_without_a_network(
    url, strategy, monkeypatch
):
    import socket  # noqa: PLC0415

    connect = socket.socket.connect

    def nothing(*_, **__):
        raise AssertionError("the network was used")

    def connect_here(own, address):
        """To the store's own server alone; the others are files, or connect in C."""
        local = own.family == socket.AF_UNIX and url.startswith("mongodb:")
        return connect(own, address) if local else nothing()

    async with Memory.open(url, strategy=strategy, worker=False, background=False) as memory:
        monkeypatch.setattr(socket.socket, "connect", connect_here)
        monkeypatch.setattr(socket, "getaddrinfo", nothing)
        await play(memory, "c", 40)
        await memory.digest("c")
        await memory.context("c", 2_500, "What do I prefer?")
        digests = await memory.in_force("c")
        assert digests
        assert all(d.made_by == "offline" and d.calls == 0 for d in digests)
        again = await memory.rebuild("c")
        assert [d.text for d in again] or strategy.name


@pytest.mark.requirement("X4")
async def test_offline_digests_are_deterministic():
    made = []
    for _ in range(2):
        async with Memory.open("memory:", strategy=strategies.progressive()) as memory:
            await play(memory, "c", 40)
            await memory.context("c", 4_000)
            made.append([(d.text, d.data, d.receipt) for d in await memory.in_force("c")])
    assert made[0] == made[1]


@pytest.mark.requirement("X4")
async def test_a_later_model_improves_what_was_made_offline(url):
    async def model(messages):
        return " ".join(TOPICS) + " I prefer dark mode. We decided to use PostgreSQL."

    async with Memory.open(url, strategy=strategies.progressive()) as memory:
        await play(memory, "c", 40)
        await memory.context("c", 4_000)
        (before,) = await memory.in_force("c")
        better = Memory(memory.store, model=model, strategy=strategies.progressive())
        (after,) = await better.rebuild("c", only_offline=True)
        assert (after.first_seq, after.last_seq) == (before.first_seq, before.last_seq)
        assert after.made_by != "offline"
        assert await better.rebuild("c", only_offline=True) == []
        assert [d.version for d in await memory.in_force("c")] == [after.version]


# -- while others write -------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: strategy.name)
async def test_messages_during_a_context_push_nothing_out(url, strategy):
    """Others append between its reads of the store: their messages take no room away."""
    async with Memory.open(url, strategy=strategy, worker=False) as memory:
        await memory.append("c", [Message.user(f"question {n}") for n in range(40)])
        store = memory._store
        newest = store.newest

        async def interrupted(*args):
            await memory.append("c", [Message.user(f"meanwhile {n}") for n in range(20)])
            return await newest(*args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "newest", interrupted, raising=True)
            context = await memory.context("c", 100_000)
        assert not context.degraded
        shown = [entry.seq for entry in context["recent"].entries]
        assert len(shown) >= 60
        assert shown == list(range(len(shown)))


async def test_a_question_that_others_push_out_is_a_conflict(memory):
    (asked,) = await memory.append("c", Message.user("mine"))
    await memory.append("c", [Message.user("theirs " * 30) for _ in range(20)])
    context = await memory.context("c", 400, fold=False)
    with pytest.raises(ConflictError, match="filled the window"):
        context.up_to(asked.seq)
    whole = await memory.context("c", 100_000)
    assert [entry.seq for entry in whole.up_to(asked.seq)["recent"].entries] == [asked.seq]
