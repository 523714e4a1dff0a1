"""Vectors of entries by embedder, and the progress of each embedder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

import apsw

from firnline.log import limits
from firnline.log.entry import Key, Scope
from firnline.protocols import EmbeddedTo, Vector
from firnline.store.sqlite import log
from firnline.store.sqlite.checksums import is_proven, proven_reads
from firnline.store.sqlite.connection import fetch_one


def embedded_to(connection: apsw.Connection, found: log.SqliteRow, model: str) -> int:
    """The number of leading entries that the embedder has processed."""
    row = fetch_one(
        connection,
        "SELECT e.next_seq FROM embedded e JOIN embedder m ON m.id = e.embedder"
        " WHERE e.conversation = ? AND m.name = ?",
        (found.id, model),
    )
    return int(row[0]) if row else 0


def embedders(connection: apsw.Connection, found: log.SqliteRow) -> dict[str, int]:
    """The number of leading entries that each embedder has processed."""
    rows = connection.execute(
        "SELECT m.name, e.next_seq FROM embedded e JOIN embedder m ON m.id = e.embedder"
        " WHERE e.conversation = ?",
        (found.id,),
    )
    return {str(name): int(next_seq) for name, next_seq in rows}


def embedded_in(
    connection: apsw.Connection, tenant: str, model: str, scope: Scope
) -> dict[str, EmbeddedTo]:
    """How far the embedder is, by conversation in scope."""
    rows = connection.execute(
        "SELECT c.name, e.next_seq, c.id FROM conversation c"
        " JOIN embedded e ON e.conversation = c.id AND e.embedder ="
        " (SELECT id FROM embedder WHERE name = ?2)"
        " WHERE c.tenant = ?1 AND (?3 IS NULL OR c.name = ?3)"
        " AND (?4 IS NULL OR c.project = ?4) AND (?5 IS NULL OR c.person = ?5)",
        (tenant, model, scope.conversation, scope.project, scope.person),
    )
    return {name: EmbeddedTo(*reach) for name, *reach in rows}


def put_vectors(
    connection: apsw.Connection,
    found: log.SqliteRow,
    model: str,
    vectors: Sequence[Vector],
    span: tuple[int, int],
) -> bool:
    """Store the vectors of a span; False unless it starts where this embedder stopped."""
    first_seq, next_seq = span
    if embedded_to(connection, found, model) != first_seq or next_seq > found.next_seq:
        return False
    ids = found.entry_id(first_seq), found.entry_id(max(next_seq - 1, first_seq))
    erased = {id_ & log.SEQ_MASK for (id_,) in connection.execute(log.ERASED, ids)}
    vectors = [vector for vector in vectors if vector.seq not in erased]
    connection.execute("INSERT OR IGNORE INTO embedder (name) VALUES (?)", (model,))
    embedder = _embedder(connection, model)
    with proven_reads(connection):  # written again, a damaged page would look right
        connection.executemany(
            "INSERT OR REPLACE INTO vector VALUES (?, ?, ?, ?)",
            [(embedder, found.entry_id(seq), part, body) for seq, part, body in vectors],
        )
        connection.execute(
            "INSERT OR REPLACE INTO embedded VALUES (?, ?, ?)", (found.id, embedder, next_seq)
        )
    if next_seq == found.next_seq:
        _drop_others(connection, found, embedder)
    return True


def _embedder(connection: apsw.Connection, model: str) -> int | None:
    row = fetch_one(connection, "SELECT id FROM embedder WHERE name = ?", (model,))
    return int(row[0]) if row else None


def _drop_others(connection: apsw.Connection, found: log.SqliteRow, embedder: int | None) -> None:
    """Delete other embedders' vectors, which are unused once one has processed every entry."""
    with proven_reads(connection):
        others: list[Any] = connection.execute(
            "DELETE FROM embedded WHERE conversation = ? AND embedder != ? RETURNING embedder",
            (found.id, embedder),
        ).fetchall()
    delete_vectors(connection, found, [row[0] for row in others])


def delete_vectors(
    connection: apsw.Connection, found: log.SqliteRow, embedders: Iterable[int]
) -> int:
    """Delete the conversation's vectors by these embedders; returns how many there were."""
    everything = (found.entry_id(0), found.entry_id(log.SEQ_MASK))
    deleted = 0
    with proven_reads(connection):  # written again, a damaged page would look right
        for embedder in embedders:
            connection.execute(
                "DELETE FROM vector WHERE embedder = ? AND id BETWEEN ? AND ?",
                (embedder, *everything),
            )
            deleted += connection.changes()
    return deleted


