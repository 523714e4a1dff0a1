"""Measures the way of one call through the package: functions, how deep they nest, files.

Counted is every function of `firnline` that runs for the call, on every thread and in every task.
A comprehension or a lambda belongs to the function it is written in. A task continues the stack of
the function that started it; a thread begins a stack of its own. What `firnline.testing` runs (the
model server of the tests) is not counted.

Two pairs of figures come out of it. *All* is everything. The *flow* is what a newcomer reads to
follow the call: it leaves out the vocabulary (`errors`, `log` and `language` hold values and rules
about words, which every line of code uses and which lead nowhere else), and a method of the store
is one hop, whatever the store does behind it.
"""

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from weakref import WeakKeyDictionary

import firnline

PACKAGE = f"{Path(firnline.__file__).parent}/"
VOCABULARY = ("errors", "log", "language")


def module_of(frame: FrameType) -> str:
    """The module inside the package, or nothing if the frame is not counted."""
    name = frame.f_code.co_filename
    if not name.startswith(PACKAGE) or frame.f_code.co_name.startswith("<"):
        return ""
    module = name.removeprefix(PACKAGE).removesuffix(".py").removesuffix("/__init__")
    return "" if module.startswith("testing") else module.replace("/", ".")


class Hops:
    """What ran: the functions in the order of their first call, and the deepest stacks."""

    def __init__(self) -> None:
        self.entered: dict[str, None] = {}
        self.files: set[str] = set()
        self.flow_files: set[str] = set()
        self.deepest: list[str] = []
        self.deepest_flow: list[str] = []
        self._on = False
        self._started_by: WeakKeyDictionary[asyncio.Task, list[str]] = WeakKeyDictionary()

    def figures(self) -> tuple[int, int, int, int]:
        """Depth and files of the flow, then of all."""
        flow = len(self.deepest_flow), len(self.flow_files)
        return *flow, len(self.deepest), len(self.files)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if not self._on or event != "call" or not (module := module_of(frame)):
            return
        stack = self._stack(frame)
        self.entered.setdefault(stack[-1])
        self.files.add(module)
        self.deepest = max(self.deepest, stack, key=len)
        flow = _flow(stack)
        if flow and flow[-1] == stack[-1]:
            self.flow_files.add(module)
            self.deepest_flow = max(self.deepest_flow, flow, key=len)

    def _stack(self, frame: FrameType | None) -> list[str]:
        found = []
        while frame is not None:
            if module := module_of(frame):
                found.append(f"{module}.{_name(frame)}")
            frame = frame.f_back
        return [*self._before(), *reversed(found)]

    def _before(self) -> list[str]:
        """The stack that started the running task."""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return []
        return self._started_by.get(task, []) if task else []

    @contextmanager
    def installed(self) -> Iterator["Hops"]:
        """Follow threads and tasks that start from now on; nothing is counted yet."""
        create_task = asyncio.BaseEventLoop.create_task

        def noting(loop, coroutine, **options):
            task = create_task(loop, coroutine, **options)
            if self._on:
                self._started_by[task] = self._stack(sys._getframe(1))
            return task

        asyncio.BaseEventLoop.create_task = noting
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield self
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            asyncio.BaseEventLoop.create_task = create_task

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what runs meanwhile."""
        self._on = True
        try:
            yield
        finally:
            self._on = False


def _flow(stack: list[str]) -> list[str]:
    """The stack without the vocabulary, and up to the first method of a store."""
    found = []
    for hop in stack:
        package = hop.split(".")[0]
        if package not in VOCABULARY:
            found.append(hop)
        if package == "store":
            return found if len(found) > 1 else []
    return found


def _name(frame: FrameType) -> str:
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name)  # since Python 3.11
    return ".".join(part for part in name.split(".") if part != "<locals>")
