"""Moves old entries into compressed segments and back, without changing them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from firnline.errors import ConflictError
from firnline.log.entry import Archived, Key, Record, runs
from firnline.store import rows
from firnline.store.postgres import log
from firnline.store.postgres.connection import Transaction
from firnline.store.rows import ConversationRow, PackedSegment, Segment


async def live(
    transaction: Transaction, key: Key, first: int, last: int
) -> tuple[ConversationRow | None, list[tuple[list[Record], str]]]:
    """The first live entries of a span, as consecutive runs with the hash before each."""
    found = await log.find(transaction, key)
    first, last = max(first, 0), min(last, found.next_seq - 1 if found else -1)
    some: list[Record] = []
    while first <= last and len(some) < rows.ARCHIVE_BATCH:
        _, stored, first = await log.page(transaction, key, first, last)
        some += [item for item in stored if not item.archived and not item.erased]
    runs = rows.split_runs(some[: rows.ARCHIVE_BATCH])
    return found, [(run, await log.hash_at(transaction, key, run[0].seq - 1)) for run in runs]


async def pack(runs: list[tuple[list[Record], str]]) -> list[PackedSegment]:
    """Compress them, off the event loop and outside any transaction."""
    return await asyncio.to_thread(
        lambda: [part for run, before in runs for part in rows.pack_run(run, before)]
    )


async def store(
    transaction: Transaction, found: ConversationRow, packed: PackedSegment
) -> Archived:
    """Replace live entries with their segment.

    The segment was packed from an earlier read, so everything is checked again.
    """
    segment, key = packed.segment, found.key
    now = await log.find(transaction, key, log.CHANGE)
    same = now is not None and now.id == found.id and now.next_seq >= found.next_seq
    hash_now = await log.hash_at(transaction, key, segment.last_seq) if same else ""
    if hash_now != segment.hash:
        raise ConflictError(f"{key.conversation}: it was erased or changed in the meantime; retry")
    own, span = (key.tenant, found.id), (segment.first_seq, segment.last_seq)
    if await transaction.row(ERASED, (*own, *span)):
        raise ConflictError(f"{key.conversation}: some of it was erased in the meantime; retry")
    gone = await transaction.changed(
        "DELETE FROM entry WHERE tenant = %s AND conversation = %s AND seq BETWEEN %s AND %s",
        (*own, *span),
    )
    if gone != segment.last_seq - segment.first_seq + 1:
        raise ConflictError(f"{key.conversation}: another process moved the messages; retry")
    _insert_segment(transaction, found, segment)
    _count(transaction, found, gone)
    return Archived(gone, 1, packed.plain_bytes, len(segment.body))


ERASED: Final = (
    "SELECT seq FROM entry WHERE tenant = %s AND conversation = %s AND seq BETWEEN %s AND %s"
    " AND substring(body FROM 1 FOR 7) = 'erased '::bytea LIMIT 1"
)
"""Whether there is a tombstone in a span."""


def _insert_segment(transaction: Transaction, found: ConversationRow, segment: Segment) -> None:
    transaction.later(
        "INSERT INTO segment (tenant, conversation, first_seq, last_seq, hash_before, hash,"
        " total_before, total, checksum, body) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (found.key.tenant, found.id, *segment),
    )


def _delete_segment(transaction: Transaction, found: ConversationRow, segment: Segment) -> None:
    transaction.later(
        "DELETE FROM segment WHERE tenant = %s AND conversation = %s AND first_seq = %s",
        (found.key.tenant, found.id, segment.first_seq),
    )


async def take_out(
    transaction: Transaction, found: ConversationRow, erased: Mapping[int, Record]
) -> int:
    """Make archived entries live again, alone; returns how many segments were rewritten."""
    archived = {seq: record for seq, record in erased.items() if record.archived}
    touching: dict[int, Segment] = {}
    for first, last in runs(sorted(archived)):
        at = first
        while at <= last:
            some = await log.segments(transaction, found.key, at, last)
            touching |= {segment.first_seq: segment for segment in some}
            at = some[-1].last_seq + 1 if some else last + 1
    for segment in touching.values():
        stored = rows.unpack_segment(segment)
        _delete_segment(transaction, found, segment)
        for packed in rows.without(stored, archived, segment.hash_before):
            _insert_segment(transaction, found, packed.segment)
    taken = list(archived.values())
    if taken:
        log.insert_entries(transaction, found, taken, [record.body for record in taken])
        _count(transaction, found, -len(taken))
    return len(touching)


def _count(transaction: Transaction, found: ConversationRow, entries: int) -> None:
    transaction.later(
        "UPDATE conversation SET archived = archived + %s WHERE tenant = %s AND id = %s",
        (entries, found.key.tenant, found.id),
    )


async def restore(transaction: Transaction, key: Key, first: int, last: int) -> int:
    """Make the entries of every segment that overlaps the span live again."""
    found = await log.find(transaction, key, log.CHANGE)
    first, last = max(first, 0), min(last, found.next_seq - 1 if found else -1)
    restored = 0
    while found is not None and first <= last:
        some = await log.segments(transaction, key, first, last)
        for segment in some:
            records = rows.unpack_segment(segment)
            log.insert_entries(transaction, found, records, [item.body for item in records])
            _delete_segment(transaction, found, segment)
            restored += len(records)
            first = segment.last_seq + 1
        if not some:
            break
    if found is not None and restored:
        _count(transaction, found, -restored)
    return restored
