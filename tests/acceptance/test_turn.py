"""Turns: the question is stored first, tools run in bounded rounds, then the answer is stored."""

import asyncio
import json

import pytest

from firnline import Message, Tool, ToolCall, Turn
from firnline.errors import InputError, ModelError
from firnline.models import callable_model
from firnline.testing import call_tool
from firnline.testing.provider_rules import openai_problems

SCHEMA = {
    "type": "object",
    "properties": {"order": {"type": "integer"}},
    "required": ["order"],
    "additionalProperties": False,
}


def find_order(order):
    return {"order": order, "status": "in transit"}


FIND = Tool("find_order", find_order, "Find an order.", SCHEMA)


async def test_a_turn_with_tools_over_real_http(memory, server, model):
    server.say(call_tool("find_order", {"order": 1}), "Order 1 is in transit.")
    turn = await memory.turn("c", "Where is order 1?", model, tools=[FIND], system="Be brief.")
    assert turn.text == "Order 1 is in transit."
    assert turn.calls == 2
    roles = [entry.message.role for entry in await memory.read("c")]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert json.loads(turn.tool_results[0].message.text)["status"] == "in transit"
    for request in server.requests:
        assert openai_problems(request["messages"]) == []
        assert request["messages"][0] == {"role": "system", "content": "Be brief."}


async def test_wrong_calls_are_answered_so_that_the_model_can_read_it(memory):
    calls = [
        ToolCall.of("1", "no_such_tool", {}),
        ToolCall.of("2", "find_order", "{broken"),
        ToolCall.of("3", "find_order", {"order": 1, "tenant": "other"}),
        ToolCall.of("4", "find_order", {}),
        ToolCall.of("5", "explode", {}),
    ]
    seen = []

    async def model(messages, tools=()):
        seen.append(messages)
        return Message.assistant(tool_calls=calls) if len(seen) == 1 else "Understood."

    def explode():
        raise ValueError("boom")

    turn = await memory.turn("c", "Go.", model, tools=[FIND, Tool("explode", explode)])
    errors = [json.loads(entry.message.text)["error"] for entry in turn.tool_results]
    assert "no tool 'no_such_tool'" in errors[0]
    assert "not JSON" in errors[1]
    assert "unknown arguments: tenant" in errors[2]
    assert "missing arguments: order" in errors[3]
    assert "ValueError: boom" in errors[4]
    assert turn.text == "Understood."


async def test_tool_rounds_are_bounded(memory):
    offered = []

    async def model(messages, tools=()):
        offered.append(bool(tools))
        return Message.assistant(
            tool_calls=[ToolCall.of(str(len(offered)), "find_order", {"order": 1})]
        )

    turn = await memory.turn("c", "Go.", model, tools=[FIND], rounds_max=3)
    assert offered == [True, True, True, False]
    assert turn.text == "(no answer within the allowed rounds)"
    turn = await memory.turn("c", "Go.", model)
    assert turn.text == "(no answer but a call of a tool that was not offered)"
    context = await memory.context("c", 4_000)
    assert openai_problems(context.to_openai()) == []


async def test_a_model_that_fails_leaves_the_question_and_a_typed_error(memory, server, model):
    server.fail("500", repeat=True)
    with pytest.raises(ModelError):
        await memory.turn("c", "Are you there?", model)
    assert [e.message.text for e in await memory.read("c")] == ["Are you there?"]
    server.heal()
    server.say("Yes.")
    turn = await memory.turn("c", "And now?", model)
    assert turn.text == "Yes."
    assert [e.message.role for e in await memory.read("c")] == ["user", "user", "assistant"]


async def test_a_degraded_answer_if_one_is_configured(memory, server, model):
    server.fail("refused", "500", repeat=True)
    turn = await memory.turn("c", "Hello?", model, apology="I cannot answer right now.")
    assert turn.text == "I cannot answer right now."
    assert turn.degraded
    assert (await memory.read("c"))[-1].message.metadata == {"degraded": True}


async def test_streaming_gives_pieces_and_then_the_turn(memory, server, model):
    server.say("One two three four five.")
    pieces = [item async for item in memory.stream("c", "Count.", model)]
    assert isinstance(pieces[-1], Turn)
    assert "".join(pieces[:-1]) == "One two three four five." == pieces[-1].text
    assert (await memory.head("c")).seq == 1


