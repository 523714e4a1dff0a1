"""A page to test: its server, its errors, and work that must run in another thread."""

import asyncio
import re
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect

from firnline.cli.demo import CONVERSATION, SAMPLE, SMALL_TALK
from firnline.log.entry import Project
from firnline.log.message import utc_now
from firnline.memory import Memory
from firnline.testing import ModelServer
from support.live_server import Running
from support.rest_client import Api

NARROW_BELOW = 800
# The number of pending requests of the page. Navigation inside the page loads no document, so
# the browser itself does not report when it is done. And a module of the page.
COUNTED = """(() => {
  let waits = 0;
  const counted = (does) => function (...given) {
    waits += 1;
    const done = does.apply(this, given);
    const less = () => { waits -= 1; };
    done.then(less, less);
    return done;
  };
  window.fetch = counted(window.fetch);
  Response.prototype.json = counted(Response.prototype.json);
  window.__waits = () => waits;
  window.__module = (name) =>
    import(new URL(`${name}.js`, document.querySelector('script[type=module]').src));
})()"""
LOADED = """() => {
  const app = document.querySelector('#app');
  const waits = [...app.querySelectorAll('[role=status]')].some((e) => e.innerText.startsWith('Loading'));
  return app.querySelector('#main, form') !== null && !waits;
}"""  # noqa: E501
SETTLED = f"""async () => {{
  if (!window.__waits) return false;
  const loaded = {LOADED};
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  for (let still = 0; still < 3;) {{
    await frame();
    still = window.__waits() === 0 && loaded() ? still + 1 : 0;
  }}
  return true;
}}"""


_PACE = timedelta(minutes=7)


async def add_ticket(memory: Memory) -> None:
    """A digested conversation about order 1138, in a project."""
    task = "Get order 1138 to Ana before Saturday. Blocker: the parcel waits in Innsbruck."
    await memory.save_project(
        Project("support", status="active", schedule="answers within a day", task=task)
    )
    messages = [message for message in (*SAMPLE, *SMALL_TALK) if message.role != "system"]
    begin = utc_now() - len(messages) * _PACE
    timed = [message.at(begin + at * _PACE) for at, message in enumerate(messages)]
    await memory.append(CONVERSATION, timed)
    await memory.describe(CONVERSATION, project="support")
    await memory.context(CONVERSATION, 1_000)
    await memory.digest(CONVERSATION)


def apart(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of `work`, run in another thread: this one runs Playwright's event loop."""
    with ThreadPoolExecutor(1) as other:
        return other.submit(asyncio.run, work).result()


@dataclass
class Site:
    """A running server: its address, its API, and its model."""

    server: Running
    api: Api
    model: ModelServer
    conversation: str = CONVERSATION

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def about(self) -> str:
        """The conversation in the API."""
        return f"/conversations/{self.conversation}"

    def memory(self, tenant: str = "default") -> Memory:
        """The memory that the server itself uses; it lives in the server's thread."""
        return apart(self.server.parts.tenants.memory(tenant))

    def path(self, tab: str = "", conversation: str | None = None) -> str:
        """The URL of a conversation's panel."""
        name = quote(conversation or self.conversation, safe="")
        return f"#/c/{name}/{tab}" if tab else f"#/c/{name}"

    def open(self, page: Page, path: str = "#/") -> None:
        """Open a URL, and wait until everything has been loaded."""
        page.goto(f"{self.url}/{path}")
        settle(page)

    def panel(self, page: Page, tab: str) -> Locator:
        """A conversation's panel, opened."""
        self.open(page, self.path(tab))
        return page.get_by_role("tabpanel")


def settle(page: Page) -> None:
    """Wait until the page has no pending request and has drawn everything."""
    if not page.evaluate(SETTLED):  # no counter: a page without our script
        page.wait_for_function(LOADED)


def come_back(page: Page) -> None:
    """The user comes back to this window from another one."""
    page.evaluate("window.dispatchEvent(new Event('focus'))")


def unfold_panel(page: Page, width: int) -> None:
    """On a narrow screen the panel is behind a button; for `shot`."""
    button = page.get_by_role("button", name="Memory", exact=True)
    if width < NARROW_BELOW and button.is_visible():
        button.evaluate("button => button.click()")  # also while a dialog is open


def is_shown(page: Page, seq: int) -> None:
    """Fail unless the chat shows this entry."""
    expect(page.locator(f'.chat [data-seq="{seq}"]')).to_be_in_viewport()


@dataclass
class Complaints:
    """Errors of the page; a test gives the expected ones as patterns."""

    heard: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def unexpected(self) -> list[str]:
        return [one for one in self.heard if not any(re.search(e, one) for e in self.expected)]
