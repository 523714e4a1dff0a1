"""The page in a real Chromium, on a real server with a conversation to look at.

A test takes `site` and `page`, opens something with ``site.open(page, "#/...")``, and keeps
pictures of it with ``shot(page, "name")``. Whatever the page complains about fails the test.
"""

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import chromium
from firnline import Memory
from firnline.server.sample import CONVERSATION, add_sample
from firnline.testing import ModelServer
from rest_kit import Api
from rig import Running, running

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
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


def apart(work: Coroutine[Any, Any, Any]) -> Any:
    """What `work` returns, from another thread: in this one Playwright's event loop is running."""
    with ThreadPoolExecutor(1) as other:
        return other.submit(asyncio.run, work).result()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, once for a module: its event loop must be gone before other tests have theirs."""
    path = chromium.find()
    assert path is not None, chromium.HELP
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Site:
    """A running server: its address, its API, and the model behind it."""

    server: Running
    api: Api
    model: ModelServer
    conversation: str = CONVERSATION

    @property
    def url(self) -> str:
        return self.server.url

    def path(self, tab: str = "", conversation: str | None = None) -> str:
        """Where a conversation's panel is."""
        name = quote(conversation or self.conversation, safe="")
        return f"#/c/{name}/{tab}" if tab else f"#/c/{name}"

    def open(self, page: Page, path: str = "#/") -> None:
        """Go there, and wait until everything has been loaded."""
        page.goto(f"{self.url}/{path}")
        page.wait_for_load_state("networkidle")


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


@dataclass
class Complaints:
    """What the page complained about; a test says which of it was meant, by patterns."""

    heard: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def unexpected(self) -> list[str]:
        return [one for one in self.heard if not any(re.search(e, one) for e in self.expected)]


@pytest.fixture
def complaints() -> Complaints:
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


Shot = Callable[..., None]


@pytest.fixture
def shot() -> Shot:
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
                page.wait_for_timeout(300)  # transitions end
                path = SCREENSHOTS / f"{name}-{width}-{scheme}.png"
                page.screenshot(path=os.fspath(path), animations="disabled")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} pixels wide at {width}"
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(size)

    return take
