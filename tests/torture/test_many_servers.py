"""Three servers and four workers on one database, some of them killed and one of them paused."""

import asyncio
import contextlib
import os
import signal

import httpx2
import pytest
from torture_kit import TORTURE, Clock, Ledger, assert_healthy, settle_all, store_at

from firnline.memory import Memory
from firnline.strategies import rolling
from support import live_server
from support.fork_server import fork_server

SERVERS, WORKERS, CLIENTS = 3, 4, 4
CHATS = [f"chat-{i}" for i in range(4)]
PAUSE_SECONDS = 60 if TORTURE else 2
AFTER_SECONDS = 10 if TORTURE else 1
THINKING_SECONDS = 0.05  # between two appends of a client


@pytest.fixture(params=["postgres", "mongo"])
def url(request):
    """A database that many machines could share."""
    return request.getfixturevalue(request.param).url


class Fleet:
    """Processes of the real commands; those that were killed stay so."""

    def __init__(self, url, said):
        self.servers = [
            live_server.Forked(url, live_server.free_port(), FIRNLINE_WORKER="false")
            for _ in range(SERVERS)
        ]
        command = ["worker", "--store", url]
        self.workers = [
            fork_server().start(command, dict(os.environ), said) for _ in range(WORKERS)
        ]

    def stop(self):
        for server in self.servers:
            server.kill()
        for worker in self.workers:
            worker.send_signal(signal.SIGKILL)
            worker.wait(60)


class Client:
    """Appends through whichever server answers, and repeats what was not answered."""

    def __init__(self, number, fleet, ledger, rng):
        self._name, self._fleet, self._ledger, self._rng = f"c{number}", fleet, ledger, rng
        self.acked, self.stopping = 0, False

    async def run(self):
        async with httpx2.AsyncClient(timeout=20) as http:
            number = 0
            while not self.stopping:
                number += 1
                await self._say(http, self._rng.choice(CHATS), f"{self._name}.{number}")
                await asyncio.sleep(THINKING_SECONDS)

    async def _say(self, http, chat, name):
        texts = [f"{name} Where is order {name}?", f"{name} It left Hamburg on Monday."]
        messages = [
            {"role": role, "content": text}
            for role, text in zip(("user", "assistant"), texts, strict=True)
        ]
        while True:
            server = self._rng.choice(self._fleet.servers)
            with contextlib.suppress(httpx2.TransportError):
                answer = await http.post(
                    f"{server.url}/api/v1/conversations/{chat}/messages",
                    json={"messages": messages},
                    headers={"idempotency-key": name},
                )
                assert answer.status_code in (200, 201, 503), answer.text
                if answer.status_code != 503:
                    for text, entry in zip(texts, answer.json()["data"], strict=True):
                        self._ledger.ack(chat, entry["seq"], text)
                    self.acked += 1
                    return
            await asyncio.sleep(0.05)


async def until_more(clients, more=3):
    """Every client had more appends acknowledged since."""
    before = [client.acked for client in clients]
    async with asyncio.timeout(120):
        while any(now.acked < then + more for now, then in zip(clients, before, strict=True)):
            await asyncio.sleep(0.02)


async def blows(fleet, clients, rng):
    """Two are killed and one is paused, while the others continue."""
    await until_more(clients)
    paused, killed = rng.sample(fleet.workers, 2)
    paused.send_signal(signal.SIGSTOP)
    try:
        await until_more(clients)
        await asyncio.to_thread(rng.choice(fleet.servers).kill)
        await until_more(clients)
        killed.send_signal(signal.SIGKILL)
        await asyncio.sleep(PAUSE_SECONDS)
    finally:
        paused.send_signal(signal.SIGCONT)
    await until_more(clients)


async def until_digested(memory):
    """Some worker has done something."""
    async with asyncio.timeout(120):
        while not any([await memory.digests(chat) for chat in CHATS]):
            await asyncio.sleep(0.1)
    await asyncio.sleep(AFTER_SECONDS)


async def check_digests(memory, chat):
    """One chain, each link made by one worker, up to the end of the log."""
    digests = await memory.digests(chat)
    assert [digest.version for digest in digests] == list(range(1, len(digests) + 1))
    completed = [digest for digest in digests if digest.status == "completed"]
    assert [d.base for d in completed] == [None, *(d.version for d in completed[:-1])]
    ends = [digest.last_seq for digest in completed]
    assert ends == sorted(set(ends)), "the same entries were digested twice"
    assert ends[-1] == (await memory.head(chat)).seq
    assert not (await memory.lineage(chat)).stuck
    return len(completed)


@pytest.mark.promise("one-digester")
@pytest.mark.promise("durable")
@pytest.mark.requirement("E8")
async def test_servers_and_workers_share_a_database(url, rng, tmp_path):
    clock, ledger = Clock(), Ledger()
    async with Memory(store_at(url, clock=clock), clock=clock, worker=False) as memory:
        for chat in CHATS:
            await memory.set_strategy(chat, rolling(window=8, after_seq=3, words=60))
        said = tmp_path / "said.txt"
        said.touch()
        fleet = await asyncio.to_thread(Fleet, url, str(said))
        try:
            clients = [Client(i, fleet, ledger, rng) for i in range(CLIENTS)]
            async with asyncio.TaskGroup() as group:
                for client in clients:
                    group.create_task(client.run())
                try:
                    await blows(fleet, clients, rng)
                    await until_digested(memory)
                finally:
                    for client in clients:
                        client.stopping = True
        finally:
            await asyncio.to_thread(fleet.stop)
        assert "secret" not in said.read_text(), "a password was told"
        await settle_all(memory, clock)
        for chat in CHATS:
            await check_digests(memory, chat)
        await ledger.check(memory)
        assert sum(map(len, ledger.acked.values())) == sum(
            [(await memory.head(chat)).entries for chat in CHATS]
        ), "something is there twice"
        await assert_healthy(memory)
