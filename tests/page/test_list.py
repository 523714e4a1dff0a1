"""The list of conversations: branches below their origin, filters, and the menu of each."""

from playwright.sync_api import expect


def listed(page):
    return page.get_by_role("region", name="Conversations", exact=True)


def test_branches_are_below_what_they_came_from(site, page):
    api = site.api
    api.say("later", "I am the newest.")
    api.post(f"{site.about}/branch", {"name": "chat--1234abcd", "seq": 5})
    api.post("/conversations/chat--1234abcd/branch", {"name": "chat--1234abce", "seq": 2})
    api.say("chat--1234abce", "The newest of all, in a branch of a branch.")
    knot = {"metadata": {"branch": {"of": "knot", "at": 0}}}
    api.say("knot", "A branch of itself.")
    api.patch("/conversations/knot", knot)
    site.open(page)
    rows = listed(page).get_by_role("listitem")
    expect(rows).to_have_count(5)
    names = [row.get_by_role("link").get_attribute("title") for row in rows.all()]
    family = [site.conversation, "chat--1234abcd", "chat--1234abce"]
    at = names.index(site.conversation)
    assert names[at : at + 3] == family, "by the newest message of the family"
    assert names.index("later") > at
    expect(rows.nth(at + 1)).to_contain_text("after #5")
    expect(rows.nth(at + 2)).to_contain_text("after #2")
    assert "--1234" not in listed(page).inner_text(), "nothing is named by a hash"


def test_it_is_filtered_renamed_and_erased_from_its_menu(site, page, shot, accessible):
    api = site.api
    api.say("ana", "I live in Graz.")
    api.patch("/conversations/ana", {"project": "travel", "person": "Ana"})
    api.say("other", "Hello.")
    site.open(page, site.path(conversation="other"))
    people = listed(page).get_by_label("Only conversations of a person")
    people.select_option("Ana")
    expect(listed(page).get_by_role("listitem")).to_have_count(1)
    people.select_option("All people")
    listed(page).get_by_label("Only conversations of a project").select_option("support")
    expect(listed(page).get_by_role("link")).to_have_attribute("title", site.conversation)
    listed(page).get_by_label("Only conversations of a project").select_option("All projects")
    listed(page).get_by_label("Actions for other").press("Enter")
    accessible(page)
    shot(page, "list-menu")
    listed(page).get_by_role("button", name="Rename").click()
    page.get_by_role("dialog").get_by_label("Title").fill("A better title")
    page.get_by_role("dialog").get_by_label("Title").press("Enter")
    expect(page.locator(".chat h1")).to_have_text("A better title")
    assert api.get("/conversations/other")["metadata"] == {"title": "A better title"}
    listed(page).get_by_label("Actions for A better title").click()
    listed(page).get_by_role("button", name="Erase").click()
    dialog = page.get_by_role("dialog", name="Erase it permanently?")
    dialog.get_by_role("textbox").fill("other")
    dialog.get_by_role("button", name="Erase it").click()
    certificate = page.get_by_role("dialog", name="Certificate of erasure")
    expect(certificate).to_contain_text("Copies survive innone")
    assert api.refused("GET", "/conversations/other")["status"] == 404
