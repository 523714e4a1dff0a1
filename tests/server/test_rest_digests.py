"""Digests over HTTP: every version is listed and can be undone."""

import pytest

from support.live_server import running
from support.rest_client import Api
from support.subjects import SUBJECTS

LISBON, SOURDOUGH = SUBJECTS[0], SUBJECTS[2]
PATH = "/conversations/c"
FACTS = [
    "I prefer aisle seats and vegetarian meals.",
    "Noted: aisle seats, vegetarian meals.",
    "We decided to fly with TAP on 3 March 2026.",
    "TAP on 3 March 2026 it is.",
]
FILLER = "The harbour, the ferry and the price of the tickets were talked about at some length. "


@pytest.fixture
def digested(api):
    """A conversation of which two digests were made."""
    for start in range(2):
        lines = FACTS if start == 0 else []
        more = [f"{start}-{number}: {FILLER * 4}" for number in range(24 - len(lines))]
        api.say("c", *lines, *more)
        api.post(f"{PATH}/context", {"budget": 1_000})
    assert len(api.get(f"{PATH}/digests")["data"]) >= 2
    return api


def test_versions_are_listed_and_read(digested):
    listed = digested.all(f"{PATH}/digests", limit=1)
    assert [digest["version"] for digest in listed] == list(range(1, len(listed) + 1))
    assert digested.get(f"{PATH}/digests", limit=100)["data"] == listed
    force = digested.get(f"{PATH}/digests/in-force")["data"]
    assert force == [digest for digest in listed if digest["in_force"]]
    assert [d["version"] for d in force] == digested.get(PATH)["in_force"]
    one = digested.get(f"{PATH}/digests/1")
    assert one == listed[0]
    assert one["text"]
    assert one["receipt"]
    assert (one["status"], one["first_seq"], one["made_by"]) == ("completed", 0, "offline")
    for version in (0, 99):
        assert digested.refused("GET", f"{PATH}/digests/{version}")["status"] in (404, 422)


def test_a_digest_expands_to_what_it_covers(digested):
    one = digested.get(f"{PATH}/digests/1")
    covered = digested.all(f"{PATH}/digests/1/messages", limit=5)
    assert [e["seq"] for e in covered] == list(range(one["first_seq"], one["last_seq"] + 1))
    assert covered[0]["message"]["content"] == FACTS[0]
    assert digested.refused("GET", f"{PATH}/digests/99/messages")["status"] == 404


def test_a_topics_digest_expands_to_the_topics_entries(url):
    """Two subjects in turn: the entries between those of a topic belong to the other."""
    with running(store=url, background=False, embedder="words") as server, Api(server.url) as api:
        for pair in zip(LISBON, SOURDOUGH, strict=True):
            for line in pair:
                api.say("c", line, "I see.")
        strategy = {"name": "topics", "parameters": {"max_messages": 4, "keep": 2}}
        api.patch(PATH, {"strategy": strategy})
        api.post(f"{PATH}/context", {"budget": 2_000})
        (*_, newest) = api.all(f"{PATH}/digests")
        version, topic = newest["version"], newest["topic"]
        covered = [e["seq"] for e in api.all(f"{PATH}/digests/{version}/messages", limit=2)]
        members = [e["seq"] for e in api.all(f"{PATH}/topics/{topic}/messages")]
    assert covered == [s for s in members if newest["first_seq"] <= s <= newest["last_seq"]]
    assert 0 < len(covered) < newest["last_seq"] - newest["first_seq"] + 1


def test_undo_leads_back_and_clear_to_the_beginning(digested):
    before = digested.get(PATH)
    undone = digested.post(f"{PATH}/digests/undo")
    assert undone["status"] == "undone"
    after = digested.get(PATH)
    assert undone["version"] not in after["in_force"]
    assert after["digests"] == before["digests"], "it is kept"
    assert digested.get(f"{PATH}/digests/{undone['version']}")["status"] == "undone"
    cleared = digested.post(f"{PATH}/digests/clear")
    assert cleared["digests"] >= 1
    assert digested.get(f"{PATH}/digests/in-force")["data"] == []
    assert digested.refused("POST", f"{PATH}/digests/undo", {})["status"] == 400
    assert len(digested.all(f"{PATH}/messages")) == 48


