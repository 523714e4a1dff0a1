"""A project's conversations as one memory: what the tools and the dashboard show of it (B1, B3)."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from firnline import Budget, Memory, Message, Project, ToolCall, count_tokens, strategies
from firnline.recall.result import ResultTokens
from firnline.server import prompts
from firnline.testing.provider_rules import openai_problems

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)  # a Wednesday


@pytest.fixture
async def memory(url):
    async with Memory.open(url, clock=lambda: NOW) as memory:
        yield memory


def at(minutes):
    return NOW - timedelta(minutes=minutes)


async def say(memory, name, texts, *, project="alps"):
    """Store texts with the minutes before now at which they were said."""
    for minutes, text in texts:
        make = Message.user if "?" in text else Message.assistant
        await memory.append(name, make(text, created_at=at(minutes)))
    await memory.describe(name, project=project)


async def told(tools, tool, **arguments):
    return json.loads(await tools[tool](**arguments))


def texts_of(result):
    return [message["text"] for message in result["messages"]]


async def three(memory):
    await say(memory, "mon", [(3_000, "Which rope?"), (2_999, "The blue rope, 60 meters.")])
    await say(memory, "tue", [(900, "Which tent?"), (700, "The tent for two."), (20, "Packed?")])
    await say(memory, "wed", [(800, "Which stove?"), (30, "The gas stove."), (10, "Who cooks?")])
    await say(memory, "other", [(5, "Secret rope?")], project="andes")
    await memory.append("alone", Message.user("Secret tent?", created_at=at(4)))


@pytest.mark.requirement("B1")
@pytest.mark.requirement("B3")
async def test_the_tools_show_a_project_as_one_history_in_time_order(memory):
    await three(memory)
    tools = memory.tools("wed")
    newest = await told(tools, "get_extended_context", count=4)
    assert texts_of(newest) == ["The tent for two.", "The gas stove.", "Packed?", "Who cooks?"]
    assert [m["id"] for m in newest["messages"]] == ["tue:1", 1, "tue:2", 2]
    assert "older" in newest["note"]
    everything = await told(tools, "get_extended_context", count=500)
    assert len(everything["messages"]) == 8
    assert "note" not in everything
    monday = await told(tools, "get_messages_by_date", date="monday")
    assert texts_of(monday) == ["Which rope?", "The blue rope, 60 meters."]
    today = await told(tools, "get_messages_by_date", date="today", limit=2)
    assert texts_of(today) == ["The tent for two.", "The gas stove."]
    assert "There are more" in today["note"]
    found = await told(tools, "search_history", query="blue rope")
    assert found["messages"][0]["id"] == "mon:1"
    assert "Secret" not in str(found)
    one = await told(tools, "get_message_by_id", id="mon:1")
    assert texts_of(one) == ["The blue rope, 60 meters."]
    assert texts_of(await told(tools, "get_message_by_id", id="2")) == ["Who cooks?"]


@pytest.mark.requirement("B3")
async def test_more_than_fifty_messages_are_fifty(memory):
    await memory.append("c", [Message.user(f"{n}", created_at=NOW) for n in range(60)])
    for project in (None, "alps"):
        if project:
            await memory.describe("c", project=project)
        newest = await told(memory.tools("c"), "get_extended_context", count=500)
        assert texts_of(newest) == [str(n) for n in range(10, 60)]


@pytest.mark.requirement("B3")
async def test_no_id_leads_out_of_the_project(memory):
    await three(memory)
    tools = memory.tools("wed")
    for outside in ("other:0", "alone:0", "nowhere:0", "mon:2", "mon:-1", "mon:", ":1", "mon:1e3"):
        error = (await told(tools, "get_message_by_id", id=outside))["error"]
        assert "Secret" not in error
        assert "no such message" in error or "conversation: 0 characters" in error
    alone = memory.tools("alone")
    assert "error" in await told(alone, "get_message_by_id", id="mon:1")
    assert texts_of(await told(alone, "get_extended_context")) == ["Secret tent?"]
    await memory.describe("mon", project="andes")
    assert "error" in await told(tools, "get_message_by_id", id="mon:1")
    assert "rope" not in str(await told(tools, "search_history", query="blue rope"))


@pytest.mark.requirement("B1")
async def test_what_branches_share_is_in_the_history_once(memory):
    await say(memory, "wed", [(30, "Which stove?"), (20, "Gas."), (10, "Why?")])
    await memory.branch("wed", 1, "again")
    await say(memory, "again", [(5, "And wood?")])
    for name in ("wed", "again"):
        newest = await told(memory.tools(name), "get_extended_context")
        assert texts_of(newest) == ["Which stove?", "Gas.", "Why?", "And wood?"]
        today = await told(memory.tools(name), "get_messages_by_date", date="today")
        assert texts_of(today) == texts_of(newest)
    claim = {"branch": {"of": "wed", "at": 2}}
    await memory.describe("again", metadata=claim)  # anybody can write that: nothing is hidden
    assert len((await told(memory.tools("wed"), "get_extended_context"))["messages"]) == 6


@pytest.mark.requirement("B1")
async def test_entries_of_a_conversation_keep_their_order_whatever_their_times(memory):
    await say(memory, "a", [(50, "a0?"), (10, "a1"), (40, "a2?"), (5, "a3")])
    await say(memory, "b", [(45, "b0?"), (30, "b1"), (7, "b2?")])
    found = await memory.project_newest("alps")
    assert [e.entry.message.text for e in found] == ["a0?", "b0?", "a1", "a2?", "b1", "b2?", "a3"]
    assert found == (await memory.project_newest("alps", limit=7))
    assert found[-3:] == await memory.project_newest("alps", limit=3)


@pytest.mark.requirement("B1")
async def test_reading_a_project_costs_what_it_returns_not_what_there_is():
    async with Memory.open("memory:") as memory:
        reads: list[str] = []
        for number in range(300):
            await say(memory, f"c{number}", [(1_000 - number, "x?"), (1_000 - number, "y")])
        store = memory.store
        read, recent = store.read, store.recent

        async def counted(key, *args, **options):
            reads.append(key.conversation)
            return await read(key, *args, **options)

        async def paged(*args, limit=100, **options):
            reads.append(f"{limit} heads")
            return await recent(*args, limit=limit, **options)

        store.read, store.recent = counted, paged
        assert len(await memory.project_newest("alps", limit=8)) == 8
        assert len(reads) <= 6


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("window", [128_000, 32_000, 8_000])
async def test_results_are_bounded_by_the_window_and_the_seeds_figures(memory, window):
    text = "some words of the plan " * 26
    await memory.append("c", [Message.user(f"{n} {text}", created_at=NOW) for n in range(50)])
    tools = memory.tools("c", budget=Budget(window, window // 8))
    size = count_tokens(await tools["get_extended_context"](count=30))
    shown = await told(tools, "get_extended_context", count=30)
    if window > 8_000:
        assert len(shown["messages"]) == 30
        assert 3_900 < size < 10_000
    else:
        assert 5 < len(shown["messages"]) < 30
        assert size < 2_800
    found = await told(tools, "search_history", query="plan", limit=50)
    most = ResultTokens.within(window - window // 8)
    assert count_tokens(json.dumps(found, ensure_ascii=False)) < most.found * 1.2
    small = memory.tools("c", tokens_max=500)
    assert count_tokens(await small["get_extended_context"](count=30)) <= 500


@pytest.mark.requirement("B3")
def test_where_the_window_allows_it_results_have_the_seeds_sizes():
    assert ResultTokens.within(None) == (20_000, 50_000)
    assert ResultTokens.within(250_000) == (20_000, 50_000)
    large, small, tiny = (ResultTokens.within(room) for room in (124_000, 30_000, 1_000))
    assert 5_000 <= large.found <= 20_000
    assert 10_000 <= large.newest <= 50_000
    assert small == (5_000, 12_000)
    assert tiny == (250, 400)
    assert ResultTokens.within(None, 700) == (700, 700)


@pytest.mark.requirement("B3")
async def test_a_turn_gives_its_tools_the_room_of_its_window(memory):
    await memory.append("c", [Message.user("word " * 300, created_at=NOW) for _ in range(30)])

    async def model(messages, tools=()):
        if messages[-1]["role"] == "tool":
            return "done"
        call = {"id": "1", "type": "function"}
        call["function"] = {"name": "get_extended_context", "arguments": '{"count":20}'}
        return Message.from_openai({"role": "assistant", "content": None, "tool_calls": [call]})

    sizes = {}
    for name, options in (("large", {}), ("small", {"tool_tokens": 900})):
        turn = await memory.turn(
            "c", "More?", model, budget=Budget(64_000), recall_tools=True, **options
        )
        sizes[name] = count_tokens(turn.tool_results[0].message.text)
    assert sizes["large"] > 5_000
    assert sizes["small"] <= 900


@pytest.mark.requirement("B1")
async def test_a_project_that_is_saved_alone_has_an_empty_history(memory):
    await memory.save_project(Project("alps"))
    await memory.describe("c", project="alps")
    assert await memory.project_newest("alps") == []
    assert texts_of(await told(memory.tools("c"), "get_extended_context")) == []


# -- contexts ---------------------------------------------------------------------------------

BUDGET = Budget(32_000, 2_000)


def by_project(**parameters):
    """The strategy with a hundredth of the seed's numbers."""
    return strategies.project(
        **{"threshold_tokens": 2_000, "keep_tokens": 1_400, "summary_tokens": 150, **parameters}
    )


