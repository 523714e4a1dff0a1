"""The log in SQLite: appending on the writer's connection, reading on a reader's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import apsw

from firnline import limits, proof
from firnline.errors import ConflictError, InputError, StoreCorrupt
from firnline.log import (
    Appended,
    Draft,
    Entry,
    Head,
    Idempotency,
    Key,
    Record,
    chain,
    genesis,
    runs,
)
from firnline.message import from_microseconds, microseconds
from firnline.store import segments
from firnline.store.sqlite.connection import one
from firnline.store.sqlite.heads import Heads, OpenHead

SEQ_MASK: Final = (1 << limits.SEQ_BITS) - 1

_SPAN: Final = (
    "SELECT id, body, tokens, total, hash, tokenizer FROM entry"
    " WHERE id BETWEEN ? AND ? ORDER BY id"
)
_HEAD: Final = (
    "SELECT tenant, name, genesis, next_seq, hash, total, created_at, updated_at, project,"
    " metadata, archived, strategy FROM conversation"
)


class Found(NamedTuple):
    """A conversation as a reader finds it."""

    key: Key
    id: int
    next_seq: int
    total: int
    hash: str

    @classmethod
    def of(cls, key: Key, row: Sequence[Any]) -> Found:
        """From ``id, next_seq, total, hash, genesis`` of a conversation's row."""
        id_, next_seq, total, hash_, start = row
        sane = _are(int, next_seq, total) and _are(str, hash_)
        sane = sane and 0 <= next_seq <= SEQ_MASK and total >= 0
        if start != genesis(key) or not sane or (next_seq == 0) != (hash_ == start):
            raise StoreCorrupt(f"the row of the conversation {key.conversation!r} is damaged")
        return cls(key, id_, next_seq, total, hash_)

    def entry_id(self, seq: int) -> int:
        """The number under which an entry, a segment or a digest of the conversation is kept."""
        if not 0 <= seq <= SEQ_MASK:
            raise InputError(f"{seq} is not a number that a conversation can have")
        return self.id << limits.SEQ_BITS | seq


# -- appending --------------------------------------------------------------------------------


def append(
    connection: apsw.Connection,
    heads: Heads,
    key: Key,
    drafts: Sequence[Draft],
    expected_seq: int | None,
    idempotency: Idempotency | None,
) -> Appended:
    """Add messages; all that can be refused is refused before the first write."""
    head = heads.find(connection, key)
    if idempotency and head and (done := _replay(connection, heads, key, head, idempotency)):
        return done
    next_seq = head.next_seq if head else 0
    if expected_seq is not None and expected_seq != next_seq:
        raise ConflictError(
            f"{key.conversation}: the next sequence number is {next_seq}, not {expected_seq}",
            expected_seq=expected_seq,
            actual_seq=next_seq,
        )
    if next_seq + len(drafts) > SEQ_MASK:
        raise InputError(f"{key.conversation}: a conversation holds up to {SEQ_MASK:,} entries")
    for draft in drafts:
        draft.check()
    if head is None:
        head = heads.create(connection, key, microseconds(drafts[0].time))
    rows, entries = _entries(head, drafts)
    heads.add(head, rows)
    if idempotency:
        connection.execute(
            "INSERT INTO idempotency VALUES (?, ?, ?, ?, ?)",
            (head.id, *idempotency, next_seq, head.next_seq - 1),
        )
    pins = [(head.id, seq) for seq, draft in enumerate(drafts, next_seq) if draft.pinned]
    if pins:
        connection.executemany("INSERT INTO pin VALUES (?, ?)", pins)
    return Appended(entries)


def _entries(
    head: OpenHead, drafts: Sequence[Draft]
) -> tuple[list[tuple[Any, ...]], tuple[Entry, ...]]:
    """The new rows and entries; moves the head behind them."""
    rows, entries = [], []
    seq, total, hash_, at = head.next_seq, head.total, head.hash, head.updated_at
    for draft in drafts:
        message, body, tokens, tokenizer, _ = draft
        hash_ = chain(hash_, body, tokens, tokenizer)
        total += tokens
        at = microseconds(draft.time)
        rows.append((head.id << limits.SEQ_BITS | seq, tokens, total, tokenizer, hash_, body))
        entries.append(Entry(seq, message, tokens, total, hash_, tokenizer))
        seq += 1
    head.next_seq, head.total, head.hash, head.updated_at = seq, total, hash_, at
    return rows, tuple(entries)


def _replay(
    connection: apsw.Connection, heads: Heads, key: Key, head: OpenHead, idempotency: Idempotency
) -> Appended | None:
    row = one(
        connection,
        "SELECT fingerprint, first_seq, last_seq FROM idempotency"
        " WHERE conversation = ? AND key = ?",
        (head.id, idempotency.key),
    )
    if not row:
        return None
    fingerprint, first, last = row
    if fingerprint != idempotency.fingerprint:
        raise ConflictError(
            f"the idempotency key {idempotency.key!r} was used for other messages",
            idempotency_key=idempotency.key,
        )
    heads.flush(connection)  # they may have been appended a moment ago, in this very transaction
    found = Found(key, head.id, head.next_seq, head.total, head.hash)
    return Appended(tuple(span(connection, found, first, last)), replayed=True)


