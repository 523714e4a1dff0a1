"""The OpenAI Agents SDK with a session of ours, with the SDK's own scripted model."""

from contextlib import nullcontext

import pytest
from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message, function_call
from hypothesis import given
from hypothesis import strategies as st

from firnline import Budget, Memory, Message
from firnline.adapters.openai_agents import FirnlineSession
from firnline.log.openai_items import items_of, messages_of, plain_calls
from firnline.log.tokens import counter

set_tracing_disabled(True)


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        yield memory


@function_tool
def clock() -> str:
    """The time."""
    return "12:00"


async def test_it_is_a_session_and_everything_is_kept_while_the_view_fits(memory):
    session = FirnlineSession("c", memory, Budget(1_000, 300))
    assert isinstance(session, Session)
    calls = [function_call("clock", {}, call_id=f"c{n}") for n in range(2)]
    steps = [calls, [assistant_message("It is noon.")]]
    model = ScriptedModel([*steps, *[[assistant_message(f"r{n}")] for n in range(30)]])
    agent = Agent(name="a", instructions="SYS", model=model, tools=[clock])
    sizes = []
    for number in range(31):
        await Runner.run(agent, f"m{number} " + "word " * 40, session=session)
        sizes.append(counter().messages(messages_of(model.last_call.input)))
    model.assert_complete()
    assert max(sizes) <= 700 + 60  # what a session cannot know is the new input
    log = await memory.read("c")
    said = [entry.message.text for entry in log if entry.message.role == "user"]
    assert [text.split()[0] for text in said] == [f"m{n}" for n in range(31)]
    assert [entry.message.role for entry in log[:5]] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert await memory.digests("c")
    assert (await memory.verify("c")).ok


@pytest.mark.promise("within-budget")
@pytest.mark.parametrize("answered", [True, False])
async def test_a_long_paste_is_shortened_once_it_is_past(memory, answered):
    session = FirnlineSession("c", memory, Budget(1_000, 200))
    paste = RuntimeError("too long") if not answered else [assistant_message("A contract.")]
    after = [[assistant_message(f"r{n}")] for n in range(3)]
    model = ScriptedModel([[assistant_message("hello")], paste, *after])
    agent = Agent(name="a", model=model)
    await Runner.run(agent, "hi", session=session)
    text = "The rent is due. " + "word " * 1_050 + "The end."
    with nullcontext() if answered else pytest.raises(RuntimeError, match="too long"):
        await Runner.run(agent, text, session=session)
    for question in ("so what is the rent?", "and when?", "thanks"):
        past = await session.get_items()
        assert counter().messages(messages_of(past)) <= 800
        await Runner.run(agent, question, session=session)
        sent = [item["content"] for item in model.last_call.input]
        assert sent[-1] == question
        assert any("The rent is due." in str(shown) for shown in sent)
    assert text in [entry.message.text for entry in await memory.read("c")]


@pytest.mark.promise("durable")
async def test_the_users_input_is_stored_before_the_model_is_asked(memory):
    session = FirnlineSession("c", memory, 8_000)
    model = ScriptedModel([RuntimeError("no model today")])
    with pytest.raises(RuntimeError, match="today"):
        await Runner.run(Agent(name="a", model=model), "Are you there?", session=session)
    assert [entry.message.text for entry in await memory.read("c")] == ["Are you there?"]


async def test_popping_and_clearing_lose_nothing(memory):
    session = FirnlineSession("c", memory, 8_000)
    items = [
        {"role": "user", "content": "one"},
        {"type": "reasoning", "id": "r1", "summary": []},
        {"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}", "id": "f1"},
        {"type": "function_call_output", "call_id": "x", "output": "2"},
    ]
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(limit=2) == items[-2:]
    assert [await session.pop_item() for _ in range(2)] == [items[3], items[2]]
    again = FirnlineSession("c", memory, 8_000)
    assert await again.get_items() == items[:2]
    await again.add_items([{"role": "user", "content": "two"}])
    assert len(await session.get_items()) == 3
    await session.clear_session()
    assert await again.get_items() == []
    assert await again.pop_item() is None
    await again.add_items([{"role": "user", "content": "three"}])
    assert await session.get_items() == [{"role": "user", "content": "three"}]
    assert len(await memory.read("c")) == 3, "the first conversation is as it was"


