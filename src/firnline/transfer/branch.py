"""Branches: a new conversation that starts with the entries of another one, and how to find them.

Entries are copied page by page. Each page has its own idempotency key, derived from the source: the
same call continues after a crash, and changes nothing if the branch is complete.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, NamedTuple, Self

from firnline.errors import ConflictError, InputError, StoreCorrupt, UnknownConversation
from firnline.log import chain, limits
from firnline.log.entry import (
    BRANCH,
    Digest,
    EntryDraft,
    Head,
    Idempotency,
    Key,
    Record,
    fingerprint,
    genesis,
    runs,
)
from firnline.log.message import encode_json
from firnline.log.text import Json
from firnline.protocols import Store
from firnline.store import journal
from firnline.transfer.scan import heads

_TRACES: Final = 32


async def branch_conversation(store: Store, source: Key, seq: int, target: Key) -> Head:
    """Create `target` with the entries 0 to `seq` of `source`; see `Memory.branch`."""
    first_entries = await store.at(source, [0])
    head = await store.head(source)
    if head is None:
        raise UnknownConversation(f"there is no conversation {source.conversation!r}")
    if type(seq) is not int or not 0 <= seq <= head.seq:
        raise InputError(f"{source.conversation} has no message {seq!r}")
    if target == source:
        raise InputError("a branch must have a different name than its source")
    digests = inherited(await store.digests(source), seq)
    pinned = {entry.seq for entry in await store.pinned(source)}
    first, before = 0, genesis(source)
    while first <= seq:
        page = await _page(store, source, first, seq, before)
        if first == 0 and page[0].hash not in {entry.hash for entry in first_entries}:
            # What was read so far belongs to a conversation that no longer exists.
            raise ConflictError(f"{source.conversation} was erased while it was being branched")
        drafts = await asyncio.to_thread(_drafts, page, before, pinned)
        replayed = await _append(store, target, drafts, first, _name(source, seq))
        if first == 0:
            await _describe(store, head, seq, target, replayed=replayed)
        first, before = first + len(page), page[-1].hash
    await _put_digests(store, target, digests)
    await journal.adopt_new(store, target)
    created = await store.head(target)
    if created is None or created.seq < seq:
        raise ConflictError(f"{target.conversation} was erased while it was being created")
    return created


# -- finding branches -------------------------------------------------------------------------


class Traces(NamedTuple):
    """What identifies copies of a conversation's messages, also after it is erased.

    A copy has the sequence number and the bytes of its original, its time among them. `times` are
    those that a copy of the conversation can have as its own.
    """

    key: Key
    bodies: Mapping[int, bytes]
    times: frozenset[datetime]


async def traces_of(store: Store, key: Key, seqs: Sequence[int] | None = None) -> Traces | None:
    """What identifies copies of its messages, or of those at `seqs`; None if it does not exist."""
    head, start = await store.head(key), await store.at(key, [0])
    if head is None:
        return None
    times = {head.created_at, *(entry.message.created_at for entry in start)}
    bodies: dict[int, bytes] = {}
    for first, last in [(0, head.seq)] if seqs is None else runs(seqs):
        at = first
        while at <= last and len(bodies) < _TRACES:
            page = await store.records(key, at, min(_TRACES, last - at + 1))
            bodies |= {r.seq: r.body for r in page if not r.problem and not r.erased}
            at = page[-1].seq + 1 if page else last + 1
    return Traces(key, bodies, frozenset(filter(None, times)))


class Relatives(NamedTuple):
    """The conversations that recorded origins connect, and those that began at a moment."""

    linked: Mapping[str, set[str]]
    began: Mapping[datetime, set[str]]

    @classmethod
    async def read(cls, store: Store, tenant: str) -> Self:
        """Those of a tenant; reads the heads of all its conversations."""
        linked: dict[str, set[str]] = {}
        began: dict[datetime, set[str]] = {}
        async for head in heads(store, tenant):
            began.setdefault(head.created_at, set()).add(head.conversation)
            origin = head.metadata.get(BRANCH)
            of = origin.get("of") if isinstance(origin, Mapping) else None
            if isinstance(of, str):
                linked.setdefault(head.conversation, set()).add(of)
                linked.setdefault(of, set()).add(head.conversation)
        return cls(linked, began)

    def of(self, traces: Traces) -> list[str]:
        """Those that may hold copies, in order of their names."""
        own = traces.key.conversation
        found = {own}.union(*(self.began.get(at, ()) for at in traces.times))
        waiting = list(found)
        while waiting:
            near = self.linked.get(waiting.pop(), set()) - found
            found |= near
            waiting += near
        return sorted(found - {own}, key=str.encode)


async def branches_of(
    store: Store, traces: Traces | None, relatives: Relatives | None = None
) -> list[str]:
    """The tenant's conversations that hold copies of these messages, in order of their names.

    Those that a recorded origin connects, in either direction and over several steps; and those
    that began at the same moment, whose origin may have been replaced or erased. Each is compared
    word for word.
    """
    if traces is None or not traces.bodies:
        return []
    known = relatives or await Relatives.read(store, traces.key.tenant)
    return [name for name in known.of(traces) if await _has_copies(store, name, traces)]


async def _has_copies(store: Store, name: str, traces: Traces) -> bool:
    key = Key(traces.key.tenant, name)
    for first, last in runs(sorted(traces.bodies)):
        stored = await store.records(key, first, last - first + 1)
        if any(record.body == traces.bodies.get(record.seq) for record in stored):
            return True
    return False


async def copies_in(store: Store, name: str, key: Key, seqs: Sequence[int]) -> list[int]:
    """The entries of the conversation `name` that are copies of entries of `key`."""
    found: list[int] = []
    for first, last in runs(seqs):
        at = first
        while at <= last:
            size = min(limits.READ_PAGE, last - at + 1)
            theirs = await store.records(Key(key.tenant, name), at, size)
            ours = await store.records(key, at, size)
            pairs = list(zip(ours, theirs, strict=False))
            found += [a.seq for a, b in pairs if a.body == b.body and not a.erased]
            at = pairs[-1][0].seq + 1 if pairs else last + 1
    return found


def inherited(digests: Sequence[Digest], seq: int) -> list[Digest]:
    """The oldest completed digests that lie within 0 to `seq`, each continuing the one before.

    They were in force at an earlier time, so undoing them in the branch works as in the source.
    Digests of topics are not copied: topics are assigned again.
    """
    kept: dict[int, Digest] = {}
    for digest in digests:
        if digest.status != "completed" or digest.topic is not None:
            continue
        continues = digest.base == max(kept, default=None)
        if not continues or digest.last_seq > seq or {*digest.beside, *digest.parts} - set(kept):
            break
        kept[digest.version] = digest
    return list(kept.values())


async def _page(store: Store, key: Key, first: int, last: int, before: str) -> list[Record]:
    """The next records to copy, read with the one before, whose hash must be `before`."""
    overlap = min(first, 1)
    count = min(limits.READ_PAGE, last - first + 1)
    page = await store.records(key, first - overlap, count + overlap)
    if len(page) > overlap and (not overlap or page[0].hash == before):
        return page[overlap:]
    head = await store.head(key)
    if len(page) > overlap or head is None or head.seq < last:
        raise ConflictError(f"{key.conversation} was erased while it was being branched")
    raise StoreCorrupt(f"{key.conversation}: messages from {first} on are missing", seq=first)


def _drafts(page: Sequence[Record], before: str, pinned: Collection[int]) -> list[EntryDraft]:
    """The records to store again. Every hash is checked; damage is not copied."""
    return [
        EntryDraft(entry.message, record.body, record.tokens, entry.tokenizer, entry.seq in pinned)
        for record, entry in zip(page, chain.checked_entries(page, before), strict=True)
    ]


def _name(source: Key, seq: int) -> str:
    """The prefix of this branch's idempotency keys, of fixed length."""
    origin = encode_json([source.conversation, seq]).encode()
    return f"{BRANCH} {hashlib.sha256(origin).hexdigest()}"