def delete_at(connection: apsw.Connection, found: log.SqliteRow, seqs: Iterable[int]) -> int:
    """Delete all embedders' vectors of these entries; returns how many there were."""
    ids = [found.entry_id(seq) for seq in seqs]
    before = connection.total_changes()
    with proven_reads(connection):
        for (embedder,) in connection.execute("SELECT id FROM embedder").fetchall():
            connection.executemany(
                "DELETE FROM vector WHERE embedder = ? AND id = ?", [(embedder, id_) for id_ in ids]
            )
    return connection.total_changes() - before


def drop_damaged(connection: apsw.Connection) -> bool:
    """Delete the vectors on damaged pages, which would look right if they were written again.

    They are created again. Outside a transaction; returns whether there were any.
    """
    spans: list[tuple[int, int]] = []
    if not is_proven(connection, lambda con: spans.extend(_embedded_by(con))):
        with connection:
            for table in ("vector", "embedded", "embedder"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608
        return True
    damaged = [span for span in spans if not is_proven(connection, partial(_read_all, span=span))]
    with connection:
        for span in damaged:
            connection.execute(f"DELETE FROM vector {_SPAN}", _span(*span))  # noqa: S608
            connection.execute("DELETE FROM embedded WHERE conversation = ? AND embedder = ?", span)
    return bool(damaged)


def _embedded_by(connection: apsw.Connection) -> list[tuple[int, int]]:
    """The conversations and embedders of which there are vectors."""
    found = connection.execute(
        "SELECT e.conversation, e.embedder FROM embedded e JOIN embedder m ON m.id = e.embedder"
    )
    return [(conversation, embedder) for conversation, embedder in found]


def _read_all(connection: apsw.Connection, span: tuple[int, int]) -> None:
    for _ in connection.execute(f"SELECT body FROM vector {_SPAN}", _span(*span)):  # noqa: S608
        pass


_SPAN: Final = "WHERE embedder = ? AND id BETWEEN ? AND ?"


def _span(conversation: int, embedder: int) -> tuple[int, int, int]:
    first = conversation << limits.SEQ_BITS
    return embedder, first, first | log.SEQ_MASK


def vector_page(
    connection: apsw.Connection, found: log.SqliteRow, model: str, first_seq: int, limit: int
) -> list[Vector]:
    """Vectors from `first_seq` on; the last entry is always complete."""
    rows = connection.execute(
        "SELECT id, part, body FROM vector WHERE embedder = ? AND id BETWEEN ? AND ?"
        " ORDER BY id, part",
        (
            _embedder(connection, model),
            found.entry_id(max(first_seq, 0)),
            found.entry_id(log.SEQ_MASK),
        ),
    )
    taken: list[Vector] = []
    for id_, part, body in rows:
        if len(taken) >= limit and part == 0:
            break
        taken.append(Vector(id_ & log.SEQ_MASK, part, body))
    return taken


def vectors_at(
    connection: apsw.Connection, found: log.SqliteRow, model: str, seqs: Sequence[int]
) -> list[Vector]:
    """The vectors of these entries."""
    embedder = _embedder(connection, model)
    ids = [(embedder, found.entry_id(seq)) for seq in sorted(set(seqs))]
    rows = connection.executemany(
        "SELECT id, part, body FROM vector WHERE embedder = ? AND id = ? ORDER BY part", ids
    )
    return [Vector(id_ & log.SEQ_MASK, part, body) for id_, part, body in rows]


def unembedded(connection: apsw.Connection, tenant: str, model: str, limit: int) -> list[Key]:
    """Conversations with entries that the embedder has not processed, newest first."""
    rows = connection.execute(
        "SELECT c.name FROM conversation c LEFT JOIN embedded e ON e.conversation = c.id"
        " AND e.embedder = (SELECT id FROM embedder WHERE name = ?)"
        " WHERE c.tenant = ? AND c.next_seq > coalesce(e.next_seq, 0)"
        " ORDER BY c.updated_at DESC, c.id LIMIT ?",
        (model, tenant, max(limit, 0)),
    )
    return [Key(tenant, name) for (name,) in rows]
