"""Erasure, the only destructive operation. One write deletes the head, and so the conversation.

A note is written first, so that the next process to open the store finishes an interrupted erasure.
It is kept for a while: a process that was applying a change may still write a document. That
process deletes the document when it finds no head; if it crashes, the note leads to the document.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from firnline.errors import FirnlineError, StoreUnavailable
from firnline.log.entry import Erased, Key
from firnline.log.message import from_microseconds
from firnline.store.mongo import intents
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.mongo.flush import sweep
from firnline.store.mongo.heads import state_of, unknown_conversation

_KEPT_MICROSECONDS: Final = 10 * 60 * 1_000_000
_AT_ONCE: Final = 100


async def erase(database: MongoDatabase, key: Key) -> Erased:
    """Delete the head, then every document the conversation owns."""
    await finish(database, key)  # left by an earlier attempt
    state = await intents.current(database, key)
    if state is None:
        raise unknown_conversation(key)
    counts = [
        await database.read(partial(database[name].count_documents, state.own))
        for name in ("digests", "vectors", "topics")
    ]
    cards = await database.read(partial(_count_cards, database, state.own))
    now = await database.time()
    note = {"$set": {"at": now}}
    await database.read(lambda: database["erasures"].update_one(state.own, note, upsert=True))
    head = {**key._asdict(), "_id": state.life}
    doc = await database.write(lambda: database["conversations"].find_one_and_delete(head))
    if doc is None:
        raise unknown_conversation(key)
    gone = state_of(key, doc)
    try:
        await finish(database, key)
    except FirnlineError as error:
        raise StoreUnavailable(
            f"{key.conversation} is erased, but some of its documents may remain; erase it "
            f"again, or reopen the store: {error}"
        ) from error
    return Erased(
        key.conversation,
        gone.found.next_seq,
        counts[0],
        len(gone.segments),
        gone.found.total,
        gone.found.hash,
        from_microseconds(now),
        vectors=counts[1],
        topics=counts[2],
        cards=cards,
    )


async def _count_cards(database: MongoDatabase, own: Doc) -> dict[str, int]:
    """How many cards of each kind the conversation has."""
    counted = [{"$match": own}, {"$group": {"_id": "$kind", "count": {"$sum": 1}}}]
    found = await (await database["cards"].aggregate([*counted, {"$sort": {"_id": 1}}])).to_list()
    return {doc["_id"]: doc["count"] for doc in found}


async def finish(database: MongoDatabase, key: Key | None = None) -> None:
    """Delete the remaining documents of erased conversations: of one, or of all.

    Those of old erasures are deleted once more before the note is removed.
    """
    now = await database.time()
    left: Doc = {"swept": {"$exists": False}} | ({} if key is None else key._asdict())
    old: Doc = {"at": {"$lt": now - _KEPT_MICROSECONDS}}
    # Unfinished erasures first: they must not wait for any number of old notes.
    for asked, limit in ((left, 0), (old, _AT_ONCE)):
        for note in await database.read(partial(_notes, database, asked, limit)):
            await _finish_one(database, note, now)


async def _notes(database: MongoDatabase, asked: Doc, limit: int) -> list[Doc]:
    return await database["erasures"].find(asked).limit(limit).to_list()


async def _finish_one(database: MongoDatabase, note: Doc, now: int) -> None:
    own = {name: note[name] for name in ("tenant", "conversation", "life")}
    head = {"tenant": own["tenant"], "conversation": own["conversation"], "_id": own["life"]}
    there = await database.read(lambda: database["conversations"].count_documents(head, limit=1))
    if not there:
        await sweep(database, own)
    notes, itself = database["erasures"], {"_id": note["_id"]}
    if now - note["at"] > _KEPT_MICROSECONDS:
        # If the head still exists, the erasure was interrupted before it deleted anything.
        await database.read(lambda: notes.delete_one(itself))
    elif not there:
        await database.read(lambda: notes.update_one(itself, {"$set": {"swept": True}}))
