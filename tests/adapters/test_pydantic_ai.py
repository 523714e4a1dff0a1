"""pydantic-ai with our capability, with its own function model."""

import pytest
from pydantic_ai import Agent, BinaryContent, ModelMessagesTypeAdapter
from pydantic_ai.messages import (
    FilePart,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel

from firnline import Budget, Memory
from firnline.adapters.pydantic_ai import FirnlineCapability
from firnline.adapters.pydantic_messages import items_of, message_of
from firnline.log.tokens import counter


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        yield memory


def size(messages, info):
    count = counter()
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description or "",
                "parameters": tool.parameters_json_schema,
            },
        }
        for tool in (*info.function_tools, *info.output_tools)
    ]
    said = [message_of(place) for place in items_of(messages)]
    system = count.text(info.instructions or "") + 4 if info.instructions else 0
    return count.messages(said) + count.tools(tools) + system


@pytest.mark.promise("within-budget")
async def test_the_request_fits_and_the_runs_history_stays_complete(memory):
    seen = []

    async def answer(messages, info):
        seen.append((list(messages), size(messages, info), info.instructions))
        newest = messages[-1].parts[-1]
        if isinstance(newest, UserPromptPart) and len(seen) % 2:
            calls = [ToolCallPart("lookup", {"number": n}, f"c{len(seen)}-{n}") for n in (1, 2)]
            return ModelResponse([ThinkingPart("hm"), *calls])
        return ModelResponse([TextPart("ok")])

    agent = Agent(
        FunctionModel(answer),
        instructions="SYS",
        capabilities=[FirnlineCapability(memory, budget=Budget(1_500, 200), conversation="c")],
    )

    @agent.tool_plain
    def lookup(number: int) -> str:
        """Look a number up."""
        return f"{number} is a number. " + "word " * 20

    history = []
    for number in range(24):
        result = await agent.run(f"m{number} " + "word " * 30, message_history=history)
        before, history = len(history), result.all_messages()
        assert len(history) > before
    assert max(tokens for _, tokens, _ in seen) <= 1_300
    assert {instructions for *_, instructions in seen} == {"SYS"}
    for messages, *_ in seen:
        parts = [part for message in messages for part in message.parts]
        calls = [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)]
        results = [part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)]
        assert sorted(calls) == sorted(results)
        assert isinstance(messages[-1], ModelRequest)
    log = await memory.read("c")
    assert len(log) == len(items_of(history))
    asked = [entry.message.text.split()[0] for entry in log if entry.message.role == "user"]
    assert asked == [f"m{n}" for n in range(24)]
    assert await memory.digests("c")
    whole = [message for message in seen[-1][0] if isinstance(message, ModelResponse)]
    assert any(isinstance(part, ThinkingPart) for m in whole for part in m.parts)


@pytest.mark.promise("durable")
async def test_a_run_that_fails_loses_nothing_and_a_retry_stores_nothing_twice(memory):
    fails = [True]

    async def answer(messages, info):
        if fails and fails.pop():
            assert [entry.message.text for entry in await memory.read("c")] == ["Hello?"]
            raise RuntimeError("no model today")
        return ModelResponse([TextPart("Here.")])

    agent = Agent(
        FunctionModel(answer), capabilities=[FirnlineCapability(memory, 8_000, conversation="c")]
    )
    with pytest.raises(RuntimeError, match="today"):
        await agent.run("Hello?")
    await agent.run("Hello?")
    assert [entry.message.text for entry in await memory.read("c")] == ["Hello?", "Here."]


async def test_a_history_that_was_saved_continues_in_the_same_conversation(memory):
    async def answer(messages, info):
        return ModelResponse([TextPart("ok")])

    first = Agent(FunctionModel(answer), capabilities=[FirnlineCapability(memory, 8_000)])
    result = await first.run("one")
    saved = result.all_messages_json()
    again = Agent(FunctionModel(answer), capabilities=[FirnlineCapability(memory, 8_000)])
    await again.run("two", message_history=ModelMessagesTypeAdapter.validate_json(saved))
    (head,) = await memory.conversations()
    texts = [entry.message.text for entry in await memory.read(head.conversation)]
    assert texts == ["one", "ok", "two", "ok"]


async def test_a_repeated_message_without_a_history_is_stored_again(memory):
    seen = []

    async def answer(messages, info):
        seen.append(messages[-1].parts[-1].content)
        return ModelResponse([TextPart("ok")])

    agent = Agent(
        FunctionModel(answer),
        system_prompt="SYS",
        capabilities=[FirnlineCapability(memory, 8_000, conversation="c")],
    )
    for _ in range(3):
        await agent.run("continue")
    assert seen == ["continue"] * 3
    texts = [entry.message.text for entry in await memory.read("c")]
    assert texts == ["SYS", *["continue", "ok"] * 3]


async def test_pictures_are_kept_and_reach_the_model_as_they_came(memory):
    picture = BinaryContent(b"\x89PNG", media_type="image/png")
    seen = []

    async def answer(messages, info):
        seen.append(messages[-1].parts[-1].content)
        return ModelResponse([TextPart("A dot.")])

    agent = Agent(
        FunctionModel(answer), capabilities=[FirnlineCapability(memory, 8_000, conversation="c")]
    )
    await agent.run(["What is this?", picture])
    assert seen == [["What is this?", picture]]
    (entry, _) = await memory.read("c")
    assert [part.kind for part in entry.message.content] == ["text", "image"]


def test_other_output_of_models_and_tools_is_stored_with_the_text():
    picture = BinaryContent(b"abc", media_type="image/png")
    paper = BinaryContent(b"abc", media_type="application/pdf")
    history = [
        ModelResponse(
            [
                NativeToolCallPart("web_search", {"q": "tea"}, "n1"),
                NativeToolReturnPart("web_search", {"found": "oolong"}, "n1"),
                TextPart("Here."),
                FilePart(picture),
            ]
        ),
        ModelRequest([ToolReturnPart("draw", ["drawn", picture], "c1")]),
        ModelRequest([ToolReturnPart("print", paper, "c2")]),
    ]
    said, drawn, printed = map(message_of, items_of(history))
    kinds = ["builtin-tool-call", "builtin-tool-return", "image_url", "text"]
    assert [part.type for part in said.content] == kinds
    assert said.content[1].fields["content"] == {"found": "oolong"}
    assert (said.text, drawn.text, printed.text) == ("Here.", "drawn", "")
    assert [part.type for part in drawn.content] == ["text", "image_url"]
    assert [part.fields["media_type"] for part in printed.content] == ["application/pdf"]
