"""Photograph the page for the README.

    python tools/pictures/page.py [folder]

A real server in an empty store is talked to through its proxy, and Chromium shows what came of it.
The conversation is that of `build.py`; a small local server answers, not a model.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
from build import conversation
from playwright.sync_api import Page, sync_playwright

from firnline.testing import ModelServer

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
SIZE = {"width": 1440, "height": 900}
SHOP, TURNS = "bakery shop", 118
PROJECTS = {
    "bakery": {
        "status": "active",
        "schedule": "every morning at six",
        "task": "Get the summer prices onto the page. Blocker: the price of flour is not settled.",
    },
    "garden": {
        "status": "paused",
        "schedule": "Mondays",
        "task": "Plant the beans along the wall.",
    },
}
STRATEGY = {"name": "layered", "parameters": {"fan": 3, "digest_tokens": 100}}
BEANS = [
    "The beans need poles of two metres.",
    "Noted: bamboo, two metres, twelve of them.",
    "We decided to plant them along the south wall.",
    "Then the poles go there on Monday.",
]


@contextmanager
def served(store: Path, upstream: str) -> Iterator[str]:
    """A separate server with the sample conversation."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "FIRNLINE_UPSTREAM": upstream,
        "FIRNLINE_UPSTREAM_KEY": "none",
        "FIRNLINE_WINDOW_TOKENS": "4500",
        "FIRNLINE_EMBEDDER": "none",
        "FIRNLINE_LOG_LEVEL": "error",
    }
    command = [sys.executable, "-m", "firnline", "serve", "--sample", "--port", str(port)]
    command += ["--store", f"sqlite:///{store}/firnline.db"]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(command, env={**os.environ, **settings}, cwd=store)  # noqa: S603
    try:
        while process.poll() is None and not _ready(url):
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def _ready(url: str) -> bool:
    try:
        found = httpx2.get(f"{url}/api/v1/conversations/ticket-42").status_code
    except httpx2.TransportError:
        return False
    return found == httpx2.codes.OK


def fill(url: str, model: ModelServer) -> None:
    """Many turns through the proxy, and some projects."""
    with httpx2.Client(base_url=url, timeout=60) as http:
        for name, about in PROJECTS.items():
            http.put(f"/api/v1/projects/{name}", json=about).raise_for_status()
        said = [{"role": ("user", "assistant")[n % 2], "content": t} for n, t in enumerate(BEANS)]
        http.post("/api/v1/conversations/beans/messages", json={"messages": said})
        http.patch("/api/v1/conversations/beans", json={"project": "garden"})
        for turn, (question, answer) in enumerate(conversation(TURNS)):
            model.say(answer)
            asked = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": question}]}
            headers = {"X-Firnline-Conversation": SHOP}
            http.post("/v1/chat/completions", json=asked, headers=headers).raise_for_status()
            if turn == 0:
                about = {"project": "bakery", "strategy": STRATEGY}
                http.patch(f"/api/v1/conversations/{SHOP}", json=about).raise_for_status()
            while http.get("/api/v1/work").json()["due"]:
                time.sleep(0.02)


def photograph(url: str, folder: Path) -> None:
    """Four views, each in the colours that it looks best in."""
    shop = f"{url}/#/c/{SHOP.replace(' ', '%20')}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=SIZE, locale="en-GB")  # type: ignore[arg-type]
        _open(page, shop)  # a window of 4,000 tokens
        page.get_by_role("slider").fill("6")
        page.get_by_label("Question").fill("When is the shop closed in June?")
        _keep(page, folder / "glacier.png")
        page.emulate_media(color_scheme="dark")
        _open(page, f"{shop}/turns")
        _keep(page, folder / "turns.png")
        page.emulate_media(color_scheme="light")
        page.evaluate("localStorage.setItem('firnline.price', '2.5')")
        _open(page, f"{url}/#/people/Leo")
        _keep(page, folder / "people.png")
        page.set_viewport_size({**SIZE, "height": 1_400})
        _open(page, url)
        _keep(page, folder / "dashboard.png")
        browser.close()


def _open(page: Page, url: str) -> None:
    page.goto("about:blank")
    page.goto(url)
    page.wait_for_load_state("networkidle")


def _keep(page: Page, path: Path) -> None:
    page.wait_for_timeout(1_000)
    page.wait_for_load_state("networkidle")
    page.evaluate("document.activeElement?.blur()")
    page.screenshot(path=os.fspath(path), animations="disabled")


def main() -> None:
    """Take them all."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with (
        TemporaryDirectory() as store,
        ModelServer(model="gpt-4o-mini") as model,
        served(Path(store), model.url) as url,
    ):
        fill(url, model)
        photograph(url, folder)


if __name__ == "__main__":
    main()
