"""The log in SQLite: appends use the writer's connection, reads use a reader's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any, Final

import apsw

from firnline.errors import InputError, StoreCorrupt, UnknownConversation
from firnline.log import chain, limits
from firnline.log.entry import (
    Appended,
    Entry,
    EntryDraft,
    Head,
    Idempotency,
    Key,
    Record,
    UsedKey,
    genesis,
    runs,
)
from firnline.log.message import microseconds
from firnline.store import rows
from firnline.store.rows import Segment, all_of_type
from firnline.store.seals import PINS
from firnline.store.sqlite.checksums import proven_reads
from firnline.store.sqlite.connection import fetch_one
from firnline.store.sqlite.seals import check_part
from firnline.store.sqlite.write_buffer import OpenHead, WriteBuffer

SEQ_MASK: Final = rows.SEQ_MAX

ERASED: Final = (
    "SELECT id FROM entry WHERE id BETWEEN ? AND ? AND substr(body, 1, 7) = CAST('erased ' AS BLOB)"
)
"""The ids of a span's tombstones."""

# Queries that may not be read to their end are closed: a driver that forgets one that was dropped
# would keep its snapshot, and hide what is appended later.
_SPAN: Final = (
    "SELECT id, body, tokens, total, hash, tokenizer FROM entry"
    " WHERE id BETWEEN ? AND ? ORDER BY id"
)
FOUND: Final = (
    "SELECT id, next_seq, total, hash, genesis, updated_at, unread, mark FROM conversation"
)
HEAD: Final = (
    "SELECT tenant, name, genesis, next_seq, hash, total, created_at, updated_at, project,"
    " person, metadata, archived, strategy, fence, lease_owner, lease_until, owed_at, unread,"
    " c.mark, seal.mark FROM conversation c"
    " LEFT JOIN seal ON seal.conversation = c.id AND part = 'about'"
)


class SqliteRow(rows.ConversationRow):
    """A conversation's row, and the ids of the rows that belong to it."""

    __slots__ = ()

    def entry_id(self, seq: int) -> int:
        """The row id of an entry, segment or digest of the conversation."""
        if not 0 <= seq <= SEQ_MASK:
            raise InputError(f"{seq} is not a valid sequence number")
        return self.id << limits.SEQ_BITS | seq


# -- appending --------------------------------------------------------------------------------


def append(
    connection: apsw.Connection,
    heads: WriteBuffer,
    key: Key,
    drafts: Sequence[EntryDraft],
    expected_seq: int | None,
    idempotency: Idempotency | None,
    person: str | None,
) -> Appended:
    """Add messages; all checks run before the first write."""
    head = heads.find(connection, key)
    rows.check_person(key, head.person if head else None, person)
    if idempotency and head and (done := _replay(connection, heads, key, head, idempotency)):
        return done
    next_seq = head.next_seq if head else 0
    rows.check_append(key, next_seq, drafts, expected_seq)
    if head is None:
        head = heads.create(connection, key, microseconds(drafts[0].time))
    if person is not None and head.person is None:
        heads.claim(connection, head, person)
    entries = rows.next_entries(head.next_seq, head.total, head.hash, drafts)
    heads.add(head, _new_rows(head, entries, drafts))
    if idempotency:
        once = (*idempotency, next_seq, head.next_seq - 1)
        connection.execute(
            "INSERT INTO idempotency VALUES (?, ?, ?, ?, ?, ?)",
            (head.id, *once, rows.idempotency_mark(head.id, *once)),
        )
    pins = [(head.id, seq) for seq, draft in enumerate(drafts, next_seq) if draft.pinned]
    if pins:
        connection.executemany("INSERT INTO pin VALUES (?, ?)", pins)
    return Appended(entries)


