"""The panels next to the chat: each can be opened, read and closed."""

from itertools import pairwise

import pytest
from playwright.sync_api import expect

from support.page_site import settle, unfold_panel

pytestmark = pytest.mark.looks
NARROW = {"width": 390, "height": 844}
TABS = ["turns", "digests", "important", "topics", "manage"]


@pytest.fixture(scope="module")
def lived_in(shared_site):
    """The sample with something in every panel."""
    site = shared_site
    for question in ("Which order never arrived?", "When should it reach Ana?"):
        site.model.say("Order 1138; on Friday.")
        site.api.post(f"{site.about}/turns", {"message": question, "budget": 1_000})
    changed = {"user_preferences": {"e-mail": "never"}}
    site.api.post(f"{site.about}/important", {"important_data": changed})
    site.api.put(f"{site.about}/pins/8")
    return site


@pytest.fixture(scope="module")
def empty(shared_site):
    """The name of a conversation that has just begun."""
    shared_site.api.say("empty", "Hello.")
    return "empty"


@pytest.mark.parametrize("tab", TABS)
def test_a_panel_is_accessible(lived_in, page, accessible, tab):
    panel = lived_in.panel(page, tab)
    expect(panel).not_to_contain_text("Loading")
    for summary in panel.locator("summary").all():
        summary.click()
    settle(page)
    accessible(page, ".panel")


@pytest.mark.thorough
@pytest.mark.parametrize("tab", ["", *TABS])
def test_a_panel_is_accessible_on_a_narrow_screen(lived_in, page, accessible, tab):
    page.set_viewport_size(NARROW)
    panel = lived_in.panel(page, tab)
    unfold_panel(page, NARROW["width"])
    expect(panel).to_be_visible()
    expect(panel).not_to_contain_text("Loading")
    for summary in panel.locator("summary").all():
        summary.click()
    settle(page)
    accessible(page, ".panel")


LEVELS = """() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
    .filter((heading) => heading.checkVisibility() && !heading.closest(".text, .said-text"))
    .map((heading) => Number(heading.tagName[1]))"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "path",
    ["#/", "#/search", "#/search?q=zzzz", "#/search?c=nowhere", "#/c/new", "#/c/new/digests"]
    + [f"#/c/empty/{tab}" for tab in ("", *TABS)],
)
@pytest.mark.usefixtures("empty")
def test_headings_leave_out_no_level(site, page, path):
    site.open(page, path)
    expect(page.locator("#main")).not_to_contain_text("Loading")
    levels = page.evaluate(LEVELS)
    assert levels[0] == 1
    assert all(level <= above + 1 for above, level in pairwise(levels)), levels


@pytest.mark.parametrize("tab", TABS)
def test_a_new_conversation_is_explained(site, page, empty, tab):
    site.open(page, site.path(tab, empty))
    panel = page.get_by_role("tabpanel")
    if tab in ("manage", "topics"):
        expect(panel).to_contain_text("Hello." if tab == "topics" else "Nothing is pinned")
    else:
        expect(panel.locator(".empty h3")).to_be_visible()
        expect(panel.locator(".empty p")).not_to_be_empty()


@pytest.mark.parametrize("tab", TABS)
def test_what_cannot_be_loaded_is_reported_and_tried_again(site, page, complaints, tab):
    paths = {"turns": "turns", "digests": "lineage", "important": "important", "manage": "pins"}
    complaints.expected.append("503")
    problem = {"status": 503, "detail": "The store is away.", "code": "x", "retryable": True}
    pattern = f"**/conversations/{site.conversation}/{paths.get(tab, tab)}*"
    page.route(pattern, lambda route: route.fulfill(status=503, json=problem))
    panel = site.panel(page, tab)
    expect(panel.get_by_role("alert").first).to_contain_text("The store is away.")
    page.unroute(pattern)
    panel.get_by_role("button", name="Try again").first.click()
    expect(panel.get_by_role("alert")).to_have_count(0)


def test_panels_are_reached_by_keys(site, page):
    site.open(page, site.path())
    page.get_by_role("tab", name="Glacier").focus()
    for tab in ("Turns", "Digests", "Important", "Topics", "Manage"):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name=tab)).to_be_focused()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    settle(page)


def test_a_name_that_is_pointed_at_does_not_look_chosen(site, page):
    site.open(page, site.path())
    border = "e => getComputedStyle(e).borderBottomColor"
    tab = page.get_by_role("tab", name="Digests")
    tab.hover()
    assert tab.evaluate(border) == "rgba(0, 0, 0, 0)"
    chosen = page.get_by_role("tab", name="Glacier")
    chosen.hover()
    assert chosen.evaluate(border) != "rgba(0, 0, 0, 0)"


def test_on_a_narrow_screen_a_panel_takes_its_place_and_gives_it_back(site, page):
    page.set_viewport_size(NARROW)
    site.open(page, site.path())
    panel = page.get_by_role("tabpanel")
    expect(panel).to_be_hidden()
    site.open(page, site.path("important"))  # a panel in the address is what was looked at
    unfold_panel(page, NARROW["width"])
    expect(panel.get_by_text("Decisions", exact=False).first).to_be_visible()
    panel.get_by_role("button", name="Show message 8 in the chat").first.click()
    expect(panel).to_be_hidden()
    expect(page.locator('.chat [data-seq="8"]')).to_be_in_viewport()


@pytest.mark.parametrize("width", [820, 1024, 1150])
def test_on_a_tablet_nothing_is_cut_off(site, page, width):
    """Chat and panel next to each other; the list of conversations opens over them."""
    page.set_viewport_size({"width": width, "height": 900})
    site.open(page, site.path())
    for box in (page.locator(".composer"), page.get_by_role("tabpanel")):
        assert box.bounding_box()["width"] > 350
    tabs = page.get_by_role("tablist")
    assert tabs.evaluate("e => e.scrollWidth - e.clientWidth") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    listed = page.get_by_role("region", name="Conversations")
    expect(listed).to_be_hidden()
    page.get_by_role("button", name="Conversations").click()
    listed.get_by_role("link").first.click()
    expect(listed).to_be_hidden()


def test_another_panel_begins_at_its_top(site, page):
    panel = site.panel(page, "digests")
    panel.evaluate("e => { e.scrollTop = 500; }")
    assert panel.evaluate("e => e.scrollTop") > 0
    page.get_by_role("tab", name="Manage").click()
    expect(panel).to_contain_text("Each message's hash covers the one before it")
    assert panel.evaluate("e => e.scrollTop") == 0


def test_no_panel_is_wider_than_a_narrow_screen(lived_in, page):
    page.set_viewport_size(NARROW)
    for tab in ("", *TABS):
        lived_in.open(page, "#/")
        lived_in.open(page, lived_in.path(tab))
        unfold_panel(page, NARROW["width"])
        panel = page.get_by_role("tabpanel")
        expect(panel).to_be_visible()
        assert panel.evaluate("e => e.scrollWidth - e.clientWidth") == 0, tab
