"""Whatever an endpoint answers, the client gets an answer or an error that its SDK understands.

Valid answers, complete and in events, are damaged at random: bytes, values, fields, events.
"""

import copy
import json
import logging
import os
import random

import anthropic
import httpx2
import openai
import pytest
from jiter import from_json

from firnline.errors import ModelError
from firnline.server.proxy import limits
from firnline.server.proxy.check import read_completion, read_message, read_response
from firnline.server.proxy.json_prefix import JsonPrefix
from support.endpoint import Endpoint
from support.live_server import running

CASES = 1_500 if os.environ.get("FIRNLINE_TORTURE") else 70
MODEL = "gpt-4o-mini"
IS_EVENT, BAD_GATEWAY, UNAVAILABLE, TIMEOUT = 200, 502, 503, 504
VALUES = (
    None,
    True,
    0,
    -1,
    7,
    1e308,
    "",
    "x",
    "\ud83d",
    "é\0",
    [],
    [[]],
    [None],
    {},
    {"a": 1},
    "[DONE]",
)
RAW = (
    b"NaN",
    b"Infinity",
    b"-",
    b"\xff\xfe",
    b"[" * 5_000,
    b"[" * 150,
    b"9" * 5_000,
    b"\x00",
    b"{",
)


# -- valid answers ----------------------------------------------------------------------------

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "clock", "arguments": '{"city": "Rome"}'},
}
USAGE = {
    "prompt_tokens": 3,
    "completion_tokens": 5,
    "total_tokens": 8,
    "prompt_tokens_details": {"cached_tokens": 1},
}
HEAD = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL}
LOGPROBS = {
    "content": [{"token": "a", "logprob": -1.0, "bytes": [97], "top_logprobs": []}],
    "refusal": None,
}


