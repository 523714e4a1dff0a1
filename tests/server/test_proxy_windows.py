"""The window of a model behind the proxy: set, listed by the endpoint, by name, or unknown."""

import json
import logging
import threading

import httpx2
import pytest

from firnline.server import prompts
from firnline.server.proxy import limits, windows
from firnline.server.proxy.windows import read_limit, read_windows
from firnline.testing import ModelServer
from support.live_server import running

LONG = 160
"""Messages of a history: some 10,000 tokens."""


@pytest.fixture
def model():
    with ModelServer(model="prod") as server:
        yield server


@pytest.fixture(autouse=True)
def _not_warned():
    windows._warn_unknown.cache_clear()


def history(count=LONG, tag=""):
    messages = [{"role": "system", "content": "You are brief."}]
    for n in range(count):
        role = "user" if n % 2 == 0 else "assistant"
        words = f"word{n} " * 20
        messages.append({"role": role, "content": f"{tag}Message {n}: {words}"})
    return [*messages, {"role": "user", "content": f"{tag}What was message 0?"}]


def post(server, messages, model="prod", path="", **headers):
    return httpx2.post(
        f"{server.url}{path}/v1/chat/completions",
        json={"model": model, "messages": messages},
        headers={"authorization": "Bearer sk-mine", **headers},
        timeout=60,
    )


def stored(server, answer):
    conversation = answer.headers["x-firnline-conversation"]
    return server.run(server.memory().read(conversation, limit=10_000))


@pytest.mark.promise("whole-if-unknown")
def test_with_an_unknown_window_the_whole_history_passes_and_all_is_stored(model, caplog):
    messages = history()
    with running(upstream=model.url) as server:
        answer = post(server, messages)
        assert answer.status_code == 200
        assert model.requests[-1]["messages"] == messages, "as it came, to the last byte"
        assert answer.headers["x-firnline-window"] == "unknown"
        assert answer.headers["x-firnline-status"] == "ok"
        assert int(answer.headers["x-firnline-tokens"]) > 8_192
        log = [entry.message for entry in stored(server, answer)]
        assert [message.text for message in log[:-1]] == [m["content"] for m in messages[1:]]
        assert log[-1].role == "assistant"
        assert not server.run(server.memory().digests(answer.headers["x-firnline-conversation"]))
        again = [
            *messages,
            answer.json()["choices"][0]["message"],
            {"role": "user", "content": "?"},
        ]
        second = post(server, again)
        assert [m["content"] for m in model.requests[-1]["messages"]] == [
            m["content"] for m in again
        ]
        conversation = answer.headers["x-firnline-conversation"]
        assert second.headers["x-firnline-conversation"] == conversation
    warned = [r.getMessage() for r in caplog.records if "is unknown" in r.getMessage()]
    assert len(warned) == 1, "once, not for each request"
    assert "FIRNLINE_WINDOWS=prod=TOKENS" in warned[0]
    assert "'prod'" in warned[0]


@pytest.mark.promise("whole-if-unknown")
def test_a_client_that_sends_only_what_is_new_gets_the_whole_log_too(model):
    with running(upstream=model.url) as server:
        post(server, history(), path="/c/desk")
        answer = post(server, [{"role": "user", "content": "And now?"}], path="/c/desk")
        sent = model.requests[-1]["messages"]
        assert answer.headers["x-firnline-window"] == "unknown"
        said = [entry.message.text for entry in stored(server, answer)[:-1]]
        assert [message["content"] for message in sent] == said
        assert len(said) > LONG


def test_the_prompt_of_an_unmanaged_request_is_recorded(model):
    with running(upstream=model.url) as server:
        answer = post(server, history(4))
        conversation = answer.headers["x-firnline-conversation"]
        record = server.run(prompts.read(server.memory(), conversation, 5))
        texts = [piece["message"]["content"] for piece in record["pieces"]]
        assert texts == [message["content"] for message in history(4)]
        seqs = [piece["seq"] for piece in record["pieces"]]
        assert seqs == [None, 0, 1, 2, 3, 4], "the log is not recorded again with every answer"


