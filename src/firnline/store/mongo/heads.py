"""A conversation's head: the one document whose writes commit every change.

It holds the number of entries, the newest entries until they are flushed into documents of their
own (the tail), the archived spans, the pins, the lease, and the pending change of documents next to
the log (`redo`). It decides which other documents count; readers ignore the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from firnline.errors import StoreCorrupt, UnknownConversation
from firnline.log.entry import Head, Key, Project, Record, genesis
from firnline.log.message import encode_json, microseconds
from firnline.log.text import Json
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.rows import (
    SEQ_MAX,
    ConversationRow,
    Described,
    all_of_type,
    head_of,
    projects_of,
)
from firnline.store.seals import ABOUT, HEAD, PINS, Seal, damaged_part, mark_of

INLINE_BYTES: Final = 1024 * 1024
"""Bytes of messages that fit into a head; more are staged in documents of their own."""
HEAVY: Final = {"tail": 0, "redo": 0, "seals": 0}
_PROJECT: Final = ("status", "schedule", "task", "metadata")
_DESCRIBED: Final = ("project", "person", "metadata", "strategy")

HEADED: Final = ("next_seq", "total", "hash", "updated_at", "unread")
"""The fields that every append writes."""
TWINNED: Final = (
    *HEADED,
    *("project", "metadata", "strategy", "created_at", "fence", "lease_owner", "lease_until"),
    *("owed_at", "assigned", "segments", "last_version", "pins", "person"),
)
"""The fields of a head that it also holds in `twin`: if they differ, one was damaged."""
TWIN: Final = {name: f"${name}" for name in TWINNED}
"""The expression for a whole `twin`."""


class SegmentSpan(NamedTuple):
    """Archived entries: a segment's first and last."""

    first: int
    last: int


@dataclass(frozen=True)
class HeadState:
    """A head as it was read. `found` is the part that all backends share."""

    found: ConversationRow
    doc: Mapping[str, Any]

    @property
    def life(self) -> ObjectId:
        """Its unique id, never reused: a conversation created again after erasure gets another."""
        life: ObjectId = self.doc["_id"]
        return life

    @property
    def own(self) -> Doc:
        """The fields that all its documents begin with."""
        return {**self.found.key._asdict(), "life": self.life}

    @property
    def op(self) -> int:
        """The number of the newest change of documents next to the log."""
        return int(self.doc.get("op", 0))

    @property
    def flushed(self) -> int:
        """How many of the first entries have documents of their own."""
        return int(self.doc.get("flushed", 0))

    @property
    def tail(self) -> Sequence[Mapping[str, Any]]:
        """The newest entries."""
        tail: Sequence[Mapping[str, Any]] = self.doc.get("tail", ())
        return tail

    @property
    def staged(self) -> bool:
        """Whether some entries are staged, being too large for the tail."""
        return any("staged" in row for row in self.tail)

    @cached_property
    def segments(self) -> tuple[SegmentSpan, ...]:
        """The archived spans, in order."""
        return tuple(sorted(SegmentSpan(*span) for span in self.doc.get("segments", ())))

    def archived(self, seq: int) -> bool:
        """Whether an entry lies in a segment."""
        place = bisect_right(self.segments, (seq, SEQ_MAX)) - 1
        return place >= 0 and seq <= self.segments[place].last

    def newest_records(self) -> list[Record]:
        """The tail's entries."""
        return [record_of(row) for row in self.tail]


def record_of(row: Mapping[str, Any]) -> Record:
    """An entry of the tail or of a document."""
    try:
        return Record(
            row["seq"], row["body"], row["tokens"], row["total"], row["hash"], row["tokenizer"]
        )
    except KeyError as error:
        raise StoreCorrupt("a message document is damaged", seq=row.get("seq")) from error


def state_of(key: Key, doc: Mapping[str, Any], *, tolerant: bool = False) -> HeadState:
    """The state of a head document; raises `StoreCorrupt` if it is damaged.

    `tolerant`: the number of entries need not fit those that have documents of their own.
    """
    try:
        number = int.from_bytes(doc["_id"].binary, "big")
        row = number, doc["next_seq"], doc["total"], doc["hash"], doc["genesis"]
        state = HeadState(ConversationRow.of(key, row), doc)
        sane = all_of_type(int, doc["flushed"], doc["op"]) and (
            tolerant or 0 <= state.flushed <= state.found.next_seq
        )
    except (KeyError, AttributeError, TypeError) as error:
        raise StoreCorrupt(f"the head of {key.conversation!r} is damaged") from error
    if not sane:
        raise StoreCorrupt(f"the head of {key.conversation!r} is damaged")
    return state


