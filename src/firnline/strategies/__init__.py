"""How contexts are planned: one function per strategy, each returning a `Strategy`.

A strategy is pure: it looks at a `View` and a `Budget` and answers with a `Plan`. It never sees the
store or a model, so it can be changed at any time and tested without either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from firnline.errors import InputError
from firnline.plan import Strategy
from firnline.strategies.layered import layered
from firnline.strategies.progressive import progressive
from firnline.strategies.project import project
from firnline.strategies.rolling import rolling
from firnline.strategies.topics import topics
from firnline.strategies.window import window

__all__ = [
    "STRATEGIES",
    "layered",
    "progressive",
    "project",
    "rolling",
    "strategy",
    "topics",
    "window",
]

STRATEGIES: Final[Mapping[str, Callable[..., Strategy]]] = {
    made.__name__: made for made in (layered, progressive, project, topics, window, rolling)
}
"""The strategies by name."""


def strategy(name: str, parameters: Mapping[str, Any] | None = None) -> Strategy:
    """The strategy called `name` with these parameters, as it is stored with a conversation."""
    if name not in STRATEGIES:
        raise InputError(f"strategy: {name!r} is none of {', '.join(STRATEGIES)}")
    try:
        return STRATEGIES[name](**dict(parameters or {}))
    except TypeError as error:
        raise InputError(f"strategy {name}: {error}") from error
