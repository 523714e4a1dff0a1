"""The real commands as processes of their own, forked from one that has imported all they need.

A new process reckons for two seconds before it serves; a fork begins where those have passed. It
is killed like any other. ``python nursery.py`` does what each line of JSON tells it to.
"""

import atexit
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache


class Nursery:
    """Starts commands, and hears of their end; for one thread at a time."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._running = subprocess.Popen(
            [sys.executable, __file__], stdin=pipe, stdout=pipe, text=True
        )
        atexit.register(self._close)

    def start(self, arguments: list[str], environment: dict[str, str], said: str) -> int:
        """The number of a process of ``firnline``, whose complaints go to the file `said`."""
        return self._ask(arguments=arguments, environment=environment, said=said)

    def ended(self, number: int) -> int | None:
        """The exit code of a process, negative if a signal ended it; None while it runs.

        Once it has been told, the number is nobody's.
        """
        return self._ask(ended=number)

    def _ask(self, **told: object) -> int | None:
        self._running.stdin.write(json.dumps(told) + "\n")
        self._running.stdin.flush()
        return json.loads(self._running.stdout.readline())

    def _close(self) -> None:
        with self._running:
            self._running.stdin.close()


@cache
def nursery() -> Nursery:
    """The one of this process, from the first time that it is needed until the end."""
    return Nursery()


# -- as a process of its own ------------------------------------------------------------------


def _grown() -> Callable[[list[str]], int]:
    """The command, once all that it imports and reads is there."""
    importlib.import_module("firnline.server.serving")
    importlib.import_module("firnline.mcp")
    importlib.import_module("firnline.tokens").counter().text("its vocabulary")
    return importlib.import_module("firnline.cli").main


def _ended(number: int) -> int | None:
    found, status = os.waitpid(number, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _become(environment: dict[str, str], said: str) -> None:
    """Have what a new process would be given."""
    os.environ.clear()
    os.environ.update(environment)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, file in enumerate((nothing, nothing, os.open(said, os.O_WRONLY | os.O_APPEND))):
        os.dup2(file, number)


def _listen() -> int:
    main = _grown()
    for line in sys.stdin:
        told = json.loads(line)
        answer = _ended(told["ended"]) if "ended" in told else os.fork()
        if answer == 0 and "ended" not in told:
            _become(told["environment"], told["said"])
            return main(told["arguments"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(_listen())
