"""Fifty tenants at once, each with a secret word that no other tenant may see."""

import asyncio
import logging
import os
import random
import re
import secrets

import httpx2
import pytest

from firnline.server import tenants
from firnline.testing import ModelServer
from support.live_server import running
from support.rest_client import conforms, key_for

TENANTS = 50
STEPS = 200 if "FIRNLINE_TORTURE" in os.environ else 6
MARK = re.compile(rb"canary[0-9a-f]{16}")
LONG = "We spoke of the harbour, the ferry and the price of the tickets at some length. " * 3
NAMES = ("c", "d", "the same~1for all")


class Listener(logging.Handler):
    """Everything that the server logs, at any level."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.lines = []

    def emit(self, record):
        self.lines.append(self.format(record))


@pytest.fixture
def logged():
    """What is logged from now on.

    But for the HTTP client's own, which are ours as well, and what MongoDB's driver has to say
    about its connections, at length, and not about what goes through them.
    """
    listener, root = Listener(), logging.getLogger()
    others, root.handlers = root.handlers, [listener]  # pytest's would write each line twice more
    levels = {root: logging.DEBUG}
    quiet = ("httpx2", "httpcore2", "pymongo.connection", "pymongo.serverSelection")
    levels |= {logging.getLogger(name): logging.WARNING for name in quiet}
    before = {logger: logger.level for logger in levels}
    for logger, level in levels.items():
        logger.setLevel(level)
    yield listener.lines
    root.handlers = others
    for logger, level in before.items():
        logger.setLevel(level)


class Tenant:
    """One tenant that makes valid and invalid requests."""

    def __init__(self, number, http, key, names):
        self.canary = f"canary{secrets.token_hex(8)}"
        self._chance = random.Random(number)
        self._http, self._key, self._names = http, key, names
        self.statuses = []

    async def ask(self, method, path, body=None, **more):
        response = await self._http.request(
            method,
            f"/api/v1{path}",
            json=body,
            headers={"authorization": f"Bearer {self._key}"},
            **more,
        )
        conforms(method, f"/api/v1{path}", response)
        seen = set(MARK.findall(response.content))
        assert seen <= {self.canary.encode()}, f"{method} {path} tells another's word"
        self.statuses.append(response.status_code)
        return response

    def _talk(self, count):
        texts = (f"{self.canary} says {n}: {LONG}" for n in range(count))
        return [{"role": ("user", "assistant")[n % 2], "content": t} for n, t in enumerate(texts)]

    async def live(self, steps):
        for name in self._names:
            await self.ask("POST", f"/conversations/{name}/messages", {"messages": self._talk(8)})
        for step in range(steps):
            ways = self._ways()
            method, path, body = self._chance.choice(ways) if step else ways[0]
            name = self._chance.choice(self._names)
            await self.ask(method, path.replace("NAME", name), body)
        await self._prove()

    def _ways(self):
        asked = {"query": f"what does {self.canary} say", "limit": 20}
        says = {"message": f"What does {self.canary} say?", "budget": 3_000}
        return [
            ("POST", "/conversations/NAME/turns", says),  # with which each of them begins
            ("POST", "/conversations/NAME/context", {"budget": 1_200, "question": "Who says it?"}),
            ("POST", "/conversations/NAME/turns", {**says, "stream": True}),
            ("GET", "/conversations/NAME/messages", None),
            ("GET", "/conversations/NAME", None),
            ("GET", "/conversations/NAME/digests", None),
            ("GET", "/conversations/NAME/topics", None),
            ("GET", "/conversations/NAME/lineage", None),
            ("POST", "/search", asked),
            ("POST", "/search", {"query": "harbour ferry canary says", "limit": 100}),
            ("GET", "/export", None),
            ("GET", "/projects", None),
            ("GET", "/conversations", None),
            ("GET", "/work", None),
            ("GET", "/stats", None),
            ("PUT", f"/projects/{self.canary}", {"task": self.canary}),
            ("POST", "/conversations/NAME/digests", None),
            ("POST", "/conversations/NAME/verify", {}),
            # And what goes wrong, with the word in it.
            ("POST", "/conversations/NAME/messages", {"messages": [{"role": self.canary}]}),
            ("GET", f"/conversations/{self.canary}", None),
            ("PATCH", "/conversations/NAME", {"strategy": {"name": self.canary}}),
            ("POST", "/conversations/NAME/context", {"budget": 5, "system": self.canary * 50}),
            ("POST", "/conversations/NAME/important", {"important_data": {self.canary: 1}}),
            ("POST", "/exports", {"conversations": [self.canary]}),
            ("GET", f"/jobs/{self.canary}", None),
            ("POST", "/search", {"query": self.canary, "since": self.canary}),
        ]

    async def _prove(self):
        """What was its own is all there, and found."""
        response = await self.ask("POST", "/search", {"query": self.canary, "limit": 3})
        assert self.canary in response.text
        for name in self._names:
            assert (await self.ask("POST", f"/conversations/{name}/verify", {})).json()["ok"]
            response = await self.ask("GET", f"/conversations/{name}/messages", params={"limit": 8})
            assert response.text.count(self.canary) == 8


@pytest.mark.promise("tenants-apart")
@pytest.mark.requirement("A9")
@pytest.mark.long
def test_fifty_tenants_see_their_own_words_alone(url, monkeypatch, logged):
    monkeypatch.setattr(tenants, "TENANTS_OPEN_MAX", 20)  # memories come and go under the load
    with ModelServer(model="gpt-4o-mini") as model:
        model.fail(None, None, "500", None, "cut", None, "400", None, repeat=True)
        settings = {"model": "gpt-4o-mini", "model_url": model.url, "model_key": "sk-x"}
        settings |= {"auth": "required", "requests_per_minute": 0, "embedder": "words"}
        with running(store=url, **settings) as server:
            keys = [key_for(server, f"tenant-{number}") for number in range(TENANTS)]
            # A database's server shares the machine with us; it has the same code before it.
            whole = url.startswith(("sqlite", "memory"))
            steps, names = (STEPS, NAMES) if whole else (STEPS // 2, NAMES[-1:])
            lives = asyncio.run(_together(server.url, keys, steps, names))
    seen = {status for life in lives for status in life.statuses}
    assert {200, 201, 400, 404, 422, 502} <= seen, "things went right and wrong"
    assert len(logged) > 10 * TENANTS
    assert not [line for line in logged if MARK.search(line.encode())]
    sent = "\n".join(str(request) for request in model.requests)
    assert all(life.canary in sent for life in lives), "the model was asked, too"
    for request in model.requests:
        assert len(set(MARK.findall(str(request).encode()))) <= 1, "one tenant in one prompt"


async def _together(url, keys, steps, names):
    limits = httpx2.Limits(max_connections=TENANTS)
    async with httpx2.AsyncClient(base_url=url, timeout=300, limits=limits) as http:
        lives = [Tenant(number, http, key, names) for number, key in enumerate(keys)]
        await asyncio.gather(*(life.live(steps) for life in lives))
    return lives
