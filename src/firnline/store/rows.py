"""Rows of the log and their rules, shared by all backends that store rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple, Self

from firnline.errors import ConflictError, InputError, KeyReused, StoreCorrupt
from firnline.log import chain, limits
from firnline.log.entry import (
    Entry,
    EntryDraft,
    Head,
    Idempotency,
    Key,
    Project,
    Record,
    UsedKey,
    genesis,
)
from firnline.log.message import EPOCH, from_microseconds, microseconds
from firnline.log.text import Json
from firnline.store import segments
from firnline.store.seals import (
    ABOUT,
    ADVICE,
    HEAD,
    Seal,
    check_seal,
    damaged_part,
    mark_of,
    project_part,
)

SEQ_MAX: Final = (1 << limits.SEQ_BITS) - 1

NO_TOPIC: Final = -1
"""The stored number of digests that belong to no topic."""

_TOKENS_EACH: Final = 16  # few messages are shorter
_NEWEST_MIN: Final = 32

SEGMENTS_AT_ONCE: Final = 8
"""Segments read at once."""
TERMS_PER_ROW: Final = 50_000
"""Terms of an entry in one row of the word index; a tsvector holds a megabyte."""

ARCHIVE_BATCH: Final = 8 * limits.SEGMENT_ENTRIES_MAX
"""Entries compressed per read of the store."""


def newest_limit(tokens: int) -> int:
    """How many entries to read at once to find the newest ones that fit into `tokens`."""
    return min(max(tokens // _TOKENS_EACH, 0) + _NEWEST_MIN, limits.READ_PAGE)


class Described(NamedTuple):
    """The values that `Store.describe` sets; None leaves one as it is."""

    project: str | None = None
    person: str | None = None
    metadata: dict[str, Json] | None = None
    strategy: dict[str, Json] | None = None
    created_at: datetime | None = None


class ConversationRow(NamedTuple):
    """A conversation's row."""

    key: Key
    id: int
    next_seq: int
    total: int
    hash: str

    @classmethod
    def of(cls, key: Key, row: Sequence[Any]) -> Self:
        """From ``id, next_seq, total, hash, genesis`` of a conversation's row.

        If ``updated_at, unread, mark`` follow, the head must match its mark.
        """
        id_, next_seq, total, hash_, start, *rest = row
        sane = all_of_type(int, next_seq, total) and all_of_type(str, hash_, *key)
        sane = sane and 0 <= next_seq <= SEQ_MAX and total >= 0
        if not sane or start != genesis(key) or (next_seq == 0) != (hash_ == start):
            raise StoreCorrupt(f"the row of the conversation {key.conversation!r} is damaged")
        if rest and not is_marked(next_seq, total, hash_, *rest):
            raise damaged_part(key.conversation, HEAD)
        return cls(key, id_, next_seq, total, hash_)


def is_marked(
    next_seq: int, total: int, hash_: str, updated_at: int, unread: int, mark: int | None
) -> bool:
    """Whether a head's columns match its mark; those without are of an older Firnline."""
    if not isinstance(unread, int):  # a flipped bit can make it NULL, or bytes
        return False
    return mark in (None, mark_of(next_seq, total, hash_, updated_at, int(unread)))


def end_of(last: Entry) -> tuple[int, int, str, int]:
    """The number of entries, the total, the hash and the time of a log that ends with this one."""
    time = last.message.created_at or last.erased_at or EPOCH
    return last.seq + 1, last.total, last.hash, microseconds(time)


class Segment(NamedTuple):
    """A row of archived entries."""

    first_seq: int
    last_seq: int
    hash_before: str
    hash: str
    total_before: int
    total: int
    checksum: bytes
    body: bytes


def all_of_type(kind: type, *values: Any) -> bool:
    """Whether all have this type: in SQLite, a bit flip can change the type of a value."""
    return all(type(value) is kind for value in values)


