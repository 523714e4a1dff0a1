"""Seed D in LangChain's own agent loop: the window, storing first, retrieval, fallback, metrics."""

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from firnline import Budget, Memory, Message, sync
from firnline.adapters.langchain import BudgetedRetriever, FirnlineMiddleware, summarizer
from firnline.adapters.langchain.messages import from_langchain
from firnline.errors import BudgetError, InputError
from firnline.log.message import Part
from firnline.log.tokens import counter
from firnline.strategies import window
from support.langchain_model import FakeModel, call, pairs_are_whole

WINDOW = 262_144


@pytest.fixture
def memory(tmp_path):
    with sync.Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        yield memory


def words(number):
    return "word " * number


def thread(name="c"):
    return {"configurable": {"thread_id": name}, "recursion_limit": 100}


def say(agent, text, config=None):
    return agent.invoke({"messages": [HumanMessage(text)]}, config or thread())


@tool
def lookup(number: int) -> str:
    """Look a number up."""
    return f"{number} is {'even' if number % 2 == 0 else 'odd'}; " + words(20)


# -- D1: the window -----------------------------------------------------------------------------


@pytest.mark.requirement("D1")
def test_at_85_percent_all_but_the_last_four_are_summarized_and_the_state_stays_complete(memory):
    model = FakeModel()
    prefix = "## Предыдущее обсуждение / Previous conversation:"
    middleware = FirnlineMiddleware(
        memory, budget=Budget(4_000), strategy=window(prefix=prefix), recall=False
    )
    agent = create_agent(
        model, [lookup], system_prompt="SYS", middleware=[middleware], checkpointer=InMemorySaver()
    )
    made = 0
    for number in range(60):
        state = say(agent, f"Message {number}: {words(100)}")
        assert len(state["messages"]) == 2 * number + 2
        sent = model.seen[-1]
        assert sent[0].text == "SYS"
        assert sent[-1].text.startswith(f"Message {number}:")
        assert model.size() <= 4_000
        digests = len(memory.digests("c"))
        if digests > made:
            made = digests
            summary = next(m for m in sent if m.text.startswith(prefix))
            assert counter().text(summary.text) <= 1_100
            assert sum(m.text.startswith(("Message", "ok")) for m in sent) == 4
        else:
            assert model.size() <= 3_400
    assert made >= 2
    assert len(memory.read("c")) == 120
    assert memory.verify("c").ok


@pytest.mark.requirement("D1")
def test_the_models_own_window_counts_if_none_is_given(memory):
    model = FakeModel(profile={"max_input_tokens": 1_000})
    agent = create_agent(model, middleware=[FirnlineMiddleware(memory)])
    for number in range(12):
        agent.invoke({"messages": [("user", f"{number} {words(100)}")]}, thread())
    assert max(model.size(at) for at in range(12)) <= 1_000
    assert memory.digests("c")


@pytest.mark.requirement("D1")
@pytest.mark.promise("within-budget")
@pytest.mark.promise("pairs-whole")
@pytest.mark.parametrize(("turns", "recall"), [(100, False), (30, True)])
@pytest.mark.long
def test_a_hundred_turns_with_tools(memory, turns, recall):
    """Never over the window, all pairs complete, every message in the log, the state unchanged."""
    asked = iter(range(10_000))

    def answer(messages):
        if isinstance(messages[-1], ToolMessage):
            return f"Answer {messages[-1].text[:20]}"
        if next(asked) % 3 == 2:
            return "Nothing"
        calls = [
            {"name": "lookup", "args": {"number": n}, "id": f"call-{next(asked)}"} for n in (1, 2)
        ]
        return AIMessage("", tool_calls=calls)

    model = FakeModel(answer=answer)
    middleware = FirnlineMiddleware(memory, budget=Budget(2_000, 200), recall=recall)
    agent = create_agent(
        model,
        [lookup],
        system_prompt="You look numbers up.",
        middleware=[middleware],
        checkpointer=InMemorySaver(),
    )
    for number in range(turns):
        own = " ".join(f"part{number}of{at}" for at in range(number % 20))
        say(agent, f"Turn{number} {own}")
    state = agent.get_state(thread()).values["messages"]
    for at, sent in enumerate(model.seen):
        assert model.size(at) <= 1_800
        assert pairs_are_whole(sent)
    assert sum(isinstance(message, HumanMessage) for message in state) == turns
    log = memory.read("c")
    assert [e.message.text for e in log] == [m.text for m in state]
    assert [e.message.tool_call_id for e in log] == [
        getattr(m, "tool_call_id", None) for m in state
    ]
    assert pairs_are_whole(state)
    assert len(memory.digests("c")) >= turns // 50 + 1
    assert memory.verify("c").ok