def _new_rows(
    head: OpenHead, entries: Sequence[Entry], drafts: Sequence[EntryDraft]
) -> list[tuple[Any, ...]]:
    """The rows of new entries; advances the head."""
    base, last = head.id << limits.SEQ_BITS, entries[-1]
    head.next_seq, head.total, head.hash = last.seq + 1, last.total, last.hash
    head.updated_at = microseconds(drafts[-1].time)
    return [
        (base | entry.seq, entry.tokens, entry.total, entry.tokenizer, entry.hash, draft.body)
        for entry, draft in zip(entries, drafts, strict=True)
    ]


def _replay(
    connection: apsw.Connection,
    heads: WriteBuffer,
    key: Key,
    head: OpenHead,
    idempotency: Idempotency,
) -> Appended | None:
    with proven_reads(connection):
        row = fetch_one(
            connection,
            "SELECT fingerprint, first_seq, last_seq, mark FROM idempotency"
            " WHERE conversation = ? AND key = ?",
            (head.id, idempotency.key),
        )
    if not row:
        return None
    fingerprint, first, last, mark = row
    if mark not in (None, rows.idempotency_mark(head.id, idempotency.key, *row[:3])):
        raise StoreCorrupt(f"{key.conversation}: the row of an idempotency key is damaged")
    rows.check_repeat(idempotency, fingerprint)
    heads.write_entries(connection)  # the entries may have been appended in this transaction
    found = SqliteRow(key, head.id, head.next_seq, head.total, head.hash)
    return Appended(tuple(span(connection, found, first, last)), replayed=True)


def used_keys(
    connection: apsw.Connection, found: SqliteRow, *, after: str, limit: int
) -> list[UsedKey]:
    """The idempotency keys that were used, in order."""
    rows_ = connection.execute(
        "SELECT key, fingerprint, first_seq, last_seq, mark FROM idempotency"
        " WHERE conversation = ? AND key > ? ORDER BY key LIMIT ?",
        (found.id, after, max(limit, 0)),
    )
    return [rows.used_key(found.key, found.id, row) for row in rows_]


def put_used_keys(connection: apsw.Connection, key: Key, used: Sequence[UsedKey]) -> None:
    """Write idempotency keys; those that are known are kept."""
    found = find(connection, key)
    if found is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    rows.check_used_keys(key, used, found.next_seq)
    with proven_reads(connection):  # written again, a damaged page would look right
        connection.executemany(
            "INSERT OR IGNORE INTO idempotency VALUES (?, ?, ?, ?, ?, ?)",
            [
                (found.id, *columns, rows.idempotency_mark(found.id, *columns))
                for columns in ((*name, first, last) for name, first, last in used)
            ],
        )


# -- reading ----------------------------------------------------------------------------------


def find(connection: apsw.Connection, key: Key, *, tolerant: bool = False) -> SqliteRow | None:
    """The conversation, or None. A head that does not match its mark raises, unless `tolerant`."""
    row = fetch_one(connection, f"{FOUND} WHERE tenant = ? AND name = ?", key)
    return SqliteRow.of(key, row[:5] if tolerant else row) if row else None


def head(connection: apsw.Connection, key: Key) -> Head | None:
    """The conversation's head, or None."""
    row = fetch_one(connection, f"{HEAD} WHERE tenant = ? AND name = ?", key)
    if not row:
        return None
    return rows.head_of(row)


def conversations(
    connection: apsw.Connection,
    tenant: str,
    about: tuple[str | None, str | None],
    after: str,
    limit: int,
) -> list[Head]:
    """A page of the tenant's conversations, of a project and of a person if they are given."""
    project, person = about
    found = connection.execute(
        f"{HEAD} WHERE tenant = :tenant AND name > :after"
        f"{'' if project is None else ' AND project = :project'}"
        f"{'' if person is None else ' AND person = :person'} ORDER BY name LIMIT :limit",
        {"tenant": tenant, "after": after, "project": project, "person": person, "limit": limit},
    )
    return [rows.head_of(row) for row in found]


