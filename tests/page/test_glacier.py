"""The glacier: the picture is what the API says, and changes with the window and the question."""

import pytest
from playwright.sync_api import expect

from support.media import data_url, png
from support.page_site import come_back, is_shown, unfold_panel


def settled(page):
    """The picture is of what the slider and the question say."""
    expect(page.locator(".panel .stack[aria-busy]")).to_have_attribute("aria-busy", "false")


def window(page, tokens):
    """Move the window's slider there."""
    slider = page.get_by_role("slider")
    steps = int(slider.get_attribute("max"))
    slider.press("Home")
    for _ in range(steps + 1):
        if slider.get_attribute("aria-valuetext") == f"{tokens:,} tokens":
            settled(page)
            return
        slider.press("ArrowRight")
    raise AssertionError(tokens)


def told(page):
    """The numbers of the budget bar."""
    rows = page.locator(".budget .legend li").all_inner_texts()
    return {row.split()[0]: int(row.split()[1].replace(",", "")) for row in rows}


@pytest.mark.parametrize("tokens", [500, 1_000, 4_000])
@pytest.mark.looks
def test_the_bars_numbers_are_the_accounting_and_add_up(site, page, tokens):
    site.open(page, site.path())
    window(page, tokens)
    shown = told(page)
    context = site.api.post(f"{site.about}/context", {"budget": tokens, "fold": False})
    accounting = {name: n for name, n in context["accounting"].items() if n and name != "window"}
    assert shown == accounting
    assert sum(shown.values()) == tokens
    parts = page.locator(".budget .part").all()
    width = page.locator(".budget .bar").bounding_box()["width"]
    for part in parts:
        name = part.get_attribute("title").split(":")[0]
        expected = width * shown[name] / tokens
        assert part.bounding_box()["width"] == pytest.approx(expected, abs=len(parts) * 2)


@pytest.mark.looks
def test_a_larger_window_shows_more_word_for_word(site, page):
    site.api.say("talk", *(f"{n}: we spoke of the harbour at some length." for n in range(100)))
    site.open(page, site.path(conversation="talk"))
    window(page, 500)
    small = told(page)["history"]
    narrow = page.locator(".glacier .verbatim").last.bounding_box()["width"]
    window(page, 4_000)
    expect(page.get_by_text("4,000 tokens", exact=True)).to_be_visible()
    assert told(page)["history"] > small
    assert page.locator(".glacier .verbatim").last.bounding_box()["width"] > narrow


@pytest.mark.looks
def test_a_question_lights_up_what_is_recalled_for_it(site, page):
    site.open(page, site.path())
    expect(page.locator(".glacier .hit")).to_have_count(0)
    window(page, 800)  # too small for the whole conversation
    page.get_by_label("Question").fill("Which order never arrived?")
    settled(page)
    asked = {"budget": 800, "question": "Which order never arrived?", "fold": False}
    context = site.api.post(f"{site.about}/context", asked)
    recalled = sorted(hit["entry"]["seq"] for hit in context["hits"])
    marks = page.locator(".glacier .hit").evaluate_all("all => all.map(e => e.dataset.seq)")
    assert sorted(map(int, marks)) == recalled
    assert 0 in recalled
    mark = page.locator('.glacier .hit[data-seq="0"]')
    mark.hover()
    expect(page.locator(".told")).to_contain_text("message 0: recalled for this question, score")
    mark.click()
    is_shown(page, 0)


@pytest.mark.looks
def test_layers_tell_what_they_are_and_open(site, page):
    site.open(page, site.path())
    window(page, 800)  # too small for the whole conversation
    (digest,) = site.api.get(f"{site.about}/digests/in-force")["data"]
    layer = page.locator(".glacier .ice")
    layer.hover()
    expect(page.locator(".told")).to_contain_text(
        f"messages {digest['first_seq']}\N{EN DASH}{digest['last_seq']} are covered by digest 1"
    )
    covered = digest["receipt"]["covers"]["tokens"]
    sizes = f"{digest['tokens']} tokens for {covered}"
    expect(page.locator(".told")).to_contain_text(sizes)
    context = site.api.post(f"{site.about}/context", {"budget": 800, "fold": False})
    recent = next(s for s in context["sections"] if s["name"] == "recent")
    page.locator(".glacier .verbatim").last.hover()
    expect(page.locator(".told")).to_contain_text(f"word for word, {recent['tokens']} tokens")
    page.locator(".glacier .verbatim").last.click()
    is_shown(page, recent["seqs"][0])
    under = page.locator(".glacier .under")
    under.hover()
    expect(page.locator(".told")).to_contain_text(f"covered by digest 1, {sizes}")
    under.click()
    is_shown(page, digest["first_seq"])
    layer.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Digests")).to_have_attribute("aria-selected", "true")
    assert page.url.endswith("digests?version=1")