def shown(context):
    return [message.text for message in context["recent"].messages]


@pytest.mark.requirement("B1")
async def test_a_context_shows_all_conversations_of_the_project_in_time_order(url):
    async with Memory.open(url, clock=lambda: NOW, strategy=strategies.project()) as memory:
        await three(memory)
        context = await memory.context("wed", BUDGET, system="Be brief.")
        assert shown(context) == [
            "Which rope?", "The blue rope, 60 meters.", "Which tent?", "Which stove?",
            "The tent for two.", "The gas stove.", "Packed?", "Who cooks?",
        ]  # fmt: skip
        assert context.seqs == (0, 1, 2)
        assert context.tokens == count_tokens(context.to_openai())
        assert await memory.digests("mon") == []
        assert (await memory.context("alone", BUDGET)).seqs == (0,)
        assert shown(await memory.context("alone", BUDGET)) == ["Secret tent?"]
        own = await memory.context("wed", BUDGET, project=False)
        assert shown(own) == ["Which stove?", "The gas stove.", "Who cooks?"]
        older = await memory.context("mon", BUDGET)  # whose question is the oldest, and answered
        assert shown(older) == shown(context)


@pytest.mark.requirement("B1")
async def test_only_a_question_that_is_to_be_answered_comes_last(url):
    """An answered one stays where it was asked, whatever its conversation said since."""
    async with Memory.open(url, clock=lambda: NOW, strategy=strategies.project()) as memory:
        await say(memory, "a", [(50, "a0?"), (45, "a1"), (40, "a2?")])
        await say(memory, "b", [(47, "b0?"), (35, "b1"), (30, "b2?"), (25, "b3")])
        of_a, of_b = [shown(await memory.context(name, BUDGET)) for name in "ab"]
        assert of_a == ["a0?", "b0?", "a1", "b1", "b2?", "b3", "a2?"]
        assert of_b == ["a0?", "b0?", "a1", "a2?", "b1", "b2?", "b3"]
        call = Message.assistant(tool_calls=[ToolCall.of("1", "find", {})], created_at=at(20))
        result = Message.tool("found", tool_call_id="1", created_at=at(15))
        await memory.append("a", [call, result])
        await say(memory, "b", [(10, "b4")])
        assert shown(await memory.context("a", BUDGET))[-4:] == ["b4", "a2?", "", "found"]
        await say(memory, "a", [(5, "a5")])
        assert shown(await memory.context("a", BUDGET))[-7:] == [
            "b1", "b2?", "b3", "", "found", "b4", "a5",
        ]  # fmt: skip


