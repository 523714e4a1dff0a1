"""Regular expressions that are compiled when they are first used.

Those that know dates, names and preferences in several languages took a third of the time that
importing everything takes, and most programs use few of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, AnyStr, cast


class _Regex:
    """Stands for a pattern. Once used, a method of it is the pattern's own and costs no more."""

    def __init__(self, compiled: Callable[[], Any]) -> None:
        self._compiled = compiled  # the second time, `re` remembers it

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever copies or inspects it asks for more than it has
            raise AttributeError(name)
        value = getattr(self._compiled(), name)
        setattr(self, name, value)
        return value


def regex(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern of `expression`; what is wrong with it is told at its first use."""
    return cast("re.Pattern[AnyStr]", _Regex(partial(re.compile, expression, flags)))
