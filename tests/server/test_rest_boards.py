"""Requests of the page's boards: costs over time, dates, health, stop, server information."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from firnline import __version__
from firnline.log.entry import Digest, Key
from firnline.server import prompts
from firnline.server.rest import costs
from firnline.testing import ModelServer
from support.live_server import running
from support.rest_client import Api, key_for, parse_events

LONG = "We spoke of the harbour, the ferry and the price of the tickets at some length. " * 4
PATH = "/conversations/c"


@pytest.fixture
def model():
    with ModelServer(model="gpt-4o-mini", pause=0.002) as server:
        yield server


@pytest.fixture
def house(url, model):
    settings = {"model": "gpt-4o-mini", "model_url": model.url, "model_key": "sk-x"}
    with running(store=url, background=False, worker=False, **settings) as server:
        yield server


@pytest.fixture
def api(house):
    with Api(house.url) as api:
        yield api


# -- costs ------------------------------------------------------------------------------------


@pytest.mark.requirement("B8")
def test_costs_compare_sent_tokens_with_the_full_history(api, model):
    assert api.get("/costs") == {
        "turns": 0,
        "sent": 0,
        "repeated": 0,
        "digest_tokens": 0,
        "whole": 0,
        "whole_repeated": 0,
        "price": 0.2,
        "spent": 0.0,
        "saved": 0.0,
        "complete": True,
        "data": [],
    }
    api.say("c", *(f"{n}: {LONG}" for n in range(40)))
    whole = []
    for name in ("c", "c", "d"):
        ask = {"message": "How much is the ferry?", "budget": 1_500, "system": "Be brief."}
        turn = api.post(f"/conversations/{name}/turns", ask)
        log = api.get(f"/conversations/{name}")["tokens"] - turn["answer"]["tokens"]
        accounting = turn["accounting"]
        whole.append(log + accounting["system"] + accounting["framing"])
    told = api.get("/costs", price=10)
    turns = [*api.all("/conversations/c/turns"), *api.all("/conversations/d/turns")]
    assert told["turns"] == 3
    assert told["sent"] == sum(turn["tokens"] for turn in turns)
    assert told["whole"] == sum(whole)
    assert [point["whole"] for point in told["data"]] == whole, "oldest first"
    assert told["data"][2]["sent"] == told["data"][2]["whole"], "a short one is sent whole"
    first, second = turns[1], turns[0]
    assert told["repeated"] == round(second["stability"] * first["tokens"])
    assert told["whole_repeated"] == first["whole"] == whole[0]
    paid = told["sent"] + told["digest_tokens"]
    assert told["spent"] == pytest.approx(paid / 100_000)
    assert told["saved"] == pytest.approx((told["whole"] - paid) / 100_000)
    assert told["complete"]
    times = [point["since"] for point in told["data"]]
    assert times == sorted(times)


@pytest.mark.requirement("B8")
def test_costs_count_what_digests_spend_and_a_loss_is_negative(api, model):
    """A short conversation that was digested by a model costs more than its full history."""
    api.say("c", *(f"{n}: {LONG}" for n in range(40)))
    ask = {"message": "How much is the ferry?", "budget": 1_500}
    api.post("/conversations/c/turns", ask)
    (turn,) = api.all("/conversations/c/turns")
    spent = sum(digest["spent_tokens"] for digest in api.all("/conversations/c/digests"))
    told = api.get("/costs", price=10)
    assert spent > told["whole"] - turn["tokens"] > 0, "otherwise this tests nothing"
    assert told["digest_tokens"] == spent == sum(p["digest_tokens"] for p in told["data"])
    assert (told["turns"], told["sent"], len(told["data"])) == (1, turn["tokens"], 1)
    assert told["spent"] == pytest.approx((told["sent"] + spent) / 100_000)
    assert told["saved"] == pytest.approx((told["whole"] - told["sent"] - spent) / 100_000)
    assert told["saved"] < 0


def test_costs_are_separate_for_each_tenant(house, api):
    api.post(f"{PATH}/turns", {"message": "Hello"})
    with Api(house.url, key_for(house, "ann")) as ann:
        assert ann.get("/costs")["turns"] == 0


def test_costs_of_very_many_turns_are_bounded_and_say_so(api, monkeypatch):
    monkeypatch.setattr(costs, "TURNS_PRICED_MAX", 3)
    for _ in range(5):
        api.post(f"{PATH}/turns", {"message": "Hello"})
    told = api.get("/costs")
    assert (told["turns"], told["complete"]) == (3, False)
    monkeypatch.setattr(costs, "TURNS_PRICED_MAX", 5)
    assert api.get("/costs")["complete"]


@pytest.mark.parametrize(("turns", "count"), [(0, 10), (1, 10), (10, 10), (11, 10), (999, 100)])
def test_points_take_in_every_turn_once_and_the_digests_between(turns, count):
    took = [costs.Spending(f"{at:04}", turns=1) for at in range(turns)]
    found = sorted([*took, *(costs.Spending(f"{at:04}+", digest_tokens=1) for at in (0, 7, 2_000))])
    parts = costs.points(found, count)
    assert [one for part in parts for one in part] == found
    assert len(parts) == max(min(turns, count), 1)
    sizes = {costs.sum_up(part)["turns"] for part in parts}
    assert max(sizes) - min(sizes) <= 1


def test_a_prompt_recorded_before_is_no_saving(api, house):
    """Without the size of the history, no figure is invented."""
    api.post(f"{PATH}/turns", {"message": "Hello"})
    (kept,) = house.run(prompts.list_records(house.memory(), "c"))
    del kept["whole_tokens"]
    assert costs.turn_spending(kept, None).whole == kept["tokens"]


# -- work -------------------------------------------------------------------------------------


@pytest.mark.requirement("E7")
def test_work_names_what_failed_and_was_not_made_good(api, house):
    api.say("c", *(f"{n}: {LONG}" for n in range(8)))
    store = house.parts.tenants.store
    due = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)

    async def fail():
        lease = await store.lease(Key("default", "c"), "w", 60)
        begun = await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=3))
        failed = replace(begun, status="failed", error="no words today")
        await store.finish_digest(lease, failed)
        await store.release(lease)
        await store.mark_pending(Key("default", "c"), due)

    house.run(fail())
    work = api.get("/work")
    (failed,) = work["failed"]
    assert (failed["conversation"], failed["version"]) == ("c", 1)
    assert failed["error"] == "no words today"
    assert datetime.fromisoformat(work["pending_since"]) == due
    with Api(house.url, key_for(house, "ann")) as ann:
        assert ann.get("/work")["pending_since"] is None
    api.post(f"{PATH}/context", {"budget": 600})
    assert api.get(PATH)["in_force"]
    assert api.get("/work")["failed"] == []


# -- looking ----------------------------------------------------------------------------------


def test_looking_at_a_context_changes_nothing(api, model):
    api.say("c", *(f"{n}: {LONG}" for n in range(40)))
    looked = api.post(f"{PATH}/context", {"budget": 1_500, "fold": False})
    assert looked["tokens"] <= 1_500
    assert looked["stability"] is None
    assert any("in no digest" in why for why in looked["degraded"])
    assert (api.get(PATH)["digests"], model.requests) == (0, [])
    work = api.get("/work")
    assert (work["due"], work["waiting"], work["events"].get("context")) == ([], [], None)
    real = api.post(f"{PATH}/context", {"budget": 1_500})
    assert api.get(PATH)["digests"] > 0
    assert real["stability"] is None, "what was only looked at was no prompt"
    again = api.post(f"{PATH}/context", {"budget": 1_500, "fold": False})
    assert again["stability"] == 1.0
    assert again["messages"] == real["messages"]


# -- stopping ---------------------------------------------------------------------------------


def test_an_answer_is_stopped_where_it_is(api, house, model):
    text = "It left Innsbruck this morning and should be with Ana on Friday. " * 20
    model.say(text)
    model.fail("trickle")
    assert api.refused("POST", f"{PATH}/turns/stop")["status"] == 404
    got, begun = [], threading.Event()

    def listen():
        ask = {"message": "Where is it?", "stream": True}
        with api.http.stream("POST", f"/api/v1{PATH}/turns", json=ask) as response:
            for piece in response.iter_text():
                got.append(piece)
                begun.set()

    listening = threading.Thread(target=listen)
    listening.start()
    assert begun.wait(30)
    with Api(house.url, key_for(house, "ann")) as ann, Api(house.url) as other:
        ann.say("c", "Mine.")
        assert ann.post(f"{PATH}/turns/stop") == {"stopped": 0}, "it is another tenant's"
        other.say("d", "Another.")
        assert other.post("/conversations/d/turns/stop") == {"stopped": 0}
        assert other.post(f"{PATH}/turns/stop") == {"stopped": 1}
        # It is stored when the answer to the request comes.
        _, answer = other.get(f"{PATH}/messages")["data"]
        assert other.post(f"{PATH}/turns/stop") == {"stopped": 0}
    listening.join(30)
    assert answer["metadata"]["interrupted"] == "stopped by the reader"
    stored = answer["message"]["content"]
    events = parse_events("".join(got))
    seen = "".join(data["text"] for kind, data in events if kind == "delta")
    assert stored.startswith(seen.strip())
    assert text.startswith(stored.strip())
    assert len(stored) < len(text)
    assert events[-1][0] == "error"
    assert "stopped" in events[-1][1]["detail"]
    assert house.parts.streams.live == 0
    assert house.parts.drafts.live == 0
    assert house.run(house.parts.tenants.store.cards("draft")) == []


def test_an_answer_that_is_stopped_before_it_starts_is_no_error(api, house, model, caplog):
    asked, go, told = threading.Event(), threading.Event(), []

    def answer(_):
        asked.set()
        go.wait(30)
        return "Too late."

    model.answer = answer
    ask = {"message": "Where is it?", "stream": True}
    asking = threading.Thread(target=lambda: told.append(api.refused("POST", f"{PATH}/turns", ask)))
    asking.start()
    assert asked.wait(30)
    with Api(house.url) as other:
        assert other.post(f"{PATH}/turns/stop") == {"stopped": 1}
    asking.join(30)
    go.set()
    assert (told[0]["status"], told[0]["detail"]) == (409, "stopped by the reader")
    assert [one.message for one in caplog.records if one.levelname == "ERROR"] == []


# -- words and who ----------------------------------------------------------------------------


@pytest.mark.requirement("B5")
def test_words_for_a_time_are_returned_as_times(api):
    told = api.get("/dates", when="2026-03-04", zone="Europe/Berlin")
    assert told == {
        "since": "2026-03-03T23:00:00.000000Z",
        "until": "2026-03-04T23:00:00.000000Z",
        "when": "2026-03-04",
    }
    assert api.refused("GET", "/dates", params={"when": "whenever"})["status"] == 400
    assert (
        api.refused("GET", "/dates", params={"when": "today", "zone": "Nowhere"})["status"] == 400
    )


def test_me_describes_the_server_and_names_no_path(api, url, tmp_path):
    me = api.get("/me")
    assert me["server"] == {
        "version": __version__,
        "store": url.partition(":")[0],
        "answers": "gpt-4o-mini",
        "proxy": False,
        "upstream": False,
        "embedder": "none",
        "worker": False,
    }
    assert str(tmp_path) not in str(me)
