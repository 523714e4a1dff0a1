"""The page in a real Chromium, on a real server with a sample conversation.

A test takes `site` and `page`, opens something with ``site.open(page, "#/...")``, and keeps
pictures of it with ``shot(page, "name")``. Any error on the page fails the test.

The site is new for each test, at the same address as the one before it; the page has no data
of earlier tests except cached files. A test that changes its page for
good, such as by its clock or by scripts that come before all others, is marked `own_page`.

Loading the page takes ten times as long as going from one place in it to another, so tests marked
`looks` share site and page: they change nothing of the sample conversation, and have conversations
of their own if they need any. Only the list of conversations may be older.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect, sync_playwright

from firnline import Memory
from firnline.strategies import layered
from firnline.testing import ModelServer
from support import chromium
from support.live_server import free_port, running
from support.page_site import COUNTED, Complaints, Site, add_ticket, apart, settle
from support.rest_client import Api

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
WIDE, NARROW = (1440, 900), (390, 844)
TABLETS = ((1024, 768), (820, 1180))
CUT_OFF = """() => {
  const isCut = (one) => {
    const box = one.getBoundingClientRect();
    return box.width && (box.right > innerWidth + 1 || box.left < -1);
  };
  const parts = document.querySelectorAll('.top > *, .tabs > *, .composer > *');
  return [...parts].filter(isCut).map((one) => one.outerHTML.slice(0, 120));
}"""
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--in-process-gpu",  # no GPU drawing: one process less
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
# Everything else that axe-core checks is the same in both color schemes.
ABOUT_COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
SERIOUS = """async ([within, options]) => {
  const { violations } = await axe.run(within, { resultTypes: ['violations'], ...options });
  return violations.filter((one) => ['serious', 'critical'].includes(one.impact))
    .flatMap((one) => one.nodes.slice(0, 3).map((node) =>
      `${one.id}: ${one.help}: ${node.html.slice(0, 200)} ${node.failureSummary || ''}`));
}"""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium, for these tests only: its event loop must end before other tests start theirs."""
    path = chromium.find()
    assert path is not None, chromium.HELP
    expect.set_options(timeout=20_000)  # many tests share the machine
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


# -- the site ---------------------------------------------------------------------------------


@pytest.fixture(scope="package")
def sample(tmp_path_factory) -> Path:
    """A store with the sample conversation, to be copied.

    What is digested, is so at once: there is one digest, and no other is due in the tests.
    """
    path = tmp_path_factory.mktemp("sample") / "page.db"

    async def fill() -> None:
        strategy = layered(tail=0.9, keep=0.08)
        async with Memory.open(f"sqlite:///{path}", embedder=None, strategy=strategy) as memory:
            await add_ticket(memory)

    apart(fill())
    return path


@contextmanager
def _served(sample: Path, folder: Path, port: int) -> Iterator[Site]:
    store = f"sqlite:///{shutil.copy(sample, folder)}"
    with ModelServer(model="gpt-4o-mini") as model:
        settings = {"model": "gpt-4o-mini", "model_url": model.url, "model_key": "sk-x"}
        with (
            running(store=store, port=port, background=False, **settings) as server,
            Api(server.url) as api,
        ):
            yield Site(server, api, model)


@pytest.fixture(scope="package")
def ports() -> tuple[int, int]:
    """For a test's own site and for shared ones: files are cached by address."""
    return free_port(), free_port()


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory, sample, ports) -> Iterator[Site]:
    """The shared site of those tests of a module that only read."""
    with _served(sample, tmp_path_factory.mktemp("shared"), ports[1]) as site:
        yield site


@pytest.fixture
def site(request, tmp_path, sample, ports) -> Iterator[Site]:
    """A server with the sample conversation, digested without a model."""
    if "looks" in request.keywords:
        yield request.getfixturevalue("shared_site")
        return
    with _served(sample, tmp_path, ports[0]) as site:
        yield site


# -- the page ---------------------------------------------------------------------------------


@pytest.fixture
def complaints() -> Complaints:
    """Errors of the page; ``complaints.expected`` are patterns of the expected ones."""
    return Complaints()


@contextmanager
def _context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(
        viewport={"width": WIDE[0], "height": WIDE[1]}, locale="en-GB", timezone_id="UTC"
    )
    context.set_default_timeout(20_000)
    context.add_init_script(COUNTED)
    yield context
    context.close()


