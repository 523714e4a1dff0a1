"""An ASGI application behind real sockets, and logging that is put back afterwards."""

import asyncio
import io
import json
import logging
from contextlib import asynccontextmanager, contextmanager

import httpx2
import uvicorn

from firnline.server import logs

LOGGERS = ("", "firnline", "uvicorn", "uvicorn.error", "uvicorn.access")


@asynccontextmanager
async def served(app, **options):
    """A client of the application, which is served by uvicorn on a port of its own."""
    chosen = {"port": 0, "lifespan": "off", "ws": "none", "log_config": None, **options}
    server = uvicorn.Server(uvicorn.Config(app, **chosen))
    server.capture_signals = no_signals  # they are pytest's
    serving = asyncio.create_task(server.serve())
    while not server.started:
        assert not serving.done(), serving.result()
        await asyncio.sleep(0)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        try:
            yield client
        finally:
            server.should_exit = True
            await serving


@contextmanager
def no_signals():
    yield


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