def recent(
    connection: apsw.Connection, tenant: str, project: str | None, after: Head | None, limit: int
) -> list[Head]:
    """A page of conversations, of a project if it is given, the most recently updated first."""
    behind = (
        " AND (updated_at < :at OR (updated_at = :at AND name > :name))"
        if after is not None
        else ""
    )
    values = {"tenant": tenant, "project": project, "limit": limit}
    if after is not None:
        values |= {"at": microseconds(after.updated_at), "name": after.conversation}
    found = connection.execute(
        f"{HEAD} WHERE tenant = :tenant"
        f"{'' if project is None else ' AND project = :project'}{behind}"
        " ORDER BY updated_at DESC, name LIMIT :limit",
        values,
    )
    return [rows.head_of(row) for row in found]


def span(connection: apsw.Connection, found: SqliteRow, first: int, last: int) -> list[Entry]:
    """The entries `first` to `last`, verified: none missing, every hash recomputed."""
    if first > last:
        return []
    before = max(first - 1, 0)
    stored = list(_live(connection, found, before, last))
    if len(stored) != last - before + 1:  # some are archived
        stored = list(records(connection, found, before, last))
    return rows.verify_span(found, stored, first, last)


def records(
    connection: apsw.Connection, found: SqliteRow, first: int, last: int, *, tolerant: bool = False
) -> Iterator[Record]:
    """The stored records of a span, unverified; see `rows.merge_records`."""
    live = _live(connection, found, first, last)
    archived = segment_rows(connection, found, first, last)
    return rows.merge_records(live, archived, first, last, tolerant=tolerant)


def _live(
    connection: apsw.Connection, found: SqliteRow, first: int, last: int, order: str = ""
) -> Iterator[Record]:
    ids = found.entry_id(first), found.entry_id(last)
    with closing(connection.execute(f"{_SPAN} {order}", ids)) as stored:
        for id_, body, tokens, total, hash_, tokenizer in stored:
            if id_ >> limits.SEQ_BITS != found.id:
                name = found.key.conversation
                raise StoreCorrupt(f"{name}: a row among its messages is misplaced")
            whole = (
                all_of_type(bytes, body)
                and all_of_type(int, tokens, total)
                and all_of_type(str, hash_, tokenizer)
            )
            if whole:
                yield Record(id_ & SEQ_MASK, body, tokens, total, hash_, tokenizer)
            else:
                yield Record(id_ & SEQ_MASK, b"", 0, 0, "", "", problem="its row is damaged")


def segment_rows(
    connection: apsw.Connection, found: SqliteRow, first: int, last: int
) -> Iterator[Segment]:
    """The segments that touch a span, oldest first. Segments never overlap."""
    touching = connection.execute(
        "SELECT id, last_seq, hash_before, hash, total_before, total, checksum, body"
        " FROM segment"
        " WHERE id BETWEEN coalesce((SELECT max(id) FROM segment WHERE id BETWEEN ?1 AND ?2),"
        " ?2) AND ?3 AND last_seq >= ?4 ORDER BY id",
        (found.entry_id(0), found.entry_id(first), found.entry_id(last), first),
    )
    with closing(touching):
        for id_, *columns in touching:
            if id_ >> limits.SEQ_BITS != found.id:
                name = found.key.conversation
                raise StoreCorrupt(f"{name}: a row among its segments is misplaced")
            yield Segment(id_ & SEQ_MASK, *columns)


def hash_at(connection: apsw.Connection, found: SqliteRow, seq: int) -> str:
    """The chain hash at `seq`; -1 is before the first entry."""
    if seq < 0:
        return genesis(found.key)
    row = fetch_one(connection, "SELECT hash FROM entry WHERE id = ?", (found.entry_id(seq),))
    return str(row[0]) if row else _archived_at(connection, found, seq).hash


def total_at(connection: apsw.Connection, found: SqliteRow, seq: int) -> int:
    """The running token total up to and including `seq`."""
    if seq < 0:
        return 0
    if seq == found.next_seq - 1:
        return found.total
    row = fetch_one(connection, "SELECT total FROM entry WHERE id = ?", (found.entry_id(seq),))
    return int(row[0]) if row else _archived_at(connection, found, seq).total


