"""Collections, indexes and the `chat_sessions` view. All keys begin with the shard key.

It is (tenant, conversation) for a conversation's documents, and tenant for cards and projects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.errors import CollectionInvalid, DuplicateKeyError

from firnline.errors import StoreError
from firnline.log import limits
from firnline.store.migrations import check_version
from firnline.store.mongo import known_cards
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.mongo.heads import HEADED, TWIN
from firnline.store.rows import NO_TOPIC

VERSION: Final = 9
WORDS_SINCE: Final = 6  # words are analyzed in a new way
_UNREAD_SINCE: Final = 7  # conversations say whether they are read for what their person states
_OWN: Final = ("tenant", "conversation", "life")

OWNED: Final = (
    *("entries", "segments", "words", "idempotency", "digests", "topics", "members", "vectors"),
    *("staged", "cards", "known_cards"),
)
"""Collections with documents of conversations, other than heads."""

VIEW: Final = "chat_sessions"


def _index(*fields: str, **options: Any) -> IndexModel:
    """An index on fields, ascending unless the name starts with ``-``."""
    order = [(f.lstrip("-"), DESCENDING if f.startswith("-") else ASCENDING) for f in fields]
    return IndexModel(order, **options)


def _if_present(field: str) -> dict[str, Any]:
    """Options for an index of only the documents that have the field."""
    return {"partialFilterExpression": {field: {"$exists": True}}}


def _if_text(field: str) -> dict[str, Any]:
    """Options for an index of only the documents in which the field is a text."""
    return {"partialFilterExpression": {field: {"$type": "string"}}}


INDEXES: Final[dict[str, Sequence[IndexModel]]] = {
    "conversations": (
        _index("tenant", "conversation", unique=True),
        _index("tenant", "project", "conversation"),
        _index("tenant", "project", "-updated_at", "conversation", **_if_text("project")),
        _index("tenant", "person", "conversation"),
        _index("tenant", "unread", "person", "conversation", **_if_present("unread")),
        _index("owed_at", "_id", **_if_present("owed_at")),
        _index("tenant", "owed_at", "_id", **_if_present("owed_at")),
        _index("tenant", "making.version", **_if_present("making.version")),
        _index("tenant", "unflushed", **_if_present("unflushed")),
    ),
    "entries": (_index(*_OWN, "seq", unique=True),),
    "segments": (_index(*_OWN, "first_seq", "last_seq", unique=True),),
    "words": (
        _index(*_OWN, "seq", "part", unique=True),
        _index(*_OWN, "at", "seq"),
        _index("tenant", "terms", "conversation"),
    ),
    "idempotency": (_index(*_OWN, "key", unique=True),),
    "digests": (
        _index(*_OWN, "version", unique=True),
        _index(*_OWN, "topic", "status", "-version"),
    ),
    "topics": (_index(*_OWN, "id", unique=True),),
    "members": (_index(*_OWN, "seq", unique=True), _index(*_OWN, "topic", "seq")),
    "vectors": (_index(*_OWN, "model", "seq", "part", unique=True),),
    "staged": (_index(*_OWN, "token", "n", unique=True),),
    "erasures": (_index(*_OWN, unique=True),),
    "cards": (
        _index("tenant", "kind", "name", unique=True),
        _index("kind", "tenant", "name"),
        _index(*_OWN, **_if_present("life")),
    ),
    "known_cards": (
        _index("tenant", "kind", "name", unique=True),
        _index("kind", "tenant", "name"),
        _index(*_OWN, **_if_present("life")),
    ),
    "batches": (),
    "projects": (_index("tenant", "name", unique=True),),
    "project_names": (_index("tenant", "name", unique=True),),
}

EMPTY_MEMORY: Final[Doc] = {
    "important_data": {
        "user_preferences": {},
        "key_decisions": [],
        "important_facts": [],
        "source_urls": [],
        "document_structure": {},
        "entities": [],
        "custom_fields": {},
    },
    "conversation_summary": "",
    "summary_version": 0,
    "last_summarized_at": None,
    "messages_summarized_count": 0,
    "last_keep_window_index": 0,
}

_SAME: Final = [{"$eq": [f"${name}", f"$$own_{name}"]} for name in _OWN]
_SESSIONS: Final[list[Doc]] = [
    {
        "$lookup": {
            "from": "digests",
            "let": {
                "own_tenant": "$tenant",
                "own_conversation": "$conversation",
                "own_life": "$_id",
            },
            "pipeline": [
                {"$match": {"$expr": {"$and": _SAME}, "topic": NO_TOPIC, "status": "completed"}},
                {"$sort": {"version": -1}},
                {"$limit": 1},
            ],
            "as": "newest",
        }
    },
    {
        "$project": {
            "tenant": 1,
            "conversation": 1,
            "project": 1,
            "messages": "$next_seq",
            "tokens": "$total",
            "created_at": {"$toDate": {"$divide": ["$created_at", 1000]}},
            "updated_at": {"$toDate": {"$divide": ["$updated_at", 1000]}},
            "memory_compression": {
                "$ifNull": [{"$first": "$newest.memory"}, {"$literal": EMPTY_MEMORY}]
            },
        }
    },
]


async def prepare(database: MongoDatabase) -> int:
    """Create what is missing; returns the version. Writes nothing if the schema is current.

    Any number of processes may run this at once: each step is idempotent.
    """
    version = await check(database)
    if version < VERSION:
        await asyncio.gather(
            *(_prepare(database, name, indexes) for name, indexes in INDEXES.items())
        )
        await _make_view(database)
        await database.read(lambda: _add_twins(database))
        if 0 < version < _UNREAD_SINCE:
            await database.read(lambda: _mark_unread(database))
        if version:
            await database.read(lambda: known_cards.adopt(database))
        await database.read(lambda: _record_version(database, version))
    return VERSION


async def check(database: MongoDatabase) -> int:
    """The stored version; raises if it is newer than ours, or the data is not Firnline's."""
    found = await database.read(lambda: database["schema"].find_one({"_id": 1}))
    version = int(found["version"]) if found else 0
    check_version(version, VERSION)
    strange = None
    if not version:
        foreign = {"genesis": {"$exists": False}}
        strange = await database.read(lambda: database["conversations"].find_one(foreign))
    if strange is not None:
        raise StoreError(
            f"the database {database.name} has a collection `conversations` that is "
            "not Firnline's; nothing was changed: use another database"
        )
    return version


