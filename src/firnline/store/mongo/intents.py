"""Atomic changes of several documents next to the log.

One write to the head is the commit: it requires the state that the change was decided on, and adds
the new documents (or a reference to staged ones, if they are large). Any process then writes them
to their collections and removes them from the head. Each has the number of its change, so a late
writer never replaces a newer document.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

import bson
from bson import ObjectId
from pymongo import ReplaceOne, ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError

from firnline.errors import InputError, StoreCorrupt
from firnline.log.entry import Key
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.mongo.errors import only_duplicates
from firnline.store.mongo.flush import MESSAGE_BYTES, drop_staged, put_new, sweep
from firnline.store.mongo.heads import INLINE_BYTES, HeadState, find, state_of, with_twin
from firnline.store.mongo.seals import resealed

TRIES: Final = 100
"""Attempts at a head that other processes keep changing."""
DOCUMENT_BYTES_MAX: Final = 15 * 1024 * 1024
"""MongoDB limits a document to 16 MiB in all."""
_WAITS: Final = 4
_WAIT_SECONDS: Final = 0.002


class Put(NamedTuple):
    """A document to write: its collection, its key fields, and its other fields."""

    into: str
    known_by: Mapping[str, Any]
    doc: Mapping[str, Any]


async def current(database: MongoDatabase, key: Key) -> HeadState | None:
    """The conversation without a pending change, or None.

    The process that made a change is usually applying it; this waits briefly, then does it itself.
    """
    state = await find(database, key)
    waited = 0
    while state is not None and "redo" in state.doc:
        waited += 1
        if waited <= _WAITS:
            await asyncio.sleep(_WAIT_SECONDS * waited)
        else:
            await carry_out(database, state)
        state = await find(database, key)
    return state


async def change(
    database: MongoDatabase,
    state: HeadState,
    puts: Sequence[Put],
    sets: Mapping[str, Any],
    only_if: Mapping[str, Any] | None = None,
) -> HeadState | None:
    """Write all of `puts`, and `sets` in the head, if the head still matches `state`.

    None if it does not: then nothing was written, and the caller must decide again.
    """
    op = state.op + 1
    docs = [{"into": put.into, "by": put.known_by, "doc": put.doc} for put in puts]
    sizes = [len(bson.encode(doc)) for doc in docs]
    if max(sizes, default=0) > DOCUMENT_BYTES_MAX:
        raise InputError(f"document too large: the limit is {DOCUMENT_BYTES_MAX:,} bytes")
    redo: Doc = {"op": op, "docs": docs}
    if sum(sizes) > INLINE_BYTES:
        redo = {"op": op, "staged": await _stage(database, state, docs, sizes), "count": len(docs)}
    if docs:
        unsealed = replace(state, doc={n: v for n, v in state.doc.items() if n != "seals"})
        written = [(put.into, {**put.known_by, **put.doc}) for put in puts]
        base = unsealed if "seals" in sets else state
        sets = {**sets, "seals": await resealed(database, base, written)}
    new = {**with_twin(sets), "op": op, **({"redo": redo} if docs else {})}
    gone = {name: "" for name, value in new.items() if value is None}
    write: Doc = {"$set": {name: value for name, value in new.items() if name not in gone}}
    if gone:
        write["$unset"] = gone
    same = {**state.found.key._asdict(), "_id": state.life, "op": state.op}
    same |= {"redo": {"$exists": False}, **(only_if or {})}
    heads = database["conversations"]
    doc = await database.write(
        lambda: heads.find_one_and_update(same, write, return_document=ReturnDocument.AFTER)
    )
    if doc is None:
        if "staged" in redo:
            await drop_staged(database, state.own, [redo["staged"]])
        return None
    now = state_of(state.found.key, doc)
    return await carry_out(database, now) or now


async def _stage(
    database: MongoDatabase, state: HeadState, docs: Sequence[Doc], sizes: Sequence[int]
) -> ObjectId:
    place = ObjectId()
    page: list[Doc] = []
    waiting = 0
    for n, (doc, size) in enumerate(zip(docs, sizes, strict=True)):
        page.append({**state.own, "token": place, "n": n, "row": doc})
        waiting += size
        if waiting > MESSAGE_BYTES or n == len(docs) - 1:
            await put_new(database, "staged", page)
            page, waiting = [], 0
    return place


async def carry_out(database: MongoDatabase, state: HeadState) -> HeadState | None:
    """Write the documents of a pending change; None if the conversation was erased."""
    redo = state.doc.get("redo")
    if redo is None:
        return state
    docs = redo["docs"] if "docs" in redo else await _staged_docs(database, state, redo)
    if docs is None:
        return None
    await asyncio.gather(
        *(
            database.read(partial(put_unless_newer, database, name, requests))
            for name, requests in _requests(state, docs, redo["op"])
        )
    )
    own = {**state.found.key._asdict(), "_id": state.life, "redo.op": redo["op"]}
    doc = await database.read(
        lambda: database["conversations"].find_one_and_update(
            own, {"$unset": {"redo": ""}}, return_document=ReturnDocument.AFTER
        )
    )
    if "staged" in redo:
        await drop_staged(database, state.own, [redo["staged"]])
    if doc is not None:
        return state_of(state.found.key, doc)
    now = await find(database, state.found.key)  # applied by another process, or erased
    if now is None or now.life != state.life:
        await sweep(database, state.own)
        return None
    return now


def _requests(
    state: HeadState, docs: Sequence[Mapping[str, Any]], op: int
) -> Iterator[tuple[str, list[ReplaceOne[Doc]]]]:
    """The writes by collection, in pages."""
    for name, items in groupby(docs, key=lambda item: str(item["into"])):
        page: list[ReplaceOne[Doc]] = []
        size = 0
        for item in items:
            known = {**state.own, **item["by"]}
            new = {**known, **item["doc"], "op": op}
            # Documents of the log have no number until they are changed.
            page.append(ReplaceOne({**known, "op": {"$not": {"$gte": op}}}, new, upsert=True))
            size += len(bson.encode(new))
            if size > MESSAGE_BYTES:
                yield name, page
                page, size = [], 0
        if page:
            yield name, page


async def _staged_docs(
    database: MongoDatabase, state: HeadState, redo: Mapping[str, Any]
) -> list[Doc] | None:
    asked = {**state.own, "token": redo["staged"]}
    found = await database.read(lambda: database["staged"].find(asked).sort("n", 1).to_list())
    if len(found) == redo["count"]:
        return [item["row"] for item in found]
    now = await find(database, state.found.key)
    if now is not None and now.life == state.life and now.doc.get("redo") == redo:
        raise StoreCorrupt(f"{state.found.key.conversation}: staged documents are missing")
    return None  # another process has applied the change


async def put_unless_newer(
    database: MongoDatabase, name: str, requests: Sequence[ReplaceOne[Doc] | UpdateOne]
) -> None:
    """Upsert documents; each request matches only an older one, so newer ones are kept."""
    try:
        await database[name].bulk_write(list(requests), ordered=False)
    except BulkWriteError as error:
        if not only_duplicates(error):  # a newer document exists
            raise