# -- D2: storing first --------------------------------------------------------------------------


@pytest.mark.requirement("D2")
@pytest.mark.promise("durable")
def test_the_users_message_is_durable_before_the_agent_runs_and_the_answer_after(tmp_path, memory):
    stored = []

    def answer(messages):
        with sync.Memory.open(f"sqlite:///{tmp_path}/store.db") as other:
            stored.append([entry.message.text for entry in other.read("c")])
        return "Hello!"

    class Early(AgentMiddleware):
        def before_agent(self, state, runtime):
            stored.append([entry.message.text for entry in memory.read("c")])

    agent = create_agent(FakeModel(answer=answer), middleware=[FirnlineMiddleware(memory), Early()])
    say(agent, "Hi.")
    assert stored == [["Hi."], ["Hi."]]
    assert [entry.message.text for entry in memory.read("c")] == ["Hi.", "Hello!"]


@pytest.mark.requirement("D2")
def test_a_model_that_fails_loses_nothing_and_a_retry_stores_nothing_twice(memory):
    fails = [True]

    def answer(messages):
        if fails.pop() if fails else False:
            raise RuntimeError("no model today")
        return "Here again."

    agent = create_agent(
        FakeModel(answer=answer),
        middleware=[FirnlineMiddleware(memory)],
        checkpointer=InMemorySaver(),
    )
    with pytest.raises(RuntimeError, match="today"):
        say(agent, "Are you there?")
    assert [entry.message.text for entry in memory.read("c")] == ["Are you there?"]
    agent.invoke(None, thread())
    texts = [entry.message.text for entry in memory.read("c")]
    assert texts == ["Are you there?", "Here again."]


def test_calls_are_durable_before_their_tools_run(memory):
    @tool
    def peek() -> str:
        """Look into the log."""
        return ", ".join(entry.message.role for entry in memory.read("c"))

    model = FakeModel(
        answer=lambda messages: "done" if messages[-1].type == "tool" else call("peek", {}, "1")
    )
    state = say(create_agent(model, [peek], middleware=[FirnlineMiddleware(memory)]), "Look!")
    assert state["messages"][2].text == "user, assistant"
    roles = [entry.message.role for entry in memory.read("c")]
    assert roles == ["user", "assistant", "tool", "assistant"]


def test_a_history_that_is_sent_again_each_time_is_stored_once(memory):
    """Without a checkpointer callers hold the history, often as plain dicts without ids."""
    agent = create_agent(FakeModel(), middleware=[FirnlineMiddleware(memory)])
    history = []
    for _ in range(5):
        history.append({"role": "user", "content": "again"})
        agent.invoke({"messages": history}, thread())
        history.append({"role": "assistant", "content": "ok"})
    assert [entry.message.text for entry in memory.read("c")] == ["again", "ok"] * 5


def test_a_repeated_message_is_stored_again_where_only_new_messages_are_sent(memory):
    """Without a checkpointer and without a history of the caller's, the log is all there is."""
    model = FakeModel()
    agent = create_agent(model, middleware=[FirnlineMiddleware(memory)])
    for _ in range(3):
        agent.invoke({"messages": [("user", "yes")]}, thread())
        assert model.seen[-1][-1].text == "yes"
    assert [entry.message.text for entry in memory.read("c")] == ["yes", "ok"] * 3


def test_a_question_that_is_sent_again_after_a_failure_is_stored_once(memory):
    fails = [True]

    def answer(messages):
        if fails and fails.pop():
            raise RuntimeError("no model today")
        return "ok"

    agent = create_agent(FakeModel(answer=answer), middleware=[FirnlineMiddleware(memory)])
    with pytest.raises(RuntimeError, match="today"):
        agent.invoke({"messages": [("user", "yes")]}, thread())
    agent.invoke({"messages": [("user", "yes")]}, thread())
    assert [entry.message.text for entry in memory.read("c")] == ["yes", "ok"]


