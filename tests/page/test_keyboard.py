"""With the keyboard only, and by touch on a narrow screen."""

import re

import pytest
from playwright.sync_api import expect

TABS = ["Glacier", "Turns", "Digests", "Important", "Topics", "Manage"]
SMALLEST = 28  # pixels that a finger needs at least


def test_all_of_a_conversation_is_reached_by_single_keys(site, page):
    site.open(page, site.path())
    for n, tab in enumerate(TABS, 1):
        page.keyboard.press(str(n))
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("g")
    expect(page.get_by_label("Go to a date or a number")).to_be_focused()
    page.keyboard.type("#0\n")
    expect(page.locator('.chat [data-seq="0"]')).to_be_in_viewport()
    page.locator(".scroller").focus()
    page.keyboard.press("m")
    expect(page.get_by_label("Your message")).to_be_focused()
    page.keyboard.type("jk 123")
    expect(page.get_by_label("Your message")).to_have_value("jk 123")
    expect(page.get_by_role("tab", name="Manage")).to_have_attribute("aria-selected", "true")


def test_keys_go_through_the_conversations(site, page):
    site.api.say("second", "Hello.")
    site.api.say("third", "Hello.")
    site.open(page)
    title = page.locator(".chat h1")
    for key, name in [
        ("j", "third"),
        ("j", "second"),
        ("j", site.conversation),
        ("j", site.conversation),
        ("k", "second"),
    ]:
        page.keyboard.press(key)
        expect(title).to_have_text(name)


def test_a_conversation_is_begun_and_answered_without_a_mouse(site, page):
    site.open(page)
    page.keyboard.press("n")
    expect(page.get_by_label("Your message")).to_be_focused()
    expect(page.get_by_role("tabpanel").locator("dt")).to_have_text(TABS)
    site.model.say("At nine.")
    page.keyboard.type("When do we land?\n")
    expect(page.locator('.chat [data-seq="1"]')).to_contain_text("At nine.")


def test_a_suggestion_is_typed_and_not_yet_sent(site, page):
    site.open(page, site.path(conversation="new"))
    start = page.locator(".starts button").first
    text = start.inner_text()
    start.click()
    expect(page.get_by_label("Your message")).to_have_value(text)
    assert site.api.get("/stats")["conversations"] == 1


def test_the_keys_are_listed(site, page, shot, accessible):
    site.open(page)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("a new conversation")
    page.keyboard.press("d")  # while it is open, keys are its own
    expect(keys).to_be_visible()
    accessible(page)
    shot(page, "keys")
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    page.get_by_role("button", name="Keys").click()
    keys.get_by_role("button", name="Done").click()
    expect(keys).to_have_count(0)


SMALL = """(least) =>
  [...document.querySelectorAll('button, select, summary, input, nav a, .side a')]
  .filter((e) => e.checkVisibility() && !/checkbox|range/.test(e.type))
  .map((e) => [e.getBoundingClientRect().height, e.outerHTML.slice(0, 120)])
  .filter(([height]) => height > 0 && height < least)"""


@pytest.mark.thorough
def test_a_finger_hits_what_it_is_meant_for(site, page, shot):
    site.api.put(f"{site.about}/pins/8")
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("#/search", "#/"):
        site.open(page, path)
        assert page.evaluate(SMALL, SMALLEST) == []
    page.get_by_role("button", name="Conversations").click()
    expect(page.locator(".side")).to_be_visible()
    assert page.evaluate(SMALL, SMALLEST) == []
    shot(page, "list")
    site.open(page, site.path())
    expect(page.locator('.chat [data-seq="42"]')).to_be_visible()
    assert page.evaluate(SMALL, SMALLEST) == []
    page.get_by_role("button", name="Memory").click()
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel")).not_to_contain_text("Loading")
        assert page.evaluate(SMALL, SMALLEST) == []
        tops = {one.bounding_box()["y"] for one in page.get_by_role("tab").all()}
        assert len(tops) == 1, "the names of the panels are in one line"


def test_a_branch_looks_well(site, page, shot, accessible):
    site.api.say("plans", "Where do we go?", "To the glacier.", "By train?", "By bus.")
    site.api.post("/conversations/plans/branch", {"name": "plans by train", "seq": 1})
    site.api.say("plans by train", "By train, then?", "At nine.")
    site.open(page, site.path(conversation="plans by train"))
    expect(page.get_by_label("Version").locator("option")).to_have_text(
        ["original", re.compile("branch 1")]
    )
    accessible(page)
    shot(page, "chat-branch")


def test_the_focus_stays_with_what_was_pressed(site, page):
    panel = site.panel(page, "digests")
    now = panel.get_by_role("button", name="Digest now")
    now.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_contain_text("Nothing is pending")
    expect(now).to_be_focused()
    again = panel.get_by_role("button", name="Rebuild")
    again.focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Rebuild them").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_contain_text("1 digest rebuilt")
    expect(again).to_be_focused()


def test_after_pressing_send_typing_continues(site, page):
    site.open(page, site.path())
    page.get_by_label("Your message").fill("When do we land?")
    site.model.say("At nine.")
    page.get_by_role("button", name="Send").focus()
    page.keyboard.press("Enter")
    expect(page.locator('.chat [data-seq="44"]')).to_contain_text("At nine.")
    expect(page.get_by_label("Your message")).to_be_focused()


def test_a_button_that_works_is_pressed_once(site, page):
    asked = []
    page.on("request", lambda request: asked.append(request.url.endswith("/verify")))
    panel = site.panel(page, "manage")
    panel.get_by_role("button", name="Verify everything").evaluate("e => { e.click(); e.click(); }")
    expect(panel).to_contain_text("Verified.")
    assert sum(asked) == 1
