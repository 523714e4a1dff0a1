"""Moving old entries into compressed segments and back. Nothing about them changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from firnline import limits, proof
from firnline.errors import ConflictError
from firnline.log import Archived, Record
from firnline.store import segments
from firnline.store.sqlite import log

_HASH = 3  # the column of a segment's last hash
_AT_ONCE = 8 * limits.SEGMENT_ENTRIES_MAX


class Packed(NamedTuple):
    """A segment ready to be written."""

    first_seq: int
    last_seq: int
    plain_bytes: int
    row: tuple[Any, ...]


def pack(connection: apsw.Connection, found: log.Found, first: int, last: int) -> list[Packed]:
    """Compress the first live entries of a span; reads only, so nobody has to wait for it."""
    first, last = max(first, 0), min(last, found.next_seq - 1)
    if first > last:
        return []
    stored = log.records(connection, found, first, last)
    live = log.page((item for item in stored if not item.archived), _AT_ONCE)
    packed: list[Packed] = []
    for run in _unbroken(live):
        before = log.hash_at(connection, found, run[0].seq - 1)
        proof.entries(run, before)  # never compress what is damaged
        for part in segments.spans(run):
            packed.append(_packed(found, part, before))
            before = part[-1].hash
    return packed


def _packed(found: log.Found, part: Sequence[Record], hash_before: str) -> Packed:
    body, checksum = segments.pack(part)
    row = (
        found.entry_id(part[0].seq),
        part[-1].seq,
        hash_before,
        part[-1].hash,
        part[0].total - part[0].tokens,
        part[-1].total,
        checksum,
        body,
    )
    return Packed(part[0].seq, part[-1].seq, sum(len(item.body) for item in part), row)


def _unbroken(records: Sequence[Record]) -> list[list[Record]]:
    runs: list[list[Record]] = []
    for item in records:
        if runs and runs[-1][-1].seq + 1 == item.seq:
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def store(connection: apsw.Connection, found: log.Found, packed: Packed) -> Archived:
    """Swap live entries for their segment, in one transaction.

    The segment was packed from what a reader saw a moment ago, so all is checked again.
    """
    hash_now = log.hash_at(connection, found, packed.last_seq) if _still(connection, found) else ""
    if hash_now != packed.row[_HASH]:
        raise ConflictError(f"{found.key.conversation}: it was erased or changed meanwhile")
    connection.execute(
        "DELETE FROM entry WHERE id BETWEEN ? AND ?",
        (found.entry_id(packed.first_seq), found.entry_id(packed.last_seq)),
    )
    entries = packed.last_seq - packed.first_seq + 1
    if connection.changes() != entries:
        raise ConflictError(f"{found.key.conversation}: the entries were moved by somebody else")
    connection.execute("INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?, ?, ?)", packed.row)
    _count(connection, found, entries)
    return Archived(entries, 1, packed.plain_bytes, len(packed.row[-1]))


def _count(connection: apsw.Connection, found: log.Found, entries: int) -> None:
    connection.execute(
        "UPDATE conversation SET archived = archived + ? WHERE id = ?", (entries, found.id)
    )


def _still(connection: apsw.Connection, found: log.Found) -> bool:
    now = log.find(connection, found.key)
    return now is not None and now.id == found.id and now.next_seq >= found.next_seq


def restore(connection: apsw.Connection, found: log.Found, first: int, last: int) -> int:
    """Make the entries of every segment that touches the span live again."""
    restored = 0
    first, last = max(first, 0), min(last, found.next_seq - 1)
    rows = list(log.segment_rows(connection, found, first, last)) if first <= last else []
    for row in rows:
        records = log.unpack_segment(found, row)
        connection.executemany(
            "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)",
            [
                (
                    found.entry_id(item.seq),
                    item.tokens,
                    item.total,
                    item.tokenizer,
                    item.hash,
                    item.body,
                )
                for item in records
            ],
        )
        connection.execute("DELETE FROM segment WHERE id = ?", (row[0],))
        restored += len(records)
    _count(connection, found, -restored)
    return restored
