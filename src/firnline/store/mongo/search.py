"""Search by word: candidates from the index, ranked by how rare their terms are."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from bson import ObjectId

from firnline.errors import StoreCorrupt
from firnline.language.terms import search_terms
from firnline.log import limits
from firnline.log.entry import IndexMatch, Key, Scope
from firnline.log.message import microseconds
from firnline.store.mongo import words
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.mongo.flush import flush
from firnline.store.mongo.heads import state_of
from firnline.store.rows import USUAL_WORDS

_CONVERSATIONS_COUNTED: Final = 1000
_HEADS_AT_ONCE: Final = 16
_FEW: Final = 500  # up to this many documents are ranked here, not on the server
_OWN, _NEAR, _SAID = 2.2, 0.44, 0.22  # weights: entry, previous entry, speaker and date
_WORK_MAX: Final = 4 * limits.SEARCH_WEIGHED_MAX


class _MongoTerms(NamedTuple):
    """The numbers of a query's terms, and how many entries contain each."""

    own: list[int]
    facts: list[int]
    counts: list[int]
    entries: int
    said: bool  # whether any of `facts` occurs

    @property
    def weights(self) -> list[float]:
        entries = max(self.entries, *self.counts) + 1
        return [math.log(1 + (entries - n + 0.5) / (n + 0.5)) for n in self.counts]


async def matches(
    database: MongoDatabase, tenant: str, query: str, scope: Scope, limit: int
) -> list[IndexMatch]:
    """First entries that contain the words, then those by a named speaker or date."""
    terms = search_terms(query)
    if not terms or limit <= 0 or scope.topics == ():
        return []
    await catch_up(database, tenant, scope.conversation)
    within = await _scope_filter(database, tenant, scope)
    if within is None:
        return []
    own = [words.number(tenant, term) for term in terms]
    facts = [words.of_fact(tenant, term) for term in terms]
    few = await _match_few(database, own, facts, within)
    if few is not None:
        return few[:limit]
    asked = await _known(database, tenant, own, facts)
    rare = _rare_terms(asked)
    done = await _rank(database, asked, rare, within, limit)
    if not done and len(rare) < len(own):  # the rare terms occur only outside the scope
        done = await _rank(database, asked, own, within, limit)
    if len(done) < limit and asked.said:
        known = {match[:2] for match in done}
        about = await _rank(database, asked, facts, within, limit)
        done += [match for match in about if match[:2] not in known]
    return done[:limit]


async def _match_few(
    database: MongoDatabase, own: list[int], facts: list[int], within: Doc
) -> list[IndexMatch] | None:
    """All entries with any of the terms, best first, in one query; None if too many."""
    any_of = {"terms": {"$in": [*own, *facts]}}
    docs, entries = await asyncio.gather(
        _aggregate(
            database,
            "words",
            [
                {"$match": {"$and": [within, any_of]}},
                {"$limit": _FEW + 1},
                {"$project": _projection(own, facts)},
            ],
        ),
        _entries(database, within["tenant"]),
    )
    if len(docs) > _FEW:
        return None
    counts = Counter(term for doc in docs for term in doc["hits"])
    asked = _MongoTerms(own, facts, [counts[term] for term in own], entries, said=True)
    of_own, of_facts = (dict(zip(t, asked.weights, strict=True)) for t in (own, facts))
    for doc in docs:
        doc["score"] = _score(doc, of_own, of_facts)
        doc["itself"] = not of_own.keys().isdisjoint(doc["hits"])
    docs.sort(key=lambda d: (not d["itself"], -d["score"], d["conversation"], -d["seq"]))
    found, _ = await _to_matches(database, within["tenant"], docs)
    return found


def _score(doc: Doc, own: Mapping[int, float], facts: Mapping[int, float]) -> float:
    """BM25, computed as in the pipeline of `_rank`."""
    points = sum(_OWN * own.get(term, 0) + _SAID * facts.get(term, 0) for term in doc["hits"])
    points += sum(_NEAR * own.get(term, 0) for term in doc["near"])
    return float(points / (1 + 1.2 * (0.25 + 0.75 * doc["size"] / USUAL_WORDS)))