@pytest.mark.requirement("B1")
async def test_above_the_threshold_the_oldest_of_the_project_are_summarized(url):
    async with Memory.open(url, clock=lambda: NOW, strategy=by_project()) as memory:
        for day in range(3):
            said = [
                (9_000 - 1_000 * day - n, f"Fact {day}.{n}: " + "peak " * 60) for n in range(12)
            ]
            await say(memory, f"day{day}", said)
        await say(memory, "day2", [(20, "And what now?")])
        context = await memory.context("day2", BUDGET)
        assert 900 < context.tokens <= 2_000
        assert shown(context)[-1] == "And what now?"
        (digest,) = await memory.in_force("day0")
        assert (digest.first_seq, digest.last_seq) == (0, 11)
        (half,) = await memory.in_force("day1")
        first = half.last_seq + 1
        assert shown(context)[0].startswith(f"Fact 1.{first}:")
        assert next(m.text for m in context["digests"].messages).count("'day0'") == 1
        for name in ("day0", "day1", "day2"):
            assert len(await memory.read(name)) >= 12
        await memory.context("day2", BUDGET)
        versions = [len(await memory.digests(f"day{day}")) for day in range(3)]
        assert versions == [1, 1, 0], "only when it is above the threshold again"
        assert (await memory.verify("day0")).problems == ()


