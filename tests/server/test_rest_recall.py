"""Search, dates and topics over HTTP."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from support.live_server import running
from support.rest_client import Api, on_any_store
from support.subjects import SUBJECTS

PATH = "/conversations/c"
LISBON, SOURDOUGH = SUBJECTS[0], SUBJECTS[2]


def stamped(api, conversation, *said):
    """Append messages said at given times."""
    messages = [
        {"message": {"role": role, "content": text}, "created_at": at} for role, text, at in said
    ]
    return api.post(f"/conversations/{conversation}/messages", {"messages": messages})


def texts(found):
    return [hit["entry"]["message"]["content"] for hit in found["data"]]


# -- search -----------------------------------------------------------------------------------


@pytest.fixture
def talk(api):
    stamped(
        api,
        "c",
        ("user", "The ferry to Capri leaves at nine.", "2026-01-05T10:00:00Z"),
        ("assistant", "The ferry is noted.", "2026-01-05T10:01:00Z"),
        ("user", "Tickets for the opera are sold out.", "2026-02-05T10:00:00Z"),
    )
    stamped(api, "d", ("user", "Another ferry, to Elba.", "2026-03-05T10:00:00Z"))
    api.patch("/conversations/d", {"project": "islands"})
    return api


def test_search_finds_words_here_or_everywhere(talk):
    here = talk.get(f"{PATH}/search", query="ferry")
    assert sorted(texts(here)[:2]) == ["The ferry is noted.", "The ferry to Capri leaves at nine."]
    everywhere = talk.get("/search", query="ferry", limit=10)
    assert {hit["conversation"] for hit in everywhere["data"]} == {"c", "d"}
    best = everywhere["data"][0]
    assert best["score"] == pytest.approx(sum(best["parts"].values()))
    assert best["explanation"].startswith(f"score {best['score']:.2f}: ")
    assert best["explanation"].endswith(f"; chance {best['chance']:.0%}")
    assert 0 < best["chance"] < 1
    assert everywhere["earned"] == sum(hit["chance"] >= 0.05 for hit in everywhere["data"])


def test_search_is_the_same_by_address_and_by_body(talk):
    for path in ("/search", f"{PATH}/search"):
        asked = {"query": "ferry Capri", "limit": 2, "roles": ["user"]}
        assert talk.get(path, **asked) == talk.post(path, asked)


def test_search_keeps_to_what_is_asked_for(talk):
    def found(path="/search", **asked):
        hits = talk.post(path, {"query": "ferry tickets opera", **asked})["data"]
        return {(hit["conversation"], hit["entry"]["seq"]) for hit in hits}

    assert found(roles=["assistant"]) == {("c", 1)}
    assert found(project="islands") == {("d", 0)}
    assert found(since="2026-02-01T00:00:00Z", until="2026-03-01T00:00:00Z") == {("c", 2)}
    assert len(found(limit=1)) == 1
    assert len(found(tokens=12)) == 1
    assert found(f"{PATH}/search", roles=["tool"]) == set()
    (topic, *_) = talk.get(f"{PATH}/topics")["data"]
    talk.patch(f"{PATH}/topics/{topic['topic_id']}/tags", {"add": ["sea"]})
    tagged = found(tags=["sea"])
    assert tagged
    assert {conversation for conversation, _ in tagged} == {"c"}
    assert found(f"{PATH}/search", topic=topic["topic_id"]) == tagged
    assert found(tags=["sea", "land"]) == set()


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 1_001},
        {"query": "x", "tokens": -1},
        {"query": "x", "roles": ["boss"]},
        {"query": "x", "roles": "user"},
        {"query": "x", "since": "soon"},
        {"query": "x", "since": "2026-02-01"},
        {"query": "x", "topic": 1},
        {"query": "x", "tags": [" blank"]},
        {"query": "x", "surprise": 1},
        {"query": "x" * 10_001},
    ],
)
@on_any_store
def test_a_wrong_search_is_rejected(api, asked):
    assert api.refused("POST", "/search", asked)["status"] in (400, 422)


def test_search_in_no_conversation_is_a_404(api):
    for method, more in (("GET", {"params": {"query": "x"}}), ("POST", {"json": {"query": "x"}})):
        assert api.refused(method, "/conversations/no/search", **more)["status"] == 404


# -- dates ------------------------------------------------------------------------------------


@pytest.mark.requirement("B5")
def test_messages_of_a_day_are_found_by_words_for_it(api, monkeypatch):
    berlin = ZoneInfo("Europe/Berlin")
    now = datetime.now(berlin)
    monkeypatch.setattr("firnline.server.rest.search.utc_now", lambda: now.astimezone(UTC))
    noon = now.replace(hour=12, minute=0, second=0, microsecond=0)
    # Half an hour before midnight in Berlin is the day before, whatever it is in UTC.
    late = (noon - timedelta(days=1)).replace(hour=23, minute=30)
    early = (noon - timedelta(days=1)).replace(hour=0, minute=30)
    said = [("early", early), ("late", late), ("today", now), ("old", noon - timedelta(days=9))]
    stamped(api, "c", *(("user", text, at.astimezone(UTC).isoformat()) for text, at in said))
    page = api.get(f"{PATH}/dates", when="yesterday", zone="Europe/Berlin")
    assert [entry["message"]["content"] for entry in page["data"]] == ["early", "late"]
    assert page["when"] == "yesterday"
    day = early.replace(minute=0)
    assert datetime.fromisoformat(page["since"]) == day
    everything = api.all(f"{PATH}/dates", when="the last 3 weeks", limit=1)
    assert len(everything) == 4


@pytest.mark.parametrize(
    "query",
    [
        {"when": "whenever"},
        {"when": ""},
        {"when": "yesterday", "zone": "Mars/Olympus"},
        {"when": "yesterday", "zone": "../../etc/passwd"},
        {"when": "yesterday", "zone": "\0"},
        {"when": "9" * 200},
        {"when": "3/4/2025"},
        {},
    ],
)
@on_any_store
def test_a_date_that_is_not_understood_is_rejected(api, query):
    api.say("c", "x")
    assert api.refused("GET", f"{PATH}/dates", params=query)["status"] in (400, 422)


# -- topics -----------------------------------------------------------------------------------


@pytest.fixture
def topical(url):
    """A server that distinguishes subjects by their words."""
    with running(store=url, background=False, embedder="words") as server, Api(server.url) as api:
        for lines in (LISBON[:4], SOURDOUGH[:4]):
            for line in lines:
                api.say("c", line, "I see.")
        yield api


def test_topics_in_numbers_and_in_full(topical):
    topics = topical.get(f"{PATH}/topics")["data"]
    assert sum(topic["total_messages"] for topic in topics) == 16
    for topic in topics:
        number = topic["topic_id"]
        alone = topical.get(f"{PATH}/topics/{number}")
        assert (alone["title"], alone["tags"]) == (topic["title"], [])
        history = topical.all(f"{PATH}/topics/{number}/messages", limit=3)
        assert len(history) == topic["total_messages"]
        assert history[0]["seq"] == number
    assert topical.refused("GET", f"{PATH}/topics/1")["status"] == 404
    assert topical.refused("GET", f"{PATH}/topics/1/messages")["status"] == 404
    assert topical.refused("GET", "/conversations/no/topics")["status"] == 404


def test_a_text_is_matched_with_the_topics(topical):
    match = topical.post(f"{PATH}/topics/match", {"text": SOURDOUGH[5]})
    known = {topic["topic_id"] for topic in topical.get(f"{PATH}/topics")["data"]}
    assert match["topic"] in known
    assert 0 <= match["similarity"] <= 1
    nothing = topical.post(f"{PATH}/topics/match", {"text": "And then?"})
    assert nothing == {"topic": None, "raw": None, "similarity": None}


def test_topics_are_merged_tagged_and_voted_for(topical):
    first, second, *_ = topical.get(f"{PATH}/topics")["data"]
    into, gone = first["topic_id"], second["topic_id"]
    tagged = topical.patch(f"{PATH}/topics/{into}/tags", {"add": ["b", "a"]})
    assert sorted(tagged["tags"]) == ["a", "b"]
    assert topical.patch(f"{PATH}/topics/{into}/tags", {"remove": ["a"]})["tags"] == ["b"]
    disliked = topical.post(f"{PATH}/feedback", {"seq": into, "vote": -1})
    assert disliked["importance"] < first["importance"]
    liked = topical.post(f"{PATH}/feedback", {"seq": into, "vote": 1})
    assert liked["importance"] > disliked["importance"]
    merged = topical.post(f"{PATH}/topics/{into}/merge", {"topic": gone})
    assert merged["total_messages"] == first["total_messages"] + second["total_messages"]
    assert topical.refused("POST", f"{PATH}/topics/{into}/merge", {"topic": gone})["status"] == 400
    assert topical.refused("POST", f"{PATH}/topics/{into}/merge", {"topic": 99})["status"] == 404
    assert topical.refused("PATCH", f"{PATH}/topics/99/tags", {"add": ["x"]})["status"] == 404
    assert topical.refused("POST", f"{PATH}/feedback", {"seq": 9_999, "vote": 1})["status"] == 400
    assert topical.refused("POST", f"{PATH}/feedback", {"seq": 0, "vote": 2})["status"] == 422


def test_the_active_topic_is_a_separate_context(topical):
    active = topical.get(f"{PATH}/topics")["data"][0]
    context = topical.post(f"{PATH}/topics/context", {"budget": 4_000})
    assert context["strategy"] == "topics"
    assert len(context["seqs"]) == active["active_messages"]
    assert topical.post(f"{PATH}/topics/context")["tokens"] > 0


def test_a_misspelt_filter_is_rejected_and_not_left_out(talk):
    asked = {"query": "ferry", "unitl": "2026-01-01"}
    problem = talk.refused("GET", f"{PATH}/search", params=asked)
    assert problem["status"] == 422
    assert "query.unitl: unknown parameter; expected query, limit" in problem["detail"]
    more = talk.refused("GET", "/me", params={"verbose": 1})
    assert more["detail"].endswith("expected none")