async def _append(
    store: Store, key: Key, drafts: Sequence[EntryDraft], first: int, name: str
) -> bool:
    """Store a page; returns whether an earlier call had stored it."""
    bodies = fingerprint([draft.body for draft in drafts])
    idempotency = Idempotency(f"{name} {first}", bodies)
    try:
        done = await store.append(key, drafts, expected_seq=first, idempotency=idempotency)
    except ConflictError as error:
        raise ConflictError(
            f"{key.conversation} exists already and is not this branch; choose another name",
            **error.context,
        ) from error
    return done.replayed


async def _describe(store: Store, head: Head, seq: int, target: Key, *, replayed: bool) -> None:
    """Set the branch's project, metadata, and strategy once; later changes are kept."""
    current = await store.head(target)
    described = current and (current.project or current.metadata or current.strategy)
    if current is None or (replayed and described):
        return
    origin: Json = {"of": head.conversation, "at": seq}
    metadata = {**head.metadata, BRANCH: origin}
    with suppress(ConflictError):  # described by another process, or erased
        await store.describe(
            target,
            project=head.project,
            person=head.person,
            metadata=metadata,
            strategy=head.strategy,
            known=current,
        )


async def _put_digests(store: Store, target: Key, digests: Sequence[Digest]) -> None:
    """Store the branch's digests, unless it has some."""
    try:
        if digests:
            await store.put_digests(target, digests)
    except ConflictError:
        if not await store.digests(target):
            raise
