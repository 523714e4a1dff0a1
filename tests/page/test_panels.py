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
