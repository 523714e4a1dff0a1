"""Pins: the entries that every context shows. They are in the head, so a mark is one write."""

from __future__ import annotations

from firnline.errors import InputError, StoreCorrupt
from firnline.log.entry import Entry, Key
from firnline.store.mongo import log
from firnline.store.mongo.connection import Database, Doc
from firnline.store.mongo.heads import State, find, unknown
from firnline.store.mongo.writer import check_pins
from firnline.store.rows import SEQ_MAX


async def pin(database: Database, key: Key, seq: int, *, pinned: bool) -> None:
    """Mark an entry or take the mark away; nothing happens if it is so already."""
    if pinned:
        check_pins(await find(database, key), 1)
    there: Doc = {**key._asdict(), "next_seq": {"$gt": min(max(seq, -1), SEQ_MAX)}}
    change = {"$addToSet" if pinned else "$pull": {"pins": seq}}
    if 0 <= seq <= SEQ_MAX:
        done = await database.read(lambda: database["conversations"].update_one(there, change))
        if done.matched_count:
            return
    if await find(database, key) is None:
        raise unknown(key)
    raise InputError(f"{key.conversation} has no entry {seq}")


async def pinned(database: Database, state: State) -> list[Entry]:
    """The marked entries; a mark on what is not there is damage."""
    marked = sorted(set(state.doc.get("pins", ())))
    entries = await log.at(database, state, marked)
    if len(entries) != len(marked):
        raise StoreCorrupt(f"{state.found.key.conversation}: an entry is pinned but not there")
    return entries