def test_versions_are_compared(digested):
    digested.post(f"{PATH}/important", {"important_data": {"key_decisions": ["Fly with TAP."]}})
    (*_, last) = digested.all(f"{PATH}/digests")
    difference = digested.get(f"{PATH}/digests/{last['version']}/diff", before=last["base"])
    assert [item["value"] for item in difference["added"]] == ["Fly with TAP."]
    assert difference["removed"] == []
    refused = digested.refused("GET", f"{PATH}/digests/1/diff", params={"before": 99})
    assert refused["status"] == 404


def test_facts_of_the_application_are_stored_and_removed(digested):
    digested.post(f"{PATH}/important", {"important_data": {"user_preferences": {"seat": "aisle"}}})
    changed = {"important_data": {"user_preferences": {"seat": "window"}}, "summary": "In short."}
    made = digested.post(f"{PATH}/important", changed)
    assert (made["made_by"], made["text"]) == ("application", "In short.")
    state = digested.get(f"{PATH}/state")
    assert state["important_data"]["user_preferences"]["seat"] == "window"
    assert "In short." in state["conversation_summary"]
    digested.post(f"{PATH}/important/revert", {"seq": -1})
    state = digested.get(f"{PATH}/state")
    assert state["important_data"]["user_preferences"]["seat"] == "aisle"
    for wrong in ({"hobbies": []}, {"key_decisions": {}}, {"user_preferences": []}):
        problem = digested.refused("POST", f"{PATH}/important", {"important_data": wrong})
        assert problem["status"] == 400


def test_important_data_is_shown_with_its_evidence_and_what_it_replaced(digested):
    shown = digested.get(f"{PATH}/important")
    force = digested.get(PATH)["in_force"]
    assert {item["version"] for item in shown["data"]} <= set(force)
    preferences = [item for item in shown["data"] if item["field"] == "user_preferences"]
    (first, *_) = preferences
    assert 0 in first["seqs"]
    assert first["quote"] in FACTS[0]
    changed = {"user_preferences": {first["name"]: "no longer"}}
    digested.post(f"{PATH}/important", {"important_data": changed})
    shown = digested.get(f"{PATH}/important")["data"]
    both = {i["value"]: i["superseded_by"] for i in shown if i["name"] == first["name"]}
    assert both == {first["value"]: -1, "no longer": None}
    for item in shown:
        if item["superseded_by"] is None and item["field"] == "user_preferences":
            state = digested.get(f"{PATH}/state")["important_data"]["user_preferences"]
            assert state[item["name"]] == item["value"]
    tag = digested.ask("GET", f"{PATH}/important").headers["etag"]
    again = digested.ask("GET", f"{PATH}/important", headers={"if-none-match": tag})
    assert again.status_code == 304
    assert digested.refused("GET", "/conversations/none/important")["status"] == 404


def test_digests_are_rebuilt(digested):
    force = digested.get(PATH)["in_force"]
    assert digested.post(f"{PATH}/digests/rebuild", {"only_offline": False})["data"]
    made = digested.post(f"{PATH}/digests/rebuild")["data"]
    assert all(digest["in_force"] for digest in made)
    assert not set(force) & {digest["version"] for digest in made}


def test_pending_digests_are_created_on_demand(api):
    api.say("c", *(f"{number}: {FILLER}" for number in range(2)))
    api.patch(PATH, {"strategy": {"name": "rolling"}})
    for number in range(4):
        api.say("c", f"Round {number}?", f"Round {number}.")
    made = api.post(f"{PATH}/digests")
    assert made["more"] is False
    assert len(api.get(f"{PATH}/digests")["data"]) >= 1
    assert api.post(f"{PATH}/digests") == {"digests": 0, "more": False}


def test_a_conversation_without_digests_says_so(api):
    api.say("c", "one")
    assert api.get(f"{PATH}/digests") == {"data": [], "next_cursor": None, "has_more": False}
    assert api.get(f"{PATH}/state")["summary_version"] == 0
    assert api.post(f"{PATH}/digests/clear") == {"digests": 0, "more": False}
    for path in ("/digests", "/digests/in-force", "/digests/1", "/state"):
        assert api.refused("GET", f"/conversations/no{path}")["status"] == 404
