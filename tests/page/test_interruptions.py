"""Interruptions: a server that dies, input methods, double clicks, leaving the page."""

import pytest
from playwright.sync_api import expect

from firnline.testing import ModelServer
from support.live_server import Forked, free_port
from support.page_site import Site
from support.rest_client import Api

SLOW = "It left Innsbruck this morning and should be with Ana on Friday. " * 6


def composer(page):
    return page.get_by_label("Your message")


def slowly(site):
    site.model.pause = 0.001
    site.model.say(SLOW)
    site.model.fail("trickle")


def asked(page):
    """A question whose answer has begun to come."""
    composer(page).fill("Where is it?")
    composer(page).press("Enter")
    expect(page.locator(".ending .assistant .text")).to_contain_text("It left Inns")


# -- the server dies --------------------------------------------------------------------------


class Mortal:
    """A separate server on one port, which dies and restarts."""

    def __init__(self, store, model):
        self._start = lambda: Forked(store, port, "--model", "gpt-4o-mini", **settings)
        port = free_port()
        settings = {"FIRNLINE_MODEL_URL": model.url, "FIRNLINE_MODEL_KEY": "sk-x"}
        self._process = self._start()
        self.url = self._process.url

    def kill(self):
        self._process.kill()

    def start(self):
        self._process = self._start()


@pytest.fixture
def mortal(tmp_path):
    with ModelServer(model="gpt-4o-mini") as model:
        server = Mortal(f"sqlite:///{tmp_path}/page.db", model)
        with Api(server.url) as api:
            api.say("talk", "Hello.", "Good morning.")
            yield Site(server, api, model, "talk")
        server.kill()


@pytest.mark.parametrize("reloads", [False, True])
def test_after_a_crash_a_message_is_sent_again_and_stored_once(mortal, browser, reloads):
    page = browser.new_page()
    mortal.open(page, mortal.path())
    slowly(mortal)
    asked(page)
    mortal.server.kill()
    alert = page.locator(".ending").get_by_role("alert")
    expect(alert).to_contain_text("The connection to the server broke. It is unknown")
    expect(composer(page)).to_have_value("Where is it?")
    mortal.server.start()
    if reloads:
        page.reload()
        expect(composer(page)).to_have_value("Where is it?")
    composer(page).press("Enter")
    answer = page.locator('.chat [data-seq="3"]')
    expect(answer).to_contain_text("It left Inns")  # what had come is kept
    expect(answer.get_by_text("interrupted", exact=True)).to_be_visible()
    expect(alert).to_have_count(0)
    stored = mortal.api.get("/conversations/talk/messages")["data"]
    page.close()
    texts = [one["message"]["content"] for one in stored]
    assert texts[:3] == ["Hello.", "Good morning.", "Where is it?"]
    assert len(texts) == 4


def test_errors_of_the_server_are_shown_in_full_sentences(site, page, complaints):
    complaints.expected.append("403")
    told = {"status": 403, "detail": "the API key lacks the scope write"}
    page.route("**/turns", lambda route: route.fulfill(status=403, json=told))
    site.open(page, site.path())
    composer(page).fill("Hello?")
    composer(page).press("Enter")
    alert = page.locator(".ending").get_by_role("alert")
    expect(alert).to_contain_text("The API key lacks the scope write. Your message was")


# -- the reader does something else -----------------------------------------------------------


@pytest.mark.thorough
def test_keys_of_an_input_method_neither_send_nor_stop(site, page):
    slowly(site)
    site.open(page, site.path())
    asked(page)
    stops = []
    page.on("request", lambda request: "/stop" in request.url and stops.append(request.url))
    composer(page).fill("にほん")
    for kind in ({"isComposing": True}, {"keyCode": 229}):
        for key in ("Enter", "Escape"):
            composer(page).dispatch_event("keydown", {"key": key, "bubbles": True, **kind})
    site.model.pause = 0
    expect(page.locator(".chat .message").last).to_contain_text(SLOW.strip())
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    composer(page).dispatch_event("keydown", {"key": "Enter", "keyCode": 229, "bubbles": True})
    expect(composer(page)).to_have_value("にほん")
    assert stops == []


def test_a_double_click_on_send_does_not_stop_the_answer(site, page):
    slowly(site)
    site.open(page, site.path())
    before = site.api.get(site.about)["entries"]
    composer(page).fill("Where is it?")
    page.get_by_role("button", name="Send").dblclick()
    expect(page.locator(".ending .assistant .text")).to_contain_text("It left Inns")
    site.model.pause = 0
    expect(page.locator(".chat .message").last).to_contain_text(SLOW.strip())
    assert "interrupted" not in site.api.get(f"{site.about}/messages/{before + 1}")["metadata"]


def test_pressing_again_twice_makes_one_branch(site, page):
    site.open(page, site.path())
    site.model.say("On Monday.")
    answer = page.locator(".chat .message.assistant").last
    answer.hover()
    answer.get_by_role("button", name="Again", exact=True).dblclick()
    expect(page.locator(".chat .message").last).to_contain_text("On Monday.")
    names = [one["conversation"] for one in site.api.all("/conversations")]
    assert len(names) == 2, names


def test_what_is_typed_is_kept_elsewhere_and_after_a_reload(site, page):
    site.api.say("other", "Hello.")
    site.open(page, site.path())
    composer(page).fill("Not yet finished")
    page.get_by_role("link", name="Search").click()
    expect(page.get_by_role("heading", name="Search")).to_be_visible()
    page.go_back()
    expect(composer(page)).to_have_value("Not yet finished")
    page.reload()
    expect(composer(page)).to_have_value("Not yet finished")
    site.open(page, site.path(conversation="other"))
    expect(composer(page)).to_have_value("")
    page.go_back()
    site.model.say("Now it is.")
    composer(page).press("Enter")
    expect(page.locator(".chat .message").last).to_contain_text("Now it is.")
    page.reload()
    expect(composer(page)).to_have_value("")
