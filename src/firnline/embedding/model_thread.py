"""Runs a model inside this process: loaded once, in its own thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Generic, TypeVar, TypeVarTuple
from weakref import WeakValueDictionary

from firnline.errors import ModelError

Model = TypeVar("Model")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EMBED_CHARS_MAX: Final = 65_536
"""Characters of a text that are read; every model here uses far fewer words."""


class ModelThread(Generic[Model]):
    """A model and its thread. Get one from `model_thread`, so that there is one for each model.

    The first job loads the model. Jobs run one by one in their order, so callers with short jobs
    take turns. A canceled caller returns at once; its job, if it has started, runs to its end and
    the result is dropped.
    """

    def __init__(self, name: str, load: Callable[[], Model]) -> None:
        self._name = name
        self._load = load
        self._model: Model | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"firnline-{name}")

    async def run(self, job: Callable[[Model, *Ts], T], *arguments: *Ts) -> T:
        """The job's result for the model and the arguments; every failure is a `ModelError`."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._work, job, *arguments)
        except ModelError:
            raise
        except Exception as error:
            text = f"{self._name} failed: {type(error).__name__}: {error}"
            raise ModelError(text, code="local") from error

    def _work(self, job: Callable[[Model, *Ts], T], *arguments: *Ts) -> T:
        if self._model is None:
            self._model = self._load()
        return job(self._model, *arguments)


_LANES: Final[WeakValueDictionary[tuple[object, ...], ModelThread[Any]]] = WeakValueDictionary()
_LOCK: Final = threading.Lock()


def model_thread(name: str, load: Callable[[], Model], *variant: object) -> ModelThread[Model]:
    """The process's thread for the model called `name`; it ends when it is no longer referenced.

    A `variant` of a model that is loaded differently has its own thread.
    """
    with _LOCK:
        found = _LANES.get((name, *variant))
        if found is None:
            found = _LANES[name, *variant] = ModelThread(name, load)
        return found