class Pages:
    """One page for many tests: cached files are not loaded or parsed again."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._page: Page | None = None

    @contextmanager
    def one(self, site: Site) -> Iterator[Page]:
        """As good as new."""
        page = self._page or self._context.new_page()
        if self._page is None:
            _emptied(page, site)  # a page that could not be closed may have kept data
        self._page = None
        yield page
        for other in self._context.pages:
            if other is not page:
                other.close()
        try:
            _reset(page)
            _emptied(page, site)
            self._page = page
        except Error:
            page.close()  # the next one gets another


def _emptied(page: Page, site: Site) -> None:
    """No loaded script continues, and only files are kept."""
    page.goto(f"{site.url}/favicon.svg")
    page.evaluate("localStorage.clear(); sessionStorage.clear()")


def _reset(page: Page) -> None:
    page.unroute_all()
    page.context.clear_permissions()
    page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    page.emulate_media(color_scheme="light")


@pytest.fixture(scope="package")
def pages(browser) -> Iterator[Pages]:
    with _context(browser) as context:
        yield Pages(context)


@contextmanager
def _own(browser: Browser) -> Iterator[Page]:
    with _context(browser) as context:
        yield context.new_page()


@pytest.fixture(scope="package")
def looking(browser) -> Iterator[BrowserContext]:
    with _context(browser) as context:
        yield context


@pytest.fixture(scope="module")
def shared_page(looking, shared_site) -> Iterator[Page]:
    """The shared page of those tests of a module that only read."""
    page = looking.new_page()
    yield page
    page.close()


def _left(page: Page) -> None:
    """As a new page: no test sees the state of another one."""
    _reset(page)
    page.evaluate("localStorage.clear(); sessionStorage.clear(); location.hash = '#/search'")
    settle(page)


@contextmanager
def _heard(page: Page, site: Site, complaints: Complaints) -> Iterator[Page]:
    heard = complaints.heard

    def said(told) -> None:
        if told.type == "error":
            heard.append(told.text)

    def thrown(error) -> None:
        heard.append(f"exception: {error}")

    def asked(request) -> None:
        if not request.url.startswith((f"{site.url}/", "data:", "blob:")):
            heard.append(f"a request to {request.url}")

    listeners = {"console": said, "pageerror": thrown, "request": asked}
    for event, listener in listeners.items():
        page.on(event, listener)
    yield page
    for event, listener in listeners.items():
        page.remove_listener(event, listener)


@pytest.fixture
def page(request, browser, pages, site, complaints) -> Iterator[Page]:
    """A new page; console errors, exceptions and requests to other servers fail the test."""
    if "looks" in request.keywords:
        page = request.getfixturevalue("shared_page")
        with _heard(page, site, complaints):
            yield page
            _left(page)
    else:
        taken = _own(browser) if "own_page" in request.keywords else pages.one(site)
        with taken as page, _heard(page, site, complaints):
            yield page
    assert complaints.unexpected() == []


def _fits(page: Page, name: str) -> None:
    width = page.viewport_size["width"]
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"{name} is {wide} pixels wide at {width}"
    assert page.evaluate(CUT_OFF) == [], f"{name} at {width}"


@pytest.fixture
def shot() -> Callable[..., None]:
    """Pictures of a page, light and dark, wide and narrow.

    Nothing may overflow or be cut off there, nor on tablets.

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
            _fits(page, name)
        page.emulate_media(color_scheme="light")
        for width, height in TABLETS:
            page.set_viewport_size({"width": width, "height": height})
            _fits(page, name)
        page.set_viewport_size(size)

    return take


@pytest.fixture
def accessible() -> Callable[..., None]:
    """Fail if axe-core finds a serious problem on the page, light or dark.

    ``within`` limits the check to a part of the page.
    """

    def check(page: Page, within: str = "html") -> None:
        page.evaluate(f"{AXE.read_text()}; null")
        for scheme, options in (("light", {}), ("dark", ABOUT_COLOURS)):
            page.emulate_media(color_scheme=scheme)
            told = page.evaluate(SERIOUS, [within, options])
            assert not told, f"{scheme}: " + "\n".join(told)
        page.emulate_media(color_scheme="light")

    return check