def test_another_process_continues_where_this_one_stopped(tmp_path, memory):
    saver = InMemorySaver()
    first = create_agent(FakeModel(), middleware=[FirnlineMiddleware(memory)], checkpointer=saver)
    with sync.Memory.open(f"sqlite:///{tmp_path}/store.db") as other:
        second = create_agent(
            FakeModel(), middleware=[FirnlineMiddleware(other)], checkpointer=saver
        )
        for number in range(6):
            say((first, second)[number % 2], f"m{number}")
    assert [e.message.text for e in memory.read("c")[::2]] == [f"m{n}" for n in range(6)]
    assert len(memory.read("c")) == 12


async def test_it_works_asynchronously_with_either_memory(tmp_path, memory):
    async with Memory.open(f"sqlite:///{tmp_path}/other.db") as plain:
        for given in (memory, plain):
            agent = create_agent(FakeModel(), middleware=[FirnlineMiddleware(given)])
            await agent.ainvoke({"messages": [("user", "hi")]}, thread("a"))
        assert len(await plain.read("a")) == 2
        assert len(memory.read("a")) == 2
        agent = create_agent(FakeModel(), middleware=[FirnlineMiddleware(plain)])
        with pytest.raises(InputError, match=r"sync\.Memory"):
            agent.invoke({"messages": [("user", "hi")]}, thread("a"))


def test_a_streamed_run_is_stored_like_any_other(memory):
    model = FakeModel(
        answer=lambda messages: (
            "done" if messages[-1].type == "tool" else call("lookup", {"number": 1}, "c")
        )
    )
    agent = create_agent(model, [lookup], middleware=[FirnlineMiddleware(memory)])
    for mode in ("values", "messages"):
        asked = {"messages": [("user", f"hi {mode}")]}
        assert list(agent.stream(asked, thread(mode), stream_mode=mode))
        roles = [entry.message.role for entry in memory.read(mode)]
        assert roles == ["user", "assistant", "tool", "assistant"]


def test_many_threads_run_side_by_side_without_mixing(memory):
    agent = create_agent(
        FakeModel(answer=lambda messages: f"re: {messages[-1].text}"),
        middleware=[FirnlineMiddleware(memory, budget=Budget(500))],
        checkpointer=InMemorySaver(),
    )

    def talk(name):
        for number in range(6):
            say(agent, f"{name} {number} {words(30)}", thread(name))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(talk, [f"t{n}" for n in range(8)]))
    for n in range(8):
        said = [entry.message.text for entry in memory.read(f"t{n}")]
        assert [text.split()[:2] for text in said[::2]] == [[f"t{n}", str(k)] for k in range(6)]
        assert all(f"t{n} " in text for text in said)


def test_it_must_be_known_which_conversation_it_is(memory):
    agent = create_agent(FakeModel(), middleware=[FirnlineMiddleware(memory)])
    with pytest.raises(InputError, match="no conversation; set"):
        agent.invoke({"messages": [("user", "hi")]})
    named = create_agent(FakeModel(), middleware=[FirnlineMiddleware(memory, conversation="n")])
    named.invoke({"messages": [("user", "hi")]})
    assert len(memory.read("n")) == 2


def test_what_another_middleware_adds_to_a_request_stays_in_it_and_is_counted(memory):
    class Hint(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            hint = HumanMessage(f"HINT {words(300)}")
            return handler(request.override(messages=[*request.messages, hint]))

    model = FakeModel()
    middleware = [Hint(), FirnlineMiddleware(memory, budget=Budget(1_000))]
    agent = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())
    for number in range(10):
        say(agent, f"{number} {words(60)}")
        assert model.seen[-1][-1].text.startswith("HINT")
        assert model.size() <= 1_000
    assert not any("HINT" in entry.message.text for entry in memory.read("c"))


# -- D3: retrieval ------------------------------------------------------------------------------


@pytest.mark.requirement("D3")
@pytest.mark.long
def test_the_seeds_flow_on_a_262144_window(memory):
    """Turns 1, 5, 50 and 60: the articles' share shrinks with the history, then is restored."""
    rooms = []

    async def retriever(question, *, reserved_tokens):
        rooms.append(WINDOW - reserved_tokens)
        return ["An article."]

    def answer(messages):
        if messages[-1].type == "tool":
            return words(3_300)
        return call("retrieve_context", {"query": "articles"}, f"call-{len(rooms)}")

    model = FakeModel(answer=answer)
    middleware = FirnlineMiddleware(
        memory, budget=Budget(WINDOW), retriever=retriever, recall=False
    )
    agent = create_agent(
        model, system_prompt=words(1_990), middleware=[middleware], checkpointer=InMemorySaver()
    )
    for number in range(1, 66):
        say(agent, f"Question {number}: {words(490)}")
        if memory.digests("c"):
            break
    assert 259_000 < rooms[0] < 260_000
    assert 242_000 < rooms[4] < 252_000
    assert 60_000 < rooms[49] < 111_000
    assert 56 <= number <= 62
    assert rooms[-1] > 245_000, "after compaction the articles' share is restored"
    assert rooms[-2] < 50_000


