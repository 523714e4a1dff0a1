"""Conversations and messages over HTTP: everything is stored and returned in full."""

import json
from contextlib import ExitStack

import httpx2
import pytest

from firnline.log.entry import Key
from firnline.log.proof_check import check_proof, parse_note
from firnline.server.bodies import make_cursor
from firnline.store.rows import SEQ_MAX
from support.interleave import meanwhile
from support.live_server import running
from support.rest_client import Api, key_for, on_any_store

LONG = "We spoke of the harbour, the ferry and the price of the tickets at some length. " * 4


def texts(entries):
    return [entry["message"]["content"] for entry in entries]


# -- appending --------------------------------------------------------------------------------


def test_a_message_comes_back_with_every_field_it_had(api):
    message = {
        "role": "user",
        "content": [
            {"type": "text", "text": "Look:"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ],
        "name": "Ann",
        "x_unknown": {"deep": [1, 2.5, None, True]},
    }
    metadata, when = {"channel": "mail"}, "2026-03-01T09:00:00Z"
    wrapped = {"message": message, "created_at": when, "metadata": metadata}
    response = api.ask("POST", "/conversations/c/messages", {"messages": [wrapped, message]})
    assert response.status_code == 201
    assert response.headers["location"] == "/api/v1/conversations/c/messages/1"
    assert "idempotent-replayed" not in response.headers
    first, second = response.json()["data"]
    assert first["message"] == second["message"] == message
    assert first["metadata"] == metadata
    assert second["metadata"] == {}
    assert first["created_at"] == "2026-03-01T09:00:00.000000Z"
    assert api.http.get(response.headers["location"]).json() == second
    assert [first["seq"], second["seq"]] == [0, 1]
    assert first["hash"] != second["hash"]
    assert first["tokens"] > 0


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "a \ud800 b"},
        {"role": "user", "content": [{"type": "text", "text": "nul \0"}]},
        {"role": "user", "content": "x", "unknown": {"deep\0": 1}},
    ],
)
def test_altered_text_is_flagged(api, message):
    whole = {"role": "user", "content": "untouched: \ufffd \u2400"}
    body = json.dumps({"messages": [whole, message, {"message": message}]})
    given = {"content": body, "headers": {"content-type": "application/json"}}
    stored = api.ask("POST", "/conversations/c/messages", **given).json()["data"]
    assert [entry["normalised"] for entry in stored] == [False, True, True]
    assert stored == api.all("/conversations/c/messages")


@pytest.mark.promise("idempotent")
def test_an_append_is_repeated_safely(api):
    body = {"messages": [{"role": "user", "content": "Once."}]}
    key = {"headers": {"Idempotency-Key": "order-1"}}
    first = api.ask("POST", "/conversations/c/messages", body, **key)
    again = api.ask("POST", "/conversations/c/messages", body, **key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert again.json() == {**first.json(), "replayed": True}
    assert len(api.all("/conversations/c/messages")) == 1
    other = {"messages": [{"role": "user", "content": "Twice."}]}
    assert api.refused("POST", "/conversations/c/messages", other, **key)["status"] == 409


def test_a_message_goes_where_it_is_expected_or_nowhere(api):
    body = {"messages": [{"role": "user", "content": "x"}], "expected_seq": 0}
    api.post("/conversations/c/messages", body)
    problem = api.refused("POST", "/conversations/c/messages", body)
    assert (problem["status"], problem["retryable"]) == (409, True)
    assert len(api.all("/conversations/c/messages")) == 1


def test_a_batch_is_stored_completely_or_not_at_all(api):
    bad = {"messages": [{"role": "user", "content": "x"}, {"role": "nobody", "content": "y"}]}
    assert "role" in api.refused("POST", "/conversations/c/messages", bad)["detail"]
    assert api.refused("GET", "/conversations/c")["status"] == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": "hello"},
        {"messages": [{"role": "user", "content": "x"}], "surprise": 1},
        {"messages": [{"role": "user", "content": "x"}], "expected_seq": -1},
        {"messages": [{"role": "user", "content": "x"}], "expected_seq": "0"},
        {"messages": [{"role": "user", "content": "x"}], "expected_seq": True},
        {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"message": {"role": "user"}, "created_at": "yesterday"}]},
        {"messages": [{"message": {"role": "user"}, "created_at": "2026-03-01T09:00:00"}]},
        {"messages": [{"message": {"role": "user"}, "created_at": 5}]},
        {"messages": [5]},
        [],
    ],
)
@on_any_store
def test_invalid_input_is_rejected_with_its_place(api, body):
    problem = api.refused("POST", "/conversations/c/messages", body)
    assert problem["status"] in (400, 422)
    assert api.get("/conversations")["data"] == []


