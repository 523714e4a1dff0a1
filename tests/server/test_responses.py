"""OpenAI's Responses and Conversations through the unmodified SDKs, over every kind of endpoint.

The model server refuses whatever the real ones refuse: a call without its output, a part in the
wrong message, an id that it does not know, a prompt that is too long.
"""

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path
from typing import get_args, get_type_hints

import agents
import anthropic
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types import responses as kinds
from openai.types.conversations import ConversationItem
from openai.types.responses import ResponseItem, response_create_params
from pydantic import BaseModel, TypeAdapter

from firnline.errors import InputError, ModelError
from firnline.log.entry import Entry, EntryDraft, Key, genesis, next_hash
from firnline.log.message import decode, encode
from firnline.log.openai_items import ITEMS, items_of, messages_of, portable
from firnline.log.wire import dump_anthropic
from firnline.server.proxy.check import ResponseChecker, read_response
from firnline.server.proxy.response_events import whole_events
from firnline.server.proxy.response_fields import EVENTS_WRITTEN, FIELDS
from firnline.server.proxy.response_places import listed_items
from firnline.server.proxy.response_request import check_items
from firnline.server.proxy.response_translate import anthropic_request, chat_request
from firnline.server.proxy.translate import chat_messages
from firnline.testing import ModelServer, call_tool
from support.endpoint import Endpoint
from support.live_server import Forked, free_port, running
from support.response_site import MODEL, WAYS, Site, create
from support.rest_client import key_for

DOCS = Path(__file__).parents[2] / "docs" / "responses.md"
CODEX = json.loads((Path(__file__).parents[1] / "support" / "codex_traffic.json").read_text())
TOOLS = [
    {
        "type": "function",
        "name": "clock",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
    {"type": "custom", "name": "patch", "description": "Applies a patch."},
]
FACT = "By the way, the vault's code word is Kestrel-7741, please keep it in mind."
FILLER = "We walked along the river to the old mill and talked about {n} and the {n}th bridge."
THOUGHT = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Hm, the clock."}],
    "encrypted_content": "gAAAAA-not-ours",
}
EVENT = TypeAdapter(kinds.ResponseStreamEvent)


@pytest.fixture(params=WAYS)
def site(request):
    with ExitStack() as stack:
        yield Site(stack, request.param)


@pytest.fixture
def chat():
    with ExitStack() as stack:
        yield Site(stack, "chat")


@pytest.fixture
def native():
    with ExitStack() as stack:
        yield Site(stack, "native")


# -- threads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_is_continued_by_its_id_retrieved_and_listed(site, stream):
    first = create(site.sdk, "Order 1138 never arrived.", stream=stream, instructions="Be brief.")
    assert first.output_text == "You said: Order 1138 never arrived."
    last = create(
        site.sdk, "Which order?", stream=stream, previous_response_id=first.id, metadata={"a": "b"}
    )
    assert site.seen() == ["user", "assistant", "user"]  # instructions are of one request
    assert last.previous_response_id == first.id
    assert last.metadata == {"a": "b"}
    found = site.sdk.responses.retrieve(last.id)
    assert found.model_dump(exclude_none=True) == last.model_dump(exclude_none=True)
    texts = [item.content[0].text for item in site.sdk.responses.input_items.list(last.id)]
    assert texts == ["Which order?", first.output_text, "Order 1138 never arrived."]
    assert len(site.heads()) == 1


@pytest.mark.promise("pairs-whole")
@pytest.mark.parametrize("stream", [False, True])
def test_parallel_calls_of_functions_and_custom_tools_go_there_and_back(site, stream):
    calls = [*call_tool("clock", {"city": "Rome"})["tool_calls"]]
    grammar = {"input": "*** Begin"} if site.way != "native" else {"x": 1}
    site.model.say({"content": "Well.", "tool_calls": [*calls, *custom_call(grammar)]})
    answer = create(site.sdk, "What time is it?", stream=stream, tools=TOOLS)
    said, call, patch = answer.output
    assert (said.type, call.type, patch.type) == ("message", "function_call", "custom_tool_call")
    assert json.loads(call.arguments) == {"city": "Rome"}
    assert patch.input == ("*** Begin" if site.way != "native" else '{"x":1}')
    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "12:00"},
        {"type": "custom_tool_call_output", "call_id": patch.call_id, "output": "done"},
    ]
    more = {"tools": TOOLS, "previous_response_id": answer.id}
    final = create(site.sdk, results, stream=stream, **more)
    assert final.output_text == "You said: done"
    (conversation,) = site.heads()
    roles = [message.role for message in site.log(conversation)]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]


def call_of(call_id, name, **arguments):
    call = call_tool(name, arguments)["tool_calls"][0]
    return {"content": None, "tool_calls": [{**call, "id": call_id}]}


def custom_call(arguments):
    return call_tool("patch", arguments)["tool_calls"]


