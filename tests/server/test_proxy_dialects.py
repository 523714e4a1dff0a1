"""What every client of the proxy gets, in each of its protocols."""

import json
import os

import anthropic
import openai
import pytest

from firnline.errors import StoreFull
from firnline.testing import ModelServer, call_tool, claude
from firnline.testing.provider_rules import openai_problems
from support.dialects import (
    DIALECTS,
    FACT,
    FILLER,
    HTTP,
    MODEL,
    TOOLS,
    answered_by_prompt,
    both_tools,
    entries,
    heads,
    recalling,
    reference_tokens,
    texts_in,
)
from support.live_server import running

MOST, MANY = (300, 300) if os.environ.get("FIRNLINE_TORTURE") else (120, 60)


@pytest.fixture
def model():
    with ModelServer(model=MODEL, pause=0.0) as server:
        yield server


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return DIALECTS[request.param]


either = pytest.mark.parametrize("stream", [False, True])


# -- one conversation, no header needed -------------------------------------------------------


def talk(dialect, url, turns):
    """A conversation as applications hold it: the whole history is sent every time.

    In two turns of ten the SDK looks through all of it, as it does unless it is told otherwise.
    """
    history = []
    for n in range(turns):
        text = FACT if n == 0 else FILLER.format(n=n)
        if n == turns - 1:
            text = "What is the vault's code word?"
        elif n % 10 == 3:
            text = f"Please use both tools for {n:>6}"
        history.append(dialect.question(text, picture=n == 5))
        options = {"tools": TOOLS, "system": f"Be kind. It is day {n}."}
        checked = n % 10 in (3, 4)
        reply = dialect.ask(url, history, stream=n % 2 == 0, checked=checked, **options)
        history.append(reply.message)
        if reply.calls:
            history += dialect.results(reply.calls, "sunny")
            history.append(dialect.ask(url, history, stream=n % 20 == 3, **options).message)
    return history, reply.text


@pytest.mark.requirement("X1")
@pytest.mark.promise("within-budget")
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "turns", "window"),
    [("openai", MOST, 8_000), ("translated", MANY, 4_000), ("native", 60, 3_000)],
)
def test_hundreds_of_turns_through_the_sdk_with_a_small_window(
    model, tmp_path, name, turns, window
):
    dialect, model.answer = DIALECTS[name], answered_by_prompt
    store = f"sqlite:///{tmp_path}/proxy.db"
    with dialect.behind(model, window_tokens=window, store=store) as server:
        history, answer = talk(dialect, server.url, turns)
        stored = entries(server)  # one conversation, found again each time
    assert answer == "It is Kestrel-7741."
    asked = [
        texts_in(message["content"])[0]
        for message in history
        if message["role"] == "user" and "tool_result" not in json.dumps(message["content"])
    ]
    assert len(asked) == turns
    assert [message.text for message in stored if message.role == "user"] == asked
    answers = [message for message in history if message["role"] == "assistant"]
    assert len([message for message in stored if message.role == "assistant"]) == len(answers)
    assert [message for message in stored if not isinstance(message.content, str | None)], (
        "pictures"
    )
    assert len(model.requests) == turns + turns // 10
    for request in model.requests:
        assert reference_tokens(request) <= window - dialect.reserved
        if name == "native":
            assert claude.complaint(request, window - dialect.reserved + 1_600) is None
        else:
            assert openai_problems(request["messages"]) == []


# -- repeated requests ------------------------------------------------------------------------


@pytest.mark.promise("idempotent")
@either
@pytest.mark.parametrize("named", [False, True])
def test_a_repeated_request_gets_the_answer_that_is_stored(model, dialect, stream, named):
    with dialect.behind(model) as server:
        model.say({**both_tools(), "content": "Let me see."})
        url = f"{server.url}/c/named" if named else server.url
        replies = [
            dialect.ask(
                url,
                [dialect.question("hi")],
                stream=stream,
                tools=TOOLS,
                extra_headers={"x-stainless-retry-count": str(n), "idempotency-key": "k"},
            )
            for n in (0, 1)
        ]
        assert replies[0].message == replies[1].message
        assert [reply.wants_results for reply in replies] == [True, True]
        assert len(model.requests) == 1
        assert len(entries(server)) == 2


def test_an_unanswered_question_is_not_stored_again_when_the_sdk_repeats_it(model, dialect):
    with dialect.behind(model) as server:
        model.fail("500", "503")
        reply = dialect.ask(server.url, [dialect.question("are you there?")], retries=3)
        assert reply.text == "You said: are you there?"
        assert [message.role for message in entries(server)] == ["user", "assistant"]


# -- trouble ----------------------------------------------------------------------------------


@pytest.mark.promise("dead-model")
@either
def test_a_chat_goes_on_without_its_memory_and_says_so(model, dialect, stream):
    async def full(*_, **__):
        raise StoreFull

    with dialect.behind(model) as server:
        server.parts.tenants.store.append = full
        messages = [dialect.question("hi")]
        body = {"model": MODEL, "max_tokens": 9, "messages": messages, "stream": stream}
        answer = HTTP.post(f"{server.url}{dialect.path}", json=body)
        assert answer.status_code == 200
        assert answer.headers["x-firnline-status"] == "degraded"
        assert "disk is full" in answer.headers["x-firnline-degraded"]
        assert "said" in answer.text
        assert model.requests[-1]["messages"] == messages


