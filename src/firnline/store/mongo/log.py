"""Reading the log: the head decides which documents count."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from firnline.errors import StoreCorrupt, StoreUnavailable
from firnline.log import chain, limits
from firnline.log.entry import Entry, Idempotency, Key, Record, UsedKey, genesis, runs
from firnline.log.message import EPOCH, decode, microseconds
from firnline.store import rows
from firnline.store.limits import LOOK_TRIES
from firnline.store.mongo.connection import Doc, MongoDatabase, pause
from firnline.store.mongo.flush import find_settled
from firnline.store.mongo.heads import (
    HeadState,
    SegmentSpan,
    check_twin,
    record_of,
    unknown_conversation,
)
from firnline.store.mongo.intents import Put, change, current
from firnline.store.rows import SEQ_MAX, Segment

T = TypeVar("T")

_FIRST: Final = {"_id": 0, "seq": 1, "body": 1, "tokens": 1, "total": 1, "hash": 1, "tokenizer": 1}


async def read(
    database: MongoDatabase, key: Key, work: Callable[[HeadState], Awaitable[T]], otherwise: T
) -> T:
    """Run `work` on the conversation; returns `otherwise` if it does not exist.

    Entries can be moved or erased during a read. If data seems missing or damaged, the read is
    retried if the head has changed.
    """
    tries = 0
    state = await _find_ready(database, key)
    while state is not None:
        try:
            return await work(state)
        except StoreCorrupt:
            tries += 1
            now = await _find_ready(database, key)
            same = now is not None and (now.life, now.op) == (state.life, state.op)
            if same or tries >= LOOK_TRIES:
                raise
            state = now
    return otherwise


async def _find_ready(database: MongoDatabase, key: Key) -> HeadState | None:
    """The conversation, after staged entries are flushed and a pending change is applied."""
    state = await find_settled(database, key)
    while state is not None and "redo" in state.doc:  # the pending change may write a segment
        await current(database, key)
        state = await find_settled(database, key)
    return state


async def find_keys(
    database: MongoDatabase, state: HeadState, names: Sequence[str]
) -> dict[str, tuple[str, int, int]]:
    """What these idempotency keys stored: fingerprint, first and last entry."""
    asked = {**state.own, "key": {"$in": list(dict.fromkeys(names))}}
    docs = await database.read(lambda: database["idempotency"].find(asked).to_list())
    known = {doc["key"]: (doc["fingerprint"], doc["first_seq"], doc["last_seq"]) for doc in docs}
    for row in state.tail:
        if row.get("key") in names:
            known[row["key"]] = (row["fingerprint"], row["seq"], row["last"])
    return known


async def used_keys(
    database: MongoDatabase, state: HeadState, after: str, limit: int
) -> list[UsedKey]:
    """The idempotency keys that were used, in order, after `after`."""
    if limit <= 0:
        return []
    asked = {**state.own, "key": {"$gt": after}}
    docs = await database.read(
        lambda: database["idempotency"].find(asked).sort("key", 1).limit(limit).to_list()
    )
    known = {doc["key"]: (doc["fingerprint"], doc["first_seq"], doc["last_seq"]) for doc in docs}
    for row in state.tail:
        if "key" in row and row["key"].encode() > after.encode():
            known[row["key"]] = (row["fingerprint"], row["seq"], row["last"])
    names = sorted(known, key=str.encode)[:limit]
    return [UsedKey(Idempotency(name, known[name][0]), *known[name][1:]) for name in names]


async def put_used_keys(database: MongoDatabase, key: Key, used: Sequence[UsedKey]) -> None:
    """Write idempotency keys; those that are known are kept."""
    for tries in range(LOOK_TRIES):
        state = await current(database, key)
        if state is None:
            raise unknown_conversation(key)
        rows.check_used_keys(key, used, state.found.next_seq)
        known = await find_keys(database, state, [item.idempotency.key for item in used])
        puts = [
            Put(
                "idempotency",
                {"key": name},
                {"fingerprint": fingerprint, "first_seq": first, "last_seq": last},
            )
            for (name, fingerprint), first, last in used
            if name not in known
        ]
        if not puts or await change(database, state, puts, {}) is not None:
            return
        await pause(tries)
    raise StoreUnavailable("too many concurrent writes, nothing was written; retry")


# -- spans ------------------------------------------------------------------------------------


async def span(
    database: MongoDatabase,
    state: HeadState,
    first: int,
    last: int = SEQ_MAX,
    limit: int | None = None,
) -> list[Entry]:
    """The entries `first` to `last`, verified: none is missing, every hash is recomputed."""
    first, last = max(first, 0), min(last, state.found.next_seq - 1)
    if limit is not None:
        last = min(last, first + limit - 1)
    if first > last:
        return []
    stored: list[Record] = []
    at = max(first - 1, 0)
    while at <= last:
        more, at = await page(database, state, at, last)
        stored += more
    return rows.verify_span(state.found, [r for r in stored if r.seq <= last], first, last)


async def page(
    database: MongoDatabase,
    state: HeadState,
    first: int,
    last: int,
    *,
    limit: int = limits.READ_PAGE,
    tolerant: bool = False,
) -> tuple[list[Record], int]:
    """The stored records of a span, unverified, and where the next page begins."""
    spans = [item for item in state.segments if item.first <= last and item.last >= first]
    end = last
    if len(spans) > rows.SEGMENTS_AT_ONCE:
        spans = spans[: rows.SEGMENTS_AT_ONCE]
        end = min(end, spans[-1].last)
    live, end = await _live(database, state, (first, end), limit)
    archived = await segments(database, state, [item for item in spans if item.first <= end])
    if not tolerant and len(archived) != len([item for item in spans if item.first <= end]):
        raise StoreCorrupt(f"{state.found.key.conversation}: an archived segment is missing")
    stored = rows.merge_records(iter(live), archived, first, end, tolerant=tolerant)
    return [item for item in stored if item.seq <= end], end + 1


async def _live(
    database: MongoDatabase, state: HeadState, span_: tuple[int, int], limit: int
) -> tuple[list[Record], int]:
    """The live entries of a span, at most `limit` of them, and where the page ends."""
    first, end = span_
    stored: list[Record] = []
    tail = [item for item in state.newest_records() if first <= item.seq <= end]
    wholly = any(item.first <= first and end <= item.last for item in state.segments)
    if not wholly and not (tail and tail[0].seq == first):
        stored = await _documents(database, state, span_, limit)
    live = [r for r in stored if not state.flushed <= r.seq < state.found.next_seq]
    live = sorted([*(r for r in live if not state.archived(r.seq)), *tail], key=lambda r: r.seq)
    full = len(stored) >= limit or sum(len(r.body) for r in stored) >= limits.PAGE_BYTES_MAX
    if full:  # there may be more after the last record read
        end = min(end, stored[-1].seq)
    live = [record for record in live if record.seq <= end]
    if len(live) > limit:
        live = live[:limit]
        end = min(end, live[-1].seq)
    return live, end


async def _documents(
    database: MongoDatabase, state: HeadState, span_: tuple[int, int], limit: int
) -> list[Record]:
    """Records from entry documents; fewer if they are large."""
    asked = {**state.own, "seq": {"$gte": span_[0], "$lte": span_[1]}}

    async def some() -> list[Record]:
        found: list[Record] = []
        size = 0
        cursor = database["entries"].find(asked, projection=_FIRST, batch_size=max(limit, 2))
        async with cursor.sort("seq", 1).limit(max(limit, 1)) as docs:
            async for doc in docs:
                found.append(record_of(doc))
                size += len(found[-1].body)
                if size >= limits.PAGE_BYTES_MAX:
                    break
        return found

    return await database.read(some)


async def segments(
    database: MongoDatabase, state: HeadState, spans: Sequence[SegmentSpan]
) -> list[Segment]:
    """The segments that hold these spans."""
    if not spans:
        return []
    asked = {
        **state.own,
        "$or": [{"first_seq": item.first, "last_seq": item.last} for item in spans],
    }
    docs = await database.read(
        lambda: database["segments"].find(asked).sort("first_seq", 1).to_list()
    )
    try:
        return [Segment(*(doc[name] for name in Segment._fields)) for doc in docs]
    except KeyError as error:
        raise StoreCorrupt(f"{state.found.key.conversation}: a segment is damaged") from error


async def records(
    database: MongoDatabase, state: HeadState, first: int, limit: int
) -> list[Record]:
    """Entries as stored, including any past the end that the head gives."""
    taken: list[Record] = []
    at = max(first, 0)
    while at <= SEQ_MAX and len(taken) < limit:
        stored, at = await page(database, state, at, SEQ_MAX, limit=limit, tolerant=True)
        taken += stored
        if sum(len(record.body) for record in taken) >= limits.PAGE_BYTES_MAX:
            break
    return rows.page(taken, limit)


# -- single entries ---------------------------------------------------------------------------


async def at(database: MongoDatabase, state: HeadState, seqs: Iterable[int]) -> list[Entry]:
    """The entries at these sequence numbers that exist, in order."""
    asked = sorted({seq for seq in seqs if 0 <= seq < state.found.next_seq})
    stored = await _stored(database, state, {*asked, *(seq - 1 for seq in asked if seq)})
    entries: list[Entry] = []
    for first, last in runs(asked):
        wanted = range(max(first - 1, 0), last + 1)
        run = [stored[seq] for seq in wanted if seq in stored]
        entries += rows.verify_span(state.found, run, first, last)
    return entries


async def _stored(database: MongoDatabase, state: HeadState, seqs: set[int]) -> dict[int, Record]:
    """The stored records at these sequence numbers."""
    spans = [s for s in state.segments if any(s.first <= seq <= s.last for seq in seqs)]
    stored: dict[int, Record] = {}
    for start in range(0, len(spans), rows.SEGMENTS_AT_ONCE):
        for segment in await segments(
            database, state, spans[start : start + rows.SEGMENTS_AT_ONCE]
        ):
            stored |= {r.seq: r for r in rows.unpack_segment(segment) if r.seq in seqs}
    stored |= {record.seq: record for record in state.newest_records() if record.seq in seqs}
    left = [seq for seq in seqs if seq not in stored and not state.archived(seq)]
    if left:
        asked = {**state.own, "seq": {"$in": left}}
        docs = await database.read(
            lambda: database["entries"].find(asked, projection=_FIRST).to_list()
        )
        stored |= {doc["seq"]: record_of(doc) for doc in docs}
    return stored


async def _one(database: MongoDatabase, state: HeadState, seq: int) -> Record:
    found = (await _stored(database, state, {seq})).get(seq)
    if found is None:
        raise StoreCorrupt(f"{state.found.key.conversation}: message {seq} is missing", seq=seq)
    return found


async def hash_at(database: MongoDatabase, state: HeadState, seq: int) -> str:
    """The chain hash at `seq`; -1 is before the first entry."""
    return genesis(state.found.key) if seq < 0 else (await _one(database, state, seq)).hash


async def tokens_between(database: MongoDatabase, state: HeadState, first: int, last: int) -> int:
    """The tokens of a span, from the running totals at both ends."""
    found = state.found
    first, last = max(first, 0), min(last, SEQ_MAX)
    if first > last or first >= found.next_seq:
        return 0
    whole = last >= found.next_seq - 1
    until = found.total if whole else (await _one(database, state, last)).total
    return until - ((await _one(database, state, first - 1)).total if first else 0)


# -- the newest -------------------------------------------------------------------------------


async def newest(database: MongoDatabase, state: HeadState, tokens_max: int) -> list[Entry]:
    """Walk back from the end until the next entry would not fit."""
    fitting: list[Record] = []
    before, end, room = "", state.found.next_seq - 1, tokens_max
    while end >= 0:
        some = await _backwards(database, state, end, room)
        if not some:
            break
        end = some[-1].seq - 1
        for item in some:
            if not rows.fits(state.found, item, tokens_max):
                before, end = item.hash, -1
                break
            room -= item.tokens
            fitting.append(item)
    if not fitting:
        return []
    fitting.reverse()
    rows.check_newest(state.found, fitting)
    if not before:
        before = await hash_at(database, state, fitting[0].seq - 1)
    return chain.checked_entries(fitting, before)


async def _backwards(
    database: MongoDatabase, state: HeadState, end: int, tokens: int
) -> list[Record]:
    """Some records up to `end`, newest first, without a gap."""
    some = [item for item in reversed(state.newest_records()) if item.seq <= end]
    if not some:
        spans = [item for item in state.segments if item.first <= end <= item.last]
        found = await segments(database, state, spans)
        archived = [item for segment in found for item in rows.unpack_segment(segment)]
        some = [item for item in reversed(archived) if item.seq <= end]
    if not some:
        limit = rows.newest_limit(tokens)
        first = max(end - limit + 1, 0)
        live = await _documents(database, state, (first, end), limit)
        while live and live[-1].seq < end:  # large entries: the page ended early
            first = live[-1].seq + 1
            live = await _documents(database, state, (first, end), limit)
        some = [item for item in reversed(live) if not state.archived(item.seq)]
    return [item for place, item in enumerate(some) if item.seq == end - place]


# -- by date ----------------------------------------------------------------------------------


async def dated(
    database: MongoDatabase,
    state: HeadState,
    times: tuple[datetime, datetime],
    limit: int,
    first_seq: int,
) -> list[Entry]:
    """The entries with a time in [since, until)."""
    since, until = map(microseconds, times)
    first = min(max(first_seq, 0), SEQ_MAX)
    if limit <= 0:
        return []
    asked: Doc = {
        **state.own,
        "part": 0,
        "at": {"$gte": since, "$lt": until},
        "seq": {"$gte": first, "$lt": state.flushed},
    }
    docs: list[Any] = await database.read(
        lambda: (
            database["words"]
            .find(asked, projection={"_id": 0, "seq": 1})
            .sort("seq", 1)
            .limit(limit)
            .to_list()
        )
    )
    seqs = [doc["seq"] for doc in docs]
    for row in state.tail:
        said = microseconds(decode(row["body"]).created_at or EPOCH)
        if row["seq"] >= first and since <= said < until:
            seqs.append(row["seq"])
    return await at(database, state, seqs[:limit])


# -- pins --------------------------------------------------------------------------------------


async def pinned(database: MongoDatabase, state: HeadState) -> list[Entry]:
    """The pinned entries; a pin on a missing entry is damage."""
    check_twin(state.doc, "pins")
    marked = sorted(set(state.doc.get("pins", ())))
    entries = await at(database, state, marked)
    if len(entries) != len(marked):
        raise StoreCorrupt(f"{state.found.key.conversation}: a pinned message is missing")
    return entries
