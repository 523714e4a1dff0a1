"""How contexts are planned: one function per strategy, each returning a `Strategy`.

A strategy is pure: it gets a `View` and a `Budget` and returns a `Plan`. It never sees the store or
a model, so it can be changed at any time and tested without either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from types import NoneType
from typing import Any, Final

from firnline.context.plan import Strategy
from firnline.errors import InputError
from firnline.strategies.layered import layered
from firnline.strategies.progressive import progressive
from firnline.strategies.project import project
from firnline.strategies.rolling import rolling
from firnline.strategies.topics import topics
from firnline.strategies.window import window

__all__ = [
    "STRATEGIES",
    "as_strategy",
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
_NUMBER_MAX: Final = 1_000_000_000
_KINDS: Final = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    NoneType: "a whole number",
    tuple: "a list of the same length",
}
"""How errors name the types of parameters."""


def strategy(name: str, parameters: Mapping[str, Any] | None = None) -> Strategy:
    """The strategy called `name` with these parameters, as it is stored with a conversation."""
    if name not in STRATEGIES:
        raise InputError(f"strategy: unknown {name!r}; use {', '.join(STRATEGIES)}")
    create, arguments = STRATEGIES[name], dict(parameters or {})
    takes = signature(create).parameters
    if strange := [key for key in arguments if key not in takes]:
        raise InputError(
            f"strategy {name}: unknown parameter {strange[0]!r}; use {', '.join(takes)}"
        )
    for parameter in takes.values():
        value = arguments.get(parameter.name, parameter.default)
        if not _fits(value, parameter.default):
            kind = _KINDS[type(parameter.default)]
            raise InputError(
                f"strategy {name}: {parameter.name} must be {kind} (default {parameter.default!r})"
            )
    try:
        return create(**arguments)
    except TypeError as error:
        raise InputError(f"strategy {name}: {error}") from error


def as_strategy(given: Strategy | str) -> Strategy:
    """A strategy, or the one of that name."""
    if isinstance(given, str):
        return strategy(given)
    if not isinstance(given, Strategy):
        raise InputError(f"strategy: expected one or its name, got {type(given).__name__}")
    return given


def _fits(value: object, default: object) -> bool:
    """Whether a value has the default's type and range; others would fail later, in a plan."""
    if default is None:  # a number that follows from others unless it is given
        return value is None or _fits(value, 0)
    if isinstance(default, tuple):
        if not isinstance(value, list | tuple) or len(value) != len(default):
            return False
        return all(_fits(item, like) for item, like in zip(value, default, strict=True))
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, int | float):
        whole = isinstance(default, int)
        return isinstance(value, int if whole else int | float) and 0 <= value <= _NUMBER_MAX
    return isinstance(value, type(default))