@pytest.mark.requirement("D3")
def test_what_is_retrieved_never_overflows_the_request(memory):
    async def retriever(question, *, reserved_tokens):
        return [words(700), words(700), words(150)]

    asked = []

    def answer(messages):
        if messages[-1].type == "tool":
            return "done"
        asked.append(1)
        calls = [
            {"name": "retrieve_context", "args": {"query": "q"}, "id": f"{len(asked)}-{n}"}
            for n in range(len(asked))
        ]
        return AIMessage("", tool_calls=calls)

    model = FakeModel(answer=answer)
    middleware = FirnlineMiddleware(memory, budget=Budget(3_000, 300), retriever=retriever)
    agent = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    for number in range(4):
        say(agent, f"Question {number}")
        sent = model.seen[-1]
        found = [m.text for m in sent if m.type == "tool"]
        assert found
        assert all("word" in text for text in found)
        assert not any("left out here" in text for text in found[-len(asked) :]), "not shortened"
        assert model.size() <= 2_700


@pytest.mark.requirement("D3")
async def test_a_langchain_retriever_leaves_room_for_reserved_tokens(memory):
    class Shelf(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(words(number)) for number in (500, 300, 100)]

    fitting = BudgetedRetriever(retriever=Shelf(), window_tokens=1_000)
    sizes = [len(d.page_content.split()) for d in fitting.invoke("q", reserved_tokens=300)]
    assert sizes == [500, 100]
    assert [len(d.page_content.split()) for d in await fitting.ainvoke("q")] == [500, 300, 100]
    memory.append("c", {"role": "user", "content": "Which?"})
    async with Memory.open("memory:") as other:
        await other.append("c", {"role": "user", "content": "Which?"})
        context = await other.context("c", Budget(500), retriever=fitting)
        assert context.tokens <= 500
        assert "word" in context["retrieved"].messages[0].text


# -- D4 to D6: accounting, fallback, metrics ----------------------------------------------------


@pytest.mark.requirement("D4")
def test_every_request_is_accounted_for(tmp_path, caplog):
    events = []
    with sync.Memory.open(f"sqlite:///{tmp_path}/s.db", observer=events.append) as memory:
        model = FakeModel()
        agent = create_agent(
            model,
            [lookup],
            system_prompt="Be brief.",
            middleware=[FirnlineMiddleware(memory, budget=Budget(1_000, 100))],
            checkpointer=InMemorySaver(),
        )
        with caplog.at_level(logging.DEBUG, "firnline.context"):
            for number in range(12):
                say(agent, f"{number} {words(80)}")
    told = [event.values for event in events if event.name == "context"]
    assert len(told) == 12
    for at, values in enumerate(told):
        assert values["window"] == 1_000
        assert values["tokens"] == model.size(at)
        assert values["system"] == counter().message(Message.system("Be brief."))
        assert values["tools"] == counter().tools(model.bound)
    assert told[-1]["digests"] > 0
    assert "window 1,000 (reserve 100)" in caplog.text


class Verdict(BaseModel):
    """The verdict, with reasons."""

    fine: bool
    reasons: list[str]


@pytest.mark.requirement("D4")
@pytest.mark.parametrize("form", [ToolStrategy(Verdict), Verdict])
def test_the_form_of_a_structured_answer_is_counted(tmp_path, form):
    events = []
    given = {"fine": True, "reasons": ["none"]}
    with sync.Memory.open(f"sqlite:///{tmp_path}/s.db", observer=events.append) as memory:
        model = FakeModel(answer=lambda messages: call("Verdict", given, f"v{len(messages)}"))
        agent = create_agent(
            model, middleware=[FirnlineMiddleware(memory, budget=1_000)], response_format=form
        )
        state = say(agent, "Is it fine?")
        assert state["structured_response"] == Verdict(**given)
        assert [entry.message.role for entry in memory.read("c")] == ["user", "assistant", "tool"]
    (told,) = [event.values for event in events if event.name == "context"]
    assert model.bound
    assert told["tokens"] == model.size()


