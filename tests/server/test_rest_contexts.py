"""Contexts and turns over HTTP: within the budget, explained; answers are stored."""

import itertools

import pytest

from firnline.log.tokens import DEFAULT_MODEL
from firnline.testing import ModelServer, call_tool
from firnline.testing.strategy_conformance import reference_encoder
from support.live_server import running
from support.rest_client import Api, on_any_store, parse_events

LONG = "We spoke of the harbour, the ferry and the price of the tickets at some length. " * 4
TALK = ["The vault code is 4711-X.", "Noted.", *(f"{n}: {LONG}" for n in range(58))]
PATH = "/conversations/c"


# -- contexts ---------------------------------------------------------------------------------


@pytest.mark.requirement("D4")
def test_every_request_is_accounted_for(api):
    api.say("c", *TALK)
    asked = {
        "budget": {"window_tokens": 2_000, "reserve_tokens": 300},
        "question": "What is the vault code?",
        "system": "Be brief.",
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}],
        "task": "Open the vault.",
    }
    context = api.post(f"{PATH}/context", asked)
    numbers = context["accounting"]
    assert (numbers["window"], numbers["reserve"]) == (2_000, 300)
    assert sum(tokens for name, tokens in numbers.items() if name != "window") == 2_000
    for name in ("history", "recalled", "tools", "system", "task", "framing"):
        assert numbers[name] > 0, name
    assert context["tokens"] + numbers["reserve"] + numbers["free"] == 2_000
    sections = {section["name"]: section for section in context["sections"]}
    shown = sum(sections[name]["tokens"] for name in ("recent", "opened") if name in sections)
    assert shown == numbers["history"]
    assert sections["recalled"]["tokens"] == numbers["recalled"]
    encoding = reference_encoder()
    counted = sum(len(encoding.encode(str(m["content"]))) + 4 for m in context["messages"])
    assert counted <= 1_700


def test_a_context_explains_what_is_in_it_and_why(api):
    api.say("c", *TALK)
    asked = {"budget": 1_500, "question": "What is the vault code?"}
    context = api.post(f"{PATH}/context", asked)
    best = context["hits"][0]
    assert best["entry"]["message"]["content"] == TALK[0]
    assert best["score"] == pytest.approx(sum(best["parts"].values()))
    assert best["explanation"].startswith("score ")
    assert any("4711-X" in str(message["content"]) for message in context["messages"])
    assert context["explain"].startswith("c: ")
    assert "digests" in context["explain"]
    assert set(context["seqs"]) <= set(range(60))
    assert context["stability"] is None
    assert api.post(f"{PATH}/context", asked)["stability"] == pytest.approx(1.0)


def test_a_context_in_anthropics_shape(api):
    api.say("c", "Hello.", "Hello to you.")
    context = api.post(f"{PATH}/context", {"system": "Be kind.", "format": "anthropic"})
    assert context["system"] == "Be kind."
    assert [message["role"] for message in context["messages"]] == ["user", "assistant"]
    assert context["messages"][0]["content"] == [{"type": "text", "text": "Hello."}]
    assert api.post(f"{PATH}/context", {"system": "Be kind."})["system"] is None


def test_a_budget_is_tokens_or_a_model_or_both(api):
    api.say("c", "Hello.")
    for budget, window, model in [
        (5_000, 5_000, None),
        ("gpt-4", 8_192, "gpt-4"),
        ({"window_tokens": 900, "model": "gpt-4"}, 900, "gpt-4"),
        (None, 128_000, DEFAULT_MODEL),
    ]:
        found = api.post(f"{PATH}/context", {} if budget is None else {"budget": budget})["budget"]
        assert (found["window_tokens"], found["model"]) == (window, model)


def test_an_overflow_names_what_needs_the_room(api):
    api.say("c", "Pinned. " * 500, "Noted.", "And now?")
    api.put(f"{PATH}/pins/0")
    problem = api.refused("POST", f"{PATH}/context", {"budget": 300})
    assert (problem["status"], problem["code"]) == (422, "BudgetError")
    assert problem["floor"] > problem["available"]
    assert problem["blockers"]["pinned"]


@pytest.mark.parametrize(
    "body",
    [
        {"budget": 0},
        {"budget": -5},
        {"budget": 10**12},
        {"budget": "5000" * 100},
        {"budget": True},
        {"budget": {"window_tokens": 100, "reserve_tokens": 100}},
        {"budget": {"window_tokens": 100, "surprise": 1}},
        {"question": "x" * 10_001},
        {"format": "xml"},
        {"tools": "all"},
        {"system": ["a"]},
    ],
)
@on_any_store
def test_a_wrong_request_for_a_context_is_rejected(api, body):
    api.say("c", "Hello.")
    assert api.refused("POST", f"{PATH}/context", body)["status"] in (400, 422)


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("x", "unknown model 'x'"),
        ("", ""),
        (0, ""),
        (1.5, ""),
        ([8_000], ""),
        ({"window": 8_000}, "window: Extra inputs are not permitted"),
    ],
)
@pytest.mark.parametrize("what", ["context", "turns", "topics/context"])
@on_any_store
def test_an_invalid_budget_gets_an_explanation(api, what, budget, told):
    api.say("c", "Hello.")
    body = {"budget": budget} | ({"message": "Hello?"} if what == "turns" else {})
    problem = api.refused("POST", f"{PATH}/{what}", body)
    assert problem["status"] in (400, 422)
    assert told in problem["detail"]
    assert problem["detail"].endswith('or {"window_tokens": 8000, "reserve_tokens": 1000}')
    assert "constrained" not in problem["detail"]
    assert api.get(PATH)["entries"] == 1