# -- reading ----------------------------------------------------------------------------------


def find(connection: apsw.Connection, key: Key) -> Found | None:
    """The conversation, or None."""
    row = one(
        connection,
        "SELECT id, next_seq, total, hash, genesis FROM conversation WHERE tenant = ? AND name = ?",
        key,
    )
    return Found.of(key, row) if row else None


def _are(kind: type, *values: Any) -> bool:
    """SQLite's types can change by a flipped bit, whatever the schema says."""
    return all(type(value) is kind for value in values)


def head(connection: apsw.Connection, key: Key) -> Head | None:
    """Where the conversation stands."""
    row = one(connection, f"{_HEAD} WHERE tenant = ? AND name = ?", key)
    return _head(row) if row else None


def conversations(
    connection: apsw.Connection, tenant: str, project: str | None, after: str, limit: int
) -> list[Head]:
    """A page of the tenant's conversations."""
    rows = connection.execute(
        f"{_HEAD} WHERE tenant = ? AND name > ? AND (?3 IS NULL OR project = ?3)"
        " ORDER BY name LIMIT ?4",
        (tenant, after, project, limit),
    )
    return [_head(row) for row in rows]


def _head(row: tuple[Any, ...]) -> Head:
    tenant, name, start, next_seq, hash_, total, *rest = row
    created, updated, project, metadata, archived, strategy = rest
    Found.of(Key(tenant, name), (0, next_seq, total, hash_, start))
    try:
        times = from_microseconds(created), from_microseconds(updated)
        about = project, json.loads(metadata), archived
        chosen = None if strategy is None else json.loads(strategy)
        return Head(name, next_seq - 1, hash_, total, *times, *about, strategy=chosen)
    except (ValueError, OverflowError, TypeError) as error:
        raise StoreCorrupt(f"the row of the conversation {name!r} is damaged") from error


def span(connection: apsw.Connection, found: Found, first: int, last: int) -> list[Entry]:
    """The entries `first` to `last`, checked: every one there, every hash derived again."""
    if first > last:
        return []
    before = max(first - 1, 0)
    wanted = list(range(before, last + 1))
    stored = list(_live(connection, found, before, last))
    if len(stored) != len(wanted):  # some are archived
        stored = list(records(connection, found, before, last))
    if [record.seq for record in stored] != wanted:
        raise StoreCorrupt(f"{found.key.conversation}: entries {first} to {last} are not all there")
    hash_before = stored.pop(0).hash if first > 0 else genesis(found.key)
    _check_head(found, stored[-1])
    return proof.entries(stored, hash_before)


def _check_head(found: Found, last: Record) -> None:
    """The last entry of the log must be the one that the recorded head stands for."""
    if last.seq == found.next_seq - 1 and last.hash != found.hash:
        raise StoreCorrupt(f"{found.key.conversation}: the end of the log is not the recorded one")


def records(
    connection: apsw.Connection, found: Found, first: int, last: int, *, tolerant: bool = False
) -> Iterator[Record]:
    """What is stored of a span, archived or live, by sequence number, unchecked and one by one.

    A damaged segment raises `StoreCorrupt`; if `tolerant`, its records say what the problem is.
    """
    live = _live(connection, found, first, last)
    waiting = next(live, None)
    for row in segment_rows(connection, found, first, last):
        while waiting is not None and waiting.seq < row[0] & SEQ_MASK:
            yield waiting
            waiting = next(live, None)
        for item in unpack_segment(found, row, tolerant=tolerant):
            if first <= item.seq <= last:
                yield item
    while waiting is not None:
        yield waiting
        waiting = next(live, None)


def _live(
    connection: apsw.Connection, found: Found, first: int, last: int, order: str = ""
) -> Iterator[Record]:
    rows = connection.execute(f"{_SPAN} {order}", (found.entry_id(first), found.entry_id(last)))
    for id_, body, tokens, total, hash_, tokenizer in rows:
        if id_ >> limits.SEQ_BITS != found.id:
            raise StoreCorrupt(f"{found.key.conversation}: a row among its entries is not its own")
        whole = _are(bytes, body) and _are(int, tokens, total) and _are(str, hash_, tokenizer)
        if whole:
            yield Record(id_ & SEQ_MASK, body, tokens, total, hash_, tokenizer)
        else:
            yield Record(id_ & SEQ_MASK, b"", 0, 0, "", "", problem="its row is damaged")


def page(items: Iterable[Record], limit: int) -> list[Record]:
    """The first `limit` records; fewer if they are large, but at least one if there is any."""
    taken: list[Record] = []
    size = 0
    for item in items:
        taken.append(item)
        size += len(item.body)
        if len(taken) >= limit or size >= limits.PAGE_BYTES_MAX:
            break
    return taken