@pytest.mark.requirement("B2")
async def test_the_lean_context_has_the_newest_messages_of_the_project(url):
    lean = strategies.project(lean=True, last=4)
    async with Memory.open(url, clock=lambda: NOW, strategy=lean) as memory:
        await three(memory)
        context = await memory.context("wed", BUDGET)
        assert shown(context)[-4:] == [
            "The tent for two.",
            "The gas stove.",
            "Packed?",
            "Who cooks?",
        ]
        assert "rope" not in str(context.to_openai())


@pytest.mark.requirement("B1")
async def test_a_branch_and_its_source_are_one_history_in_a_context(url):
    async with Memory.open(url, clock=lambda: NOW, strategy=strategies.project()) as memory:
        await say(memory, "wed", [(30, "Which stove?"), (20, "Gas."), (10, "Why?")])
        await memory.branch("wed", 1, "again")
        await say(memory, "again", [(5, "And wood?")])
        for name, last in (("wed", "Why?"), ("again", "And wood?")):
            texts = shown(await memory.context(name, BUDGET))
            assert sorted(texts) == sorted(["Which stove?", "Gas.", "Why?", "And wood?"])
            assert texts[-1] == last


@pytest.mark.requirement("B1")
async def test_a_call_and_its_result_stay_together_in_a_project(url):
    async with Memory.open(url, clock=lambda: NOW, strategy=strategies.project()) as memory:
        call = Message.assistant(tool_calls=[ToolCall.of("1", "find", {})], created_at=at(30))
        result = Message.tool("found", tool_call_id="1", created_at=at(10))
        await memory.append("a", [Message.user("Find it?", created_at=at(31)), call, result])
        await memory.describe("a", project="alps")
        await say(memory, "b", [(20, "Between?"), (5, "Now?")])
        for name in "ab":
            messages = (await memory.context(name, BUDGET)).to_openai()
            assert openai_problems(messages) == []
            assert len(messages) == 5


@pytest.mark.requirement("B1")
async def test_in_the_background_a_context_waits_for_no_digest_of_a_project():
    async with Memory.open(
        "memory:", clock=lambda: NOW, strategy=by_project(), background=True, worker=False
    ) as memory:
        for day in range(3):
            said = [
                (9_000 - 1_000 * day - n, f"Fact {day}.{n}: " + "peak " * 60) for n in range(12)
            ]
            await say(memory, f"day{day}", said)
        context = await memory.context("day2", BUDGET)
        assert context.tokens <= 2_200
        assert "other conversations" in context.left_out[-1].what
        await asyncio.gather(*memory._engine.contexts._tasks.values())
        assert [d.last_seq for d in await memory.in_force("day0")] == [11]


