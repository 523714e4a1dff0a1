"""The log in PostgreSQL: appends lock the conversation's row, reads use snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from firnline.errors import InputError, StoreCorrupt, UnknownConversation
from firnline.log import chain, limits
from firnline.log.entry import Entry, Head, Key, Record, UsedKey, genesis, runs
from firnline.log.message import microseconds
from firnline.store import rows
from firnline.store.postgres.connection import Query, Row, Transaction
from firnline.store.rows import SEQ_MAX, ConversationRow, Segment
from firnline.store.seals import PINS, Seal, check_seal, seal_of

# Locks on a conversation's row, each held to the end of its transaction.
CHANGE: Final = "FOR NO KEY UPDATE"  # one writer at a time: its head or what depends on it
KEEP: Final = "FOR KEY SHARE"  # prevents erasing

ID: Final = "(SELECT id FROM conversation WHERE tenant = %(tenant)s AND name = %(name)s)"
HERE: Final = f"tenant = %(tenant)s AND conversation = {ID}"
"""The condition for the rows of a conversation; `here` returns the values."""

_FIND: Final = (
    "SELECT id, next_seq, total, hash, genesis, updated_at, unread::int, mark FROM conversation"
    " WHERE tenant = %(tenant)s AND name = %(name)s"
)
HEAD: Final = (
    "SELECT tenant, name, genesis, next_seq, hash, total, created_at, updated_at, project,"
    " person, metadata::text, archived, strategy::text, fence, lease_owner, lease_until, owed_at,"
    " unread::int, c.mark, (SELECT mark FROM seal WHERE seal.tenant = c.tenant"
    " AND seal.conversation = c.id AND part = 'about') FROM conversation c"
)
_COLUMNS: Final = "SELECT seq, body, tokens, total, hash, tokenizer"
# Sizes are known without reading the bodies, so a page of large ones ends early. The range has an
# end, because without one the planner prefers to read and sort the whole table.
_PAGE: Final = (
    f"{_COLUMNS} FROM (SELECT *, sum(octet_length(body)) OVER (ORDER BY seq)"
    f" - octet_length(body) AS before FROM entry WHERE {HERE}"
    " AND seq BETWEEN %(first)s AND %(until)s) AS page"
    f" WHERE before < {limits.PAGE_BYTES_MAX} ORDER BY seq"
)
_BEHIND: Final = (
    f"SELECT seq FROM entry WHERE {HERE} AND seq > %(until)s AND seq <= %(last)s"
    " ORDER BY seq LIMIT 1"
)
_SEGMENT_COLUMNS: Final = (
    "SELECT first_seq, last_seq, hash_before, hash, total_before, total, checksum, body"
    " FROM segment"
)
# `least` ignores NULL. Unlike `coalesce`, it can use the index under a row-level policy.
_SEGMENTS: Final = (
    f"{_SEGMENT_COLUMNS} WHERE {HERE} AND first_seq BETWEEN"
    f" least((SELECT max(first_seq) FROM segment WHERE {HERE}"
    " AND first_seq <= %(first)s), %(first)s) AND %(last)s"
    " AND last_seq >= %(first)s ORDER BY first_seq LIMIT %(segments)s"
)
# Up to and including the first entry that exceeds the tokens.
_NEWEST: Final = (
    f"{_COLUMNS} FROM (SELECT *, sum(tokens) OVER newer - tokens AS behind,"
    " sum(octet_length(body)) OVER newer - octet_length(body) AS bytes FROM entry"
    f" WHERE {HERE} AND seq <= %(end)s WINDOW newer AS (ORDER BY seq DESC)"
    " ORDER BY seq DESC LIMIT %(limit)s) AS page"
    f" WHERE behind <= %(tokens)s AND bytes < {limits.PAGE_BYTES_MAX} ORDER BY seq DESC"
)
# With the entries before them, because each hash is derived from the previous one.
_LIVE_OF: Final = (
    "WITH asked AS ({asked}) "
    f"{_COLUMNS} FROM entry WHERE {HERE} AND seq IN"
    " (SELECT seq FROM asked UNION SELECT seq - 1 FROM asked)"
)
_SEGMENTS_OF: Final = (
    "WITH asked AS ({asked}) "
    f"{_SEGMENT_COLUMNS} WHERE {HERE} AND first_seq IN (SELECT (SELECT max(first_seq)"
    f" FROM segment WHERE {HERE} AND first_seq <= near.seq)"
    " FROM (SELECT seq FROM asked UNION SELECT seq - 1 FROM asked) AS near)"
)
_PINS_SEAL: Final = f"SELECT count, mark FROM seal WHERE {HERE} AND part = '{PINS}'"

ViewRow = tuple[int, int, int, str]
"""An entry's index among those analyzed together, the part, its time, and its words."""


