"""The writer's cache of conversation heads, and its buffer of new entries.

Only the writer appends in its process, so it may cache heads between transactions as long as no
other process has written, which SQLite's data version shows. New entries are buffered and written
just before the commit, many per statement: each statement releases Python's lock and has to wait to
get it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final, TypeAlias

import apsw

from firnline.errors import StoreCorrupt
from firnline.log import limits
from firnline.log.entry import Key, genesis
from firnline.store.rows import SEQ_MAX, ConversationRow
from firnline.store.seals import mark_of
from firnline.store.sqlite.checksums import proven_reads
from firnline.store.sqlite.commit_record import CommitCounter
from firnline.store.sqlite.connection import fetch_one
from firnline.store.sqlite.seals import mark_head

Behind: TypeAlias = tuple[int, int]
"""A conversation whose entries before a number are to be indexed."""
_HEADS_MAX: Final = 10_000
_ROWS_MAX: Final = 128  # rows in one statement; a power of two

_INSERT: Final = "INSERT INTO entry VALUES {}"
_UPDATE: Final = (
    "UPDATE conversation SET next_seq = column2, total = column3, hash = column4,"
    " updated_at = column5, unread = person IS NOT NULL,"
    " mark = seal_mark(hex(column2), hex(column3), hex(column4), hex(column5),"
    " hex(person IS NOT NULL)) FROM (VALUES {}) WHERE conversation.id = column1"
)
_UPDATE_ONE: Final = (
    "UPDATE conversation SET next_seq = ?2, total = ?3, hash = ?4, updated_at = ?5,"
    " unread = person IS NOT NULL,"
    " mark = seal_mark(hex(?2), hex(?3), hex(?4), hex(?5), hex(person IS NOT NULL)) WHERE id = ?1"
)


@dataclass(slots=True)
class OpenHead:
    """A conversation's row, ready to be appended to."""

    id: int
    next_seq: int
    total: int
    hash: str
    updated_at: int
    person: str | None = None