@pytest.mark.requirement("X1")
@pytest.mark.promise("within-budget")
@pytest.mark.parametrize("way", WAYS)
def test_a_long_thread_stays_within_the_window_and_remembers(way):
    def answer(request):
        text = json.dumps(request)
        return "It is Kestrel-7741." if "word?" in text and "Kestrel-7741" in text else "Noted."

    with ExitStack() as stack:
        site = Site(stack, way, window_tokens=1_500)
        site.model.window_tokens, site.model.answer = 1_500, answer
        sdk, previous = site.sdk, None
        for turn in range(30):
            text = FACT if turn == 3 else FILLER.format(n=turn) * 3
            previous = create(sdk, text, stream=turn % 2 == 0, previous_response_id=previous).id
            if turn % 10 == 5:
                site.model.say(call_tool("clock", {"city": "Rome"}))
                said = create(sdk, "Time?", tools=TOOLS[:1], previous_response_id=previous)
                output = {"type": "function_call_output", "output": "12:00" * 40}
                result = [{**output, "call_id": said.output[-1].call_id}]
                more = {"tools": TOOLS[:1], "previous_response_id": said.id}
                previous = create(sdk, result, **more).id
        done = create(sdk, "What is the vault's code word?", previous_response_id=previous)
        (conversation,) = site.heads()
        assert len(site.log(conversation)) == 2 * 31 + 3 * 4
        assert "Kestrel" in done.output_text


def test_two_requests_that_continue_one_response_part_ways(chat):
    first = create(chat.sdk, "hi")
    left = create(chat.sdk, "left", previous_response_id=first.id)
    right = create(chat.sdk, "right", previous_response_id=first.id)
    assert chat.seen() == ["user", "assistant", "user"]
    assert "left" not in json.dumps(chat.model.requests[-1])
    create(chat.sdk, "more", previous_response_id=left.id)
    assert "right" not in json.dumps(chat.model.requests[-1])
    create(chat.sdk, "more", previous_response_id=right.id)
    assert "left" not in json.dumps(chat.model.requests[-1])
    assert len(chat.heads()) == 2


def test_what_the_application_said_first_is_valid_for_the_whole_thread(site):
    site.model.say("Yes.", "Oui.", "Bon.")
    rule = {"role": "developer", "content": "Always rhyme."}
    first = create(site.sdk, [rule, {"role": "user", "content": "hi"}])
    second = create(
        site.sdk,
        [rule | {"content": "In French."}, {"role": "user", "content": "go"}],
        previous_response_id=first.id,
    )
    create(site.sdk, "and on", previous_response_id=second.id)
    text = json.dumps(site.model.requests[-1])
    assert text.count("Always rhyme.") == 1
    assert text.count("In French.") == 1


def test_a_retry_stores_nothing_twice_and_gets_the_same_answer(native):
    first = create(native.sdk, "hi")
    headers = {"extra_headers": {"idempotency-key": "k1"}}
    one = create(native.sdk, "again", previous_response_id=first.id, **headers)
    asked = len(native.model.requests)
    two = create(native.sdk, "again", previous_response_id=first.id, **headers)
    streamed = create(native.sdk, "again", stream=True, previous_response_id=first.id, **headers)
    assert one.id == two.id == streamed.id
    assert one.output == two.output
    assert [item.type for item in streamed.output] == ["message"]
    assert len(native.model.requests) == asked


