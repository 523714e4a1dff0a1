"""The chat: messages, answers, branches, jumps, pins, keys."""

import json
import re
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from playwright.sync_api import expect

from firnline.log.message import format_time
from support.page_site import come_back, is_shown, unfold_panel

SLOW = "It left Innsbruck this morning and should be with Ana on Friday. " * 6


def composer(page):
    return page.get_by_label("Your message")


def say(page, text):
    composer(page).fill(text)
    composer(page).press("Enter")


def message(page, seq):
    return page.locator(f'.chat [data-seq="{seq}"]')


def press(page, seq, name):
    message(page, seq).hover()
    message(page, seq).get_by_role("button", name=name, exact=True).click()


def slowly(site):
    """The model's next answer trickles in; returns what the answer is."""
    site.model.pause = 0.001
    site.model.say(SLOW)
    site.model.fail("trickle")


# -- sending a message ------------------------------------------------------------------------


@pytest.mark.requirement("X1")
def test_a_question_and_its_answer_are_shown_and_stored(site, page):
    before = site.api.get(site.about)["entries"]
    site.open(page, site.path())
    site.model.say("On **Friday**, says the carrier.")
    say(page, "When does it arrive?")
    answer = message(page, before + 1)
    expect(answer).to_contain_text("On Friday, says the carrier.")
    expect(answer.locator("strong")).to_have_text("Friday")
    expect(message(page, before)).to_contain_text("When does it arrive?")
    expect(page.locator(".ending .message")).to_have_count(0)
    expect(composer(page)).to_have_value("")
    is_shown(page, before + 1)
    stored = site.api.get(f"{site.about}/messages", first_seq=before)["data"]
    assert [one["message"]["content"] for one in stored] == [
        "When does it arrive?",
        "On **Friday**, says the carrier.",
    ]
    expect(page.locator(".conversations a").first).to_contain_text(f"{before + 2} messages")


@pytest.mark.looks
def test_a_sent_message_is_scrolled_into_view(site, page):
    site.api.say("long", *(f"Line {n}." for n in range(400)))
    site.open(page, f"{site.path(conversation='long')}?seq=7")
    is_shown(page, 7)
    site.model.say("Here I am.")
    say(page, "Where are you?")
    is_shown(page, 401)
    expect(message(page, 401)).to_contain_text("Here I am.")


def test_the_first_words_begin_a_conversation(site, page):
    site.open(page)
    page.keyboard.press("n")
    expect(page.get_by_text("No messages yet")).to_be_visible()
    expect(page.get_by_role("tabpanel")).to_contain_text("Write a message")
    site.model.say("Noted.")
    say(page, "We land in Lisbon on 3 March.")
    expect(message(page, 1)).to_contain_text("Noted.")
    expect(page.get_by_role("tabpanel")).to_contain_text("What a model would see now")
    heading = page.locator(".chat h1")
    expect(heading).to_have_text("We land in Lisbon on 3 March.")  # not by the time it began
    name = heading.get_attribute("title")
    assert site.api.get(f"/conversations/{name}")["entries"] == 2


def test_an_answer_is_seen_while_it_comes(site, page):
    slowly(site)
    site.open(page, site.path())
    say(page, "Where is it?")
    coming = page.locator(".ending .assistant")
    expect(coming).to_have_attribute("aria-busy", "true")
    expect(coming.locator(".text")).to_contain_text("It left Inns")
    assert len(coming.locator(".text").inner_text()) < len(SLOW)
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_have_count(0)
    bottom = "e => e.scrollHeight - e.scrollTop - e.clientHeight"
    assert page.locator(".scroller").evaluate(bottom) < 60
    site.model.pause = 0
    expect(page.locator(".chat .message").last).to_contain_text(SLOW.strip())
    expect(coming).to_have_count(0)


@pytest.mark.parametrize("by", ["button", "key"])
def test_a_stopped_answer_is_kept_as_far_as_it_came(site, page, by):
    before = site.api.get(site.about)["entries"]
    slowly(site)
    site.open(page, site.path())
    say(page, "Where is it?")
    expect(page.locator(".ending .assistant .text")).to_contain_text("It left Inns")
    if by == "button":
        page.get_by_role("button", name="Stop").click()
    else:
        composer(page).press("Escape")
    answer = message(page, before + 1)
    expect(answer).to_contain_text("It left Inns")
    expect(answer.get_by_text("interrupted", exact=True)).to_be_visible()
    expect(page.locator(".ending .message")).to_have_count(0)
    stored = site.api.get(f"{site.about}/messages/{before + 1}")
    assert stored["metadata"]["interrupted"] == "stopped by the reader"
    assert SLOW.startswith(stored["message"]["content"].strip())
    assert len(stored["message"]["content"]) < len(SLOW)
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    say(page, "And now?")
    expect(message(page, before + 2)).to_contain_text("And now?")


