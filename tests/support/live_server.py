"""A real server on a real socket, in a thread or as a process."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Coroutine
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import uvicorn
from fastapi import FastAPI

from firnline import Memory
from firnline.server import serve
from firnline.server.app import create_app
from firnline.server.settings import load
from firnline.server.state import Parts
from support.fork_server import fork_server
from support.http_server import Server

T = TypeVar("T")


@dataclass
class Running:
    url: str
    app: FastAPI
    loop: asyncio.AbstractEventLoop

    @property
    def parts(self) -> Parts:
        return self.app.state.parts

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, run in the server's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def memory(self, tenant: str = "default") -> Memory:
        return self.run(self.parts.tenants.memory(tenant))


def _serve(
    loop: asyncio.AbstractEventLoop, server: uvicorn.Server, listener: socket.socket
) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(server.serve([listener]))


@contextmanager
def running(**settings: Any):
    """The server in a thread of this process, on a free port."""
    chosen = load(**{"port": 0, "embedder": "none", "store": "memory:", **settings})
    app = create_app(chosen)
    listener = serve.bind(chosen)
    server = Server(serve.server_config(app, chosen))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_serve, args=(loop, server, listener), daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not (server.started and app.state.parts.ready):
        assert thread.is_alive(), "the server did not start"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    listener.listen(2_048)  # as `firnline serve` does
    try:
        yield Running(serve.address(listener), app, loop)
    finally:
        loop.call_soon_threadsafe(server.told.set)
        thread.join(30)
        assert not thread.is_alive()


def free_port() -> int:
    """A port that the system gives to no other process while this one lives.

    On Linux, a bound socket that does not listen blocks others, unless they ask for this port.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        if sys.platform == "linux":
            holder.detach()  # it stays bound
    return port


class Process:
    """The command `firnline serve`, to be killed."""

    def __init__(self, store: str, port: int, *more: str, **variables: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._said = tempfile.NamedTemporaryFile()  # noqa: SIM115 - until the process has ended
        arguments = ["serve", "--store", store, "--port", str(port), "--log-level", "error", *more]
        environment = {**os.environ, "FIRNLINE_EMBEDDER": "none", **variables}
        self._running = self._start(arguments, environment)
        self._wait(port)

    def _start(self, arguments: list[str], environment: dict[str, str]) -> Any:
        command = [sys.executable, "-m", "firnline", *arguments]
        nothing = subprocess.DEVNULL
        return subprocess.Popen(command, env=environment, stdout=nothing, stderr=self._said)

    def _wait(self, port: int) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self._running.poll() is not None:
                raise AssertionError(Path(self._said.name).read_text())
            with suppress(httpx2.TransportError):
                if _listens(port) and httpx2.get(f"{self.url}/readyz", timeout=60).is_success:
                    return
            time.sleep(0.03)
        raise AssertionError("the server is not ready")

    @property
    def pid(self) -> int:
        return int(self._running.pid)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        self._running.send_signal(how)
        code = self._running.wait(60)
        self._said.close()
        return code


class Forked(Process):
    """The same, forked from a process that has imported everything: for tests that need many."""

    def _start(self, arguments: list[str], environment: dict[str, str]) -> Any:
        return fork_server().start(arguments, environment, self._said.name)


def _listens(port: int) -> bool:
    """Whether a process does; cheaper than requesting a page."""
    with socket.socket() as knocking:
        return knocking.connect_ex(("127.0.0.1", port)) == 0
