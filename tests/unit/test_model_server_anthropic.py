"""The model server speaks Anthropic's protocol, too: the real SDK talks to it, and it is strict."""

import anthropic
import httpx2
import pytest

from firnline.testing import ModelServer, call_tool

ASK = [{"role": "user", "content": "Hello there"}]
TOOL = {
    "name": "look_up",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
BASE = {"model": "m", "max_tokens": 99}
THOUGHT = {"type": "thinking", "thinking": "Rome it is.", "signature": "c2ln"}
CALL = {"type": "tool_use", "id": "a", "name": "look_up", "input": {"city": "Rome"}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "sunny"}


@pytest.fixture
async def server():
    async with ModelServer(pause=0.05) as server:
        yield server


@pytest.fixture
async def client(server):
    url = server.url.removesuffix("/v1")
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
        yield client


async def test_the_sdk_gets_an_answer_whole_and_in_events(client):
    answer = await client.messages.create(**BASE, messages=ASK)
    assert answer.content[0].text == "You said: Hello there"
    assert (answer.stop_reason, answer.model) == ("end_turn", "m")
    async with client.messages.stream(**BASE, messages=ASK) as stream:
        kinds = [event.type async for event in stream]
        streamed = await stream.get_final_message()
    assert streamed.content[0].text == answer.content[0].text
    assert streamed.usage == answer.usage
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("text") == 4  # word by word


async def test_the_sdk_gets_thoughts_and_calls(client, server):
    blocks = [THOUGHT, {"type": "text", "text": "Let me see."}, CALL]
    server.say({"content": blocks}, {"content": blocks}, call_tool("look_up", {"city": "Oslo"}))
    whole = await client.messages.create(**BASE, messages=ASK)
    async with client.messages.stream(**BASE, messages=ASK) as stream:
        streamed = await stream.get_final_message()
    for answer in (whole, streamed):
        found = [block.to_dict(exclude_none=True) for block in answer.content]
        assert found == blocks
        assert answer.stop_reason == "tool_use"
    called = await client.messages.create(**BASE, messages=ASK)
    assert called.content[0].input == {"city": "Oslo"}
    forced = await client.messages.create(
        **BASE, messages=ASK, tools=[TOOL], tool_choice={"type": "any"}
    )
    assert forced.content[0].input == {"city": "none"}


@pytest.mark.parametrize(
    ("messages", "more", "why"),
    [
        ([], {}, "at least one message"),
        ([{"role": "assistant", "content": "hi"}], {}, "the user first"),
        ([*ASK, *ASK], {}, "alternate"),
        ([{"role": "tool", "content": "hi"}], {}, "alternate"),
        ([{"role": "user", "content": []}], {}, "non-empty"),
        ([{"role": "user", "content": " "}], {}, "non-whitespace"),
        ([{**ASK[0], "name": "Ana"}], {}, "Extra inputs"),
        ([{"role": "user", "content": [RESULT]}], {}, "tool_result"),
        ([*ASK, {"role": "assistant", "content": [CALL]}], {}, "without `tool_result`"),
        ([*ASK, {"role": "assistant", "content": [CALL]}, *ASK], {}, "tool_use"),
        (
            [
                *ASK,
                {"role": "assistant", "content": [CALL]},
                {"role": "user", "content": [{"type": "text", "text": "here"}, RESULT]},
            ],
            {},
            "come first",
        ),
        (
            [*ASK, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [RESULT]}],
            {"tools": []},
            "must define tools",
        ),
        (
            [*ASK, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [RESULT]}],
            {"thinking": {"type": "adaptive"}},
            "Expected `thinking`",
        ),
        (
            [
                *ASK,
                {"role": "assistant", "content": [{**THOUGHT, "signature": ""}, CALL]},
                {"role": "user", "content": [RESULT]},
            ],
            {},
            "signature",
        ),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "x", "cache_control": {}}] * 5,
                }
            ],
            {},
            "maximum of 4",
        ),
        ([{"role": "user", "content": "long " * 200}], {}, "prompt is too long"),
    ],
)
async def test_what_anthropic_would_refuse_is_refused(client, server, messages, more, why):
    server.window_tokens = 150
    with pytest.raises(anthropic.BadRequestError, match=why):
        await client.messages.create(**{**BASE, "messages": messages, "tools": [TOOL], **more})


async def test_faults_have_the_shape_of_anthropics_errors(client, server):
    for fault, kind in (
        ("429", anthropic.RateLimitError),
        ("529", anthropic.OverloadedError),
        ("context_length", anthropic.BadRequestError),
    ):
        server.fail(fault)
        with pytest.raises(kind) as caught:
            await client.messages.create(**BASE, messages=ASK)
        assert caught.value.body["type"] == "error"
    server.fail("error_body", "cut")
    with pytest.raises(anthropic.APIStatusError):
        async with client.messages.stream(**BASE, messages=ASK) as stream:
            await stream.get_final_message()
    with pytest.raises(httpx2.RemoteProtocolError):
        async with client.messages.stream(**BASE, messages=ASK) as stream:
            await stream.get_final_message()
    server.fail("length", "content_filter")
    reasons = [(await client.messages.create(**BASE, messages=ASK)).stop_reason for _ in range(2)]
    assert reasons == ["max_tokens", "refusal"]