def twin_of(doc: Mapping[str, Any]) -> Doc:
    """The second copy of the head's own fields."""
    return {name: doc[name] for name in TWINNED if name in doc}


def with_twin(sets: Mapping[str, Any]) -> Doc:
    """These fields, and the same in the second copy."""
    return {**sets, **{f"twin.{name}": value for name, value in sets.items() if name in TWINNED}}


def check_twin(doc: Mapping[str, Any], *names: str) -> None:
    """Raise `StoreCorrupt` if one of these fields is not the same in both copies."""
    twin = doc.get("twin")
    wrong = [name for name in names if twin is not None and doc.get(name) != twin.get(name)]
    if wrong:
        part = PINS if names == ("pins",) else HEAD if wrong[0] in HEADED else ABOUT
        raise damaged_part(str(doc.get("conversation")), part)


async def find(database: MongoDatabase, key: Key, *, tolerant: bool = False) -> HeadState | None:
    """The current state of the conversation, or None; see `state_of`."""
    doc = await database.read(lambda: database["conversations"].find_one(key._asdict()))
    return state_of(key, doc, tolerant=tolerant) if doc else None


async def find_sound(database: MongoDatabase, key: Key) -> HeadState | None:
    """The same to be appended to: `StoreCorrupt` if the head is damaged."""
    state = await find(database, key)
    if state is not None:
        check_twin(state.doc, *HEADED)
    return state


def unknown_conversation(key: Key) -> UnknownConversation:
    """The error for a conversation that does not exist."""
    return UnknownConversation(f"there is no conversation {key.conversation!r}")


def new_head(key: Key, created_at: Any) -> Doc:
    """A new head without entries."""
    start = genesis(key)
    return {
        **key._asdict(),
        "genesis": start,
        "next_seq": 0,
        "total": 0,
        "hash": start,
        "created_at": created_at,
        "updated_at": created_at,
        "project": None,
        "person": None,
        "metadata": "{}",
        "strategy": None,
        "flushed": 0,
        "op": 0,
        "tail": [],
        "pins": [],
        "segments": [],
    }


async def head(database: MongoDatabase, key: Key) -> Head | None:
    """The public head, or None."""
    doc = await database.read(
        lambda: database["conversations"].find_one(key._asdict(), projection=HEAVY)
    )
    return head_in(doc) if doc else None


def head_in(doc: Mapping[str, Any]) -> Head:
    """The public head of a document."""
    check_twin(doc, *TWINNED)
    try:
        spans = [SegmentSpan(*span) for span in doc.get("segments", ())]
        archived = sum(span.last - span.first + 1 for span in spans)
        names = ("tenant", "conversation", "genesis", "next_seq", "hash", "total")
        row = [doc[name] for name in (*names, "created_at", "updated_at", "project")]
        described = doc.get("person"), doc["metadata"]  # heads of before have no person
        return head_of([*row, *described, archived, doc["strategy"], 0, None, None])
    except (KeyError, TypeError) as error:
        name = doc.get("conversation")
        raise StoreCorrupt(f"the head of the conversation {name!r} is damaged") from error


async def conversations(
    database: MongoDatabase,
    tenant: str,
    about: tuple[str | None, str | None],
    after: str,
    limit: int,
) -> list[Head]:
    """A page of the tenant's conversations, of a project and of a person if they are given."""
    if limit <= 0:
        return []
    asked: Doc = {"tenant": tenant, "conversation": {"$gt": after}}
    names = zip(("project", "person"), about, strict=True)
    asked |= {name: value for name, value in names if value is not None}
    cursor = database["conversations"].find(asked, projection=HEAVY)
    docs = await database.read(
        lambda: cursor.clone().sort("conversation", 1).limit(limit).to_list()
    )
    return [head_in(doc) for doc in docs]


async def recent(
    database: MongoDatabase, tenant: str, project: str | None, after: Head | None, limit: int
) -> list[Head]:
    """A page of conversations, of a project if it is given, the most recently updated first."""
    if limit <= 0:
        return []
    asked: Doc = {"tenant": tenant} if project is None else {"tenant": tenant, "project": project}
    if after is not None:
        at = microseconds(after.updated_at)
        same = {"updated_at": at, "conversation": {"$gt": after.conversation}}
        asked["$or"] = [{"updated_at": {"$lt": at}}, same]
    cursor = database["conversations"].find(asked, projection=HEAVY)
    order = [("updated_at", -1), ("conversation", 1)]
    docs = await database.read(lambda: cursor.clone().sort(order).limit(limit).to_list())
    return [head_in(doc) for doc in docs]


