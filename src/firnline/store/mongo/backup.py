"""Backup to one file of BSON documents, and restore into an empty database.

Each conversation is a consistent snapshot: its documents are read between two reads of its head,
and again if the head has changed. The file appears only when it is complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import bson

from firnline.errors import InputError, StoreCorrupt, StoreUnavailable
from firnline.log import limits
from firnline.log.entry import Key
from firnline.protocols import Progress
from firnline.store.files import atomic_write
from firnline.store.limits import BACKUP_PAGE, SNAPSHOT_TRIES
from firnline.store.mongo import archive, known_cards, schema, views
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.mongo.flush import put_new
from firnline.store.mongo.heads import HeadState

_FORMAT: Final = {"firnline": "a copy of a MongoDB store", "version": 1}


async def copy_to(database: MongoDatabase, path: Path, progress: Progress | None) -> None:
    """Write a backup to a new file."""
    with atomic_write(path, new=True) as half_done, half_done.open("wb") as file:
        await _copy(database, file, progress)


async def _copy(database: MongoDatabase, file: BinaryIO, progress: Progress | None) -> None:
    file.write(bson.encode(_FORMAT))
    known = await views.every_key(database)
    for done, (key, _) in enumerate(known, 1):
        await _copy_one(database, file, key)
        if progress is not None:
            progress(done, len(known))
    for name in ("cards", "projects"):
        await _write(database, file, name, {"life": {"$exists": False}})
    file.write(bson.encode({"in": "", "doc": {}}))


async def _copy_one(database: MongoDatabase, file: BinaryIO, key: Key) -> None:
    """Write a snapshot of a conversation; nothing if it is erased meanwhile."""
    start = file.tell()
    for _ in range(SNAPSHOT_TRIES):
        file.seek(start)
        file.truncate()
        state = await archive.flush_all(database, key)
        if state is None:
            return
        file.write(bson.encode({"in": "conversations", "doc": dict(state.doc)}))
        for name in {*schema.OWNED} - {"known_cards"}:  # made again when it is restored
            await _write(database, file, name, _counted_filter(state, name))
        now = await archive.flush_all(database, key)
        if now is not None and (now.life, now.op) == (state.life, state.op):
            return
    raise StoreUnavailable(f"{key.conversation} changed during every attempt to copy it; retry")


def _counted_filter(state: HeadState, name: str) -> Doc:
    """A filter for the documents that the head counts, without later ones."""
    end = {"$lt": state.flushed}  # the tail is stored in the head
    if name in ("entries", "words"):
        return {**state.own, "seq": end}
    return {**state.own, "last_seq": end} if name == "idempotency" else state.own


async def _write(database: MongoDatabase, file: BinaryIO, name: str, asked: Doc) -> None:
    waiting = bytearray()
    async for doc in database[name].find(asked, batch_size=BACKUP_PAGE):
        waiting += bson.encode({"in": name, "doc": doc})
        if len(waiting) >= limits.COPY_BYTES:
            await asyncio.to_thread(file.write, bytes(waiting))
            waiting.clear()
    await asyncio.to_thread(file.write, bytes(waiting))


async def load(database: MongoDatabase, path: Path) -> None:
    """Restore a backup into an empty database.

    A database with cards or projects is not empty: ones with the same names would be skipped.
    """
    for name in ("conversations", "cards", "projects"):
        if await database.read(partial(database[name].count_documents, {}, limit=1)):
            raise InputError(f"restore needs an empty database; this one has {name}")
    await asyncio.to_thread(lambda: sum(1 for _ in _documents(path)))  # is it complete?
    documents = iter(_documents(path))
    while page := await asyncio.to_thread(_next_page, documents):
        for name in dict.fromkeys(item["in"] for item in page):
            docs = [item["doc"] for item in page if item["in"] == name]
            await put_new(database, name, docs)
    await database.read(lambda: known_cards.adopt(database))


def _next_page(documents: Iterator[Any]) -> list[Any]:
    page, size = [], 0
    for item in documents:
        page.append(item)
        size += len(bson.encode(item))
        if size > limits.COPY_BYTES:
            break
    return page


def _documents(path: Path) -> Iterator[Any]:
    """The documents of a backup; raises if it is damaged or incomplete."""
    try:
        with path.open("rb") as file:
            items = bson.decode_file_iter(file)
            if next(items, None) != _FORMAT:
                raise InputError(f"{path} is not a backup of a MongoDB store")
            for item in items:
                if not item["in"]:
                    return
                yield item
    except (bson.errors.InvalidBSON, KeyError) as error:
        raise StoreCorrupt(f"{path} is damaged") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    raise StoreCorrupt(f"{path} is incomplete: the end marker is missing")
