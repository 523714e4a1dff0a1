"""The page in a real Chromium, on a real server with a conversation to look at.

A test takes `site` and `page`, opens something with ``site.open(page, "#/...")``, and keeps
pictures of it with ``shot(page, "name")``. Whatever the page complains about fails the test.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

import chromium
from firnline import Memory
from firnline.server.sample import add_sample
from firnline.testing import ModelServer
from page_kit import Complaints, Site, apart
from rest_kit import Api
from rig import running

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
WIDE, NARROW = (1440, 900), (390, 844)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, once for a module: its event loop must be gone before other tests have theirs."""
    path = chromium.find()
    assert path is not None, chromium.HELP
    expect.set_options(timeout=20_000)  # many tests share the machine
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def site(tmp_path) -> Iterator[Site]:
    """A server with the sample conversation, whose digests were made without a model."""
    store = f"sqlite:///{tmp_path}/page.db"

    async def fill() -> None:
        async with Memory.open(store, embedder=None) as memory:
            await add_sample(memory)

    apart(fill())
    with ModelServer(model="gpt-4o-mini") as model:
        settings = {"model": "gpt-4o-mini", "model_url": model.url, "model_key": "sk-x"}
        with running(store=store, background=False, **settings) as server, Api(server.url) as api:
            yield Site(server, api, model)


@pytest.fixture
def complaints() -> Complaints:
    """What the page complains about; ``complaints.expected`` are patterns of what is meant."""
    return Complaints()


@pytest.fixture
def page(browser, site, complaints) -> Iterator[Page]:
    """A new page; console errors, exceptions and requests to anybody else fail the test."""
    context = browser.new_context(
        viewport={"width": WIDE[0], "height": WIDE[1]}, locale="en-GB", timezone_id="UTC"
    )
    context.set_default_timeout(20_000)
    page = context.new_page()
    heard = complaints.heard

    def asked(request) -> None:
        if not request.url.startswith((f"{site.url}/", "data:", "blob:")):
            heard.append(f"a request to {request.url}")

    page.on("console", lambda told: told.type == "error" and heard.append(told.text))
    page.on("pageerror", lambda error: heard.append(f"exception: {error}"))
    page.on("request", asked)
    yield page
    context.close()
    assert complaints.unexpected() == []


@pytest.fixture
def shot() -> Callable[..., None]:
    """Pictures of a page, light and dark, wide and narrow; nothing may stick out at the side.

    ``before(page, width)`` is called when the page has its new size.
    """

    def take(page: Page, name: str, before: Callable[[Page, int], None] | None = None) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        size = page.viewport_size
        for width, height in (WIDE, NARROW):
            page.set_viewport_size({"width": width, "height": height})
            if before is not None:
                before(page, width)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                path = SCREENSHOTS / f"{name}-{width}-{scheme}.png"
                page.screenshot(path=os.fspath(path), animations="disabled")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} pixels wide at {width}"
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(size)

    return take


@pytest.fixture
def accessible() -> Callable[[Page], None]:
    """Fail if axe-core has something serious to say about the page, light or dark."""

    def check(page: Page) -> None:
        page.evaluate(AXE.read_text())
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
            serious = [one for one in found if one["impact"] in ("serious", "critical")]
            told = [
                f"{one['id']}: {one['help']}: {node['html'][:200]} {node.get('failureSummary', '')}"
                for one in serious
                for node in one["nodes"][:3]
            ]
            assert not told, f"{scheme}: " + "\n".join(told)
        page.emulate_media(color_scheme="light")

    return check
