"""The HTTP model against a real server over real sockets: every fault and its result."""

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from firnline.errors import InputError, ModelError, ModelRefused, ModelTimeout
from firnline.log.message import Message, ToolCall
from firnline.models import Timeouts, callable_model, open_model, with_fallback
from firnline.models.http import HttpModel
from firnline.models.timeouts import retry_after
from firnline.protocols import Completion
from firnline.testing import ModelServer, call_tool
from firnline.testing.model_server import FAULTS

ASK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "How are you today?"},
]
SAID = "You said: How are you today?"
NOON = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)
QUICK = Timeouts(connect=60.0, first_byte=0.15, between=0.15, total=0.3)


@pytest.fixture
async def server():
    async with ModelServer(pause=0.4) as server:
        yield server


@pytest.fixture
async def slept():
    """How long the model wanted to sleep, each time."""
    return []


@pytest.fixture
async def make(server, slept):
    """Makes models that talk to the server, do not sleep, and wait as long as chance lets them."""
    made = []

    async def sleep(seconds):
        slept.append(seconds)
        await asyncio.sleep(0)

    def make(**options):
        options = {"url": server.url, "sleep": sleep, "clock": lambda: NOON, **options}
        made.append(HttpModel("test", chance=lambda: 0.5, **options))
        return made[-1]

    yield make
    for model in made:
        await model.close()


async def drain(model, messages=ASK, **options):
    return [item async for item in model.stream(messages, **options)]


# -- what goes well ---------------------------------------------------------------------------


async def test_an_answer_comes_with_its_figures(server, make):
    completion = await make().complete(ASK, max_tokens=50)
    assert completion.message == Message.assistant(SAID)
    assert completion.finish_reason == "stop"
    assert completion.model == "test"
    assert completion.prompt_tokens > completion.completion_tokens > 0
    (request,) = server.requests
    assert request == {"model": "test", "messages": ASK, "max_tokens": 50}


async def test_a_stream_has_pieces_and_then_the_full_answer(make):
    *pieces, completion = await drain(make())
    assert "".join(pieces) == SAID
    assert len(pieces) > 3
    assert completion == await make().complete(ASK)