@pytest.mark.requirement("B1")
@pytest.mark.promise("erase-total")
async def test_a_recorded_prompt_has_nothing_that_the_erasure_of_another_conversation_would_miss():
    async with Memory.open("memory:", clock=lambda: NOW, strategy=by_project()) as memory:
        for day in range(2):
            said = [
                (9_000 - 1_000 * day - n, f"Fact {day}.{n}: " + "peak " * 60) for n in range(16)
            ]
            await say(memory, f"day{day}", said)
        await say(memory, "now", [(5, "And now?")])
        context = await memory.context("now", BUDGET)
        assert "Fact 0." in str(context["digests"].messages)
        assert "Fact 1." in str(context["recent"].messages)
        await prompts.record(memory, context, 0)
        record = await prompts.read(memory, "now", 0)
        assert "Fact" not in str(record)
        texts = [piece["message"]["content"] for piece in record["pieces"]]
        assert texts[-1] == "And now?"
        assert "(message 15 of day1, of the same project)" in texts


@pytest.mark.requirement("B1")
async def test_older_messages_of_all_conversations_are_quoted_for_a_question(url):
    async with Memory.open(url, clock=lambda: NOW, strategy=by_project()) as memory:
        await say(memory, "old", [(9_500, "The pump has the serial number KX-7741-B.")])
        for day in range(4):
            said = [
                (9_000 - 1_000 * day - n, f"Fact {day}.{n}: " + "peak " * 60) for n in range(12)
            ]
            await say(memory, f"day{day}", said)
        question = "What is the serial number of the pump?"
        await say(memory, "day3", [(20, question)])
        context = await memory.context("day3", BUDGET, question)
        quoted = context["elsewhere"].messages[0].text
        assert "[conversation old]\n(0, 2026-03-04) assistant: The pump has the serial" in quoted
        assert shown(context)[-1] == question
        assert context.tokens == count_tokens(context.to_openai()) <= 2_000
        assert context["elsewhere"].tokens <= 500

        async def find(question, *, reserved_tokens):
            return ["A page."]

        await memory.save_project(Project("alps", task="Mend the pump."))
        ends = await memory.context("day3", BUDGET, question, retriever=find)
        written = [s for s in ends.sections if s.name not in ("system", "pinned", "recent")]
        assert {s.name for s in written} >= {"task", "digests", "elsewhere"}
        for section in written:
            for message in section.messages:
                assert message.text.splitlines()[-1].startswith("[/"), section.name
        await prompts.record(memory, context, 0)
        assert "KX-7741" not in str((await prompts.read(memory, "day3", 0))["pieces"])
        alone = await memory.context("day3", BUDGET, question, project=False)
        assert not alone["elsewhere"].pieces


@pytest.mark.requirement("B1")
@pytest.mark.promise("one-person")
async def test_a_person_sees_nothing_of_others_in_a_project(url):
    """Neither as messages, nor in digests or quotes."""
    async with Memory.open(url, clock=lambda: NOW, strategy=by_project()) as memory:
        for name, person in (("his", "bob"), ("hers", "ana"), ("older", "ana")):
            said = [(9_000 - n, f"{name} {n}, peak " + "code " * 60) for n in range(24)]
            await memory.append(
                name, Message.assistant("hello", created_at=at(9_500)), person=person
            )
            await say(memory, name, [(9_400, f"The code of the door is {name}-7731."), *said])
        question = "What is the code of the door?"
        await say(memory, "hers", [(20, question)])
        context = await memory.context("hers", BUDGET, question)
        sent = str(context.to_openai())
        assert "older-7731" in sent
        assert "his" not in sent.replace("this", "")


@pytest.mark.requirement("B9")
async def test_the_size_of_a_project_counts_what_branches_share_once(memory):
    await say(memory, "a", [(60 - n, f"message {n} of the first") for n in range(40)])
    alone = await memory.project_size("alps")
    assert alone == (40, (await memory.head("a")).tokens)
    await memory.branch("a", 29, "b")
    await memory.branch("b", 9, "c")
    await say(memory, "b", [(5, "new in b")])
    assert (await memory.project_size("alps")).entries == 41
    assert len(await memory.project_newest("alps", limit=200)) == 41
    new = (await memory.read("b"))[-1]
    assert (await memory.project_size("alps")).tokens == alone.tokens + new.tokens
    assert await memory.project_size("nothing") == (0, 0)