# -- the full history -------------------------------------------------------------------------


@pytest.mark.requirement("X1")
@pytest.mark.requirement("A9")
def test_the_history_is_shown_in_full_however_much_is_digested(api):
    """Scenario 7: digests replace nothing."""
    said = [f"{number}: {LONG}" for number in range(60)]
    for start in range(0, 60, 20):
        api.say("c", *said[start : start + 20])
        context = api.post("/conversations/c/context", {"budget": 1_000})
        assert context["tokens"] <= 1_000
    assert len(context["seqs"]) < 20
    assert api.get("/conversations/c")["digests"] >= 2
    api.post("/conversations/c/archive", {"keep": 10})
    history = api.all("/conversations/c/messages", limit=7)
    assert texts(history) == said
    assert [entry["seq"] for entry in history] == list(range(60))
    assert sum(entry["archived"] for entry in history) == 50
    assert texts(api.all("/conversations/c/messages", order="desc", limit=11)) == said[::-1]
    assert api.post("/conversations/c/verify")["ok"] is True


def test_a_part_of_the_history_is_read_in_either_order(api):
    api.say("c", *map(str, range(20)))
    seqs = {"first_seq": 5, "last_seq": 14}
    assert texts(api.all("/conversations/c/messages", limit=3, **seqs)) == [*map(str, range(5, 15))]
    down = api.all("/conversations/c/messages", limit=3, order="desc", **seqs)
    assert texts(down) == [*map(str, range(14, 4, -1))]
    beyond = api.get("/conversations/c/messages", first_seq=20)
    assert beyond == {"data": [], "next_cursor": None, "has_more": False}
    assert texts(api.all("/conversations/c/messages", last_seq=4_000_000_000)) == [
        *map(str, range(20))
    ]


def test_pages_hold_still_while_messages_are_added(api):
    api.say("c", *map(str, range(10)))
    newest = api.get("/conversations/c/messages", order="desc", limit=4)
    api.say("c", "10", "11")
    more = api.all("/conversations/c/messages", order="desc", cursor=newest["next_cursor"])
    assert texts(newest["data"] + more) == [*map(str, range(9, -1, -1))]
    oldest = api.get("/conversations/c/messages", limit=12)
    assert oldest["has_more"] is False


def test_a_page_ends_early_where_messages_are_large(api, monkeypatch):
    monkeypatch.setattr("firnline.log.limits.PAGE_BYTES_MAX", 3_000)
    api.say("c", *(f"{number} {'x' * 100}" for number in range(100)))
    page = api.get("/conversations/c/messages", limit=100)
    assert 0 < len(page["data"]) < 100
    assert page["has_more"]
    assert len(api.all("/conversations/c/messages", limit=100)) == 100


