"""Clients that name their conversation and send their history: nothing is stored twice."""

from contextlib import ExitStack

import httpx2
import pytest

from support.response_site import MODEL, Site

SESSION = {"session-id": "01a1f44c-session"}


@pytest.fixture
def site():
    with ExitStack() as stack:
        yield Site(stack, "chat")


def post(site, *messages, **headers):
    """The status of a request with this history; texts are the user's."""
    sent = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    url = f"{site.server.url}/v1/chat/completions"
    headers = {**SESSION, **headers}
    return httpx2.post(url, json={"model": MODEL, "messages": sent}, headers=headers, timeout=60)


def texts(site):
    (name,) = site.heads()
    assert name == SESSION["session-id"]
    return [message.text for message in site.log(name)]


def test_questions_that_failed_are_stored_once_when_more_follow(site):
    site.model.fail("500", repeat=True)
    for count in (1, 2, 3):
        assert post(site, *[f"q{n}" for n in range(count)]).status_code == 500
    site.model.heal()
    assert post(site, "q0", "q1", "q2", "q3").status_code == 200
    assert texts(site) == ["q0", "q1", "q2", "q3", "You said: q3"]
    assert [m["content"] for m in site.model.requests[-1]["messages"]] == ["q0", "q1", "q2", "q3"]


def test_questions_that_failed_in_the_middle_of_a_conversation_are_stored_once(site):
    post(site, "a")
    site.model.fail("500", repeat=True)
    assert post(site, "b").status_code == 500
    site.model.heal()
    assert post(site, "b", "c").status_code == 200
    assert texts(site) == ["a", "You said: a", "b", "c", "You said: c"]


def test_the_same_question_after_an_answer_is_a_new_one(site):
    for _ in range(2):
        post(site, "hi")
    post(site, "hi", "and?")
    answer = "You said: hi"
    assert texts(site) == ["hi", answer, "hi", answer, "hi", "and?", "You said: and?"]
