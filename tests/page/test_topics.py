"""Topics on the page: sizes, tags, types of memory, and how they fade."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from firnline.log.message import format_time, utc_now
from support.page_site import is_shown, unfold_panel


def topics(site, conversation=None):
    about = f"/conversations/{conversation}" if conversation else site.about
    return site.api.get(f"{about}/topics")["data"]


def row(panel, title):
    return panel.locator(".topic").filter(has=panel.page.get_by_role("heading", name=title))


@pytest.mark.requirement("C6")
@pytest.mark.looks
def test_every_topic_shows_its_numbers(site, page, shot):
    panel = site.panel(page, "topics")
    known = topics(site)
    expect(panel.locator(".topic")).to_have_count(len(known))
    for number, topic in enumerate(known):
        card = panel.locator(".topic").nth(number)
        expect(card).to_contain_text(topic["title"])
        expect(card).to_contain_text(topic["memory_type"])
        expect(card).to_contain_text(f"{topic['active_messages']} messages active")
        expect(card).to_contain_text(f"half-life {topic['half_life_days']:g} day")
        expect(card).to_contain_text(f"importance {topic['importance']:.2f}")
        expect(card).to_contain_text(f"used {topic['access_count']} time")
        expect(card).to_contain_text(f"{topic['priority']:.2f}")
    expect(panel.locator(".topic").first).to_contain_text("active")
    shot(page, "topics", unfold_panel)


@pytest.mark.requirement("C3")
@pytest.mark.looks
def test_a_curve_halves_in_each_half_life(site, page):
    panel = site.panel(page, "topics")
    code = """async ([topic, days]) => {
        const { priorityIn, survives } = await __module('topics');
        return [days.map((day) => priorityIn(topic, day)), survives(topic)];
    }"""
    for topic in topics(site):
        half = topic["half_life_days"]
        values, end = page.evaluate(code, [topic, [0, half, 2 * half, 3 * half]])
        assert values == pytest.approx([topic["priority"] / 2**n for n in range(4)])
        (at_end,), _ = page.evaluate(code, [topic, [end]])
        assert at_end == pytest.approx(0.05)
    chosen, *others = topics(site)
    assert others
    about = f"Priority of {1 + len(others)} topics over the next 30"
    picture = panel.get_by_role("img", name=re.compile(about))
    expect(picture).to_contain_text(f"half after {chosen['half_life_days']:g} days")
    # The drawn line itself: at its half-life it is half as high as at its beginning.
    drawn = page.evaluate(
        """(half) => {
            const line = document.querySelector('.curve.chosen path:not(.touch)');
            const points = line.getAttribute('d').slice(1).split('L')
                .map((point) => point.split(' ').map(Number));
            const floor = Number(document.querySelector('.decay .grid').getAttribute('y1'));
            return [points[0], points[2 * half]].map(([, y]) => floor - y);
        }""",
        chosen["half_life_days"],
    )
    assert drawn[1] / drawn[0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.looks
def test_another_topics_curve_is_chosen(site, page):
    panel = site.panel(page, "topics")
    *_, last = topics(site)
    panel.get_by_role("button", name=last["title"], exact=True).click()
    expect(panel.locator("figcaption")).to_contain_text(last["title"])
    expect(panel.locator(".decay svg")).to_contain_text("half after 1 day")
    assert page.url.endswith(f"topic={last['topic_id']}")
    panel.get_by_text(f"Its {last['total_messages']} messages").click()
    expect(panel.locator(".covered li")).to_have_count(last["total_messages"])
    panel.locator(".covered").get_by_role("button").first.click()
    is_shown(page, last["topic_id"])


@pytest.mark.requirement("C9")
def test_tags_are_added_and_removed(site, page):
    panel = site.panel(page, "topics")
    *_, last = topics(site)
    card = row(panel, last["title"])
    card.get_by_label("Add a tag").fill("parcels")
    page.keyboard.press("Enter")
    expect(card.locator(".tag")).to_contain_text("parcels")
    assert topics(site)[-1]["tags"] == ["parcels"]
    card.get_by_role("button", name="Remove the tag parcels").click()
    expect(card.locator(".tag")).to_have_count(0)
    assert topics(site)[-1]["tags"] == []


@pytest.mark.requirement("C9")
def test_feedback_changes_the_importance(site, page):
    panel = site.panel(page, "topics")
    *_, last = topics(site)
    card = row(panel, last["title"])
    card.get_by_role("button", name="Not useful").click()
    expect(card).not_to_contain_text(f"importance {last['importance']:.2f}")
    less = topics(site)[-1]["importance"]
    assert less < last["importance"]
    expect(card).to_contain_text(f"importance {less:.2f}")
    card.get_by_role("button", name="Useful:", exact=False).first.click()
    expect(card).not_to_contain_text(f"importance {less:.2f}")
    assert topics(site)[-1]["importance"] > less


@pytest.mark.requirement("C9")
def test_topics_are_merged_after_a_question(site, page):
    panel = site.panel(page, "topics")
    known = topics(site)
    into, topic = known[-1], known[-2]
    panel.get_by_role("button", name=topic["title"], exact=True).click()
    panel.get_by_label("Merge into").select_option(str(into["topic_id"]))
    panel.get_by_role("button", name="Merge …").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert len(topics(site)) == len(known)
    panel.get_by_role("button", name="Merge …").click()
    page.get_by_role("button", name="Merge them").click()
    expect(panel.locator(".topic")).to_have_count(len(known) - 1)
    merged = {one["topic_id"]: one for one in topics(site)}
    both = into["total_messages"] + topic["total_messages"]
    assert merged[into["topic_id"]]["total_messages"] == both
    assert topic["topic_id"] not in merged


@pytest.mark.looks
def test_a_text_is_matched(site, page):
    panel = site.panel(page, "topics")
    panel.get_by_label("Which topic does this text match?").fill(
        "Order 1138 never arrived, I need the rope"
    )
    panel.get_by_role("button", name="Match").click()
    told = panel.locator(".match [role=status]")
    expect(told).to_contain_text("Order 1138 never arrived. I need the rope before Saturday.")
    expect(told).to_contain_text("it would join this topic")
    panel.get_by_label("Which topic does this text match?").fill("and then?")
    panel.get_by_role("button", name="Match").click()
    expect(told).to_contain_text("There is nothing to compare")


SUBJECTS = [
    "beans",
    "bicycles",
    "candles",
    "dentists",
    "eclipses",
    "ferries",
    "glaciers",
    "harbours",
    "invoices",
    "jigsaws",
    "kettles",
    "lighthouses",
    "magnets",
    "notebooks",
    "orchards",
    "parachutes",
    "quilts",
    "radiators",
    "saxophones",
    "telescopes",
    "umbrellas",
    "violins",
    "waterfalls",
    "xylophones",
]


@pytest.mark.requirement("C4")
@pytest.mark.looks
def test_topics_that_faded_are_listed_apart(site, page, shot):
    long_ago = utc_now() - timedelta(days=60)
    messages = []
    for number, subject in enumerate(SUBJECTS):
        text = f"{subject.title()} {subject}?"
        said = {"role": "user", "content": text}
        time = format_time(long_ago + timedelta(hours=number))
        messages.append({"message": said, "created_at": time})
        answer = {"role": "assistant", "content": "Noted."}
        messages.append({"message": answer, "created_at": time})
    site.api.post("/conversations/old/messages", {"messages": messages})
    site.api.say("old", "Zeppelins zeppelins!")
    known = topics(site, "old")
    faded = [topic for topic in known if topic["dormant"]]
    assert faded
    site.open(page, site.path("topics", "old"))
    panel = page.get_by_role("tabpanel")
    apart = panel.get_by_role("region", name="Archived topics")
    expect(apart.locator(".topic")).to_have_count(len(faded))
    awake = panel.get_by_role("region", name="Topics", exact=True).locator(".topic")
    expect(awake).to_have_count(len(known) - len(faded))
    shot(page, "topics-many", unfold_panel)
