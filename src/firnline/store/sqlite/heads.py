"""Where each conversation stands, as the writer knows it.

The writer is the only one of its process that appends, so it may remember heads between
transactions, as long as no other process has written: SQLite's data version tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import apsw

from firnline.log import Key, genesis
from firnline.store.sqlite.connection import one

_REMEMBERED_MAX: Final = 10_000


@dataclass(slots=True)
class OpenHead:
    """A conversation's row, ready to be appended to."""

    id: int
    next_seq: int
    total: int
    hash: str
    updated_at: int


class Heads:
    """The writer's hooks: keeps heads, writes the changed ones before each commit."""

    def __init__(self, index_pending: Callable[[apsw.Connection], bool]) -> None:
        self._index_pending = index_pending
        self._known: dict[Key, OpenHead] = {}
        self._changed: dict[int, OpenHead] = {}
        self._version = -1

    def begin(self, connection: apsw.Connection) -> None:
        """Forget what another process may have changed."""
        version = connection.data_version()
        if version != self._version or len(self._known) > _REMEMBERED_MAX:
            self._known.clear()
            self._version = version

    def flush(self, connection: apsw.Connection) -> None:
        """Write the heads that appends have moved."""
        if self._changed:
            connection.executemany(
                "UPDATE conversation SET next_seq = ?, total = ?, hash = ?, updated_at = ?"
                " WHERE id = ?",
                [
                    (head.next_seq, head.total, head.hash, head.updated_at, head.id)
                    for head in self._changed.values()
                ],
            )
            self._changed.clear()

    def forget(self) -> None:
        """Nothing that was remembered is sure any more."""
        self._known.clear()
        self._changed.clear()

    def idle(self, connection: apsw.Connection) -> bool:
        """Use the quiet moment to catch up with the search index."""
        return self._index_pending(connection)

    def moved(self, head: OpenHead) -> None:
        """The head has been appended to."""
        self._changed[head.id] = head

    def find(self, connection: apsw.Connection, key: Key) -> OpenHead | None:
        """The conversation's head, or None if there is none."""
        head = self._known.get(key)
        if head is None:
            row = one(
                connection,
                "SELECT id, next_seq, total, hash, updated_at FROM conversation"
                " WHERE tenant = ? AND name = ?",
                key,
            )
            if not row:
                return None
            head = self._known[key] = OpenHead(*row)
        return head

    def create(self, connection: apsw.Connection, key: Key, now: int) -> OpenHead:
        """Create the conversation."""
        start = genesis(key)
        connection.execute(
            "INSERT INTO conversation (tenant, name, hash, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?)",
            (*key, start, now, now),
        )
        head = OpenHead(connection.last_insert_rowid(), 0, 0, start, now)
        self._known[key] = head
        return head
