"""Search: instant, filtered, explained; a hit opens in its place."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from firnline.log.message import format_time
from support.page_site import is_shown

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)


def said(text, days, role="user"):
    when = format_time(NOW - timedelta(days=days))
    return {"message": {"role": role, "content": text}, "created_at": when}


@pytest.fixture
def talks(site, monkeypatch):
    monkeypatch.setattr("firnline.server.rest.search.utc_now", lambda: NOW)
    if len(site.api.get("/conversations")["data"]) == 1:
        fill(site.api)
    return site


def fill(api):
    """Two conversations next to the sample, one of them in a project."""
    api.put("/projects/garden", {"status": "active"})
    api.post(
        "/conversations/garden talk/messages",
        {
            "messages": [
                said("The beans need poles.", 40),
                said("Poles of two metres will carry the beans.", 40, "assistant"),
                said("The beans were eaten by snails.", 1),
            ]
        },
    )
    api.patch("/conversations/garden talk", {"project": "garden"})
    api.post(
        "/conversations/kitchen/messages",
        {"messages": [said("We cooked the beans for an hour.", 10), said("Salt?", 10)]},
    )


def words(page):
    return page.get_by_label("Words or a question")


def hits(page):
    return page.locator(".hit")


def settled(page):
    """What is shown is what the form asks for."""
    expect(page.locator(".search > [aria-busy]")).to_have_attribute("aria-busy", "false")


def found(page):
    """Conversation and number of each hit."""
    settled(page)
    links = page.locator("a.open").evaluate_all("all => all.map(a => a.hash)")
    return {tuple(re.fullmatch(r"#/c/(.+)\?seq=(\d+)", link).groups()) for link in links}


TYPE_ON = """addEventListener('hashchange', () => {
  const field = document.querySelector('.words');
  field.value += ' poles';
  field.dispatchEvent(new Event('input', { bubbles: true }));
}, { once: true })"""


@pytest.mark.looks
def test_letters_typed_while_the_hits_come_are_kept(talks, page):
    talks.open(page, "#/search")
    page.evaluate(TYPE_ON)  # as the page takes up the first word
    words(page).fill("beans")  # at once: a slow machine would pause between two keys
    page.wait_for_url(re.compile("q=beans(%20|\\+)poles"))
    assert ("garden%20talk", "0") in found(page)
    expect(words(page)).to_have_value("beans poles")
    page.evaluate("location.hash = '#/search?q=tomatoes'")
    expect(words(page)).to_have_value("tomatoes")
    page.go_back()
    expect(words(page)).to_have_value("beans poles")


@pytest.mark.own_page
def test_hits_come_while_one_types_with_their_words_marked(talks, page):
    page.clock.install()
    talks.open(page, "#/search")
    expect(words(page)).to_be_focused()
    expect(page.get_by_text("Find any message")).to_be_visible()
    asked = []
    page.on("request", lambda r: r.url.endswith("/search") and asked.append(r.post_data_json))
    page.clock.pause_at(page.evaluate("Date.now()") + 1_000)  # the machine may be slow
    for letter in "beans poles":
        words(page).press_sequentially(letter)
        page.clock.run_for(30)
    page.clock.resume()
    expect(hits(page).first).to_contain_text("beans")
    assert ("garden%20talk", "0") in found(page)
    assert len(asked) <= 3, "every letter is asked for"
    marks = hits(page).first.locator("mark").all_inner_texts()
    assert {mark.lower() for mark in marks} >= {"beans", "poles"}
    api = talks.api.post("/search", {"query": "beans poles", "limit": 30})["data"]
    assert hits(page).count() == len(api)


@pytest.mark.looks
def test_filters_hold_together_and_are_in_the_address(talks, page):
    talks.open(page, "#/search?q=beans")
    assert len(found(page)) == 4
    page.locator(".filters").get_by_label("Project").select_option("garden")
    assert found(page) == {("garden%20talk", str(n)) for n in range(3)}
    page.get_by_label("assistant").check()
    assert found(page) == {("garden%20talk", "1")}
    page.get_by_label("assistant").uncheck()
    page.get_by_label("When").fill("yesterday")
    assert found(page) == {("garden%20talk", "2")}
    expect(page.locator(".search [role=status]")).to_contain_text("1 hit, from")
    address = page.url
    page.get_by_label("When").fill("")
    page.get_by_label("To", exact=True).fill((NOW - timedelta(days=40)).strftime("%Y-%m-%d"))
    assert found(page) == {("garden%20talk", "0"), ("garden%20talk", "1")}
    page.get_by_label("From", exact=True).fill((NOW - timedelta(days=20)).strftime("%Y-%m-%d"))
    settled(page)
    expect(page.get_by_text("No match")).to_be_visible()
    page.goto("about:blank")
    page.goto(address)
    assert found(page) == {("garden%20talk", "2")}
    expect(page.get_by_label("When")).to_have_value("yesterday")
    expect(page.locator(".filters").get_by_label("Project")).to_have_value("garden")


@pytest.mark.looks
def test_one_conversation_is_searched_and_listed_by_date(talks, page):
    talks.open(page, "#/search?q=beans")
    page.get_by_role("combobox", name="Conversation", exact=True).fill("kitchen")
    assert found(page) == {("kitchen", "0")}
    words(page).fill("")
    page.get_by_label("When").fill("10 days ago")
    assert found(page) == {("kitchen", "0"), ("kitchen", "1")}
    page.get_by_role("combobox", name="Conversation", exact=True).fill("no such thing")
    expect(page.get_by_text("No such conversation")).to_be_visible()


@pytest.mark.looks
def test_messages_at_a_time_are_filtered_too(talks, page):
    garden = "#/search?c=garden talk"
    for filters, seqs in [
        ("since=2026-03-01", "2"),
        ("until=2026-03-01", "01"),
        ("since=2026-01-01&until=2026-03-11", "012"),
        ("since=2026-03-11&until=2026-03-01", ""),
        ("when=since 2026-01-01&until=2026-03-01", "01"),
        ("when=since 2026-01-01&role=assistant", "1"),
        ("when=since 2026-01-01&project=garden", "012"),
        ("when=since 2026-01-01&project=support", ""),
    ]:
        talks.open(page, f"{garden}&{filters}")
        assert found(page) == {("garden%20talk", seq) for seq in seqs}, filters
    talks.open(page, f"{garden}&when=since 2026-01-01")
    expect(page.locator(".search p[role=status]")).to_have_text("3 hits, from 1 Jan 2026, 00:00")


def test_a_day_with_more_messages_than_shown_says_so(talks, page):
    lines = [said(f"Line {n}.", 5, "assistant" if n % 20 == 0 else "user") for n in range(900)]
    talks.api.post("/conversations/long/messages", {"messages": lines})
    talks.open(page, "#/search?c=long&when=5 days ago")
    expect(page.locator(".search p[role=status]")).to_contain_text("30 hits, the first ones")
    talks.open(page, "#/search?c=long&when=5 days ago&role=assistant")
    assert found(page) == {("long", str(20 * n)) for n in range(30)}


@pytest.mark.looks
def test_an_invalid_time_is_an_error(talks, page, complaints):
    complaints.expected.append("400")
    talks.open(page, "#/search?q=beans&when=whenever")
    expect(page.get_by_role("alert")).to_contain_text("whenever")


@pytest.mark.looks
def test_scores_are_explained_part_by_part(talks, page):
    talks.open(page, "#/search?q=beans+poles")
    hit = talks.api.post("/search", {"query": "beans poles", "limit": 30})["data"][0]
    first = hits(page).first
    first.locator("summary").click()
    expect(first.locator("summary")).to_have_text(f"score {hit['score']:.2f}")
    parts = {name: value for name, value in hit["parts"].items() if abs(value) >= 0.005}
    expect(first.locator(".parts li")).to_have_count(len(parts))
    for told in first.locator(".hint").all():
        expect(told).not_to_be_empty()
    listed = first.locator(".parts b").all_inner_texts()
    assert sum(float(text.replace("\N{MINUS SIGN}", "-")) for text in listed) == pytest.approx(
        hit["score"], abs=0.03
    )


@pytest.mark.looks
def test_keys_go_through_the_hits_and_open_them_and_back_returns(talks, page):
    talks.open(page, "#/search")
    words(page).fill("beans")
    settled(page)
    words(page).press("ArrowDown")
    expect(page.locator("a.open").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator("a.open").nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(words(page)).to_be_focused()
    page.keyboard.press("ArrowDown")
    where = page.locator("a.open").first.get_attribute("href")
    page.keyboard.press("Enter")
    seq = int(where.split("seq=")[1])
    is_shown(page, seq)
    expect(page.locator(f'.chat [data-seq="{seq}"]')).to_have_class(re.compile("found"))
    page.go_back()
    expect(words(page)).to_have_value("beans")
    assert len(found(page)) == 4


@pytest.mark.looks
def test_a_hit_far_up_in_a_long_conversation_opens_in_place(talks, page):
    lines = [f"Line {n} of many." for n in range(900)]
    lines[300] = "The password of the shed is rosemary."
    talks.api.say("far", *lines)
    talks.open(page, "#/search?q=password+of+the+shed")
    hits(page).first.locator("a.open").click()
    is_shown(page, 300)
    expect(page.locator('.chat [data-seq="300"]')).to_contain_text("rosemary")


@pytest.mark.looks
def test_words_of_all_languages_are_marked(talks, page):
    text = "Das Straßenfest in 東京 war großartig, مرحبا!"
    talks.api.say("languages", text)
    talks.open(page, "#/search?q=Straßenfest+東京+مرحبا")
    settled(page)
    marks = hits(page).first.locator("mark").all_inner_texts()
    assert marks == ["Straßenfest", "東京", "مرحبا"]


@pytest.mark.thorough
@pytest.mark.looks
def test_the_search_looks_well(talks, page, shot, accessible):
    talks.open(page, "#/search?q=Which+order+never+arrived%3F")
    hits(page).first.locator("summary").click()
    accessible(page)
    shot(page, "search")
    talks.open(page, "#/search")
    settled(page)
    accessible(page)
    shot(page, "search-new")
    talks.open(page, "#/search?q=zzzz")
    expect(page.get_by_text("No match")).to_be_visible()
    settled(page)
    shot(page, "search-nothing")
