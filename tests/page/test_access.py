"""A key can be shown, changed and removed; what it may not do is not offered."""

import pytest
from playwright.sync_api import expect

from support.live_server import running
from support.page_site import Site, apart, settle
from support.rest_client import Api

TABS = ["", "digests", "important", "topics", "manage"]


@pytest.fixture
def site(tmp_path, ports):
    """Every request needs a key, and there are three."""
    store = f"sqlite:///{tmp_path}/page.db"
    with running(store=store, port=ports[0], background=False, auth="required") as server:
        every = ("read", "write", "admin")
        found = {n: apart(server.parts.keys.create("ann", scopes=every[:n]))[1] for n in (1, 2, 3)}
        with Api(server.url, found[3]) as api:
            api.say("talk", "I prefer tea.", "Noted.", "When do we land?", "At nine.")
            api.put("/conversations/talk/pins/0")
            api.put("/projects/travel", {"status": "active"})
            data = {"important_data": {"user_preferences": {"drink": "tea"}}}
            api.post("/conversations/talk/important", data)
            site = Site(server, api, None, "talk")
            site.reader, site.writer, site.owner = found[1], found[2], found[3]
            yield site


@pytest.fixture(autouse=True)
def expected(complaints):
    """The first request of a tab has no key yet."""
    complaints.expected.append("401")


def enter(site, page, token, path="#/"):
    site.open(page, path)
    page.get_by_label("API key").fill(token)
    page.get_by_role("button", name="Open").click()
    expect(page.locator(".conversations")).to_contain_text("talk")
    page.wait_for_load_state("networkidle")


def enabled(page, names):
    buttons = page.locator("main button:enabled").all_inner_texts()
    return [name for name in buttons if name.strip(" …") in names]


def test_a_key_is_changed_for_another(site, page, accessible, shot):
    enter(site, page, site.reader, site.path())
    page.get_by_role("button", name="Key: read only").click()
    dialog = page.get_by_role("dialog", name="API key")
    expect(dialog).to_contain_text("of tenant ann may read.")
    accessible(page)
    shot(page, "key")
    dialog.get_by_label("Another key").fill(site.owner)
    dialog.get_by_role("button", name="Use this one").click()
    expect(page.get_by_role("button", name="Key", exact=True)).to_be_visible()
    expect(page.get_by_label("Your message")).to_be_visible()
    assert site.owner not in page.content()


def test_a_key_is_forgotten_and_what_was_typed_with_it(site, page):
    enter(site, page, site.owner, site.path())
    page.get_by_label("Your message").fill("A secret that is not sent yet.")
    page.get_by_role("button", name="Key", exact=True).click()
    page.get_by_role("button", name="Forget the key").click()
    expect(page.get_by_label("API key")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0
    page.reload()
    expect(page.get_by_label("API key")).to_be_visible()


def test_a_read_only_key_is_not_offered_to_write(site, page, accessible, shot):
    enter(site, page, site.reader, site.path())
    expect(page.locator('.chat [data-seq="3"]')).to_contain_text("At nine.")
    expect(page.get_by_label("Your message")).to_have_count(0)
    expect(page.locator(".composer")).to_contain_text("it is read-only")
    first = page.locator('.chat [data-seq="0"]')
    expect(first.get_by_role("button")).to_have_text(["Copy"])
    new = page.get_by_role("button", name="New conversation")
    expect(new).to_be_disabled()
    expect(new).to_have_attribute("title", "Your key cannot change anything: it is read-only.")
    page.keyboard.press("n")
    expect(page.locator(".chat h1")).to_have_text("talk")
    accessible(page)
    shot(page, "read-only")


CHANGES = """Digest now;Rebuild;Undo newest;Clear;Undo this digest;Edit;Pin;Unpin;Retract;Undo it;
Restore;Remember it;Useful;Not useful;Merge;Save;Save the parameters;Pin it;Archive the rest;
Restore all;Branch;Import it;Erase this conversation;New project;Start a conversation"""


def test_panels_are_read_only_for_a_read_only_key(site, page):
    names = CHANGES.replace("\n", "").split(";")
    enter(site, page, site.owner, site.path())
    for tab in ("important", "topics"):
        site.panel(page, tab)
        assert enabled(page, names), f"{tab}: with all rights there is something to do"
    page.evaluate("token => sessionStorage.setItem('firnline.key', token)", site.reader)
    page.reload()
    for tab in TABS:
        panel = site.panel(page, tab)
        expect(panel).to_contain_text("Your key is read-only.")
        for summary in panel.locator("summary").all():
            summary.click()
        settle(page)
        assert enabled(page, names) == [], tab


def test_the_dashboard_is_read_only_for_a_read_only_key(site, page, accessible, shot):
    enter(site, page, site.reader)
    expect(page.locator(".board")).to_contain_text("Your key is read-only.")
    expect(page.get_by_label("Move talk to a project")).to_have_count(0)
    for name in ("New project", "Edit project travel"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    expect(page.locator(".more")).to_have_count(0)
    accessible(page)
    shot(page, "read-only-dashboard")
    page.get_by_role("button", name="Export and import").click()
    expect(page.get_by_role("button", name="Import it")).to_be_disabled()
    expect(page.get_by_role("button", name="Export everything")).to_be_enabled()
    accessible(page, "dialog")


def test_a_key_that_may_not_erase_gets_an_explanation(site, page):
    enter(site, page, site.writer, site.path("manage"))
    box = page.get_by_role("region", name="Erase", exact=True)
    expect(box).to_contain_text("Your key cannot erase: that requires the scope admin.")
    expect(box.get_by_role("button")).to_be_disabled()
    expect(page.get_by_role("button", name="Archive the rest")).to_be_enabled()
    expect(page.get_by_label("Your message")).to_be_visible()
