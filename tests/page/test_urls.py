"""URLs: wrong ones, new ones, and conversations that others create or erase."""

import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from support.page_site import come_back, is_shown


def composer(page):
    return page.get_by_label("Your message")


def message(page, seq):
    return page.locator(f'.chat [data-seq="{seq}"]')


@pytest.mark.looks
def test_a_badly_encoded_url_is_used_as_it_is(site, page):
    site.open(page, "#/c/100%")
    expect(page.locator(".chat h1")).to_have_text("100%")
    site.open(page, "#/%E0%A4%A")
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()


@pytest.mark.looks
def test_an_address_without_a_name_is_the_dashboard(site, page):
    for path in ("#/c/", "#/c"):
        site.open(page, path)
        expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()


@pytest.mark.looks
def test_another_view_begins_at_its_top(site, page):
    site.api.say("long", *(f"Parcel {n} is on its way." for n in range(40)))
    site.open(page, "#/search?q=parcel")
    expect(page.locator(".hit").nth(20)).to_be_visible()
    main = page.locator("#main")
    main.evaluate("e => { e.scrollTop = 1500; }")
    page.get_by_role("link", name="Dashboard").click()
    expect(page.get_by_role("region", name="Health")).to_contain_text("Answers by")
    assert main.evaluate("e => e.scrollTop") == 0


def test_skipping_to_the_content_stays_where_one_is(site, page):
    site.open(page, site.path("digests"))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    expect(page.locator(".chat h1")).to_have_text(site.conversation)
    assert page.url.endswith(site.path("digests"))


@pytest.mark.own_page
def test_a_second_conversation_within_a_minute_is_another_one(site, page):
    site.open(page)
    page.clock.set_fixed_time(datetime(2026, 3, 2, 9, 30, 1, tzinfo=UTC))
    page.keyboard.press("n")
    site.model.say("Good morning.")
    composer(page).fill("Hello.")
    composer(page).press("Enter")
    expect(message(page, 1)).to_contain_text("Good morning.")
    first = page.locator(".chat h1").inner_text()
    page.clock.set_fixed_time(datetime(2026, 3, 2, 9, 30, 40, tzinfo=UTC))
    page.get_by_label("New conversation").click()
    expect(page.get_by_text("No messages yet")).to_be_visible()
    assert page.locator(".chat h1").inner_text() != first


def test_a_new_conversation_is_named_by_the_readers_own_clock(site, browser):
    context = browser.new_context(timezone_id="Asia/Tokyo")
    page = context.new_page()
    site.open(page)
    hour = page.evaluate("new Date().getHours()")
    page.keyboard.press("n")
    name = page.locator(".chat h1").inner_text()
    context.close()
    told = re.fullmatch(r"Chat \d{4}-\d\d-\d\d (\d\d)\.\d\d\.\d\d", name)
    assert told
    assert (int(told[1]) - hour) % 24 in (0, 1)  # the hour may turn in between


def test_a_conversation_that_others_began_is_opened_from_the_search(site, page):
    site.open(page, "#/search")
    expect(page.locator(".conversations")).to_contain_text(site.conversation)
    site.api.say("elsewhere", "We sail to Zanzibar.", "In March, then.")
    page.get_by_label("Words or a question").fill("Zanzibar")
    page.locator("a.open").first.click()
    is_shown(page, 0)
    expect(message(page, 0)).to_contain_text("We sail to Zanzibar.")
    expect(page.locator(".conversations")).to_contain_text("elsewhere")
    expect(page.get_by_role("tabpanel")).to_contain_text("What a model would see now")


def open_and_erase(site, page, complaints):
    """A conversation on screen that another client erases."""
    complaints.expected.append("404")
    site.api.say("secret", *(f"Secret {n}." for n in range(30)))
    site.open(page, site.path(conversation="secret"))
    is_shown(page, 29)
    site.api.delete("/conversations/secret")


def test_a_conversation_that_others_erase_is_no_longer_shown(site, page, complaints):
    open_and_erase(site, page, complaints)
    come_back(page)
    expect(page.locator(".said")).to_contain_text("was erased")
    expect(page.get_by_text("No messages yet")).to_be_visible()
    expect(page.locator(".chat").get_by_text("Secret 29.")).to_have_count(0)
    expect(page.locator(".conversations")).not_to_contain_text("secret")


def test_a_message_after_an_erasure_starts_over(site, page, complaints):
    open_and_erase(site, page, complaints)
    site.model.say("Who is there?")
    composer(page).fill("Hello?")
    composer(page).press("Enter")
    expect(message(page, 1)).to_contain_text("Who is there?")
    expect(page.locator(".chat .block .message")).to_have_count(2)


@pytest.mark.looks
def test_an_empty_conversation_that_others_begin_is_shown(site, page):
    site.open(page, site.path(conversation="later"))
    expect(page.get_by_text("No messages yet")).to_be_visible()
    site.api.say("later", "Somebody else was faster.", "So it seems.")
    come_back(page)
    expect(message(page, 1)).to_contain_text("So it seems.")
    expect(page.get_by_role("tabpanel")).to_contain_text("What a model would see now")


EVER_SAID = """() => {
  window.everSaid = [];
  const look = () => window.everSaid.push(document.querySelector('.said')?.innerText ?? '');
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""  # noqa: E501


@pytest.mark.looks
def test_an_entry_of_a_conversation_that_others_just_began_is_shown(site, page):
    site.open(page, "#/search")
    site.api.say("just begun", "One.", "Two.")
    page.evaluate(EVER_SAID)
    site.open(page, f"{site.path(conversation='just begun')}?seq=1")
    is_shown(page, 1)
    expect(page.locator(".conversations")).to_contain_text("just begun")
    assert not any("no message" in told for told in page.evaluate("window.everSaid"))


def test_a_missing_entry_is_reported(site, page, complaints):
    complaints.expected.append("404")  # the request for that conversation fails
    site.api.say("short", "One.", "Two.")
    for asked in ("2", "99999", "-1", "abc"):
        site.open(page, "#/")
        site.open(page, f"{site.path(conversation='short')}?seq={asked}")
        told = f"There is no message #{asked} here: the newest is #1."
        expect(page.locator(".said")).to_have_text(told)
        is_shown(page, 1)
    site.open(page, f"{site.path(conversation='never')}?seq=3")
    expect(page.locator(".said")).to_contain_text("there are no messages yet")
    site.open(page, f"{site.path(conversation='short')}?seq=1")
    is_shown(page, 1)
    expect(page.locator(".said")).to_be_empty()