def here(key: Key, **more: Any) -> Mapping[str, Any]:
    """The values of `HERE`, and more."""
    return {"tenant": key.tenant, "name": key.conversation, **more}


# -- finding ----------------------------------------------------------------------------------


async def find(
    transaction: Transaction, key: Key, lock: str = "", *, tolerant: bool = False
) -> ConversationRow | None:
    """The conversation, or None. A head that does not match its mark raises, unless `tolerant`."""
    found, _ = await find_with(transaction, key, lock=lock, tolerant=tolerant)
    return found


async def find_with(
    transaction: Transaction, key: Key, *queries: Query, lock: str = "", tolerant: bool = False
) -> tuple[ConversationRow | None, tuple[list[Row], ...]]:
    """The conversation or None, and the rows of queries sent in the same message."""
    own, *others = await transaction.each((f"{_FIND} {lock}", here(key)), *queries)
    if not own:
        return None, tuple(others)
    return ConversationRow.of(key, own[0][:5] if tolerant else own[0]), tuple(others)


async def must_find(
    transaction: Transaction, key: Key, lock: str = "", *, tolerant: bool = False
) -> ConversationRow:
    """The conversation; `UnknownConversation` if there is none."""
    found = await find(transaction, key, lock, tolerant=tolerant)
    if found is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    return found


async def head(transaction: Transaction, key: Key) -> Head | None:
    """The conversation's head, or None."""
    row = await transaction.row(f"{HEAD} WHERE tenant = %s AND name = %s", key)
    return rows.head_of(row) if row else None


async def conversations(
    transaction: Transaction,
    tenant: str,
    about: tuple[str | None, str | None],
    after: str,
    limit: int,
) -> list[Head]:
    """A page of the tenant's conversations, of a project and of a person if they are given."""
    project, person = about
    found = await transaction.rows(
        f"{HEAD} WHERE tenant = %(tenant)s AND name > %(after)s"
        f"{'' if project is None else ' AND project = %(project)s'}"
        f"{'' if person is None else ' AND person = %(person)s'}"
        " ORDER BY name LIMIT %(limit)s",
        {
            "tenant": tenant,
            "after": after,
            "limit": max(limit, 0),
            "project": project,
            "person": person,
        },
    )
    return [rows.head_of(row) for row in found]


async def recent(
    transaction: Transaction, tenant: str, project: str | None, after: Head | None, limit: int
) -> list[Head]:
    """A page of conversations, of a project if it is given, the most recently updated first.

    There is no index by time: every append would have to write it, for all conversations.
    """
    at = microseconds(after.updated_at) if after is not None else 0
    behind = " AND (updated_at < %(at)s OR (updated_at = %(at)s AND name > %(name)s))"
    found = await transaction.rows(
        f"{HEAD} WHERE tenant = %(tenant)s"
        f"{'' if project is None else ' AND project = %(project)s'}"
        f"{'' if after is None else behind}"
        " ORDER BY updated_at DESC, name LIMIT %(limit)s",
        {
            "tenant": tenant,
            "project": project,
            "at": at,
            "name": "" if after is None else after.conversation,
            "limit": max(limit, 0),
        },
    )
    return [rows.head_of(row) for row in found]