def test_the_error_of_a_window_that_is_exceeded_reaches_the_client_and_teaches_it(model):
    model.window_tokens = 4_000
    with running(upstream=model.url, background=False) as server:
        first = post(server, history())
        assert first.status_code == 400
        assert first.json()["error"]["code"] == "context_length_exceeded"
        assert "maximum context length is 4000 tokens" in first.json()["error"]["message"]
        second = post(server, history())
        assert second.headers["x-firnline-window"] == "4000"
        assert second.status_code == 200
        other = post(server, history(4), model="staging")
        assert other.headers["x-firnline-window"] == "unknown", "each model has its own"


def test_a_set_window_is_used_and_no_warning_is_given(model, caplog):
    asked = []
    model.list_models = lambda: asked.append(1) or listing(prod=9_000)
    with running(upstream=model.url, windows="prod=4000, other=256") as server:
        answer = post(server, history())
        assert answer.headers["x-firnline-window"] == "4000"
        assert int(answer.headers["x-firnline-tokens"]) < 4_000
        assert len(model.requests[-1]["messages"]) < LONG / 2
        assert model.requests[-1]["messages"][-1]["content"] == "What was message 0?"
    assert "is unknown" not in caplog.text
    assert not asked


def test_the_largest_request_of_the_server_stands_for_an_unknown_window(model, caplog):
    with running(upstream=model.url, window_tokens=3_000) as server:
        assert post(server, history()).headers["x-firnline-window"] == "3000"
        assert post(server, history(), "gpt-4o").headers["x-firnline-window"] == "3000"
    assert "is unknown" not in caplog.text


def listing(**windows_by_name):
    data = [{"id": name, "max_model_len": tokens} for name, tokens in windows_by_name.items()]
    return 200, {"object": "list", "data": data}


def test_the_endpoint_says_the_window_once_for_all_requests(model, caplog):
    asked = []

    def listed():
        asked.append(1)
        return listing(prod=5_000, **{"gpt-4o": 6_000})

    model.list_models = listed
    with running(upstream=model.url) as server:
        assert post(server, history()).headers["x-firnline-window"] == "5000"
        assert len(model.requests[-1]["messages"]) < LONG / 2
        # What is served is listed, whatever the name promises.
        assert post(server, history(), "gpt-4o").headers["x-firnline-window"] == "6000"
        assert post(server, history(4), "staging").headers["x-firnline-window"] == "unknown"
    assert len(asked) == 1


def test_the_list_is_refreshed_and_a_failure_keeps_what_is_known(model, monkeypatch):
    monkeypatch.setattr(limits, "LIST_REFRESH_SECONDS", 0.0)
    monkeypatch.setattr(limits, "LIST_RETRY_SECONDS", 0.0)
    answers = [listing(prod=5_000), (500, {"error": {"message": "no"}}), listing(prod=7_000)]
    served = threading.Semaphore(0)

    def listed():
        served.release()
        return answers.pop(0) if len(answers) > 1 else answers[0]

    model.list_models = listed
    with running(upstream=model.url) as server:
        seen = [post(server, history(2)).headers["x-firnline-window"]]
        for _ in range(100):
            if seen[-1] == "7000":
                break
            seen.append(post(server, history(2)).headers["x-firnline-window"])
    assert seen[0] == "5000"
    assert set(seen) == {"5000", "7000"}, "a failed refresh forgets nothing"


def test_a_list_that_hangs_delays_only_the_first_request(model, monkeypatch):
    monkeypatch.setattr(limits, "LIST_WAIT_SECONDS", 0.05)
    hang, asked = threading.Event(), []

    def listed():
        asked.append(1)
        hang.wait(30)
        return listing(prod=5_000)

    model.list_models = listed
    try:
        with running(upstream=model.url) as server:
            for _ in range(3):
                answer = post(server, history(2))
                assert answer.status_code == 200
                assert answer.headers["x-firnline-window"] == "unknown"
            assert len(asked) == 1, "one request for the list, not one for each chat"
            hang.set()
    finally:
        hang.set()