def _projection(own: list[int], facts: list[int]) -> Doc:
    """The position of an entry, and which of the terms it contains."""
    return {
        "_id": 0,
        **dict.fromkeys(("conversation", "life", "seq", "size"), 1),
        "hits": {"$setIntersection": ["$terms", [*own, *facts]]},
        "near": {"$setIntersection": ["$before", own]},
    }


async def _entries(database: MongoDatabase, tenant: str) -> int:
    """The approximate number of the tenant's entries."""
    counted: list[Doc] = [
        {"$match": {"tenant": tenant}},
        {"$limit": _CONVERSATIONS_COUNTED},
        {"$group": {"_id": None, "entries": {"$sum": "$next_seq"}}},
    ]
    total = await _aggregate(database, "conversations", counted)
    return int(total[0]["entries"]) if total else 0


async def catch_up(database: MongoDatabase, tenant: str, conversation: str | None) -> None:
    """Index entries that are still in tails; a few heads at a time, as each includes its tail."""
    asked: Doc = {"tenant": tenant, "unflushed": True}
    if conversation is not None:
        asked["conversation"] = conversation
    behind = await database.read(partial(_heads, database, asked, {"conversation": 1}))
    for start in range(0, len(behind), _HEADS_AT_ONCE):
        names = [doc["conversation"] for doc in behind[start : start + _HEADS_AT_ONCE]]
        some = {**asked, "conversation": {"$in": names}}
        docs = await database.read(partial(_heads, database, some))
        states = [state_of(Key(tenant, doc["conversation"]), doc) for doc in docs]
        await asyncio.gather(*(flush(database, state) for state in states))


async def _heads(database: MongoDatabase, asked: Doc, shown: Doc | None = None) -> list[Doc]:
    return await database["conversations"].find(asked, projection=shown).to_list()


async def _aggregate(database: MongoDatabase, name: str, pipeline: Sequence[Doc]) -> list[Doc]:
    async def find() -> list[Doc]:
        return await (await database[name].aggregate(list(pipeline))).to_list()

    return await database.read(find)


async def _known(
    database: MongoDatabase, tenant: str, own: list[int], facts: list[int]
) -> _MongoTerms:
    """How common the terms are, in one query, and the approximate number of entries."""

    def having(place: int) -> list[Doc]:
        return [
            {"$match": {"tenant": tenant, "terms": own[place]}},
            {"$limit": limits.SEARCH_WEIGHED_MAX},
            {"$count": "count"},
            {"$set": {"place": place}},
        ]

    some: list[Doc] = [
        {"$match": {"tenant": tenant, "terms": {"$in": facts}}},
        {"$limit": 1},
        {"$project": {"_id": 0, "place": {"$literal": -1}, "count": {"$literal": 1}}},
    ]
    others = [having(i) for i in range(1, len(own))]
    united = [{"$unionWith": {"coll": "words", "pipeline": p}} for p in [*others, some]]
    found, entries = await asyncio.gather(
        _aggregate(database, "words", [*having(0), *united]), _entries(database, tenant)
    )
    counts = {doc["place"]: doc["count"] for doc in found}
    each = [counts.get(i, 0) for i in range(len(own))]
    return _MongoTerms(own, facts, each, entries, -1 in counts)


def _rare_terms(asked: _MongoTerms) -> list[int]:
    """The rarest terms, as many as a search can rank; at least one that occurs at all.

    Entries with only the other terms would rank last; next to a rare term, the others still count.
    """
    chosen: list[int] = []
    weighed = 0
    for count, term in sorted(zip(asked.counts, asked.own, strict=True)):
        if weighed and weighed + count > limits.SEARCH_WEIGHED_MAX:
            break
        chosen.append(term)
        weighed += count
    return chosen