def test_a_failed_request_can_be_sent_again(native):
    first = create(native.sdk, "hi")
    native.model.fail("500", None)
    with pytest.raises(openai.InternalServerError):
        create(native.sdk, "and?", previous_response_id=first.id)
    create(native.sdk, "and?", previous_response_id=first.id)
    (conversation,) = native.heads()
    assert [m.text for m in native.log(conversation)] == [
        "hi",
        "You said: hi",
        "and?",
        "You said: and?",
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stream", [False, True])
def test_recall_tools_run_on_the_server_and_the_client_sees_nothing_of_it(way, stream):
    with ExitStack() as stack:
        site = Site(stack, way, recall_tools=True)
        first = create(site.sdk, "The vault's code word is Kestrel-7741.", tools=TOOLS)
        search = call_tool("search_history", {"query": "code word"})
        site.model.say({**search, "content": "Let me look."}, "Kestrel-7741.")
        more = {"tools": TOOLS, "previous_response_id": first.id}
        if stream:
            events = list(site.sdk.responses.create(model=MODEL, input="?", stream=True, **more))
            assert [event.sequence_number for event in events] == [*range(len(events))]
            assert "search_history" not in str(events)
            done = events[-1].response
            added = [e.output_index for e in events if e.type == "response.output_item.added"]
            assert added == [*range(len(added))]
        else:
            done = create(site.sdk, "?", **more)
        assert done.output_text.endswith("Kestrel-7741.")
        assert [tool.name for tool in done.tools] == ["clock", "patch"]
        assert "Kestrel-7741" in json.dumps(site.model.requests[-1]).partition("search_history")[2]
        (conversation,) = site.heads()
        roles = [message.role for message in site.log(conversation)]
    assert roles == ["user", "assistant", "user", "assistant"]


# -- who sends the whole history --------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_history_that_is_sent_whole_is_recognized(site, stream):
    history = []
    for turn in range(4):
        history.append({"role": "user", "content": f"q{turn}"})
        if turn == 1:
            site.model.say(call_tool("clock", {"city": "Rome"}))
            answer = create(site.sdk, history, stream=stream, tools=TOOLS, store=False)
            history += [item.model_dump(exclude_none=True) for item in answer.output]
            call = answer.output[-1].call_id
            history.append({"type": "function_call_output", "call_id": call, "output": "12"})
        answer = create(site.sdk, history, stream=stream, tools=TOOLS, store=False)
        history += [item.model_dump(exclude_none=True) for item in answer.output]
    (conversation,) = site.heads()
    assert len(site.log(conversation)) == 10
    with pytest.raises(openai.NotFoundError):  # store=False: it has no id
        site.sdk.responses.retrieve(answer.id)


def test_reasoning_comes_back_as_it_came(native):
    def output(text):
        part = {"type": "output_text", "text": text, "annotations": []}
        about = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
        return {"content": [THOUGHT, {**about, "content": [part]}]}

    native.model.say(output("Noon."))
    first = create(native.sdk, "Time?", stream=True)
    assert first.output[0].encrypted_content == THOUGHT["encrypted_content"]
    create(native.sdk, "Sure?", previous_response_id=first.id)
    assert native.model.requests[-1]["input"][1] == THOUGHT


def test_anthropics_thinking_goes_back_to_anthropic_as_it_came():
    thinking = {"type": "thinking", "thinking": "Noon, I guess.", "signature": "sig"}
    text = {"type": "text", "text": "Noon."}
    with ExitStack() as stack:
        site = Site(stack, "anthropic")
        for stream in (True, False):
            site.model.say({"content": [thinking, text]})
            first = create(site.sdk, "Time?", stream=stream)
            assert [item.type for item in first.output] == ["reasoning", "message"]
            assert first.output[0].summary[0].text == thinking["thinking"]
            create(site.sdk, "Sure?", previous_response_id=first.id)
            turn = site.model.requests[-1]["messages"][1]
            assert turn["content"][0] == thinking


def test_items_are_named_by_reference(site):
    first = create(site.sdk, "hi")
    reference = {"type": "item_reference", "id": first.output[0].id}
    asked = {"role": "user", "content": "hi"}
    create(site.sdk, [asked, reference, {"role": "user", "content": "and?"}])
    assert site.seen() == ["user", "assistant", "user"]
    assert len(site.heads()) == 1
    with pytest.raises(openai.NotFoundError, match="msg_unknown"):
        create(site.sdk, [{"type": "item_reference", "id": "msg_unknown"}])


def test_an_id_that_an_endpoint_uses_twice_mixes_up_nothing(native):
    def answer(text, item_id):
        part = {"type": "output_text", "text": text, "annotations": []}
        about = {"id": item_id, "type": "message", "role": "assistant", "status": "completed"}
        return {"content": [{**about, "content": [part]}]}

    twice = "msg_" + "0" * 30
    native.model.say(answer("Ann's", twice), answer("Bob's", twice), answer("short", "msg_1"))
    for name in ("ann", "bob", "eve"):
        create(native.sdk, f"I am {name}.", metadata={"conversation_id": name})
    question = {"role": "user", "content": "and?"}
    with pytest.raises(openai.BadRequestError, match="several conversations"):
        create(native.sdk, [question, {"type": "item_reference", "id": twice}, question])
    with pytest.raises(openai.NotFoundError):
        create(native.sdk, [question, {"type": "item_reference", "id": "msg_1"}, question])
    reference = [{"type": "item_reference", "id": twice}, question]
    create(native.sdk, reference, conversation="bob")
    assert "Ann's" not in json.dumps(native.model.requests[-1])


def test_a_compaction_loses_nothing(site):
    turns = [("user", "Order 1138 never arrived."), ("assistant", "I see.")]
    history = [{"role": role, "content": text} for role, text in turns]
    compacted = site.sdk.responses.compact(model=MODEL, input=history)
    (item,) = [each.model_dump(exclude_none=True) for each in compacted.output]
    assert item["type"] == "compaction"
    create(site.sdk, [item, {"role": "user", "content": "Which?"}], stream=True)
    assert site.seen() == ["user", "assistant", "user"]
    assert "1138" in json.dumps(site.model.requests[-1])
    (conversation,) = site.heads()
    assert len(site.log(conversation)) == 4


# -- conversations ----------------------------------------------------------------------------


def test_a_conversation_is_created_filled_continued_and_erased(site):
    sdk = site.sdk
    made = sdk.conversations.create(
        items=[{"type": "message", "role": "developer", "content": "Be kind."}],
        metadata={"project": "mill"},
    )
    assert (made.object, made.metadata) == ("conversation", {"project": "mill"})
    answer = create(sdk, "hi", conversation=made.id)
    assert answer.conversation.id == made.id
    create(sdk, "hi", stream=True, conversation={"id": made.id})
    text = json.dumps(site.model.requests[-1])
    assert text.count("Be kind.") == 1
    items = list(sdk.conversations.items.list(made.id, order="asc", limit=2))
    assert [(item.role, item.content[0].text) for item in items] == [
        ("developer", "Be kind."),
        ("user", "hi"),
        ("assistant", "You said: hi"),
        ("user", "hi"),
        ("assistant", "You said: hi"),
    ]
    newest = sdk.conversations.items.list(made.id, limit=1)
    assert newest.data[0].id == items[-1].id
    assert newest.has_more
    assert sdk.conversations.items.retrieve(items[2].id, conversation_id=made.id) == items[2]
    assert sdk.conversations.update(made.id, metadata={"a": "b"}).metadata == {"a": "b"}
    assert sdk.conversations.retrieve(made.id).metadata == {"a": "b"}
    added = sdk.conversations.items.create(made.id, items=[{"role": "user", "content": "more"}])
    sdk.conversations.items.delete(added.data[0].id, conversation_id=made.id)
    assert len(list(sdk.conversations.items.list(made.id))) == 5
    assert sdk.conversations.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError):
        sdk.conversations.retrieve(made.id)
    with pytest.raises(openai.NotFoundError):
        create(sdk, "hi", conversation=made.id)