async def _prepare(database: MongoDatabase, name: str, indexes: Sequence[IndexModel]) -> None:
    if indexes:
        await database.read(lambda: database[name].create_indexes(list(indexes)))


async def _make_view(database: MongoDatabase) -> None:
    async def make() -> None:
        try:
            await database.database.create_collection(
                VIEW, viewOn="conversations", pipeline=_SESSIONS
            )
        except CollectionInvalid:
            return  # another process came first

    await database.read(make)


async def _add_twins(database: MongoDatabase) -> None:
    """Heads of before have each field once."""
    await database["conversations"].update_many(
        {"twin": {"$exists": False}}, [{"$set": {"twin": TWIN}}]
    )
    once = {f"twin.{name}": f"${name}" for name in HEADED}
    await database["conversations"].update_many(
        {"twin.next_seq": {"$exists": False}}, [{"$set": once}]
    )


async def _mark_unread(database: MongoDatabase) -> None:
    of_people = {"person": {"$type": "string"}, "next_seq": {"$gt": 0}}
    await database["conversations"].update_many(of_people, {"$set": {"unread": True}})


async def _record_version(database: MongoDatabase, before: int) -> None:
    change: Doc = {"$max": {"version": VERSION}}
    if 0 < before < WORDS_SINCE:
        change["$set"] = {"owed": "words"}
    known = {"_id": 1, "version": before} if before else {"_id": 1}
    try:
        await database["schema"].update_one(known, change, upsert=not before)
    except DuplicateKeyError:
        return  # another process came first


async def is_owed(database: MongoDatabase) -> bool:
    """Whether everything must be indexed again, because words are analyzed in a new way."""
    owed = {"_id": 1, "owed": "words"}
    return await database.read(lambda: database["schema"].find_one(owed)) is not None


async def claim(database: MongoDatabase) -> bool:
    """Whether everything must be indexed again, and no other process does it."""
    older = {"$subtract": ["$$NOW", 1000 * limits.REINDEX_SECONDS]}
    free = {"$lt": [{"$ifNull": ["$claimed_at", datetime.fromtimestamp(0, UTC)]}, older]}
    changed = await database["schema"].update_one(
        {"_id": 1, "owed": "words", "$expr": free}, [{"$set": {"claimed_at": "$$NOW"}}]
    )
    return changed.modified_count == 1


async def done(database: MongoDatabase) -> None:
    """Everything was indexed again."""
    await database["schema"].update_one({"_id": 1}, {"$unset": {"owed": "", "claimed_at": ""}})