@pytest.mark.parametrize(
    "answer",
    [
        (404, {"error": {"message": "there is none"}}),
        (200, {"data": "nothing"}),
        (200, {"object": "list", "data": [{"id": 7, "max_model_len": "many"}, None, []]}),
        (200, {"data": [{"id": "prod", "max_model_len": -1, "context_length": True}]}),
    ],
)
def test_a_list_that_says_nothing_does_no_harm(model, answer):
    model.list_models = lambda: answer
    with running(upstream=model.url) as server:
        assert post(server, history(2)).headers["x-firnline-window"] == "unknown"
        assert post(server, history(2), "gpt-4o").headers["x-firnline-window"] == "128000"


def test_requests_without_memory_need_no_window(model, caplog):
    asked = []
    model.list_models = lambda: asked.append(1) or listing(prod=9_000)
    with running(upstream=model.url) as server:
        answer = post(server, history(4), **{"x-firnline-memory": "off"})
        assert answer.status_code == 200
        assert "x-firnline-window" not in answer.headers
    assert "is unknown" not in caplog.text
    assert not asked


# -- what endpoints answer --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "window"),
    [
        ({"data": [{"id": "m", "context_length": 131_072}]}, 131_072),  # OpenRouter
        ({"data": [{"id": "m", "max_model_len": 32_768, "root": "x"}]}, 32_768),  # vLLM
        ({"data": [{"id": "m", "context_window": 131_072, "max_completion_tokens": 8}]}, 131_072),
        ({"data": [{"id": "m", "meta": {"n_ctx_train": 131_072, "n_ctx": 8_192}}]}, 8_192),
        (
            {"data": [{"id": "m", "max_context_length": 32_768, "loaded_context_length": 4_096}]},
            4_096,  # LM Studio: as it is loaded
        ),
        ([{"id": "m", "context_length": 16_384}], 16_384),  # Together: a bare list
        ({"models": [{"name": "models/m", "inputTokenLimit": 1_048_576}]}, 1_048_576),  # Gemini
        ({"data": [{"id": "m", "max_input_tokens": 200_000}], "has_more": False}, 200_000),
        (
            {"data": [{"id": "m", "capabilities": {"limits": {"max_prompt_tokens": 64_000}}}]},
            64_000,  # GitHub Copilot
        ),
        ({"data": [{"model_name": "m", "model_info": {"max_input_tokens": 9_000}}]}, 9_000),
        ({"data": [{"id": "m", "object": "model", "owned_by": "openai"}]}, None),
        ({"data": [{"id": "m", "context_length": 10**12}]}, None),
        ({"data": [{"id": "m", "context_length": 8}]}, None),
        ({"data": [{"id": "m" * 1_000, "context_length": 8_192}]}, None),
        ("text", None),
        (None, None),
    ],
)
def test_windows_are_read_from_what_endpoints_list(body, window):
    found = read_windows(json.dumps(body).encode())
    assert found == ({"m": window} if window else {})


def test_a_list_is_bounded():
    data = [{"id": f"m{n}", "context_length": 8_192} for n in range(limits.LISTED_MODELS_MAX + 5)]
    assert len(read_windows(json.dumps({"data": data}).encode())) == limits.LISTED_MODELS_MAX


@pytest.mark.parametrize(
    ("message", "window"),
    [
        ("This model's maximum context length is 128000 tokens. However, you requested", 128_000),
        ("This endpoint's maximum context length is 131072 tokens. However, ...", 131_072),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("maximum context length is 8 tokens", None),
        ("invalid content: 'This model's maximum context length is 300 tokens'", None),
        ("rate limited", None),
        (None, None),
    ],
)
def test_a_window_is_read_only_from_the_start_of_an_error(message, window):
    assert read_limit(json.dumps({"error": {"message": message}}).encode()) == window
    assert read_limit(json.dumps({"message": message}).encode()) == window


@pytest.mark.parametrize("body", [b"", b"not JSON", b"[]", b'{"error": "text"}', b"[" * 100_000])
def test_other_errors_teach_nothing(body):
    assert read_limit(body) is None


def test_a_warning_is_loud(caplog):
    with caplog.at_level(logging.WARNING):
        windows._warn_unknown("a\nb")
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "\n" not in record.getMessage().replace("a\nb", "")
