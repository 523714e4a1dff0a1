"""Topics and their members, saved by compare-and-set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firnline.errors import StoreCorrupt, StoreUnavailable
from firnline.log.entry import Key, Topic
from firnline.protocols import TopicAssignments
from firnline.store.digests import checksum_of
from firnline.store.mongo import intents
from firnline.store.mongo.connection import Doc, MongoDatabase, pause
from firnline.store.mongo.heads import HeadState, check_twin, unknown_conversation
from firnline.store.mongo.seals import check_part
from firnline.store.rows import SEQ_MAX
from firnline.store.seals import TOPICS, members_part, seal_of
from firnline.store.topics import TopicCache, check_assignment, decode_topic, encode_topic


def _progress(state: HeadState) -> tuple[int, int]:
    """How many entries are assigned, and the revision."""
    check_twin(state.doc, "assigned")
    known = state.doc.get("assigned") or {}
    return int(known.get("next_seq", 0)), int(known.get("revision", 0))


def revision(state: HeadState) -> int:
    """The number of changes to the conversation's topics."""
    return _progress(state)[1]


async def read_topics(
    database: MongoDatabase, state: HeadState, cache: TopicCache
) -> TopicAssignments:
    """The topics, how far they reach, and their revision; cached by revision."""
    next_seq, revision = _progress(state)
    known = cache.get(state.found.id, revision) if revision else {}
    if known is None:
        docs = await database.read(
            lambda: database["topics"].find(state.own).sort("id", 1).to_list()
        )
        found = seal_of((doc.get("id"), doc.get("checksum")) for doc in docs)
        check_part(state, TOPICS, found)
        known = _topics(state.found.key, docs)
        cache.put(state.found.id, revision, known)
    return TopicAssignments(known, next_seq, revision)


def _topics(key: Key, docs: Sequence[Doc]) -> dict[int, Topic]:
    try:
        topics = {doc["id"]: decode_topic(doc["body"], doc["checksum"]) for doc in docs}
    except (KeyError, TypeError) as error:
        raise StoreCorrupt(f"{key.conversation}: a topic document is damaged") from error
    if any(id_ != topic.id for id_, topic in topics.items()):
        raise StoreCorrupt(f"{key.conversation}: a topic does not match its document")
    return topics


async def save_topics(
    database: MongoDatabase,
    key: Key,
    topics: Sequence[Topic],
    members: Mapping[int, int | None],
    expected: tuple[int, int | None],
) -> tuple[int, int]:
    """Save topics and members if nothing was saved since the expected revision.

    Returns the conversation's number and the new revision.
    """
    for tries in range(intents.TRIES):
        state = await intents.current(database, key)
        if state is None:
            raise unknown_conversation(key)
        next_seq, revision = _progress(state)
        reach = next_seq if expected[1] is None else expected[1]
        given, end = (expected[0], revision), (reach, state.found.next_seq)
        check_assignment(key, topics, members, revision=given, next_seq=end)
        new = {"next_seq": max(next_seq, reach), "revision": revision + 1}
        puts = [put_topic(topic) for topic in topics]
        # A removed entry keeps its document, so that a late writer finds a newer one.
        puts += [
            intents.Put("members", {"seq": seq}, {"topic": topic}) for seq, topic in members.items()
        ]
        if await intents.change(database, state, puts, {"assigned": new}):
            return state.found.id, revision + 1
        await pause(tries)
    raise StoreUnavailable("too many concurrent writes, nothing was written; retry")


def put_topic(topic: Topic) -> intents.Put:
    """The document of a topic."""
    body = encode_topic(topic)
    return intents.Put("topics", {"id": topic.id}, {"checksum": checksum_of(body), "body": body})


async def topic_members(
    database: MongoDatabase, state: HeadState, topic: int, first_seq: int
) -> list[int]:
    """The sequence numbers of a topic's entries."""
    if not 0 <= topic <= SEQ_MAX:
        return []
    asked = {**state.own, "topic": topic, "seq": {"$gte": min(max(first_seq, 0), SEQ_MAX)}}
    docs = await database.read(
        lambda: (
            database["members"]
            .find(asked, projection={"_id": 0, "seq": 1})
            .sort("seq", 1)
            .to_list()
        )
    )
    if first_seq <= 0:  # otherwise it would cost as much as reading all of them
        check_part(state, members_part(topic), seal_of((doc["seq"],) for doc in docs))
    return [doc["seq"] for doc in docs]


async def topics_of(
    database: MongoDatabase, state: HeadState, seqs: Sequence[int]
) -> dict[int, int]:
    """The topics of entries that have one."""
    wanted = [seq for seq in seqs if 0 <= seq <= SEQ_MAX]
    asked = {**state.own, "seq": {"$in": wanted}, "topic": {"$ne": None}}
    docs = await database.read(lambda: database["members"].find(asked).to_list())
    return {doc["seq"]: doc["topic"] for doc in docs}
