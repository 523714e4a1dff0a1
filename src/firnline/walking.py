"""Walking through all that a tenant has, however much it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from firnline import limits
from firnline.errors import UnknownConversation
from firnline.log import Head, Key
from firnline.protocols import Store


async def heads(
    store: Store, tenant: str, keys: Sequence[Key] | None = None, *, project: str | None = None
) -> AsyncIterator[Head]:
    """The conversations of these keys, which must be there; else all of the tenant or project."""
    for key in keys or ():
        head = await store.head(key)
        if head is None:
            raise UnknownConversation(f"there is no conversation {key.conversation!r}")
        yield head
    after, step = "", limits.PAGE_MAX
    while keys is None and (
        page := await store.conversations(tenant, project=project, after=after, limit=step)
    ):
        for head in page:
            yield head
        after = page[-1].conversation
