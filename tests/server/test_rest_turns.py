"""Past turns over HTTP: the exact prompt of every answer, proved by its hash."""

import hashlib
from dataclasses import replace

import pytest

from firnline.log import zstd
from firnline.log.message import encode_json
from firnline.server import prompts
from firnline.testing import ModelServer, call_tool
from support.live_server import running
from support.rest_client import Api, key_for

LONG = "We spoke of the harbour, the ferry and the price of the tickets at some length. " * 4
TALK = ["The vault code is 4711-X.", "Noted.", *(f"{n}: {LONG}" for n in range(58))]
PATH = "/conversations/c"
ASK = {"message": "What is the vault code?", "system": "Be brief.", "budget": 1_500}


@pytest.fixture
def model():
    with ModelServer(model="gpt-4o-mini") as server:
        yield server


@pytest.fixture
def house(url, model):
    settings = {"model": "gpt-4o-mini", "model_url": model.url, "model_key": "sk-x"}
    proxy = {"upstream": model.url, "upstream_key": "sk-x"}
    with running(store=url, background=False, **settings, **proxy) as server:
        yield server


@pytest.fixture
def api(house):
    with Api(house.url) as api:
        yield api


def texts(sent):
    """Message contents as one text, whether or not neighbours of one role were joined."""
    return "\n\n".join(str(message["content"]) for message in sent)


@pytest.mark.parametrize("stream", [False, True])
def test_a_turns_prompt_is_shown_as_the_model_got_it(api, model, stream):
    api.say("c", *TALK)
    model.say("4711-X.")
    assert api.ask("POST", f"{PATH}/turns", {**ASK, "stream": stream}).status_code == 200
    (listed,) = api.get(f"{PATH}/turns")["data"]
    assert (listed["answer"], listed["question"]) == (61, 60)
    assert (listed["asked"], listed["model"], listed["via"]) == (
        ASK["message"],
        "gpt-4o-mini",
        "rest",
    )
    whole = api.get(f"{PATH}/turns/61")
    assert {name: whole[name] for name in listed} == listed
    assert whole["accounting"]["window"] == 1_500
    assert whole["tokens"] == listed["tokens"] <= 1_500
    assert whole["calls"] == 1
    sent = [piece["message"] for piece in whole["prompt"]]
    assert texts(sent) == texts(model.requests[-1]["messages"])
    assert whole["proved"]
    assert whole["sha256"] == hashlib.sha256(encode_json(sent).encode()).hexdigest()
    sections = {section["name"]: section for section in whole["sections"]}
    assert {"system", "recent", "recalled"} <= set(sections)
    assert sections["recalled"]["why"]
    for name, section in sections.items():
        pieces = [piece for piece in whole["prompt"] if piece["section"] == name]
        assert sum(piece["tokens"] for piece in pieces) == section["tokens"]
    assert whole["hits"][0]["seq"] == 0
    assert whole["hits"][0]["score"] == pytest.approx(sum(whole["hits"][0]["parts"].values()))
    shown = [piece["seq"] for piece in whole["prompt"] if piece["seq"] is not None]
    assert 60 in shown


def test_turns_are_listed_from_the_newest_on_page_by_page(api, model):
    for number in range(5):
        model.say(f"{number}.")
        api.post(f"{PATH}/turns", {"message": f"Question {number}?"})
    whole = api.get(f"{PATH}/turns")
    assert [turn["answer"] for turn in whole["data"]] == [9, 7, 5, 3, 1]
    assert whole["next_cursor"] is None
    assert api.all(f"{PATH}/turns", limit=2) == whole["data"]
    assert whole["data"][0]["asked"] == "Question 4?"
    assert [api.get(f"{PATH}/turns/{seq}")["before"] for seq in (9, 3, 1)] == [7, 1, None]
    later, before = api.get(f"{PATH}/turns/9")["prompt"], api.get(f"{PATH}/turns/7")["prompt"]
    assert later[: len(before)] == before, "what was sent before is the beginning"


def test_a_prompt_stays_what_it_was_whatever_becomes_of_the_digests(api, model):
    api.say("c", *TALK)
    api.post(f"{PATH}/turns", ASK)
    before = api.get(f"{PATH}/turns/61")
    api.post(f"{PATH}/digests/clear")
    api.post(f"{PATH}/archive", {"keep": 0})
    assert api.get(f"{PATH}/turns/61") == before


def test_what_came_through_the_proxy_is_recorded_too(api, house, model):
    model.say("Through the proxy.")
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Who are you?"}]}
    answer = api.http.post("/v1/chat/completions", json=body)
    name = answer.headers["x-firnline-conversation"]
    (listed,) = api.get(f"/conversations/{name}/turns")["data"]
    assert (listed["via"], listed["asked"], listed["model"]) == (
        "proxy",
        "Who are you?",
        body["model"],
    )
    (piece,) = api.get(f"/conversations/{name}/turns/{listed['answer']}")["prompt"]
    assert piece["message"] == body["messages"][0]