def head_of(row: Sequence[Any]) -> Head:
    """A head, from its columns in the order that both SQL backends select them."""
    tenant, name, start, next_seq, hash_, total, *rest = row
    created, updated, project, person, metadata, archived, strategy, *other = rest
    *other, unread, mark, sealed = other
    given = (text for text in (project, person, strategy) if text is not None)
    texts = tenant, name, metadata, *given
    if not all_of_type(str, *texts):  # a flipped bit makes bytes with the same mark
        raise damaged_part(str(name), ABOUT)
    head = next_seq, total, hash_
    ConversationRow.of(Key(tenant, name), (0, *head, start, updated, unread, mark))
    described = (project, metadata) if person is None else (project, person, metadata)
    if sealed not in (None, mark_of(start, *described, strategy, archived, *other, created)):
        raise damaged_part(name, ABOUT)
    try:
        times = from_microseconds(created), from_microseconds(updated)
        about = project, json.loads(metadata), archived
        chosen = None if strategy is None else json.loads(strategy)
        return Head(name, next_seq - 1, hash_, total, *times, *about, chosen, person)
    except (ValueError, OverflowError, TypeError) as error:
        raise StoreCorrupt(f"the row of the conversation {name!r} is damaged") from error


def projects_of(
    tenant: str, found: Sequence[Sequence[Any]], sealed: Mapping[str, Sequence[Any]]
) -> list[Project]:
    """A tenant's projects from their rows, each compared with its seal; none may be missing."""
    try:
        for name, *columns in found:
            check_seal(tenant, project_part(name), sealed.get(name), Seal(1, mark_of(*columns)))
            if not all_of_type(str, name, *columns):
                raise damaged_part(tenant, project_part(str(name)))
        for name in {*sealed} - {name for name, *_ in found}:
            raise damaged_part(tenant, project_part(name))
        return [
            Project(name, status, schedule, task, json.loads(metadata))
            for name, status, schedule, task, metadata in found
        ]
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreCorrupt(f"{tenant}: the row of a project is damaged; {ADVICE}") from error


# -- appending --------------------------------------------------------------------------------


def check_append(
    key: Key, next_seq: int, drafts: Sequence[EntryDraft], expected_seq: int | None
) -> None:
    """Raise unless these drafts can be the conversation's next entries."""
    if expected_seq is not None and expected_seq != next_seq:
        raise ConflictError(
            f"{key.conversation}: the next sequence number is {next_seq}, not {expected_seq}",
            expected_seq=expected_seq,
            actual_seq=next_seq,
        )
    if next_seq + len(drafts) > SEQ_MAX:
        raise InputError(f"{key.conversation}: the limit is {SEQ_MAX:,} messages per conversation")
    for draft in drafts:
        draft.check()


def check_person(key: Key, known: str | None, given: str | None) -> None:
    """Raise `ConflictError` if a conversation is with another person than the given one."""
    if given is not None and known not in (None, given):
        raise ConflictError(
            f"{key.conversation} is with another person; `describe` changes whom it is with"
        )


def next_entries(
    next_seq: int, total: int, hash_: str, drafts: Sequence[EntryDraft]
) -> tuple[Entry, ...]:
    """The drafts as entries that follow a head."""
    entries = []
    for seq, draft in enumerate(drafts, next_seq):
        hash_ = draft.hash_after(hash_)
        total += draft.tokens
        entries.append(Entry(seq, draft.message, draft.tokens, total, hash_, draft.tokenizer))
    return tuple(entries)


def idempotency_mark(id_: int, key: str, fingerprint: str, first_seq: int, last_seq: int) -> int:
    """What the row of an idempotency key is checked against."""
    return mark_of(id_, key, fingerprint, first_seq, last_seq)