async def test_tool_calls_are_complete_in_answers_and_streams(server, make):
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    both = {
        "content": "Let me see.",
        "tool_calls": [
            call_tool("look", {"at": "sea"})["tool_calls"][0],
            {"id": "2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        ],
    }
    server.say(both, both)
    whole = await make().complete(ASK, tools=tools)
    assert whole.finish_reason == "tool_calls"
    assert [call.name for call in whole.message.tool_calls] == ["look", "look"]
    assert whole.message.tool_calls[0].arguments == '{"at":"sea"}'
    assert (await drain(make(), tools=tools))[-1] == whole
    assert server.requests[0]["tools"] == tools


async def test_order_and_roles_are_passed_on_as_given(server, make):
    messages = [
        {"role": "developer", "content": "x"},
        {"role": "user", "content": [{"type": "text", "text": "line\u2028line"}], "name": "Ana"},
        {"role": "assistant", "content": None, "tool_calls": [ToolCall.of("1", "f", {}).fields]},
        {"role": "tool", "tool_call_id": "1", "content": "é😀"},
        {"role": "user", "content": "and?", "unknown": {"kept": True}},
    ]
    await make().complete(messages)
    assert server.requests[0]["messages"] == messages


async def test_odd_line_separators_in_a_stream_do_not_split_events(server, make):
    server.say("a\u2028b\u0085c\x0bd")
    *pieces, _ = await drain(make())
    assert "".join(pieces) == "a\u2028b\u0085c\x0bd"


async def test_an_endpoint_that_does_not_stream_is_understood(make):
    body = b'{"choices":[{"message":{"content":"all at once"},"finish_reason":"stop"}]}'
    async with _raw(body) as url:
        assert (await drain(make(url=url)))[0] == "all at once"


async def test_a_cut_off_answer_says_so(server, make):
    server.fail("length")
    assert (await make().complete(ASK)).finish_reason == "length"


# -- every fault ------------------------------------------------------------------------------

PASSING = {"reset", "408", "429", "500", "503", "409", "502", "529"}
USABLE = {"invalid_json", "overlong", "refusal", "length"}  # for the caller to judge
CODES = {
    "invalid_body": "not_json",
    "error_body": "upstream",
    "no_choices": "no_choices",
    "empty": "empty",
    "refusal_field": "refusal",
    "content_filter": "content_filter",
}


def test_every_fault_is_tried_below():
    assert set(FAULTS) <= PASSING | USABLE | set(CODES) | {
        "refused", "slow", "trickle", "cut", "context_length",
    }  # fmt: skip


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("fault", sorted(PASSING))
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
async def test_what_may_pass_is_tried_again(server, make, slept, fault, streams):
    server.fail(fault, fault)
    model = make()
    answer = (await drain(model))[-1] if streams else await model.complete(ASK)
    assert answer.message.text == SAID
    assert len(server.requests) == 3
    assert slept == [0.25, 0.5]  # half of 0.5 and of 1.0, by chance


@pytest.mark.parametrize("fault", sorted(PASSING))
async def test_what_does_not_pass_is_an_error_after_three_retries(server, make, slept, fault):
    server.fail(fault, repeat=True)
    with pytest.raises(ModelError) as caught:
        await make().complete(ASK)
    assert len(server.requests) == 4
    assert len(slept) == 3
    assert caught.value.retryable
    assert caught.value.context.get("status") == (None if fault == "reset" else int(fault))
    server.heal()
    with pytest.raises(ModelError):
        server.fail(fault, repeat=True)
        await make(retries=0).complete(ASK)
    assert len(server.requests) == 5


@pytest.mark.parametrize("status", ["400", "401", "402", "403", "404", "413", "422", "301"])
async def test_what_is_rejected_is_not_tried_again(server, make, status):
    server.fail(status)
    with pytest.raises(ModelRefused, match=f"status {status} on demand") as caught:
        await make().complete(ASK)
    assert (caught.value.context["status"], caught.value.context["code"]) == (
        int(status),
        "on_demand",
    )
    assert not caught.value.retryable
    assert len(server.requests) == 1


async def test_a_request_that_is_too_long_says_so_by_a_code(server, make):
    server.fail("context_length")
    with pytest.raises(ModelRefused) as caught:
        await drain(make())
    assert caught.value.context["code"] == "context_length_exceeded"


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("fault", sorted(CODES))
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
async def test_an_answer_that_cannot_be_used_is_an_error(server, make, fault, streams):
    server.fail(fault)
    with pytest.raises(ModelError) as caught:
        await (drain(make()) if streams else make().complete(ASK))
    assert not isinstance(caught.value, ModelRefused)
    code = "cut" if (fault, streams) == ("no_choices", True) else CODES[fault]
    assert caught.value.context["code"] == code
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", sorted(USABLE))
async def test_what_only_the_asker_can_judge_is_handed_over(server, make, fault):
    server.fail(fault, fault)
    whole = await make().complete(ASK)
    assert (await drain(make()))[-1] == whole


@pytest.mark.requirement("A8")
async def test_a_refused_connection_is_retried_until_it_succeeds(server, make, slept):
    server.refuse()

    async def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 2:
            server.accept()

    assert (await make(sleep=sleep).complete(ASK)).message.text == SAID
    assert len(slept) == 2
    server.refuse()
    with pytest.raises(ModelError, match="cannot be reached") as caught:
        await make().complete(ASK)
    assert caught.value.context["code"] == "connection"


async def test_a_server_that_goes_away_for_a_while_is_found_again(server, make, slept):
    server.pause = 0.02
    server.fail("refused")

    async def sleep(seconds):
        slept.append(seconds)
        while server._listener is None:
            await asyncio.sleep(0.005)

    assert (await make(sleep=sleep).complete(ASK)).message.text == SAID
    assert slept


@pytest.mark.requirement("A8")
async def test_a_stream_that_is_cut_keeps_what_arrived(server, make):
    server.fail("cut")
    pieces = []
    with pytest.raises(ModelError) as caught:
        async for piece in make().stream(ASK):
            pieces.append(piece)  # noqa: PERF401 - what came before the error counts
    assert caught.value.context["code"] == "cut"
    assert caught.value.context["partial"] == "".join(pieces) != ""
    assert SAID.startswith("".join(pieces))
    assert len(server.requests) == 1


async def test_a_stream_that_ends_without_its_end_is_cut_too(make):
    body = b'data: {"choices":[{"delta":{"content":"half a sen"}}]}\n\n'
    async with _raw(body, b"text/event-stream") as url:
        with pytest.raises(ModelError, match=r"without a final event|interrupted") as caught:
            await drain(make(url=url))
    assert caught.value.context == {"code": "cut", "partial": "half a sen"}


async def test_an_error_in_the_middle_of_a_stream_keeps_what_arrived(make):
    body = b'data: {"choices":[{"delta":{"content":"half"}}]}\n\ndata: {"error":"overloaded"}\n\n'
    async with _raw(body, b"text/event-stream") as url:
        with pytest.raises(ModelError, match="overloaded") as caught:
            await drain(make(url=url))
    assert caught.value.context["partial"] == "half"


async def test_full_calls_under_one_index_stay_two_calls(make):
    """Some endpoints number every streamed call 0."""
    calls = [{"index": 0, **ToolCall.of(name, name, {}).fields} for name in "ab"]
    chunks = [{"choices": [{"delta": {"tool_calls": [call]}}]} for call in calls]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    async with _raw(body.encode(), b"text/event-stream") as url:
        (completion,) = await drain(make(url=url))
    assert [call.id for call in completion.message.tool_calls] == ["a", "b"]


async def test_a_full_answer_that_is_cut_is_asked_for_again(server, make):
    server.fail("cut")
    assert (await make().complete(ASK)).message.text == SAID
    assert len(server.requests) == 2


# -- time -------------------------------------------------------------------------------------


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", ["slow", "trickle"])
async def test_a_slow_endpoint_times_out(server, make, slept, fault, streams):
    server.pause = 30 if fault == "slow" else 0.01
    server.fail(fault)
    with pytest.raises(ModelTimeout):
        await (drain(make(timeouts=QUICK)) if streams else make(timeouts=QUICK).complete(ASK))
    assert slept == []  # nor is it asked again
    assert len(server.requests) <= 1  # on a slow machine, not even the first has arrived


async def test_a_pause_between_pieces_has_its_own_limit(server, make):
    server.pause = 30
    server.fail("trickle")
    patient = Timeouts(connect=60, first_byte=60, between=0.05, total=60)
    with pytest.raises(ModelTimeout, match="next piece"):
        await make(timeouts=patient).complete(ASK)


async def test_a_connection_that_is_not_made_in_time_is_a_timeout(make, slept):
    # 192.0.2.0/24 is for documentation: no host answers, or the network says so at once.
    model = make(url="http://192.0.2.1:9/v1", timeouts=Timeouts(connect=0.02), retries=1)
    with pytest.raises(ModelError) as caught:
        await model.complete(ASK)
    assert caught.value.context["code"] == "connection"
    assert len(slept) == 1


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("Sun, 15 Nov 2026 12:00:20 GMT", 20.0), ("-3", 0.0), ("soon", 0.0)],
)
async def test_retry_after_is_added_to_the_jitter(server, make, slept, said, seconds):
    server.retry_after = said
    server.fail("429", "503")
    await make().complete(ASK)
    assert slept == [seconds + 0.25, seconds + 0.5]


