"""The glacier: the picture is what the API says, and changes with the window and the question."""

import pytest
from playwright.sync_api import expect

from page_kit import is_shown, unfold_panel


def window(page, tokens):
    """Move the window's slider there."""
    slider = page.get_by_role("slider")
    steps = int(slider.get_attribute("max"))
    slider.press("Home")
    for _ in range(steps + 1):
        if slider.get_attribute("aria-valuetext") == f"{tokens:,} tokens":
            return
        slider.press("ArrowRight")
    raise AssertionError(tokens)


def told(page):
    """The numbers of the budget bar."""
    page.wait_for_load_state("networkidle")
    expect(page.locator(".panel .stale")).to_have_count(0)
    rows = page.locator(".budget .legend li").all_inner_texts()
    return {row.split()[0]: int(row.split()[1].replace(",", "")) for row in rows}


@pytest.mark.parametrize("tokens", [500, 1_000, 4_000])
def test_the_bars_numbers_are_the_accounting_and_add_up(site, page, tokens):
    site.open(page, site.path())
    window(page, tokens)
    page.wait_for_timeout(500)  # the slider settles before anything is asked
    shown = told(page)
    context = site.api.post(f"{site.about}/context", {"budget": tokens})
    accounting = {name: n for name, n in context["accounting"].items() if n and name != "window"}
    assert shown == accounting
    assert sum(shown.values()) == tokens
    parts = page.locator(".budget .part").all()
    width = page.locator(".budget .bar").bounding_box()["width"]
    for part in parts:
        name = part.get_attribute("title").split(":")[0]
        expected = width * shown[name] / tokens
        assert part.bounding_box()["width"] == pytest.approx(expected, abs=len(parts) * 2)


def test_a_larger_window_shows_more_word_for_word(site, page):
    site.open(page, site.path())
    window(page, 500)
    page.wait_for_timeout(500)
    small = told(page)["history"]
    narrow = page.locator(".glacier .verbatim").last.bounding_box()["width"]
    window(page, 4_000)
    expect(page.get_by_text("4,000 tokens", exact=True)).to_be_visible()
    page.wait_for_timeout(500)
    assert told(page)["history"] > small
    assert page.locator(".glacier .verbatim").last.bounding_box()["width"] > narrow


def test_a_question_lights_up_what_is_recalled_for_it(site, page):
    site.open(page, site.path())
    expect(page.locator(".glacier .hit")).to_have_count(0)
    page.get_by_label("Question").fill("Which order never arrived?")
    expect(page.locator(".glacier .hit").first).to_be_visible()
    context = site.api.post(
        f"{site.about}/context", {"budget": 1_000, "question": "Which order never arrived?"}
    )
    recalled = sorted(hit["entry"]["seq"] for hit in context["hits"])
    marks = page.locator(".glacier .hit").evaluate_all("all => all.map(e => e.dataset.seq)")
    assert sorted(map(int, marks)) == recalled
    assert 0 in recalled
    mark = page.locator('.glacier .hit[data-seq="0"]')
    mark.hover()
    expect(page.locator(".told")).to_contain_text("entry 0: recalled for this question, score")
    mark.click()
    is_shown(page, 0)


def test_layers_tell_what_they_are_and_open(site, page):
    site.open(page, site.path())
    (digest,) = site.api.get(f"{site.about}/digests/in-force")["data"]
    layer = page.locator(".glacier .ice")
    layer.hover()
    expect(page.locator(".told")).to_contain_text(
        f"entries {digest['first_seq']}–{digest['last_seq']} lie under digest 1"
    )
    expect(page.locator(".told")).to_contain_text(f"{digest['tokens']} tokens")
    page.locator(".glacier .verbatim").last.click()
    context = site.api.post(f"{site.about}/context", {"budget": 1_000})
    first = next(s["seqs"][0] for s in context["sections"] if s["name"] == "recent")
    is_shown(page, first)
    layer.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Digests")).to_have_attribute("aria-selected", "true")
    assert page.url.endswith("digests?version=1")


def test_what_is_neither_shown_nor_digested_is_marked(site, page):
    site.api.say("bare", *(f"{n}: we spoke of the harbour at some length." for n in range(60)))
    strategy = {"name": "window", "parameters": {"keep_last": 4}}
    site.api.patch("/conversations/bare", {"strategy": strategy})
    site.open(page, site.path(conversation="bare"))
    context = site.api.post("/conversations/bare/context", {"budget": 1_000})
    force = site.api.get("/conversations/bare/digests/in-force")["data"]
    covered = {s for d in force for s in range(d["first_seq"], d["last_seq"] + 1)}
    missing = sorted(set(range(60)) - covered - set(context["seqs"]))
    marks = page.locator(".glacier .bare")
    assert (marks.count() > 0) == bool(missing)
    if missing:
        marks.first.hover()
        expect(page.locator(".told")).to_contain_text("not in the prompt")


def test_a_window_that_is_too_small_is_explained(site, page, complaints):
    complaints.expected.append("422")
    site.api.post(
        f"{site.about}/messages", {"messages": [{"role": "user", "content": "word " * 900}]}
    )
    site.api.put(f"{site.about}/pins/43")
    site.open(page, site.path())
    window(page, 500)
    expect(page.get_by_role("tabpanel").get_by_role("alert")).to_contain_text("tokens")
    window(page, 8_000)
    expect(page.locator(".glacier .pin")).to_be_visible()


def test_the_glacier_looks_well(site, page, shot, accessible):
    site.api.put(f"{site.about}/pins/8")
    site.open(page, site.path())
    page.get_by_label("Question").fill("Which order never arrived?")
    expect(page.locator(".glacier .hit").first).to_be_visible()
    accessible(page)
    shot(page, "glacier", unfold_panel)