def used_key(key: Key, id_: int, row: Sequence[Any]) -> UsedKey:
    """An idempotency key from ``key, fingerprint, first_seq, last_seq, mark`` of its row."""
    name, fingerprint, first, last, mark = row
    if mark not in (None, idempotency_mark(id_, name, fingerprint, first, last)):
        raise StoreCorrupt(f"{key.conversation}: the row of an idempotency key is damaged")
    return UsedKey(Idempotency(name, fingerprint), first, last)


def check_repeat(idempotency: Idempotency, fingerprint: str) -> None:
    """Raise `KeyReused` unless the key was used for the same messages.

    The fingerprint of erased messages is empty: repeating them does not store them again.
    """
    if not fingerprint:
        raise KeyReused(
            f"the messages stored under the idempotency key {idempotency.key!r} were erased",
            idempotency_key=idempotency.key,
        )
    if fingerprint != idempotency.fingerprint:
        raise KeyReused(
            f"the idempotency key {idempotency.key!r} was used for other messages; use a new key",
            idempotency_key=idempotency.key,
        )


def check_used_keys(key: Key, used: Sequence[UsedKey], next_seq: int) -> None:
    """Raise `InputError` unless the entries of these idempotency keys exist."""
    if not all(0 <= item.first_seq <= item.last_seq < next_seq for item in used):
        raise InputError(f"{key.conversation}: an idempotency key has messages that do not exist")


# -- reading ----------------------------------------------------------------------------------


def merge_records(
    live: Iterator[Record],
    archived: Iterable[Segment],
    first: int,
    last: int,
    *,
    tolerant: bool = False,
) -> Iterator[Record]:
    """Yield the stored records of a span, archived and live, by sequence number, unverified.

    A damaged segment raises `StoreCorrupt`; if `tolerant`, its records contain the problem instead.
    """
    waiting = next(live, None)
    for segment in archived:
        while waiting is not None and waiting.seq < segment.first_seq:
            yield waiting
            waiting = next(live, None)
        for item in unpack_segment(segment, tolerant=tolerant):
            if first <= item.seq <= last:
                yield item
    while waiting is not None:
        yield waiting
        waiting = next(live, None)


def unpack_segment(segment: Segment, *, tolerant: bool = False) -> list[Record]:
    """The records of a segment; raises `StoreCorrupt` if they do not match its row."""
    first_seq, last_seq = segment.first_seq, segment.last_seq
    try:
        _check_types(segment)
        items = segments.unpack(
            segment.body,
            segment.checksum,
            first_seq=first_seq,
            hash_before=segment.hash_before,
            total_before=segment.total_before,
        )
        _check_last(segment, items[-1])
    except StoreCorrupt as error:
        if not tolerant:
            raise StoreCorrupt(f"messages {first_seq} to {last_seq}: {error}") from error
        return [
            Record(seq, b"", 0, 0, "", "", archived=True, problem=str(error))
            for seq in _claimed_seqs(first_seq, last_seq)
        ]
    return items


def _check_types(segment: Segment) -> None:
    texts = all_of_type(str, segment.hash_before, segment.hash)
    texts = texts and all_of_type(bytes, segment.checksum, segment.body)
    if not texts or not all_of_type(int, segment.last_seq, segment.total_before, segment.total):
        raise StoreCorrupt("the row of an archived segment is damaged")


def _check_last(segment: Segment, last: Record) -> None:
    if (last.seq, last.hash, last.total) != (segment.last_seq, segment.hash, segment.total):
        raise StoreCorrupt("an archived segment does not match its row")


def _claimed_seqs(first_seq: int, last_seq: Any) -> range:
    """The sequence numbers that a damaged row claims, up to the size limit of a segment."""
    last = last_seq if all_of_type(int, last_seq) else first_seq
    return range(first_seq, max(first_seq, min(last, first_seq + limits.SEGMENT_ENTRIES_MAX)) + 1)


