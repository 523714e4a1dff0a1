"""The test model server: real SDKs work with it, and its faults are as documented."""

import asyncio
import http.client
import json
import subprocess
import sys
from dataclasses import replace

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline import Memory
from firnline.digest import prompts
from firnline.errors import InputError
from firnline.log.message import Message, ToolCall
from firnline.models.json_answer import schema_problem
from firnline.protocols import Brief
from firnline.testing import ModelServer
from firnline.testing.model_server import FAULTS
from firnline.testing.scripted_model import complaint, sample, think

ASK = [{"role": "user", "content": "Hello there"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}


@pytest.fixture
async def server():
    async with ModelServer(pause=0.05) as server:
        yield server


@pytest.fixture
async def client(server):
    async with openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        yield client


# -- the real SDK -----------------------------------------------------------------------------


async def test_the_sdk_gets_json_for_its_schema(client):
    schema = {**TOOL["function"]["parameters"], "additionalProperties": False}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    answer = await client.chat.completions.create(model="m", messages=ASK, response_format=wanted)
    assert json.loads(answer.choices[0].message.content) == {"city": "none"}


def test_it_works_without_an_event_loop():
    with (
        ModelServer() as server,
        openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
    ):
        answer = client.chat.completions.create(model="m", messages=ASK)
        assert answer.choices[0].message.content == "You said: Hello there"


# -- scripts and plans ------------------------------------------------------------------------


async def _ask(client, **options):
    try:
        answer = await client.chat.completions.create(model="m", messages=ASK, **options)
    except (openai.OpenAIError, json.JSONDecodeError) as error:
        return type(error).__name__
    return answer.choices[0].message.content if answer.choices else None


async def test_answers_can_be_queued_and_made_by_a_function(client, server):
    server.say("one", {"content": "two"}, Message.assistant("three"))
    assert [await _ask(client) for _ in range(3)] == ["one", "two", "three"]
    server.answer = lambda request: f"{len(request['messages'])} message"
    assert await _ask(client) == "1 message"
    assert [request["messages"] for request in server.requests] == [ASK] * 4


async def test_a_queued_answer_outlives_the_faults_before_it(client, server):
    server.say("at last")
    server.fail("500", "reset", "error_body")
    assert [await _ask(client) for _ in range(3)][:2] == [
        "InternalServerError",
        "APIConnectionError",
    ]
    assert await _ask(client) == "at last"


async def test_a_plan_repeats_if_it_is_to_and_ends_when_healed(client, server):
    server.fail("500", None, repeat=True)
    for _ in range(3):
        assert await _ask(client) == "InternalServerError"
        assert await _ask(client) == "You said: Hello there"
    server.heal()
    assert [await _ask(client) for _ in range(2)] == ["You said: Hello there"] * 2
    server.fail("500", None)
    said = [await _ask(client) for _ in range(3)]
    assert said == ["InternalServerError", *["You said: Hello there"] * 2]
    with pytest.raises(InputError, match="unknown fault"):
        server.fail("earthquake")


async def test_chance_is_seeded():
    runs = []
    for _ in range(2):
        with ModelServer(seed=7) as server:
            server.shake(0.5, ["500", "empty", "error_body"])
            async with openai.AsyncOpenAI(
                base_url=server.url, api_key="k", max_retries=0
            ) as client:
                runs.append([await _ask(client) for _ in range(12)])
    assert runs[0] == runs[1]
    assert 0 < sum(said == "You said: Hello there" for said in runs[0]) < 12


async def test_refusing_closes_the_port_and_accepting_opens_the_same_one(client, server):
    assert await _ask(client) == "You said: Hello there"
    url = server.url
    server.refuse()
    assert await _ask(client) == "APIConnectionError"
    server.accept()
    assert server.url == url
    assert await _ask(client) == "You said: Hello there"


def _bytes(server, **options) -> tuple[int, dict[str, str], bytes]:
    """What really comes over the wire, as far as it comes."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", int(server.url.split(":")[2][:-3]), timeout=60
    )
    try:
        body = json.dumps({"model": "m", "messages": ASK, **options})
        connection.request("POST", "/v1/chat/completions", body)
        response = connection.getresponse()
        try:
            said = response.read()
        except http.client.IncompleteRead as error:
            said = b"CUT" + error.partial
        return response.status, {k.lower(): v for k, v in response.getheaders()}, said
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("fault", "streams", "sign"),
    [
        ("cut", False, b"CUT"),
        ("cut", True, b"CUT"),
        ("invalid_body", False, b'{"choices": [{"mess'),
        ("invalid_body", True, b'data: {"choices": [{"mess'),
        ("error_body", False, b'"error"'),
        ("error_body", True, b'"error"'),
        ("no_choices", False, b'"choices": []'),
        ("empty", False, b'"content": ""'),
        ("invalid_json", False, b"```json"),
        ("refusal", False, b"I'm sorry"),
        ("refusal_field", False, b'"refusal": "I'),
        ("refusal_field", True, b'"refusal": "I'),
        ("length", True, b'"finish_reason": "length"'),
        ("content_filter", False, b'"finish_reason": "content_filter"'),
        ("overlong", False, b"Hello there You said: Hello there"),
    ],
)
def test_a_fault_looks_on_the_wire_as_its_name_says(fault, streams, sign):
    with ModelServer() as server:
        server.fail(fault)
        status, _, said = _bytes(server, stream=streams)
        assert status == 200
        assert sign in said
        if fault == "cut":
            assert b"[DONE]" not in said
            assert len(said) > 100
        assert b"You said: Hello there" in _bytes(server)[2]


def test_a_trickle_comes_byte_by_byte_and_a_slow_answer_late():
    with ModelServer(pause=0.0) as server:
        server.fail("trickle", "slow")
        assert b"You said" in _bytes(server)[2]
        assert b"You said" in _bytes(server)[2]


def test_the_wish_to_be_left_alone_is_a_header():
    with ModelServer(retry_after="12") as server:
        server.fail("429")
        status, headers, _ = _bytes(server)
        assert (status, headers["retry-after"]) == (429, "12")


def test_every_fault_has_its_explanation():
    assert all(FAULTS.values())


# -- the provider's rules ---------------------------------------------------------------------

CALLS = Message.assistant(
    tool_calls=[ToolCall.of("a", "f", {}), ToolCall.of("b", "f", {})]
).to_openai()


def _result(call_id):
    return {"role": "tool", "tool_call_id": call_id, "content": "x"}


@pytest.mark.parametrize(
    ("messages", "fine"),
    [
        (ASK, True),
        ([*ASK, CALLS, _result("b"), _result("a"), *ASK], True),
        ([], False),
        (["hi"], False),
        ([{"role": "robot", "content": "x"}], False),
        ([*ASK, _result("a")], False),
        ([*ASK, CALLS, _result("a"), *ASK], False),
        ([*ASK, CALLS, _result("a"), _result("a"), _result("b")], False),
        ([*ASK, CALLS], False),
    ],
)
async def test_what_a_provider_would_reject_is_rejected(client, messages, fine):
    assert (complaint({"messages": messages}) is None) == fine
    try:
        await client.chat.completions.create(model="m", messages=messages)
    except openai.BadRequestError:
        assert not fine
    else:
        assert fine


async def test_a_request_longer_than_the_window_is_rejected(client, server):
    server.window_tokens = 50
    assert await _ask(client) == "You said: Hello there"
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "word " * 60}]
        )
    assert caught.value.code == "context_length_exceeded"


# -- the brain --------------------------------------------------------------------------------

CHAT = "\n".join(
    f"[{number}] {role}: On day {number} Ana paid {number * 10} euros in Lisbon. She liked it."
    for number, role in enumerate(["user", "assistant"] * 20)
)


@pytest.mark.parametrize(
    ("order", "low", "high"),
    [
        ("Summarise the conversation in 100-150 words.", 100, 150),
        ("Write a summary, 60 to 80 words.", 60, 80),
        ("Summarize in at most 40 words:", 10, 40),
        ("Make a digest.", 20, 80),
        ("Summarise in 3 words.", 1, 3),
    ],
)
def test_a_summary_is_of_the_asked_length_and_of_the_sources_words(order, low, high):
    text = think({"messages": [{"role": "user", "content": f"{order}\n\n{CHAT}"}]})["content"]
    assert low <= len(text.split()) <= high
    assert set(text.split()) <= set(CHAT.split())
    assert not text.startswith("[")


def test_a_conversation_before_the_order_is_summarized_too():
    said = [{"role": "user", "content": "The flight to Oslo costs 120 euros."}]
    order = {"role": "user", "content": "Please summarise our conversation in 20 words."}
    assert "120 euros" in think({"messages": [*said, order]})["content"]


async def _brief(words=(0, 60)):
    texts = [
        "My name is Ana Lopez.",
        "I fly to Oslo on 3 March for 120 euros.",
        "Noted, thank you.",
    ]
    async with Memory.open("memory:") as memory:
        await memory.append("c", [Message.user(text) for text in texts])
        entries = tuple(await memory.read("c"))
    return Brief(entries=entries, words_min=words[0], words_max=words[1])


async def test_our_own_prompts_are_understood():
    for prompt in ("", "Schreibe das Wichtigste auf."):
        messages = prompts.summary_messages(replace(await _brief(), prompt=prompt))
        text = think({"messages": messages})["content"]
        assert "120 euros" in text
        assert "{" not in text
    short = prompts.summary_messages(await _brief((3, 9)))
    assert 3 <= len(think({"messages": short})["content"].split()) <= 9


async def test_our_own_extraction_gets_items_with_evidence():
    schema = prompts.EXTRACTION_SCHEMA
    wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
    messages = prompts.extraction_messages(await _brief())
    value = json.loads(think({"messages": messages, "response_format": wanted})["content"])
    assert schema_problem(value, schema) is None
    assert {1} == {
        seq for item in value["items"] for seq in item["seqs"] if "Oslo" in item["quote"]
    }


SCHEMAS = st.recursive(
    st.sampled_from([{"type": name} for name in ("string", "integer", "number", "boolean", "null")])
    | st.just({"enum": ["a", 1]}),
    lambda inner: (
        st.builds(lambda item: {"type": "array", "items": item}, inner)
        | st.builds(
            lambda fields: {"type": "object", "properties": fields, "required": sorted(fields)[:2]},
            st.dictionaries(st.sampled_from("abcd"), inner),
        )
    ),
    max_leaves=8,
)


@given(SCHEMAS)
def test_json_satisfies_its_schema(schema):
    assert schema_problem(sample(schema), schema) is None


# -- by hand ----------------------------------------------------------------------------------


async def test_it_runs_by_itself_and_without_the_testing_extra():
    code = (
        "import sys; sys.modules['pytest'] = sys.modules['hypothesis'] = None\n"
        "import runpy; sys.argv = ['x', '--port', '0', '--fail', '500', 'ok']\n"
        "runpy.run_module('firnline.testing.model_server', run_name='__main__')"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", "-c", code, stdout=subprocess.PIPE
    )
    try:
        url = (await process.stdout.readline()).decode().strip()
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            assert await _ask(client) == "InternalServerError"
            assert await _ask(client) == "You said: Hello there"
    finally:
        process.kill()
        await process.wait()
        process._transport.close()
