"""Seals in MongoDB: of documents next to the log, in the head; and a second copy of its own fields.

A change of documents and of their seals is one write to the head. A field of the head that other
programs and servers compute cannot be hashed there, so each is stored twice, in `twin`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from firnline.errors import StoreCorrupt, StoreUnavailable, UnknownConversation
from firnline.log.entry import Key
from firnline.log.message import encode_json
from firnline.protocols import Damage, Known
from firnline.store.digests import decode_digest
from firnline.store.limits import MEND_TRIES
from firnline.store.mongo import known_cards
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.mongo.heads import (
    HEADED,
    TWINNED,
    HeadState,
    project_mark,
    replace_projects,
    state_of,
    twin_of,
)
from firnline.store.rows import end_of
from firnline.store.seals import (
    ABOUT,
    CARDS,
    DIGESTS,
    HEAD,
    PINS,
    PROJECTS,
    TOPICS,
    Seal,
    check_seal,
    damage_of,
    group_of,
    mark_of,
    members_part,
    newest_part,
    project_part,
)
from firnline.store.topics import decode_topic

_SEALED: Final = ("digests", "topics", "members")
_NAMES: Final = {"digests": "version", "topics": "id", "members": "seq"}
_DECODE: Final = {"digests": decode_digest, "topics": decode_topic}
_PARTS: Final = {
    **dict.fromkeys(HEADED, HEAD),
    PINS: PINS,
    "assigned": TOPICS,
    "last_version": DIGESTS,
}

Seals = dict[str, list[int]]


def seals_of(state: HeadState) -> Mapping[str, Sequence[int]]:
    """The stored seals by part; empty if the conversation was never sealed."""
    seals: Mapping[str, Sequence[int]] = state.doc.get("seals") or {}
    return seals


def check_part(state: HeadState, part: str, found: Seal) -> None:
    """Raise `StoreCorrupt` unless these documents are the sealed ones."""
    if "seals" in state.doc:
        stored = seals_of(state).get(part, (0, 0))
        check_seal(state.found.key.conversation, part, stored, found)


def newest_seal_of(doc: Mapping[str, Any] | None) -> Seal:
    """What the seal of the newest completed digest should be."""
    if doc is None:
        return Seal(0, 0)
    return Seal(doc["version"], mark_of(doc["version"], doc["topic"], doc["checksum"]))


def _mark(name: str, doc: Mapping[str, Any]) -> tuple[str, int]:
    """The part and the mark of a document."""
    if name == "members":
        return members_part(doc["topic"]), mark_of(doc["seq"])
    if name == "topics":
        return TOPICS, mark_of(doc["id"], doc["checksum"])
    columns = ("version", "topic", "status", "fence", "checksum")
    return DIGESTS, mark_of(*(doc.get(column) for column in columns))


def _tally(docs: Iterable[tuple[str, Mapping[str, Any]]]) -> Seals:
    """The seals of documents of these collections; the newest digests are among them."""
    found: Seals = defaultdict(lambda: [0, 0])
    for name, doc in docs:
        if name == "members" and doc.get("topic") is None:
            continue  # it was removed from its topic
        part, mark = _mark(name, doc)
        found[part] = [found[part][0] + 1, found[part][1] + mark]
        if name == "digests" and doc["status"] == "completed":
            newest = newest_part(doc["topic"])
            found[newest] = list(max(tuple(found[newest]), newest_seal_of(doc)))
    return dict(found)


async def resealed(
    database: MongoDatabase, state: HeadState, puts: Iterable[tuple[str, Mapping[str, Any]]]
) -> Seals:
    """The seals after these documents are written over those of the same keys."""
    new = [(into, doc) for into, doc in puts if into in _SEALED]
    if "seals" not in state.doc:
        stored = await _stored(database, state)
        changed = {(into, doc[_NAMES[into]]) for into, doc in new}
        kept = [(n, doc) for n, doc in stored if (n, doc[_NAMES[n]]) not in changed]
        return _tally([*kept, *new])
    old = await _stored(database, state, new)
    seals = {part: list(seal) for part, seal in seals_of(state).items()}
    added, removed = _tally(new), _tally(old)
    for sign, tally in ((1, added), (-1, removed)):
        for part, (count, mark) in tally.items():
            if not part.startswith(newest_part("")):
                now = seals.get(part, [0, 0])
                seals[part] = [now[0] + sign * count, now[1] + sign * mark]
    for topic in {doc["topic"] for name, doc in (*new, *old) if name == "digests"}:
        seals[newest_part(topic)] = await _newest(database, state, topic, new)
    return {part: seal for part, seal in seals.items() if any(seal)}


async def _newest(
    database: MongoDatabase,
    state: HeadState,
    topic: int,
    new: Sequence[tuple[str, Mapping[str, Any]]],
) -> list[int]:
    """The seal of a topic's newest completed digest after these are written."""
    digests = [doc for name, doc in new if name == "digests"]
    query = {**state.own, "topic": topic, "status": "completed"}
    query["version"] = {"$nin": [doc["version"] for doc in digests]}
    stored = await database.read(
        lambda: database["digests"].find_one(query, sort=[("version", -1)])
    )
    completed = [doc for doc in digests if doc["topic"] == topic and doc["status"] == "completed"]
    candidates = [*completed, *([stored] if stored else [])]
    return list(newest_seal_of(max(candidates, key=lambda doc: int(doc["version"]), default=None)))


