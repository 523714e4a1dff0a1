"""The test model server with the real SDKs of OpenAI and Anthropic: answers, streams, errors."""

import json
from typing import NamedTuple

import anthropic
import httpx2
import openai
import pytest

from firnline.testing import ModelServer, call_tool

ASK = [{"role": "user", "content": "Hello there"}]
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
BASE = {"model": "m", "max_tokens": 99}
TOOL = {"name": "look_up", "input_schema": PARAMETERS}
THOUGHT = {"type": "thinking", "thinking": "Rome it is.", "signature": "c2ln"}
CALL = {"type": "tool_use", "id": "a", "name": "look_up", "input": {"city": "Rome"}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "sunny"}


class Answer(NamedTuple):
    """What both SDKs return, in one shape."""

    text: str | None
    calls: list
    reason: str
    model: str
    tokens: tuple[int, int]
    messages: list
    """The answer and a result of each of its calls, as the next request has them."""


class OpenAI:
    """Requests by OpenAI's SDK."""

    errors = openai
    reasons = {"stop": "stop", "tools": "tool_calls", "length": "length"}  # noqa: RUF012

    def __init__(self, url):
        self.client = openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0)

    async def ask(self, messages=ASK, *, stream=False, tools=False, forced=False):
        function = {"name": "look_up", "parameters": PARAMETERS}
        more = {"tools": [{"type": "function", "function": function}]} if tools else {}
        if forced:
            more["tool_choice"] = "required"
        create = self.client.chat.completions
        if stream:
            more["stream_options"] = {"include_usage": True}
            async with create.stream(model="m", messages=messages, **more) as events:
                answer = await events.get_final_completion()
        else:
            answer = await create.create(model="m", messages=messages, **more)
        message, usage = answer.choices[0].message, answer.usage
        calls = message.tool_calls or []
        return Answer(
            text=message.content,
            calls=[(call.function.name, json.loads(call.function.arguments)) for call in calls],
            reason=answer.choices[0].finish_reason,
            model=answer.model,
            tokens=(usage.prompt_tokens, usage.completion_tokens),
            messages=[
                message.to_dict(),
                *({"role": "tool", "tool_call_id": call.id, "content": "x"} for call in calls),
            ],
        )


class Anthropic:
    """Requests by Anthropic's SDK."""

    errors = anthropic
    reasons = {"stop": "end_turn", "tools": "tool_use", "length": "max_tokens"}  # noqa: RUF012

    def __init__(self, url):
        url = url.removesuffix("/v1")
        self.client = anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0)

    async def ask(self, messages=ASK, *, stream=False, tools=False, forced=False):
        more = {"tools": [TOOL]} if tools else {}
        if forced:
            more["tool_choice"] = {"type": "any"}
        if stream:
            async with self.client.messages.stream(**BASE, messages=messages, **more) as events:
                answer = await events.get_final_message()
        else:
            answer = await self.client.messages.create(**BASE, messages=messages, **more)
        texts = [block.text for block in answer.content if block.type == "text"]
        calls = [block for block in answer.content if block.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": c.id, "content": "x"} for c in calls]
        return Answer(
            text="".join(texts) or None,
            calls=[(call.name, call.input) for call in calls],
            reason=answer.stop_reason,
            model=answer.model,
            tokens=(answer.usage.input_tokens, answer.usage.output_tokens),
            messages=[
                {"role": "assistant", "content": [b.to_dict() for b in answer.content]},
                {"role": "user", "content": results},
            ],
        )


@pytest.fixture
async def server():
    async with ModelServer(pause=0.05) as server:
        yield server


@pytest.fixture(params=[OpenAI, Anthropic])
async def sdk(request, server):
    sdk = request.param(server.url)
    async with sdk.client:
        yield sdk


@pytest.fixture
async def client(server):
    async with Anthropic(server.url).client as client:
        yield client


# -- both -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer(sdk, stream):
    answer = await sdk.ask(stream=stream)
    assert answer.text == "You said: Hello there"
    assert (answer.reason, answer.model) == (sdk.reasons["stop"], "m")
    assert min(answer.tokens) > 0


async def test_a_stream_has_the_usage_of_a_full_answer(sdk):
    assert (await sdk.ask(stream=True)).tokens == (await sdk.ask()).tokens


@pytest.mark.parametrize("stream", [False, True])
async def test_tool_calls(sdk, server, stream):
    server.say(call_tool("look_up", {"city": "Rome", "days": 3}))
    answer = await sdk.ask(stream=stream, tools=True)
    assert answer.calls == [("look_up", {"city": "Rome", "days": 3})]
    assert answer.reason == sdk.reasons["tools"]
    after = await sdk.ask([*ASK, *answer.messages], stream=stream, tools=True)
    assert after.text == "You said: x"


async def test_a_call_that_is_required(sdk):
    answer = await sdk.ask(tools=True, forced=True)
    assert answer.calls == [("look_up", {"city": "none"})]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("429", "RateLimitError"),
        ("500", "InternalServerError"),
        ("401", "AuthenticationError"),
        ("context_length", "BadRequestError"),
    ],
)
async def test_errors(sdk, server, fault, error):
    server.fail(fault)
    with pytest.raises(getattr(sdk.errors, error)):
        await sdk.ask()


async def test_an_answer_that_is_cut_at_its_length(sdk, server):
    server.fail("length")
    assert (await sdk.ask()).reason == sdk.reasons["length"]


# -- OpenAI -----------------------------------------------------------------------------------


async def test_openais_models_and_the_code_of_an_overflow(server):
    sdk = OpenAI(server.url)
    async with sdk.client as client:
        assert [model.id async for model in client.models.list()] == ["test-model"]
        server.fail("context_length")
        with pytest.raises(openai.BadRequestError) as caught:
            await sdk.ask()
    assert caught.value.code == "context_length_exceeded"


# -- Anthropic --------------------------------------------------------------------------------


async def test_anthropics_events(client):
    async with client.messages.stream(**BASE, messages=ASK) as stream:
        kinds = [event.type async for event in stream]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("text") == 4  # word by word


async def test_anthropics_thoughts_and_calls(client, server):
    blocks = [THOUGHT, {"type": "text", "text": "Let me see."}, CALL]
    server.say({"content": blocks}, {"content": blocks})
    full = await client.messages.create(**BASE, messages=ASK)
    async with client.messages.stream(**BASE, messages=ASK) as stream:
        streamed = await stream.get_final_message()
    for answer in (full, streamed):
        assert [block.to_dict(exclude_none=True) for block in answer.content] == blocks
        assert answer.stop_reason == "tool_use"


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
            [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}] * 5}],
            {},
            "maximum of 4",
        ),
        ([{"role": "user", "content": "long " * 200}], {}, "prompt is too long"),
    ],
)
async def test_what_anthropic_would_reject_is_rejected(client, server, messages, more, why):
    server.window_tokens = 150
    with pytest.raises(anthropic.BadRequestError, match=why):
        await client.messages.create(**{**BASE, "messages": messages, "tools": [TOOL], **more})


async def test_faults_have_the_shape_of_anthropics_errors(client, server):
    server.fail("529")
    with pytest.raises(anthropic.OverloadedError) as caught:
        await client.messages.create(**BASE, messages=ASK)
    assert caught.value.body["type"] == "error"
    server.fail("error_body", "cut")
    for error in (anthropic.APIStatusError, httpx2.RemoteProtocolError):
        with pytest.raises(error):
            async with client.messages.stream(**BASE, messages=ASK) as stream:
                await stream.get_final_message()
    server.fail("content_filter")
    assert (await client.messages.create(**BASE, messages=ASK)).stop_reason == "refusal"