@pytest.mark.promise("tenants-apart")
def test_ids_lead_nowhere_for_another_tenant(native):
    made = native.sdk.conversations.create()
    first = create(native.sdk, "hi", conversation=made.id)
    key = key_for(native.server, "other")
    other = native.client(api_key=key)
    for lookup in (
        lambda: other.responses.retrieve(first.id),
        lambda: other.conversations.retrieve(made.id),
        lambda: other.conversations.items.list(made.id).data,
        lambda: create(other, "hi", conversation=made.id),
        lambda: create(other, [{"type": "item_reference", "id": first.output[0].id}]),
    ):
        with pytest.raises(openai.NotFoundError):
            lookup()
    with pytest.raises(openai.BadRequestError) as caught:
        create(other, "hi", previous_response_id=first.id)
    assert caught.value.code == "previous_response_not_found"


@pytest.mark.promise("erase-total")
def test_a_deleted_response_is_erased_unless_a_conversation_has_it(native):
    first = create(native.sdk, "The code is 4711.")
    native.sdk.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        native.sdk.responses.retrieve(first.id)
    (conversation,) = native.heads()
    assert "4711" not in str(native.log(conversation))
    made = native.sdk.conversations.create()
    second = create(native.sdk, "hi", conversation=made.id)
    native.sdk.responses.delete(second.id)
    assert len(list(native.sdk.conversations.items.list(made.id))) == 2
    writer = native.client(api_key=key_for(native.server, "default", "read", "write"))
    with pytest.raises(openai.PermissionDeniedError):
        writer.conversations.delete(made.id)


# -- kill -9 ----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("way", ["chat", pytest.param("native", marks=pytest.mark.thorough)])
def test_a_thread_goes_on_after_kill_9_in_the_middle_of_an_answer(way, tmp_path):
    with ModelServer(model=MODEL, pause=0.0005) as model, httpx2.Client(timeout=60) as http:
        model.responses = way == "native"
        port, store = free_port(), f"sqlite:///{tmp_path}/r.db"

        def start():
            return Forked(store, port, "--upstream", model.url)

        server = start()
        sdk = openai.OpenAI(
            base_url=f"{server.url}/v1", api_key="sk", max_retries=0, http_client=http
        )
        previous = None
        for turn in range(15):
            previous = create(sdk, f"q{turn}", stream=True, previous_response_id=previous).id
        model.say("one two three four five six seven eight nine ten " * 9)
        model.fail("trickle")
        events = sdk.responses.create(
            model=MODEL, input="q15", stream=True, previous_response_id=previous
        )
        cut, seen = "", ""
        for event in events:
            if event.type == "response.created":
                cut = event.response.id
            seen += event.delta if event.type == "response.output_text.delta" else ""
            if len(seen) > 20:
                break
        server.kill()
        model.heal()
        server = start()
        try:
            found = sdk.responses.retrieve(cut)
            assert found.status == "failed"
            assert found.output_text.startswith(seen)
            # The same request again: nothing is stored twice.
            previous = create(sdk, "q15", stream=True, previous_response_id=previous).id
            for turn in range(16, 30):
                previous = create(sdk, f"q{turn}", stream=True, previous_response_id=previous).id
            items = list(sdk.responses.input_items.list(previous, order="asc", limit=100))
        finally:
            server.terminate()
    texts = [item.content[0].text for item in items if item.role == "user"]
    assert texts == [f"q{turn}" for turn in range(30)]
    answers = [item for item in items if item.role == "assistant"]
    assert [item.status for item in answers].count("incomplete") == 1
    assert len(answers) == 30  # of 29 questions, and what there was of the one that broke off


