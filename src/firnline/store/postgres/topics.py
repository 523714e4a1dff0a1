"""Topics and their members, saved by compare-and-set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from firnline.errors import StoreCorrupt, UnknownConversation
from firnline.log.entry import Key, Topic
from firnline.protocols import TopicAssignments
from firnline.store.digests import checksum_of
from firnline.store.postgres import log
from firnline.store.postgres.connection import Row, Transaction
from firnline.store.postgres.seals import check_part, seal_in, seals_query
from firnline.store.rows import SEQ_MAX, ConversationRow
from firnline.store.seals import ASSIGNED, TOPICS, Seal, check_seal, members_part
from firnline.store.topics import TopicCache, check_assignment, decode_topic, encode_topic

_MEMBERS: Final = (
    f"SELECT seq FROM member WHERE {log.HERE} AND topic = %(topic)s AND seq >= %(first)s"
    " ORDER BY seq"
)
_PROGRESS: Final = f"SELECT next_seq, revision FROM assigned WHERE {log.HERE}"


async def read_topics(transaction: Transaction, key: Key, cache: TopicCache) -> TopicAssignments:
    """The topics, their progress and revision; the topics are cached by revision."""
    found, (progress, seals) = await log.find_with(
        transaction, key, (_PROGRESS, log.here(key)), seals_query(key, ASSIGNED, TOPICS)
    )
    next_seq, revision = _checked_progress(key, progress, seals)
    known = cache.get(found.id, revision) if found else {}
    if known is None and found is not None:
        rows = await transaction.rows(
            f"SELECT id, checksum, body FROM topic WHERE {log.HERE} ORDER BY id", log.here(key)
        )
        known = _topics(key, rows, seals)
        cache.put(found.id, revision, known)
    return TopicAssignments(known or {}, next_seq, revision)


def _checked_progress(key: Key, progress: Sequence[Row], seals: Sequence[Row]) -> tuple[int, int]:
    next_seq, revision = progress[0] if progress else (0, 0)
    sealed = seal_in(seals, ASSIGNED)
    check_seal(key.conversation, ASSIGNED, sealed, Seal(next_seq, revision))
    return next_seq, revision


def _topics(key: Key, rows: Sequence[Row], seals: Sequence[Row]) -> dict[int, Topic]:
    check_part(key, TOPICS, seals, [(id_, checksum) for id_, checksum, _ in rows])
    topics = {id_: decode_topic(body, checksum) for id_, checksum, body in rows}
    if any(id_ != topic.id for id_, topic in topics.items()):
        raise StoreCorrupt(f"{key.conversation}: a topic does not match its row")
    return topics


async def save_topics(
    transaction: Transaction,
    key: Key,
    topics: Sequence[Topic],
    members: Mapping[int, int | None],
    expected: tuple[int, int | None],
) -> tuple[int, int]:
    """Save topics and members if the revision is unchanged.

    Returns the conversation's id and the new revision.
    """
    head, (progress, seals) = await log.find_with(
        transaction, key, (_PROGRESS, log.here(key)), seals_query(key, ASSIGNED), lock=log.CHANGE
    )
    if head is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    next_seq, revision = _checked_progress(key, progress, seals)
    reach = next_seq if expected[1] is None else expected[1]
    check_assignment(
        key, topics, members, revision=(expected[0], revision), next_seq=(reach, head.next_seq)
    )
    conversation = key.tenant, head.id
    _put_topics(transaction, head, topics)
    transaction.later(
        "DELETE FROM member WHERE tenant = %s AND conversation = %s AND seq = ANY(%s::bigint[])",
        (*conversation, list(members)),
    )
    placed = {seq: topic for seq, topic in members.items() if topic is not None}
    transaction.later(
        "INSERT INTO member (tenant, conversation, seq, topic) SELECT %s, %s, new.*"
        " FROM unnest(%s::bigint[], %s::bigint[]) AS new",
        (*conversation, list(placed), list(placed.values())),
    )
    transaction.later(
        "INSERT INTO assigned (tenant, conversation, next_seq, revision) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (tenant, conversation) DO UPDATE SET next_seq = excluded.next_seq,"
        " revision = excluded.revision",
        (*conversation, max(next_seq, reach), revision + 1),
    )
    return head.id, revision + 1


def _put_topics(transaction: Transaction, found: ConversationRow, topics: Sequence[Topic]) -> None:
    bodies = [encode_topic(topic) for topic in topics]
    sums = [checksum_of(body) for body in bodies]
    transaction.later(
        "INSERT INTO topic (tenant, conversation, id, checksum, body) SELECT %s, %s, new.*"
        " FROM unnest(%s::bigint[], %s::bytea[], %s::bytea[]) AS new"
        " ON CONFLICT (tenant, conversation, id) DO UPDATE SET checksum = excluded.checksum,"
        " body = excluded.body",
        (found.key.tenant, found.id, [topic.id for topic in topics], sums, bodies),
    )


def replace_all(transaction: Transaction, found: ConversationRow, topics: Sequence[Topic]) -> None:
    """Write topics in place of those of the same ids; earlier decisions conflict from now on."""
    _put_topics(transaction, found, topics)
    transaction.later(
        "INSERT INTO assigned (tenant, conversation, next_seq, revision) VALUES (%s, %s, 0, 1)"
        " ON CONFLICT (tenant, conversation) DO UPDATE SET revision = assigned.revision + 1",
        (found.key.tenant, found.id),
    )


async def topic_members(
    transaction: Transaction, key: Key, topic: int, first_seq: int
) -> list[int]:
    """The sequence numbers of a topic's entries."""
    part = members_part(topic)
    rows, seals = await transaction.each(
        (_MEMBERS, log.here(key, topic=topic, first=min(max(first_seq, 0), SEQ_MAX))),
        seals_query(key, part),
    )
    if first_seq <= 0:  # otherwise it would cost as much as reading all of them
        check_part(key, part, seals, rows)
    return [seq for (seq,) in rows]


async def topics_of(transaction: Transaction, key: Key, seqs: Sequence[int]) -> dict[int, int]:
    """The topics of entries that have one."""
    asked = [seq for seq in seqs if 0 <= seq <= SEQ_MAX]
    rows = await transaction.rows(
        f"SELECT seq, topic FROM member WHERE {log.HERE} AND seq = ANY(%(seqs)s::bigint[])",
        log.here(key, seqs=asked),
    )
    return {seq: topic for seq, topic in rows}  # noqa: C416 - row lengths are unknown to checkers
