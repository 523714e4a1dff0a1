"""Cards: small named values that edges store next to the log.

One card is one document. Several at once are first written as one document, a batch, which commits
them together: until each has its own document, readers see the cards in the batch.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final

from bson import ObjectId
from pymongo import UpdateOne

from firnline.errors import InputError, StoreCorrupt
from firnline.log.entry import Card, Key, genesis
from firnline.store.cards import CardQuery, card_checksum, card_time, missing_card, verify_card
from firnline.store.mongo import intents, known_cards
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.mongo.intents import DOCUMENT_BYTES_MAX
from firnline.store.mongo.known_cards import PLACE

_LEFT_MICROSECONDS: Final = 60 * 1_000_000


async def put_cards(
    database: MongoDatabase, cards: Sequence[Card], *, absent: bool, keep_times: bool
) -> int:
    """Write the cards whose conversation exists, or that belong to none."""
    lives = await _lives(database, [(card.tenant, card.conversation) for card in cards])
    there = [card for card in cards if not card.conversation or _key(card) in lives]
    now = await database.time() if there else 0
    chosen: dict[tuple[str, str, str], Card] = {}
    for card in there:
        at = card.tenant, card.kind, card.name
        chosen[at] = chosen.get(at, card) if absent else card
    docs = [
        _doc(card, lives.get(_key(card)), card_time(card, now, keep_times=keep_times))
        for _, card in sorted(chosen.items(), key=itemgetter(0))
    ]
    if not docs:
        return 0
    if len(docs) == 1:
        written = await _put_one(database, docs[0], absent=absent)
    else:
        written = await _put_many(database, docs, now, absent=absent)
    await _drop_erased(database, docs)
    return written if absent else len(there)


def _key(card: Card) -> tuple[str, str]:
    return card.tenant, card.conversation or ""


async def _lives(
    database: MongoDatabase, keys: Iterable[tuple[str, str | None]]
) -> dict[tuple[str, str], ObjectId]:
    """The head ids of the conversations that exist."""
    named = sorted({(tenant, name) for tenant, name in keys if name})
    asked = [Key(tenant, name)._asdict() for tenant, name in named]
    if not asked:
        return {}
    shown = {"tenant": 1, "conversation": 1, "genesis": 1}
    docs = await database.read(
        lambda: database["conversations"].find({"$or": asked}, projection=shown).to_list()
    )
    return {(doc["tenant"], doc["conversation"]): doc["_id"] for doc in docs}


def _number(life: ObjectId | None) -> int | None:
    return None if life is None else int.from_bytes(life.binary, "big")


def _doc(card: Card, life: ObjectId | None, now: int) -> Doc:
    life = life if card.conversation else None
    doc: Doc = {
        **{name: getattr(card, name) for name in PLACE},
        "conversation": card.conversation,
        "updated_at": now,
        "checksum": card_checksum(card, _number(life), now),
        "body": card.body,
    }
    return doc if life is None else {**doc, "life": life}


def _request(doc: Doc, *, absent: bool) -> UpdateOne:
    return UpdateOne(*_write_of(doc, absent=absent), upsert=True)


def _write_of(doc: Doc, *, absent: bool) -> tuple[Doc, Doc]:
    """Where a card is, and how it is written."""
    at = {name: doc[name] for name in PLACE}
    rest = {name: value for name, value in doc.items() if name not in at}
    return at, {"$setOnInsert": rest} if absent else _replacement(rest)


def _replacement(doc: Doc) -> Doc:
    write: Doc = {"$set": {name: value for name, value in doc.items() if name not in PLACE}}
    return write if "life" in doc else {**write, "$unset": {"life": ""}}


def _late_request(doc: Doc, *, absent: bool) -> UpdateOne:
    """The write of a card from an old batch; it never replaces a newer card."""
    if absent:
        return _request(doc, absent=True)
    older = {name: doc[name] for name in PLACE} | {"updated_at": {"$lte": doc["updated_at"]}}
    return UpdateOne(older, _replacement(doc), upsert=True)


async def _apply(database: MongoDatabase, docs: Sequence[Doc], *, absent: bool) -> int:
    requests = [_request(doc, absent=absent) for doc in docs]
    done = await database.read(lambda: database["cards"].bulk_write(requests))
    new = [doc for at, doc in enumerate(docs) if not absent or at in (done.upserted_ids or {})]
    if new:
        await known_cards.add(database, new)
    return done.upserted_count if absent else len(docs)


async def _put_one(database: MongoDatabase, doc: Doc, *, absent: bool) -> int:
    at, write = _write_of(doc, absent=absent)
    shown = {"life": 1}
    before = await database.write(
        lambda: database["cards"].find_one_and_update(at, write, projection=shown, upsert=True)
    )
    if before is None or (not absent and before.get("life") != doc.get("life")):
        await known_cards.add(database, [doc])
    return 0 if absent and before is not None else 1


async def _put_many(database: MongoDatabase, docs: Sequence[Doc], now: int, *, absent: bool) -> int:
    if sum(len(doc["body"]) for doc in docs) > DOCUMENT_BYTES_MAX:
        raise InputError(f"cards too large: the limit is {DOCUMENT_BYTES_MAX:,} bytes per call")
    batch = {"_id": ObjectId(), "at": now, "absent": absent, "cards": list(docs)}
    await database.write(lambda: database["batches"].insert_one(dict(batch)))
    written = await _apply(database, docs, absent=absent)
    await database.read(lambda: database["batches"].delete_one({"_id": batch["_id"]}))
    return written


async def finish_batches(database: MongoDatabase, *, left: int = _LEFT_MICROSECONDS) -> None:
    """Apply batches that are older than `left` microseconds; newer cards are kept."""
    old = {"at": {"$lte": await database.time() - left}}
    for batch in await database.read(lambda: database["batches"].find(old).sort("_id").to_list()):
        requests = [_late_request(doc, absent=batch["absent"]) for doc in batch["cards"]]
        await database.read(partial(intents.put_unless_newer, database, "cards", requests))
        await known_cards.add(database, batch["cards"])
        await _drop_erased(database, batch["cards"])
        gone = {"_id": batch["_id"]}
        await database.read(partial(database["batches"].delete_one, gone))


async def _drop_erased(database: MongoDatabase, docs: Sequence[Doc]) -> None:
    """Delete cards of conversations that were erased while the cards were written."""
    owned = [doc for doc in docs if "life" in doc]
    lives = set(
        (await _lives(database, [(d["tenant"], d["conversation"]) for d in owned])).values()
    )
    gone = {doc["life"]: doc for doc in owned if doc["life"] not in lives}
    for life, doc in gone.items():
        own = {"tenant": doc["tenant"], "conversation": doc["conversation"], "life": life}
        await known_cards.drop(database, own)


async def select_cards(database: MongoDatabase, asked: CardQuery, limit: int) -> list[Card]:
    """The matching cards, each one verified."""
    if limit <= 0 or asked.names == frozenset():
        return []
    batches = await database.read(lambda: database["batches"].find().sort("_id").to_list())
    docs = await database.read(
        lambda: (
            database["cards"]
            .find(_where(asked))
            .sort([("tenant", 1), ("name", 1)])
            .limit(limit)
            .to_list()
        )
    )
    if batches:
        docs = _with_batches(docs, batches, asked)[:limit]
    cards = await _verify_cards(database, docs)
    # A page of known cards reaches no further than one of cards if none of them is missing.
    for kind, name in await known_cards.missing(database, _where(asked), limit):
        raise missing_card(kind, name)
    return cards


def _with_batches(docs: Sequence[Doc], batches: Sequence[Doc], asked: CardQuery) -> list[Doc]:
    """The documents of cards, merged with those in pending batches."""
    known = {(doc["tenant"], doc["name"]): doc for doc in docs}
    for batch in batches:
        for doc in batch["cards"]:
            at = doc["tenant"], doc["name"]
            card = Card(tenant=doc["tenant"], kind=doc["kind"], name=doc["name"])
            later = at in known and known[at]["updated_at"] > doc["updated_at"]
            if asked.has(card) and not later and not (batch["absent"] and at in known):
                known[at] = doc
    return [known[at] for at in sorted(known, key=lambda at: (at[0].encode(), at[1].encode()))]


async def _verify_cards(database: MongoDatabase, docs: Sequence[Doc]) -> list[Card]:
    """The verified cards, without those left over from erased conversations."""
    keys = [(doc.get("tenant", ""), doc.get("conversation")) for doc in docs]
    lives = await _lives(database, keys)
    found = []
    for doc in docs:
        life = doc.get("life")
        if life is None or lives.get((doc["tenant"], doc["conversation"])) == life:
            found.append(_card(doc))
    return found


def _card(doc: Doc) -> Card:
    try:
        card = Card(tenant=doc["tenant"], kind=doc["kind"], name=doc["name"], body=doc["body"])
        number = _number(doc.get("life"))
        of = None
        if number is not None:
            key = Key(doc["tenant"], doc["conversation"])
            of = key, genesis(key)
        return verify_card(card, number, of, doc["updated_at"], doc["checksum"])
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreCorrupt("a card document is damaged") from error


async def drop_cards(database: MongoDatabase, asked: CardQuery) -> int:
    """Delete the matching cards; returns how many."""
    if asked.names == frozenset():
        return 0
    await _wait_for_batches(database)
    return await known_cards.drop(database, _where(asked))


async def _wait_for_batches(database: MongoDatabase) -> None:
    """Wait for pending batches, then apply those that remain.

    Otherwise a dropped card would still be visible in a batch, and be written again later.
    """
    for _ in range(100):
        if not await database.read(lambda: database["batches"].count_documents({}, limit=1)):
            return
        await asyncio.sleep(0.01)
    await finish_batches(database, left=0)


async def damaged_cards(database: MongoDatabase) -> list[str]:
    """The errors of all damaged or missing cards."""
    problems = []
    async for doc in database["cards"].find():
        try:
            _card(doc)
        except StoreCorrupt as error:
            problems.append(str(error))
    missing = await known_cards.missing(database, {})
    return problems + [str(missing_card(kind, name)) for kind, name in missing]


def _where(asked: CardQuery) -> dict[str, Any]:
    where: dict[str, Any] = {"kind": asked.kind}
    if asked.tenant is not None:
        where["tenant"] = asked.tenant
    name: dict[str, Any] = {}
    if asked.names is not None:
        name["$in"] = sorted(asked.names)
    if asked.after:
        name["$gt"] = asked.after
    if asked.prefix:
        name["$regex"] = f"^{re.escape(asked.prefix)}"
    return where | ({"name": name} if name else {})


async def card_kinds(database: MongoDatabase) -> list[str]:
    """Every kind in use, sorted."""
    found = await database.read(lambda: database["cards"].distinct("kind"))
    return sorted(found, key=str.encode)