async def _rank(
    database: MongoDatabase, asked: _MongoTerms, leading: Sequence[int], within: Doc, limit: int
) -> list[IndexMatch]:
    """The best of the entries that contain any of the `leading` terms.

    BM25 without term frequency: an entry's own words count most, then those of the entry before it,
    then speaker and date.
    """
    points = [
        {"$cond": [{"$in": [term, f"${where}"]}, round(factor * weight, 9), 0.0]}
        for where, terms, factor in (
            ("hits", asked.own, _OWN),
            ("near", asked.own, _NEAR),
            ("hits", asked.facts, _SAID),
        )
        for term, weight in zip(terms, asked.weights, strict=True)
    ]
    length = {"$multiply": [0.75 / USUAL_WORDS, "$size"]}
    norm = {"$add": [1, {"$multiply": [1.2, {"$add": [0.25, length]}]}]}
    gone: list[ObjectId] = []
    while True:
        pipeline: list[Doc] = [
            {"$match": {"$and": [within, {"terms": {"$in": list(leading)}}]}},
            *([{"$match": {"life": {"$nin": gone}}}] if gone else []),
            {"$limit": _WORK_MAX},
            {"$project": _projection(asked.own, asked.facts)},
            {"$set": {"score": {"$divide": [{"$sum": points}, norm]}}},
            {"$sort": {"score": -1, "conversation": 1, "seq": -1}},
            {"$limit": limit},
        ]
        found, missing = await _to_matches(
            database, within["tenant"], await _aggregate(database, "words", pipeline)
        )
        if not missing:
            return found
        gone += missing  # leftovers of an erased conversation must not use up the limit


async def _to_matches(
    database: MongoDatabase, tenant: str, docs: Sequence[Doc]
) -> tuple[list[IndexMatch], list[ObjectId]]:
    """The documents as matches, one per entry, and the conversations that do not exist."""
    if not docs:
        return [], []
    names = sorted({doc["conversation"] for doc in docs})
    asked = {"tenant": tenant, "conversation": {"$in": names}}
    shown = {"tail": 0, "redo": 0, "pins": 0}
    heads = await database.read(
        lambda: database["conversations"].find(asked, projection=shown).to_list()
    )
    known = {doc["_id"]: state_of(Key(tenant, doc["conversation"]), doc) for doc in heads}
    best: dict[tuple[str, int], IndexMatch] = {}
    for doc in docs:
        state = known.get(doc["life"])
        if state is None:
            continue
        if doc["seq"] >= state.found.next_seq:
            raise StoreCorrupt(f"{doc['conversation']}: the index has an entry that does not exist")
        place = doc["conversation"], doc["seq"]
        best.setdefault(place, IndexMatch(*place, doc["score"]))
    return list(best.values()), list({doc["life"] for doc in docs} - set(known))


async def _scope_filter(database: MongoDatabase, tenant: str, scope: Scope) -> Doc | None:
    """The scope as a filter; None if nothing can match."""
    both: list[Doc] = []
    within: Doc = {"tenant": tenant}
    if scope.conversation is not None:
        within["conversation"] = scope.conversation
    ends = {"$gte": scope.since, "$lt": scope.until}
    if at := {name: microseconds(time) for name, time in ends.items() if time is not None}:
        within["at"] = at
    if scope.roles:
        roles = [words.of_role(tenant, role) for role in sorted(scope.roles)]
        both.append({"terms": {"$in": roles}})
    about = {"project": scope.project, "person": scope.person}
    if about := {name: value for name, value in about.items() if value is not None}:
        both.append({"life": {"$in": await _described(database, tenant, about)}})
    if scope.topics is not None:
        places = await _of_topics(database, tenant, scope.topics)
        if not places:
            return None
        both.append({"$or": [{"life": life, "seq": {"$in": s}} for life, s in places.items()]})
    return {**within, "$and": both} if both else within


async def _described(database: MongoDatabase, tenant: str, about: Doc) -> list[ObjectId]:
    """The conversations of a project, of a person, or of both."""
    asked = {"tenant": tenant, **about}
    docs = await database.read(
        lambda: database["conversations"].find(asked, projection={"_id": 1}).to_list()
    )
    return [doc["_id"] for doc in docs]


async def _of_topics(
    database: MongoDatabase, tenant: str, topics: Sequence[tuple[str, int]]
) -> dict[ObjectId, list[int]]:
    """The entries of topics, by conversation."""
    places: dict[ObjectId, list[int]] = defaultdict(list)
    sane = [(name, topic) for name, topic in topics if 0 <= topic < 1 << 62]
    asked: list[dict[str, Any]] = [
        {"tenant": tenant, "conversation": name, "topic": topic} for name, topic in sane
    ]
    if asked:
        for doc in await database.read(lambda: database["members"].find({"$or": asked}).to_list()):
            places[doc["life"]].append(doc["seq"])
    return dict(places)
