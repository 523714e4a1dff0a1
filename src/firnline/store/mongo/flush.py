"""Flushing: moving entries from the tail of a head into documents of their own, and the views.

Entries in the tail are acknowledged and never change, so any process may flush them, concurrently
or again after a crash: the resulting documents are always the same. Once all of them exist, one
write removes the entries from the tail.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pymongo import ReturnDocument
from pymongo.errors import BulkWriteError

from firnline.errors import StoreCorrupt
from firnline.log import limits
from firnline.log.entry import ERASED, Key, erased_at
from firnline.log.message import EPOCH, Message, decode, microseconds
from firnline.store import word_scores
from firnline.store.erasure import NEVER
from firnline.store.mongo import words
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.mongo.errors import only_duplicates
from firnline.store.mongo.heads import HeadState, find, state_of
from firnline.store.mongo.schema import OWNED
from firnline.store.rows import TERMS_PER_ROW

MESSAGE_BYTES: Final = 8 * 1024 * 1024
"""Approximate bytes per request to the server."""
_ENTRY: Final = ("seq", "body", "tokens", "total", "hash", "tokenizer", "batch")

Row = Mapping[str, Any]

WORDLESS: Final[Row] = {"at": NEVER, "own": 0, "size": 0, "terms": [], "before": []}
"""What the words of an erased entry are."""


async def flush(database: MongoDatabase, state: HeadState) -> HeadState | None:
    """Flush the tail; returns the new state, or None if it was erased meanwhile."""
    if not state.tail:
        return state
    end = state.found.next_seq
    before = await _words_before(database, state)
    async for rows in _pages(database, state):
        before = await _move(database, state, rows, before)
    now = await database.read(lambda: _cut(database, state, end))
    if now is None:
        await sweep(database, state.own)
        return None
    tokens = [row["staged"] for row in state.tail if "staged" in row]
    if tokens:
        await drop_staged(database, state.own, tokens)
    return state_of(state.found.key, now)


async def find_settled(database: MongoDatabase, key: Key) -> HeadState | None:
    """The conversation, after staged entries are flushed; or None."""
    state = await find(database, key)
    while state is not None and state.staged:
        state = await flush(database, state) or await find(database, key)
    return state


async def _cut(database: MongoDatabase, state: HeadState, end: int) -> Doc | None:
    """Remove the entries before `end` from the tail, if they are still there."""
    left = {"$filter": {"input": "$tail", "cond": {"$gte": ["$$this.seq", end]}}}
    found: Doc | None = await database["conversations"].find_one_and_update(
        {**state.found.key._asdict(), "_id": state.life},
        [
            {"$set": {"tail": left, "flushed": {"$max": ["$flushed", end]}}},
            {
                "$set": {
                    "unflushed": {"$cond": [{"$eq": [{"$size": "$tail"}, 0]}, "$$REMOVE", True]}
                }
            },
        ],
        return_document=ReturnDocument.AFTER,
    )
    return found


async def _pages(database: MongoDatabase, state: HeadState) -> AsyncIterator[list[Row]]:
    """The entries of the tail, staged ones included, in order."""
    page: list[Row] = []
    size = 0
    async for row in _rows(database, state):
        if page and (size + len(row["body"]) > MESSAGE_BYTES or len(page) >= limits.INDEX_PAGE):
            yield page
            page, size = [], 0
        page.append(row)
        size += len(row["body"])
    if page:
        yield page


async def _rows(database: MongoDatabase, state: HeadState) -> AsyncIterator[Row]:
    for row in state.tail:
        if "staged" not in row:
            yield row
            continue
        asked = {**state.own, "token": row["staged"]}
        count = 0
        async for item in database["staged"].find(asked, batch_size=4).sort("n", 1):
            count += 1
            yield item["row"]
        if count != row["count"] and await _still_staged(database, state, row):
            raise StoreCorrupt(f"{state.found.key.conversation}: staged messages are missing")


async def _still_staged(database: MongoDatabase, state: HeadState, row: Row) -> bool:
    """Whether no other process has flushed the staged entries."""
    now = await find(database, state.found.key)
    return now is not None and now.life == state.life and now.flushed <= row["seq"]


async def _words_before(database: MongoDatabase, state: HeadState) -> list[int]:
    """The words of the entry before the tail."""
    at = {**state.own, "seq": state.flushed - 1, "part": 0}
    asked = {
        "before": {"$slice": ["$terms", {"$max": [{"$min": ["$own", word_scores.BEFORE_MAX]}, 1]}]}
    }
    if state.flushed == 0:
        return []
    found = await database.read(lambda: database["words"].find_one(at, projection=asked))
    return list(found["before"]) if found else []


async def _move(
    database: MongoDatabase, state: HeadState, rows: Sequence[Row], before: list[int]
) -> list[int]:
    """Write the documents of some entries; returns the words of the last one."""
    entries = [
        {**state.own, **{name: row[name] for name in _ENTRY if name in row}, "op": 0}
        for row in rows
    ]
    keys = [
        {
            **state.own,
            "key": row["key"],
            "fingerprint": row["fingerprint"],
            "first_seq": row["seq"],
            "last_seq": row["last"],
        }
        for row in rows
        if "key" in row
    ]
    said = [(row["seq"], _message(row["body"]), len(row["body"])) for row in rows]
    views, before = await analyze(state.own, said, before)
    await asyncio.gather(
        put_new(database, "entries", entries),
        put_new(database, "words", views),
        put_new(database, "idempotency", keys),
    )
    return before


async def analyze(
    own: Doc, messages: Sequence[tuple[int, Message, int]], before: list[int]
) -> tuple[list[Doc], list[int]]:
    """The view documents of messages, each with its seq and size; and the last one's words."""

    def work() -> tuple[list[Doc], list[int]]:
        last, docs = before, []
        for seq, message, _ in messages:
            docs += _views(own, seq, message, last)
            last = docs[-1]["terms"][: min(docs[-1]["own"], word_scores.BEFORE_MAX)]
        return docs, last

    large = sum(size for *_, size in messages) > limits.ANALYZE_INLINE_BYTES
    return await asyncio.to_thread(work) if large else work()


