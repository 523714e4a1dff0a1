"""An ASGI application on real sockets, and logging that is restored afterwards."""

import asyncio
import io
import json
import logging
import socket
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx2
import uvicorn

from firnline.server import logs

LOGGERS = ("", "firnline", "uvicorn", "uvicorn.error", "uvicorn.access")


class Server(uvicorn.Server):
    """Stops as soon as it is `told` to, without polling: hundreds of tests wait for it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.told = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to pytest."""
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.told.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does it, without the tenths of a second in which it only sleeps.

        Browsers connect in advance: a connection that was just accepted is served first. Asyncio
        makes a connection in three steps of its loop. If the server is closed between them, the
        socket has no owner, and a later test fails because it is unclosed.
        """
        for listener in [one for server in self.servers for one in server.sockets]:
            asyncio.get_running_loop().remove_reader(listener)
        for _ in range(3):
            await asyncio.sleep(0)
        for closing in (*self.servers, *(sockets or ())):
            closing.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:
            await asyncio.sleep(0.001)
        for server in self.servers:
            await server.wait_closed()
        await self.lifespan.shutdown()


def tcp(port: int = 0) -> socket.socket:
    """A local socket; its protocol is named, or small answers would wait for each other."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    return listener


@asynccontextmanager
async def served(app, **options):
    """A client of the application, which uvicorn serves on a free port."""
    chosen = {"port": 0, "lifespan": "off", "ws": "none", "log_config": None, **options}
    server = Server(uvicorn.Config(app, **chosen))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        assert not serving.done(), serving.result()
        await asyncio.sleep(0)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        try:
            yield client
        finally:
            server.told.set()
            await serving


class Log(io.StringIO):
    """What was logged."""

    @property
    def lines(self):
        return self.getvalue().splitlines()

    def records(self, logger=""):
        """The lines of a logger as objects; everything is JSON."""
        found = [json.loads(line) for line in self.lines]
        return [record for record in found if record["logger"].startswith(logger)]


@contextmanager
def logged(level="debug", as_json=True, **options):
    """The server's log in memory."""
    known = [logging.getLogger(name) for name in LOGGERS]
    before = [(log.level, list(log.handlers), log.propagate) for log in known]
    log = Log()
    logs.configure(level, as_json, stream=log, **options)
    try:
        yield log
    finally:
        for logger, (level_, handlers, propagate) in zip(known, before, strict=True):
            logger.setLevel(level_)
            logger.handlers[:] = handlers
            logger.propagate = propagate
