"""Topics and their members, saved by compare-and-set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from firnline.errors import StoreCorrupt, UnknownConversation
from firnline.log.entry import Key, Topic
from firnline.protocols import TopicAssignments
from firnline.store.digests import checksum_of
from firnline.store.seals import ASSIGNED, TOPICS, Seal, check_seal, members_part
from firnline.store.sqlite import log
from firnline.store.sqlite.connection import fetch_one
from firnline.store.sqlite.seals import check_part, stored_seal
from firnline.store.topics import TopicCache, check_assignment, decode_topic, encode_topic


def read_topics(
    connection: apsw.Connection, found: log.SqliteRow, cache: TopicCache
) -> TopicAssignments:
    """The topics, the assigned entries and the revision; read only if the revision changed."""
    next_seq, revision = _progress(connection, found)
    known = cache.get(found.id, revision)
    if known is not None:
        return TopicAssignments(known, next_seq, revision)
    fresh = _load_topics(connection, found)
    cache.put(found.id, fresh.revision, dict(fresh.topics))
    return fresh


def _load_topics(connection: apsw.Connection, found: log.SqliteRow) -> TopicAssignments:
    """Read the topics, the assigned entries and the revision."""
    rows: list[Any] = connection.execute(
        "SELECT id, checksum, body FROM topic WHERE id BETWEEN ? AND ? ORDER BY id",
        (found.entry_id(0), found.entry_id(log.SEQ_MASK)),
    ).fetchall()
    sealed = [(id_ & log.SEQ_MASK, checksum) for id_, checksum, _ in rows]
    topics = {id_ & log.SEQ_MASK: decode_topic(body, checksum) for id_, checksum, body in rows}
    check_part(connection, found, TOPICS, sealed)
    if any(id_ != topic.id for id_, topic in topics.items()):
        raise StoreCorrupt(f"{found.key.conversation}: a topic does not match its row")
    return TopicAssignments(topics, *_progress(connection, found))


def _progress(connection: apsw.Connection, found: log.SqliteRow) -> tuple[int, int]:
    row = fetch_one(
        connection, "SELECT next_seq, revision FROM assigned WHERE conversation = ?", (found.id,)
    )
    sealed = stored_seal(connection, found.id, ASSIGNED)
    check_seal(found.key.conversation, ASSIGNED, sealed, Seal(*(row or (0, 0))))
    return row or (0, 0)


def save_topics(
    connection: apsw.Connection,
    key: Key,
    topics: Sequence[Topic],
    members: Mapping[int, int | None],
    expected: tuple[int, int | None],
) -> tuple[int, int]:
    """Save topics and members if the revision is unchanged; returns (id, new revision)."""
    found = log.find(connection, key)
    if found is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    next_seq, revision = _progress(connection, found)
    reach = next_seq if expected[1] is None else expected[1]
    check_assignment(
        key, topics, members, revision=(expected[0], revision), next_seq=(reach, found.next_seq)
    )
    _put_topics(connection, found, topics)
    connection.executemany(
        "DELETE FROM member WHERE conversation = ? AND seq = ?",
        [(found.id, seq) for seq in members],
    )
    connection.executemany(
        "INSERT INTO member VALUES (?, ?, ?)",
        [(found.id, topic, seq) for seq, topic in members.items() if topic is not None],
    )
    connection.execute(
        "INSERT INTO assigned VALUES (?, ?, ?) ON CONFLICT (conversation) DO UPDATE SET"
        " next_seq = excluded.next_seq, revision = excluded.revision",
        (found.id, max(next_seq, reach), revision + 1),
    )
    return found.id, revision + 1


def _put_topics(connection: apsw.Connection, found: log.SqliteRow, topics: Sequence[Topic]) -> None:
    for topic in topics:
        body = encode_topic(topic)
        connection.execute(
            "INSERT INTO topic VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
            " checksum = excluded.checksum, body = excluded.body",
            (found.entry_id(topic.id), checksum_of(body), body),
        )


def revision(connection: apsw.Connection, found: log.SqliteRow) -> int:
    """The number of changes to the conversation's topics."""
    return _progress(connection, found)[1]


def replace_all(connection: apsw.Connection, found: log.SqliteRow, topics: Sequence[Topic]) -> None:
    """Write topics in place of those of the same ids; earlier decisions conflict from now on."""
    _put_topics(connection, found, topics)
    connection.execute(
        "INSERT INTO assigned VALUES (?, 0, 1)"
        " ON CONFLICT (conversation) DO UPDATE SET revision = revision + 1",
        (found.id,),
    )


def topic_members(
    connection: apsw.Connection, found: log.SqliteRow, topic: int, first_seq: int
) -> list[int]:
    """The sequence numbers of a topic's entries."""
    rows = connection.execute(
        "SELECT seq FROM member WHERE conversation = ? AND topic = ? AND seq >= ? ORDER BY seq",
        (found.id, topic, first_seq),
    )
    seqs = [seq for (seq,) in rows]
    if first_seq <= 0:  # else it would cost as much as reading all of them
        check_part(connection, found, members_part(topic), [(seq,) for seq in seqs])
    return seqs


def topics_of(
    connection: apsw.Connection, found: log.SqliteRow, seqs: Sequence[int]
) -> dict[int, int]:
    """The topics of entries that have one."""
    rows = connection.executemany(
        "SELECT seq, topic FROM member WHERE conversation = ? AND seq = ?",
        [(found.id, seq) for seq in seqs],
    )
    return dict(rows)
