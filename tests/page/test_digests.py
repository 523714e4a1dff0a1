"""Digests on the page: every version, its receipt, its sources, and undo."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from firnline.log.entry import Digest, Key
from firnline.log.message import utc_now
from support.page_site import apart, is_shown, unfold_panel

SUMMARY = "Order 1138, a rope, never arrived.\nIt left Innsbruck; Ana gets it on Friday."


def told(milliseconds):
    """As the page says it."""
    return f"{milliseconds} ms" if milliseconds < 1_000 else f"{milliseconds / 1_000:.1f} s"


@pytest.fixture
def amended(site):
    """Two versions: the sample's own, and one by the application."""
    data = {"custom_fields": {"plan": "gold"}}
    site.api.post(f"{site.about}/important", {"important_data": data, "summary": SUMMARY})
    return site


def versions(panel):
    """The timeline from the newest version on: number and state."""
    rows = panel.get_by_role("navigation", name="Digests").locator("li .row").all_inner_texts()
    return [" ".join(row.split()) for row in rows]


def test_the_chain_is_a_timeline_and_a_version_is_shown_in_full(amended, page, shot):
    panel = amended.panel(page, "digests")
    assert versions(panel) == ["Digest 2 in force", "Digest 1 replaced"]
    expect(panel.locator(".figures")).to_contain_text("35 of 43")
    article = panel.get_by_role("article")
    expect(article).to_contain_text("Ana gets it on Friday.")
    expect(article).to_contain_text("by application")
    panel.get_by_role("button", name=re.compile("^Digest 1")).click()
    one = amended.api.get(f"{amended.about}/digests/1")
    expect(article.get_by_role("heading", name="Digest 1")).to_be_visible()
    covers = one["receipt"]["covers"]["tokens"]
    expect(article).to_contain_text(f"{covers:,} → {one['tokens']:,} tokens")
    for kind, tally in one["receipt"]["kinds"].items():
        row = article.get_by_role("row", name=re.compile(kind, re.IGNORECASE))
        if tally["total"]:
            expect(row).to_contain_text(f"{tally['kept']}/{tally['total']}")
            for lost in tally["lost"]:
                expect(row).to_contain_text(lost["value"])
        else:
            expect(row).to_have_count(0)
    for row in one["receipt"]["residue"]:
        expect(article.locator(".residue")).to_contain_text(row["quote"])
    lineage = amended.api.get(f"{amended.about}/lineage")
    expect(panel.locator(".figures")).to_contain_text(told(lineage["max_milliseconds"]))
    shot(page, "digests", unfold_panel)
    article.locator(".residue").scroll_into_view_if_needed()
    shot(page, "digests-receipt", unfold_panel)


@pytest.mark.looks
def test_each_sentence_leads_to_what_it_was_made_of(site, page, shot):
    panel = site.panel(page, "digests")
    panel.get_by_text("Where each sentence comes from").click()
    sentences = panel.locator(".sentences li")
    entries = site.api.all(f"{site.about}/messages")
    said = {e["seq"]: str(e["message"].get("content")) for e in entries}
    expect(sentences.first).to_be_visible()
    for sentence in sentences.all():
        text = sentence.locator("> span").first.inner_text()
        best = int(sentence.get_by_role("button").first.inner_text().removeprefix("#"))
        assert text in said[best], "the offline summary is made of the messages' own sentences"
    expect(panel).to_contain_text("Likely, not proved")
    row = sentences.filter(has_text="I prefer e-mail")
    row.scroll_into_view_if_needed()
    shot(page, "digests-sources", unfold_panel)
    row.get_by_role("button", name="Show message 6 in the chat").click()
    is_shown(page, 6)


@pytest.mark.looks
def test_sentences_without_a_source_are_distinguished(site, page):
    site.open(page, site.path())
    entries = [
        {"seq": 3, "text": "The rope is in Innsbruck, and the price of the rope is 95 euros."},
        {"seq": 4, "text": "Thanks, and the weather is fine.", "name": "Ana (Wien)"},
        {"seq": 9, "text": "東京の友達もロープを買いたい。"},
    ]
    text = "User: The rope costs 95 euros.\nAna (Wien): The weather is fine."
    text += "\n- 東京の友達もロープ。\nA dragon ate seventeen wizards."
    code = "async ([t, e]) => (await __module('sources')).sources(t, e)"
    rows = page.evaluate(code, [text, entries])
    assert [row["sentence"] for row in rows] == [
        "The rope costs 95 euros.",
        "The weather is fine.",
        "東京の友達もロープ。",
        "A dragon ate seventeen wizards.",
    ]
    assert [[one["seq"] for one in row["from"]] for row in rows] == [[3], [4], [9], []]


def test_a_digest_unfolds_into_its_entries(site, page):
    site.api.say(site.conversation, *(f"Parcel {n} weighs {n + 5} kg. " * 8 for n in range(40)))
    site.api.post(f"{site.about}/context", {"budget": 1_000})
    panel = site.panel(page, "digests")
    newest = site.api.get(f"{site.about}/digests/in-force")["data"][-1]
    panel.get_by_role("button", name=re.compile(f"^Digest {newest['version']} ")).click()
    panel.get_by_text("The messages it covers").click()
    covered = [e["seq"] for e in site.api.all(f"{site.about}/digests/{newest['version']}/messages")]
    rows = panel.locator(".covered li")
    expect(rows).to_have_count(min(len(covered), 50))
    if len(covered) > 50:
        panel.get_by_role("button", name="More messages").click()
        expect(rows).to_have_count(len(covered))
    expect(rows.first).to_contain_text(f"#{covered[0]}")


