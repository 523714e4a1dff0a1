"""Important data on the page: evidence, replaced values, and changes that can be undone."""

import json

import pytest
from playwright.sync_api import expect

from firnline.testing.scripted_model import think
from support.page_site import is_shown, unfold_panel

FILLER = "The harbour, the ferry and the price of the tickets were talked about at some length. "


def important(site, conversation=None):
    about = f"/conversations/{conversation}" if conversation else site.about
    return site.api.get(f"{about}/state")["important_data"]


def told(site):
    """The prompt of a model."""
    context = site.api.post(f"{site.about}/context", {"budget": 1_000})
    return "\n".join(str(message["content"]) for message in context["messages"])


@pytest.mark.promise("evidence")
@pytest.mark.looks
def test_every_item_has_its_words_and_its_place(site, page, shot):
    panel = site.panel(page, "important")
    for item in site.api.get(f"{site.about}/important")["data"]:
        row = panel.locator(".item").filter(has_text=item["value"])
        for seq in item["seqs"]:
            expect(row.get_by_role("button", name=f"Show message {seq} in")).to_be_visible()
        if item["quote"] != item["value"]:
            expect(row.locator("q")).to_have_text(item["quote"])
    shot(page, "important", unfold_panel)
    panel.get_by_role("region", name="Decisions").get_by_role(
        "button", name="Show message 8"
    ).click()
    is_shown(page, 8)


def test_a_value_is_edited_and_the_old_one_is_history(site, page, shot):
    panel = site.panel(page, "important")
    panel.get_by_role("button", name="Edit e-mail: prefer").click()
    panel.get_by_label("New value of e-mail").fill("only on weekdays")
    panel.get_by_role("button", name="Save").click()
    older = panel.get_by_role("list", name="Earlier values of e-mail")
    expect(older).to_contain_text("prefer")
    expect(older).to_contain_text("replaced by the application")
    assert important(site)["user_preferences"] == {"e-mail": "only on weekdays"}
    shot(page, "important-edited", unfold_panel)
    older.get_by_role("button", name="Restore").click()
    expect(older).to_contain_text("only on weekdays")
    assert important(site)["user_preferences"] == {"e-mail": "prefer"}


def test_enter_saves_what_was_typed(site, page):
    panel = site.panel(page, "important")
    panel.get_by_role("button", name="Edit e-mail: prefer").click()
    panel.get_by_label("New value of e-mail").press("Enter")  # nothing to save yet
    panel.get_by_label("New value of e-mail").fill("only on weekdays")
    panel.get_by_label("New value of e-mail").press("Enter")
    expect(panel.get_by_role("list", name="Earlier values of e-mail")).to_contain_text("prefer")
    assert important(site)["user_preferences"] == {"e-mail": "only on weekdays"}
    panel.get_by_text("Add an item").click()
    panel.get_by_role("textbox", name="Name", exact=True).fill("plan")
    panel.get_by_role("textbox", name="Value", exact=True).fill("gold")
    panel.get_by_role("textbox", name="Value", exact=True).press("Enter")
    expect(panel.locator(".item").filter(has_text="plan gold")).to_be_visible()
    assert important(site)["custom_fields"] == {"plan": "gold"}


@pytest.mark.promise("undoable")
def test_the_last_change_is_undone(site, page):
    panel = site.panel(page, "important")
    expect(panel.get_by_text("The last change")).to_have_count(0)
    panel.get_by_text("Add an item").click()
    panel.get_by_label("Field").select_option("key_decisions")
    expect(panel.get_by_role("textbox", name="Name", exact=True)).to_have_count(0)
    panel.get_by_label("Field").select_option("custom_fields")
    panel.get_by_role("textbox", name="Name", exact=True).fill("plan")
    expect(panel.get_by_role("button", name="Remember it")).to_be_disabled()
    panel.get_by_role("textbox", name="Value", exact=True).fill("gold")
    panel.get_by_role("button", name="Remember it").click()
    expect(panel.locator(".item").filter(has_text="plan gold")).to_be_visible()
    assert important(site)["custom_fields"] == {"plan": "gold"}
    expect(panel).to_contain_text("The last change is digest 2, changed by hand")
    panel.get_by_role("button", name="Undo it").click()
    page.get_by_role("dialog").get_by_role("button", name="Undo it").click()
    expect(panel.get_by_text("The last change")).to_have_count(0)
    assert important(site)["custom_fields"] == {}
    assert site.api.get(site.about)["in_force"] == [1]