# -- turns ------------------------------------------------------------------------------------


@pytest.fixture
def model():
    with ModelServer(model="gpt-4o-mini") as server:
        yield server


@pytest.fixture
def answering(url, model):
    """A server with a model, and a client of it."""
    settings = {"model": "gpt-4o-mini", "model_url": model.url, "model_key": "sk-x"}
    with running(store=url, **settings) as server, Api(server.url) as api:
        yield api


def said(api):
    entries = api.all(f"{PATH}/messages")
    return [(entry["message"]["role"], entry["message"].get("content")) for entry in entries]


def test_a_turn_stores_the_question_and_the_answer(answering, model):
    model.say("On 3 March.")
    turn = answering.post(
        f"{PATH}/turns", {"message": "When do we land?", "system": "Be brief.", "budget": 4_000}
    )
    assert (turn["text"], turn["calls"], turn["model"]) == ("On 3 March.", 1, "gpt-4o-mini")
    assert turn["prompt_tokens"] > 0
    assert said(answering) == [("user", "When do we land?"), ("assistant", "On 3 March.")]
    assert (turn["question"]["seq"], turn["answer"]["seq"]) == (0, 1)
    (request,) = model.requests
    assert request["messages"][0] == {"role": "system", "content": "Be brief."}
    assert turn["accounting"]["window"] == 4_000


def test_a_turn_accepts_a_full_message(answering, model):
    model.say("A cat.")
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {}}]
    turn = answering.post(f"{PATH}/turns", {"message": {"role": "user", "content": parts, "x": 1}})
    assert turn["question"]["message"] == {"role": "user", "content": parts, "x": 1}


@pytest.mark.promise("idempotent")
@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_is_repeated_safely(answering, model, stream):
    model.say("First.", "Second.")
    body = {"message": "Say something.", "stream": stream}
    key = {"headers": {"Idempotency-Key": "turn-1"}}
    first = answering.ask("POST", f"{PATH}/turns", body, **key)
    again = answering.ask("POST", f"{PATH}/turns", {**body, "stream": False}, **key)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert (again.json()["text"], again.json()["calls"]) == ("First.", 0)
    assert said(answering) == [("user", "Say something."), ("assistant", "First.")]
    assert len(model.requests) == 1
    streamed = answering.ask("POST", f"{PATH}/turns", {**body, "stream": True}, **key)
    assert [name for name, _ in parse_events(streamed.text)] == ["delta", "turn"]
    assert len(model.requests) == 1


def test_a_turn_whose_model_fails_keeps_the_question(answering, model):
    model.fail("400")
    key = {"headers": {"Idempotency-Key": "turn-1"}}
    problem = answering.refused("POST", f"{PATH}/turns", {"message": "Hello?"}, **key)
    assert problem["status"] == 502
    assert said(answering) == [("user", "Hello?")]
    model.say("Hello.")
    turn = answering.post(f"{PATH}/turns", {"message": "Hello?"}, **key)
    assert turn["text"] == "Hello."
    assert said(answering) == [("user", "Hello?"), ("assistant", "Hello.")]


@pytest.mark.parametrize("how", ["accept", "field"])
def test_a_turn_comes_as_events(answering, model, how):
    model.say("One two three four five six.")
    body = {"message": "Count.", "stream": how == "field"}
    headers = {"accept": "text/event-stream"} if how == "accept" else {}
    response = answering.ask("POST", f"{PATH}/turns", body, headers=headers)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"
    *deltas, (last, turn) = parse_events(response.text)
    assert last == "turn"
    assert {name for name, _ in deltas} == {"delta"}
    assert len(deltas) > 1
    assert "".join(data["text"] for _, data in deltas) == "One two three four five six."
    assert turn["answer"]["message"]["content"] == "One two three four five six."
    assert said(answering)[-1] == ("assistant", "One two three four five six.")


def test_what_fails_before_the_first_word_has_its_own_status(answering, model):
    model.fail("400")
    problem = answering.refused("POST", f"{PATH}/turns", {"message": "Hello?", "stream": True})
    assert problem["status"] == 502
    assert said(answering) == [("user", "Hello?")]
    assert (
        answering.refused(
            "POST", f"{PATH}/turns", {"message": "x" * 5_000, "budget": 20, "stream": True}
        )["status"]
        == 422
    )


