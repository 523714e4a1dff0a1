"""Commands and programs as separate processes, forked from one that has imported everything.

A new process needs two seconds before it serves; a fork starts after those. It
is killed like any other. ``python fork_server.py`` runs one command for each line of JSON.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache


class ForkServer:
    """Starts commands and waits for their end; for one thread at a time."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._running = subprocess.Popen(
            [sys.executable, __file__], stdin=pipe, stdout=pipe, text=True
        )
        atexit.register(self._close)

    def start(self, arguments: list[str], environment: dict[str, str], said: str) -> Forked:
        """A process of ``firnline``, whose standard error goes to the file `said`."""
        return Forked(self, self.ask(arguments=arguments, environment=environment, said=said))

    def run(self, code: str, folder: str, said: str) -> Forked:
        """A process that does in `folder` what ``python -W error -c code`` does."""
        environment = dict(os.environ)
        told = self.ask(code=code, folder=folder, environment=environment, said=said)
        return Forked(self, told)

    def ask(self, **told: object) -> int | None:
        """The answer of the process; see `_listen`."""
        self._running.stdin.write(json.dumps(told) + "\n")
        self._running.stdin.flush()
        return json.loads(self._running.stdout.readline())

    def _close(self) -> None:
        with self._running:
            self._running.stdin.close()


class Forked:
    """A process, with the interface of `subprocess.Popen`."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server, self.pid, self.returncode = server, pid, None

    def poll(self) -> int | None:
        """The exit code, negative if a signal ended it; None while it runs."""
        if self.returncode is None:  # once it was reaped, the number is free
            self.returncode = self._server.ask(ended=self.pid)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def wait(self, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        while (code := self.poll()) is None:
            assert time.monotonic() < deadline, "it does not end"
            time.sleep(0.01)
        return code


@cache
def fork_server() -> ForkServer:
    """The fork server of this process, from its first use until the end."""
    return ForkServer()


# -- as a process of its own ------------------------------------------------------------------


def _grown() -> Callable[[list[str]], int]:
    """The command, after everything it imports and reads is loaded.

    It does not change, so the garbage collector skips it: at the end of each fork that alone took
    half a second, and the pages that it touched were copied.
    """
    importlib.import_module("firnline.server.serve")
    importlib.import_module("firnline.mcp")
    importlib.import_module("firnline.embedding.onnx")
    importlib.import_module("firnline.log.tokens").counter().text("its vocabulary")
    main = importlib.import_module("firnline.cli").main
    gc.collect()
    gc.freeze()
    return main


def _ended(number: int) -> int | None:
    found, status = os.waitpid(number, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _become(environment: dict[str, str], said: str) -> None:
    """Set what a new process would inherit."""
    os.environ.clear()
    os.environ.update(environment)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, file in enumerate((nothing, nothing, os.open(said, os.O_WRONLY | os.O_APPEND))):
        os.dup2(file, number)


def _run(code: str, folder: str, **_: object) -> int:
    os.chdir(folder)
    warnings.simplefilter("error")
    exec(code, {"__name__": "__main__"})
    return 0


def _listen() -> int:
    main = _grown()
    for line in sys.stdin:
        told = json.loads(line)
        answer = _ended(told["ended"]) if "ended" in told else os.fork()
        if answer == 0 and "ended" not in told:
            _become(told["environment"], told["said"])
            return _run(**told) if "code" in told else main(told["arguments"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(_listen())
