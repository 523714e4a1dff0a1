"""Branches: a new conversation that begins as another one did.

Entries are copied page by page. Each page has an idempotency key of its own, made of where the
branch comes from: the same call after a crash goes on where it ended; once more changes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

from firnline.errors import ConflictError, InputError, StoreCorrupt, UnknownConversation
from firnline.log import chain, limits
from firnline.log.entry import Digest, Draft, Head, Idempotency, Key, Record, fingerprint, genesis
from firnline.log.message import encode_json
from firnline.log.text import Json
from firnline.protocols import Store

MARK: Final = "branch"
"""Where a branch's metadata says what it is a branch of."""


async def branch(store: Store, source: Key, seq: int, target: Key) -> Head:
    """Let `target` begin with the entries 0 to `seq` of `source`; see `Memory.branch`."""
    begun = await store.at(source, [0])
    head = await store.head(source)
    if head is None:
        raise UnknownConversation(f"there is no conversation {source.conversation!r}")
    if type(seq) is not int or not 0 <= seq <= head.seq:
        raise InputError(f"{source.conversation} has no entry {seq!r}")
    if target == source:
        raise InputError("a branch needs a name of its own")
    digests = inherited(await store.digests(source), seq)
    pinned = {entry.seq for entry in await store.pinned(source)}
    first, before = 0, genesis(source)
    while first <= seq:
        page = await _page(store, source, first, seq, before)
        if first == 0 and page[0].hash not in {entry.hash for entry in begun}:
            # Nothing that was read so far is of what is there now.
            raise ConflictError(f"{source.conversation} was erased while it was branched")
        drafts = await asyncio.to_thread(_drafts, page, before, pinned)
        replayed = await _append(store, target, drafts, first, _name(source, seq))
        if first == 0:
            await _describe(store, head, seq, target, replayed=replayed)
        first, before = first + len(page), page[-1].hash
    await _put_digests(store, target, digests)
    made = await store.head(target)
    if made is None or made.seq < seq:
        raise ConflictError(f"{target.conversation} was erased while it was made")
    return made


def inherited(digests: Sequence[Digest], seq: int) -> list[Digest]:
    """The oldest completed digests, as far as each lies within 0 to `seq` and continues the last.

    They are what was in force at some time before, so undoing them leads back as it does there.
    Those of topics stay behind: topics are assigned anew.
    """
    taken: dict[int, Digest] = {}
    for digest in digests:
        if digest.status != "completed" or digest.topic is not None:
            continue
        continues = digest.base == max(taken, default=None)
        if not continues or digest.last_seq > seq or {*digest.beside, *digest.parts} - set(taken):
            break
        taken[digest.version] = digest
    return list(taken.values())


async def _page(store: Store, key: Key, first: int, last: int, before: str) -> list[Record]:
    """The next records to copy. They are read with the one before: it must be the one we know."""
    overlap = min(first, 1)
    count = min(limits.READ_PAGE, last - first + 1)
    page = await store.records(key, first - overlap, count + overlap)
    if len(page) > overlap and (not overlap or page[0].hash == before):
        return page[overlap:]
    head = await store.head(key)
    if len(page) > overlap or head is None or head.seq < last:
        raise ConflictError(f"{key.conversation} was erased while it was branched")
    raise StoreCorrupt(f"{key.conversation}: entries are missing from {first} on", seq=first)


def _drafts(page: Sequence[Record], before: str, pinned: Collection[int]) -> list[Draft]:
    """The records as they are to be stored again, every hash derived; damage is not copied."""
    return [
        Draft(entry.message, record.body, entry.tokens, entry.tokenizer, entry.seq in pinned)
        for record, entry in zip(page, chain.entries(page, before), strict=True)
    ]


def _name(source: Key, seq: int) -> str:
    """What the idempotency keys of this branch begin with, however long its source's name is."""
    whence = encode_json([source.conversation, seq]).encode()
    return f"{MARK} {hashlib.sha256(whence).hexdigest()}"


async def _append(store: Store, key: Key, drafts: Sequence[Draft], first: int, name: str) -> bool:
    """Store a page; returns whether an earlier call had done so."""
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
    """Say what the branch is, once: what was said about it since then is newer."""
    known = await store.head(target)
    if known is None or (replayed and (known.project or known.metadata or known.strategy)):
        return
    whence: Json = {"of": head.conversation, "at": seq}
    about = {"metadata": {**head.metadata, MARK: whence}, "strategy": head.strategy}
    with suppress(ConflictError):  # described by others; or erased, and it does not come back
        await store.describe(target, project=head.project, **about, known=known)


async def _put_digests(store: Store, target: Key, digests: Sequence[Digest]) -> None:
    """Give the branch its digests, unless it has some: an earlier call's, or its own."""
    try:
        if digests:
            await store.put_digests(target, digests)
    except ConflictError:
        if not await store.digests(target):
            raise