# -- other clients ----------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_the_agents_sdk_with_its_defaults(way):
    agents.set_tracing_disabled(True)

    @agents.function_tool
    def clock(city: str) -> str:
        return f"noon in {city}"

    async def talk(url):
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="sk", max_retries=0)
        model = agents.OpenAIResponsesModel(MODEL, client)
        agent = agents.Agent("Clerk", instructions="Be kind.", model=model, tools=[clock])
        history, previous = [], None
        for turn in range(3):
            site.model.say(call_of(f"h{turn}", "clock", city="Rome"), f"It is noon, {turn}.")
            history.append({"role": "user", "content": f"q{turn}"})
            done = await agents.Runner.run(agent, history)
            assert done.final_output == f"It is noon, {turn}."
            history = done.to_input_list()
        for turn in range(3):
            site.model.say(call_of(f"p{turn}", "clock", city="Oslo"), "It is noon.")
            run = agents.Runner.run_streamed(agent, f"p{turn}", previous_response_id=previous)
            async for _ in run.stream_events():
                pass
            previous = run.last_response_id
        session = agents.OpenAIConversationsSession(openai_client=client)
        for turn in range(2):
            done = await agents.Runner.run(agent, f"s{turn}", session=session)
        popped = await session.pop_item()
        await session.clear_session()
        await client.close()
        return popped

    with ExitStack() as stack:
        site = Site(stack, way)
        popped = asyncio.run(talk(site.server.url))
        assert popped["role"] == "assistant"
        logs = sorted(len(site.log(name)) for name in site.heads())
    # Each once, whatever was sent again; the session's own items are erased.
    assert logs == [4, 12, 12]


@pytest.mark.parametrize("way", ["native", "chat"])
def test_the_traffic_of_codex(way):
    def answer(request):
        last = (request.get("input") or request["messages"])[-1]
        asks = last.get("role") == "user"
        return call_tool("exec_command", {"cmd": "echo hello"}) if asks else "Done: all good."

    with ExitStack() as stack:
        site = Site(stack, way)
        site.model.answer = answer
        for one in CODEX:
            reply = site.http.post(
                f"{site.server.url}/v1/responses", json=one["body"], headers=one["headers"]
            )
            assert reply.status_code == 200, reply.text
            data = [line[6:] for line in reply.text.split("\n") if line.startswith("data: ")]
            events = [EVENT.validate_python(json.loads(each)) for each in data]
            assert events[-1].type == "response.completed"
            unused = reply.headers.get("x-firnline-unused", "")
            assert ("tools: web_search" in unused) == (way == "chat")
        (conversation,) = site.heads()
        assert conversation == CODEX[0]["headers"]["session-id"]
        roles = [message.role for message in site.log(conversation)]
    turn = ["assistant", "tool", "assistant"]
    assert roles == ["user", "user", *turn, "user", *turn]


def test_a_tool_in_a_namespace_is_called_there_and_back(chat):
    inner = {**TOOLS[0], "name": "spawn"}
    tools = [{"type": "namespace", "name": "crew", "description": "", "tools": [inner]}]
    chat.model.say(call_tool("crew__spawn", {}))
    answer = create(chat.sdk, "go", tools=tools)
    call = answer.output[-1]
    assert (call.name, call.namespace) == ("spawn", "crew")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "ok"}
    create(chat.sdk, [result], tools=tools, previous_response_id=answer.id)
    sent = chat.model.requests[-1]["messages"][1]["tool_calls"][0]["function"]["name"]
    assert sent == "crew__spawn"


def test_parsed_answers_and_the_async_client(site):
    class Order(BaseModel):
        number: int

    site.model.say('{"number": 1138}', '{"number": 1138}')
    parsed = site.sdk.responses.parse(model=MODEL, input="Which?", text_format=Order)
    assert parsed.output_parsed == Order(number=1138)

    async def ask():
        url = f"{site.server.url}/v1"
        async with openai.AsyncOpenAI(base_url=url, api_key="sk", max_retries=0) as client:
            stream = client.responses.stream(model=MODEL, input="Which?", text_format=Order)
            async with stream as events:
                return await events.get_final_response()

    assert asyncio.run(ask()).output_parsed == Order(number=1138)