async def _stored(
    database: MongoDatabase,
    state: HeadState,
    like: Sequence[tuple[str, Mapping[str, Any]]] | None = None,
) -> list[tuple[str, Doc]]:
    """The sealed documents of a conversation: all, or those with the keys of `like`."""
    found: list[tuple[str, Doc]] = []
    for name, by in _NAMES.items():
        asked = dict(state.own)
        if like is not None:
            asked[by] = {"$in": [doc[by] for into, doc in like if into == name]}
            if not asked[by]["$in"]:
                continue
        docs = await database.read(partial(_find, database, name, asked))
        found += [(name, doc) for doc in docs]
    return found


async def _find(database: MongoDatabase, name: str, asked: Doc) -> list[Doc]:
    return await database[name].find(asked, projection={"body": 0, "memory": 0}).to_list()


# -- damage -----------------------------------------------------------------------------------


async def damaged_docs(database: MongoDatabase, doc: Doc) -> list[Damage]:
    """What is wrong with a conversation's documents and with its head's own fields."""
    key = Key(doc["tenant"], doc["conversation"])
    twin = doc.get("twin")
    wrong = [n for n in TWINNED if twin is not None and doc.get(n) != twin.get(n)]
    problems = [
        Damage(_PARTS.get(name, ABOUT), f"{key.conversation}: the head's {name} is damaged")
        for name in wrong
    ]
    if "redo" in doc:
        return problems  # a change of its documents is being carried out
    state = state_of(key, doc, tolerant=True)
    found = _tally(await _stored(database, state))
    if "seals" in doc:
        stored = {part: list(seal) for part, seal in seals_of(state).items()}
        parts = sorted({*found, *stored})
        problems += [
            damage_of(key.conversation, part)
            for part in parts
            if found.get(part) != stored.get(part)
        ]
    for name, decode in _DECODE.items():
        async for one in database[name].find(state.own):
            try:
                decode(one["body"], one["checksum"])
            except (StoreCorrupt, KeyError, TypeError) as error:
                what = f"{key.conversation}: {name} {one.get(_NAMES[name])}: {error}"
                problems.append(Damage(name, what))
    return problems


async def damage(database: MongoDatabase, key: Key) -> list[Damage]:
    """See `Store.damage`."""
    if not key.conversation:
        projects = await _damaged_projects(database, key.tenant)
        return projects + await known_cards.damaged_cards(database, key, None)
    doc = await database.read(lambda: database["conversations"].find_one(key._asdict()))
    if doc is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    damaged = await damaged_docs(database, doc)
    return damaged + await known_cards.damaged_cards(database, key, doc["_id"])


async def all_damage(database: MongoDatabase) -> list[Damage]:
    """The damage of all conversations and projects."""
    problems: list[Damage] = []
    async for doc in database["conversations"].find({}, projection={"tail": 0}):
        try:
            problems += await damaged_docs(database, doc)
        except (StoreCorrupt, KeyError, TypeError) as error:
            problems.append(Damage(ABOUT, str(error)))
    for tenant in await database.read(partial(database["project_names"].distinct, "tenant")):
        problems += await _damaged_projects(database, tenant)
    return problems


