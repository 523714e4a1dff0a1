"""The dashboard: projects, health, cost; and what a newcomer sees."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from firnline.engine.stats import FIXED_TOKENS
from firnline.log.entry import Digest, Key
from support.page_site import apart


@pytest.fixture
def busy(site):
    """Two projects, some turns, and a conversation of no project."""
    if len(site.api.get("/conversations")["data"]) == 1:
        fill(site)
    return site


def fill(site):
    api = site.api
    api.put("/projects/garden", {"status": "paused", "schedule": "Mondays", "task": "Beans."})
    api.say("beans", *(f"{n}: beans need poles, and the poles need string." for n in range(40)))
    api.patch("/conversations/beans", {"project": "garden"})
    api.say("loose ends", "One.", "Two.")
    for number in range(8):
        site.model.say(f"Answer {number}: it waits in Innsbruck.")
        api.post(f"{site.about}/turns", {"message": f"Where is parcel {number}?", "budget": 600})


def project(page, name):
    return page.get_by_role("article", name=f"Project {name}")


def rows(page):
    """Health, by its names."""
    found = page.locator(".health-card .rows > div")
    return {row.locator("dt").inner_text(): row.locator("dd") for row in found.all()}


# -- projects ---------------------------------------------------------------------------------


@pytest.mark.requirement("B9")
@pytest.mark.looks
def test_every_project_is_shown_with_what_it_is_about(busy, page):
    busy.open(page)
    for board in busy.api.get("/projects")["data"]:
        card = project(page, board["name"])
        for text in (board["status"], board["schedule"], board["task"]):
            expect(card).to_contain_text(text)
        numbers = dict(
            zip(
                card.locator(".numbers dt").all_inner_texts(),
                card.locator(".numbers dd").all_inner_texts(),
                strict=True,
            )
        )
        assert int(numbers["conversations"]) == board["conversations"]
        assert int(numbers["pending digests"]) == board["pending"]
        title = card.locator(".numbers dd").nth(2).get_attribute("title")
        assert int(title.replace(",", "")) == board["tokens"]
    active = project(page, "support")
    expect(active).to_have_class(re.compile("is-active"))
    known = active.locator(".situation")
    known.locator("summary").click()
    expect(known).to_contain_text("I need the rope before Saturday.")
    active.get_by_role("link", name=busy.conversation).click()
    expect(page.get_by_label("Your message")).to_be_visible()


def test_a_project_is_made_and_changed(site, page):
    site.open(page)
    page.get_by_role("button", name="New project").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("harbour / 2")
    dialog.get_by_label("Schedule").fill("Fridays")
    dialog.get_by_label("Current task").fill("Paint the ferry.")
    dialog.get_by_role("button", name="Save").click()
    card = project(page, "harbour / 2")
    expect(card).to_contain_text("Paint the ferry.")
    expect(dialog).to_have_count(0)
    card.get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("Schedule")).to_have_value("Fridays")
    dialog.get_by_label("Status").fill("done")
    dialog.get_by_label("Current task").fill("It is painted.")
    dialog.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("It is painted.")
    saved = next(p for p in site.api.get("/projects")["data"] if p["name"] == "harbour / 2")
    assert (saved["status"], saved["schedule"], saved["task"]) == (
        "done",
        "Fridays",
        "It is painted.",
    )


def test_a_long_name_and_a_long_status_leave_each_other_room(site, page, shot):
    status = "waiting for the carrier in Innsbruck"
    site.api.put(f"/projects/{'long-' * 24}", {"status": status})
    site.open(page)
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        badge = project(page, "long-").locator(".badge")
        assert badge.bounding_box()["height"] < 60
    shot(page, "dashboard-long")


def test_a_new_project_does_not_overwrite_one_of_its_name(site, page):
    before = site.api.get("/projects")["data"]
    site.open(page)
    expect(project(page, "support")).to_be_visible()
    page.get_by_role("button", name="New project").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(" support ")
    dialog.get_by_label("Current task").fill("Something else.")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The project support exists already")
    assert site.api.get("/projects")["data"] == before


def test_a_project_that_cannot_be_saved_says_why_and_keeps_what_was_typed(site, page, complaints):
    complaints.expected.append("503")
    problem = {"status": 503, "detail": "The store is away.", "code": "x", "retryable": True}
    site.open(page)
    page.route("**/projects/*", lambda route: route.fulfill(status=503, json=problem))
    page.get_by_role("button", name="New project").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("harbour")
    dialog.get_by_label("Current task").fill("Paint the ferry.")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The store is away.")
    expect(dialog.get_by_label("Current task")).to_have_value("Paint the ferry.")
    page.unroute("**/projects/*")
    dialog.get_by_role("button", name="Save").click()
    expect(project(page, "harbour")).to_be_visible()


def test_a_conversation_is_given_to_a_project(busy, page):
    busy.open(page)
    loose = page.get_by_role("region", name="Conversations without a project")
    expect(loose.locator("tbody tr")).to_have_count(1)
    loose.get_by_label("Move loose ends to a project").select_option("garden")
    expect(loose).to_have_count(0)
    expect(project(page, "garden").get_by_role("link", name="loose ends")).to_be_visible()
    assert busy.api.get("/conversations/loose ends")["project"] == "garden"


# -- cost -------------------------------------------------------------------------------------


@pytest.mark.requirement("B8")
@pytest.mark.looks
def test_sent_tokens_are_compared_with_the_full_history(busy, page):
    costs = busy.api.get("/costs")
    turns = busy.api.all(f"{busy.about}/turns")
    assert (costs["turns"], costs["sent"]) == (8, sum(turn["tokens"] for turn in turns))
    assert costs["whole"] > costs["sent"]
    busy.open(page)
    cost = page.get_by_role("region", name="Cost")
    picture = cost.get_by_role("img")
    label = picture.get_attribute("aria-label")
    paid = costs["sent"] + costs["digest_tokens"]
    assert f"{paid:,} tokens were spent" in label
    expect(cost).to_contain_text(
        f"Spent: {costs['sent']:,} tokens in prompts, {costs['digest_tokens']:,}"
    )
    expect(cost).to_contain_text("of the prompts repeats the start of the prompt before it")
    expect(cost).to_contain_text("at best")
    assert f"would have been {costs['whole']:,}" in label
    assert picture.locator("path.sent").get_attribute("d").count("L") == 8
    cost.get_by_label("$ per million tokens").fill("1000")
    saved = abs(costs["whole"] - paid) * 1000 / 1e6
    balance = cost.locator(".tally.three b").last
    expect(balance).to_have_text(f"${saved:.2f}")
    page.reload()
    expect(cost.get_by_label("$ per million tokens")).to_have_value("1000")
    expect(balance).to_have_text(f"${saved:.2f}")
    stats = busy.api.get("/stats", price=1000)
    for way in ("lean", "with_tools", "whole"):
        expect(cost.locator(".ways")).to_contain_text(f"${stats[way]['price']:.2f}")
    cost.locator("summary").click()
    expect(cost.locator("tbody tr")).to_have_count(8)
    box = picture.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    expect(cost.locator("figcaption")).to_contain_text("until ")


@pytest.mark.looks
def test_what_an_answer_would_cost_says_what_it_reckons_with(busy, page):
    busy.open(page)
    expect(page.locator(".ways")).to_contain_text(f"{FIXED_TOKENS:,} tokens of instructions")
    stats = busy.api.get("/stats")
    assert stats["whole"]["tokens"] == stats["tokens"] + stats["conversations"] * FIXED_TOKENS


@pytest.mark.looks
def test_a_price_can_be_changed(busy, page):
    busy.open(page)
    price = page.get_by_label("$ per million tokens")
    served = price.input_value()
    told = busy.api.get("/costs")
    paid = told["sent"] + told["digest_tokens"]
    for typed, counts in [("3", 3), (".5", 0.5), ("", float(served)), ("40", 40)]:
        price.press("Control+a")
        price.press("Delete")
        expect(price).to_have_value("")
        price.press_sequentially(typed)
        expect(price).to_have_value(typed)
        costs = paid * counts / 1e6
        money = f"${costs:.4f}" if costs < 0.01 else f"${costs:.2f}"
        expect(page.locator(".tally.three > div").first).to_contain_text(f"turns, {money}")
    page.reload()
    expect(price).to_have_value("40")


def test_a_conversation_that_cost_more_than_its_full_history_says_so(site, page):
    site.api.post("/conversations/short/turns", {"message": "Hi"})
    costs = site.api.get("/costs")
    for each in (costs, *costs["data"]):
        each.update(sent=each["whole"], digest_tokens=3)  # as digests can make it
    page.route("**/api/v1/costs*", lambda route: route.fulfill(json=costs))
    site.open(page)
    told = page.locator(".tally.three > div").last
    expect(told).to_contain_text("more than that")
    expect(told).not_to_have_class("good")
    expect(page.locator(".chart figcaption")).to_contain_text("more than that")
    expect(page.locator(".chart path.saved")).to_have_count(0)
    numbers = page.get_by_role("region", name="In numbers")
    expect(numbers).to_contain_text("more tokens than the full history")
    page.get_by_role("region", name="Cost").locator("summary").click()
    expect(page.locator("details tbody tr").last).to_contain_text("% more")


def test_without_a_turn_the_cost_is_explained(site, page):
    site.open(page)
    expect(page.get_by_role("region", name="Cost")).to_contain_text("No turn yet")


# -- health -----------------------------------------------------------------------------------


@pytest.mark.requirement("E7")
def test_health_shows_what_is_pending_stuck_and_failed_with_links(site, page):
    api = site.api
    api.say("late", *(f"{n}: beans need poles, and the poles need string." for n in range(80)))
    api.say("broken", *(f"{n}: beans need poles, and the poles need string." for n in range(20)))
    store = site.server.parts.tenants.store
    clock = store._clock

    async def trouble():
        await store.mark_pending(Key("default", "late"), datetime.now(UTC) + timedelta(minutes=12))
        store._clock = lambda: datetime.now(UTC) - timedelta(hours=1)
        lease = await store.lease(Key("default", "late"), "gone", 60)
        await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=7))
        store._clock = clock
        lease = await store.lease(Key("default", "broken"), "w", 60)
        begun = await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=7))
        failed = {"status": "failed", "error": "the model has no words today"}
        await store.finish_digest(lease, replace(begun, **failed))
        await store.release(lease)

    apart(trouble())
    site.open(page)
    health = rows(page)
    expect(health["Server"]).to_contain_text("ready")
    expect(health["Pending digests"]).to_contain_text(re.compile(r"^1\s*next retry in 1\d minutes"))
    expect(health["Pending digests"].get_by_role("link", name="late")).to_be_visible()
    expect(health["Stuck"]).to_contain_text("late, digest 1")
    expect(health["Failed"]).to_contain_text("the model has no words today")
    expect(health["Answers by"]).to_have_text("gpt-4o-mini")
    health["Failed"].get_by_role("link").click()
    expect(page.get_by_role("tab", name="Digests")).to_have_attribute("aria-selected", "true")
    assert "/c/broken/digests?version=1" in page.url


@pytest.mark.looks
def test_everything_is_verified_on_demand(busy, page):
    busy.open(page)
    page.get_by_role("button", name="Prove that nothing was lost").click()
    entries = busy.api.get("/stats")["messages"]
    told = page.locator(".verify [role=status]")
    expect(told).to_contain_text(f"Every hash of {entries} messages in 3 conversations")
    problem = {
        "conversation": "beans", "ok": False, "entries": 1, "tokens": 1, "head": "sha256:0",
        "problems": ["message 3 is not as it was acknowledged"],
    }  # fmt: skip
    page.route("**/beans/verify", lambda route: route.fulfill(json=problem))
    page.get_by_role("button", name="Prove that nothing was lost").click()
    expect(page.locator(".verify .trouble")).to_contain_text("beans: message 3 is not as it was")


# -- a newcomer -------------------------------------------------------------------------------


@pytest.fixture
def bare(site):
    """The same without any conversation."""
    site.api.delete(site.about)
    return site


def test_a_newcomer_is_shown_how_to_begin(bare, page, shot, accessible):
    bare.open(page)
    begin = page.get_by_role("region", name="How to begin")
    expect(begin).to_contain_text(f'base_url="{bare.url}/v1"')
    expect(begin).to_contain_text(f"curl {bare.url}/api/v1/conversations/first/turns")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    begin.get_by_role("button", name="Copy: A request with curl").click()
    expect(page.locator(".said")).to_contain_text("Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == begin.locator("pre").nth(1).inner_text()
    accessible(page)
    shot(page, "dashboard-new")
    begin.get_by_role("button", name="Start a conversation").click()
    expect(page.get_by_label("Your message")).to_be_focused()


def test_the_line_to_copy_works_as_it_is(bare, page):
    """The commands shown to a newcomer work."""
    bare.open(page)
    line = page.get_by_role("region", name="How to begin").locator("pre").nth(1).inner_text()
    url, body = re.search(r"curl (\S+)", line)[1], re.search(r"-d '(.*)'", line)[1]
    bare.model.say("Noted.")
    answer = bare.api.http.post(url, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200
    page.reload()
    expect(page.get_by_role("region", name="How to begin")).to_have_count(0)
    expect(page.locator(".conversations")).to_contain_text("first")


def test_everything_is_exported_and_an_empty_server_takes_it_in(busy, page, tmp_path):
    busy.open(page)
    page.get_by_role("button", name="Export and import").click()
    board = page.get_by_role("dialog", name="Export and import")
    names = {one["conversation"] for one in busy.api.get("/conversations")["data"]}
    board.get_by_role("button", name="Export everything").click()
    expect(board).to_contain_text("The export is done")
    with page.expect_download() as download:
        board.get_by_role("link", name="Download").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    for name in names:
        busy.api.delete(f"/conversations/{name}")
    page.reload()
    expect(page.get_by_role("region", name="How to begin")).to_be_visible()
    page.get_by_role("button", name="Export and import").click()
    board.get_by_label("File").set_input_files(path)
    board.get_by_role("button", name="Import it").click()
    expect(board).to_contain_text(f"{len(names)} conversations with")
    for name in names:
        expect(page.locator(".conversations")).to_contain_text(name)
    expect(page.get_by_role("region", name="How to begin")).to_have_count(0)


# -- pictures ---------------------------------------------------------------------------------


@pytest.mark.looks
def test_the_dashboard_looks_well(busy, page, shot, accessible):
    busy.open(page)
    page.get_by_text("What is known in").click()
    accessible(page)
    shot(page, "dashboard")

    def below(page, width):
        page.locator(".chart").scroll_into_view_if_needed()

    shot(page, "dashboard-below", below)

    page.get_by_role("button", name="New project").click()
    accessible(page)
    shot(page, "dashboard-project")


def test_what_cannot_be_loaded_is_reported_and_tried_again(site, page, complaints):
    complaints.expected.append("503")
    problem = {"status": 503, "detail": "The store is away.", "code": "x", "retryable": True}
    for what in ("stats", "projects?*", "costs", "work"):
        page.route(f"**/api/v1/{what}", lambda route: route.fulfill(status=503, json=problem))
    site.open(page)
    expect(page.get_by_role("alert").first).to_contain_text("The store is away.")
    page.unroute_all()
    expect(page.get_by_role("button", name="Try again").first).to_be_visible()
    page.evaluate("document.querySelectorAll('.trouble button').forEach((b) => b.click())")
    expect(project(page, "support")).to_be_visible()
    expect(page.locator(".tally").first).to_be_visible()


@pytest.mark.own_page
def test_health_comes_back_by_itself(site, page, complaints):
    complaints.expected.append("503")
    page.clock.install()
    site.open(page, site.path())
    problem = {"status": 503, "detail": "The store is away.", "code": "x", "retryable": True}
    page.route("**/api/v1/me", lambda route: route.fulfill(status=503, json=problem))
    page.get_by_role("link", name="Dashboard").click()
    health = page.get_by_role("region", name="Health")
    expect(health.get_by_role("alert")).to_contain_text("The store is away.")
    page.unroute_all()
    page.clock.fast_forward(16_000)
    expect(health).to_contain_text("Answers by")
    expect(health.get_by_role("alert")).to_have_count(0)


@pytest.mark.own_page
def test_the_list_stays_in_sight_when_it_cannot_be_loaded(site, page, complaints):
    complaints.expected.append("503")
    page.clock.install()
    site.open(page)
    listed = page.locator(".conversations")
    expect(listed).to_contain_text(site.conversation)
    problem = {"status": 503, "detail": "The store is away.", "code": "x", "retryable": True}
    page.route("**/api/v1/conversations?*", lambda route: route.fulfill(status=503, json=problem))
    page.clock.fast_forward(16_000)
    expect(listed.get_by_role("alert")).to_contain_text("The store is away.")
    expect(listed).to_contain_text(site.conversation)
    page.unroute_all()
    page.clock.fast_forward(16_000)
    expect(listed.get_by_role("alert")).to_have_count(0)