# -- writing ----------------------------------------------------------------------------------


def insert_entries(
    transaction: Transaction,
    found: ConversationRow,
    entries: Sequence[Entry | Record],
    bodies: Sequence[bytes],
) -> None:
    """Write live entries."""
    own = found.key.tenant, found.id
    transaction.insert(
        "entry (tenant, conversation, seq, tokens, total, tokenizer, hash, body)",
        [
            (*own, entry.seq, entry.tokens, entry.total, entry.tokenizer, entry.hash, body)
            for entry, body in zip(entries, bodies, strict=True)
        ],
    )


def insert_views(
    transaction: Transaction, found: ConversationRow, views: Sequence[ViewRow], first_seq: int
) -> None:
    """Write the search and date rows of entries from `first_seq` on."""
    own = found.key.tenant, found.id
    transaction.insert(
        "said (tenant, conversation, at, seq)",
        [(*own, at, first_seq + place) for place, part, at, _ in views if part == 0],
        otherwise="ON CONFLICT DO NOTHING",
    )
    transaction.insert(
        "search (tenant, conversation, seq, part, at, words)",
        [(*own, first_seq + place, part, at, text) for place, part, at, text in views],
    )


async def create(transaction: Transaction, key: Key, now: str) -> ConversationRow | None:
    """Create the conversation; None if another process just has. `now` is SQL."""
    start = genesis(key)
    row = await transaction.row(
        "INSERT INTO conversation (tenant, name, genesis, hash, created_at, updated_at)"
        f" VALUES (%s, %s, %s, %s, {now}, {now}) ON CONFLICT (tenant, name) DO NOTHING"
        " RETURNING id",
        (*key, start, start),
    )
    return ConversationRow(key, row[0], 0, 0, start) if row else None


async def used_keys(transaction: Transaction, key: Key, after: str, limit: int) -> list[UsedKey]:
    """The idempotency keys that were used, in order."""
    found = await transaction.rows(
        f"SELECT conversation, key, fingerprint, first_seq, last_seq, mark FROM idempotency"
        f" WHERE {HERE}"
        " AND key > %(after)s ORDER BY key LIMIT %(limit)s",
        here(key, after=after, limit=max(limit, 0)),
    )
    return [rows.used_key(key, id_, row) for id_, *row in found]


async def put_used_keys(transaction: Transaction, key: Key, used: Sequence[UsedKey]) -> None:
    """Write idempotency keys; those that are known are kept."""
    found = await must_find(transaction, key, KEEP)
    rows.check_used_keys(key, used, found.next_seq)
    transaction.insert(
        "idempotency (tenant, conversation, key, fingerprint, first_seq, last_seq)",
        [(key.tenant, found.id, *idempotency, first, last) for idempotency, first, last in used],
        otherwise="ON CONFLICT DO NOTHING",
    )


# -- reading ----------------------------------------------------------------------------------


async def span(
    transaction: Transaction, key: Key, first: int, last: int = SEQ_MAX, limit: int | None = None
) -> list[Entry]:
    """The entries `first` to `last`, verified: none is missing, and every hash matches."""
    first, last = max(first, 0), min(last, SEQ_MAX)
    if limit is not None:
        last = min(last, first + limit - 1)
    if first > last:
        return []
    at = max(first - 1, 0)
    found, stored, at = await page(transaction, key, at, last)
    if found is None:
        return []
    last = min(last, found.next_seq - 1)
    while at <= last:
        _, more, at = await page(transaction, key, at, last)
        stored += more
    if first > last:
        return []
    return rows.verify_span(found, [item for item in stored if item.seq <= last], first, last)


