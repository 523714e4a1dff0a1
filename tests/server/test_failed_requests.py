"""A request that fails is kept, but is no conversation in any list until it is answered."""

import json

import anthropic
import httpx2
import openai
import pytest

from firnline.cli import main
from firnline.testing import ModelServer
from support.live_server import running

MODEL = "gpt-4o"
WAYS = {
    "chat": lambda sdk, text, stream: sdk.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": text}], stream=stream
    ),
    "responses": lambda sdk, text, stream: sdk.responses.create(
        model=MODEL, input=text, stream=stream
    ),
    "anthropic": lambda sdk, text, stream: sdk.messages.create(
        model=MODEL, messages=[{"role": "user", "content": text}], stream=stream, max_tokens=99
    ),
}


@pytest.fixture
def model():
    with ModelServer(model=MODEL) as server:
        yield server


def sdk_of(way, url):
    if way == "anthropic":
        return anthropic.Anthropic(base_url=url, api_key="sk", max_retries=0)
    return openai.OpenAI(base_url=f"{url}/v1", api_key="sk", max_retries=0)


def ask(sdk, way, text, *, stream):
    answer = WAYS[way](sdk, text, stream)
    return list(answer) if stream else answer


def listed(server, **params):
    found = httpx2.get(f"{server.url}/api/v1/conversations", params=params).json()
    return [(head["conversation"], head["entries"], head["title"]) for head in found["data"]]


def log(server, conversation):
    found = server.run(server.memory().read(conversation))
    return [(entry.message.role, entry.message.text) for entry in found]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("fault", "stream"), [("500", False), ("error_body", False), ("error_body", True)]
)
def test_a_failed_request_is_kept_outside_the_list_and_its_retry_continues_it(
    model, way, stream, fault
):
    with running(upstream=model.url) as server, sdk_of(way, server.url) as sdk:
        model.fail(fault, fault)
        for _ in range(2):
            with pytest.raises((openai.APIError, anthropic.APIError)):
                ask(sdk, way, "Where is order 1138?", stream=stream)
        assert listed(server) == []
        ((name, entries, _),) = listed(server, failed=True)
        assert entries == 1
        assert log(server, name) == [("user", "Where is order 1138?")]
        model.say("Here.")
        ask(sdk, way, "Where is order 1138?", stream=stream)
        assert listed(server) == [(name, 2, "Where is order 1138?")]
        assert log(server, name) == [("user", "Where is order 1138?"), ("assistant", "Here.")]
        ask(sdk, way, "Where is order 1138?", stream=stream)  # another person may ask the same
        assert len(listed(server)) == 2


def test_only_what_is_nothing_but_a_failure_is_hidden(model):
    with running(upstream=model.url) as server:
        server.run(server.memory().append("notes", [{"role": "user", "content": "A note."}]))
        with sdk_of("chat", f"{server.url}/c/notes") as sdk:
            model.fail("500")
            with pytest.raises(openai.InternalServerError):
                ask(sdk, "chat", "And now?", stream=False)
        assert [name for name, *_ in listed(server)] == ["notes"]


def test_a_request_that_can_never_fit_is_hidden(model):
    with running(upstream=model.url, window_tokens=600) as server:
        with sdk_of("chat", server.url) as sdk, pytest.raises(openai.BadRequestError):
            ask(sdk, "chat", "word " * 2_000, stream=False)
        assert listed(server) == []
        assert len(listed(server, failed=True)) == 1


def test_the_answer_that_broke_off_is_shown(model):
    model.fail("cut")
    model.say("One two three four five six seven eight nine ten.")
    with running(upstream=model.url) as server, sdk_of("chat", server.url) as sdk:
        with pytest.raises((openai.APIError, httpx2.HTTPError)):
            ask(sdk, "chat", "Count.", stream=True)
        ((_, entries, _),) = listed(server)
        assert entries == 2


def test_lists_are_sorted_by_time_with_titles_that_can_be_changed(model, tmp_path, capsys):
    store = f"sqlite:///{tmp_path}/t.db"
    with running(upstream=model.url, store=store) as server, httpx2.Client() as http:
        with sdk_of("chat", server.url) as sdk:
            model.fail("500")
            with pytest.raises(openai.InternalServerError):
                ask(sdk, "chat", "lost", stream=False)
            for text in ("first", "second", "third"):
                ask(sdk, "chat", text, stream=False)
        url = f"{server.url}/api/v1/conversations"
        titles, names, cursor = [], [], None
        for _ in range(4):  # one of the pages has only the failed request
            page = {"order": "newest", "limit": 1, **({"cursor": cursor} if cursor else {})}
            found = http.get(url, params=page).json()
            titles += [head["title"] for head in found["data"]]
            names += [head["conversation"] for head in found["data"]]
            cursor = found["next_cursor"]
        assert titles == ["third", "second", "first"]
        http.patch(f"{url}/{names[1]}", json={"metadata": {"title": "The second one"}})
        shown = http.get(f"{url}/{names[1]}").json()["title"]
        bad = http.get(url, params={"order": "newest", "cursor": "InggeSI"})
        assert (shown, bad.status_code) == ("The second one", 400)
    assert main(["conversations", "--json", "--store", store]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(each["title"] for each in found) == ["The second one", "first", "third"]
    assert main(["conversations", "--all", "--store", store]) == 0
    assert "lost" in capsys.readouterr().out
