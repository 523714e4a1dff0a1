"""The page that an export writes, without a server, in a real browser."""

import pytest

from firnline import Memory, Message, Part, ToolCall
from support.hostile_texts import PAYLOADS
from support.page_site import apart


@pytest.fixture
def exported(tmp_path):
    path = tmp_path / "exported.html"

    async def write():
        async with Memory.open("memory:") as memory:
            for payload in PAYLOADS:
                call = ToolCall.of(payload, payload, payload)
                await memory.append("c", Message.user([Part.of_text(payload), Part.file(payload)]))
                await memory.append(
                    "c", Message.assistant(payload, name=payload, tool_calls=[call])
                )
            await memory.describe("c", metadata={"title": PAYLOADS[0]})
            await memory.export(path, conversations=["c"], as_format="html")

    apart(write())
    return path


def test_nothing_in_it_runs_or_leaves(browser, exported):
    context = browser.new_context()
    page = context.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda line: complaints.append(line.text))
    page.on("dialog", lambda dialog: complaints.append(dialog.message) or dialog.dismiss())
    page.goto(exported.as_uri())
    assert page.evaluate("window.__pwned ?? 0") == 0
    assert asked == [exported.as_uri()]
    assert complaints == [], "the policy had nothing to refuse"
    assert page.locator("article").count() == 2 * len(PAYLOADS)
    assert page.locator("script, img, iframe, a, form, svg, object").count() == 0
    shown = page.locator("article").nth(1).locator(".text").first.inner_text()
    assert shown == PAYLOADS[0]
    # The style is the one that the policy names: it is in force.
    assert (
        page.evaluate("getComputedStyle(document.querySelector('article')).borderRadius") != "0px"
    )
    context.close()


@pytest.mark.thorough
def test_it_can_be_read_by_all_tenants(browser, exported, accessible):
    context = browser.new_context(viewport={"width": 420, "height": 800})
    page = context.new_page()
    text = exported.read_text()
    first = text.index("<article", text.index("<article") + 1)
    exported.write_text(text[: text.index("</article>", first) + 10] + "</main></body></html>")
    page.goto(exported.as_uri())
    accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    context.close()