def test_what_is_unchanged_is_not_sent_again(api):
    api.say("c", "one")
    for path in ("/conversations/c/messages", "/conversations/c", "/conversations", "/me"):
        first = api.ask("GET", path)
        tag = first.headers["etag"]
        again = api.ask("GET", path, headers={"If-None-Match": f'"other", {tag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    api.say("c", "two")
    changed = api.ask("GET", "/conversations/c", headers={"If-None-Match": tag})
    assert changed.status_code == 200


@pytest.mark.parametrize("cursor", ["x", "====", "bnVsbA", "MQ==", "eyJhIjoxfQ", "\u00e4", "W10"])
def test_only_our_own_cursors_are_accepted(api, cursor):
    problem = api.refused("GET", "/conversations", params={"cursor": cursor})
    assert problem["status"] == 400
    assert "cursor" in problem["detail"]


def test_a_cursor_beyond_the_end_leads_nowhere(api):
    api.say("c", "one", "two")
    page = api.get("/conversations/c/messages", cursor=make_cursor(SEQ_MAX))
    assert page["has_more"] is False


def test_a_cursor_that_no_page_had_is_rejected(api):
    api.say("c", "one", "two")
    for number in (SEQ_MAX + 1, 2**63, 10**30, -5):
        query = {"cursor": make_cursor(number)}
        problem = api.refused("GET", "/conversations/c/messages", params=query)
        assert (problem["status"], problem["detail"][:7]) == (400, "cursor:")


def test_one_entry_or_none(api):
    api.say("c", "one")
    assert api.get("/conversations/c/messages/0")["message"]["content"] == "one"
    assert api.refused("GET", "/conversations/c/messages/1")["status"] == 404
    assert api.refused("GET", "/conversations/d/messages/0")["status"] == 404
    assert api.refused("GET", "/conversations/c/messages/x")["status"] == 422
    assert api.refused("GET", f"/conversations/c/messages/{'9' * 5_000}")["status"] == 422


# -- conversations ----------------------------------------------------------------------------


def test_conversations_are_listed_page_by_page(api):
    names = [f"c{number:02}" for number in range(25)]
    for name in names:
        api.say(name, "hello")
    api.patch("/conversations/c07", {"project": "p"})
    assert [head["conversation"] for head in api.all("/conversations", limit=10)] == names
    assert [head["conversation"] for head in api.all("/conversations", limit=25)] == names
    (one,) = api.all("/conversations", project="p")
    assert (one["conversation"], one["entries"], one["project"]) == ("c07", 1, "p")
    assert one["url"] == "/api/v1/conversations/c07"


def test_the_longest_names_are_listed_page_by_page(api):
    names = sorted("😀" * 199 + end for end in "abc")
    for name in names:
        api.say(name, "hello")
        api.put(f"/projects/{name}", {})
    assert [head["conversation"] for head in api.all("/conversations", limit=1)] == names
    assert [project["name"] for project in api.all("/projects", limit=1)] == names


def test_a_conversation_is_described(api):
    api.say("c", "one", "two")
    before = api.get("/conversations/c")
    assert before["strategy"]["name"] == "layered"
    assert before["strategy"]["own"] is False
    assert (before["entries"], before["seq"], before["in_force"]) == (2, 1, [])
    changed = api.patch(
        "/conversations/c",
        {
            "project": "p",
            "metadata": {"a": {"b": [1]}},
            "strategy": {"name": "window", "parameters": {"keep_last": 6}},
        },
    )
    assert changed["project"] == "p"
    assert changed["metadata"] == {"a": {"b": [1]}}
    assert changed["strategy"]["own"] is True
    assert changed["strategy"]["parameters"]["keep_last"] == 6
    assert api.get("/conversations/c") == changed
    kept = api.patch("/conversations/c", {"project": "q"})
    assert kept == {**changed, "project": "q"}


@pytest.mark.parametrize("change", [{"project": "p"}, {"strategy": {"name": "rolling"}}])
def test_what_is_erased_while_it_is_changed_does_not_come_back(api, server, change):
    api.say("c", "one")
    memory = server.memory()
    with meanwhile(server.parts.tenants.store, "describe", lambda: memory.erase("c")):
        assert api.refused("PATCH", "/conversations/c", change)["status"] == 404
    assert server.run(memory.head("c")) is None


def test_what_others_say_of_a_conversation_while_it_is_changed_is_kept(api, server):
    api.say("c", "one")
    store = server.parts.tenants.store
    key, describe = Key("default", "c"), store.describe
    with meanwhile(store, "describe", lambda: describe(key, metadata={"a": 1})):
        changed = api.patch("/conversations/c", {"project": "p"})
    assert (changed["project"], changed["metadata"]) == ("p", {"a": 1})


@pytest.mark.parametrize(
    "strategy",
    [
        {"name": "nope"},
        {"name": "window", "parameters": {"trigger": "x"}},
        {"name": "progressive", "parameters": {"data_tokens": "x"}},
        {"name": "layered", "parameters": {"fan": 2.5}},
        {"name": "topics", "parameters": {"words": [1]}},
        {"name": "rolling", "parameters": {"window": True}},
        {"name": "rolling", "parameters": {"window": 10**12}},
        {"name": "project", "parameters": {"surprise": 1}},
    ],
)
@on_any_store
def test_a_strategy_that_could_not_plan_is_rejected(api, strategy):
    api.say("c", "one")
    assert api.refused("PATCH", "/conversations/c", {"strategy": strategy})["status"] == 400
    assert api.get("/conversations/c")["strategy"]["name"] == "layered"


def test_nothing_is_created_by_asking_or_by_changing(api):
    for method, path, body in [
        ("GET", "", None),
        ("PATCH", "", {"project": "p"}),
        ("DELETE", "", None),
        ("POST", "/verify", {}),
        ("POST", "/context", {"budget": 1_000}),
        ("GET", "/messages", None),
        ("POST", "/restore", None),
        ("POST", "/checkpoint", None),
        ("POST", "/proof", {"seq": 0}),
    ]:
        problem = api.refused(method, f"/conversations/nobody{path}", body)
        assert (problem["status"], problem["code"]) == (404, "UnknownConversation")
    assert api.get("/conversations")["data"] == []


def test_a_log_can_be_proven_over_rest(api):
    api.say("c", "one", "two")
    noted = api.post("/conversations/c/checkpoint")["checkpoint"]
    assert check_proof(api.post("/conversations/c/proof", {"seq": 1})["proof"]).seq == 1
    api.say("c", "three")
    grown = api.post("/conversations/c/proof", {"since": noted})["proof"]
    assert check_proof(grown, known=parse_note(noted)).checkpoint.size == 3
    for body in ({}, {"seq": 0, "since": noted}, {"seq": -1}, {"seq": 9}, {"since": "x"}):
        assert api.refused("POST", "/conversations/c/proof", body)["status"] in (400, 422)


def test_verify_knows_an_anchor(api):
    noted = api.say("c", "one", "two")["data"][0]["hash"]
    whole = api.post("/conversations/c/verify", {"anchor": noted})
    assert whole["ok"] is True
    assert (whole["entries"], whole["problems"]) == (2, [])
    other = api.post("/conversations/c/verify", {"anchor": "sha256:" + "0" * 64})
    assert other["ok"] is False
    assert other["problems"]


def test_archive_and_restore(api):
    api.say("c", *map(str, range(30)))
    done = api.post("/conversations/c/archive", {"keep": 10})
    assert done["entries"] == 20
    assert api.get("/conversations/c")["archived"] == 20
    assert api.post("/conversations/c/restore") == {"entries": 20}
    assert api.get("/conversations/c")["archived"] == 0
    assert api.post("/conversations/c/archive")["entries"] == 0, "1,000 stay live"


def test_pins(api):
    api.say("c", "keep me", "and not me")
    pin = {"conversation": "c", "seq": 0, "pinned": True}
    assert api.put("/conversations/c/pins/0") == pin
    assert texts(api.get("/conversations/c/pins")["data"]) == ["keep me"]
    assert api.get("/conversations/c")["pinned"] == [0]
    assert api.delete("/conversations/c/pins/0") == {**pin, "pinned": False}
    assert api.get("/conversations/c/pins")["data"] == []
    assert api.refused("PUT", "/conversations/c/pins/9")["status"] == 404
    assert api.refused("DELETE", "/conversations/c/pins/9")["status"] == 404
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    called = {"role": "assistant", "tool_calls": [call]}
    api.post("/conversations/c/messages", {"messages": [called]})
    assert api.refused("PUT", "/conversations/c/pins/2")["status"] == 400


def test_a_branch_is_a_copy(api):
    api.say("c", "one", "two", "three")
    made = api.ask("POST", "/conversations/c/branch", {"name": "plan b", "seq": 1})
    assert made.status_code == 201
    assert made.headers["location"] == "/api/v1/conversations/plan%20b"
    assert texts(api.all("/conversations/plan%20b/messages")) == ["one", "two"]
    again = api.ask("POST", "/conversations/c/branch", {"name": "plan b", "seq": 1})
    assert (again.status_code, again.json()) == (200, made.json())
    taken = api.refused("POST", "/conversations/c/branch", {"name": "plan b", "seq": 0})
    assert taken["status"] == 409
    assert api.refused("POST", "/conversations/c/branch", {"name": "d", "seq": 3})["status"] == 404
    api.delete("/conversations/c")
    assert texts(api.all("/conversations/plan%20b/messages")) == ["one", "two"]


def test_an_erasure_is_certified_and_complete(api):
    api.say("c", "a secret", "kept well")
    head = api.get("/conversations/c")
    certificate = api.delete("/conversations/c")
    assert certificate["head"] == head["hash"]
    assert (certificate["entries"], certificate["tokens"]) == (2, head["tokens"])
    assert api.refused("GET", "/conversations/c")["status"] == 404
    assert api.refused("DELETE", "/conversations/c")["status"] == 404
    assert api.get("/search", query="secret")["data"] == []


# -- names ------------------------------------------------------------------------------------

NAMES = {
    "a/b/c": "a~1b~1c",
    "..": "~2.",
    ".": "~2",
    "../../etc/passwd": "..~1..~1etc~1passwd",
    "~": "~0",
    "~1": "~01",
    "a?b#c&d=e;f": "a%3Fb%23c%26d%3De%3Bf",
    "50% of 日本語 😀": "50%25%20of%20%E6%97%A5%E6%9C%AC%E8%AA%9E%20%F0%9F%98%80",
    "messages": "messages",
    "C:\\temp": "C%3A%5Ctemp",
    "verify": "verify",
    "http://host/x": "http%3A~1~1host~1x",
}


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_one_segment_of_a_path(api, name):
    path = NAMES[name]
    stored = api.ask("POST", f"/conversations/{path}/messages", {"messages": [{"role": "user"}]})
    assert stored.headers["location"] == f"/api/v1/conversations/{path}/messages/0"
    assert api.http.get(stored.headers["location"]).status_code == 200
    (head,) = api.get("/conversations")["data"]
    assert (head["conversation"], head["url"]) == (name, f"/api/v1/conversations/{path}")
    assert api.get(f"/conversations/{path}")["conversation"] == name
    assert api.delete(f"/conversations/{path}")["conversation"] == name
    api.put(f"/projects/{path}", {})
    assert api.get(f"/projects/{path}")["name"] == name


@pytest.mark.parametrize("path", ["a~b", "~", "~3", "a~", "%00", "a%0Ab", "%20a", "a" * 201])
@on_any_store
def test_a_path_that_is_not_a_name_is_rejected(api, path):
    body = {"messages": [{"role": "user", "content": "x"}]}
    assert api.refused("POST", f"/conversations/{path}/messages", body)["status"] in (400, 422)
    assert api.refused("GET", f"/conversations/{path}")["status"] in (400, 422)
    assert api.get("/conversations")["data"] == []


def test_the_problem_names_the_path_as_it_was_asked(api):
    problem = api.refused("GET", "/conversations/a%3Fb%23c")
    assert problem["instance"] == "/api/v1/conversations/a?b#c"


# -- many at once -----------------------------------------------------------------------------


@pytest.mark.requirement("A9")
@pytest.mark.promise("tenants-apart")
def test_many_conversations_do_not_mix(url):
    """Scenario 8: every conversation of every tenant sees its own words alone."""
    with ExitStack() as stack:
        server = stack.enter_context(running(store=url, auth="required", background=False))
        tenants = {
            name: stack.enter_context(Api(server.url, key_for(server, name)))
            for name in ("ann", "bob")
        }
        for tenant, api in tenants.items():
            for number in range(4):
                mark = f"{tenant}-{number}"
                api.say(f"c{number}", *(f"{mark} says {turn} {LONG}" for turn in range(30)))
                api.post(f"/conversations/c{number}/context", {"budget": 1_500})
        for tenant, api in tenants.items():
            for number in range(4):
                seen = json.dumps(
                    [
                        api.all(f"/conversations/c{number}/messages"),
                        api.post(
                            f"/conversations/c{number}/context",
                            {"budget": 1_500, "question": "Who says what?"},
                        ),
                        api.get(f"/conversations/c{number}/state"),
                        api.get(f"/conversations/c{number}/search", query="says"),
                    ]
                )
                others = {f"{t}-{n}" for t in tenants for n in range(4)} - {f"{tenant}-{number}"}
                assert f"{tenant}-{number}" in seen
                assert not [other for other in others if other in seen]
            assert len(api.all("/conversations")) == 4


def test_an_address_with_nothing_at_it_says_where_all_are(api):
    problem = api.http.get("/api/v1/convs").json()
    assert (problem["status"], problem["code"]) == (404, "NotFound")
    assert "see /openapi.json" in problem["detail"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/api/v1/conversations/c/messages", '{"messages":[{"role":"user","role":"system"}]}'),
        ("/v1/chat/completions", '{"model":"a","messages":[],"messages":[]}'),
        ("/v1/messages", '{"model":"a","model":"b","messages":[{"role":"user","content":"Hi"}]}'),
    ],
)
def test_a_key_that_occurs_twice_is_rejected_and_nothing_is_stored(server, path, text):
    headers = {"content-type": "application/json"}
    answer = httpx2.post(f"{server.url}{path}", content=text, headers=headers)
    assert answer.status_code == 400
    assert "occurs twice" in answer.text
    assert server.run(server.memory().conversations()) == []


# -- erasing messages -------------------------------------------------------------------------


@pytest.mark.promise("erase-total")
def test_messages_are_erased_one_by_one_by_span_and_by_age(api):
    said = [
        {
            "message": {"role": "user", "content": f"secret {i}"},
            "created_at": f"2025-01-0{i + 1}T00:00:00Z",
        }
        for i in range(6)
    ]
    for name in ("c", "old"):
        said[5] = {
            "message": {"role": "user", "content": name},
            "created_at": "2025-02-01T00:00:00Z",
        }
        api.post(f"/conversations/{name}/messages", {"messages": said})
        said = [{**one, "created_at": "2025-01-01T00:00:01Z"} for one in said]
    api.post("/conversations/c/branch", {"name": "copy", "seq": 2})
    one = api.delete("/conversations/c/messages/1")
    assert (one["entries"], one["spans"], one["survives"]) == (1, [[1, 1]], ["copy"])
    found = api.get("/conversations/c/messages/1")
    assert found["erased_at"] == one["erased_at"]
    assert (found["message"]["content"], found["tokens"]) == ("", 0)
    assert api.get("/conversations/c/messages/2")["erased_at"] is None
    span = api.delete("/conversations/c/messages", first_seq=2, last_seq=3, branches=True)
    assert (span["spans"], span["branches"], span["survives"]) == ([[2, 3]], ["copy"], [])
    verified = api.post("/conversations/c/verify", {})
    assert (verified["ok"], verified["erased"]) == (True, 3)
    every = api.delete("/old-messages", until="2025-01-06T00:00:00Z", role="user")["data"]
    assert [(done["conversation"], done["entries"]) for done in every] == [
        ("c", 2), ("copy", 2), ("old", 5),
    ]  # fmt: skip
    assert api.refused("DELETE", "/conversations/c/messages")["status"] == 400
    assert api.refused("DELETE", "/conversations/nothing/messages/0")["status"] == 404
