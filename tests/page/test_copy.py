"""Copying: a message as it was written, or one block of code."""

import pytest
from playwright.sync_api import expect

SAID = "Run **this**:\n\n```sh\nfirnline verify\n# <b>all of it</b>\n```\n\nThen look."


def allow(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])


def copied(page):
    expect(page.locator(".said")).to_contain_text("Copied.")
    return page.evaluate("navigator.clipboard.readText()")


def test_a_message_is_copied_as_it_was_written(site, page):
    allow(page)
    site.api.say("code", SAID)
    site.open(page, site.path(conversation="code"))
    page.locator('[data-seq="0"]').get_by_role("button", name="Copy", exact=True).click()
    assert copied(page) == SAID


def test_a_block_of_code_is_copied_without_what_stands_around_it(site, page, accessible, shot):
    allow(page)
    site.api.say("code", "How?", SAID)
    site.open(page, site.path(conversation="code"))
    block = page.locator('[data-seq="1"] pre')
    button = block.get_by_role("button", name="Copy the code")
    text = block.locator("code").bounding_box()
    above = button.bounding_box()
    assert above["y"] + above["height"] <= text["y"], "it covers no code"
    accessible(page)
    shot(page, "copying")
    button.click()
    assert copied(page) == "firnline verify\n# <b>all of it</b>\n"


def test_an_answer_that_comes_in_pieces_has_one_button_for_each_block(site, page):
    site.model.say(SAID)
    site.open(page, site.path(conversation="new"))
    page.get_by_label("Your message").fill("How?")
    page.get_by_label("Your message").press("Enter")
    expect(page.locator('[data-seq="1"] pre .copy')).to_have_count(1)
    expect(page.get_by_role("button", name="Copy the code")).to_have_count(1)


@pytest.mark.own_page
def test_where_copying_is_not_allowed_the_text_is_marked(site, page):
    page.add_init_script("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    site.api.say("code", "The gate code is 7319.")
    site.open(page, site.path(conversation="code"))
    page.locator('[data-seq="0"]').get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator(".said")).to_contain_text("Ctrl+C")
    assert page.evaluate("getSelection().toString()").strip() == "The gate code is 7319."
