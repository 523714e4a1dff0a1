"""Reads of several conversations, a few at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from firnline.log import limits
from firnline.log.entry import Scope
from firnline.protocols import Store

T = TypeVar("T")
R = TypeVar("R")

_READS_AT_ONCE: Final = 16  # other calls need connections, too


async def in_turn(read: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R]:
    """The results of reading each item, a few at once."""
    found: list[R] = []
    for start in range(0, len(items), _READS_AT_ONCE):
        some = items[start : start + _READS_AT_ONCE]
        found += await asyncio.gather(*(read(item) for item in some))
    return found


async def scope_conversations(store: Store, tenant: str, scope: Scope) -> list[str]:
    """The conversations in scope: the one it names, or all of its project, person or tenant."""
    if scope.conversation is not None:
        return [scope.conversation]
    names: list[str] = []
    while page := await store.conversations(
        tenant,
        project=scope.project,
        person=scope.person,
        after=names[-1] if names else "",
        limit=limits.PAGE_MAX,
    ):
        names += [head.conversation for head in page]
    return names
