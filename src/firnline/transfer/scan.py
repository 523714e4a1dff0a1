"""Iterates over a tenant's conversations, page by page, while other processes keep writing.

A conversation is read up to the head that was read first; later entries are not included.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import takewhile
from typing import Final

from firnline.errors import ConflictError, UnknownConversation
from firnline.log import limits
from firnline.log.chain import flaw
from firnline.log.entry import Digest, Head, Key, Record
from firnline.protocols import Store, TopicAssignments

_TOPIC_TRIES: Final = 5
_NO_TOPICS: Final = TopicAssignments({}, 0, 0)


async def heads(
    store: Store,
    tenant: str,
    keys: Sequence[Key] | None = None,
    *,
    project: str | None = None,
    person: str | None = None,
) -> AsyncIterator[Head]:
    """The heads of these keys, which must exist; or all of the tenant, project or person."""
    for key in keys or ():
        head = await store.head(key)
        if head is None:
            raise UnknownConversation(f"there is no conversation {key.conversation!r}")
        yield head
    after, step = "", limits.PAGE_MAX
    while keys is None and (
        page := await store.conversations(
            tenant, project=project, person=person, after=after, limit=step
        )
    ):
        for head in page:
            yield head
        after = page[-1].conversation


async def checked_pages(
    store: Store, key: Key, head: Head, start: tuple[int, str]
) -> AsyncIterator[list[Record]]:
    """The records up to the head, with every hash checked; damage raises.

    `start` is a sequence number and the hash of the entry before it. `ConflictError` if the
    conversation is erased in the meantime, even if a new one has its name.
    """
    first, before = start
    while first < head.entries:
        page = await store.records(key, first, min(limits.READ_PAGE, head.entries - first))
        entries = await store.read(key, first, first + max(len(page), 1) - 1)
        same = [entry.hash for entry in entries] == [record.hash for record in page]
        if not page or not same or flaw(page[0], before):
            raise erased_error(key)
        first, before = first + len(page), page[-1].hash
        if first == head.entries and before != head.hash:
            raise erased_error(key)
        yield page


def erased_error(key: Key) -> ConflictError:
    """The error for a conversation that was erased after its head was read."""
    return ConflictError(f"{key.conversation} was erased while it was being read")


async def digests_up_to(store: Store, key: Key, head: Head) -> list[Digest]:
    """The digests that cover nothing after the head."""
    return list(takewhile(lambda digest: digest.last_seq <= head.seq, await store.digests(key)))


async def topics_up_to(
    store: Store, key: Key, head: Head
) -> tuple[TopicAssignments, Mapping[int, int]]:
    """The topics, and the topic of each entry that has one.

    Empty if entries after the head are assigned, or if other processes keep changing them.
    """
    for _ in range(_TOPIC_TRIES):
        known = await store.topics(key)
        if not known.topics or known.next_seq > head.entries:
            break
        members: dict[int, int] = {}
        for topic in known.topics:
            members |= dict.fromkeys(await store.members(key, topic), topic)
        if (await store.topics(key)).revision == known.revision:
            return known, members
    return _NO_TOPICS, {}
