"""Regular expressions that are compiled at their first use.

Compiling the patterns for dates, names and preferences in several languages took a third of the
import time, and most programs use few of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, AnyStr, cast


class _Regex:
    """A lazy pattern. After its first use, a method is the pattern's own and costs no more."""

    def __init__(self, compiled: Callable[[], Any]) -> None:
        self._compiled = compiled  # `re` caches the pattern

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copying and inspection ask for names that it does not have
            raise AttributeError(name)
        value = getattr(self._compiled(), name)
        setattr(self, name, value)
        return value


def regex(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern of `expression`; a syntax error in it is raised at its first use."""
    return cast("re.Pattern[AnyStr]", _Regex(partial(re.compile, expression, flags)))
