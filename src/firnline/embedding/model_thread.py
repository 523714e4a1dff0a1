"""Where a model inside this process works: loaded once, in one thread of its own."""

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
"""Characters of a text that are looked at; every model here reads far fewer words than that."""


class ModelThread(Generic[Model]):
    """A model and its thread. Get one from `model_thread`, so that there is one for each model.

    The first job loads the model. Jobs are done one by one in the order they come, so those who
    cut their work into short ones take turns. A caller that is cancelled is gone at once; its job,
    if it has begun, ends by itself and nobody sees what it gave.
    """

    def __init__(self, name: str, load: Callable[[], Model]) -> None:
        self._name = name
        self._load = load
        self._model: Model | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"firnline-{name}")

    async def run(self, job: Callable[[Model, *Ts], T], *given: *Ts) -> T:
        """What the job makes of the model and what is given; every failure is a `ModelError`."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._work, job, *given)
        except ModelError:
            raise
        except Exception as error:
            text = f"{self._name} failed: {type(error).__name__}: {error}"
            raise ModelError(text, code="local") from error

    def _work(self, job: Callable[[Model, *Ts], T], *given: *Ts) -> T:
        if self._model is None:
            self._model = self._load()
        return job(self._model, *given)


_LANES: Final[WeakValueDictionary[tuple[object, ...], ModelThread[Any]]] = WeakValueDictionary()
_LOCK: Final = threading.Lock()


def model_thread(name: str, load: Callable[[], Model], *variant: object) -> ModelThread[Model]:
    """The process's lane for the model called `name`; it ends when nobody holds it any more.

    A `variant` of a model that is loaded in another way has a lane of its own.
    """
    with _LOCK:
        found = _LANES.get((name, *variant))
        if found is None:
            found = _LANES[name, *variant] = ModelThread(name, load)
        return found