@pytest.mark.requirement("D5")
@pytest.mark.requirement("D6")
def test_the_larger_model_is_asked_when_even_a_compacted_context_does_not_fit(memory):
    small, large = FakeModel(), FakeModel(answer=lambda messages: "from the large one")
    middleware = FirnlineMiddleware(
        memory, budget=Budget(1_000), larger=large, larger_budget=Budget(20_000)
    )
    agent = create_agent(small, middleware=[middleware], checkpointer=InMemorySaver())
    for number in range(12):
        say(agent, f"{number} {words(80)}")
    assert (len(small.seen), len(large.seen)) == (12, 0)
    state = say(agent, words(4_000))
    assert state["messages"][-1].text == "from the large one"
    assert (len(small.seen), len(large.seen)) == (12, 1)
    assert memory.events["fallback"] == 1
    assert memory.events["fold"] >= 1


@pytest.mark.requirement("D5")
def test_without_a_larger_model_an_overflow_is_an_error_and_the_question_is_kept(memory):
    agent = create_agent(FakeModel(), middleware=[FirnlineMiddleware(memory, budget=1_000)])
    with pytest.raises(BudgetError):
        say(agent, words(4_000))
    assert len(memory.read("c")) == 1


@pytest.mark.requirement("D6")
def test_the_summarys_prompt_is_for_the_domain(tmp_path):
    prompts = []

    async def writer(messages):
        prompts.append(str(messages))
        return "The crane was discussed: part 4711 was ordered."

    strategy = window(prompt="Keep every part number.")
    with sync.Memory.open(f"sqlite:///{tmp_path}/s.db", model=writer) as memory:
        middleware = FirnlineMiddleware(memory, budget=Budget(1_500), strategy=strategy)
        agent = create_agent(FakeModel(), middleware=[middleware], checkpointer=InMemorySaver())
        for number in range(20):
            say(agent, f"{number}: the crane needs part 4711. {words(60)}")
        assert memory.strategy("c").parameters["prompt"] == "Keep every part number."
    assert any("Keep every part number." in text for text in prompts)


# -- what the agent holds is what it gets -------------------------------------------------------


def test_what_is_shown_word_for_word_is_the_agents_own_object(memory):
    thought = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "deep"}]
    model = FakeModel(answer=lambda messages: AIMessage(thought, response_metadata={"x": 1}))
    agent = create_agent(
        model, middleware=[FirnlineMiddleware(memory)], checkpointer=InMemorySaver()
    )
    say(agent, "one")
    state = say(agent, "two")
    before = model.seen[-1][1]
    assert before.content == thought
    assert before.response_metadata["x"] == 1
    assert before.id == state["messages"][1].id


def test_old_entries_that_fit_the_question_are_recalled(memory):
    model = FakeModel()
    middleware = FirnlineMiddleware(memory, budget=Budget(1_500))
    agent = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    say(agent, "The gate code of the boathouse is 7319.")
    for number in range(30):
        say(agent, f"{number}: let us talk about something else. {words(40)}")
    say(agent, "What is the gate code of the boathouse?")
    assert any("7319" in message.text for message in model.seen[-1][:-1])


def test_our_summarizer_works_in_langchains_own_middleware(memory):
    model = FakeModel()
    builtin = SummarizationMiddleware(
        model, trigger=("messages", 6), keep=("messages", 2), summarizer=summarizer(tokens_max=60)
    )
    agent = create_agent(model, middleware=[builtin], checkpointer=InMemorySaver())
    for number in range(5):
        state = say(agent, f"Order {1130 + number} goes to Bergen on Friday. It is urgent.")
    summary = state["messages"][0].text
    assert "Bergen" in summary
    assert counter().text(summary) <= 60 + 20


def test_a_system_message_with_blocks_stays_as_it_is(memory):
    model = FakeModel()
    blocks = [{"type": "text", "text": "SYS", "cache_control": {"type": "ephemeral"}}]
    agent = create_agent(
        model,
        system_prompt=SystemMessage(blocks),
        middleware=[FirnlineMiddleware(memory, budget=Budget(1_000))],
    )
    say(agent, "hi")
    assert model.seen[0][0].content == blocks
    assert [m.type for m in model.seen[0]] == ["system", "human"]