def test_images_and_files_reach_every_endpoint(site):
    image = {
        "type": "input_image",
        "image_url": "data:image/png;base64,iVBORw0KGgo=",
        "detail": "auto",
    }
    data = "data:application/pdf;base64,JVBERi0="
    file = {"type": "input_file", "filename": "a.pdf", "file_data": data}
    text = {"type": "input_text", "text": "What is this?"}
    content = [text, image, file]
    first = create(site.sdk, [{"role": "user", "content": content}])
    create(site.sdk, "And?", previous_response_id=first.id)
    sent = json.dumps(site.model.requests[-1])
    assert "iVBORw0KGgo=" in sent
    assert "JVBERi0=" in sent
    listed = list(site.sdk.responses.input_items.list(first.id))
    assert [part.type for part in listed[0].content] == ["input_text", "input_image", "input_file"]


# -- background -------------------------------------------------------------------------------


def wait_for(sdk, response_id):
    for _ in range(500):
        found = sdk.responses.retrieve(response_id)
        if found.status != "in_progress":
            return found
    raise AssertionError("still in progress")


def test_a_response_in_the_background_is_polled_or_cancelled(native):
    begun = create(native.sdk, "hi", background=True)
    assert begun.status == "in_progress"
    done = wait_for(native.sdk, begun.id)
    assert (done.status, done.output_text) == ("completed", "You said: hi")
    replayed = [event.type for event in native.sdk.responses.retrieve(done.id, stream=True)]
    assert replayed[0] == "response.created"
    assert replayed[-1] == "response.completed"
    later = native.sdk.responses.retrieve(done.id, stream=True, starting_after=2)
    assert [event.type for event in later] == replayed[3:]
    native.model.fail("trickle")
    slow = create(native.sdk, "again", background=True)
    assert native.sdk.responses.cancel(slow.id).status == "cancelled"
    assert native.sdk.responses.retrieve(slow.id).status == "cancelled"
    with pytest.raises(openai.BadRequestError, match="background=true"):
        native.sdk.responses.cancel(create(native.sdk, "hi").id)


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"prompt": {"id": "pmpt_1"}}, "prompt: this server's endpoint does not speak"),
        ({"tools": [{"type": "web_search"}]}, "tools: web_search: this server's endpoint"),
        ({"extra_body": {"tempreture": 1}}, "unknown parameter: tempreture"),
        ({"tool_choice": {"type": "file_search"}, "tools": TOOLS}, "tool_choice: file_search"),
        ({"text": {"format": {"type": "xml"}}}, "text.format"),
    ],
)
def test_what_only_openai_can_do_is_refused_for_other_endpoints(chat, more, said):
    with pytest.raises(openai.BadRequestError, match=said):
        create(chat.sdk, "hi", **more)
    assert chat.heads() == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "input: must not be empty"),
        ([{"content": "hi"}], "a type or a role"),
        ([{"role": "robot", "content": "hi"}], "role"),
        ([{"role": "user", "content": 7}], "content"),
        ([{"type": "function_call_output", "output": "x"}], "call_id"),
        ([{"type": "function_call", "call_id": "c"}], "name"),
        (["hi"], "expected an object"),
        (7, "a string or a list"),
    ],
)
def test_malformed_input_is_an_error_in_openais_shape(native, given, said):
    with pytest.raises(openai.BadRequestError, match=said) as caught:
        create(native.sdk, given)
    assert caught.value.type == "invalid_request_error"
    assert native.heads() == []


def test_what_belongs_to_two_threads_and_to_no_memory_is_refused(native):
    made, first = native.sdk.conversations.create(), create(native.sdk, "hi")
    with pytest.raises(openai.BadRequestError, match="together with conversation"):
        create(native.sdk, "hi", conversation=made.id, previous_response_id=first.id)
    off = {"extra_headers": {"X-Firnline-Memory": "off"}}
    with pytest.raises(openai.BadRequestError, match="Firnline-Memory"):
        create(native.sdk, "hi", previous_response_id=first.id, **off)
    assert create(native.sdk, "hi", **off).output_text == "You said: hi"
    with pytest.raises(openai.BadRequestError, match="expected at most 16"):
        native.sdk.conversations.create(metadata={"a": "b" * 600})


def test_fields_without_effect_are_named(chat):
    raw = chat.sdk.responses.with_raw_response.create(
        model=MODEL, input="hi", truncation="auto", reasoning={"effort": "low", "summary": "auto"}
    )
    assert raw.headers["x-firnline-unused"] == "truncation, reasoning.summary"
    assert chat.model.requests[-1]["reasoning_effort"] == "low"


def test_errors_of_the_endpoint_have_openais_shape(site):
    site.model.fail("429", repeat=True)
    with pytest.raises(openai.RateLimitError):
        create(site.sdk, "hi")
    site.model.fail("error_body")
    with pytest.raises(openai.APIError):
        create(site.sdk, "hi", stream=True)
    site.model.fail("cut")
    events = list(site.sdk.responses.create(model=MODEL, input="hi", stream=True))
    assert [event.sequence_number for event in events] == [*range(len(events))]
    assert (events[0].type, events[-1].type) == ("response.created", "error")


