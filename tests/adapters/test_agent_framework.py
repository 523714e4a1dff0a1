"""Microsoft's Agent Framework with our history provider and a scripted chat client."""

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

from firnline import Budget, Memory
from firnline.adapters.agent_framework import FirnlineHistory
from firnline.adapters.agent_framework_messages import from_framework, to_framework
from firnline.errors import BudgetError, InputError
from firnline.log.tokens import counter


class FakeClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    def __init__(self, answer):
        super().__init__()
        self.answer, self.seen = answer, []

    def _inner_get_response(self, *, messages, stream=False, options=None, **kwargs):
        self.seen.append(list(messages))

        async def answered():
            said = await self.answer(messages)
            return ChatResponse(messages=[Message("assistant", said)])

        return answered()


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        yield memory


def size(messages):
    return counter().messages([ours for message in messages for ours in from_framework(message)])


def clock() -> str:
    """The time."""
    return "12:00"


async def test_everything_is_kept_and_what_the_agent_sees_fits(memory):
    async def answer(messages):
        last = messages[-1]
        if last.role == "user" and "time" in last.text:
            return [Content.from_function_call(f"c{len(client.seen)}", "clock", arguments="{}")]
        return ["ok"]

    client = FakeClient(answer)
    history = FirnlineHistory(memory, Budget(1_200, 200))
    agent = Agent(client=client, instructions="SYS", tools=[clock], context_providers=[history])
    session = AgentSession(session_id="c")
    for number in range(30):
        word = "time" if number % 3 == 0 else "word"
        await agent.run(f"m{number} " + f"{word} " * 40, session=session)
    for sent in client.seen:
        assert size(sent) <= 1_000 + 60  # the call and the result of this very run come on top
        calls = [c.call_id for m in sent for c in m.contents if c.type == "function_call"]
        results = [c.call_id for m in sent for c in m.contents if c.type == "function_result"]
        assert calls == results
    log = await memory.read("c")
    asked = [e.message.text.split()[0] for e in log if e.message.role == "user"]
    assert asked == [f"m{n}" for n in range(30)]
    assert [e.message.role for e in log[:4]] == ["user", "assistant", "tool", "assistant"]
    assert len(log) == 10 * 4 + 20 * 2
    assert await memory.digests("c")


@pytest.mark.promise("within-budget")
@pytest.mark.parametrize("sizes", [(1_060, 5), (560, 560), (560, 5, 560)])
async def test_a_long_input_is_shortened_once_it_is_past(memory, sizes):
    async def answer(messages):
        return ["ok"]

    client = FakeClient(answer)
    history = FirnlineHistory(memory, Budget(1_000, 100))
    agent = Agent(client=client, context_providers=[history])
    session = AgentSession(session_id="c")
    for number, words in enumerate(sizes):
        await agent.run(f"m{number} " + "word " * words, session=session)
        assert client.seen[-1][-1].text.startswith(f"m{number} ")
        assert number == 0 or size(client.seen[-1]) <= 900
    shown = [message.text for message in client.seen[1]]
    assert any(text.startswith("m0 ") for text in shown)
    assert any("left out" in text for text in shown) == (sum(sizes[:2]) > 900)
    asked = [e.message.text for e in await memory.read("c") if e.message.role == "user"]
    assert asked == [f"m{n} " + "word " * words for n, words in enumerate(sizes)]


async def test_an_input_that_was_never_answered_is_shortened_too(memory):
    fails = [True]

    async def answer(messages):
        if fails and fails.pop():
            raise RuntimeError("too long")
        return ["ok"]

    history = FirnlineHistory(memory, Budget(1_000, 100))
    agent = Agent(client=FakeClient(answer), context_providers=[history])
    session = AgentSession(session_id="c")
    with pytest.raises(RuntimeError, match="too long"):
        await agent.run("word " * 1_060, session=session)
    assert (await agent.run("And now?", session=session)).text == "ok"


