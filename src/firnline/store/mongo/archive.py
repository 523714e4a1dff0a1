"""Moving old entries into compressed segments and back. Nothing about them changes.

The head says which spans are archived, and one write to it makes them so. Segments are there before
it, documents of entries go after it; and each has the number of the change that put it there, so
whoever comes late deletes nothing that was put there since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from pymongo import ReplaceOne

from firnline.errors import ConflictError, StoreCorrupt, StoreUnavailable
from firnline.log.entry import Archived, Key, Record
from firnline.store import rows
from firnline.store.mongo import intents, log
from firnline.store.mongo.connection import Doc, MongoDatabase, pause
from firnline.store.mongo.flush import MESSAGE_BYTES, flush
from firnline.store.mongo.heads import HeadState, SegmentSpan
from firnline.store.rows import PackedSegment

_TRIES: Final = 100


async def flush_all(database: MongoDatabase, key: Key) -> HeadState | None:
    """The conversation, all that it had in its tail moved, and nothing left to be carried out."""
    state = await intents.current(database, key)
    if state is not None and state.tail:
        await flush(database, state)
        state = await intents.current(database, key)
    return state


async def live(
    database: MongoDatabase, key: Key, first: int, last: int
) -> tuple[HeadState | None, list[tuple[list[Record], str]]]:
    """The first live entries of a span, in runs of neighbours with the hashes before them.

    What was archived there by one who did not come to delete its documents is deleted first.
    """

    async def find(state: HeadState) -> tuple[HeadState | None, list[tuple[list[Record], str]]]:
        at, end = max(first, 0), min(last, state.flushed - 1)  # nothing that is in the tail again
        some: list[Record] = []
        while at <= end and len(some) < rows.ARCHIVE_BATCH:
            stored, at = await log.page(database, state, at, end)
            some += [item for item in stored if not item.archived]
        runs = rows.split_runs(some[: rows.ARCHIVE_BATCH])
        return state, [(run, await log.hash_at(database, state, run[0].seq - 1)) for run in runs]

    if (now := await flush_all(database, key)) is not None:
        for span in _join_spans(_touching_spans(now, first, last)):
            await _delete_entries(database, now, span)
    return await log.read(database, key, find, (None, []))


async def pack(runs: list[tuple[list[Record], str]]) -> list[PackedSegment]:
    """Compress them, beside the event loop."""
    return await asyncio.to_thread(
        lambda: [part for run, before in runs for part in rows.pack_run(run, before)]
    )


async def store(database: MongoDatabase, state: HeadState, packed: PackedSegment) -> Archived:
    """Swap live entries for their segment."""
    segment, key = packed.segment, state.found.key
    span = SegmentSpan(segment.first_seq, segment.last_seq)
    for tries in range(_TRIES):
        now = await intents.current(database, key)
        if now is None or now.life != state.life:
            raise ConflictError(f"{key.conversation}: it was erased or changed meanwhile")
        if any(s.first <= span.last and span.first <= s.last for s in now.segments):
            raise ConflictError(f"{key.conversation}: the entries were moved by somebody else")
        put = intents.Put(
            "segments",
            {"first_seq": span.first, "last_seq": span.last},
            {name: value for name, value in segment._asdict().items() if name[-4:] != "_seq"},
        )
        listed = [list(item) for item in sorted((*now.segments, span))]
        done = await intents.change(database, now, [put], {"segments": listed})
        if done is not None:
            await _delete_entries(database, now, span)
            count = span.last - span.first + 1
            return Archived(count, 1, packed.plain_bytes, len(segment.body))
        await pause(tries)
    raise StoreUnavailable("others are in the way, nothing was written")


def _join_spans(spans: Sequence[SegmentSpan]) -> list[SegmentSpan]:
    """The same entries in as few spans as can be."""
    joined: list[SegmentSpan] = []
    for span in spans:
        if joined and joined[-1].last + 1 == span.first:
            joined[-1] = SegmentSpan(joined[-1].first, span.last)
        else:
            joined.append(span)
    return joined


async def _delete_entries(database: MongoDatabase, state: HeadState, span: SegmentSpan) -> None:
    """The documents that were there before the change; not what was restored since."""
    gone: Doc = {
        **state.own,
        "seq": {"$gte": span.first, "$lte": span.last},
        "op": {"$lte": state.op},
    }
    await database.read(lambda: database["entries"].delete_many(gone))


async def restore(database: MongoDatabase, key: Key, first: int, last: int) -> int:
    """Make the entries of every segment that touches the span live again."""
    restored = 0
    state = await intents.current(database, key)
    touched = _touching_spans(state, first, last)
    for start in range(0, len(touched), log.SEGMENTS_AT_ONCE):
        for span in touched[start : start + log.SEGMENTS_AT_ONCE]:
            restored += await _restore_one(database, key, span)
    return restored


def _touching_spans(state: HeadState | None, first: int, last: int) -> list[SegmentSpan]:
    known = state.segments if state else ()
    return [span for span in known if span.first <= last and first <= span.last]


async def _restore_one(database: MongoDatabase, key: Key, span: SegmentSpan) -> int:
    for tries in range(_TRIES):
        state = await intents.current(database, key)
        if state is None or span not in state.segments:
            return 0  # somebody else has done so
        found = await log.segments(database, state, [span])
        if not found:  # somebody else has done so, or it is missing
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
    raise StoreUnavailable("others are in the way, nothing was written")


async def _write_entries(database: MongoDatabase, state: HeadState, records: list[Record]) -> None:
    """The documents of entries that the next change makes live."""
    page: list[ReplaceOne[Doc]] = []
    size = 0
    for item in records:
        at = {**state.own, "seq": item.seq}
        told = {name: getattr(item, name) for name in ("body", "tokens", "total", "hash")}
        new = {**at, **told, "tokenizer": item.tokenizer, "op": state.op + 1}
        page.append(ReplaceOne(at, new, upsert=True))
        size += len(item.body)
        if size > MESSAGE_BYTES or item is records[-1]:
            await database.read(partial(database["entries"].bulk_write, page, ordered=False))
            page, size = [], 0
