"""The views of the log by word and by date; they catch up in the writer's quiet moments."""

from __future__ import annotations

from typing import Any

import apsw

from firnline import limits
from firnline.errors import StoreCorrupt
from firnline.log import Hit, Key, Record
from firnline.message import EPOCH, Message, decode, microseconds
from firnline.store.sqlite import log
from firnline.store.sqlite.connection import one
from firnline.store.terms import all_terms, index_terms, query_terms, searchable


def index_pending(connection: apsw.Connection, conversation: int, until: int = 1 << 32) -> bool:
    """Index the next page of entries before `until`; returns whether there may be more."""
    row = one(
        connection,
        "SELECT tenant, name, indexed, id, next_seq, total, hash, genesis FROM conversation"
        " WHERE id = ? AND indexed < min(next_seq, ?)",
        (conversation, until),
    )
    if not row:
        return False
    tenant, name, indexed, *rest = row
    found = log.Found.of(Key(tenant, name), rest)
    stored = log.records(connection, found, indexed, found.next_seq - 1, tolerant=True)
    words, dates, end = [], [], found.next_seq
    for record in log.page(stored, limits.INDEX_PAGE):
        end = record.seq + 1
        message = _message(record)
        if message is not None:
            words.append((found.entry_id(record.seq), " ".join(index_terms(searchable(message)))))
            dates.append((found.id, microseconds(message.created_at or EPOCH), record.seq))
    connection.executemany("INSERT INTO search (rowid, terms) VALUES (?, ?)", words)
    connection.executemany("INSERT INTO said VALUES (?, ?, ?)", dates)
    connection.execute("UPDATE conversation SET indexed = ? WHERE id = ?", (end, found.id))
    return True


def unindexed(
    connection: apsw.Connection, tenant: str | None = None, conversation: str | None = None
) -> list[tuple[int, int]]:
    """The conversations that the views have not caught up with, and how far they have to."""
    return list(
        connection.execute(
            "SELECT id, next_seq FROM conversation WHERE indexed < next_seq"
            " AND (?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR name = ?2)",
            (tenant, conversation),
        )
    )


def clear(connection: apsw.Connection) -> None:
    """Empty the views, so that they are made anew from the log."""
    connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
    connection.execute("DELETE FROM said")
    connection.execute("UPDATE conversation SET indexed = 0")


def hits(
    connection: apsw.Connection, tenant: str, query: str, conversation: str | None, limit: int
) -> list[Hit]:
    """Search what is indexed."""
    asked = query_terms(query)
    if not asked or limit <= 0:
        return []
    match = " OR ".join('"' + " ".join(term) + '"' for term in asked)
    if conversation is None:
        rows = connection.execute(
            "SELECT s.rowid, s.rank, c.name, c.id, c.next_seq, c.total, c.hash, c.genesis"
            " FROM search s"
            " JOIN conversation c ON c.id = s.rowid >> 32"
            " WHERE s.terms MATCH ? AND c.tenant = ? ORDER BY s.rank, s.rowid DESC LIMIT ?",
            (match, tenant, limit),
        )
        return [
            _hit(connection, log.Found.of(Key(tenant, str(row[2])), row[3:]), row)
            for row in rows.fetchall()
        ]
    found = log.find(connection, Key(tenant, conversation))
    if found is None:
        return []
    rows = connection.execute(
        "SELECT rowid, rank FROM search WHERE terms MATCH ? AND rowid BETWEEN ? AND ?"
        " ORDER BY rank, rowid DESC LIMIT ?",
        (match, found.entry_id(0), found.entry_id(log.SEQ_MASK), limit),
    )
    return [_hit(connection, found, row) for row in rows.fetchall()]


def unindexed_hits(
    connection: apsw.Connection, tenant: str, query: str, conversation: str | None, limit: int
) -> list[Hit]:
    """Search, by reading it, what is not indexed: a store that is only read cannot catch up."""
    asked = set(query_terms(query))
    found: list[Hit] = []
    for id_, _ in unindexed(connection, tenant, conversation):
        name, first = one(connection, "SELECT name, indexed FROM conversation WHERE id = ?", (id_,))
        place = log.find(connection, Key(tenant, name))
        if place is None:
            continue
        for record in log.records(connection, place, first, place.next_seq - 1, tolerant=True):
            message = _message(record)
            if message is not None and asked & all_terms(message):
                found.append(Hit(name, log.span(connection, place, record.seq, record.seq)[0], 0.0))
            if len(found) >= limit:
                return found
    return found


def _hit(connection: apsw.Connection, found: log.Found, row: tuple[Any, ...]) -> Hit:
    rowid, rank, *_ = row
    seq = rowid & log.SEQ_MASK
    return Hit(found.key.conversation, log.span(connection, found, seq, seq)[0], -rank)


def _message(record: Record) -> Message | None:
    try:
        return None if record.problem else decode(record.body)
    except StoreCorrupt:
        return None  # nothing can be found in it; reading it or verifying says so
