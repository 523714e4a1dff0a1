"""Search by word: candidates from the index, ranked by how rare their terms are."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, Final, NamedTuple

from bson import ObjectId

from firnline.errors import StoreCorrupt
from firnline.language.terms import WantedWord, wanted_words
from firnline.log import limits
from firnline.log.entry import IndexMatch, Key, Scope
from firnline.log.message import microseconds
from firnline.store import word_scores
from firnline.store.mongo import words
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.mongo.flush import flush
from firnline.store.mongo.heads import state_of

_CONVERSATIONS_COUNTED: Final = 1000
_HEADS_AT_ONCE: Final = 16
_FEW: Final = 500  # up to this many documents are ranked here, not on the server
_WORK_MAX: Final = 4 * limits.SEARCH_WEIGHED_MAX


class _MongoWords(NamedTuple):
    """The numbers of the terms of each word of a query, and the weights of the words."""

    own: Sequence[Sequence[int]]
    facts: Sequence[Sequence[int]]
    parts: Sequence[Sequence[int]]
    weights: Sequence[int]
    counts: Sequence[int]
    others: bool
    """Whether any of `facts` and `parts` occurs."""

    @classmethod
    def of(cls, tenant: str, wanted: Sequence[WantedWord]) -> _MongoWords:
        """Those of a query."""
        own = [words.numbers(tenant, word.terms) for word in wanted]
        facts = [words.numbers(tenant, word.facts) for word in wanted]
        parts = [words.numbers(tenant, word.parts) for word in wanted]
        return cls(own, facts, parts, (), (), others=True)


async def matches(
    database: MongoDatabase, tenant: str, query: str, scope: Scope, limit: int
) -> list[IndexMatch]:
    """See `word_scores` for what is found in which order."""
    wanted = wanted_words(query)
    if not wanted or limit <= 0 or scope.topics == ():
        return []
    await catch_up(database, tenant, scope.conversation)
    within = await _scope_filter(database, tenant, scope)
    if within is None:
        return []
    query_words = _MongoWords.of(tenant, wanted)
    query_words, short, candidates = await asyncio.gather(
        _known(database, tenant, query_words),
        _is_short(database, tenant, scope),
        _few(database, query_words, within),
    )
    leading = word_scores.leading(query_words.counts, short=short)
    every = range(len(wanted))
    if candidates is not None:
        ranked = _rank_here(query_words, leading, candidates) or _rank_here(
            query_words, every, candidates
        )
        best, _ = await _to_matches(database, tenant, ranked)
        return best[:limit]
    rank = partial(_rank, database, query_words, within=within, limit=limit)
    matched = await rank(_any_of(query_words.own[n] for n in leading), leading)
    if not matched and len(leading) < len(wanted):  # the rare words occur only outside the scope
        leading = list(every)
        matched = await rank(_any_of(query_words.own), leading)
    if len(matched) < limit and query_words.others:
        _add(matched, await rank(_any_of(query_words.facts), leading))
    longer = [{"terms": {"$all": list(part)}} for part in query_words.parts if part]
    if len(matched) < limit and longer and query_words.others:
        parts = query_words._replace(own=query_words.parts, facts=(), weights=())
        _add(
            matched,
            await _rank(
                database, parts, {"$or": longer}, (), within=within, limit=limit + len(matched)
            ),
        )
    return matched[:limit]


def _add(found: list[IndexMatch], more: Sequence[IndexMatch]) -> None:
    known = {match[:2] for match in found}
    found += [match for match in more if match[:2] not in known]


def _any_of(numbers: Iterable[Iterable[int]]) -> Doc:
    return {"terms": {"$in": list(chain.from_iterable(numbers))}}


async def _is_short(database: MongoDatabase, tenant: str, scope: Scope) -> bool:
    """Whether the searched conversation is one of which all entries can be ranked."""
    if scope.conversation is None:
        return False
    asked = {"tenant": tenant, "conversation": scope.conversation}
    found = await database.read(lambda: database["conversations"].find_one(asked, {"next_seq": 1}))
    return found is not None and int(found["next_seq"]) <= limits.SEARCH_WEIGHED_MAX


async def _few(database: MongoDatabase, asked: _MongoWords, within: Doc) -> list[Doc] | None:
    """All entries with any of the terms, in one query; None if too many."""
    longer = [{"terms": {"$all": list(part)}} for part in asked.parts if part]
    any_of = [_any_of([*asked.own, *asked.facts]), *longer]
    docs = await _aggregate(
        database,
        "words",
        [
            {"$match": {"$and": [within, {"$or": any_of}]}},
            {"$limit": _FEW + 1},
            {"$project": _projection(asked)},
        ],
    )
    return None if len(docs) > _FEW else docs


def _rank_here(asked: _MongoWords, led: Collection[int], docs: Sequence[Doc]) -> list[Doc]:
    """The documents, best first; none if no entry has one of the words that lead."""
    ranked: list[tuple[tuple[int, float, str, int], Doc]] = []
    for doc in docs:
        kind, points = _points(asked, led, set(doc["hits"]), set(doc["near"]))
        if points:
            score = word_scores.score(points, doc["size"])
            place = kind, -score, doc["conversation"], -doc["seq"]
            ranked.append((place, {**doc, "score": score}))
    ranked.sort(key=itemgetter(0))
    if len(led) < len(asked.own) and all(place[0] for place, _ in ranked):
        return []
    return [doc for _, doc in ranked]


def _points(
    asked: _MongoWords, led: Collection[int], hits: set[int], before: set[int]
) -> tuple[int, int]:
    """Why an entry is found: 0 its own words, 1 speaker or date, 2 longer words; and its points."""
    own = {n for n, terms in enumerate(asked.own) if not hits.isdisjoint(terms)}
    facts = {n for n, terms in enumerate(asked.facts) if not hits.isdisjoint(terms)}
    if own.isdisjoint(led) and not facts:
        return 2, sum(bool(part) and hits.issuperset(part) for part in asked.parts)
    near = {n for n in led if not before.isdisjoint(asked.own[n])}
    by_kind = (own, word_scores.OWN), (near, word_scores.NEAR), (facts, word_scores.FACT)
    points = sum(asked.weights[n] * factor for numbers, factor in by_kind for n in numbers)
    return int(own.isdisjoint(led)), points


def _projection(asked: _MongoWords) -> Doc:
    """The position of an entry, and which of the terms it contains."""
    own = list(chain.from_iterable(asked.own))
    others = chain.from_iterable([*asked.facts, *asked.parts])
    return {
        "_id": 0,
        **dict.fromkeys(("conversation", "life", "seq", "size"), 1),
        "hits": {"$setIntersection": ["$terms", [*own, *others]]},
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


async def _known(database: MongoDatabase, tenant: str, asked: _MongoWords) -> _MongoWords:
    """How many entries have each word, in one query, and so the weights of the words."""

    def having(place: int, match: Doc, most: int = limits.SEARCH_WEIGHED_MAX) -> list[Doc]:
        return [
            {"$match": {"tenant": tenant, **match}},
            {"$limit": most},
            {"$count": "count"},
            {"$set": {"place": place}},
        ]

    each = [having(n, _any_of([terms])) for n, terms in enumerate(asked.own)]
    longer = [{"terms": {"$all": list(part)}} for part in asked.parts if part]
    each.append(having(-1, {"$or": [_any_of(asked.facts), *longer]}, 1))
    united = [{"$unionWith": {"coll": "words", "pipeline": p}} for p in each[1:]]
    found, entries = await asyncio.gather(
        _aggregate(database, "words", [*each[0], *united]), _entries(database, tenant)
    )
    by_place = {doc["place"]: doc["count"] for doc in found}
    counts = [by_place.get(n, 0) for n in range(len(asked.own))]
    weights = word_scores.weights(counts, entries)
    return asked._replace(counts=counts, weights=weights, others=-1 in by_place)


async def _rank(
    database: MongoDatabase,
    asked: _MongoWords,
    match: Doc,
    led: Collection[int],
    *,
    within: Doc,
    limit: int,
) -> list[IndexMatch]:
    """The best of the entries that `match` finds."""
    gone: list[ObjectId] = []
    while True:
        pipeline: list[Doc] = [
            {"$match": {"$and": [within, match]}},
            *([{"$match": {"life": {"$nin": gone}}}] if gone else []),
            {"$limit": _WORK_MAX},
            {"$project": _projection(asked)},
            {"$set": {"points": {"$sum": list(_summands(asked, led))}}},
            {"$match": {"points": {"$gt": 0}}},
            {"$set": {"score": {"$divide": ["$points", _LENGTH]}}},
            {"$sort": {"score": -1, "conversation": 1, "seq": -1}},
            {"$limit": limit},
        ]
        found, missing = await _to_matches(
            database, within["tenant"], await _aggregate(database, "words", pipeline)
        )
        if not missing:
            return found
        gone += missing  # leftovers of an erased conversation must not use up the limit


_LENGTH: Final = {"$add": [word_scores.LENGTH[0], {"$multiply": [word_scores.LENGTH[1], "$size"]}]}


def _summands(asked: _MongoWords, led: Collection[int]) -> Iterator[Doc]:
    """The points of a document, as expressions."""
    if not asked.weights:  # parts of words: each that is there in full counts the same
        for part in filter(None, asked.parts):
            yield {"$cond": [{"$setIsSubset": [list(part), "$hits"]}, 1, 0]}
        return
    for number, weight in enumerate(asked.weights):
        for where, terms, factor in (
            ("$hits", asked.own[number], word_scores.OWN),
            ("$near", asked.own[number] if number in led else (), word_scores.NEAR),
            ("$hits", asked.facts[number], word_scores.FACT),
        ):
            there = {"$setIntersection": [where, list(terms)]}
            yield {"$cond": [{"$gt": [{"$size": there}, 0]}, factor * weight, 0]}


async def _to_matches(
    database: MongoDatabase, tenant: str, docs: Sequence[Doc]
) -> tuple[list[IndexMatch], list[ObjectId]]:
    """The documents as matches, one per entry, and the conversations that do not exist."""
    if not docs:
        return [], []
    names = sorted({doc["conversation"] for doc in docs})
    query = {"tenant": tenant, "conversation": {"$in": names}}
    projection = {"tail": 0, "redo": 0, "pins": 0}
    heads = await database.read(
        lambda: database["conversations"].find(query, projection=projection).to_list()
    )
    states = {doc["_id"]: state_of(Key(tenant, doc["conversation"]), doc) for doc in heads}
    best: dict[tuple[str, int], IndexMatch] = {}
    for doc in docs:
        state = states.get(doc["life"])
        if state is None:
            continue
        if doc["seq"] >= state.found.next_seq:
            raise StoreCorrupt(
                f"{doc['conversation']}: the index has a message that does not exist"
            )
        place = doc["conversation"], doc["seq"]
        best.setdefault(place, IndexMatch(*place, doc["score"]))
    return list(best.values()), list({doc["life"] for doc in docs} - set(states))


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
