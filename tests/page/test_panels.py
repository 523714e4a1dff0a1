"""The panels beside the chat, each against the real server."""
import pytest

def panel(page, width):
    """On a narrow screen the panel is behind a button."""
    button = page.get_by_role("button", name="Memory", exact=True)
    if width < 800 and button.is_visible():
        button.click()


def test_the_turns(site, page, shot):
    for q in ("Which order never arrived?", "When should it reach Ana?", "And who lives in Tokyo?"):
        site.model.say("Order 1138, the rope; it left Innsbruck.")
        site.api.post(f"/conversations/{site.conversation}/turns", {"message": q, "budget": 1000, "system": "Be brief."})
    site.open(page, site.path("turns"))
    shot(page, "turns", panel)
    page.locator(".panel-body").evaluate("e => e.scrollTop = 700")
    shot(page, "turns2", panel)
    page.locator(".panel-body").evaluate("e => e.scrollTop = 99700")
    shot(page, "turns3", panel)


def test_the_digests(site, page, shot):
    api, path = site.api, f"/conversations/{site.conversation}"
    api.post(f"{path}/important", {"important_data": {"custom_fields": {"plan": "gold"}}, "summary": "Order 1138, a rope, never arrived.\nIt left Innsbruck; Ana gets it on Friday."})
    site.model.fail("400", "400","400","400", repeat=True)
    r = api.ask("POST", f"{path}/digests/rebuild", {})
    print(r.status_code, r.text[:300])
    site.model.heal()
    for k in range(12):
        api.say(site.conversation, "Parcel %d weighs %d kg and goes to Oslo on 2026-05-%02d. %s" % (k, k+5, k+1, "It is heavy and blue and wrapped in paper. "*5), "Noted.")
    api.post(f"{path}/context", {"budget": 1000})
    site.model.fail("400", repeat=True)
    r = api.ask("POST", f"{path}/digests/rebuild", {})
    print(r.status_code, r.text[:300])
    site.open(page, site.path("digests"))
    shot(page, "digests", panel)
    for s in page.locator("article details > summary").all():
        s.click()
    page.wait_for_load_state("networkidle")
    page.locator(".panel-body").evaluate("e => e.scrollTop = 650")
    shot(page, "digests2", panel)
    page.locator(".panel-body").evaluate("e => e.scrollTop = 1450")
    shot(page, "digests3", panel)


def test_the_important(site, page, shot):
    api, path = site.api, f"/conversations/{site.conversation}"
    api.post(f"{path}/important", {"important_data": {"user_preferences": {"e-mail": "never"}}})
    api.post(f"{path}/important", {"important_data": {"custom_fields": {"plan": "gold"}}})
    site.open(page, site.path("important"))
    page.get_by_text("Add what you know").click()
    shot(page, "important", panel)
    page.get_by_role("button", name="Edit plan: gold").click()
    page.locator(".panel-body").evaluate("e => e.scrollTop = 950")
    shot(page, "important2", panel)
    page.get_by_role("button", name="Retract Tokyo").click()
    page.get_by_role("button", name="Retract it").click()
    page.get_by_role("button", name="Restore Tokyo").wait_for()
    page.get_by_role("button", name="Retract e-mail: never").click()
    shot(page, "important3", panel)


def test_the_topics(site, page, shot):
    api, path = site.api, f"/conversations/{site.conversation}"
    print([ (t["topic_id"], t["title"], t["total_messages"]) for t in api.get(f"{path}/topics")["data"]])
    t = api.get(f"{path}/topics")["data"]
    api.patch(f"{path}/topics/{t[-1]['topic_id']}/tags", {"add": ["parcel", "urgent"]})
    site.open(page, site.path("topics"))
    page.get_by_label("Where would this belong?").fill("Can you ship the rope to Japan?")
    page.get_by_role("button", name="Match").click()
    page.wait_for_load_state("networkidle")
    shot(page, "topics", panel)
    page.locator(".panel-body").evaluate("e => e.scrollTop = 450")
    shot(page, "topics2", panel)


def test_manage(site, page, shot):
    api, path = site.api, f"/conversations/{site.conversation}"
    api.put(f"{path}/pins/8")
    api.post(f"{path}/branch", {"name": "plan-b", "seq": 5})
    site.open(page, site.path("manage"))
    page.get_by_role("button", name="Verify everything").click()
    page.wait_for_load_state("networkidle")
    shot(page, "manage", panel)
    page.locator(".panel-body").evaluate("e => e.scrollTop = 750")
    shot(page, "manage2", panel)
    page.get_by_role("button", name="Export this conversation").click()
    page.get_by_role("link", name="Download").wait_for()
    page.locator(".panel-body").evaluate("e => e.scrollTop = 1550")
    shot(page, "manage3", panel)
    page.get_by_role("button", name="Erase this").click()
    page.get_by_label("Type").fill("ticket-42")
    page.get_by_role("button", name="Erase it").click()
    page.get_by_text("Certificate").wait_for()
    shot(page, "manage4", panel)
