"""A server with a bot, in this process or in one that is killed on demand.

``python -m support.telegram_server`` starts a server for each line of JSON, and prints its process
id and its exit code.
"""

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from firnline.log.tokens import counter
from firnline.models import Backoff, open_model
from firnline.server.telegram.settings import BotSettings
from firnline.server.telegram.webhook import router
from firnline.server.telegram.worker import TelegramWorker
from firnline.server.tenants import Tenants
from firnline.store import open_store
from support.http_server import Server, tcp

SECRET = "a-secret-for-webhooks_1"
TOKEN = "42:a-token-for-the-double"
PATIENCE = 60.0
"""Seconds after which a test stops waiting: something hangs."""


def bot_at(url, **fields):
    known = {"name": "house", "token": TOKEN, "secret": SECRET, "api_url": url}
    return BotSettings(**{**known, **fields})


async def until(condition, seconds=PATIENCE):
    """Wait for a condition that must become true."""
    ends = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < ends, "it does not happen"
        await asyncio.sleep(0.01)
    return found


class House:
    """A server with bots: `url` of the webhook, `memory`, `worker`, and the events."""

    def __init__(self, store, bots, *, model=None, replies=True, **options):
        self.events = []
        self.tenants = Tenants(store, {"embedder": None, "worker": False})
        quick = {"poll_seconds": 0.05, "backoff": Backoff(first=0.01, most=0.05)}
        self.worker = TelegramWorker(
            bots,
            self.tenants.memory,
            model=model,
            observer=self.events.append,
            **{**quick, **options},
        )
        self._bots, self._replies = bots, replies
        self.app = FastAPI(lifespan=self._life)
        self.app.include_router(
            router(bots, self.tenants.memory, observer=self.events.append, wake=self.worker.wake)
        )

    @asynccontextmanager
    async def _life(self, _):
        await self.tenants.start()
        if self._replies:
            self.worker.start()
        yield
        await self.worker.stop()
        await self.tenants.close()

    @asynccontextmanager
    async def served(self):
        """Real HTTP on a free port, in this event loop."""
        server = Server(
            uvicorn.Config(self.app, port=0, log_level="warning", ws="none", lifespan="on")
        )
        serving = asyncio.create_task(server.serve())
        await until(lambda: server.started or serving.done())
        port = server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/telegram/{self._bots[0].name}/webhook"
        try:
            yield self
        finally:
            server.told.set()
            await serving

    async def memory(self, tenant="default"):
        return await self.tenants.memory(tenant)

    def outcomes(self, name="telegram_update"):
        return [event.values["outcome"] for event in self.events if event.name == name]

    async def left(self):
        """The number of jobs."""
        return len(await self.tenants.store.cards("telegram", limit=1_000))

    async def idle(self):
        """Wait until every message is answered."""
        ends = time.monotonic() + PATIENCE
        while await self.left():
            assert time.monotonic() < ends, "there are answers that nobody gives"
            await asyncio.sleep(0.01)


# -- as a process of its own ------------------------------------------------------------------


class Mortal:
    """A store that kills its process: ``["put_cards", "telegram-sent", "before"]`` and so on."""

    def __init__(self, store, dies):
        self._store, self._dies = store, dies

    def __getattr__(self, name):
        found = getattr(self._store, name)
        method, kind, when = self._dies
        if name != method:
            return found

        async def fatal(*args, **options):
            meant = kind in _kinds(name, args, options)
            if meant and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            done = await found(*args, **options)
            if meant:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return fatal


def _kinds(name, args, options):
    """The subject of a call: kinds of cards, or the role of an appended message."""
    if name == "put_cards":
        return {card.kind for card in args[0]}
    if name == "append":
        return {draft.message.role for draft in args[1]}
    return {args[0]}


async def main(given):
    store = open_store(given["store"])
    if given.get("dies"):
        store = Mortal(store, given["dies"])
    model = open_model("test-model", url=given["model"], api_key="k", retries=0)
    house = House(store, [bot_at(given["telegram"])], model=model, lease_seconds=0.5)
    listener = tcp(given["port"])
    server = uvicorn.Server(uvicorn.Config(house.app, log_level="warning", ws="none"))
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    counter().text("The vocabulary is read once for all of them, too.")
    for line in sys.stdin:
        # A fork with everything imported: a new process would take seconds for that.
        child = os.fork()
        if not child:
            asyncio.run(main(json.loads(line)))
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        os.waitpid(child, 0)
        sys.stdout.write("ended\n")
        sys.stdout.flush()
