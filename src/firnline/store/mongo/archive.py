"""Moving old entries into compressed segments and back. The entries do not change.

The head lists the archived spans, and one write to it is the commit. Segments are written before
it, entry documents are deleted after it. Each has the number of the change that wrote it, so a late
process deletes nothing that was written since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from pymongo import ReplaceOne

from firnline.errors import ConflictError, StoreCorrupt, StoreUnavailable
from firnline.log.entry import Archived, Key, Record
from firnline.store import rows
from firnline.store.mongo import intents, log
from firnline.store.mongo.connection import Doc, MongoDatabase, pause
from firnline.store.mongo.flush import MESSAGE_BYTES, flush
from firnline.store.mongo.heads import HeadState, SegmentSpan
from firnline.store.rows import PackedSegment, Segment


async def flush_all(database: MongoDatabase, key: Key) -> HeadState | None:
    """The conversation, after its tail is flushed and any pending change is applied."""
    state = await intents.current(database, key)
    if state is not None and state.tail:
        await flush(database, state)
        state = await intents.current(database, key)
    return state


async def live(
    database: MongoDatabase, key: Key, first: int, last: int
) -> tuple[HeadState | None, list[tuple[list[Record], str]]]:
    """The first live entries of a span, in contiguous runs, each with the hash before it.

    Documents that an interrupted archive operation did not delete are deleted first.
    """

    async def find(state: HeadState) -> tuple[HeadState | None, list[tuple[list[Record], str]]]:
        at, end = max(first, 0), min(last, state.flushed - 1)  # not entries appended since
        some: list[Record] = []
        while at <= end and len(some) < rows.ARCHIVE_BATCH:
            stored, at = await log.page(database, state, at, end)
            some += [item for item in stored if not item.archived and not item.erased]
        runs = rows.split_runs(some[: rows.ARCHIVE_BATCH])
        return state, [(run, await log.hash_at(database, state, run[0].seq - 1)) for run in runs]

    if (now := await flush_all(database, key)) is not None:
        for span in _join_spans(_touching_spans(now, first, last)):
            await _delete_entries(database, now, span)
    return await log.read(database, key, find, (None, []))


async def pack(runs: list[tuple[list[Record], str]]) -> list[PackedSegment]:
    """Compress runs, off the event loop."""
    return await asyncio.to_thread(
        lambda: [part for run, before in runs for part in rows.pack_run(run, before)]
    )


async def store(database: MongoDatabase, state: HeadState, packed: PackedSegment) -> Archived:
    """Replace live entries with their segment."""
    segment, key = packed.segment, state.found.key
    span = SegmentSpan(segment.first_seq, segment.last_seq)
    for tries in range(intents.TRIES):
        now = await intents.current(database, key)
        if now is None or now.life != state.life:
            raise ConflictError(f"{key.conversation} was erased or changed in the meantime")
        if any(s.first <= span.last and span.first <= s.last for s in now.segments):
            raise ConflictError(f"{key.conversation}: another process has archived these messages")
        if await erased_in(database, now, span.first, span.last):
            raise ConflictError(f"{key.conversation}: some of it was erased in the meantime")
        put = put_segment(segment)
        listed = [list(item) for item in sorted((*now.segments, span))]
        done = await intents.change(database, now, [put], {"segments": listed})
        if done is not None:
            await _delete_entries(database, now, span)
            count = span.last - span.first + 1
            return Archived(count, 1, packed.plain_bytes, len(segment.body))
        await pause(tries)
    raise StoreUnavailable("too many concurrent writes, nothing was written; retry")


def put_segment(segment: Segment, *, empty: bool = False) -> intents.Put:
    """The document of a segment; `empty` if its entries are stored elsewhere now."""
    fields = {name: value for name, value in segment._asdict().items() if name[-4:] != "_seq"}
    gone = {"checksum": b"", "body": b""} if empty else {}
    known = {"first_seq": segment.first_seq, "last_seq": segment.last_seq}
    return intents.Put("segments", known, {**fields, **gone})


async def erased_in(database: MongoDatabase, state: HeadState, first: int, last: int) -> set[int]:
    """The tombstones among the live entries of a span."""
    asked = {**state.own, "seq": {"$gte": first, "$lte": last}, "erased": True}
    docs = await database.read(lambda: database["entries"].find(asked, {"seq": 1}).to_list())
    return {doc["seq"] for doc in docs}


def _join_spans(spans: Sequence[SegmentSpan]) -> list[SegmentSpan]:
    """Merge adjacent spans."""
    joined: list[SegmentSpan] = []
    for span in spans:
        if joined and joined[-1].last + 1 == span.first:
            joined[-1] = SegmentSpan(joined[-1].first, span.last)
        else:
            joined.append(span)
    return joined


async def _delete_entries(database: MongoDatabase, state: HeadState, span: SegmentSpan) -> None:
    """Delete documents written before the change, not those restored since."""
    gone: Doc = {
        **state.own,
        "seq": {"$gte": span.first, "$lte": span.last},
        "op": {"$lte": state.op},
    }
    await database.read(lambda: database["entries"].delete_many(gone))


async def restore(database: MongoDatabase, key: Key, first: int, last: int) -> int:
    """Restore the entries of every segment that overlaps the span."""
    restored = 0
    state = await intents.current(database, key)
    touched = _touching_spans(state, first, last)
    for start in range(0, len(touched), rows.SEGMENTS_AT_ONCE):
        for span in touched[start : start + rows.SEGMENTS_AT_ONCE]:
            restored += await _restore_one(database, key, span)
    return restored


def _touching_spans(state: HeadState | None, first: int, last: int) -> list[SegmentSpan]:
    known = state.segments if state else ()
    return [span for span in known if span.first <= last and first <= span.last]


async def _restore_one(database: MongoDatabase, key: Key, span: SegmentSpan) -> int:
    for tries in range(intents.TRIES):
        state = await intents.current(database, key)
        if state is None or span not in state.segments:
            return 0  # another process has restored it
        found = await log.segments(database, state, [span])
        if not found:  # restored by another process, or missing
            now = await intents.current(database, key)
            if now is not None and (now.life, now.op) == (state.life, state.op):
                raise StoreCorrupt(f"{key.conversation}: an archived segment is missing")
            continue
        records = rows.unpack_segment(found[0])
        await _write_entries(database, state, records)
        left = [list(item) for item in state.segments if item != span]
        if await intents.change(database, state, [], {"segments": left}):
            gone = {**state.own, "first_seq": span.first, "last_seq": span.last}
            older = {**gone, "op": {"$lte": state.op}}
            await database.read(partial(database["segments"].delete_many, older))
            return len(records)
        await pause(tries)
    raise StoreUnavailable("too many concurrent writes, nothing was written; retry")


async def _write_entries(database: MongoDatabase, state: HeadState, records: list[Record]) -> None:
    """Write the documents of entries that the next change makes live."""
    page: list[ReplaceOne[Doc]] = []
    size, op = 0, state.op + 1
    for item in records:
        at = {**state.own, "seq": item.seq}
        new = {**at, **entry_fields(item), "op": op}
        # Never over a tombstone that another process has written meanwhile.
        page.append(ReplaceOne({**at, "op": {"$not": {"$gte": op}}}, new, upsert=True))
        size += len(item.body)
        if size > MESSAGE_BYTES or item is records[-1]:
            await database.read(partial(intents.put_unless_newer, database, "entries", page))
            page, size = [], 0


def entry_fields(item: Record) -> Doc:
    """The fields of an entry's document, other than its key."""
    fields = {name: getattr(item, name) for name in ("body", "tokens", "total", "hash")}
    return {**fields, "tokenizer": item.tokenizer}