async def test_a_retry_after_beyond_the_deadline_is_an_error_at_once(server, make, slept):
    server.retry_after = "3000"
    server.fail("429")
    with pytest.raises(ModelError) as caught:
        await make().complete(ASK)
    assert caught.value.context["retry_after"] == 3000
    assert slept == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e9"}, 3600.0),
        ({"retry-after": "Sun, 15 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Sun, 15 Nov 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": "Wed, 15 Nov 2099 12:00:00 GMT"}, 3600.0),
        ({"retry-after": "\u0663"}, 3.0),
    ],
)
def test_how_long_an_endpoint_wants_to_be_left_alone(headers, seconds):
    assert retry_after(headers, NOON) == seconds


async def test_a_used_up_quota_is_not_tried_again(make, slept):
    body = b'{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}'
    async with _raw(body, status=b"429 Too Many Requests") as url:
        with pytest.raises(ModelRefused, match="quota"):
            await make(url=url).complete(ASK)
    assert slept == []


async def test_an_endless_answer_is_given_up(make, monkeypatch):
    monkeypatch.setattr("firnline.log.limits.MESSAGE_BYTES_MAX", 10_000)
    async with _raw(b" " * 20_000) as url:
        with pytest.raises(ModelError) as caught:
            await make(url=url).complete(ASK)
    assert caught.value.context["code"] == "size"


async def test_giving_up_in_the_middle_of_a_stream_leaves_nothing_behind(server, make):
    model = make()
    stream = model.stream(ASK)
    assert await anext(stream) == "You "
    await stream.aclose()
    assert (await model.complete(ASK)).message.text == SAID


async def test_a_closed_model_can_be_used_again(make):
    model = make()
    for _ in range(2):
        assert (await model.complete(ASK)).message.text == SAID
        await model.close()
        await model.close()