def test_an_answer_is_complete_after_leaving_and_returning(site, page):
    before = site.api.get(site.about)["entries"]
    slowly(site)
    site.open(page, site.path())
    say(page, "Where is it?")
    expect(page.locator(".ending .assistant .text")).to_contain_text("It left Inns")
    page.keyboard.press("Tab")
    page.get_by_role("link", name="Dashboard").click()
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    site.model.pause = 0
    page.go_back()
    expect(message(page, before + 1)).to_contain_text(SLOW.strip(), timeout=30_000)
    assert "interrupted" not in site.api.get(f"{site.about}/messages/{before + 1}")["metadata"]


def test_a_failing_model_loses_nothing_and_says_so(site, page, complaints):
    before = site.api.get(site.about)["entries"]
    complaints.expected.append("502")
    site.model.fail("500", repeat=True)
    site.open(page, site.path())
    say(page, "Do you hear me?")
    alert = page.locator(".ending").get_by_role("alert")
    expect(alert).to_contain_text("Your message is stored", timeout=60_000)
    expect(message(page, before)).to_contain_text("Do you hear me?")
    expect(page.locator(".chat").get_by_text("Do you hear me?")).to_have_count(1)
    site.model.heal()


def test_what_was_not_stored_can_be_sent_again(site, page, complaints):
    complaints.expected.append("ERR_FAILED")
    site.open(page, site.path())
    page.route("**/turns", lambda route: route.abort())
    say(page, "Is anybody there?")
    expect(page.locator(".ending").get_by_role("alert")).to_contain_text("was not stored")
    expect(composer(page)).to_have_value("Is anybody there?")
    page.unroute("**/turns")
    site.model.say("Yes.")
    composer(page).press("Enter")
    expect(page.locator(".chat .message").last).to_contain_text("Yes.")
    expect(page.locator(".ending").get_by_role("alert")).to_have_count(0)


def test_what_others_write_appears(site, page):
    before = site.api.get(site.about)["entries"]
    site.open(page, site.path())
    site.api.say(site.conversation, "Written by another client.")
    expect(message(page, before)).to_contain_text("Written by another client.")


@pytest.mark.own_page
def test_returning_shows_new_messages_of_others_at_once(site, page):
    before = site.api.get(site.about)["entries"]
    page.clock.install()
    site.open(page, site.path())
    looks = partial(page.expect_response, lambda response: response.url.endswith(site.about))
    with looks():  # as it does from time to time; now none passes any more
        page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))
    site.api.say(site.conversation, "Written meanwhile.")
    with looks():
        come_back(page)
    page.clock.resume()
    expect(message(page, before)).to_contain_text("Written meanwhile.")


@pytest.mark.looks
def test_shift_and_enter_make_a_new_line(site, page):
    site.open(page, site.path())
    composer(page).fill("one")
    composer(page).press("Shift+Enter")
    composer(page).type("two")
    expect(composer(page)).to_have_value("one\ntwo")


# -- branches ---------------------------------------------------------------------------------


def test_an_edited_question_continues_as_a_branch(site, page):
    talk = ["What is a firn line?", "Where snow stays.", "And névé?", "Young snow."]
    site.api.say("talk", *talk)
    site.open(page, site.path(conversation="talk"))
    press(page, 2, "Edit")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("The message")).to_have_value("And névé?")
    dialog.get_by_label("The message").fill("And ice?")
    site.model.say("Old snow.")
    dialog.get_by_role("button", name="Send in a branch").click()
    expect(message(page, 3)).to_contain_text("Old snow.")
    expect(message(page, 2)).to_contain_text("And ice?")
    expect(message(page, 1)).to_contain_text("Where snow stays.")
    version = page.get_by_label("Version")
    expect(version.locator("option")).to_have_text(["original", "branch 1, after #1"])
    version.select_option("talk")
    expect(message(page, 3)).to_contain_text("Young snow.")
    page.get_by_label("Version").select_option(label="branch 1, after #1")
    expect(message(page, 3)).to_contain_text("Old snow.")
    stored = site.api.get("/conversations/talk/messages")["data"]
    assert [one["message"]["content"] for one in stored] == talk


