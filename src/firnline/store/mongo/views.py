"""Rebuilding the views of the log, a page at a time, while appends continue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pymongo import ReplaceOne

from firnline.errors import StoreCorrupt
from firnline.log import limits
from firnline.log.entry import ERASED, Key, Record
from firnline.log.message import Message, decode
from firnline.store.mongo import flush, log
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.mongo.heads import HeadState


async def every_key(database: MongoDatabase) -> list[tuple[Key, int]]:
    """All conversations of all tenants, and how many entries each has."""
    shown = {"tenant": 1, "conversation": 1, "next_seq": 1}
    docs = await database.read(
        lambda: database["conversations"].find({}, projection=shown).sort("_id", 1).to_list()
    )
    return [(Key(doc["tenant"], doc["conversation"]), doc["next_seq"]) for doc in docs]


async def index_page(database: MongoDatabase, key: Key, first: int) -> int:
    """Index the next page of a conversation; returns where to continue, 0 if it is gone.

    Entries in the tail are indexed when they are flushed.
    """

    async def work(state: HeadState) -> int:
        if first >= state.flushed:
            return max(state.flushed, 1)
        stored, end = await log.page(
            database, state, max(first - 1, 0), state.flushed - 1, limit=limits.INDEX_PAGE,
            tolerant=True,
        )  # fmt: skip
        said = [(r.seq, message, len(r.body)) for r in stored if (message := _message(r))]
        docs, _ = await flush.analyze(state.own, said, [])
        await _replace(database, state, [doc for doc in docs if doc["seq"] >= first])
        return end

    return await log.read(database, key, work, 0)


async def _replace(database: MongoDatabase, state: HeadState, docs: Sequence[Doc]) -> None:
    """Replace documents, or insert them."""
    if not docs:
        return
    requests = [
        ReplaceOne({**state.own, "seq": doc["seq"], "part": doc["part"]}, doc, upsert=True)
        for doc in docs
    ]
    await database.read(lambda: database["words"].bulk_write(requests, ordered=False))
    now = await flush.find_settled(database, state.found.key)
    if now is None or now.life != state.life:
        await flush.sweep(database, state.own)
    await asyncio.sleep(0)


def _message(record: Record) -> Message | None:
    try:
        if record.erased:
            return ERASED
        return None if record.problem else decode(record.body)
    except StoreCorrupt:
        return None  # not searchable; reading or verifying it reports the damage