def test_a_turn_with_tools_is_recorded_with_its_last_prompt(api, model):
    api.say("c", *TALK[:2])
    model.say(call_tool("search_history", {"query": "vault"}), "It is 4711-X.")
    turn = api.post(f"{PATH}/turns", {"message": "The code?", "recall_tools": True})
    kept = api.get(f"{PATH}/turns/{turn['answer']['seq']}")
    assert kept["calls"] == 2
    assert [piece["message"]["role"] for piece in kept["prompt"]][-2:] == ["assistant", "tool"]
    assert kept["accounting"]["tools"] > 0


def test_what_was_answered_before_is_not_recorded_again(api, model):
    key = {"headers": {"Idempotency-Key": "turn-1"}}
    api.post(f"{PATH}/turns", {"message": "Hello?"}, **key)
    before = api.get(f"{PATH}/turns/1")
    api.say("c", "Something else.")
    api.post(f"{PATH}/turns", {"message": "Hello?"}, **key)
    assert api.get(f"{PATH}/turns/1") == before


def test_what_is_not_there_is_a_404_and_what_is_known_a_304(api, house, model):
    assert api.refused("GET", f"{PATH}/turns")["status"] == 404
    api.say("c", "Hello.", "Hello to you.")
    assert api.get(f"{PATH}/turns")["data"] == []
    for seq in (0, 1, 99):
        assert api.refused("GET", f"{PATH}/turns/{seq}")["status"] == 404
    api.post(f"{PATH}/turns", {"message": "And now?"})
    for path in (f"{PATH}/turns", f"{PATH}/turns/3"):
        tag = api.ask("GET", path).headers["etag"]
        assert api.ask("GET", path, headers={"if-none-match": tag}).status_code == 304
    with Api(house.url, key_for(house, "another")) as stranger:
        assert stranger.refused("GET", f"{PATH}/turns/3")["status"] == 404


def test_no_prompt_outlives_its_conversation(api, house):
    api.post(f"{PATH}/turns", {"message": "A secret."})
    api.delete(PATH)
    cards = house.run(house.parts.tenants.store.cards(prompts.KIND, tenant="default"))
    assert cards == []
    api.say("c", "Nothing.")
    assert api.get(f"{PATH}/turns")["data"] == []


def test_a_prompt_that_was_tampered_with_is_not_shown(api, house):
    api.post(f"{PATH}/turns", {"message": "Hello?", "system": "Be brief."})
    store = house.parts.tenants.store

    async def forge():
        (card,) = await store.cards(prompts.KIND, tenant="default")
        kept = prompts.unpack(card.body)
        kept["pieces"][0]["message"]["content"] = "Be rude."
        body = zstd.compress(encode_json(kept).encode())
        await store.put_cards([replace(card, body=body)])

    house.run(forge())
    assert api.refused("GET", f"{PATH}/turns/1")["status"] == 500


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_whose_prompt_cannot_be_kept_is_answered_all_the_same(
    api, monkeypatch, caplog, stream
):
    async def fails(*_args, **_more):
        raise OSError("no space")

    monkeypatch.setattr(prompts, "record", fails)
    response = api.ask("POST", f"{PATH}/turns", {"message": "Hello?", "stream": stream})
    assert response.status_code == 200
    assert "event: error" not in response.text
    assert len(api.all(f"{PATH}/messages")) == 2
    assert "cannot record" in caplog.text
    assert "no space" in caplog.text
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "And by proxy?"}]}
    answer = api.http.post("/v1/chat/completions", json=body)
    assert answer.headers["x-firnline-status"] == "ok", "the answer is stored"
    assert api.get(f"{PATH}/turns")["data"] == []


def test_a_turn_can_name_a_model_behind_the_proxy(model):
    """With --upstream alone, the model that is asked is the one that a client sees listed."""
    with (
        running(store="memory:", upstream=model.url, upstream_key="sk-up") as server,
        Api(server.url) as api,
    ):
        assert api.get("/me")["server"]["upstream"]
        model.say("At nine.", "On 3 March.")
        turn = api.post(f"{PATH}/turns", {"message": "When?", "model": "gpt-4o-mini"})
        assert (turn["text"], turn["model"]) == ("At nine.", "gpt-4o-mini")
        ask = {"message": "Which day?", "model": "gpt-4o-mini", "stream": True}
        assert "On 3 March." in api.ask("POST", f"{PATH}/turns", ask).text
        assert [sent["authorization"] for sent in model.headers] == ["Bearer sk-up"] * 2
        assert {one["model"] for one in api.all(f"{PATH}/turns")} == {"gpt-4o-mini"}
        offline = api.post(f"{PATH}/turns", {"message": "Which day was it?"})
        assert offline["model"] == "firnline-offline", "none was named"
    with running(store="memory:") as server, Api(server.url) as api:
        refused = api.ask("POST", f"{PATH}/turns", {"message": "Hi", "model": "gpt-4o"})
        assert refused.status_code == 400
        assert "FIRNLINE_UPSTREAM" in refused.json()["detail"]