async def test_an_input_that_leaves_no_room_is_named(memory):
    async def answer(messages):
        return ["ok"]

    history = FirnlineHistory(memory, Budget(1_000, 100))
    agent = Agent(client=FakeClient(answer), context_providers=[history])
    session = AgentSession(session_id="c")
    await agent.run("hi", session=session)
    for words in (896, 900, 1_060):
        with pytest.raises(BudgetError, match="input") as caught:
            await agent.run("word " * words, session=session)
        assert caught.value.context["floor"] > caught.value.context["available"] == 900
        assert caught.value.context["blockers"]["input"] > words
    assert (await agent.run("Still there?", session=session)).text == "ok"


@pytest.mark.promise("durable")
async def test_the_input_is_durable_before_the_agent_runs(memory):
    stored = []

    async def answer(messages):
        stored.append([entry.message.text for entry in await memory.read("c")])
        raise RuntimeError("no model today")

    agent = Agent(
        client=FakeClient(answer), context_providers=[FirnlineHistory(memory, Budget(1_000))]
    )
    with pytest.raises(RuntimeError, match="today"):
        await agent.run("Hello?", session=AgentSession(session_id="c"))
    assert stored == [["Hello?"]]
    assert [entry.message.text for entry in await memory.read("c")] == ["Hello?"]


def contents(messages):
    return [(c.type, c.call_id or c.text) for message in messages for c in message.contents]


def calling(*ids):
    """Calls the tool `pay` with these ids, and thanks for its results."""

    async def answer(messages):
        if messages[-1].role == "tool":
            return ["thanks"]
        return [Content.from_function_call(i, "pay", arguments='{"amount": 5}') for i in ids]

    return answer


@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("approved", [True, False])
async def test_a_call_that_waits_for_approval_is_there_when_it_comes(memory, approved, each):
    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    client = FakeClient(calling("p1", "p2"))
    history = FirnlineHistory(memory, Budget(2_000, 200))
    agent = Agent(
        client=client,
        tools=[pay],
        context_providers=[history],
        require_per_service_call_history_persistence=each,
    )
    session = AgentSession(session_id="c")
    asked = (await agent.run("pay 5 twice", session=session)).user_input_requests
    decided = [request.to_function_approval_response(approved) for request in asked]
    answer = await agent.run(Message("user", decided), session=session)
    assert answer.text == "thanks"
    assert contents(client.seen[-1]) == [
        ("text", "pay 5 twice"),
        ("function_call", "p1"),
        ("function_call", "p2"),
        ("function_result", "p1"),
        ("function_result", "p2"),
    ]


async def test_what_is_kept_after_each_request_comes_with_the_calls_of_it(memory):
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    client = FakeClient(calling("p1", "p2"))
    agent = Agent(
        client=client,
        tools=[pay],
        context_providers=[FirnlineHistory(memory, Budget(2_000, 200))],
        require_per_service_call_history_persistence=True,
    )
    await agent.run("pay 5 twice", session=AgentSession(session_id="c"))
    types = [kind for kind, _ in contents(client.seen[-1])]
    assert types == ["text", *["function_call"] * 2, *["function_result"] * 2]
    log = [entry.message.role for entry in await memory.read("c")]
    assert log == ["user", "assistant", "tool", "tool", "assistant"]


async def test_it_must_be_known_which_conversation_it_is(memory):
    with pytest.raises(InputError, match="has no id"):
        await FirnlineHistory(memory, Budget(1_000)).get_messages(None)


@pytest.mark.parametrize(
    "message",
    [
        Message("user", ["hi"], author_name="ana", message_id="m1"),
        Message("developer", ["be brief"]),
        Message("user", ["look", Content.from_data(b"\x89PNG", "image/png")]),
        Message("assistant", [Content.from_text_reasoning(text="hm"), "so"]),
        Message("assistant", [Content.from_function_call("c", "f", arguments='{"a": 1}')]),
        Message("tool", [Content.from_function_result("c", result="42")]),
    ],
    ids=lambda message: message.contents[0].type,
)
def test_messages_come_back_as_they_were(message):
    (ours,) = from_framework(message)
    again = to_framework(ours)
    assert [c.to_dict() for c in again.contents] == [c.to_dict() for c in message.contents]
    assert (again.author_name, again.message_id) == (message.author_name, message.message_id)
