"""Projects, sizes, costs and digest statistics over HTTP."""

from datetime import UTC, datetime, timedelta

import pytest

from firnline.engine.stats import FIXED_TOKENS, LEAN_MESSAGES, LEAN_TOKENS
from firnline.log.entry import Digest, Key
from support.live_server import running
from support.rest_client import Api, on_any_store

LONG = "We spoke of the harbour, the ferry and the price of the tickets at some length. " * 4
PATH = "/conversations/c"


# -- the dashboard ----------------------------------------------------------------------------


@pytest.mark.requirement("B9")
def test_the_dashboard_shows_every_project_and_the_active_one_in_full(url):
    with running(store=url, worker=False, background=False) as server, Api(server.url) as api:
        garden = {"status": "active", "schedule": "Mondays", "task": "Plant the beans."}
        created = api.ask("PUT", "/projects/garden", {**garden, "metadata": {"beds": 4}})
        assert created.status_code == 201
        assert created.headers["location"] == "/api/v1/projects/garden"
        api.put("/projects/attic", {"status": "active", "schedule": "in winter"})
        api.put("/projects/roof", {"status": "paused"})
        for name in ("g1", "g2"):
            api.say(name, "I prefer runner beans.", "Runner beans it is.", LONG, LONG)
            api.patch(f"/conversations/{name}", {"project": "garden"})
        first = {"entities": ["peas"], "user_preferences": {"tool": "spade"}}
        api.post("/conversations/g1/important", {"important_data": first})
        second = {"entities": ["beans"], "user_preferences": {"tool": "hoe"}}
        api.post("/conversations/g2/important", {"important_data": second})
        api.patch("/conversations/g1", {"strategy": {"name": "rolling"}})
        api.say("g1", "Round?", "Round.")
        api.say("g2", "The newest word.")
        board = api.get("/projects")
        by_name = {project["name"]: project for project in board["data"]}
        assert list(by_name) == ["attic", "garden", "roof"]
        assert board["active"] == "garden"
        found = by_name["garden"]
        assert {key: found[key] for key in garden} == garden
        assert found["metadata"] == {"beds": 4}
        heads = [api.get(f"/conversations/{name}") for name in ("g1", "g2")]
        assert found["conversations"] == 2
        assert found["entries"] == sum(head["entries"] for head in heads)
        assert found["tokens"] == sum(head["tokens"] for head in heads)
        assert found["pending"] == 1
        assert found["last_activity"] == heads[1]["updated_at"]
        assert [head["conversation"] for head in found["newest"]] == ["g2", "g1"]
        assert found["context"]["conversation"] == "g2"
        data = found["context"]["state"]["important_data"]
        assert data["entities"] == ["peas", "beans"]
        assert data["user_preferences"] == {"tool": "hoe"}
        assert by_name["attic"]["last_activity"] is by_name["attic"]["context"] is None
        assert by_name["roof"]["status"] == "paused"
        assert api.get("/projects/garden") == found


@pytest.mark.requirement("B9")
def test_the_dashboard_counts_what_branches_share_once(api):
    api.say("g1", *(f"{number}: {LONG}" for number in range(8)))
    api.patch("/conversations/g1", {"project": "garden"})
    api.put("/projects/garden", {})
    before = api.get("/projects/garden")
    api.post("/conversations/g1/branch", {"name": "g2", "seq": 5})
    after = api.get("/projects/garden")
    assert (before["entries"], after["entries"], after["conversations"]) == (8, 8, 2)
    assert after["tokens"] == before["tokens"]


@pytest.mark.requirement("B9")
def test_the_task_at_hand_is_in_the_prompt(api):
    api.put("/projects/garden", {"task": "Plant the beans. Blocker: no poles."})
    api.say("c", "What next?")
    api.patch(PATH, {"project": "garden"})
    context = api.post(f"{PATH}/context", {"budget": 4_000})
    assert context["accounting"]["task"] > 0
    assert "Blocker: no poles." in str(context["messages"])
    other = api.post(f"{PATH}/context", {"budget": 4_000, "task": "Rest."})
    assert "no poles" not in str(other["messages"])


def test_projects_are_replaced_and_listed_page_by_page(api):
    for number in range(5):
        api.put(f"/projects/p{number}", {"task": "old"})
    replaced = api.ask("PUT", "/projects/p3", {"task": "new"})
    assert replaced.status_code == 200
    listed = api.all("/projects", limit=2)
    assert [(p["name"], p["task"]) for p in listed] == [
        (f"p{n}", "new" if n == 3 else "old") for n in range(5)
    ]
    assert api.refused("GET", "/projects/p9")["status"] == 404
    assert api.refused("PUT", "/projects/p9", {"task": 5})["status"] == 422
    assert api.refused("PUT", "/projects/p9", {"owner": "me"})["status"] == 422


# -- sizes and costs --------------------------------------------------------------------------


@pytest.mark.requirement("B8")
def test_the_stats_compare_three_ways_to_answer(api):
    api.say("c", *(f"{number}: {LONG}" for number in range(40)))
    entries = api.all(f"{PATH}/messages")
    stats = api.get(f"{PATH}/stats", price=2.0)
    tokens = sum(entry["tokens"] for entry in entries)
    recent = sum(entry["tokens"] for entry in entries[-LEAN_MESSAGES:])
    assert (stats["messages"], stats["tokens"]) == (40, tokens)
    assert (stats["oldest"], stats["newest"]) == tuple(entries[at]["created_at"] for at in (0, -1))
    assert stats["lean"]["tokens"] == FIXED_TOKENS + recent
    assert stats["whole"]["tokens"] == FIXED_TOKENS + tokens
    assert stats["lean"]["tokens"] < stats["with_tools"]["tokens"]
    for way in ("lean", "with_tools", "whole"):
        assert stats[way]["price"] == pytest.approx(stats[way]["tokens"] * 2.0 / 1e6)