async def test_a_stream_that_is_cut_stores_no_answer(memory, server, model):
    server.say("This will be cut off in the middle of the sentence.")
    server.fail("cut")
    with pytest.raises(ModelError):
        async for _ in memory.stream("c", "Tell me.", model):
            pass
    assert [e.message.role for e in await memory.read("c")] == ["user"]


async def test_a_turn_that_is_cancelled_keeps_the_question(memory):
    started = asyncio.Event()

    async def model(messages):
        started.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(memory.turn("c", "Hello?", callable_model(model)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [e.message.text for e in await memory.read("c")] == ["Hello?"]


async def test_a_repeated_turn_is_stored_and_asked_once(memory):
    asked = []

    async def model(messages):
        asked.append(messages)
        return "Hello."

    turns = [await memory.turn("c", "Hi.", model, idempotency_key="k1") for _ in range(2)]
    assert [e.message.text for e in await memory.read("c")] == ["Hi.", "Hello."]
    assert turns[0].answer == turns[1].answer
    assert len(asked) == 1


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_turn_repeated_while_it_is_made_is_asked_once(memory, streamed):
    """A client that waited too long for an answer, and asks again for it."""
    asked, go = [], asyncio.Event()

    async def model(messages):
        asked.append(messages)
        await go.wait()
        return f"Hello {len(asked)}."

    async def turn():
        if not streamed:
            return await memory.turn("c", "Hi.", model, idempotency_key="k1")
        return [item async for item in memory.stream("c", "Hi.", model, idempotency_key="k1")][-1]

    turns = [asyncio.create_task(turn()) for _ in range(3)]
    while not asked:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.05)
    go.set()
    done = await asyncio.gather(*turns)
    assert [e.message.text for e in await memory.read("c")] == ["Hi.", "Hello 1."]
    assert all(turn.answer == done[0].answer for turn in done)
    assert len(asked) == 1


async def test_answers_are_stored_however_much_others_say(memory):
    """An answer is stored at the end of a log that others lengthen all the time."""
    append, said = memory._store.append, []

    async def overtaken(key, drafts, **options):
        if options.get("expected_seq") is not None:
            said.append(await append(key, drafts))
            assert len(said) < 100, "it is tried for ever"
        return await append(key, drafts, **options)

    async def model(messages):
        return "Hello."

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory._store, "append", overtaken)
        turn = await memory.turn("c", "Hi.", model)
    assert turn.answer.seq == len(said) + 1


async def test_a_tool_result_is_stored_in_full_however_long(memory):
    rows = "\n".join(f"row {number}" for number in range(9_000))
    said = []

    async def model(messages, tools=()):
        said.append(messages)
        if len(said) == 1:
            return Message.assistant(tool_calls=[ToolCall.of("1", "table", {})])
        return "Nine thousand rows."

    turn = await memory.turn(
        "c", "Get it.", model, tools=[Tool("table", lambda: rows)], budget=4_000
    )
    assert turn.tool_results[0].message.text == rows
    assert "are left out here" in said[1][-1]["content"]


async def test_what_the_user_says_while_a_tool_works_does_not_part_it_from_its_call(memory):
    started, go = asyncio.Event(), asyncio.Event()
    seen = []

    async def slow():
        started.set()
        await go.wait()
        return "done"

    async def model(messages, tools=()):
        seen.append(messages)
        if len(seen) == 1:
            return Message.assistant(tool_calls=[ToolCall.of("1", "slow", {})])
        return "Both answered."

    task = asyncio.create_task(memory.turn("c", "Do it.", model, tools=[Tool("slow", slow)]))
    await started.wait()
    await memory.append("c", Message.user("And also: hi."))
    go.set()
    await task
    assert [m["role"] for m in seen[1]] == ["user", "assistant", "tool", "user"]
    assert seen[1][2]["content"] == "done"
    assert openai_problems(seen[1]) == []


async def test_without_a_model_a_turn_says_what_to_do(memory):
    with pytest.raises(InputError, match="needs a model"):
        await memory.turn("c", "Hi.")
    assert await memory.head("c") is None