def test_versions_are_compared(amended, page, shot):
    panel = amended.panel(page, "digests")
    replaced = amended.api.get(f"{amended.about}/digests/1")["text"]
    panel.get_by_text("Compare with another digest").click()
    lines = panel.locator(".difference").first
    expect(lines.locator(".new").first).to_contain_text("Order 1138, a rope, never arrived.")
    gone = [line.removeprefix("-").strip() for line in lines.locator(".old").all_inner_texts()]
    assert gone
    for line in gone:
        assert line in replaced
        assert line not in SUMMARY
    expect(panel.locator(".difference").last).to_contain_text("+ custom fields plan: gold")
    panel.locator(".difference").last.scroll_into_view_if_needed()
    shot(page, "digests-difference", unfold_panel)


@pytest.mark.promise("undoable")
def test_the_newest_is_undone_after_a_question(amended, page, shot):
    panel = amended.panel(page, "digests")
    panel.get_by_role("button", name="Undo newest").click()
    dialog = page.get_by_role("dialog")
    shot(page, "digests-undo", unfold_panel)
    dialog.get_by_role("button", name="Cancel").click()
    assert amended.api.get(amended.about)["in_force"] == [2]
    panel.get_by_role("button", name="Undo newest").click()
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    panel.get_by_role("button", name="Undo newest").click()
    dialog.get_by_role("button", name="Undo it").click()
    expect(panel.locator(".version").first).to_contain_text("undone")
    assert versions(panel) == ["Digest 2 undone", "Digest 1 in force"]
    assert amended.api.get(amended.about)["in_force"] == [1]


def test_digests_are_rebuilt_and_cleared_and_made(site, page):
    panel = site.panel(page, "digests")
    panel.get_by_role("button", name="Rebuild").click()
    page.get_by_label("Only digests that were created offline").check()
    page.get_by_role("button", name="Rebuild them").click()
    expect(panel.locator(".version").first).to_contain_text("Digest 2")
    assert site.api.get(f"{site.about}/digests/2")["made_by"] == "gpt-4o-mini"
    panel.get_by_role("button", name="Clear").click()
    page.get_by_role("button", name="Undo all of them").click()
    expect(panel.locator(".version.good")).to_have_count(0)
    assert site.api.get(site.about)["in_force"] == []
    panel.get_by_role("button", name="Digest now").click()
    expect(page.get_by_role("status").filter(has_text="1 digest created")).to_be_visible()
    assert site.api.get(site.about)["in_force"] == [3]
    panel.get_by_role("button", name="Digest now").click()
    expect(page.get_by_role("status").filter(has_text="Nothing is pending")).to_be_visible()
    assert site.api.get(site.about)["in_force"] == [3]


@pytest.mark.requirement("E7")
def test_a_failure_shows_its_reason_and_is_tried_again(site, page, shot, complaints):
    site.model.fail("400", repeat=True)
    assert site.api.ask("POST", f"{site.about}/digests/rebuild", {}).status_code == 502
    panel = site.panel(page, "digests")
    trouble = panel.get_by_role("alert")
    expect(trouble).to_contain_text("Digest 2 failed.")
    expect(trouble).to_contain_text(site.api.get(f"{site.about}/digests/2")["error"])
    shot(page, "digests-failed", unfold_panel)
    complaints.expected.append("502")
    trouble.get_by_role("button", name="Try again").click()
    expect(trouble).to_contain_text("Digest 3 failed, and 1 attempt before it.")
    site.model.heal()
    trouble.get_by_role("button", name="Try again").click()
    expect(trouble).to_have_count(0)
    assert versions(panel)[0] == "Digest 4 in force"
    assert site.api.get(site.about)["in_force"] == [4]


@pytest.mark.requirement("E7")
def test_a_digest_in_progress_for_too_long_is_reported(site, page, monkeypatch, shot):
    key = Key("default", site.conversation)
    store = site.server.parts.tenants.store

    async def begin():
        lease = await store.lease(key, "gone", 60.0)
        await store.begin_digest(lease, Digest(version=0, first_seq=35, last_seq=40, base=1))

    apart(begin())
    panel = site.panel(page, "digests")
    assert versions(panel)[0] == "Digest 2 in progress"
    expect(panel.get_by_role("alert")).to_have_count(0)
    memory = site.memory()
    monkeypatch.setattr(memory, "_clock", lambda: utc_now() + timedelta(minutes=6))
    expect(panel.get_by_role("alert")).to_contain_text("Digest 2 has been in progress since")
    expect(panel.get_by_role("button", name="Try again")).to_be_visible()
    shot(page, "digests-stuck", unfold_panel)


@pytest.mark.looks
def test_the_glacier_leads_to_its_digests(site, page):
    site.open(page, f"{site.path('digests')}?version=1")
    expect(page.get_by_role("article", name="Digest 1")).to_be_visible()
