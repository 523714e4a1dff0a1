"""Erasing some entries: one change replaces their documents, and those of what depends on them.

Nothing is deleted but cards: a late process could write a deleted document again. An empty document
with a newer number stays in its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from firnline.errors import StoreUnavailable
from firnline.log.entry import Erased, Erasure, Key, Record, runs, tombstone
from firnline.log.message import from_microseconds
from firnline.store import rows
from firnline.store.erasure import certificate, check_erasure
from firnline.store.mongo import archive, intents, known_cards, leases, log, topics
from firnline.store.mongo.connection import Doc, MongoDatabase, pause
from firnline.store.mongo.flush import WORDLESS
from firnline.store.mongo.heads import HeadState, SegmentSpan, head_in, unknown_conversation


async def erase_entries(database: MongoDatabase, key: Key, erasure: Erasure) -> Erased:
    """Replace entries by tombstones, with all that quotes them."""
    for tries in range(intents.TRIES):
        state = await archive.flush_all(database, key)
        if state is None:
            raise unknown_conversation(key)
        version, revision = int(state.doc.get("last_version", 0)), topics.revision(state)
        check_erasure(key, erasure, state.found.next_seq, version, revision)
        now = await database.time()
        gone = {r.seq: r for r in await _records(database, state, erasure.seqs) if not r.erased}
        puts, sets, counts = await _change(database, state, gone, erasure, now)
        # First, because a crash after the change would leave them.
        counts["cards"] = await _drop_cards(database, state, erasure)
        still = {"next_seq": state.found.next_seq, "tail": []}
        if done := await intents.change(database, state, puts, sets, still):
            head = head_in(done.doc)
            return certificate(head, gone.values(), erasure, from_microseconds(now), **counts)
        await pause(tries)
    raise StoreUnavailable("too many concurrent writes, nothing was erased; retry")


async def _records(database: MongoDatabase, state: HeadState, seqs: Sequence[int]) -> list[Record]:
    """The stored records at these sequence numbers; all hashes are checked first."""
    found: list[Record] = []
    for first, last in runs(seqs):
        await log.span(database, state, first, last)
        at = first
        while at <= last:
            some, at = await log.page(database, state, at, last)
            found += [record for record in some if record.seq <= last]
    return found


async def _change(
    database: MongoDatabase,
    state: HeadState,
    gone: Mapping[int, Record],
    erasure: Erasure,
    now: int,
) -> tuple[list[intents.Put], Doc, dict[str, Any]]:
    """What to write, what to set in the head, and what is counted."""
    body = tombstone(from_microseconds(now))
    puts = [
        intents.Put(
            "entries", {"seq": seq}, {**archive.entry_fields(r), "body": body, "erased": True}
        )
        for seq, r in gone.items()
    ]
    segments, listed = await _segments(database, state, gone)
    views, vectors = await _views(database, state, sorted(gone))
    puts += [*segments, *views]
    puts += [intents.Put("members", {"seq": seq}, {"topic": None}) for seq in gone]
    puts += [topics.put_topic(topic) for topic in erasure.topics]
    puts += [await leases.put(database, state, digest, 0) for digest in erasure.digests]
    versions = {digest.version for digest in erasure.digests}
    reach = (state.doc.get("assigned") or {}).get("next_seq", 0)
    sets: Doc = {
        "segments": listed,
        "pins": [seq for seq in state.doc.get("pins", ()) if seq not in gone],
        "assigned": {"next_seq": reach, "revision": topics.revision(state) + 1},
    }
    if versions:
        sets["last_version"] = max(erasure.version, *versions)
        sets["making"] = leases.making_without(state, versions)
    touched = sum(put.doc["body"] == b"" for put in segments)
    return puts, sets, {"segments": touched, "vectors": vectors}


async def _segments(
    database: MongoDatabase, state: HeadState, gone: Mapping[int, Record]
) -> tuple[list[intents.Put], list[list[int]]]:
    """The documents of segments without these entries, and the new list of spans."""
    archived = {seq: record for seq, record in gone.items() if record.archived}
    touched = [s for s in state.segments if any(s.first <= seq <= s.last for seq in archived)]
    left = [span for span in state.segments if span not in touched]
    puts: list[intents.Put] = []
    for span in touched:
        for segment in await log.segments(database, state, [span]):
            stored = rows.unpack_segment(segment)
            puts.append(archive.put_segment(segment, empty=True))
            for packed in rows.without(stored, archived, segment.hash_before):
                new = packed.segment
                puts.append(archive.put_segment(new))
                left.append(SegmentSpan(new.first_seq, new.last_seq))
    return puts, [list(span) for span in sorted(left)]


async def _views(
    database: MongoDatabase, state: HeadState, seqs: Sequence[int]
) -> tuple[list[intents.Put], int]:
    """Empty documents of words, vectors and idempotency keys; and how many vectors there were."""
    puts: list[intents.Put] = []
    these, after = {"$in": list(seqs)}, [last + 1 for _, last in runs(seqs)]
    for doc in await _find(database, "words", {**state.own, "seq": these}):
        known = {"seq": doc["seq"], "part": doc["part"]}
        puts.append(intents.Put("words", known, WORDLESS))
    for doc in await _find(database, "words", {**state.own, "seq": {"$in": after}, "part": 0}):
        if doc["seq"] not in seqs:
            kept: Doc = {name: doc[name] for name in ("at", "own", "size", "terms") if name in doc}
            known = {"seq": doc["seq"], "part": 0}
            puts.append(intents.Put("words", known, {**kept, "before": []}))
    vectors = await _find(database, "vectors", {**state.own, "seq": these, "body": {"$ne": b""}})
    for doc in vectors:
        known = {name: doc[name] for name in ("model", "seq", "part")}
        puts.append(intents.Put("vectors", known, {"body": b""}))
    for first, last in runs(seqs):
        over = {"first_seq": {"$lte": last}, "last_seq": {"$gte": first}}
        for doc in await _find(database, "idempotency", {**state.own, **over}):
            span = {name: doc[name] for name in ("first_seq", "last_seq")}
            puts.append(
                intents.Put("idempotency", {"key": doc["key"]}, {**span, "fingerprint": ""})
            )
    return puts, len(vectors)


async def _find(database: MongoDatabase, name: str, asked: Doc) -> list[Doc]:
    return await database.read(lambda: database[name].find(asked).to_list())


async def _drop_cards(
    database: MongoDatabase, state: HeadState, erasure: Erasure
) -> dict[str, int]:
    """Delete the cards that may quote the entries; returns how many there were of each kind."""
    counts: Counter[str] = Counter()
    for kind, first, last in erasure.cards:
        gone = {**state.own, "kind": kind, "name": {"$gte": first, "$lte": last}}
        counts[kind] += await known_cards.drop(database, gone)
    return dict(+counts)
