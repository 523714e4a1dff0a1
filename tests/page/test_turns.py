"""The turn inspector: the exact prompt of a past turn, and what changed from turn to turn."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from firnline.log import zstd
from firnline.log.message import encode_json
from firnline.server import prompts
from support.page_site import apart, is_shown, unfold_panel

QUESTIONS = ["Which order never arrived?", "When should it reach Ana?", "Who lives in Tokyo?"]


def ask(site):
    """Three turns; the prompts are too large for the window, so that something is left out."""
    for question in QUESTIONS:
        site.model.say(f"About “{question}”: order 1138 left Innsbruck.")
        body = {"message": question, "system": "Be brief.", "budget": 1_000}
        site.api.post(f"{site.about}/turns", body)
    return site


def without(pieces, others):
    """The pieces whose message is in no other one; of equal ones each takes one away."""
    messages = [other["message"] for other in others]
    left = []
    for piece in pieces:
        if piece["message"] in messages:
            messages.remove(piece["message"])
        else:
            left.append(piece)
    return left


@pytest.fixture
def asked(site):
    return ask(site)


@pytest.fixture(scope="module")
def asked_once(shared_site):
    """For tests that only look."""
    return ask(shared_site)


@pytest.mark.looks
def test_every_turn_is_listed_and_its_prompt_is_shown_word_for_word(asked_once, page, shot):
    panel = asked_once.panel(page, "turns")
    listed = panel.get_by_role("navigation", name="Turns").get_by_role("button")
    assert [text.split("\n")[0] for text in listed.all_inner_texts()] == QUESTIONS[::-1]
    turn = asked_once.api.get(f"{asked_once.about}/turns/48")
    article = panel.get_by_role("article")
    expect(article).to_contain_text("proved: the hash matches")
    expect(article).to_contain_text(turn["sha256"])
    bar = article.locator(".budget .bar")
    for name, tokens in turn["accounting"].items():
        if tokens and name != "window":
            assert f"{name} {tokens:,}" in bar.get_attribute("aria-label")
    for more in article.locator(".part-of > button").all():
        more.click()
    pieces = article.locator(".part-of .piece")
    expect(pieces).to_have_count(len(turn["prompt"]))
    for piece, sent in zip(pieces.all(), turn["prompt"], strict=True):
        piece.locator("summary").click()
        assert piece.locator("pre").text_content() == sent["message"]["content"]
        assert piece.locator("summary .meta").inner_text() == f"{sent['tokens']:,}"
    whys = [section["why"] for section in turn["sections"] if section["why"]]
    for why in whys:
        expect(article).to_contain_text(why)
    article.locator(".part-of summary").first.scroll_into_view_if_needed()
    shot(page, "turns-messages", unfold_panel)


@pytest.mark.looks
def test_repeated_and_new_parts_are_marked(asked_once, page, shot):
    panel = asked_once.panel(page, "turns")
    now = asked_once.api.get(f"{asked_once.about}/turns/48")["prompt"]
    then = asked_once.api.get(f"{asked_once.about}/turns/46")["prompt"]
    pairs = zip(now, then, strict=False)
    prefix = next(n for n, (a, b) in enumerate(pairs) if a["message"] != b["message"])
    assert prefix > 0
    tokens = sum(piece["tokens"] for piece in now[:prefix])
    reused = panel.locator(".reuse")
    expect(reused).to_contain_text(f"{tokens:,} tokens, is the beginning of")
    expect(panel.locator(".part-of .piece.reused")).to_have_count(prefix)
    changes = (("New since then", without(now, then)), ("No longer there", without(then, now)))
    for word, pieces in changes:
        told = sum(piece["tokens"] for piece in pieces)
        expect(panel).to_contain_text(re.compile(rf"{word}: {len(pieces)} messages?, {told:,} tok"))
    shot(page, "turns", unfold_panel)


@pytest.mark.looks
def test_recalled_entries_come_with_what_their_scores_are_made_of(asked_once, page, shot):
    panel = asked_once.panel(page, "turns")
    best = asked_once.api.get(f"{asked_once.about}/turns/48")["hits"][0]
    card = panel.locator(".hit-parts").first
    expect(card).to_contain_text(f"#{best['seq']}")
    expect(card).to_contain_text(f"{best['score']:.2f}")
    parts = {name: value for name, value in best["parts"].items() if abs(value) >= 0.005}
    expect(card.locator("li")).to_have_count(len(parts))
    for name, value in parts.items():
        expect(card).to_contain_text(name.replace("_", " "))
        expect(card).to_contain_text(f"{abs(value):.2f}")
    card.scroll_into_view_if_needed()
    shot(page, "turns-recalled", unfold_panel)
    card.get_by_role("button").click()
    is_shown(page, best["seq"])


@pytest.mark.looks
def test_an_older_turn_has_its_own_url(asked_once, page):
    panel = asked_once.panel(page, "turns")
    panel.get_by_role("button", name=re.compile(QUESTIONS[0].replace("?", r"\?"))).click()
    expect(panel.get_by_role("article", name="The prompt of answer 44")).to_be_visible()
    assert page.url.endswith("turns?turn=44")
    expect(panel).to_contain_text("nothing to compare it with")
    page.reload()
    expect(panel.get_by_role("article", name="The prompt of answer 44")).to_be_visible()
    page.go_back()
    expect(panel.get_by_role("article", name="The prompt of answer 48")).to_be_visible()


def test_what_was_left_out_is_listed(asked, page):
    asked.api.say(asked.conversation, "Long. " * 3_000)
    asked.api.post(f"{asked.about}/turns", {"message": "And now?", "budget": 1_000})
    (newest, *_) = asked.api.get(f"{asked.about}/turns")["data"]
    turn = asked.api.get(f"{asked.about}/turns/{newest['answer']}")
    panel = asked.panel(page, "turns")
    assert turn["left_out"] or turn["degraded"]
    for one in turn["left_out"]:
        expect(panel).to_contain_text(one["what"])
        expect(panel).to_contain_text(one["why"])
    for why in turn["degraded"]:
        expect(panel).to_contain_text(why)


def test_a_message_in_the_chat_appears_at_once(site, page):
    site.model.say("Innsbruck.")
    panel = site.panel(page, "turns")
    expect(panel.get_by_role("heading", name="No turn yet")).to_be_visible()
    page.get_by_label("Your message").fill("Where is it?")
    page.keyboard.press("Enter")
    expect(panel.get_by_role("article", name="The prompt of answer 44")).to_be_visible()
    expect(panel.get_by_role("navigation", name="Turns")).to_contain_text("Where is it?")


@pytest.mark.looks
def test_there_are_more_turns_than_one_page_shows(site, page):
    for number in range(32):
        site.api.post("/conversations/many/turns", {"message": f"Question {number}?"})
    site.open(page, site.path("turns", "many"))
    listed = page.get_by_role("navigation", name="Turns").locator("li")
    expect(listed).to_have_count(30)
    page.get_by_role("button", name="Older turns").click()
    expect(listed).to_have_count(32)
    expect(page.get_by_role("button", name="Older turns")).to_have_count(0)


def test_a_prompt_that_was_tampered_with_is_not_shown(asked, page, complaints):
    store = asked.server.parts.tenants.store

    async def forge():
        (newest, *_) = await store.cards(prompts.KIND, tenant="default")
        kept = prompts.unpack(newest.body)
        kept["pieces"][0]["message"]["content"] = "Be rude."
        body = zstd.compress(encode_json(kept).encode())
        await store.put_cards([replace(newest, body=body)])

    apart(forge())
    complaints.expected.append("500")
    panel = asked.panel(page, "turns")
    expect(panel.get_by_role("alert")).to_contain_text("does not match its hash")
    expect(panel).not_to_contain_text("Be rude.")
    expect(panel).not_to_contain_text("proved")