async def _damaged_projects(database: MongoDatabase, tenant: str) -> list[Damage]:
    docs = await database.read(partial(_all_of, database, "projects", tenant))
    known = await database.read(partial(_all_of, database, "project_names", tenant))
    missing = {doc["name"] for doc in known} - {doc["name"] for doc in docs}
    wrong = {doc["name"] for doc in docs if doc.get("mark") not in (None, project_mark(doc))}
    return [damage_of(tenant, project_part(name)) for name in sorted(missing | wrong)]


async def _all_of(database: MongoDatabase, name: str, tenant: str) -> list[Doc]:
    return await database[name].find({"tenant": tenant}).to_list()


async def names(database: MongoDatabase, tenant: str) -> list[str]:
    """See `Store.names`."""
    asked, shown = {"tenant": tenant}, {"conversation": 1}
    docs = await database.read(
        lambda: database["conversations"].find(asked, projection=shown).to_list()
    )
    return sorted((doc["conversation"] for doc in docs), key=str.encode)


async def mend(database: MongoDatabase, key: Key, parts: Collection[str], known: Known) -> None:
    """See `Store.mend`."""
    if not key.conversation:
        if CARDS in parts:
            await known_cards.mend(database, key, None)
        if PROJECTS in parts:
            await replace_projects(database, key.tenant, known.projects)
        return
    heads = database["conversations"]
    for _ in range(MEND_TRIES):
        doc = await database.read(lambda: heads.find_one(key._asdict()))
        if doc is None:
            raise UnknownConversation(f"there is no conversation {key.conversation!r}")
        if await _mend(database, key, doc, parts, known):
            if CARDS in parts:
                await known_cards.mend(database, key, doc["_id"])
            return
    raise StoreUnavailable("too many concurrent writes; retry")


async def _mend(
    database: MongoDatabase, key: Key, doc: Doc, parts: Collection[str], known: Known
) -> bool:
    """Mend a conversation if its head is still this one."""
    sets = _mended(doc, parts, known)
    state = state_of(key, doc, tolerant=True)
    if TOPICS in parts:
        for name in ("topics", "members"):
            await database.read(partial(database[name].delete_many, state.own))
        revision = int((doc.get("assigned") or {}).get("revision", 0)) + 1
        sets["assigned"] = {"next_seq": 0, "revision": revision}
    gone = ("lease_owner", "lease_until", "owed_at") if ABOUT in parts else ()
    now = {name: value for name, value in {**doc, **sets}.items() if name not in gone}
    # What is not mended keeps its seal: it would look right.
    fixed = {name for name in TWINNED if _PARTS.get(name, ABOUT) in parts}
    fixed -= {*HEADED} - sets.keys()
    twin = doc.get("twin") or twin_of(now)
    kept = {name: value for name, value in twin.items() if name not in fixed}
    sets["twin"] = kept | {name: now[name] for name in fixed & now.keys()}
    seals = {part: seal for part, seal in seals_of(state).items() if group_of(part) not in parts}
    stored = _tally(await _stored(database, state))
    sets["seals"] = seals | {
        part: seal for part, seal in stored.items() if group_of(part) in parts or "seals" not in doc
    }
    same = {name: doc[name] for name in ("tenant", "conversation", "_id", "op", "next_seq", "hash")}
    write: Doc = {"$set": {**sets, "op": state.op + 1}}
    if gone:
        write["$unset"] = dict.fromkeys(gone, "")
    heads = database["conversations"]
    return bool((await database.read(lambda: heads.update_one(same, write))).matched_count)


def _mended(doc: Doc, parts: Collection[str], known: Known) -> Doc:
    """The head's own fields as they are known."""
    sets: Doc = {}
    if ABOUT in parts:
        strategy = None if known.strategy is None else encode_json(known.strategy)
        sets |= {"project": known.project, "person": known.person, "strategy": strategy}
        sets |= {"metadata": encode_json(known.metadata), "fence": int(doc.get("fence", 0)) + 1}
    if PINS in parts:
        sets["pins"] = list(known.pins)
    if HEAD in parts and known.end is not None:
        end: Doc = dict(zip(HEADED, end_of(known.end), strict=False))
        if sum(doc[name] == end[name] for name in ("next_seq", "total", "hash")) > 1:
            sets |= {**end, "unread": bool(doc.get("person"))}
    return sets
