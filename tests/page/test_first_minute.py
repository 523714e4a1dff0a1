"""The first minute of a newcomer: what `make run` shows, offline, without a model."""

import re

import pytest
from playwright.sync_api import expect

from firnline.server.sample import add_samples
from firnline.testing import ModelServer
from support.live_server import running
from support.page_site import Site, settle
from support.rest_client import Api


@pytest.fixture
def site(request):
    """A server as `make run` starts it; or one with an endpoint that answers."""
    with ModelServer(model="gpt-4o-mini") as model:
        endpoint = (
            {"upstream": model.url, "upstream_key": "sk"} if hasattr(request, "param") else {}
        )
        with (
            running(store="memory:", embedder="none", **endpoint) as server,
            Api(server.url) as api,
        ):
            server.run(add_samples(server.memory()))
            yield Site(server, api, model)


def ask(page, question):
    settle(page)
    page.get_by_label("Your message").fill(question)
    page.keyboard.press("Enter")
    answers = page.locator(".block .message.assistant")
    expect(answers.last).to_contain_text("no language model here", timeout=20_000)
    settle(page)
    return answers.last.locator("li").first


def test_the_first_minute(site, page, shot, accessible):
    site.open(page, site.path())
    listed = page.get_by_role("region", name="Conversations")
    expect(listed.locator(".title")).to_have_text(
        [
            "Ana's rope and a loose headlamp",
            "The survey app for the bridge inspectors",
            "Lisbon, and a knee",
        ]
    )
    expect(page.locator(".answers")).to_contain_text("No model is set")
    memory = page.get_by_role("tabpanel")
    expect(memory.locator(".glacier .ice")).not_to_have_count(0)  # a digest
    expect(memory).to_contain_text(re.compile(r"tokens are sent, \d\d %"))  # a saving
    assert page.get_by_role("alert").count() == 0
    accessible(page)
    shot(page, "first-minute")
    # The obvious question of each gets the right passage first.
    expect(ask(page, "What is the state of my warranty claim?")).to_contain_text(
        "Claim 77 is ready"
    )
    listed.get_by_role("link", name="Lisbon").click()
    expect(ask(page, "In which city do I live now?")).to_contain_text("Vienna")
    listed.get_by_role("link", name="survey app").click()
    expect(ask(page, "Who is the duty officer?")).to_contain_text("Selin Aydin")
    # Recalled messages, and what it would have been.
    page.get_by_role("tab", name="Turns").click()
    expect(memory.locator(".picker li").first).to_contain_text(re.compile(r"\d+ of [\d,]+ tokens"))
    expect(memory.get_by_label("Facts in this prompt")).to_contain_text("launch · date: 26 May")
    # A fact that was replaced, with its history.
    page.get_by_role("link", name="All that Mara has stated").click()
    launch = page.get_by_role("region", name="launch · date")
    expect(launch.locator(".value")).to_have_text("26 May")
    expect(launch.locator("del")).to_have_text("12 May")
    # A topic that came back, and one that faded.
    site.open(page, site.path("topics"))
    expect(memory).to_contain_text("headlamp")
    # What it saved.
    page.get_by_role("link", name="Dashboard").click()
    cost = page.get_by_role("region", name="Cost")
    expect(cost.locator(".tally .good")).to_contain_text("saved")
    expect(cost.locator(".tally .good")).to_contain_text("% less")


@pytest.mark.parametrize("site", ["with an endpoint"], indirect=True)
def test_with_an_endpoint_the_page_chats_with_its_models(site, page):
    site.open(page, site.path())
    answers = page.locator(".answers")
    expect(answers.get_by_role("combobox")).to_have_value("gpt-4o-mini")
    expect(answers).not_to_contain_text("No model")
    site.model.say("I am a model.")
    page.get_by_label("Your message").fill("Who are you?")
    page.keyboard.press("Enter")
    expect(page.locator(".chat")).to_contain_text("I am a model.")
    assert site.api.all(f"{site.about}/turns")[0]["model"] == "gpt-4o-mini"
    site.open(page)
    expect(page.get_by_role("region", name="Health")).to_contain_text("models behind /v1")
