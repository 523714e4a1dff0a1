"""People on the page: their facts with quotes and history, corrected and reverted."""

import pytest
from playwright.sync_api import expect

GRAZ, SALZBURG = "I live in Graz.", "I moved to Salzburg last week."


@pytest.fixture
def known(site):
    """Ana, whose home city changed, and Leo."""
    for name, person, text in (("a", "Ana", GRAZ), ("b", "Ana", SALZBURG), ("c", "Leo", GRAZ)):
        message = {"message": {"role": "user", "content": text}}
        site.api.post(f"/conversations/{name}/messages", {"messages": [message], "person": person})
    return site


def city(page):
    return page.get_by_role("region", name="home city")


def test_facts_are_shown_with_their_words_and_what_they_replaced(known, page, shot, accessible):
    known.open(page, "#/people")
    people = page.get_by_role("navigation", name="All people")
    expect(people.get_by_role("link")).to_contain_text(["Ana", "Leo"])
    now = city(page).locator(".fact").first
    expect(now).to_contain_text("Salzburg")
    expect(now).to_contain_text(SALZBURG)
    expect(city(page).locator("del")).to_have_text("Graz")
    expect(city(page)).to_contain_text("replaced")
    accessible(page)
    shot(page, "people")
    now.get_by_role("link", name="#0 in").click()
    expect(page.locator(".chat")).to_contain_text(SALZBURG)
    known.open(page, "#/people/Leo")
    expect(page.get_by_role("article", name="Person Leo")).to_contain_text("1 fact holds now")


def test_a_fact_is_corrected_by_what_is_said_and_reverted(known, page):
    known.open(page, "#/people/Ana")
    city(page).get_by_role("button", name="Correct home city: Salzburg").click()
    dialog = page.get_by_role("dialog", name="Correct: home city")
    expect(dialog.get_by_label("The sentence")).to_have_value(SALZBURG)
    dialog.get_by_label("The sentence").fill("I moved to Linz last week.")
    dialog.get_by_role("button", name="Say it").click()
    expect(city(page).locator(".fact .value").first).to_have_text("Linz")
    assert known.api.get("/conversations/b")["entries"] == 2, "the log has grown"
    city(page).get_by_role("button", name="Revert home city: Linz").click()
    page.get_by_role("dialog").get_by_role("button", name="Revert").click()
    expect(city(page).locator(".fact .value").first).to_have_text("Salzburg")
    expect(city(page)).to_contain_text("reverted")
    facts = known.api.get("/people/Ana")["facts"]
    assert [fact["value"] for fact in facts] == ["Salzburg"]