class WriteBuffer:
    """The writer's hooks: cache heads, and write new entries before each commit."""

    def __init__(
        self,
        index_page: Callable[[apsw.Connection, list[Behind]], list[Behind]],
        commits: CommitCounter,
    ) -> None:
        self._index_page = index_page
        self._commits = commits
        self._known: dict[Key, OpenHead] = {}
        self._changed: dict[int, OpenHead] = {}
        self._rows: list[tuple[Any, ...]] = []
        self._added = 0
        self._behind: set[int] = set()
        self._lag = 0
        self._version = -1

    def begin(self, connection: apsw.Connection) -> None:
        """Drop cached heads that another process may have changed."""
        others_wrote = connection.data_version() != self._version
        if others_wrote or len(self._known) > _HEADS_MAX:
            self._known.clear()
        self._commits.begin(connection, others_wrote=others_wrote)

    def mark(self, connection: apsw.Connection) -> int:
        """The number of changes made and of rows buffered so far."""
        return connection.total_changes() + self._added

    def write_entries(self, connection: apsw.Connection) -> None:
        """Write the buffered entries, and the heads that they advanced."""
        if not self._rows:
            return
        heads = [
            (head.id, head.next_seq, head.total, head.hash, head.updated_at)
            for head in self._changed.values()
        ]
        _write_many(connection, _INSERT, self._rows)
        if len(heads) == 1:  # the common case, four times as fast without a join
            connection.execute(_UPDATE_ONE, heads[0])
        else:
            _write_many(connection, _UPDATE, heads)
        self._commits.append(*heads[-1][:2])
        self._rows.clear()
        self._changed.clear()

    def flush(self, connection: apsw.Connection) -> None:
        """Write what is buffered, and count the transaction, which is committed next."""
        self.write_entries(connection)
        self._commits.prepare(connection)

    def committed(self, connection: apsw.Connection) -> None:
        """Record the commit, and note the data version: `begin` detects those of others."""
        self._commits.committed()
        self._version = connection.data_version()

    def erased(self, connection: apsw.Connection) -> None:
        """A conversation was erased: drop what is cached or recorded of it."""
        self.forget()
        self._commits.erased(connection)

    def close(self) -> None:
        """After the database was closed."""
        self._commits.close()

    def forget(self) -> None:
        """Drop everything cached or buffered: the transaction was rolled back."""
        self._known.clear()
        self._changed.clear()
        self._rows.clear()
        self._commits.forget()

    def is_far_behind(self) -> bool:
        """Whether a page of entries must be indexed even while others are appended."""
        return self._lag >= limits.INDEX_LAG

    def rest(self) -> None:
        """A page is indexed, or cannot be: then the next search tries again."""
        self._lag = max(self._lag - limits.INDEX_PAGE, 0)

    def idle(self, connection: apsw.Connection) -> bool:
        """Index a page of entries; returns whether there is more to index."""
        behind = [(id_, SEQ_MAX) for id_ in islice(self._behind, limits.INDEX_PAGE)]
        left = self._index_page(connection, behind)
        self._behind.difference_update(id_ for id_, _ in behind[: len(behind) - len(left)])
        return bool(self._behind)

    def fell_behind(self, conversations: Iterable[int]) -> None:
        """Mark conversations that are not fully indexed."""
        self._behind.update(conversations)

    def add(self, head: OpenHead, rows: Sequence[tuple[Any, ...]]) -> None:
        """Buffer new rows of a conversation; the next `flush` writes them."""
        self._rows.extend(rows)
        self._added += len(rows)
        self._lag += len(rows)
        self._changed[head.id] = head
        self._behind.add(head.id)

    def find(self, connection: apsw.Connection, key: Key) -> OpenHead | None:
        """The conversation's head, or None if there is none."""
        head = self._known.get(key)
        if head is None:
            row = fetch_one(
                connection,
                "SELECT id, next_seq, total, hash, genesis, updated_at, unread, mark, person"
                " FROM conversation WHERE tenant = ? AND name = ?",
                key,
            )
            if not row:
                return None
            *columns, person = row
            found = ConversationRow.of(key, columns)  # nothing is appended to a damaged head
            head = self._known[key] = OpenHead(*found[1:], columns[5], person)
        return head

    def create(self, connection: apsw.Connection, key: Key, now: int) -> OpenHead:
        """Create the conversation, which is certainly new: a damaged index could hide it."""
        with proven_reads(connection, fresh=True):
            sql = "SELECT id FROM conversation WHERE tenant = ? AND name = ?"
            if fetch_one(connection, sql, key):
                raise StoreCorrupt("the index of conversations is damaged; run `firnline doctor`")
        start = genesis(key)
        connection.execute(
            "INSERT INTO conversation (tenant, name, genesis, hash, created_at, updated_at, mark)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*key, start, start, now, now, mark_of(0, 0, start, now, 0)),
        )
        head = OpenHead(connection.last_insert_rowid(), 0, 0, start, now)
        self._known[key] = head
        return head

    def claim(self, connection: apsw.Connection, head: OpenHead, person: str | None) -> None:
        """Set the person of a conversation, or that it is with none."""
        connection.execute(
            "UPDATE conversation SET person = ?1, unread = next_seq > 0 AND ?1 IS NOT NULL"
            " WHERE id = ?2",
            (person, head.id),
        )
        mark_head(connection, head.id)
        head.person = person


def _write_many(connection: apsw.Connection, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run `sql` for all rows, in as few statements as powers of two allow."""
    start, left, columns = 0, len(rows), len(rows[0])
    while left:
        size = min(1 << left.bit_length() - 1, _ROWS_MAX)
        values = chain.from_iterable(rows[start : start + size])
        connection.execute(_statement(sql, size, columns), tuple(values))
        start, left = start + size, left - size


@lru_cache(maxsize=64)
def _statement(sql: str, rows: int, columns: int) -> str:
    row = f"({', '.join('?' * columns)})"
    return sql.format(", ".join([row] * rows))
