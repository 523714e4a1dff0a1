"""A server that requires a key: the page asks for it, keeps it in the tab, and never shows it."""

import time

import pytest
from playwright.sync_api import expect

from support.live_server import running
from support.page_site import Site, apart
from support.rest_client import Api


@pytest.fixture
def site(tmp_path, ports):
    """In place of the open one: every request needs a key."""
    store = f"sqlite:///{tmp_path}/page.db"
    with running(store=store, port=ports[0], background=False, auth="required") as server:
        keys = server.parts.keys
        _, token = apart(keys.create("ann", scopes=("read", "write", "admin")))
        with Api(server.url, token) as api:
            api.say("talk", "Hello.", "Good morning.")
            site = Site(server, api, None, "talk")
            site.token = token
            yield site


def enter(page, token):
    page.get_by_label("API key").fill(token)
    page.get_by_role("button", name="Open").click()


def test_nothing_is_shown_without_a_key(site, page, complaints, shot, accessible):
    complaints.expected.append("401")
    site.open(page, site.path())
    expect(page.get_by_label("API key")).to_be_visible()
    expect(page.get_by_text("Hello.")).to_have_count(0)
    accessible(page)
    shot(page, "gate")
    enter(page, "fl_wrong")
    expect(page.get_by_label("API key")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("key")
    enter(page, site.token)
    expect(page.locator('.chat [data-seq="1"]')).to_contain_text("Good morning.")


def test_a_key_is_judged_once_the_server_has_answered(site, page, complaints):
    complaints.expected.append("401")
    site.open(page)
    held = []
    page.route("**/api/v1/me", lambda route: held.append(route))  # noqa: PLW0108 - no method will do
    enter(page, "fl_wrong")
    expect(page.get_by_role("button", name="Opening")).to_be_visible()
    deadline = time.monotonic() + 20
    while not held and time.monotonic() < deadline:
        page.wait_for_timeout(5)
    expect(page.get_by_role("alert")).to_have_count(0)
    held.pop().continue_()
    expect(page.get_by_role("alert")).to_contain_text("The key was rejected")
    expect(page.get_by_label("API key")).to_have_value("fl_wrong")  # to be corrected


def test_the_key_stays_in_this_tab(site, page, complaints):
    complaints.expected.append("401")
    site.open(page)
    enter(page, site.token)
    expect(page.locator(".conversations")).to_contain_text("talk")
    page.reload()
    expect(page.locator(".conversations")).to_contain_text("talk")
    assert page.evaluate("JSON.stringify(localStorage)").find(site.token) == -1
    assert site.token not in page.content()
    assert page.context.cookies() == []
    other = page.context.new_page()
    other.goto(site.url)
    expect(other.get_by_label("API key")).to_be_visible()


def test_everything_works_with_the_key(site, page, complaints):
    complaints.expected.append("401")
    site.open(page, site.path())
    enter(page, site.token)
    page.get_by_label("Your message").fill("Who is there?")
    page.get_by_label("Your message").press("Enter")
    expect(page.locator('.chat [data-seq="3"]')).to_contain_text("There is no language model here")
    page.get_by_role("link", name="Dashboard").click()
    expect(page.locator(".health-card")).to_contain_text("tenant ann")
    page.get_by_role("link", name="Search").click()
    page.get_by_label("Words or a question").fill("hello")
    expect(page.locator(".hit").first).to_contain_text("Hello.")


def test_a_newcomer_with_a_key_is_shown_lines_with_a_key(site, page, complaints):
    complaints.expected.append("401")
    site.api.delete(site.about)
    site.open(page)
    enter(page, site.token)
    begin = page.get_by_role("region", name="How to begin")
    expect(begin).to_contain_text("Authorization: Bearer YOUR_KEY")
    assert site.token not in page.content()


def test_a_revoked_key_leads_to_the_form(site, page, complaints):
    complaints.expected.append("401")
    site.open(page)
    enter(page, site.token)
    expect(page.locator(".conversations")).to_contain_text("talk")
    apart(site.server.parts.keys.revoke(site.token.split("_")[1]))
    page.reload()
    expect(page.get_by_label("API key")).to_be_visible()
