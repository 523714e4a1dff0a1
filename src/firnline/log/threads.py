"""Work that grows with users' text, without holding up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from firnline.log import limits

_T = TypeVar("_T")
_VALUE_CHARS: Final = 8
_VALUES_MAX: Final = 20_000


async def run_by_size(chars: int, work: Callable[[], _T], most: int = limits.LOOP_CHARS_MAX) -> _T:
    """The result of `work` on so many characters: run here if they are `most`, else in a thread."""
    if chars <= most:
        return work()
    return await asyncio.to_thread(work)


def text_size(value: object, most: int = limits.LOOP_CHARS_MAX + 1) -> int:
    """About how many characters a value has as JSON; more than `most` are not counted."""
    size, waiting = 0, [value]
    while waiting and size < most:
        one = waiting.pop()
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, Mapping):
            size += _VALUE_CHARS * len(one)
            waiting += [*one, *one.values()] if len(one) < most else ()
        elif isinstance(one, list | tuple):
            size += _VALUE_CHARS * len(one)
            waiting += one if len(one) < most else ()
        else:
            size += _VALUE_CHARS
    return min(size, most)


def has_many_values(value: object) -> bool:
    """Whether the fast encoder would need too long for the value."""
    left, waiting = _VALUES_MAX, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
        else:
            continue
        left -= len(one) + 1
        if left < 0:
            return True
    return False
