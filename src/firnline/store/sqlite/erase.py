"""Erasure, the only destructive operation: no byte remains in the file, its log or its index.

Deleting rows is not enough: free space in pages keeps old copies, and the search index keeps terms
until it is merged. The rows are deleted in one transaction that also records a pending scrub. Then
the index is merged, the file vacuumed and the write-ahead log truncated. If a crash interrupts
this, the next open finishes the pending scrub.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import apsw

from firnline.errors import StoreUnavailable, UnknownConversation
from firnline.log import limits
from firnline.log.entry import Erased, Erasure, Key, Record, runs, tombstone
from firnline.store.erasure import certificate, check_erasure
from firnline.store.sqlite import archive, leases, log, search, topics, vectors
from firnline.store.sqlite.checksums import is_proven, proven_reads
from firnline.store.sqlite.commit_record import count_commit
from firnline.store.sqlite.connection import fetch_one

logger: Final = logging.getLogger("firnline")

_EMBEDDERS: Final = "SELECT id FROM embedder"
_FORGET_KEYS: Final = (
    "UPDATE idempotency SET fingerprint = '', mark ="
    " seal_mark(hex(conversation), hex(key), '', hex(first_seq), hex(last_seq))"
    " WHERE conversation = ? AND first_seq <= ? AND last_seq >= ?"
)
_DROP_CARDS: Final = "DELETE FROM card WHERE conversation = ? AND kind = ? AND name BETWEEN ? AND ?"
_CARDS: Final = "SELECT kind, count(*) FROM card WHERE conversation = ? GROUP BY kind ORDER BY kind"


def erase(connection: apsw.Connection, key: Key, now: datetime) -> Erased:
    """Delete and scrub; only a crash can separate the two."""
    drop_damaged(connection)
    connection.execute("BEGIN IMMEDIATE")
    try:
        erased = _delete(connection, key, now)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if scrub_pending(connection):
            scrub(connection)  # pending from an earlier erasure
        raise
    _rewrite(connection)
    return erased


def drop_damaged(connection: apsw.Connection) -> bool:
    """Empty indexes, and delete vectors, on damaged pages; outside a transaction.

    To erase is to write pages again, and then these would look right. What is emptied is made again
    from the log. Returns whether anything was.
    """
    is_damaged = not is_proven(connection, search.read_all)
    if is_damaged:
        with connection:
            search.clear(connection)
        logger.warning("the search index was damaged and is created again")
    return vectors.drop_damaged(connection) or is_damaged


def _delete(connection: apsw.Connection, key: Key, now: datetime) -> Erased:
    """Delete every row of the conversation, and record the pending scrub."""
    found = log.find(connection, key, tolerant=True)
    if found is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    (head,) = fetch_one(connection, "SELECT hash FROM conversation WHERE id = ?", (found.id,))
    everything = (found.entry_id(0), found.entry_id(log.SEQ_MASK))
    gone = {}
    for table in ("entry", "segment", "digest", "topic"):
        connection.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", everything)  # noqa: S608
        gone[table] = connection.changes()
    with proven_reads(connection):
        connection.execute("DELETE FROM search WHERE rowid BETWEEN ? AND ?", everything)
        connection.execute(search.WRITE_NOW)
    gone["vector"] = vectors.delete_vectors(
        connection, found, [id_ for (id_,) in connection.execute(_EMBEDDERS)]
    )
    cards = dict(connection.execute(_CARDS, (found.id,)))
    of_it = ("said", "idempotency", "pin", "member", "assigned", "embedded", "card", "known_card")
    for table in of_it:
        connection.execute(f"DELETE FROM {table} WHERE conversation = ?", (found.id,))  # noqa: S608
    connection.execute("DELETE FROM seal WHERE conversation = ?", (found.id,))
    connection.execute("DELETE FROM conversation WHERE id = ?", (found.id,))
    connection.execute("INSERT OR IGNORE INTO owed VALUES ('scrub')")
    count_commit(connection)
    return Erased(
        key.conversation,
        found.next_seq,
        gone["digest"],
        gone["segment"],
        found.total,
        head,
        now,
        vectors=gone["vector"],
        topics=gone["topic"],
        cards=cards,
    )


# -- some entries -----------------------------------------------------------------------------


def erase_entries(connection: apsw.Connection, key: Key, erasure: Erasure, now: datetime) -> Erased:
    """Replace entries by tombstones, with all that quotes them; a scrub is pending afterwards."""
    found = log.find(connection, key)
    if found is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    version = leases.last_version(connection, found)
    check_erasure(key, erasure, found.next_seq, version, topics.revision(connection, found))
    records = _records(connection, found, erasure.seqs)
    gone = {record.seq: record for record in records if not record.erased}
    segments = archive.take_out(connection, found, gone)
    connection.executemany(
        "UPDATE entry SET body = ? WHERE id = ?",
        [(tombstone(now), found.entry_id(seq)) for seq in gone],
    )
    search.forget(connection, found, sorted(gone))
    vectors_gone = vectors.delete_at(connection, found, gone)
    for table in ("pin", "member"):
        connection.executemany(
            f"DELETE FROM {table} WHERE conversation = ? AND seq = ?",  # noqa: S608
            [(found.id, seq) for seq in gone],
        )
    connection.executemany(
        _FORGET_KEYS, [(found.id, last, first) for first, last in runs(sorted(gone))]
    )
    leases.replace_all(connection, found, erasure.digests)
    topics.replace_all(connection, found, erasure.topics)
    cards: Counter[str] = Counter()
    for kind, first, last in erasure.cards:
        connection.execute(_DROP_CARDS, (found.id, kind, first, last))
        cards[kind] += connection.changes()
    connection.execute("INSERT OR IGNORE INTO owed VALUES ('scrub')")
    head = log.head(connection, key)
    if head is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    return certificate(
        head, gone.values(), erasure, now, segments=segments, vectors=vectors_gone, cards=+cards
    )


def _records(
    connection: apsw.Connection, found: log.SqliteRow, seqs: Sequence[int]
) -> list[Record]:
    """The stored records at these sequence numbers; all hashes are checked first."""
    for first, last in runs(seqs):
        log.span(connection, found, first, last)
    return [r for first, last in runs(seqs) for r in log.records(connection, found, first, last)]


def scrub_pending(connection: apsw.Connection) -> bool:
    """Whether an erasure is unfinished."""
    return bool(fetch_one(connection, "SELECT 1 FROM owed WHERE what = 'scrub'"))


def scrub(connection: apsw.Connection) -> None:
    """Rewrite the file without deleted data; must run outside a transaction."""
    drop_damaged(connection)
    _rewrite(connection)


def _rewrite(connection: apsw.Connection) -> None:
    connection.execute("INSERT INTO search (search) VALUES ('optimize')")
    connection.execute("VACUUM")
    _empty_log(connection)
    connection.execute("DELETE FROM owed WHERE what = 'scrub'")


def _empty_log(connection: apsw.Connection) -> None:
    """Truncate the write-ahead log; readers can delay this briefly."""
    deadline = time.monotonic() + limits.SCRUB_SECONDS
    while True:
        busy, _, _ = fetch_one(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
        if not busy:
            return
        if time.monotonic() > deadline:
            raise StoreUnavailable(
                "the conversation is erased, but a reader still uses old pages of the file; "
                "erase again or reopen the store to finish"
            )
        time.sleep(0.01)
