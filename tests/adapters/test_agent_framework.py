"""Microsoft's Agent Framework with our history provider and a scripted chat client."""

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
)

from firnline import Budget, Memory
from firnline.adapters.agent_framework import FirnlineHistory
from firnline.adapters.agent_framework_messages import from_framework, to_framework
from firnline.errors import InputError
from firnline.tokens import counter


class FakeClient(FunctionInvocationLayer, BaseChatClient):
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


async def test_it_must_be_known_which_conversation_it_is(memory):
    with pytest.raises(InputError, match="which conversation"):
        await FirnlineHistory(memory, Budget(1_000)).get_messages(None)


@pytest.mark.parametrize(
    "message",
    [
        Message("user", ["hi"], author_name="ana", message_id="m1"),
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
