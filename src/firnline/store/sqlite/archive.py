"""Moves old entries into compressed segments and back, without changing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import apsw

from firnline.errors import ConflictError
from firnline.log.entry import Archived, Record, runs
from firnline.store import rows
from firnline.store.rows import PackedSegment, Segment
from firnline.store.sqlite import log
from firnline.store.sqlite.connection import fetch_one


def pack(
    connection: apsw.Connection, found: log.SqliteRow, first: int, last: int
) -> list[PackedSegment]:
    """Compress the first live entries of a span; only reads, so it blocks no other caller."""
    first, last = max(first, 0), min(last, found.next_seq - 1)
    if first > last:
        return []
    stored = log.records(connection, found, first, last)
    movable = (item for item in stored if not item.archived and not item.erased)
    live = rows.page(movable, rows.ARCHIVE_BATCH)
    return [
        part
        for run in rows.split_runs(live)
        for part in rows.pack_run(run, log.hash_at(connection, found, run[0].seq - 1))
    ]


def store(connection: apsw.Connection, found: log.SqliteRow, packed: PackedSegment) -> Archived:
    """Replace live entries by their segment, in one transaction.

    The segment was packed from an earlier snapshot, so everything is checked again.
    """
    segment = packed.segment
    hash_now = (
        log.hash_at(connection, found, segment.last_seq) if _is_current(connection, found) else ""
    )
    if hash_now != segment.hash:
        raise ConflictError(f"{found.key.conversation}: it was erased or changed in the meantime")
    ids = found.entry_id(segment.first_seq), found.entry_id(segment.last_seq)
    if fetch_one(connection, log.ERASED, ids):
        raise ConflictError(f"{found.key.conversation}: some of it was erased in the meantime")
    connection.execute("DELETE FROM entry WHERE id BETWEEN ? AND ?", ids)
    entries = segment.last_seq - segment.first_seq + 1
    if connection.changes() != entries:
        raise ConflictError(f"{found.key.conversation}: another caller has moved the messages")
    _insert_segment(connection, found, segment)
    _count(connection, found, entries)
    return Archived(entries, 1, packed.plain_bytes, len(segment.body))


def _insert_segment(connection: apsw.Connection, found: log.SqliteRow, segment: Segment) -> None:
    connection.execute(
        "INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (found.entry_id(segment.first_seq), *segment[1:]),
    )


def take_out(
    connection: apsw.Connection, found: log.SqliteRow, erased: Mapping[int, Record]
) -> int:
    """Make archived entries live again, alone; returns how many segments were rewritten."""
    archived = {seq: record for seq, record in erased.items() if record.archived}
    touching = {
        segment.first_seq: segment
        for first, last in runs(sorted(archived))
        for segment in log.segment_rows(connection, found, first, last)
    }
    for segment in touching.values():
        stored = rows.unpack_segment(segment)
        connection.execute("DELETE FROM segment WHERE id = ?", (found.entry_id(segment.first_seq),))
        for packed in rows.without(stored, archived, segment.hash_before):
            _insert_segment(connection, found, packed.segment)
    _insert_entries(connection, found, archived.values())
    _count(connection, found, -len(archived))
    return len(touching)


def _insert_entries(
    connection: apsw.Connection, found: log.SqliteRow, records: Iterable[Record]
) -> None:
    connection.executemany(
        "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)",
        [(found.entry_id(r.seq), r.tokens, r.total, r.tokenizer, r.hash, r.body) for r in records],
    )


def _count(connection: apsw.Connection, found: log.SqliteRow, entries: int) -> None:
    connection.execute(
        "UPDATE conversation SET archived = archived + ? WHERE id = ?", (entries, found.id)
    )


def _is_current(connection: apsw.Connection, found: log.SqliteRow) -> bool:
    now = log.find(connection, found.key)
    return now is not None and now.id == found.id and now.next_seq >= found.next_seq


def restore(connection: apsw.Connection, found: log.SqliteRow, first: int, last: int) -> int:
    """Unpack every segment that overlaps the span into live entries."""
    restored = 0
    first, last = max(first, 0), min(last, found.next_seq - 1)
    touching = list(log.segment_rows(connection, found, first, last)) if first <= last else []
    for segment in touching:
        records = rows.unpack_segment(segment)
        _insert_entries(connection, found, records)
        connection.execute("DELETE FROM segment WHERE id = ?", (found.entry_id(segment.first_seq),))
        restored += len(records)
    _count(connection, found, -restored)
    return restored