def _message(body: bytes) -> Message:
    return ERASED if erased_at(body) else decode(body)


def _views(own: Doc, seq: int, message: Message, before: list[int]) -> list[Doc]:
    if message is ERASED:
        return [{**own, "seq": seq, "part": 0, **WORDLESS}]
    said, others = words.of_entry(own["tenant"], message)
    terms = said + others
    at = microseconds(message.created_at or EPOCH)
    parts = [terms[start : start + TERMS_PER_ROW] for start in range(0, len(terms), TERMS_PER_ROW)]
    return [
        {
            **own,
            "seq": seq,
            "part": part,
            "at": at,
            "own": max(min(len(said) - part * TERMS_PER_ROW, TERMS_PER_ROW), 0),
            "size": len(terms),
            "terms": some,
            "before": before if part == 0 else [],
        }
        for part, some in enumerate(parts)
    ]


async def put_new(database: MongoDatabase, name: str, docs: Sequence[Doc]) -> None:
    """Insert documents; existing ones are identical and are skipped."""
    if docs:
        await database.read(lambda: _insert(database, name, [dict(doc) for doc in docs]))


async def _insert(database: MongoDatabase, name: str, docs: list[Doc]) -> None:
    try:
        await database[name].insert_many(docs, ordered=False)
    except BulkWriteError as error:
        if not only_duplicates(error):
            raise


async def drop_staged(database: MongoDatabase, own: Doc, tokens: Sequence[Any]) -> None:
    """Delete staged documents that are no longer needed."""
    gone = {**own, "token": {"$in": list(tokens)}}
    await database.read(lambda: database["staged"].delete_many(gone))


async def sweep(database: MongoDatabase, own: Doc) -> None:
    """Delete every document of a conversation whose head is gone."""
    await asyncio.gather(
        *(database.read(partial(database[name].delete_many, own)) for name in OWNED)
    )
