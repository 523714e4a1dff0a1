"""The adapters say whom a conversation is with: what is stated in one is known in the next."""

import pytest
from agent_framework import Message as FrameworkMessage
from agents import Agent as OpenAIAgent
from agents import Runner
from agents.testing import ScriptedModel, assistant_message
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from llama_index.core.llms import ChatMessage
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from firnline import Memory, sync
from firnline.adapters.agent_framework import FirnlineHistory
from firnline.adapters.langchain import FirnlineMiddleware, FirnlineStore
from firnline.adapters.llamaindex import FirnlineMemoryBlock
from firnline.adapters.openai_agents import FirnlineSession
from firnline.adapters.pydantic_ai import FirnlineCapability
from firnline.errors import ConflictError
from support.langchain_model import FakeModel, call

HOME = "I moved to Lisbon last week."
ASKED = "Where do I live?"
KNOWN = "home city: Lisbon"


@pytest.fixture
async def memory():
    async with Memory.open("memory:", embedder=None) as memory:
        yield memory


async def test_an_openai_session_is_with_a_person(memory):
    async def ask(name, text, person):
        model = ScriptedModel([[assistant_message("Noted.")]])
        session = FirnlineSession(name, memory, 4_000, person=person)
        await Runner.run(OpenAIAgent(name="a", model=model), text, session=session)
        return str(model.last_call.input)

    await ask("1", HOME, "ana")
    assert (await memory.head("1")).person == "ana"
    await ask("2", "Hello.", "ana")
    assert KNOWN in await ask("2", ASKED, "ana")
    await ask("3", "Hello.", "ben")
    assert KNOWN not in await ask("3", ASKED, "ben")
    session = FirnlineSession("2", memory, 4_000, person="ana")
    await session.clear_session()
    await session.add_items([{"role": "user", "content": "I work at Miele."}])
    (job,) = [fact for fact in await memory.facts(person="ana") if fact.attribute == "employer"]
    assert job.evidence[0].conversation != "2"
    other = FirnlineSession("2", memory, 4_000, person="ben")
    for refused in (other.get_items, other.pop_item, other.clear_session):
        with pytest.raises(ConflictError, match="with another person"):
            await refused()
    with pytest.raises(ConflictError, match="with another person"):
        await other.get_items(limit=1)


@pytest.mark.parametrize("by_name", [True, False])
async def test_a_pydantic_agents_run_is_with_a_person(memory, by_name):
    seen = []

    async def answer(messages, info):
        seen.append(f"{messages}{info.instructions}")
        return ModelResponse([TextPart("Noted.")])

    async def ask(name, text, person):
        whose = person if by_name else lambda run: run.deps["user"]
        capability = FirnlineCapability(memory, budget=4_000, conversation=name, person=whose)
        agent = PydanticAgent(FunctionModel(answer), deps_type=dict, capabilities=[capability])
        await agent.run(text, deps={"user": person})
        return seen[-1]

    await ask("1", HOME, "ana")
    assert (await memory.head("1")).person == "ana"
    assert KNOWN in await ask("2", ASKED, "ana")
    assert KNOWN not in await ask("3", ASKED, "ben")
    assert KNOWN not in await ask("4", ASKED, None)
    assert (await memory.head("4")).person is None
    with pytest.raises(ConflictError, match="with another person"):
        await ask("2", ASKED, "ben")


@pytest.mark.parametrize("by_name", [True, False])
def test_a_langchain_agents_user_is_the_person(by_name):
    with sync.Memory.open("memory:", embedder=None) as memory:

        def ask(thread, text, person):
            model = FakeModel()
            given = {"person": person} if by_name else {}
            agent = create_agent(model, middleware=[FirnlineMiddleware(memory, **given)])
            config = {"thread_id": thread} if by_name else {"thread_id": thread, "user_id": person}
            agent.invoke({"messages": [("user", text)]}, {"configurable": config})
            return str(model.seen[-1])

        ask("1", HOME, "ana")
        assert memory.head("1").person == "ana"
        assert KNOWN in ask("2", ASKED, "ana")
        assert KNOWN not in ask("3", ASKED, "ben")
        assert KNOWN not in ask("4", ASKED, None)
        assert memory.head("4").person is None
        with pytest.raises(ConflictError, match="with another person"):
            ask("2", ASKED, "ben")


def test_what_an_agent_asks_another_agent_is_not_said_by_the_person():
    with sync.Memory.open("memory:", embedder=None) as memory:
        inner = create_agent(FakeModel(), middleware=[FirnlineMiddleware(memory)])

        @tool
        def research(task: str) -> str:
            """Let another agent do it."""
            return inner.invoke({"messages": [("user", task)]})["messages"][-1].text

        def answer(messages):
            if isinstance(messages[-1], ToolMessage):
                return AIMessage("Done.")
            return call("research", {"task": "I live in Paris."}, "c1")

        outer = create_agent(
            FakeModel(answer=answer), [research], middleware=[FirnlineMiddleware(memory)]
        )
        config = {"configurable": {"thread_id": "t", "user_id": "ana"}}
        outer.invoke({"messages": [("user", HOME)]}, config)
        people = {head.conversation: head.person for head in memory.conversations()}
        assert people.pop("t") == "ana"
        assert set(people.values()) == {None}
        assert [fact.value for fact in memory.facts(person="ana", history=True)] == ["Lisbon"]


async def test_a_position_of_a_langgraph_namespace_names_the_person(memory):
    store = FirnlineStore(memory, person=1)
    await store.aput(("memories", "ana"), "1", {"text": "User moved to Lisbon."})
    await store.aput(("memories", "ana"), "2", {"text": "likes tea"})
    await store.aput(("memories", "ben"), "1", {"text": "Lives in Oslo"})
    await store.aput(("shared",), "1", {"text": "Lives in Rome"})
    found = {(one.value, one.source) for one in await memory.facts(person="ana")}
    assert found == {("Lisbon", "memory"), ("tea", "memory")}
    assert [one.value for one in await memory.facts(person="ben")] == ["Oslo"]
    assert {one.person for one in await memory.people()} == {"ana", "ben"}
    context = await memory.context("chat", 4_000, ASKED, person="ana")
    assert KNOWN in context["profile"].messages[0].text


async def test_a_llamaindex_block_and_an_agent_frameworks_history_are_with_a_person(memory):
    block = FirnlineMemoryBlock(memory=memory, person="ana")
    said = [ChatMessage(role="user", content=HOME)]
    await block.aput(said, session_id="1", from_short_term_memory=True)
    assert KNOWN in await block.aget(session_id="2")
    history = FirnlineHistory(memory, 4_000, person="ana")
    told = await history.get_messages("3")
    assert KNOWN in told[0].text
    await history.save_messages("3", [FrameworkMessage("user", ["I work at Miele."])])
    assert {one.value for one in await memory.facts(person="ana")} == {"Lisbon", "Miele"}
    other = FirnlineHistory(memory, 4_000, person="ben")
    assert await other.get_messages("4") == []
