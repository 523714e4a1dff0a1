"""Known cards: which cards there are, so that one that vanishes is noticed.

Each card has a second, small document. It is written after the card and deleted before it, so a
process that is killed in between leaves a card that is not known, and never one that is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from bson import ObjectId
from pymongo import UpdateOne

from firnline.log.entry import Key
from firnline.protocols import Damage
from firnline.store.cards import card_damage, dropped_with
from firnline.store.limits import MISSING_CARD_SECONDS, MISSING_CARD_TRIES
from firnline.store.mongo.connection import Doc, MongoDatabase

PLACE: Final = ("tenant", "kind", "name")
_OWNER: Final = ("conversation", "life")
_CARD: Final[Doc] = {
    "$lookup": {
        "from": "cards",
        "let": {f"of_{name}": f"${name}" for name in PLACE},
        "pipeline": [
            {"$match": {"$expr": {"$and": [{"$eq": [f"${n}", f"$$of_{n}"]} for n in PLACE]}}},
            {"$project": {"_id": 1}},
        ],
        "as": "card",
    }
}
_HEAD: Final[Doc] = {
    "$lookup": {
        "from": "conversations",
        "let": {"of_life": "$life"},
        "pipeline": [
            {"$match": {"$expr": {"$eq": ["$_id", "$$of_life"]}}},
            {"$project": {"_id": 1}},
        ],
        "as": "head",
    }
}
_LIVES: Final[Doc] = {"$match": {"$or": [{"life": {"$exists": False}}, {"head": {"$ne": []}}]}}


async def add(database: MongoDatabase, docs: Sequence[Mapping[str, Any]]) -> None:
    """Know cards that were just written."""
    requests = []
    for doc in docs:
        owner = {name: doc[name] for name in _OWNER if doc.get(name) is not None}
        write = {"$set": owner} if owner else {"$unset": dict.fromkeys(_OWNER, "")}
        requests.append(UpdateOne(_place(doc), write, upsert=True))
    await database.read(lambda: database["known_cards"].bulk_write(requests, ordered=False))
    # One may have been dropped just before it was known.
    await forget_missing(database, {"$or": [_place(doc) for doc in docs]})


async def drop(database: MongoDatabase, where: Doc) -> int:
    """Delete cards; returns how many there were."""
    await database.read(lambda: database["known_cards"].delete_many(where))
    done = await database.read(lambda: database["cards"].delete_many(where))
    # One may have been known again meanwhile, by the process that had just written the card.
    await forget_missing(database, where)
    return int(done.deleted_count)


async def forget_missing(database: MongoDatabase, where: Doc) -> None:
    """Forget cards that are missing."""
    for doc in await _without_card(database, [{"$match": where}]):
        itself = {"_id": doc["_id"]}
        await database.read(partial(database["known_cards"].delete_one, itself))


async def adopt(database: MongoDatabase) -> None:
    """Know all cards that there are."""
    fields: Doc = {"_id": 0, **dict.fromkeys((*PLACE, *_OWNER), 1)}
    merge: Doc = {"into": "known_cards", "on": [*PLACE], "whenMatched": "keepExisting"}
    await (await database["cards"].aggregate([{"$project": fields}, {"$merge": merge}])).to_list()


async def missing(
    database: MongoDatabase, where: Doc, limit: int | None = None
) -> list[tuple[str, str]]:
    """The kinds and names of known cards that are missing, among the first `limit` of these.

    Looked for again for a moment, because a process may be writing or dropping them.
    """
    first: list[Doc] = [{"$match": where}, {"$sort": {"tenant": 1, "name": 1}}]
    first += [] if limit is None else [{"$limit": limit}]
    known: set[ObjectId] | None = None
    for _ in range(MISSING_CARD_TRIES):
        found = await _without_card(database, first)
        found = [doc for doc in found if known is None or doc["_id"] in known]
        if not found:
            return []
        known = {doc["_id"] for doc in found}
        await asyncio.sleep(MISSING_CARD_SECONDS)
    return [(doc["kind"], doc["name"]) for doc in found]


async def _without_card(database: MongoDatabase, first: Sequence[Doc]) -> list[Doc]:
    steps = [*first, _CARD, {"$match": {"card": []}}, _HEAD, _LIVES]

    async def find() -> list[Doc]:
        return await (await database["known_cards"].aggregate(steps)).to_list()

    return await database.read(find)


async def damaged_cards(database: MongoDatabase, key: Key, life: ObjectId | None) -> list[Damage]:
    """The missing cards of a conversation; without its id, the tenant's that have none."""
    found = await missing(database, _own(key, life))
    return [card_damage(key.conversation, kind, name) for kind, name in found]


async def mend(database: MongoDatabase, key: Key, life: ObjectId | None) -> None:
    """Forget the missing cards; see `dropped_with`."""
    for found in await missing(database, _own(key, life)):
        for kind, name in dropped_with(*found):
            await drop(database, {"tenant": key.tenant, "kind": kind, "name": name})


def _own(key: Key, life: ObjectId | None) -> Doc:
    return {"tenant": key.tenant, "life": {"$exists": False} if life is None else life}


def _place(doc: Mapping[str, Any]) -> Doc:
    return {name: doc[name] for name in PLACE}