def segment_rows(
    connection: apsw.Connection, found: Found, first: int, last: int
) -> Iterator[tuple[Any, ...]]:
    """The segments that touch a span, oldest first. Segments never overlap."""
    return iter(
        connection.execute(
            "SELECT id, last_seq, hash_before, hash, total_before, total, checksum, body"
            " FROM segment"
            " WHERE id BETWEEN coalesce((SELECT max(id) FROM segment WHERE id BETWEEN ?1 AND ?2),"
            " ?2) AND ?3 AND last_seq >= ?4 ORDER BY id",
            (found.entry_id(0), found.entry_id(first), found.entry_id(last), first),
        )
    )


def unpack_segment(found: Found, row: tuple[Any, ...], *, tolerant: bool = False) -> list[Record]:
    """The records of a row of the segment table; they must be what the row says they are."""
    id_, last_seq, hash_before, hash_, total_before, total, checksum, body = row
    if id_ >> limits.SEQ_BITS != found.id:
        raise StoreCorrupt(f"{found.key.conversation}: a row among its segments is not its own")
    first_seq = id_ & SEQ_MASK
    try:
        _check_types(row)
        items = segments.unpack(
            body,
            checksum,
            first_seq=first_seq,
            hash_before=hash_before,
            total_before=total_before,
        )
        _check_end(items[-1], (last_seq, hash_, total))
    except StoreCorrupt as error:
        if not tolerant:
            raise StoreCorrupt(f"entries {first_seq} to {last_seq}: {error}") from error
        return [
            Record(seq, b"", 0, 0, "", "", archived=True, problem=str(error))
            for seq in _claimed(first_seq, last_seq)
        ]
    return items


def _check_types(row: Sequence[Any]) -> None:
    _, last_seq, hash_before, hash_, total_before, total, checksum, body = row
    texts = _are(str, hash_before, hash_) and _are(bytes, checksum, body)
    if not texts or not _are(int, last_seq, total_before, total):
        raise StoreCorrupt("the row of an archived segment is damaged")


def _claimed(first_seq: int, last_seq: Any) -> range:
    """The entries that a damaged row says it holds, as far as that can be."""
    last = last_seq if _are(int, last_seq) else first_seq
    return range(first_seq, max(first_seq, min(last, first_seq + limits.SEGMENT_ENTRIES_MAX)) + 1)


def _check_end(last: Record, row: tuple[int, str, int]) -> None:
    if row != (last.seq, last.hash, last.total):
        raise StoreCorrupt("an archived segment does not hold what its row says")


def hash_at(connection: apsw.Connection, found: Found, seq: int) -> str:
    """The chain's value at `seq`; -1 is before the first entry."""
    if seq < 0:
        return genesis(found.key)
    row = one(connection, "SELECT hash FROM entry WHERE id = ?", (found.entry_id(seq),))
    return str(row[0]) if row else _archived_at(connection, found, seq).hash


def total_at(connection: apsw.Connection, found: Found, seq: int) -> int:
    """The running token total up to and including `seq`."""
    if seq < 0:
        return 0
    if seq == found.next_seq - 1:
        return found.total
    row = one(connection, "SELECT total FROM entry WHERE id = ?", (found.entry_id(seq),))
    return int(row[0]) if row else _archived_at(connection, found, seq).total


def _archived_at(connection: apsw.Connection, found: Found, seq: int) -> Record:
    for row in segment_rows(connection, found, seq, seq):
        for item in unpack_segment(found, row):
            if item.seq == seq:
                return item
    raise StoreCorrupt(f"{found.key.conversation}: entry {seq} is missing", seq=seq)


def newest(connection: apsw.Connection, found: Found, tokens_max: int) -> list[Entry]:
    """Walk back from the end until the next entry would not fit."""
    fitting: list[Record] = []
    for item in _backwards(connection, found):
        if item.problem:
            raise StoreCorrupt(f"entry {item.seq}: {item.problem}", seq=item.seq)
        if found.total - (item.total - item.tokens) > tokens_max:
            break
        fitting.append(item)
    fitting.reverse()
    if not fitting:
        return []
    if [item.seq for item in fitting] != list(range(fitting[0].seq, found.next_seq)):
        raise StoreCorrupt(f"{found.key.conversation}: entries are missing at the end of the log")
    _check_head(found, fitting[-1])
    return proof.entries(fitting, hash_at(connection, found, fitting[0].seq - 1))


def _backwards(connection: apsw.Connection, found: Found) -> Iterator[Record]:
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
        for item in reversed(unpack_segment(found, touching)):
            if item.seq <= end:
                yield item
                end = item.seq - 1


def dated(
    connection: apsw.Connection,
    found: Found,
    since: datetime,
    until: datetime,
    limit: int,
    first_seq: int = 0,
) -> list[Entry]:
    """The entries said in [since, until), as far as the views of the log have come."""
    rows = connection.execute(
        "SELECT seq FROM said WHERE conversation = ? AND at >= ? AND at < ? AND seq >= ? "
        "ORDER BY seq LIMIT ?",
        (found.id, microseconds(since), microseconds(until), first_seq, max(limit, 0)),
    )
    return at(connection, found, [seq for (seq,) in rows])


def at(connection: apsw.Connection, found: Found, seqs: Sequence[int]) -> list[Entry]:
    """The entries at these sequence numbers, which ascend."""
    return [entry for first, last in runs(seqs) for entry in span(connection, found, first, last)]