# -- keys and names ---------------------------------------------------------------------------

KEY = "sk-secret-1234567890"


async def test_the_key_goes_to_the_endpoint_and_nowhere_else(server, make, caplog):
    caplog.set_level(0)
    model = make(api_key=KEY)
    await model.complete(ASK)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    body = f'{{"error": "wrong key {KEY}, said in plain text"}}'.encode()
    async with _raw(body, status=b"401 Unauthorized") as url:
        echoing = make(url=url, api_key=KEY)
        with pytest.raises(ModelRefused, match=r"wrong key \*\*\*") as caught:
            await echoing.complete(ASK)
    seen = repr(model) + str(caught.value) + repr(caught.value.context) + caplog.text
    assert KEY not in seen
    assert "How are you" not in seen


@pytest.mark.parametrize(
    ("name", "variable", "model", "url"),
    [
        ("openai/gpt-4o-mini", "OPENAI_API_KEY", "gpt-4o-mini", "https://api.openai.com/v1"),
        ("xai/grok-4", "XAI_API_KEY", "grok-4", "https://api.x.ai/v1"),
        (
            "openrouter/qwen/qwen3-235b", "OPENROUTER_API_KEY",
            "qwen/qwen3-235b", "https://openrouter.ai/api/v1",
        ),
        (
            "anthropic/claude-opus-5", "ANTHROPIC_API_KEY",
            "claude-opus-5", "https://api.anthropic.com/v1",
        ),
        (
            "gemini/gemini-3-flash", "GEMINI_API_KEY", "gemini-3-flash",
            "https://generativelanguage.googleapis.com/v1beta/openai",
        ),
        (
            "azure/prod", "AZURE_OPENAI_API_KEY", "prod",
            "https://mine.openai.azure.com/openai/v1",
        ),
        ("ollama/qwen3", None, "qwen3", "http://localhost:11434/v1"),
        ("vllm/Qwen/Qwen3-8B", None, "Qwen/Qwen3-8B", "http://localhost:8000/v1"),
        ("llamacpp/any", None, "any", "http://localhost:8080/v1"),
    ],
)  # fmt: skip
def test_the_name_picks_the_address_and_the_key(monkeypatch, name, variable, model, url):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")
    if variable:
        monkeypatch.delenv(variable, raising=False)
        with pytest.raises(InputError, match=f"needs a key: set {variable}, or pass api_key"):
            open_model(name)
        monkeypatch.setenv(variable, KEY)
    opened = open_model(name)
    assert opened.name == model
    shown = "***" if variable else "None"
    assert repr(opened) == f"HttpModel({model!r}, url={url!r}, api_key={shown})"
    assert opened._api_key == (KEY if variable else None)


def test_a_gateway_gets_the_whole_name_of_a_model_that_it_resells():
    url = "https://gateway.example/v1"
    assert open_model("anthropic/claude-opus-5", url=url).name == "anthropic/claude-opus-5"
    assert open_model("openai/gpt-4o", url=url).name == "gpt-4o"


def test_a_resource_of_azure_is_needed(monkeypatch):
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    with pytest.raises(InputError, match="set AZURE_OPENAI_ENDPOINT, or pass url"):
        open_model("azure/prod", api_key=KEY)


def test_a_key_from_the_environment_is_not_sent_to_another_address(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert open_model("openai/gpt-4o", url="https://elsewhere.example/v1")._api_key is None


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("gpt-4o", {}, "expected PROVIDER/MODEL"),
        ("acme/model", {}, "openai, anthropic, gemini, azure, xai, openrouter"),
        ("openai/", {}, "expected PROVIDER/MODEL"),
        ("", {"url": "http://x/v1"}, "expected PROVIDER/MODEL"),
        ("m", {"url": "localhost:8000"}, "url: expected"),
        ("m", {"url": "ftp://x/v1"}, "url: expected"),
        ("m", {"url": "https://user:pass@x/v1"}, "use api_key"),
        ("m", {"url": "http://x/v1", "retries": 11}, "retries"),
    ],
)
def test_what_cannot_be_opened_is_a_clear_error(name, options, said):
    with pytest.raises(InputError, match=said):
        open_model(name, **options)


def test_only_openai_itself_gets_the_new_name_of_the_limit():
    for url, field in (
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("http://x/v1", "max_tokens"),
    ):
        assert HttpModel("m", url=url)._body(ASK, (), 9)[field] == 9