def _archived_at(connection: apsw.Connection, found: SqliteRow, seq: int) -> Record:
    for segment in segment_rows(connection, found, seq, seq):
        for item in rows.unpack_segment(segment):
            if item.seq == seq:
                return item
    raise StoreCorrupt(f"{found.key.conversation}: message {seq} is missing", seq=seq)


def newest(connection: apsw.Connection, found: SqliteRow, tokens_max: int) -> list[Entry]:
    """The newest entries that fit, read backwards from the end."""
    fitting: list[Record] = []
    for item in _backwards(connection, found):
        if not rows.fits(found, item, tokens_max):
            rows.check_left_out(found, item, hash_at(connection, found, item.seq - 1), fitting)
            break
        fitting.append(item)
    fitting.reverse()
    if not fitting:
        return []
    rows.check_newest(found, fitting)
    return chain.checked_entries(fitting, hash_at(connection, found, fitting[0].seq - 1))


def _backwards(connection: apsw.Connection, found: SqliteRow) -> Iterator[Record]:
    end = found.next_seq - 1
    while end >= 0:
        for item in _live(connection, found, 0, end, "DESC"):
            if item.seq != end:
                break
            yield item
            end -= 1
        if end < 0:
            return
        touching = next(segment_rows(connection, found, end, end), None)
        if touching is None:
            return
        for item in reversed(rows.unpack_segment(touching)):
            if item.seq <= end:
                yield item
                end = item.seq - 1


def dated(
    connection: apsw.Connection,
    found: SqliteRow,
    since: datetime,
    until: datetime,
    limit: int,
    first_seq: int = 0,
) -> list[Entry]:
    """The entries dated in [since, until), as far as the log is indexed."""
    said = connection.execute(
        "SELECT seq FROM said WHERE conversation = ? AND at >= ? AND at < ? AND seq >= ? "
        "ORDER BY seq LIMIT ?",
        (found.id, microseconds(since), microseconds(until), first_seq, max(limit, 0)),
    )
    return at(connection, found, [seq for (seq,) in said])


def at(connection: apsw.Connection, found: SqliteRow, seqs: Sequence[int]) -> list[Entry]:
    """The entries at these sequence numbers, which must be ascending."""
    return [entry for first, last in runs(seqs) for entry in span(connection, found, first, last)]


# -- pins --------------------------------------------------------------------------------------


def pin(connection: apsw.Connection, key: Key, seq: int) -> None:
    """Pin an entry; does nothing if it is already pinned."""
    values = _entry_key(connection, key, seq)
    connection.execute("INSERT INTO pin VALUES (?, ?) ON CONFLICT DO NOTHING", values)


def unpin(connection: apsw.Connection, key: Key, seq: int) -> None:
    """Unpin an entry; does nothing if it is not pinned."""
    values = _entry_key(connection, key, seq)
    connection.execute("DELETE FROM pin WHERE conversation = ? AND seq = ?", values)


def _entry_key(connection: apsw.Connection, key: Key, seq: int) -> tuple[int, int]:
    found = find(connection, key)
    if found is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    if not 0 <= seq < found.next_seq:
        raise InputError(f"{key.conversation} has no message {seq}")
    return found.id, seq


def pinned(connection: apsw.Connection, found: SqliteRow) -> list[Entry]:
    """The pinned entries; raises `StoreCorrupt` if one does not exist."""
    marks = connection.execute(
        "SELECT seq FROM pin WHERE conversation = ? ORDER BY seq", [found.id]
    )
    seqs = [seq for (seq,) in marks]
    check_part(connection, found, PINS, [(seq,) for seq in seqs])
    for seq in seqs:
        if type(seq) is not int or not 0 <= seq < found.next_seq:
            raise StoreCorrupt(f"{found.key.conversation}: message {seq} is pinned but missing")
    return at(connection, found, seqs)