RAN = [{"stdout": "a.txt " * 400, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
SHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64," + "A" * 9_000}
OTHER_TOOLS = [
    ("computer_call", {"action": {"type": "screenshot"}}, {"output": SHOT}),
    ("shell_call", {"action": {"commands": ["ls"]}}, {"output": RAN}),
    ("apply_patch_call", {"operation": {"type": "delete_file", "path": "a"}}, {"status": "done"}),
    ("custom_tool_call", {"name": "sql", "input": "select 1"}, {"output": "1"}),
]


@pytest.mark.parametrize("tool", OTHER_TOOLS, ids=lambda tool: tool[0])
@pytest.mark.parametrize("room", [3_000, 700])
async def test_a_tool_that_is_no_function_keeps_its_result(memory, tool, room):
    kind, call, result = tool
    items = [
        {"role": "user", "content": "do it"},
        {"type": kind, "call_id": "k1", **call},
        {"type": "function_call", "call_id": "k2", "name": "f", "arguments": "{}"},
        {"type": f"{kind}_output", "call_id": "k1", **result},
        {"type": "function_call_output", "call_id": "k2", "output": "2"},
        {"role": "assistant", "content": "done"},
    ]
    session = FirnlineSession("c", memory, Budget(room, 100))
    await session.add_items(items)
    shown = await session.get_items()
    tools = sorted((item["call_id"], item["type"]) for item in shown if "call_id" in item)
    pairs = list(zip(tools[::2], tools[1::2], strict=True))
    assert all(result == (name, f"{called}_output") for (name, called), result in pairs)
    assert len(pairs) == 2 or (room < 2_000 and not pairs)
    if room > 2_000:
        assert shown == items
    assert await session.get_items(limit=9) == items


def test_a_result_that_is_shortened_makes_its_calls_plain():
    said = [
        {"type": "shell_call", "call_id": "k1", "action": {"commands": ["ls"]}},
        {"type": "function_call", "call_id": "k2", "name": "f", "arguments": "{}"},
        {"type": "shell_call_output", "call_id": "k1", "output": RAN},
        {"type": "custom_tool_call", "call_id": "k3", "name": "g", "input": "x"},
    ]
    messages = messages_of(said)
    assert plain_calls((message, message.role != "tool") for message in messages) == {"k1", "k2"}
    assert plain_calls((message, True) for message in messages) == set()
    plain = [item for message in messages[:2] for item in items_of(message, whole=False)]
    kinds = ["function_call", "function_call", "function_call_output"]
    assert [item["type"] for item in plain] == kinds


async def test_tools_that_the_provider_looked_up_come_back_as_they_were(memory):
    about = {"execution": "client", "status": "completed"}
    items = [
        {"role": "user", "content": "find a tool"},
        {"type": "tool_search_call", "call_id": "k1", "arguments": {"q": "x"}, **about},
        {"type": "tool_search_output", "call_id": "k1", "tools": [{"type": "function"}], **about},
        {"type": "tool_search_call", "call_id": None, "arguments": {}, **about},
        {"type": "tool_search_output", "call_id": None, "tools": [], **about},
    ]
    session = FirnlineSession("c", memory, Budget(3_000, 100))
    await session.add_items(items)
    assert await session.get_items() == items


texts = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=20)
said = st.builds(lambda role, text: {"role": role, "content": text}, st.just("user"), texts)
answered = st.builds(
    lambda text, more: {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": part, "annotations": []} for part in text],
        **more,
    },
    st.lists(texts, max_size=3),
    st.sampled_from([{}, {"phase": "final"}]),
)
plainly = st.builds(lambda text: {"role": "assistant", "content": text}, texts)
called = st.builds(
    lambda name, more: {
        "type": "function_call",
        "call_id": name,
        "name": "f",
        "arguments": '{"a": 1}',
        **more,
    },
    st.sampled_from("abc"),
    st.sampled_from([{}, {"id": "x", "status": "completed"}]),
)
returned = st.builds(
    lambda output: {"type": "function_call_output", "call_id": "a", "output": output},
    st.one_of(texts, st.just([{"type": "input_text", "text": "t"}]), st.just({"image": "i"})),
)
other = st.sampled_from(
    [
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "xyz"},
        {"type": "web_search_call", "id": "w", "status": "completed"},
    ]
)


@given(st.lists(st.one_of(said, answered, plainly, called, returned, other), max_size=8))
def test_items_come_back_as_they_were(items):
    messages = messages_of(items)
    assert [item for message in messages for item in items_of(message)] == items


def test_messages_that_came_otherwise_become_plain_items():
    assert items_of(Message.user("hi")) == [{"role": "user", "content": "hi"}]
    assert items_of(Message.tool("2", tool_call_id="x"))[0]["type"] == "function_call_output"
