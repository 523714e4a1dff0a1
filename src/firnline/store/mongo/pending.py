"""Pending work: which conversations are due, from when, and which are to be read."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime

from pymongo import UpdateOne

from firnline.log import limits
from firnline.log.entry import Head, Key
from firnline.log.message import from_microseconds, microseconds
from firnline.protocols import Pending
from firnline.store.digests import POSTPONE_MAX, is_leased
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.mongo.heads import HEAVY, head_in, with_twin


async def mark(database: MongoDatabase, key: Key, due: datetime, *, postpone: bool) -> None:
    """Mark a conversation as due; an earlier mark is kept unless `postpone` is true."""
    asked: Doc = key._asdict()
    if not postpone:
        asked["owed_at"] = {"$exists": False}
    marked = {"$set": with_twin({"owed_at": microseconds(due)})}
    await database.read(lambda: database["conversations"].update_one(asked, marked))


async def due(
    database: MongoDatabase, now: datetime, limit: int, tenants: Collection[str] | None
) -> list[Key]:
    """The conversations that are due, oldest first; last, those marked with a wrong clock."""
    at = microseconds(now)
    found: list[Key] = []
    for bound in ({"$lte": at}, {"$gt": at + POSTPONE_MAX}):
        if len(found) < limit:
            asked: Doc = {"owed_at": bound}
            if tenants is not None:
                asked["tenant"] = {"$in": sorted(tenants)}
            found += await _marked(database, asked, limit - len(found))
    return found


async def _marked(database: MongoDatabase, asked: Doc, limit: int) -> list[Key]:
    docs = await database.read(
        lambda: (
            database["conversations"]
            .find(asked, projection={"tenant": 1, "conversation": 1})
            .sort([("owed_at", 1), ("_id", 1)])
            .limit(limit)
            .to_list()
        )
    )
    return [Key(doc["tenant"], doc["conversation"]) for doc in docs]


def _of(tenant: str | None) -> Doc:
    return {} if tenant is None else {"tenant": tenant}


async def count(
    database: MongoDatabase, now: datetime, stuck_before: datetime, cards: str, tenant: str | None
) -> Pending:
    """Pending and processing digests, counted in partial indexes."""
    counted = {"_id": None, "count": {"$sum": 1}, "oldest": {"$min": "$owed_at"}}
    pipeline: list[Doc] = [
        {"$match": {"owed_at": {"$exists": True}} | _of(tenant)},
        {"$group": counted},
    ]
    made = {"making.version": {"$exists": True}} | _of(tenant)
    shown = {"making": 1, "lease_until": 1}
    marked, docs, kept = await asyncio.gather(
        database.read(lambda: _aggregate(database, pipeline)),
        database.read(
            lambda: (
                database["conversations"]
                .find(made, projection=shown)
                .limit(limits.WATCHED_MAX)
                .to_list()
            )
        ),
        database.read(lambda: database["cards"].count_documents({"kind": cards} | _of(tenant))),
    )
    at = microseconds(now)
    making = [(item["at"], doc.get("lease_until")) for doc in docs for item in doc["making"]]
    stuck = microseconds(stuck_before)
    oldest = marked[0]["oldest"] if marked else None
    return Pending(
        conversations=marked[0]["count"] if marked else 0,
        oldest=None if oldest is None else from_microseconds(oldest),
        processing=len(making),
        leased=sum(is_leased(until, at) for _, until in making),
        stuck=sum(begun is not None and begun < stuck for begun, _ in making),
        cards=kept,
    )


async def _aggregate(database: MongoDatabase, pipeline: list[Doc]) -> list[Doc]:
    return await (await database["conversations"].aggregate(pipeline)).to_list()


async def clear(database: MongoDatabase, key: Key, last_seq: int) -> bool:
    """Clear the mark, unless there are entries after `last_seq`."""
    seen = {**key._asdict(), "next_seq": {"$lte": min(last_seq, 1 << 40) + 1}}
    done = await database.read(
        lambda: database["conversations"].update_one(seen, {"$unset": with_twin({"owed_at": ""})})
    )
    if done.matched_count:
        return True
    return not await database.read(
        lambda: database["conversations"].count_documents(key._asdict(), limit=1)
    )


async def unread(
    database: MongoDatabase, tenant: str, person: str | None, limit: int
) -> list[Head]:
    """The conversations of a person, or of any, that were not read to their end, by name."""
    if limit <= 0:
        return []
    asked: Doc = {"tenant": tenant, "unread": True} | ({} if person is None else {"person": person})
    cursor = database["conversations"].find(asked, projection=HEAVY)
    order = [("person", 1), ("conversation", 1)] if person is None else [("conversation", 1)]
    docs = await database.read(lambda: cursor.clone().sort(order).limit(limit).to_list())
    return [head_in(doc) for doc in docs]


async def mark_read(database: MongoDatabase, tenant: str, read: Mapping[str, int]) -> None:
    """Conversations are read, unless they have more entries by now."""
    changes = [
        UpdateOne(
            {"tenant": tenant, "conversation": name, "next_seq": {"$lte": entries}},
            {"$unset": with_twin({"unread": ""})},
        )
        for name, entries in read.items()
    ]
    if changes:
        await database.read(lambda: database["conversations"].bulk_write(changes, ordered=False))