def completion():
    message = {
        "role": "assistant",
        "content": "Once upon a time",
        "tool_calls": [CALL],
        "refusal": None,
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": LOGPROBS}
    return copy.deepcopy({**HEAD, "choices": [choice], "usage": USAGE})


def chunks():
    inner = CALL["function"]
    deltas = [
        {"role": "assistant", "content": ""}, {"content": "Once "}, {"content": "upon a time"},
        {"tool_calls": [{**CALL, "index": 0, "function": {**inner, "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"Rome"}'}}]},
    ]  # fmt: skip
    head = {**HEAD, "object": "chat.completion.chunk"}
    choices = [
        {"index": 0, "delta": delta, "finish_reason": None, "logprobs": None} for delta in deltas
    ]
    choices[1]["logprobs"] = LOGPROBS
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    events = [{**head, "choices": [choice]} for choice in choices]
    return copy.deepcopy([*events, {**head, "choices": [], "usage": USAGE}, "[DONE]"])


def blocks():
    return [
        {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
        {"type": "text", "text": "Once upon a time"},
        {"type": "tool_use", "id": "toolu_1", "name": "clock", "input": {"city": "Rome"}},
    ]


def message():
    usage = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": None}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL}
    end = {"stop_reason": "tool_use", "stop_sequence": None, "usage": usage}
    return {**head, "content": blocks(), **end}


def events():
    found = [
        {"type": "message_start", "message": {**message(), "content": [], "stop_reason": None}}
    ]
    empty = {
        "thinking": {"thinking": "", "signature": ""},
        "text": {"text": ""},
        "tool_use": {"input": {}},
    }
    thoughts = {"type": "thinking_delta", "thinking": "Let me see."}
    pieces = ("", '{"city": ', '"Rome"}')
    deltas = {
        "thinking": [thoughts, {"type": "signature_delta", "signature": "c2ln"}],
        "text": [{"type": "text_delta", "text": text} for text in ("Once ", "upon a time")],
        "tool_use": [{"type": "input_json_delta", "partial_json": piece} for piece in pieces],
    }
    for index, block in enumerate(blocks()):
        kind = block["type"]
        found.append(
            {
                "type": "content_block_start",
                "index": index,
                "content_block": {**block, **empty[kind]},
            }
        )
        found += [
            {"type": "content_block_delta", "index": index, "delta": each} for each in deltas[kind]
        ]
        found.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": "tool_use", "stop_sequence": None}
    found.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": 5}})
    return copy.deepcopy([*found[:2], {"type": "ping"}, *found[2:], {"type": "message_stop"}])


# -- damage -----------------------------------------------------------------------------------


def places(value, found=None):
    """Every container in `value` with the keys of what is in it."""
    found = [] if found is None else found
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        found.append((value, key))
        if isinstance(inner, dict | list):
            places(inner, found)
    return found


def damage(value, chance):
    """Change, remove, repeat or exchange something inside."""
    container, key = chance.choice(places(value))
    kind = chance.randrange(5)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, list):
        container.insert(chance.randrange(len(container) + 1), copy.deepcopy(container[key]))
    elif kind == 2 and isinstance(container, list):
        chance.shuffle(container)
    elif kind == 3 and isinstance(container[key], str):
        text = container[key]
        container[key] = text[: chance.randrange(len(text) + 1)] + chance.choice('"\\{}],x\n')
    else:
        container[key] = copy.deepcopy(chance.choice(VALUES))


def damage_bytes(body, chance):
    at = chance.randrange(len(body) + 1)
    kind = chance.randrange(4)
    if kind == 0:
        return body[:at]
    if kind == 1:
        return body[:at] + chance.choice(RAW) + body[at:]
    if kind == 2:
        return body[:at] + chance.choice(RAW) + body[at + 20 :]
    return body.replace(b'"content"', b'"content": 1, "content"', 1)


def framed(items, chance, *, named):
    frames = []
    for item in items:
        data = item if isinstance(item, str) else json.dumps(item)
        kind = item.get("type") if isinstance(item, dict) else None
        name = f"event: {kind}\n" if named and isinstance(kind, str) and kind.isprintable() else ""
        end = "\r\n\r\n" if chance.random() < 0.05 else "\n\n"
        frames.append(f"{name}data: {data}{end}")
    return "".join(frames).encode(errors="surrogatepass")  # which is not UTF-8


def reply(shape, stream, chance):
    """A damaged answer: status, content type, body, and how the connection ends."""
    whole, pieces = (message, events) if shape == "anthropic" else (completion, chunks)
    value = pieces() if stream else whole()
    for _ in range(chance.choice((0, 1, 1, 1, 2, 4))):
        damage(value, chance)
        if not value:
            break
    body = (
        framed(value, chance, named=shape == "anthropic") if stream else json.dumps(value).encode()
    )
    if chance.random() < 0.3:
        body = damage_bytes(body, chance)
    if chance.random() < 0.03:
        body = b""
    kind = "text/event-stream" if stream else "application/json"
    if chance.random() < 0.08:
        kind = chance.choice(("text/html", "application/json", "text/event-stream", "x", ""))
    status = chance.choice((200,) * 30 + (204, 302, 299))
    ending = chance.choice(("whole",) * 8 + ("short", "reset"))
    return status, kind, b"" if status == 204 else body, ending


# -- clients ----------------------------------------------------------------------------------

TOOL = {"type": "object", "properties": {"city": {"type": "string"}}}
IS_JSON = {"content-type": "application/json"}
HISTORY = [{"role": "user", "content": "tell me"}]


def ask_openai(sdk, stream):
    function = {"name": "clock", "parameters": TOOL}
    request = {
        "model": MODEL,
        "messages": HISTORY,
        "tools": [{"type": "function", "function": function}],
    }
    if not stream:
        choice = sdk.chat.completions.create(**request).choices[0]
        return [call.function.name for call in choice.message.tool_calls or ()]
    with sdk.chat.completions.stream(**request) as arriving:
        for _ in arriving:
            pass
        return arriving.get_final_completion().choices[0].message.content


def ask_anthropic(sdk, stream):
    request = {"model": MODEL, "max_tokens": 100, "messages": HISTORY,
               "tools": [{"name": "clock", "input_schema": TOOL}]}  # fmt: skip
    if not stream:
        return [block.type for block in sdk.messages.create(**request).content]
    with sdk.messages.stream(**request) as arriving:
        for _ in arriving:
            pass
        return arriving.get_final_message().stop_reason


@pytest.mark.promise("dead-model")
@pytest.mark.filterwarnings("ignore:Pydantic serializer")  # of the SDKs, for fields they only show
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", ["openai", "anthropic", "translated"])
def test_a_malformed_answer_is_an_error_that_the_sdk_understands(way, stream, tmp_path, caplog):
    shape = "anthropic" if way == "anthropic" else "openai"
    caplog.set_level(logging.ERROR)
    store = f"sqlite:///{tmp_path}/m.db"
    outcomes, broken = {True: 0, False: 0}, []
    with Endpoint() as endpoint, httpx2.Client(timeout=30) as http:
        chosen = {"anthropic" if shape == "anthropic" else "upstream": endpoint.url}
        with running(store=store, recall_tools=False, **chosen) as server:
            for seed in range(CASES):
                endpoint.reply = reply(shape, stream, random.Random(f"{way} {stream} {seed}"))
                options = {"api_key": "k", "max_retries": 0, "http_client": http}
                base = f"{server.url}/c/chat-{seed % 8}"
                try:
                    if way == "openai":
                        ask_openai(openai.OpenAI(base_url=f"{base}/v1", **options), stream)
                    else:
                        ask_anthropic(anthropic.Anthropic(base_url=base, **options), stream)
                    outcomes[True] += 1
                except (openai.APIStatusError, anthropic.APIStatusError) as error:
                    if error.status_code not in (IS_EVENT, BAD_GATEWAY, UNAVAILABLE, TIMEOUT):
                        broken.append((seed, repr(error)))
                    outcomes[False] += 1
                except openai.APIError:  # an event
                    outcomes[False] += 1
                except Exception as error:  # noqa: BLE001 - all that an SDK does not expect
                    broken.append((seed, repr(error)))
            assert server.run(verified(server))
    assert not broken
    assert min(outcomes.values()) > CASES / 10
    assert not [each for each in caplog.records if each.exc_info or "internal" in each.message]


async def verified(server):
    memory = await server.parts.tenants.memory("default")
    names = [head.conversation for head in await memory.conversations(limit=100)]
    return all([(await memory.verify(name)).ok for name in names])


@pytest.mark.parametrize("way", ["openai", "anthropic", "translated"])
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/event-stream", b""),
        ("text/html", b"<html>Sorry</html>"),
        ("text/event-stream", b"data: <html>\n\n"),
        ("text/event-stream", b"data: [DONE]\n\n"),
        ("application/json", b'{"choices": 1}'),
    ],
)
def test_a_stream_that_fails_before_its_first_event_is_a_bad_gateway(way, kind, body):
    with Endpoint() as endpoint, httpx2.Client(timeout=30) as http:
        endpoint.reply = (200, kind, body, "whole")
        options = {"api_key": "k", "max_retries": 0, "http_client": http}
        chosen = {"anthropic" if way == "anthropic" else "upstream": endpoint.url}
        with running(**chosen) as server:
            with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as caught:
                if way == "openai":
                    ask_openai(openai.OpenAI(base_url=f"{server.url}/v1", **options), True)
                else:
                    ask_anthropic(anthropic.Anthropic(base_url=server.url, **options), True)
            assert caught.value.status_code == BAD_GATEWAY
            assert "upstream" in str(caught.value)


OTHERS = ({}, {"object": "chat.completion", "choices": []}, {"type": "error", "error": {}})


@pytest.mark.parametrize("read", [read_completion, read_message, read_response])
@pytest.mark.parametrize("body", [*OTHERS, {"type": "text"}, {"object": "list", "data": []}])
def test_an_object_of_another_kind_is_no_answer(read, body):
    with pytest.raises(ModelError):
        read(json.dumps(body).encode())


def test_what_some_endpoints_leave_out_of_an_answer_is_filled_in():
    given = completion()
    del given["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
    message_of = read_completion(json.dumps(given).encode())["choices"][0]["message"]
    assert message_of["tool_calls"][0]["function"]["arguments"] == "{}"
    assert read_message(b'{"content": []}')["type"] == "message"
    assert read_response(b'{"output": []}')["output"] == []
    assert read_response(b'{"object": "response"}')["output"] == []


def test_a_stream_without_its_last_event_gets_one():
    with Endpoint() as endpoint, httpx2.Client(timeout=30) as http:
        body = framed(events()[:-1], random.Random(0), named=True)
        endpoint.reply = (200, "text/event-stream", body, "whole")
        asked = {"model": MODEL, "max_tokens": 100, "messages": HISTORY, "stream": True}
        with running(anthropic=endpoint.url) as server:
            text = http.post(f"{server.url}/v1/messages", json=asked).text
    assert text.endswith('event: message_stop\ndata: {"type": "message_stop"}\n\n')
    assert text.count("event: message_stop") == 1


# -- requests ---------------------------------------------------------------------------------


def request(shape):
    """A valid request with everything in it."""
    clock = {"name": "clock", "description": "the time"}
    if shape == "anthropic":
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "12:00"}
        said = [("user", "hi"), ("assistant", blocks()), ("user", [result])]
        more = {"max_tokens": 9, "system": [{"type": "text", "text": "Be brief."}]}
        more |= {"tools": [{**clock, "input_schema": TOOL}], "metadata": {"user_id": "u"}}
        return {**body_of(said), **more}
    said = [("system", "Be brief."), ("user", [{"type": "text", "text": "hi"}])]
    asked = body_of(said)
    asked["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "12:00"},
    ]
    tools = [{"type": "function", "function": {**clock, "parameters": TOOL}}]
    return {**asked, "tools": tools, "user": "u", "max_tokens": 9, "stream_options": {}}


def body_of(said):
    messages = [{"role": role, "content": content} for role, content in said]
    return copy.deepcopy({"model": MODEL, "messages": messages, "stream": False})


def requests(shape, count):
    """Damaged ones: tools with any kind of name first, then at random."""
    for name in VALUES:
        asked = copy.deepcopy(request(shape))
        tool = asked["tools"][0]
        tool.get("function", tool)["name"] = name
        yield asked
    for seed in range(count):
        chance, asked = random.Random(f"{shape} {seed}"), copy.deepcopy(request(shape))
        for _ in range(chance.choice((1, 1, 2, 4))):
            if asked:
                damage(asked, chance)
        yield asked


@pytest.mark.parametrize("way", ["openai", "anthropic", "translated"])
def test_a_malformed_request_is_not_an_error_of_the_server(way, tmp_path):
    shape = "openai" if way == "openai" else "anthropic"
    path = "/v1/chat/completions" if way == "openai" else "/v1/messages"
    with Endpoint() as endpoint, httpx2.Client(timeout=30) as http:
        answer = message() if way == "anthropic" else completion()
        endpoint.reply = (200, "application/json", json.dumps(answer).encode(), "whole")
        chosen = {"anthropic" if way == "anthropic" else "upstream": endpoint.url}
        store = f"sqlite:///{tmp_path}/m.db"
        with running(store=store, recall_tools=True, worker=False, **chosen) as server:
            for number, asked in enumerate(requests(shape, CASES)):
                url = f"{server.url}/c/chat-{number % 8}{path}"
                found = http.post(url, content=json.dumps(asked), headers=IS_JSON)
                assert found.status_code < 500, (asked, found.text)
            assert server.run(verified(server))


def test_half_of_a_surrogate_pair_in_the_last_event_does_not_break_the_stream():
    items = chunks()[:3]
    items.append(copy.deepcopy(items[1]))
    items[-1]["choices"][0] |= {"delta": {}, "finish_reason": "\ud83d"}
    with Endpoint() as endpoint, httpx2.Client(timeout=30) as http:
        body = "".join(f"data: {json.dumps(item)}\n\n" for item in items) + "data: [DONE]\n\n"
        endpoint.reply = (200, "text/event-stream", body.encode(), "whole")
        asked = {"model": MODEL, "messages": HISTORY, "stream": True}
        with running(upstream=endpoint.url, recall_tools=True) as server:
            text = http.post(f"{server.url}/v1/chat/completions", json=asked).text
    assert "upon a time" in text
    assert text.endswith("data: [DONE]\n\n")


def test_too_many_calls_of_recall_tools_are_a_bad_gateway():
    function = {"name": "search_history", "arguments": "{}"}
    answer = completion()
    answer["choices"][0]["message"]["tool_calls"] = [
        {"id": f"c{i}", "type": "function", "function": function} for i in range(129)
    ]
    with Endpoint() as endpoint, httpx2.Client(timeout=30) as http:
        endpoint.reply = (200, "application/json", json.dumps(answer).encode(), "whole")
        with running(upstream=endpoint.url, recall_tools=True) as server:
            asked = {"model": MODEL, "messages": HISTORY}
            found = http.post(f"{server.url}/v1/chat/completions", json=asked)
    assert found.status_code == BAD_GATEWAY
    assert "calls 129 recall tools; the limit is 128" in found.text


def test_an_answer_that_is_too_large_is_a_bad_gateway(monkeypatch):
    monkeypatch.setattr(limits, "ANSWER_BYTES_MAX", 10_000)
    with Endpoint() as endpoint, httpx2.Client(timeout=30) as http:
        endpoint.reply = (200, "application/json", b" " * 10_001, "whole")
        with running(upstream=endpoint.url) as server:
            asked = {"model": MODEL, "messages": HISTORY}
            answer = http.post(f"{server.url}/v1/chat/completions", json=asked)
            assert (answer.status_code, answer.json()["error"]["code"]) == (
                BAD_GATEWAY,
                "too_large",
            )


STARTS = (
    '{"a": [1, -2.5e3, true, null, {"b": "x\\u00e9 \\ud83d\\ude00\\n"}], "c": ""}',
    ' { "k" : false , "l":[[]]} ',
)


@pytest.mark.parametrize("seed", range(4))
def test_the_beginning_of_a_calls_input_is_what_the_sdk_can_read(seed):
    """It fails if it is given anything else, so nothing else may be passed on."""
    chance, seen = random.Random(seed), set()
    for _ in range(500):
        text = chance.choice(STARTS)
        if chance.random() < 0.6:
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice('x"}],\\0-{: ') + text[at + chance.randrange(2) :]
        text = text[: chance.randrange(1, len(text) + 1)]
        prefix, taken = JsonPrefix(), True
        try:
            for at in range(0, len(text), 3):
                prefix.add(text[at : at + 3])
        except ModelError:
            taken = False
        try:
            valid = isinstance(from_json(text.encode(), partial_mode=True), dict)
        except ValueError:
            valid = False
        assert valid or not taken, text
        seen.add((taken, valid))
    assert seen >= {(True, True), (False, False)}
