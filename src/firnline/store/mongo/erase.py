"""The one destructive verb. The head goes by one write, and with it the conversation.

A note is made before, so that whoever opens the store next finishes what was begun. It stays for a
while: one who was carrying out a change when the head went may come late with a document. He
deletes it himself when he finds no head; and if he cannot any more, the note leads to it.
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
    await finish(database, key)  # what an earlier try has left
    state = await intents.current(database, key)
    if state is None:
        raise unknown_conversation(key)
    digests = await database.read(lambda: database["digests"].count_documents(state.own))
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
            f"{key.conversation} is erased, but documents of it may be left; erase it again, or "
            f"open the store again: {error}"
        ) from error
    return Erased(
        key.conversation,
        gone.found.next_seq,
        digests,
        len(gone.segments),
        gone.found.total,
        gone.found.hash,
        from_microseconds(now),
    )


async def finish(database: MongoDatabase, key: Key | None = None) -> None:
    """Delete what is left of conversations that were erased; of one, or of all.

    And once more what was erased a while ago, before the note of it goes.
    """
    now = await database.time()
    left: Doc = {"swept": {"$exists": False}} | ({} if key is None else key._asdict())
    old: Doc = {"at": {"$lt": now - _KEPT_MICROSECONDS}}
    # First what is to go now: it must not wait behind any number of old notes.
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
        # If the head is there still, whoever made the note did not come to erase it.
        await database.read(lambda: notes.delete_one(itself))
    elif not there:
        await database.read(lambda: notes.update_one(itself, {"$set": {"swept": True}}))