def test_memory_off_passes_a_request_through_and_stores_nothing(model, dialect):
    with dialect.behind(model) as server:
        off = {"X-Firnline-Memory": "off"}
        dialect.ask(server.url, [dialect.question("a title, please")], extra_headers=off)
        assert model.requests[-1]["messages"] == [dialect.question("a title, please")]
        assert heads(server) == []


NO_MESSAGES = b'{"messages": []}'
MALFORMED = [
    b"", b"[]", b"{}", b'{"messages": 3}', b"\xff", b'{"messages": [], "base_url": "http://x"}',
    b'{"messages": ' + b"[" * 100_000, b'{"messages": [NaN]}', NO_MESSAGES,
    b'{"messages": [5]}', b'{"messages": [{"role": "user", "content": "hi"}, null]}',
]  # fmt: skip


def test_a_malformed_request_is_refused_in_the_clients_shape(model, dialect):
    paths = [dialect.path, f"/c/x{dialect.path}"]
    paths += [f"{dialect.path}/count_tokens"] if dialect.name != "openai" else []
    with dialect.behind(model) as server:
        for path in paths:
            counted = path.endswith("count_tokens")  # no messages are none to count
            for body in (b for b in MALFORMED if not (counted and b == NO_MESSAGES)):
                answer = HTTP.post(f"{server.url}{path}", content=body)
                assert answer.status_code == 400, body
                assert answer.json()["error"]["type"] == "invalid_request_error"
                assert (answer.json().get("type") == "error") == (dialect.name != "openai")
        assert model.requests == []


def test_what_cannot_fit_is_told_as_the_client_expects_it(model, dialect):
    with dialect.behind(model, window_tokens=300) as server:
        with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as caught:
            dialect.ask(server.url, [dialect.question("word " * 1_000)])
        if dialect.name == "openai":
            assert caught.value.code == "context_length_exceeded"
        else:
            assert caught.match(r"prompt is too long: \d+ tokens > ")
        assert model.requests == []


# -- recall tools -----------------------------------------------------------------------------


@pytest.mark.requirement("B10")
@either
def test_recall_tools_are_run_by_the_server_and_the_client_sees_nothing_of_it(
    model, dialect, stream
):
    model.answer = recalling
    with dialect.behind(model, recall_tools=True, window_tokens=8_000) as server:
        history = [dialect.question(FACT)]
        history.append(dialect.ask(server.url, history, stream=stream).message)
        history.append(dialect.question("recall it"))
        reply = dialect.ask(server.url, history, stream=stream)
        assert (reply.calls, reply.wants_results) == ((), False)
        assert reply.text.endswith("Found: Kestrel-7741")
        asked, answered = model.requests[-2:]
        assert len(asked["tools"]) >= 4
        assert reply.prompt_tokens > reference_tokens(answered)  # both rounds are paid
        # What the client saw is what is stored, so that it goes on where it was.
        history += [reply.message, dialect.question("thank you")]
        dialect.ask(server.url, history, stream=stream)
        assert [message.role for message in entries(server)] == ["user", "assistant"] * 3


@either
def test_of_mixed_calls_the_client_sees_its_own(model, dialect, stream):
    model.answer = recalling
    with dialect.behind(model, recall_tools=True) as server:
        reply = dialect.ask(server.url, [dialect.question("mixed")], stream=stream, tools=TOOLS)
        assert (reply.names, reply.wants_results) == (["clock"], True)
        assert [call.name for call in entries(server)[-1].tool_calls] == ["clock"]


@either
def test_recalling_without_end_is_ended(model, dialect, stream):
    def endless(request):
        chosen = request.get("tool_choice") or {}
        offered = request.get("tools") and chosen not in ("none", {"type": "none"})
        call = call_tool("search_history", {"query": "again"})["tool_calls"][0]
        number = len(model.requests)
        return {"tool_calls": [{**call, "id": f"c{number}"}]} if offered else "Enough."

    model.answer = endless
    with dialect.behind(model, recall_tools=True, window_tokens=4_000) as server:
        reply = dialect.ask(server.url, [dialect.question("go on")], stream=stream)
        assert reply.text == "Enough."
        assert 2 <= len(model.requests) <= 5
        most = 4_000 - dialect.reserved
        assert all(reference_tokens(request) <= most for request in model.requests)


# -- no model at all --------------------------------------------------------------------------


@pytest.mark.requirement("X4")
@either
@pytest.mark.parametrize("name", ["openai", "native"])
def test_without_a_model_memory_is_quoted_and_that_is_said(name, stream):
    dialect = DIALECTS[name]
    with running() as server:
        history = [dialect.question(FACT)]
        history.append(dialect.ask(server.url, history, stream=stream).message)
        history.append(dialect.question("Which code word has the vault?"))
        text = dialect.ask(server.url, history, stream=stream).text
        assert "no language model" in text
        assert f"“{FACT}” (user" in text