@pytest.mark.requirement("B8")
def test_the_stats_of_all_conversations_are_their_sum(api):
    for number, size in enumerate((3, 14, 60)):
        api.say(f"c{number}", *(f"{turn}: {LONG}" for turn in range(size)))
    api.say("large", "word " * (LEAN_TOKENS + 3_000))
    names = ["c0", "c1", "c2", "large"]
    each = [api.get(f"/conversations/{name}/stats") for name in names]
    both = api.get("/stats")
    assert both["conversations"] == len(names)
    for name in ("messages", "tokens"):
        assert both[name] == sum(stats[name] for stats in each)
    for way in ("lean", "with_tools", "whole"):
        assert both[way]["tokens"] == sum(stats[way]["tokens"] for stats in each)
        assert both[way]["price"] == pytest.approx(sum(stats[way]["price"] for stats in each))
    assert both["oldest"] <= both["newest"]
    empty = api.get("/stats", price=0)
    assert empty["whole"]["price"] == 0


@pytest.mark.parametrize("price", ["-1", "nan", "inf", "1e300", "free"])
@on_any_store
def test_a_price_is_a_number(api, price):
    api.say("c", "x")
    assert api.refused("GET", f"{PATH}/stats", params={"price": price})["status"] == 422
    assert api.refused("GET", "/stats", params={"price": price})["status"] == 422


# -- digesting --------------------------------------------------------------------------------


def rounds(api, conversation, count):
    for number in range(count):
        api.say(
            conversation, f"Round {number}: what about {number}00?", f"Item {number}00 is here."
        )


@pytest.fixture
def lazy(url):
    """A server that leaves pending work to another process."""
    with running(store=url, worker=False, strategy="rolling") as server, Api(server.url) as api:
        api.server = server
        yield api


@pytest.mark.requirement("E7")
def test_the_version_chain_the_window_and_the_times_can_be_asked_for(lazy):
    for _ in range(3):
        rounds(lazy, "c", 3)
        assert lazy.get(f"{PATH}/lineage")["pending"] is True
        lazy.post(f"{PATH}/digests")
    lineage = lazy.get(f"{PATH}/lineage")
    versions = lazy.all(f"{PATH}/digests")
    assert lineage["pending"] is False
    assert lineage["chain"] == [digest["version"] for digest in versions][::-1]
    assert [version["base"] for version in lineage["versions"]] == [None, 1, 2]
    assert [v["last_seq"] for v in lineage["versions"]] == [5, 11, 17]
    assert lineage["stuck"] == []
    times = [version["milliseconds"] for version in lineage["versions"]]
    assert lineage["mean_milliseconds"] == pytest.approx(sum(times) / 3)
    assert lineage["max_milliseconds"] == max(times)
    lazy.say("c", "One more, not digested yet.")
    window = lazy.get(f"{PATH}/lineage")["window"]
    assert (window["first_seq"], window["last_seq"]) == (4, 17)
    assert (window["entries"], window["open_entries"]) == (19, 1)
    assert window["open_tokens"] == lazy.get(f"{PATH}/messages/18")["tokens"]


@pytest.mark.requirement("E7")
def test_the_work_of_all_conversations_can_be_asked_for(lazy):
    for name in ("a", "b", "c"):
        rounds(lazy, name, 4)
    lazy.post("/conversations/a/digests")
    _leave_stuck(lazy.server, "b")
    work = lazy.get("/work")
    assert work["conversations"] == 3
    assert sorted(work["due"]) == ["b", "c"]
    assert work["digests"] == {"completed": 2, "processing": 1}
    assert [(s["conversation"], s["version"]) for s in work["stuck"]] == [("b", 2)]
    assert lazy.get("/conversations/b/lineage")["stuck"] == [2]
    assert (work["entries"], work["covered_entries"]) == (24, 16)
    each = [lazy.get(f"/conversations/{name}/lineage") for name in ("a", "b")]
    assert work["max_milliseconds"] == max(one["max_milliseconds"] for one in each)
    mean = sum(one["mean_milliseconds"] for one in each) / 2
    assert work["mean_milliseconds"] == pytest.approx(mean)


def _leave_stuck(server, conversation):
    """One digest, and one that a worker began an hour ago and never finished."""
    begun = datetime.now(UTC) - timedelta(hours=1)
    whole = {"first_seq": 0, "last_seq": 7, "created_at": begun}
    made = Digest(version=1, status="completed", text="Eight.", milliseconds=250, **whole)
    store = server.parts.tenants.store
    server.run(
        store.put_digests(Key("default", conversation), [made, Digest(version=2, base=1, **whole)])
    )


@pytest.mark.requirement("D6")
def test_digests_are_counted_and_have_their_own_prompts(api):
    api.say("c", *(f"{number}: {LONG}" for number in range(40)))
    prompt = {"prompt": "Keep every price.", "prefix": "What the harbour master knows:"}
    api.patch(PATH, {"strategy": {"name": "window", "parameters": prompt}})
    context = api.post(f"{PATH}/context", {"budget": 2_000})
    assert prompt["prefix"] in str(context["messages"])
    work = api.get("/work")
    assert work["digests"] == {"completed": work["events"]["fold"]}
    assert work["events"]["fold"] >= 1
    assert work["events"]["context"] == 1
    assert work["events"]["append"] == 1


def test_recall_is_counted_too(api):
    api.say("c", "one")
    api.get("/search", query="one")
    assert api.get("/work")["events"]["recall"] == 1