def test_answering_again_keeps_the_first_answer(site, page):
    site.api.say("talk", "Hello?", "First answer.", "Once more?", "Second answer.")
    site.open(page, site.path(conversation="talk"))
    press(page, 3, "Again")
    expect(message(page, 3)).to_contain_text("Once more?")  # the model's echo of the question
    expect(page.get_by_label("Version").locator("option")).to_have_count(2)
    # A branch of a branch belongs to the same family.
    press(page, 3, "Again")
    expect(page.get_by_label("Version").locator("option")).to_have_count(3)
    page.get_by_label("Version").select_option("talk")
    expect(message(page, 3)).to_contain_text("Second answer.")


def test_the_very_first_question_can_be_edited_too(site, page):
    site.api.put("/projects/p", {"status": "active"})
    site.api.say("talk", "Hello?", "First answer.")
    site.api.patch("/conversations/talk", {"project": "p"})
    site.open(page, site.path(conversation="talk"))
    press(page, 0, "Edit")
    page.get_by_role("dialog").get_by_label("The message").fill("Good morning!")
    site.model.say("Good morning to you.")
    page.get_by_role("button", name="Send in a branch").click()
    expect(message(page, 1)).to_contain_text("Good morning to you.")
    options = page.get_by_label("Version").locator("option")
    expect(options).to_have_text(["original", "branch 1, from the start"])
    made = page.locator(".chat h1").get_attribute("title")
    assert site.api.get(f"/conversations/{made}")["project"] == "p"


# -- finding one's way ------------------------------------------------------------------------


@pytest.mark.looks
def test_a_jump_to_a_number_and_to_a_date(site, page, monkeypatch):
    now = datetime.now(UTC)
    monkeypatch.setattr("firnline.server.rest.search.utc_now", lambda: now)
    said = [
        {
            "message": {"role": "user", "content": f"Day {day}, line {line}."},
            "created_at": format_time(now - timedelta(days=60 - day)),
        }
        for day in range(60)
        for line in range(10)
    ]
    site.api.post("/conversations/days/messages", {"messages": said})
    site.open(page, site.path(conversation="days"))
    is_shown(page, 599)
    jump = page.get_by_label("Go to a date or a number")
    jump.fill("#120")
    jump.press("Enter")
    is_shown(page, 120)
    expect(message(page, 120)).to_have_class(re.compile("found"))
    jump.fill((now - timedelta(days=40)).strftime("%Y-%m-%d"))
    jump.press("Enter")
    is_shown(page, 200)
    expect(message(page, 200)).to_contain_text("Day 20, line 0.")
    jump.fill("yesterday")
    jump.press("Enter")
    is_shown(page, 590)
    jump.fill("1990-01-01")
    jump.press("Enter")
    expect(page.locator(".said")).to_contain_text("There are no messages from 1990-01-01")
    is_shown(page, 590)


@pytest.mark.own_page
def test_every_day_has_its_heading(site, page):
    now = datetime.now(UTC)
    days = [400] + [1] * 19 + [0] * 25  # the last one begins where a block does
    said = [
        {
            "message": {"role": "user", "content": f"Said {n}."},
            "created_at": format_time(now - timedelta(days=day)),
        }
        for n, day in enumerate(days)
    ]
    site.api.post("/conversations/diary/messages", {"messages": said})
    page.clock.set_fixed_time(now)
    site.open(page, f"{site.path(conversation='diary')}?seq=0")
    old = now - timedelta(days=400)
    written = re.compile(rf"{old:%A},? {old.day} {old:%B %Y}")
    expect(message(page, 0).locator(".day")).to_have_text(written)
    expect(message(page, 1).locator(".day")).to_have_text("Yesterday")
    expect(message(page, 2).locator(".day")).to_have_count(0)
    page.get_by_label("Go to a date or a number").fill("#21")
    page.get_by_label("Go to a date or a number").press("Enter")
    expect(message(page, 20).locator(".day")).to_have_text("Today")
    expect(message(page, 21).locator(".day")).to_have_count(0)


@pytest.mark.looks
def test_an_invalid_time_is_an_error(site, page, complaints):
    complaints.expected.append("400")
    site.open(page, site.path())
    jump = page.get_by_label("Go to a date or a number")
    jump.fill("whenever")
    jump.press("Enter")
    expect(page.locator(".said.bad")).to_contain_text("whenever")