def test_an_item_of_a_list_is_retracted_and_restored(site, page, shot):
    (decision,) = important(site)["key_decisions"]
    panel = site.panel(page, "important")
    panel.get_by_role("button", name=f"Retract {decision}").click()
    page.get_by_role("button", name="Retract it").click()
    row = panel.locator(".item.retracted").filter(has_text=decision)
    expect(row).to_contain_text("retracted")
    assert f'"{decision}": "no longer holds"' in told(site), "prompts say"
    expect(panel.get_by_role("region", name="Your own fields")).to_have_count(0)
    shot(page, "important-retracted", unfold_panel)
    row.get_by_role("button", name="Restore").click()
    expect(panel.locator(".item.retracted")).to_have_count(0)
    expect(panel.get_by_role("button", name=f"Retract {decision}")).to_be_visible()
    assert "no longer holds" not in told(site)


def test_a_named_value_is_retracted_and_restored(site, page):
    panel = site.panel(page, "important")
    panel.get_by_role("button", name="Retract e-mail: prefer").click()
    page.get_by_role("button", name="Retract it").click()
    expect(panel.locator(".item.retracted")).to_contain_text("no longer holds")
    assert important(site)["user_preferences"] == {"e-mail": "no longer holds"}
    panel.get_by_role("button", name="Restore: e-mail: prefer").click()
    expect(panel.locator(".item.retracted")).to_have_count(0)
    assert important(site)["user_preferences"] == {"e-mail": "prefer"}


def test_an_item_of_a_list_is_edited_in_one_step(site, page):
    panel = site.panel(page, "important")
    panel.get_by_role("button", name="Edit Tokyo").click()
    panel.get_by_label("New value of Tokyo").fill("Kyoto")
    panel.get_by_role("button", name="Save").click()
    expect(panel.locator(".item").filter(has_text="Kyoto")).to_be_visible()
    expect(panel.locator(".item.retracted").filter(has_text="Tokyo")).to_be_visible()
    assert "Kyoto" in important(site)["entities"]
    assert site.api.get(site.about)["in_force"] == [2], "one digest, so one undo"


def test_what_proves_an_item_is_pinned(site, page):
    panel = site.panel(page, "important")
    row = panel.get_by_role("region", name="Decisions")
    row.get_by_role("button", name="Pin #8").click()
    expect(row.get_by_role("button", name="Unpin #8")).to_be_visible()
    assert site.api.get(site.about)["pinned"] == [8]
    row.get_by_role("button", name="Unpin #8").click()
    expect(row.get_by_role("button", name="Pin #8", exact=False)).to_have_text("Pin")
    assert site.api.get(site.about)["pinned"] == []


@pytest.fixture
def disputed(site):
    """A conversation whose model finds a seat, another seat later, and an invented fact."""
    say = [("seat", "aisle", 0), ("seat", "window", 2), ("pet", "a dragon", 1)]
    quotes = ["I prefer the aisle seat.", "My dragon flies along.", "I prefer the window seat now."]
    items = [
        {"field": "user_preferences", "name": n, "value": v, "seqs": [s], "quote": quotes[s]}
        for n, v, s in say
    ]

    def answer(request):
        if "response_format" not in request:
            return think(request)
        is_told = quotes[0] in json.dumps(request["messages"])
        return json.dumps({"items": items if is_told else []})

    site.model.answer = answer
    texts = [quotes[0], "Noted.", quotes[2], *(f"{n}: {FILLER * 3}" for n in range(30))]
    site.api.say("seats", *texts)
    site.api.post("/conversations/seats/context", {"budget": 1_000})
    return site


def test_a_later_value_replaces_and_can_be_undone(disputed, page, shot):
    disputed.open(page, disputed.path("important", "seats"))
    panel = page.get_by_role("tabpanel")
    older = panel.get_by_role("list", name="Earlier values of seat")
    expect(older).to_contain_text("aisle")
    expect(older.get_by_role("button", name="Show message 2 in the chat")).to_be_visible()
    assert important(disputed, "seats")["user_preferences"] == {"seat": "window"}
    panel.get_by_text("Set aside: 1 claim").click()
    expect(panel).to_contain_text("pet: a dragon")
    expect(panel).to_contain_text("its quote is in none of the messages")
    shot(page, "important-history", unfold_panel)
    older.get_by_role("button", name="Restore").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore it").click()
    expect(older).to_contain_text("window")
    assert important(disputed, "seats")["user_preferences"] == {"seat": "aisle"}