async def page(
    transaction: Transaction,
    key: Key,
    first: int,
    last: int,
    *,
    limit: int = limits.READ_PAGE,
    tolerant: bool = False,
) -> tuple[ConversationRow | None, list[Record], int]:
    """The conversation, the stored records of a span, unverified, and where to continue."""
    until = min(last, first + limit - 1)
    values = here(key, first=first, until=until, last=last, segments=rows.SEGMENTS_AT_ONCE)
    queries = [(_PAGE, values), (_SEGMENTS, values)] + [(_BEHIND, values)] * (until < last)
    found, (live_rows, archived_rows, *behind) = await find_with(
        transaction, key, *queries, tolerant=tolerant
    )
    live = [Record(*row) for row in live_rows]
    archived = [Segment(*row) for row in archived_rows]
    end = last
    if sum(len(record.body) for record in live) >= limits.PAGE_BYTES_MAX:
        end = live[-1].seq
    elif any(behind):
        end = behind[0][0][0] - 1
    if len(archived) == rows.SEGMENTS_AT_ONCE:
        end = min(end, archived[-1].last_seq)
    stored = rows.merge_records(iter(live), archived, first, end, tolerant=tolerant)
    return found, [item for item in stored if item.seq <= end], end + 1


async def segments(transaction: Transaction, key: Key, first: int, last: int) -> list[Segment]:
    """The first segments that overlap a span."""
    values = here(key, first=first, last=last, segments=rows.SEGMENTS_AT_ONCE)
    return [Segment(*row) for row in await transaction.rows(_SEGMENTS, values)]


async def at(transaction: Transaction, key: Key, seqs: Sequence[int]) -> list[Entry]:
    """The entries at these sequence numbers that exist, in order."""
    asked = [seq for seq in seqs if 0 <= seq <= SEQ_MAX]
    query = "SELECT unnest(%(seqs)s::bigint[]) AS seq"
    _, entries = await chosen(transaction, key, query, here(key, seqs=asked))
    return entries


async def chosen(
    transaction: Transaction, key: Key, asked: str, values: Mapping[str, Any]
) -> tuple[list[int], list[Entry]]:
    """The sequence numbers that the query `asked` returns, and the entries there, in order."""
    seqs, entries, _ = await _chosen_with(transaction, key, asked, values, "SELECT")
    return seqs, entries


async def _chosen_with(
    transaction: Transaction, key: Key, asked: str, values: Mapping[str, Any], other: str
) -> tuple[list[int], list[Entry], list[Row]]:
    """Like `chosen`, with the rows of another query of the same moment."""
    found, (numbers, live, archived, rest) = await find_with(
        transaction,
        key,
        (asked, values),
        (_LIVE_OF.format(asked=asked), values),
        (_SEGMENTS_OF.format(asked=asked), values),
        (other, values),
    )
    seqs = sorted({seq for (seq,) in numbers})
    if found is None:
        return seqs, [], []
    stored = {item.seq: item for row in archived for item in rows.unpack_segment(Segment(*row))}
    stored |= {row[0]: Record(*row) for row in live}
    entries: list[Entry] = []
    for first, last in runs([seq for seq in seqs if seq < found.next_seq]):
        wanted = range(max(first - 1, 0), last + 1)
        run = [stored[seq] for seq in wanted if seq in stored]
        entries += rows.verify_span(found, run, first, last)
    return seqs, entries, rest


async def tokens_between(transaction: Transaction, key: Key, first: int, last: int) -> int:
    """The tokens of a span, from the running totals at both ends."""
    first, last = max(first, 0), min(last, SEQ_MAX)
    if first > last:
        return 0
    found = await find(transaction, key)
    if found is None or first >= found.next_seq:
        return 0
    until = found.total if last >= found.next_seq - 1 else await _total_at(transaction, key, last)
    return until - (await _total_at(transaction, key, first - 1) if first else 0)


async def _total_at(transaction: Transaction, key: Key, seq: int) -> int:
    return (await _at(transaction, key, seq)).total