@pytest.mark.looks
def test_an_invalid_number_is_an_error_and_shows_the_newest(site, page):
    newest = site.api.get(site.about)["entries"] - 1
    site.open(page, site.path())
    jump = page.get_by_label("Go to a date or a number")
    jump.fill("#99999")
    jump.press("Enter")
    expect(page.locator(".said")).to_contain_text(f"The newest is #{newest}.")
    is_shown(page, newest)


@pytest.mark.looks
def test_an_address_leads_to_an_entry(site, page):
    site.api.say("addressed", *(f"Line {n}." for n in range(400)))
    site.open(page, f"{site.path(conversation='addressed')}?seq=77")
    is_shown(page, 77)
    expect(message(page, 77)).to_contain_text("Line 77.")


def test_a_message_is_pinned_and_unpinned(site, page):
    site.open(page, f"{site.path()}?seq=8")
    press(page, 8, "Pin")
    expect(message(page, 8).get_by_text("pinned", exact=True)).to_be_visible()
    assert 8 in site.api.get(site.about)["pinned"]
    press(page, 8, "Unpin")
    expect(message(page, 8).get_by_text("pinned", exact=True)).to_have_count(0)
    assert 8 not in site.api.get(site.about)["pinned"]


@pytest.mark.looks
def test_tool_calls_and_results_are_folded(site, page):
    site.open(page, f"{site.path()}?seq=1")
    call = page.locator('.chat [data-seq="1"] details')
    expect(call.locator("summary")).to_have_text("calls find_order")
    expect(call.locator("pre")).to_be_hidden()
    call.locator("summary").click()
    assert json.loads(call.locator("pre").inner_text()) == {"order": 1138}
    result = page.locator('.chat [data-seq="2"] details')
    expect(result.locator("pre")).to_be_hidden()
    result.locator("summary").click()
    expect(result.locator("pre")).to_contain_text("Innsbruck")


@pytest.mark.requirement("X1")
def test_a_huge_message_is_shown_to_its_last_word(site, page, complaints):
    complaints.expected.append("422")  # it fits into no small window, and the glacier says so
    words = " ".join(f"word{n}" for n in range(30_000))
    site.api.say("huge", f"{words} THE-END", "Read.")
    site.open(page, f"{site.path(conversation='huge')}?seq=0")
    expect(message(page, 0)).not_to_contain_text("THE-END")
    message(page, 0).get_by_role("button", name="Show all").click()
    expect(message(page, 0)).to_contain_text("word29999 THE-END")


@pytest.mark.looks
def test_a_wide_table_is_scrolled_and_its_words_stay_complete(site, page, shot, accessible):
    row = f"| {' | '.join(['somewhat longer'] * 7)} |\n"
    site.api.say("table", "A table?", f"{row}{'|---' * 7}|\n{row}{row}")
    page.set_viewport_size({"width": 390, "height": 844})
    site.open(page, site.path(conversation="table"))
    table = message(page, 1).locator("table")
    assert table.evaluate("e => e.scrollWidth > e.clientWidth")
    lines = "e => e.clientHeight / parseFloat(getComputedStyle(e).lineHeight)"
    assert table.locator("td").first.evaluate(lines) < 3.5  # two words, two lines
    accessible(page)
    shot(page, "chat-table")


def test_what_is_typed_has_room_and_one_message_is_one(site, page):
    site.api.say("single", "One.")
    site.open(page, site.path(conversation="single"))
    low = composer(page).bounding_box()["height"]
    composer(page).fill("\n".join(f"Line {n}." for n in range(9)))
    assert composer(page).bounding_box()["height"] > low + 90
    composer(page).fill("\n".join(f"Line {n}." for n in range(900)))
    assert composer(page).bounding_box()["height"] < 400
    composer(page).fill("")
    assert composer(page).bounding_box()["height"] == low
    expect(page.locator(".conversations li").first).to_contain_text("1 message ·")


@pytest.mark.looks
def test_a_message_without_words_says_so(site, page):
    site.api.say("silent", "", "  ", "Hello?")
    site.open(page, site.path(conversation="silent"))
    expect(message(page, 0)).to_contain_text("(no text)")
    expect(message(page, 1)).to_contain_text("(no text)")
    expect(message(page, 1).locator(".text")).to_have_count(0)
    expect(message(page, 2)).not_to_contain_text("(no text)")


