"""Vectors of entries by embedding model, and the progress of each model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firnline.errors import StoreUnavailable
from firnline.log.entry import Key, Scope
from firnline.protocols import EmbeddedTo, Vector
from firnline.store.mongo import intents
from firnline.store.mongo.archive import erased_in
from firnline.store.mongo.connection import Doc, MongoDatabase, pause
from firnline.store.mongo.heads import HeadState
from firnline.store.rows import SEQ_MAX


def embedders(state: HeadState) -> dict[str, int]:
    """How many of the first entries each model has processed."""
    return {item["model"]: int(item["next_seq"]) for item in state.doc.get("embedded", ())}


async def embedded_in(
    database: MongoDatabase, tenant: str, model: str, scope: Scope
) -> dict[str, EmbeddedTo]:
    """How far the model is, by conversation in scope."""
    names = {"conversation": scope.conversation, "project": scope.project, "person": scope.person}
    about = {field: value for field, value in names.items() if value is not None}
    asked: Doc = {"tenant": tenant, **about, "embedded.model": model}
    shown = {"conversation": 1, "embedded": 1}
    docs = await database.read(
        lambda: database["conversations"].find(asked, projection=shown).to_list()
    )
    return {
        doc["conversation"]: EmbeddedTo(int(item["next_seq"]), str(doc["_id"]))
        for doc in docs
        for item in doc["embedded"]
        if item["model"] == model
    }


async def put_vectors(
    database: MongoDatabase, key: Key, model: str, vectors: Sequence[Vector], span: tuple[int, int]
) -> bool:
    """Store the vectors of a span that begins where this model's progress ends."""
    first_seq, next_seq = span
    for tries in range(intents.TRIES):
        state = await intents.current(database, key)
        if (
            state is None
            or embedders(state).get(model, 0) != first_seq
            or next_seq > state.found.next_seq
        ):
            return False
        erased = await erased_in(database, state, first_seq, max(next_seq - 1, first_seq))
        # Once a model has processed all entries, the vectors of other models are not used.
        whole = next_seq == state.found.next_seq
        others = [item for item in state.doc.get("embedded", ()) if item["model"] != model]
        new = [*([] if whole else others), {"model": model, "next_seq": next_seq}]
        puts = [
            intents.Put("vectors", {"model": model, "seq": v.seq, "part": v.part}, {"body": v.body})
            for v in vectors
            if v.seq not in erased
        ]
        still = {"next_seq": state.found.next_seq} if whole else {}
        done = await intents.change(database, state, puts, {"embedded": new}, still)
        if done is not None:
            if whole and others:
                await _drop_others(database, state, model)
            return True
        await pause(tries)
    raise StoreUnavailable("too many concurrent writes, nothing was written; retry")


async def _drop_others(database: MongoDatabase, state: HeadState, model: str) -> None:
    gone = {**state.own, "model": {"$ne": model}, "op": {"$lte": state.op}}
    await database.read(lambda: database["vectors"].delete_many(gone))


async def vector_page(
    database: MongoDatabase, state: HeadState, model: str, first_seq: int, limit: int
) -> list[Vector]:
    """Vectors from `first_seq` on, with all parts of the last entry."""
    end = embedders(state).get(model, 0)
    first = min(max(first_seq, 0), SEQ_MAX)
    if limit <= 0 or not end:
        return []
    some = await _find_page(database, state, model, {"$gte": first, "$lt": end}, limit)
    if len(some) < limit:
        return some
    # The limit may have cut the last entry: read all its parts.
    last = await _find_page(database, state, model, some[-1].seq, 0)
    return [*(vector for vector in some if vector.seq != some[-1].seq), *last]


async def vectors_at(
    database: MongoDatabase, state: HeadState, model: str, seqs: Sequence[int]
) -> list[Vector]:
    """The vectors of these entries."""
    end = embedders(state).get(model, 0)
    return await _find_page(database, state, model, {"$in": [s for s in seqs if 0 <= s < end]}, 0)


async def _find_page(
    database: MongoDatabase, state: HeadState, model: str, seq: Any, limit: int
) -> list[Vector]:
    # Those of erased entries are empty.
    asked: Doc = {**state.own, "model": model, "seq": seq, "body": {"$ne": b""}}
    docs = await database.read(
        lambda: (
            database["vectors"]
            .find(asked, projection={"_id": 0, "seq": 1, "part": 1, "body": 1})
            .sort([("seq", 1), ("part", 1)])
            .limit(limit)
            .to_list()
        )
    )
    return [Vector(doc["seq"], doc["part"], doc["body"]) for doc in docs]


async def unembedded(database: MongoDatabase, tenant: str, model: str, limit: int) -> list[Key]:
    """Conversations with entries that the model has not processed, newest first."""
    if limit <= 0:
        return []
    mine = {"$filter": {"input": "$embedded", "cond": {"$eq": ["$$this.model", model]}}}
    reached = {"$ifNull": [{"$max": {"$map": {"input": mine, "in": "$$this.next_seq"}}}, 0]}
    pipeline: list[Doc] = [
        {"$match": {"tenant": tenant, "$expr": {"$gt": ["$next_seq", reached]}}},
        {"$project": {"conversation": 1, "updated_at": 1}},
        {"$sort": {"updated_at": -1, "_id": 1}},
        {"$limit": limit},
    ]

    async def find() -> list[Doc]:
        return await (await database["conversations"].aggregate(pipeline)).to_list()

    return [Key(tenant, doc["conversation"]) for doc in await database.read(find)]
