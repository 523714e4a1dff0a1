"""Changes of several documents beside the log, in one step.

The head is what decides: one write to it, which names the state that was decided on, carries the
new documents (or where they wait, if they are large). Then they are put where they belong, by
whoever comes first, and taken out of the head. Each has the number of its change, so one who comes
late never puts an old one over a new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
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
from firnline.store.mongo.heads import HeadState, find, state_of

_INLINE: Final = 1024 * 1024
_WAITS: Final = 4
_WAIT_SECONDS: Final = 0.002
_DOCUMENT_MAX: Final = 15 * 1024 * 1024


class Put(NamedTuple):
    """A document to be written: where, by what it is known there, and what it says besides."""

    into: str
    known_by: Mapping[str, Any]
    doc: Mapping[str, Any]


async def current(database: MongoDatabase, key: Key) -> HeadState | None:
    """The conversation with nothing left to be carried out; or None.

    Whoever made a change is most likely just carrying it out; only if not, we do.
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
    """Write all of `puts`, and `sets` in the head, if that is still as `state` says.

    None if it is not: then nothing was written, and whoever decided must look again.
    """
    op = state.op + 1
    docs = [{"into": put.into, "by": put.known_by, "doc": put.doc} for put in puts]
    sizes = [len(bson.encode(doc)) for doc in docs]
    if max(sizes, default=0) > _DOCUMENT_MAX:
        raise InputError("larger than MongoDB takes: a document has up to 16 MiB")
    redo: Doc = {"op": op, "docs": docs}
    if sum(sizes) > _INLINE:
        redo = {"op": op, "staged": await _stage(database, state, docs, sizes), "count": len(docs)}
    new = {**sets, "op": op, **({"redo": redo} if docs else {})}
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
    """Put the documents of a change where they belong; None if the conversation was erased."""
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
    now = await find(database, state.found.key)  # somebody else was faster, or it was erased
    if now is None or now.life != state.life:
        await sweep(database, state.own)
        return None
    return now


def _requests(
    state: HeadState, docs: Sequence[Mapping[str, Any]], op: int
) -> Iterator[tuple[str, list[ReplaceOne[Doc]]]]:
    """The writes, by collection, some at once."""
    for name, items in groupby(docs, key=lambda item: str(item["into"])):
        page: list[ReplaceOne[Doc]] = []
        size = 0
        for item in items:
            known = {**state.own, **item["by"]}
            new = {**known, **item["doc"], "op": op}
            page.append(ReplaceOne({**known, "op": {"$lt": op}}, new, upsert=True))
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
        raise StoreCorrupt(f"{state.found.key.conversation}: documents that waited are gone")
    return None  # somebody else has put them where they belong


async def put_unless_newer(
    database: MongoDatabase, name: str, requests: Sequence[ReplaceOne[Doc] | UpdateOne]
) -> None:
    """Put documents over older ones; each request finds only such, and makes what is missing."""
    try:
        await database[name].bulk_write(list(requests), ordered=False)
    except BulkWriteError as error:
        if not only_duplicates(error):  # a newer one is there
            raise