def _check_totals(stored: Sequence[Record]) -> None:
    """Raise `StoreCorrupt` unless each record adds its tokens to the total of the one before."""
    for item, later in pairwise(stored):
        sound = item.problem or later.problem or item.total == later.total - later.tokens
        if not sound:
            raise StoreCorrupt(f"message {later.seq}: its total is wrong", seq=later.seq)


def verify_span(found: ConversationRow, stored: list[Record], first: int, last: int) -> list[Entry]:
    """The entries of a span, verified: none missing, every hash recomputed.

    `stored` starts with the entry before the span, if there is one.
    """
    if [record.seq for record in stored] != list(range(max(first - 1, 0), last + 1)):
        raise StoreCorrupt(f"{found.key.conversation}: messages {first} to {last} are incomplete")
    _check_totals(stored)
    hash_before = stored.pop(0).hash if first > 0 else genesis(found.key)
    check_end(found, stored[-1])
    return chain.checked_entries(stored, hash_before)


def check_end(found: ConversationRow, last: Record) -> None:
    """Raise `StoreCorrupt` if the last entry of the log does not match the recorded head."""
    if last.seq == found.next_seq - 1 and (last.hash, last.total) != (found.hash, found.total):
        raise StoreCorrupt(f"{found.key.conversation}: the log does not end at its recorded head")


def fits(found: ConversationRow, item: Record, tokens_max: int) -> bool:
    """Whether the log from this record to its end has at most `tokens_max` tokens."""
    if item.problem:
        raise StoreCorrupt(f"message {item.seq}: {item.problem}", seq=item.seq)
    return found.total - (item.total - item.tokens) <= tokens_max


def check_left_out(
    found: ConversationRow, item: Record, previous_hash: str, fitting: Sequence[Record]
) -> None:
    """Raise `StoreCorrupt` if a record seems not to fit because its tokens are damaged."""
    total = found.total - sum([later.tokens for later in fitting])
    problem = chain.flaw(item, previous_hash) or (
        "" if item.total == total else "its total is wrong"
    )
    if problem:
        raise StoreCorrupt(f"message {item.seq}: {problem}", seq=item.seq)


def check_newest(found: ConversationRow, fitting: Sequence[Record]) -> None:
    """Raise `StoreCorrupt` unless the records reach the end of the log without gaps."""
    if [item.seq for item in fitting] != list(range(fitting[0].seq, found.next_seq)):
        raise StoreCorrupt(f"{found.key.conversation}: messages are missing at the end of the log")
    _check_totals(fitting)
    check_end(found, fitting[-1])


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


# -- archiving --------------------------------------------------------------------------------


class PackedSegment(NamedTuple):
    """A segment ready to be written, and the uncompressed size of its entries."""

    segment: Segment
    plain_bytes: int


def split_runs(records: Iterable[Record]) -> list[list[Record]]:
    """Split records into runs of consecutive sequence numbers."""
    runs: list[list[Record]] = []
    for item in records:
        if runs and runs[-1][-1].seq + 1 == item.seq:
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def without(
    stored: Sequence[Record], erased: Mapping[int, Record], hash_before: str
) -> Iterator[PackedSegment]:
    """A segment's records without the erased ones, as segments again."""
    before = {record.seq + 1: record.hash for record in stored}
    kept = [record for record in stored if record.seq not in erased]
    for run in split_runs(kept):
        yield from pack_run(run, before.get(run[0].seq, hash_before))


def pack_run(run: Sequence[Record], hash_before: str) -> Iterator[PackedSegment]:
    """Compress a run of consecutive records; a damaged one raises `StoreCorrupt`."""
    chain.checked_entries(run, hash_before)
    for part in segments.spans(run):
        body, checksum = segments.pack(part)
        first, last = part[0], part[-1]
        segment = Segment(
            first.seq,
            last.seq,
            hash_before,
            last.hash,
            first.total - first.tokens,
            last.total,
            checksum,
            body,
        )
        yield PackedSegment(segment, sum(len(item.body) for item in part))
        hash_before = last.hash