def test_every_section_says_why_it_is_there(site, page):
    site.api.put(f"{site.about}/pins/8")
    site.open(page, site.path())
    window(page, 800)  # too small for the whole conversation
    page.get_by_label("Question").fill("Which order never arrived?")
    settled(page)
    asked = {"budget": 800, "question": "Which order never arrived?", "fold": False}
    sections = site.api.post(f"{site.about}/context", asked)["sections"]
    rows = page.locator(".sections tbody tr")
    expect(rows).to_have_count(len(sections))
    assert {"pinned", "recalled", "recent"} <= {one["name"] for one in sections}
    for row, section in zip(rows.all(), sections, strict=True):
        assert f"{section['tokens']:,}" in row.inner_text()
        assert len(row.locator(".why").inner_text()) > len(section["why"])
        expect(row.locator(".why")).to_contain_text(section["why"])


def test_what_is_neither_shown_nor_digested_is_marked_until_it_is_digested(site, page):
    site.api.say("bare", *(f"{n}: we spoke of the harbour at some length." for n in range(100)))
    site.open(page, site.path(conversation="bare"))
    window(page, 500)
    bare = page.locator(".glacier .bare")
    bare.hover()
    context = site.api.post("/conversations/bare/context", {"budget": 500, "fold": False})
    expect(page.locator(".told")).to_contain_text(
        f"messages 0\N{EN DASH}{context['seqs'][0] - 1}: not in"
    )
    page.get_by_role("button", name="Digest now").click()
    expect(page.locator(".glacier .ice").first).to_be_visible()
    expect(bare).to_have_count(0)
    assert site.api.get("/conversations/bare")["digests"] > 0


@pytest.mark.thorough
def test_looking_changes_nothing(site, page):
    site.api.say("talk", *(f"{n}: we spoke of the harbour at some length." for n in range(100)))
    site.open(page, site.path(conversation="talk"))
    for tokens in (500, 1_000, 8_000):
        window(page, tokens)
        told(page)
    assert site.api.get("/conversations/talk")["digests"] == 0
    work = site.api.get("/work")
    assert (work["due"], work["waiting"], work["events"].get("context", 0)) == ([], [], 0)


def test_a_window_that_is_too_small_is_explained(site, page, complaints):
    complaints.expected.append("422")
    site.api.post(
        f"{site.about}/messages", {"messages": [{"role": "user", "content": "word " * 900}]}
    )
    site.api.put(f"{site.about}/pins/43")
    site.api.say(site.conversation, *(f"{n}: small talk goes on." for n in range(400)))
    site.open(page, site.path())
    window(page, 500)
    expect(page.get_by_role("tabpanel").get_by_role("alert")).to_contain_text("tokens")
    window(page, 4_000)
    expect(page.locator(".glacier .pin")).to_be_visible()


def test_it_begins_with_the_window_last_used_and_redraws_with_a_pin(site, page):
    site.model.say("On Friday.")
    site.api.post(f"{site.about}/turns", {"message": "When?", "budget": 1_234})
    site.open(page, site.path())
    settled(page)
    slider = page.get_by_role("slider")
    expect(slider).to_have_attribute("aria-valuetext", "1,234 tokens")
    expect(page.locator(".explore")).to_contain_text("as last used")
    window(page, 500)
    expect(page.locator(".glacier .pin")).to_have_count(0)
    site.api.put(f"{site.about}/pins/8")
    come_back(page)
    expect(page.locator(".glacier .pin")).to_be_visible()


def test_a_conversation_with_one_picture_is_shown_in_a_window_that_holds_it(site, page, complaints):
    complaints.expected.append("422")  # the first window, before there is a larger one
    url = data_url("image/png", png(2_048, 2_048))
    picture = {"type": "image_url", "image_url": {"url": url, "detail": "high"}}
    content = [{"type": "text", "text": "What is on it?"}, picture] * 3
    messages = {"messages": [{"role": "user", "content": content}]}
    site.api.post("/conversations/photo/messages", messages)
    site.open(page, site.path(conversation="photo"))
    settled(page)
    expect(page.locator(".glacier .verbatim")).to_be_visible()
    expect(page.get_by_role("tabpanel").get_by_role("alert")).to_have_count(0)


@pytest.mark.thorough
def test_the_glacier_looks_well(site, page, shot, accessible):
    site.api.put(f"{site.about}/pins/8")
    site.open(page, site.path())
    window(page, 800)  # too small for the whole conversation
    page.get_by_label("Question").fill("Which order never arrived?")
    settled(page)
    expect(page.locator(".glacier .hit").first).to_be_visible()
    accessible(page)
    shot(page, "glacier", unfold_panel)