def test_a_failure_in_a_stream_is_an_event_and_is_stored(answering, model):
    model.say("One two three four five six seven eight.")
    model.fail("cut")
    response = answering.ask("POST", f"{PATH}/turns", {"message": "Count.", "stream": True})
    *deltas, (last, problem) = parse_events(response.text)
    assert last == "error"
    assert problem["status"] == 502
    seen = "".join(data["text"] for _, data in deltas)
    assert seen
    _, (role, kept) = said(answering)
    assert role == "assistant"
    assert kept.startswith(seen)
    assert answering.get(f"{PATH}/messages/1")["metadata"]["interrupted"]


def test_the_model_may_look_into_the_conversation(answering, model):
    answering.say("c", "The vault code is 4711-X.", "Noted.")
    model.say(call_tool("search_history", {"query": "vault"}), "It is 4711-X.")
    turn = answering.post(f"{PATH}/turns", {"message": "The code?", "recall_tools": True})
    assert turn["calls"] == 2
    (result,) = turn["tool_results"]
    assert "4711-X" in result["message"]["content"]
    assert turn["text"] == "It is 4711-X."


def test_without_a_model_the_answer_quotes_memory_and_says_so(api):
    api.say("c", "The vault code is 4711-X.", "Noted.")
    turn = api.post(f"{PATH}/turns", {"message": "What is the vault code?"})
    assert "4711-X" in turn["text"]
    assert "no language model" in turn["text"]
    response = api.ask("POST", f"{PATH}/turns", {"message": "The vault code?", "stream": True})
    *deltas, (last, _) = parse_events(response.text)
    assert last == "turn"
    assert "4711-X" in "".join(data["text"] for _, data in deltas)


def test_without_a_model_the_answer_is_to_the_question_and_not_to_what_was_recalled(api):
    others = [f"Is a parcel of {n} ropes on its way? Write to Ana in Oslo." for n in range(200)]
    api.say("c", "The vault code is 4711-X.", "Noted.", *others, "Noted, too.")
    turn = api.post(f"{PATH}/turns", {"message": "The vault code?", "budget": 2_000})
    assert turn["accounting"]["recalled"] > 0
    assert "4711-X" in turn["text"].splitlines()[1]
    assert "The vault code?" not in turn["text"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"message": 5},
        {"message": {"role": "user", "content": 5}},
        {"message": "x", "max_tokens": 0},
        {"message": "x", "base_url": "http://169.254.169.254"},
        {"message": "x", "model": "other"},
        {"message": "x", "stream": "yes"},
    ],
)
@on_any_store
def test_a_wrong_turn_is_rejected_and_nothing_is_stored(api, body):
    assert api.refused("POST", f"{PATH}/turns", body)["status"] in (400, 422)
    assert api.get("/conversations")["data"] == []


@pytest.mark.parametrize(
    "message",
    [
        "",
        " \n\t",
        {"role": "user"},
        {"role": "user", "content": " "},
        {"role": "user", "content": []},
        {"role": "user", "content": [{"type": "text", "text": ""}]},
        {"message": {"role": "user", "content": ""}, "metadata": {"channel": "mail"}},
    ],
)
@on_any_store
def test_an_empty_turn_is_rejected(api, message):
    problem = api.refused("POST", f"{PATH}/turns", {"message": message})
    assert problem["status"] == 422
    assert "the text must not be empty or blank" in problem["detail"]
    assert api.get("/conversations")["data"] == []


# -- charging ---------------------------------------------------------------------------------


def test_tokens_are_counted_to_the_callers_pace(model):
    settings = {"model": "gpt-4o-mini", "model_url": model.url, "model_key": "sk-x"}
    with running(tokens_per_minute=100_000, **settings) as server, Api(server.url) as api:
        charged = []

        def owe(who, cost, owed=server.parts.tokens.charge):
            charged.append((who, cost))
            owed(who, cost)

        server.parts.tokens.charge = owe
        stored = api.say("c", "Hello there.", "Hello.", headers={"Idempotency-Key": "k"})
        api.say("c", "Hello there.", "Hello.", headers={"Idempotency-Key": "k"})
        context = api.post(f"{PATH}/context", {"budget": 1_000})
        model.say("One.", "Two.")
        turn = api.post(f"{PATH}/turns", {"message": "Say one."})
        response = api.ask("POST", f"{PATH}/turns", {"message": "Say two.", "stream": True})
        (_, streamed) = parse_events(response.text)[-1]
    assert charged == list(
        zip(
            itertools.repeat("local"),
            [
                sum(entry["tokens"] for entry in stored["data"]),
                context["tokens"],
                turn["prompt_tokens"] + turn["completion_tokens"],
                streamed["prompt_tokens"] + streamed["completion_tokens"],
            ],
            strict=False,
        )
    )