def test_a_conversation_with_a_title_is_called_by_it_everywhere(site, page):
    site.api.say("imported-6f1c", "We go to Zanzibar.", "In March.")
    site.api.patch("/conversations/imported-6f1c", {"metadata": {"title": "Holidays"}})
    site.open(page, "#/search?q=Zanzibar")
    hit = page.locator("a.open").first
    expect(hit).to_contain_text("Holidays")
    hit.click()
    heading = page.locator(".chat h1")
    expect(heading).to_have_text("Holidays")
    expect(heading).to_have_attribute("title", "imported-6f1c")
    expect(page).to_have_title("Holidays · Firnline")


def test_its_project_and_its_panel_call_it_by_its_title_too(site, page):
    site.api.say("imported-6f1c", "We go to Zanzibar.", "In March.")
    about = {"metadata": {"title": "Holidays"}, "project": "support"}
    site.api.patch("/conversations/imported-6f1c", about)
    site.open(page)
    link = page.get_by_role("article", name="Project support").get_by_role("link").first
    expect(link).to_have_text("Holidays")
    link.click()
    page.set_viewport_size({"width": 390, "height": 844})
    unfold_panel(page, 390)
    expect(page.locator(".panel-top b")).to_have_text("Holidays")


@pytest.mark.looks
def test_keys_lead_to_the_views_and_never_while_typing(site, page):
    site.open(page, site.path())
    composer(page).press("d")
    expect(composer(page)).to_have_value("d")
    composer(page).fill("")
    page.locator(".scroller").focus()
    page.keyboard.press("d")
    expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Words or a question")).to_be_focused()
    page.keyboard.press("n")
    expect(page.get_by_label("Words or a question")).to_have_value("n")
    page.locator("#main").focus()
    page.keyboard.press("n")
    expect(page.get_by_text("No messages yet")).to_be_visible()


def test_the_color_scheme_is_changed_and_stored(site, page):
    site.open(page)
    root, ground = page.locator("html"), "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    button = page.get_by_role("button", name=re.compile("^Colors"))
    for theme in ("auto", "light", "dark"):
        expect(root).to_have_attribute("data-theme", theme)
        assert (page.evaluate(ground) == light) == (theme != "dark")
        if theme != "dark":
            button.click()
    page.reload()
    expect(root).to_have_attribute("data-theme", "dark")
    page.emulate_media(color_scheme="dark")
    button.click()
    expect(root).to_have_attribute("data-theme", "auto")
    assert page.evaluate(ground) != light
    button.click()
    expect(root).to_have_attribute("data-theme", "light")
    assert page.evaluate(ground) == light


@pytest.mark.looks
def test_on_a_narrow_screen_lists_chat_and_memory_take_turns(site, page):
    page.set_viewport_size({"width": 390, "height": 844})
    site.open(page)
    expect(page.locator(".side")).to_be_hidden()
    page.get_by_role("button", name="Conversations").click()
    page.locator(".side").get_by_role("link", name=re.compile(site.conversation)).click()
    expect(composer(page)).to_be_visible()
    expect(page.locator(".side")).to_be_hidden()
    expect(page.get_by_role("tabpanel")).to_be_hidden()
    unfold_panel(page, 390)
    expect(page.get_by_role("tabpanel")).to_be_visible()
    expect(composer(page)).to_be_hidden()
    page.get_by_role("button", name="Back to the chat").click()
    expect(composer(page)).to_be_visible()


@pytest.mark.looks
def test_on_a_narrow_screen_choosing_what_is_open_leads_back_to_it(site, page, accessible):
    page.set_viewport_size({"width": 390, "height": 844})
    site.open(page, site.path())
    page.get_by_role("button", name="Conversations").click()
    accessible(page)
    page.locator(".side").get_by_role("link", name=re.compile(site.conversation)).click()
    expect(page.locator(".side")).to_be_hidden()
    expect(composer(page)).to_be_visible()
    accessible(page)