def test_a_question_that_can_never_fit_says_so(site):
    with ExitStack() as stack:
        small = Site(stack, site.way, window_tokens=300)
        with pytest.raises(openai.BadRequestError) as caught:
            create(small.sdk, "word " * 2_000)
    assert caught.value.code == "context_length_exceeded"


def test_without_a_model_memory_answers():
    with ExitStack() as stack:
        server = stack.enter_context(running())
        http = stack.enter_context(httpx2.Client(timeout=60))
        url = f"{server.url}/v1"
        sdk = openai.OpenAI(base_url=url, api_key="none", http_client=http)
        first = create(sdk, "Order 1138 never arrived.")
        second = create(sdk, "Which order?", stream=True, previous_response_id=first.id)
        assert "1138" in second.output_text


@pytest.mark.parametrize(
    ("base", "said"), [("", "lacks /v1"), ("/v1/v1", "/v1 twice"), ("/c/ann", "lacks /v1")]
)
def test_a_wrong_base_url_is_answered_with_the_right_one(native, base, said):
    right = native.server.url + (f"{base}/v1" if base.startswith("/c") else "/v1")
    with openai.OpenAI(base_url=native.server.url + base, api_key="sk") as sdk:
        for call in (
            lambda: create(sdk, "hi"),
            lambda: sdk.responses.retrieve("resp_1"),
            sdk.conversations.create,
            lambda: sdk.chat.completions.create(model=MODEL, messages=[]),
            sdk.models.list,
        ):
            with pytest.raises(openai.NotFoundError, match=said) as caught:
                call()
            assert caught.value.body["message"].endswith(f"set it to {right}")
    claude = anthropic.Anthropic(base_url=f"{native.server.url}/v1", api_key="sk")
    with claude, pytest.raises(anthropic.NotFoundError) as wrong:
        claude.messages.create(model="claude-opus-5", max_tokens=9, messages=[])
    assert wrong.value.body["error"]["message"].endswith(f"set it to {native.server.url}")


# -- an endpoint that breaks the rules --------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'{"output": 7}',
        b'{"output": [{"type": 7}]}',
        b'{"output": [{"type": "function_call"}]}',
        b'{"output": [{"type": "message", "content": 7}]}',
        b'{"output": [], "usage": {"input_tokens": "many"}}',
    ],
)
def test_a_malformed_response_is_a_model_error(body):
    with pytest.raises(ModelError):
        read_response(body)


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "response.output_text.delta", "delta": "x"}],
        [{"type": 7}],
        [{"type": "response.created"}],
        [{"type": "response.created", "response": {"output": 7}}],
        [
            {"type": "response.created", "response": {}},
            {"type": "response.output_item.added", "output_index": -1, "item": {"type": "x"}},
        ],
        [
            {"type": "response.created", "response": {}},
            {"type": "response.output_text.delta", "delta": 7},
        ],
    ],
)
def test_a_malformed_event_is_a_model_error(events):
    checker = ResponseChecker()
    with pytest.raises(ModelError):
        for event in events:
            checker.read(json.dumps(event))


def test_an_answer_that_fails_in_the_middle_ends_as_the_endpoint_says():
    failed = {"code": "server_error", "message": "The model broke."}
    response = {"id": "resp_1", "object": "response", "output": [], "status": "failed"}
    events = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.failed", "response": {**response, "error": failed}},
    ]
    body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    with Endpoint() as endpoint, running(upstream=endpoint.url) as server, httpx2.Client() as http:
        endpoint.reply = (200, "text/event-stream", body.encode(), "whole")
        sdk = openai.OpenAI(base_url=f"{server.url}/v1", api_key="sk", http_client=http)
        seen = list(sdk.responses.create(model=MODEL, input="hi", stream=True))
    assert seen[-1].type == "response.failed"
    assert seen[-1].response.error.message == "The model broke."
    assert seen[-1].response.id == seen[0].response.id


# -- pure -------------------------------------------------------------------------------------

storable = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.text(storable, max_size=20)
parts = st.builds(lambda text: {"type": "input_text", "text": text}, texts)
said = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "developer", "assistant", "system"]),
        "content": st.one_of(texts, st.lists(parts, max_size=3)),
    },
    optional={"type": st.just("message"), "id": st.just("msg_1"), "phase": st.just("commentary")},
)
calls = st.fixed_dictionaries(
    {
        "type": st.just("function_call"),
        "call_id": st.uuids().map(str),
        "name": st.just("f"),
        "arguments": texts,
    },
    optional={"id": st.just("fc_1"), "namespace": st.just("n")},
)
customs = st.builds(
    lambda call, text: {
        "type": "custom_tool_call",
        "call_id": str(call),
        "name": "g",
        "input": text,
    },
    st.uuids(),
    texts,
)
results = st.builds(
    lambda call, text: {"type": "function_call_output", "call_id": str(call), "output": text},
    st.uuids(),
    texts,
)
others = st.sampled_from(
    [
        THOUGHT,
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}},
        {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
        {"type": "compaction", "encrypted_content": "theirs"},
    ]
)
items = st.lists(st.one_of(said, calls, customs, results, others), max_size=8)