async def describe(database: MongoDatabase, key: Key, about: Described, known: Head | None) -> Head:
    """Set what is given; creates the conversation if needed. One write."""
    which = key._asdict() if known is None else await _still_described(database, key, known)
    new = {**new_head(key, database.now), "_id": ObjectId()}
    defaults = {name: {"$ifNull": [f"${name}", _literal(value)]} for name, value in new.items()}
    defaults["created_at"]["$ifNull"][1] = defaults["updated_at"]["$ifNull"][1] = database.now
    changes = {"project": about.project, "person": about.person}
    changes |= {"metadata": _json(about.metadata), "strategy": _json(about.strategy)}
    wanted = {name: _literal(value) for name, value in changes.items() if value is not None}
    if about.person == "":
        wanted["person"] = _literal(None)
    if about.person is not None:
        is_unread = {"$and": [bool(about.person), {"$gt": ["$next_seq", 0]}]}
        wanted["unread"] = {"$cond": [is_unread, True, "$$REMOVE"]}
    if about.created_at is not None:
        at = microseconds(about.created_at)
        wanted["created_at"] = _literal(at)
        wanted["updated_at"] = {"$cond": [{"$eq": ["$next_seq", 0]}, at, "$updated_at"]}

    async def write() -> Doc | None:
        while True:
            try:
                return await database["conversations"].find_one_and_update(
                    which,
                    [
                        {"$set": defaults},
                        {"$set": {"twin": {"$ifNull": ["$twin", TWIN]}}},
                        *([{"$set": with_twin(wanted)}] if wanted else []),
                    ],
                    projection=HEAVY,
                    upsert=known is None,
                    return_document=ReturnDocument.AFTER,
                )
            except DuplicateKeyError:
                continue  # another process has just created it

    doc = await database.read(write)
    if known is not None and doc is None:
        known.check_described(None)
    return head_in(doc or {})


async def _still_described(database: MongoDatabase, key: Key, known: Head) -> Doc:
    """A filter that matches while the conversation is described as in `known`."""
    where = database["conversations"]
    doc = await database.read(lambda: where.find_one(key._asdict(), projection=HEAVY))
    known.check_described(head_in(doc) if doc else None)
    return {name: (doc or {}).get(name) for name in (*key._fields, "_id", *_DESCRIBED)}


def _literal(value: Any) -> Any:
    return {"$literal": value}


def _json(value: dict[str, Json] | None) -> str | None:
    return None if value is None else encode_json(value)


# -- projects ----------------------------------------------------------------------------------


async def projects(database: MongoDatabase, tenant: str) -> list[Project]:
    """The tenant's projects by name."""
    docs = await database.read(
        lambda: database["projects"].find({"tenant": tenant}).sort("name", 1).to_list()
    )
    known = await database.read(
        lambda: database["project_names"].find({"tenant": tenant}).to_list()
    )
    there = {doc["name"] for doc in docs}
    sealed = {doc["name"]: Seal(1, doc["mark"]) for doc in docs if "mark" in doc}
    sealed |= {doc["name"]: Seal(1, 0) for doc in known if doc["name"] not in there}
    names = ("name", *_PROJECT)
    return projects_of(tenant, [[doc.get(name) for name in names] for doc in docs], sealed)


async def save_project(database: MongoDatabase, tenant: str, project: Project) -> None:
    """Create or replace a project."""
    known = {"tenant": tenant, "name": project.name}
    new: Doc = {
        "status": project.status,
        "schedule": project.schedule,
        "task": project.task,
        "metadata": encode_json(project.metadata),
    }
    new["mark"] = project_mark(new)
    # The name last: until then, a missing project is not missed.
    for name, sets in (("projects", new), ("project_names", known)):
        await database.read(partial(database[name].update_one, known, {"$set": sets}, upsert=True))


async def replace_projects(
    database: MongoDatabase, tenant: str, projects: Sequence[Project]
) -> None:
    """Make these the tenant's projects."""
    for name in ("project_names", "projects"):
        await database.read(partial(database[name].delete_many, {"tenant": tenant}))
    for project in projects:
        await save_project(database, tenant, project)


def project_mark(doc: Mapping[str, Any]) -> int:
    """What a project's document is checked against."""
    return mark_of(*(doc.get(name) for name in _PROJECT))


async def tenants(database: MongoDatabase) -> list[str]:
    """All tenants with data, sorted."""
    found: set[str] = set()
    for name in ("conversations", "projects", "cards"):
        found |= set(await database.read(partial(database[name].distinct, "tenant")))
    return sorted(found, key=str.encode)