def test_the_chat_looks_well(site, page, shot, accessible):
    said = [
        {"role": "user", "content": "Show me a table, a list and some code."},
        {
            "role": "assistant",
            "content": "## Prices\n\n| what | euros |\n|---|---:|\n| rope | 95 |\n\n"
            "1. one\n2. two\n\n> quoted\n\n```python\nprint('a long line of code' * 20)\n```\n\n"
            "- [x] done\n- [ ] open\n\n"
            "\u0645\u0631\u062d\u0628\u0627, a [link](https://example.com) and `code`.",
        },
    ]
    site.api.post(f"{site.about}/messages", {"messages": said})
    site.api.put(f"{site.about}/pins/40")
    site.open(page, site.path())
    page.locator('.chat [data-seq="44"]').hover()
    accessible(page)
    shot(page, "chat")
    site.open(page, f"{site.path()}?seq=1")
    shot(page, "chat-tools")
    site.open(page, site.path(conversation="new"))
    accessible(page)
    shot(page, "chat-new")


@pytest.mark.own_page
def test_the_composer_grows_where_the_browser_does_not_see_to_it(site, page):
    def without(route):
        style = route.fetch().text()
        assert "field-sizing: content" in style
        route.fulfill(body=style.replace("field-sizing: content", ""), content_type="text/css")

    page.route("**/page.css", without)
    page.add_init_script("CSS.supports = () => false")
    site.open(page, site.path())
    composer = page.get_by_label("Your message")
    low = composer.bounding_box()["height"]
    composer.fill("line\n" * 8)
    high = composer.bounding_box()["height"]
    assert high > 2 * low
    assert composer.evaluate("field => field.scrollHeight - field.clientHeight") == 0
    composer.fill("line\n" * 80)
    assert composer.bounding_box()["height"] <= 0.4 * page.viewport_size["height"] + 1
    composer.fill("")
    assert composer.bounding_box()["height"] == low


# -- how it runs ------------------------------------------------------------------------------

RUNS = """paragraph => {
  const text = document.createTreeWalker(paragraph, NodeFilter.SHOW_TEXT).nextNode();
  const at = (n) => {
    const range = document.createRange();
    range.setStart(text, n);
    range.setEnd(text, n + 1);
    return range.getBoundingClientRect().left;
  };
  return at(text.length - 1) > at(0) ? 'ltr' : 'rtl';
}"""


@pytest.mark.looks
def test_each_paragraph_and_all_code_run_in_their_own_direction(site, page, shot):
    code = "```\nprint(x).\n```"
    site.api.say(
        "two ways",
        f"مرحبا بكم.\n\nThe order is here.\n\n{code}\n\n- واحد.",
        "The order is here.\n\nمرحب بكم.",
    )
    site.open(page, site.path(conversation="two ways"))
    first, second = message(page, 0), message(page, 1)
    for paragraph, way in [
        (first.locator("p").first, "rtl"),
        (first.locator("p").last, "ltr"),
        (first.locator("pre code"), "ltr"),
        (first.locator("li"), "rtl"),
        (second.locator("p").first, "ltr"),
        (second.locator("p").last, "rtl"),
    ]:
        assert paragraph.evaluate(RUNS) == way
    lists = "e => [getComputedStyle(e).paddingRight, getComputedStyle(e).paddingLeft]"
    right, left = first.locator("ul").evaluate(lists)
    assert (right != "0px", left) == (True, "0px")  # the dot is inside
    shot(page, "chat-two-ways")


# -- when it was ------------------------------------------------------------------------------


@pytest.mark.own_page
def test_what_was_just_now_is_not_just_now_for_ever(site, page):
    page.clock.install()
    site.api.say("fresh", "Hello.")
    site.open(page, site.path(conversation="fresh"))
    listed = page.locator(".conversations a").first
    expect(listed).to_contain_text("just now")
    page.clock.fast_forward(20 * 60_000)
    expect(listed).to_contain_text(re.compile("(19|20) minutes ago"))
    expect(message(page, 0)).to_contain_text(re.compile("(19|20) minutes ago"))


@pytest.mark.own_page
def test_how_long_ago_it_was_fits_the_day_above_it(site, page):
    now = datetime(2026, 3, 11, 8, tzinfo=UTC)
    said = [
        {"message": {"role": "user", "content": "Hm."}, "created_at": format_time(now - ago)}
        for ago in (timedelta(hours=35), timedelta(minutes=59, seconds=50))
    ]
    site.api.post("/conversations/diary/messages", {"messages": said})
    page.clock.set_fixed_time(now)
    site.open(page, site.path(conversation="diary"))
    expect(message(page, 0).locator(".day")).to_have_text(re.compile("Monday"))
    expect(message(page, 0).locator(".who .meta")).to_contain_text("1 day ago")
    expect(message(page, 1).locator(".who .meta")).to_contain_text("59 minutes ago")