ODD_BLOCKS = [
    {"type": "file", "url": "https://example.com/a.pdf", "mime_type": "application/pdf"},
    {"type": "video", "base64": "AAAA", "mime_type": "video/mp4"},
    {"type": "text-plain", "text": "a document", "mime_type": "text/plain"},
    {"type": "media", "data": "AAAA", "mime_type": "image/png"},
    {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
    {"cachePoint": {"type": "default"}},
]


@pytest.mark.parametrize("block", ODD_BLOCKS, ids=lambda block: block.get("type", "no type"))
def test_a_block_that_openai_does_not_know_is_kept_as_it_is(memory, block):
    model = FakeModel()
    agent = create_agent(model, middleware=[FirnlineMiddleware(memory, budget=Budget(8_000, 100))])
    picture = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    asked = HumanMessage([{"type": "text", "text": "what is it?"}, block, picture])
    agent.invoke({"messages": [asked]}, {"configurable": {"thread_id": "c"}})
    (shown,) = model.seen[-1]
    assert shown.content == asked.content
    said = [part.fields for part in memory.read("c")[0].message.content]
    url = {"url": "data:image/png;base64,AAAA"}
    text = {"type": "text", "text": "what is it?"}
    assert said == [text, block, {"type": "image_url", "image_url": url}]


REPEATED = [
    {"type": "tool_use", "id": "c1", "name": "clock", "input": {}},
    {"type": "tool_call", "id": "c1", "name": "clock", "args": {}},
    {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "clock", "arguments": "{}"},
]


@pytest.mark.parametrize("block", REPEATED, ids=lambda block: block["type"])
def test_a_call_that_the_content_repeats_has_its_result(memory, block):
    @tool
    def clock() -> str:
        """The time."""
        return "12:00"

    blocks = [{"type": "text", "text": "Let me look."}, block]
    calls = [{"name": "clock", "args": {}, "id": "c1"}]

    def answer(messages):
        return AIMessage(blocks, tool_calls=calls) if len(messages) == 1 else "Noon."

    model = FakeModel(answer=answer)
    agent = create_agent(
        model, [clock], middleware=[FirnlineMiddleware(memory, budget=Budget(2_000, 100))]
    )
    agent.invoke({"messages": [("user", "time?")]}, {"configurable": {"thread_id": "c"}})
    assert [message.type for message in model.seen[-1]] == ["human", "ai", "tool"]
    assert model.seen[-1][1].content == blocks


def test_results_that_share_a_message_are_kept_together():
    blocks = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": "r"} for n in (1, 2)]
    assert [part.fields for part in from_langchain(HumanMessage(blocks)).content] == blocks


def test_reasoning_is_stored_with_the_tool_calls():
    thought = {"reasoning_content": "Let me look."}
    calls = [{"name": "f", "args": {}, "id": "c1"}]
    kept = from_langchain(AIMessage("", tool_calls=calls, additional_kwargs=thought))
    assert kept.content == (Part.reasoning("Let me look."),)
    assert [call.id for call in kept.tool_calls] == ["c1"]
    assert from_langchain(AIMessage("ok", additional_kwargs=thought)).text == "ok"


def test_an_agent_inside_a_tool_has_a_separate_conversation(memory):
    inner = FakeModel(answer=lambda messages: f"{len(messages)}: {messages[-1].text}")
    expert = create_agent(inner, middleware=[FirnlineMiddleware(memory, budget=Budget(2_000, 100))])

    @tool
    def ask(question: str) -> str:
        """Ask the expert."""
        return expert.invoke({"messages": [("user", question)]})["messages"][-1].text

    def answer(messages):
        if messages[-1].type == "human":
            calls = [{"name": "ask", "args": {"question": q}, "id": q} for q in ("one?", "two?")]
            return AIMessage("", tool_calls=calls)
        return "ok"

    model = FakeModel(answer=answer)
    agent = create_agent(
        model,
        [ask],
        middleware=[FirnlineMiddleware(memory, budget=Budget(2_000, 100))],
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [("user", "find out")]}, {"configurable": {"thread_id": "c"}})
    log = [entry.message.text for entry in memory.read("c")]
    assert log == ["find out", "", "1: one?", "1: two?", "ok"]
    assert pairs_are_whole(model.seen[-1])
    names = sorted(head.conversation for head in memory.conversations())
    assert names[0] == "c"
    assert len(names) == 3
    assert all(name.startswith("c/tools:") for name in names[1:])
    said = sorted(memory.read(name)[0].message.text for name in names[1:])
    assert said == ["one?", "two?"]