async def hash_at(transaction: Transaction, key: Key, seq: int) -> str:
    """The chain's value at `seq`; -1 is before the first entry."""
    return genesis(key) if seq < 0 else (await _at(transaction, key, seq)).hash


async def _at(transaction: Transaction, key: Key, seq: int) -> Record:
    _, stored, _ = await page(transaction, key, seq, seq)
    if not stored:
        raise StoreCorrupt(f"{key.conversation}: message {seq} is missing", seq=seq)
    return stored[0]


async def newest(transaction: Transaction, key: Key, tokens_max: int) -> list[Entry]:
    """The newest entries that fit; read backwards from the end."""
    fitting: list[Record] = []
    before, end, room = "", SEQ_MAX, tokens_max
    while end >= 0:
        found, some = await _backwards(transaction, key, end, room)
        if found is None or not some:
            break
        end = some[-1].seq - 1
        for item in some:
            if not rows.fits(found, item, tokens_max):
                before, end = item.hash, -1
                break
            room -= item.tokens
            fitting.append(item)
    if not fitting or found is None:
        return []
    fitting.reverse()
    rows.check_newest(found, fitting)
    if not before:
        before = await hash_at(transaction, key, fitting[0].seq - 1)
    return chain.checked_entries(fitting, before)


async def _backwards(
    transaction: Transaction, key: Key, end: int, tokens: int
) -> tuple[ConversationRow | None, list[Record]]:
    """Some records up to `end` or the log's end, newest first, without gaps."""
    limit = rows.newest_limit(tokens)
    found, (live,) = await find_with(
        transaction, key, (_NEWEST, here(key, end=end, limit=limit, tokens=tokens))
    )
    end = min(end, found.next_seq - 1) if found else -1
    some = [Record(*row) for row in live if row[0] <= end]
    if end >= 0 and (not some or some[0].seq != end):  # archived
        touching = await segments(transaction, key, end, end)
        archived = [item for segment in touching for item in rows.unpack_segment(segment)]
        some = [item for item in reversed(archived) if item.seq <= end]
    return found, [item for place, item in enumerate(some) if item.seq == end - place]


async def dated(
    transaction: Transaction, key: Key, since: datetime, until: datetime, limit: int, first_seq: int
) -> list[Entry]:
    """The entries with a date in [since, until)."""
    asked = (
        f"SELECT seq FROM said WHERE {HERE} AND at >= %(since)s AND at < %(until)s"
        " AND seq >= %(first)s ORDER BY seq LIMIT %(limit)s"
    )
    values = here(
        key,
        since=microseconds(since),
        until=microseconds(until),
        first=min(max(first_seq, 0), SEQ_MAX),
        limit=max(limit, 0),
    )
    _, entries = await chosen(transaction, key, asked, values)
    return entries


# -- pins --------------------------------------------------------------------------------------


async def pin(transaction: Transaction, key: Key, seq: int, *, pinned: bool) -> None:
    """Pin or unpin an entry; no effect if it already is."""
    found = await must_find(transaction, key, KEEP)
    if not 0 <= seq < found.next_seq:
        raise InputError(f"{key.conversation} has no message {seq}")
    mark = "INSERT INTO pin (tenant, conversation, seq) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
    unmark = "DELETE FROM pin WHERE tenant = %s AND conversation = %s AND seq = %s"
    transaction.later(mark if pinned else unmark, (key.tenant, found.id, seq))


async def pinned(transaction: Transaction, key: Key) -> list[Entry]:
    """The pinned entries; a pin on a missing entry is damage."""
    marked = f"SELECT seq FROM pin WHERE {HERE}"
    there, entries, seals = await _chosen_with(transaction, key, marked, here(key), _PINS_SEAL)
    sealed = next((Seal(*row) for row in seals), None)
    check_seal(key.conversation, PINS, sealed, seal_of([(seq,) for seq in there]))
    if len(entries) != len(there):
        raise StoreCorrupt(f"{key.conversation}: a message is pinned but missing")
    return entries