def test_a_missing_extra_is_a_clear_error():
    code = (
        "import sys; sys.modules['httpx2'] = None\n"
        "from firnline.models import open_model\n"
        "try: open_model('ollama/qwen3')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("FirnlineError")
    assert 'pip install "firnline[models]"' in done.stdout


# -- functions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        "fine",
        {"content": "fine"},
        {"role": "assistant", "content": "fine"},
        Message.assistant("fine"),
    ],
)
async def test_a_function_is_a_model(answer):
    async def function(messages):
        assert messages == ASK
        return answer

    model = callable_model(function, name="gpt-4o")
    assert model.name == "gpt-4o"
    completion = await model.complete(ASK, tools=[{"type": "function"}])
    assert completion.message.text == "fine"
    assert await drain(model) == ["fine", completion]
    await model.close()


async def test_a_function_that_is_not_async_says_so():
    with pytest.raises(ModelRefused, match=r"plain is not async.* define it with `async def`"):
        await callable_model(lambda messages: "fine", name="plain").complete(ASK)


async def test_a_function_that_takes_tools_gets_them():
    async def function(messages, tools):
        return call_tool(tools[0]["function"]["name"])

    completion = await callable_model(function).complete(ASK, tools=[{"function": {"name": "f"}}])
    assert completion.finish_reason == "tool_calls"
    assert completion.message.tool_calls[0].name == "f"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (ValueError("x"), ModelError),
        (TimeoutError(), ModelTimeout),
        (ModelRefused(), ModelRefused),
        ("", ModelError),
        (7, ModelError),
        ({"role": "nobody"}, ModelError),
    ],
)
async def test_whatever_a_function_does_wrong_is_a_model_error(answer, kind):
    async def function(messages):
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(kind):
        await callable_model(function).complete(ASK)


# -- the larger window ------------------------------------------------------------------------


def _named(name, said):
    async def function(messages):
        return said

    return callable_model(function, name=name)


@pytest.mark.requirement("D5")
async def test_near_the_window_the_larger_model_answers_and_is_counted():
    model = with_fallback(_named("gpt-4", "small"), _named("gpt-4o", "large"))
    assert model.name == "gpt-4"
    for words, said, times in [
        (10, "small", 0),
        (7_700, "small", 0),
        (7_800, "large", 1),
        (9_000, "large", 2),
    ]:
        messages = [{"role": "user", "content": " word" * words}]
        assert (await model.complete(messages)).message.text == said
        assert model.fallbacks == times
    *_, last = await drain(model, messages)
    assert (last.message.text, model.fallbacks) == ("large", 3)
    assert (await drain(model))[0] == "small"
    assert (await model.complete(ASK, max_tokens=8_000)).message.text == "large"
    await model.close()


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
async def test_what_the_first_endpoint_finds_too_long_goes_to_the_larger(streams):
    """The provider's own count decides, if it differs from ours."""
    async with ModelServer(window_tokens=200) as small, ModelServer(window_tokens=9_000) as large:
        first, second = (open_model("m", url=each.url) for each in (small, large))
        model = with_fallback(first, second, window_tokens=4_000)
        messages = [{"role": "user", "content": "many words " * 200}]
        answer = (await drain(model, messages))[-1] if streams else await model.complete(messages)
        assert isinstance(answer, Completion)
        assert [len(each.requests) for each in (small, large)] == [1, 1]
        assert model.fallbacks == 1
        small.fail("401")
        with pytest.raises(ModelRefused):
            await (drain(model) if streams else model.complete(ASK))
        assert model.fallbacks == 1
        await model.close()


def test_a_fallback_that_is_no_larger_is_rejected():
    with pytest.raises(InputError, match="no larger"):
        with_fallback(_named("gpt-4o", ""), _named("gpt-4", ""))
    with pytest.raises(InputError, match="near"):
        with_fallback(_named("gpt-4", ""), _named("gpt-4o", ""), near=95)


# -- a server that says exactly this ----------------------------------------------------------


class _raw:  # noqa: N801 - read as `async with _raw(body) as url:`
    """Answers every request with the same bytes, and closes the connection."""

    def __init__(self, body, kind=b"application/json", status=b"200 OK"):
        head = (
            b"HTTP/1.1 " + status + b"\r\ncontent-type: " + kind + b"\r\nconnection: close\r\n\r\n"
        )
        self._answer = head + body

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aexit__(self, *_):
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if b"content-length" in line
        )
        await reader.readexactly(length)
        writer.write(self._answer)
        await writer.drain()
        writer.close()
