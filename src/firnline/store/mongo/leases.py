"""Leases and digest versions: fenced, and committed by compare-and-set on the head.

Leases use the server's clock, so the clocks of its clients do not matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pymongo import ReturnDocument

from firnline.digest import items
from firnline.errors import ConflictError, StoreCorrupt, StoreUnavailable
from firnline.log.entry import Digest, Key, Lease
from firnline.log.message import from_microseconds, microseconds
from firnline.store.digests import (
    LEASE_MAX,
    check_finish,
    checksum_of,
    damaged_digest,
    decode_digest,
    encode_digest,
    fail_abandoned,
    lease_lost,
    mark_undone,
    next_version,
)
from firnline.store.mongo import intents
from firnline.store.mongo.connection import Doc, MongoDatabase, pause
from firnline.store.mongo.heads import HeadState, find, unknown_conversation, with_twin
from firnline.store.mongo.seals import check_part, newest_seal_of, seals_of
from firnline.store.rows import NO_TOPIC, SEQ_MAX
from firnline.store.seals import newest_part

_INT64: Final = 1 << 63
_PER_MILLISECOND: Final = 1 << 20
# Includes the server's time, to exceed the fences of erased conversations with this name.
_NEXT_FENCE: Final = {
    "$max": [
        {"$add": [{"$ifNull": ["$fence", 0]}, 1]},
        {"$multiply": [{"$toLong": "$$NOW"}, _PER_MILLISECOND]},
    ]
}


async def lease(database: MongoDatabase, key: Key, owner: str, seconds: float) -> Lease | None:
    """Acquire the lease if it is free or expired."""
    now = database.now
    expired = {"$lte": [{"$ifNull": ["$lease_until", 0]}, now]}
    free = {"$or": [expired, {"$gt": ["$lease_until", {"$add": [now, LEASE_MAX]}]}]}
    until = {"$add": [now, int(seconds * 1e6)]}
    taken = {"fence": _NEXT_FENCE, "lease_owner": {"$literal": owner}, "lease_until": until}
    doc = await database.write(
        lambda: database["conversations"].find_one_and_update(
            {**key._asdict(), "$expr": free},
            [{"$set": taken}, {"$set": {f"twin.{name}": f"${name}" for name in taken}}],
            projection={"fence": 1, "lease_until": 1},
            return_document=ReturnDocument.AFTER,
        )
    )
    if doc is not None:
        return Lease(key, owner, int(doc["fence"]), from_microseconds(int(doc["lease_until"])))
    if await find(database, key) is None:
        raise unknown_conversation(key)
    return None


def _of(lease: Lease) -> Doc:
    return {**lease.key._asdict(), "fence": lease.fence, "lease_owner": lease.owner}


async def renew(database: MongoDatabase, lease: Lease, seconds: float) -> Lease:
    """Extend the lease if it is still current."""
    until = {"$add": [database.now, int(seconds * 1e6)]}
    doc = await database.read(  # idempotent
        lambda: database["conversations"].find_one_and_update(
            _of(lease),
            [{"$set": {"lease_until": until}}, {"$set": {"twin.lease_until": "$lease_until"}}],
            projection={"lease_until": 1},
            return_document=ReturnDocument.AFTER,
        )
    )
    if doc is None:
        raise lease_lost(lease)
    return replace(lease, expires_at=from_microseconds(int(doc["lease_until"])))


async def release(database: MongoDatabase, lease: Lease) -> None:
    """Release the lease. The fence is kept, so that it only increases."""
    gone = {"$unset": with_twin({"lease_owner": "", "lease_until": ""})}
    await database.read(lambda: database["conversations"].update_one(_of(lease), gone))


# -- digests ----------------------------------------------------------------------------------

_Decided = tuple[Digest, Sequence[Digest], Mapping[str, Any]]


async def _decide(
    database: MongoDatabase, lease: Lease, decide: Callable[[HeadState], Awaitable[_Decided]]
) -> Digest:
    """Change digests under a lease that is still current; retried if another write came first."""
    for tries in range(intents.TRIES):
        state = await intents.current(database, lease.key)
        if state is None or not _holds(state, lease):
            raise lease_lost(lease)
        result, changed, sets = await decide(state)
        puts = [await put(database, state, digest, lease.fence) for digest in changed]
        held = {"fence": lease.fence, "lease_owner": lease.owner}
        if await intents.change(database, state, puts, sets, held):
            return result
        await pause(tries)
    raise StoreUnavailable("too many concurrent writes, nothing was written; retry")


def _holds(state: HeadState, lease: Lease) -> bool:
    held = state.doc.get("fence"), state.doc.get("lease_owner")
    return held == (lease.fence, lease.owner)


async def begin(database: MongoDatabase, lease: Lease, digest: Digest) -> Digest:
    """Record a digest as processing; those an earlier holder left processing are failed."""
    now = from_microseconds(await database.time())

    async def decide(state: HeadState) -> _Decided:
        newest = await newest_of(database, state, digest.topic)
        last = int(state.doc.get("last_version", 0))
        begun = next_version(newest, last, digest, now)
        making = "making" in state.doc
        left = await _docs(database, state, {"status": "processing"}) if making else []
        failed = [fail_abandoned(_digest(state.found.key, doc)) for doc in left]
        new = [{"version": begun.version, "at": microseconds(now)}]
        return begun, [*failed, begun], {"last_version": begun.version, "making": new}

    return await _decide(database, lease, decide)


async def finish(database: MongoDatabase, lease: Lease, digest: Digest) -> Digest:
    """Complete or fail a digest that this lease began."""

    async def decide(state: HeadState) -> _Decided:
        asked = {"version": _clamp_version(digest.version), "fence": lease.fence}
        stored, newest = await asyncio.gather(
            _docs(database, state, asked), newest_of(database, state, digest.topic)
        )
        own = _digest(state.found.key, stored[0]) if stored else None
        check_finish(own, digest, newest)
        return digest, [digest], {"making": making_without(state, {digest.version})}

    return await _decide(database, lease, decide)


async def undo(database: MongoDatabase, lease: Lease, version: int) -> Digest:
    """Mark the newest completed digest as undone, in place."""

    async def decide(state: HeadState) -> _Decided:
        asked = next(iter(await digests(database, state, [version])), None)
        newest = await newest_of(database, state, asked.topic if asked else None)
        digest = mark_undone(newest, version)
        return digest, [digest], {}

    return await _decide(database, lease, decide)


async def fail_damaged(database: MongoDatabase, lease: Lease) -> int:
    """Replace each unreadable digest by a failed one; returns how many were damaged or missing."""
    damaged: list[int] = []
    missing: list[int] = []

    async def decide(state: HeadState) -> _Decided:
        found = await _docs(database, state, {})
        damaged[:] = [doc["version"] for doc in found if not _is_readable(state.found.key, doc)]
        there = {doc["version"] for doc in found}
        newest = [seal[0] for part, seal in seals_of(state).items() if part.startswith("newest:")]
        missing[:] = [version for version in newest if version not in there]
        failed = [damaged_digest(version) for version in damaged]
        nothing = Digest(version=0, first_seq=0, last_seq=0)
        # Without seals, the change makes them again, of what there is then.
        anew = {"making": making_without(state, set(damaged)), "seals": None}
        return nothing, failed, anew

    await _decide(database, lease, decide)
    return max(len(damaged), len(missing))  # one under a wrong version is both


async def put_all(database: MongoDatabase, key: Key, items: Sequence[Digest]) -> None:
    """Write digests unchanged into a conversation that has none."""
    for tries in range(intents.TRIES):
        state = await intents.current(database, key)
        if state is None:
            raise unknown_conversation(key)
        if state.doc.get("last_version", 0) or await _docs(database, state, {}):
            raise ConflictError(f"{key.conversation} already has digests")
        puts = [await put(database, state, item, 0) for item in items]
        making = [
            {"version": item.version, "at": item.created_at and microseconds(item.created_at)}
            for item in items
            if item.status == "processing"
        ]
        last = max((item.version for item in items), default=0)
        sets = {"last_version": last, "making": making or None}
        if await intents.change(database, state, puts, sets):
            return
        await pause(tries)
    raise StoreUnavailable("too many concurrent writes, nothing was written; retry")


async def digests(
    database: MongoDatabase, state: HeadState, versions: Sequence[int] | None = None
) -> list[Digest]:
    """All digests or the given versions, in order of version."""
    asked: Doc = {}
    if versions is not None:
        asked = {"version": {"$in": [item for item in versions if 0 <= item <= SEQ_MAX]}}
    return [_digest(state.found.key, doc) for doc in await _docs(database, state, asked)]


async def newest_of(database: MongoDatabase, state: HeadState, topic: int | None) -> Digest | None:
    """The newest completed digest, by one index lookup."""
    known = NO_TOPIC if topic is None else topic
    asked = {**state.own, "topic": known, "status": "completed"}
    doc = await database.read(lambda: database["digests"].find_one(asked, sort=[("version", -1)]))
    digest = _digest(state.found.key, doc) if doc else None
    check_part(state, newest_part(known), newest_seal_of(doc))
    if digest is not None and digest.topic != topic:
        raise StoreCorrupt(f"{state.found.key.conversation}: a digest does not match its document")
    return digest


def making_without(state: HeadState, versions: set[int]) -> list[Doc] | None:
    """The digests in progress without these versions, or None."""
    left = [item for item in state.doc.get("making", ()) if item["version"] not in versions]
    return left or None


async def _docs(database: MongoDatabase, state: HeadState, asked: Doc) -> list[Doc]:
    cursor = database["digests"].find({**state.own, **asked})
    return await database.read(lambda: cursor.clone().sort("version", 1).to_list())


def _digest(key: Key, doc: Mapping[str, Any]) -> Digest:
    """Decode a digest and check it against its document."""
    try:
        version, status, body, checksum = (
            doc[name] for name in ("version", "status", "body", "checksum")
        )
    except KeyError as error:
        raise StoreCorrupt(f"{key.conversation}: a digest document is damaged") from error
    if type(body) is not bytes or type(checksum) is not bytes:
        raise StoreCorrupt(f"{key.conversation}: a digest document is damaged")
    digest = decode_digest(body, checksum)
    own = NO_TOPIC if digest.topic is None else digest.topic
    if (version, doc.get("topic"), status) != (digest.version, own, digest.status):
        raise StoreCorrupt(f"{key.conversation}: a digest does not match its document")
    return digest


def _is_readable(key: Key, doc: Mapping[str, Any]) -> bool:
    try:
        _digest(key, doc)
    except StoreCorrupt:
        return False
    return True


def _clamp_version(version: int) -> int:
    return version if 0 <= version <= SEQ_MAX else -1


async def put(database: MongoDatabase, state: HeadState, digest: Digest, fence: int) -> intents.Put:
    """The document of a digest."""
    body = encode_digest(digest)
    doc: Doc = {
        "topic": NO_TOPIC if digest.topic is None else digest.topic,
        "status": digest.status,
        "fence": fence,
        "checksum": checksum_of(body),
        "body": body,
    }
    if digest.status == "completed" and digest.topic is None:
        others = await digests(database, state, digest.beside) if digest.beside else []
        doc["memory"] = _memory_record([*others, digest])
    return intents.Put("digests", {"version": digest.version}, doc)


# -- the record for other programs ----------------------------------------------------------


def _memory_record(in_force: Sequence[Digest]) -> Doc:
    """The combined record of the digests in force, in order of their spans."""
    ordered = sorted(in_force, key=lambda digest: (digest.first_seq, digest.version))
    known: tuple[items.Item, ...] = ()
    for digest in ordered:
        known = items.merge(known, items.from_json(digest.data))
    newest = max(ordered, key=lambda digest: digest.version)
    return {
        "important_data": _storable(items.important_data(known)),
        "conversation_summary": "\n\n".join(digest.text for digest in ordered),
        "summary_version": newest.layer + 1,
        "last_summarized_at": newest.created_at,
        "messages_summarized_count": sum(d.last_seq - d.first_seq + 1 for d in ordered),
        "last_keep_window_index": ordered[-1].last_seq + 1,
    }


def _storable(value: Any) -> Any:
    """JSON as BSON can store it: no NUL in a name, no integer over 64 bits."""
    if isinstance(value, Mapping):
        return {str(name).replace("\0", ""): _storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    if type(value) is int and not -_INT64 <= value < _INT64:
        return str(value)
    return value