@pytest.mark.promise("byte-exact")
@given(items)
def test_items_come_back_as_they_were(given_items):
    stored = [decode(encode(message)) for message in messages_of(check_items(given_items, "i"))]
    assert [item for message in stored for item in items_of(message)] == given_items


@given(items)
def test_items_have_a_form_for_endpoints_that_do_not_know_them(given_items):
    found = [portable(message) for message in messages_of(given_items)]
    assert all(ITEMS not in message.metadata for message in found)
    kinds_sent = {
        part["type"]
        for m in chat_messages(found)
        if isinstance(m["content"], list)
        for part in m["content"]
    }
    assert kinds_sent <= {"text", "image_url", "file"}
    blocks = {
        block["type"] for turn in dump_anthropic(found)["messages"] for block in turn["content"]
    }
    assert blocks <= {"text", "tool_use", "tool_result"}


@given(items)
def test_listed_items_have_what_the_sdk_needs_and_keep_the_rest(given_items):
    listed = []
    for seq, message in enumerate(messages_of(given_items)):
        draft = EntryDraft(message, encode(message), 1, "o200k")
        hash_ = next_hash(genesis(Key("t", "c")), draft.body, 1, "o200k")
        listed += listed_items(Entry(seq, message, 1, seq + 1, "o200k", hash_))
    assert len(listed) == len(given_items)
    for item, original in zip(listed, given_items, strict=True):
        assert item["id"]
        assert {k: v for k, v in item.items() if k in original and k != "content"} == {
            k: v for k, v in original.items() if k != "content"
        }


def test_a_grammar_and_a_choice_are_translated():
    form = {"type": "grammar", "syntax": "lark", "definition": "start: WORD"}
    tools = [TOOLS[0], {**TOOLS[1], "format": form}]
    body = {"model": "m", "tools": tools, "tool_choice": {"type": "custom", "name": "patch"}}
    sent = chat_request(body, "max_tokens")
    assert "start: WORD" in sent["tools"][1]["function"]["description"]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "patch"}}
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"name": "clock"}]}
    sent = anthropic_request({**body, "tool_choice": allowed, "parallel_tool_calls": False})
    assert [tool["name"] for tool in sent["tools"]] == ["clock"]
    assert sent["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    with pytest.raises(InputError, match="log prob"):
        anthropic_request({"model": "m", "top_logprobs": 2})


# -- conformance ------------------------------------------------------------------------------


def rows():
    """The tables of docs/responses.md, by their first column."""
    found = {}
    for line in DOCS.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            found[cells[0].strip("`")] = cells[1:]
    return found


def test_every_field_of_openais_sdk_has_a_fate_that_the_docs_tell():
    params = set(get_type_hints(response_create_params.ResponseCreateParamsBase))
    params |= {"stream"}
    assert params <= set(FIELDS)
    table = rows()
    for name, field in FIELDS.items():
        assert table[name][:2] == [field.native, field.translated], name


def test_every_event_of_openais_sdk_is_known_and_the_docs_tell():
    union = get_args(get_args(kinds.ResponseStreamEvent)[0])
    events = {get_args(each.model_fields["type"].annotation)[0] for each in union}
    assert set(EVENTS_WRITTEN) <= events
    table = rows()
    for event in events:
        assert table[event] == ["passed on", "written" if event in EVENTS_WRITTEN else "never"]


def test_every_event_that_is_written_has_the_shape_that_the_sdk_parses():
    output = [
        {**THOUGHT, "content": [{"type": "reasoning_text", "text": "raw"}]},
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "hi", "annotations": [], "logprobs": []},
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {"id": "f", "type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
        {"id": "t", "type": "custom_tool_call", "call_id": "d", "name": "n", "input": "x"},
    ]
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "tools": []}
    told = {"parallel_tool_calls": True, "tool_choice": "auto", "status": "completed"}
    frames = list(whole_events({**head, **told, "output": output, "usage": None}))
    events = []
    for number, frame in enumerate(frames):
        data = json.loads(frame.split("data: ", 1)[1])
        assert data["sequence_number"] == number
        events.append(TypeAdapter(type(EVENT.validate_python(data))).validate_python(data).type)
    rest = {"response.incomplete", "error"}
    assert set(events) | rest == set(EVENTS_WRITTEN) | {
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
    }


def test_listed_items_are_parsed_by_the_sdk(native):
    made = native.sdk.conversations.create()
    create(native.sdk, "hi", conversation=made.id)
    for item in native.http.get(f"{native.server.url}/v1/conversations/{made.id}/items").json()[
        "data"
    ]:
        TypeAdapter(ConversationItem).validate_python(item, strict=False)
        TypeAdapter(ResponseItem).validate_python(item, strict=False)
