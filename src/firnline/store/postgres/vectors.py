"""Vectors of entries by embedder, and the progress of each embedder.

The signs of each vector's numbers are stored next to it as a bit string. If the extension pgvector
is installed, it compares them with a query's signs: exactly, for every entry of the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from psycopg import AsyncConnection, sql
from psycopg import errors as pg

from firnline.embedding.quantize import split_tokens
from firnline.log.entry import Key, Scope
from firnline.protocols import EmbeddedTo, Vector
from firnline.store.postgres import log
from firnline.store.postgres.connection import Row, Transaction
from firnline.store.rows import SEQ_MAX

_EMBEDDER: Final = "(SELECT id FROM embedder WHERE name = %(model)s)"
_REACH: Final = f"SELECT next_seq FROM embedded WHERE {log.HERE} AND embedder = {_EMBEDDER}"
_REACHES: Final = (
    "SELECT name, next_seq FROM embedded JOIN embedder ON embedder.id = embedded.embedder"
    f" WHERE {log.HERE}"
)
_ERASED: Final = (
    f"SELECT seq FROM entry WHERE {log.HERE} AND seq >= %(a)s AND seq < %(b)s"
    " AND substring(body FROM 1 FOR 7) = 'erased '::bytea"
)
_PGVECTOR: Final = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
    " WHERE e.extname = 'vector' AND EXISTS (SELECT FROM pg_operator o"
    " WHERE o.oprnamespace = n.oid AND o.oprname = '<~>')"
    " AND has_schema_privilege(n.oid, 'USAGE')"
)
GONE: Final = (pg.UndefinedFunction, pg.InvalidSchemaName, pg.InsufficientPrivilege)
"""The server's errors if pgvector was dropped, moved or forbidden."""

_SCALE_BYTES: Final = 4
_SIGNS: Final = b"1" * 128 + b"0" * 128  # of a signed byte
_VECTORS: Final = f"SELECT seq, part, body FROM vector WHERE {log.HERE} AND embedder = {_EMBEDDER}"


async def embedded_to(transaction: Transaction, key: Key, model: str) -> int:
    """How many of the first entries are embedded."""
    row = await transaction.row(_REACH, log.here(key, model=model))
    return int(row[0]) if row else 0


async def embedders(transaction: Transaction, key: Key) -> dict[str, int]:
    """How many of the first entries each embedder has processed."""
    rows = await transaction.rows(_REACHES, log.here(key))
    return {str(name): int(next_seq) for name, next_seq in rows}


async def embedded_in(
    transaction: Transaction, tenant: str, model: str, scope: Scope
) -> dict[str, EmbeddedTo]:
    """How far the embedder is, by conversation in scope."""
    where, values = _in_scope(tenant, model, scope)
    rows = await transaction.rows(
        "SELECT c.name, e.next_seq, c.id FROM conversation c JOIN embedded e ON e.tenant = c.tenant"
        f" AND e.conversation = c.id AND e.embedder = {_EMBEDDER} WHERE {where}",
        values,
    )
    return {name: EmbeddedTo(*reach) for name, *reach in rows}


def _in_scope(tenant: str, model: str, scope: Scope) -> tuple[str, dict[str, Any]]:
    """A condition on conversations, and its values, with those of the embedder."""
    about = {"name": scope.conversation, "project": scope.project, "person": scope.person}
    asked = {column: value for column, value in about.items() if value is not None}
    where = ["c.tenant = %(tenant)s", *(f"c.{column} = %({column})s" for column in asked)]
    return " AND ".join(where), {"tenant": tenant, "model": model, **asked}


async def put_vectors(
    transaction: Transaction, key: Key, model: str, vectors: Sequence[Vector], span: tuple[int, int]
) -> bool:
    """Store the vectors of a span; False if it does not start at the embedder's progress."""
    first_seq, next_seq = span
    found, (reach,) = await log.find_with(
        transaction, key, (_REACH, log.here(key, model=model)), lock=log.CHANGE
    )
    current = reach[0][0] if reach else 0
    if found is None or current != first_seq or next_seq > found.next_seq:
        return False
    rows = await transaction.rows(_ERASED, log.here(key, a=first_seq, b=next_seq))
    erased = {seq for (seq,) in rows}
    vectors = [vector for vector in vectors if vector.seq not in erased]
    own = {"tenant": key.tenant, "id": found.id, "model": model, "next": next_seq}
    transaction.later(
        "INSERT INTO embedder (name) SELECT %(model)s WHERE NOT EXISTS"
        " (SELECT FROM embedder WHERE name = %(model)s) ON CONFLICT DO NOTHING",
        own,
    )
    transaction.later(
        "INSERT INTO vector (tenant, conversation, embedder, seq, part, body, signs)"
        f" SELECT %(tenant)s, %(id)s, {_EMBEDDER}, new.* FROM"
        " unnest(%(seqs)s::bigint[], %(parts)s::integer[], %(bodies)s::bytea[],"
        " %(signs)s::varbit[]) AS new"
        " ON CONFLICT (tenant, conversation, embedder, seq, part)"
        " DO UPDATE SET body = excluded.body, signs = excluded.signs",
        {
            **own,
            "seqs": [vector.seq for vector in vectors],
            "parts": [vector.part for vector in vectors],
            "bodies": [vector.body for vector in vectors],
            "signs": [_signs(vector.body) for vector in vectors],
        },
    )
    transaction.later(
        "INSERT INTO embedded (tenant, conversation, embedder, next_seq)"
        f" SELECT %(tenant)s, %(id)s, {_EMBEDDER}, %(next)s"
        " ON CONFLICT (tenant, conversation, embedder) DO UPDATE SET next_seq = excluded.next_seq",
        own,
    )
    if next_seq == found.next_seq:
        # Once an embedder is done, the vectors of other embedders are no longer used.
        for table in ("embedded", "vector"):
            transaction.later(
                f"DELETE FROM {table} WHERE tenant = %(tenant)s AND conversation = %(id)s"
                f" AND embedder != {_EMBEDDER}",
                own,
            )
    return True


async def vector_page(
    transaction: Transaction, key: Key, model: str, first_seq: int, limit: int
) -> list[Vector]:
    """Vectors from `first_seq` on, with all parts of the last entry."""
    first = min(max(first_seq, 0), SEQ_MAX)
    some = f"{_VECTORS} AND seq >= %(first)s ORDER BY seq, part LIMIT %(limit)s"
    rows = await transaction.rows(
        # Adds the remaining parts of the last entry, if the limit cut it.
        f"WITH page AS ({some}) SELECT * FROM page UNION ALL ({_VECTORS}"
        " AND seq = (SELECT max(seq) FROM page)"
        " AND part > (SELECT part FROM page ORDER BY seq DESC, part DESC LIMIT 1)) ORDER BY 1, 2",
        log.here(key, model=model, first=first, limit=max(limit, 0)),
    )
    return [Vector(*row) for row in rows]


async def vectors_at(
    transaction: Transaction, key: Key, model: str, seqs: Sequence[int]
) -> list[Vector]:
    """The vectors of these entries."""
    asked = [seq for seq in seqs if 0 <= seq <= SEQ_MAX]
    rows = await transaction.rows(
        f"{_VECTORS} AND seq = ANY(%(seqs)s::bigint[]) ORDER BY seq, part",
        log.here(key, model=model, seqs=asked),
    )
    return [Vector(*row) for row in rows]


def _signs(body: bytes) -> str:
    """The signs of the 8-bit numbers in a body: 1 for zero and above."""
    return split_tokens(body)[0][_SCALE_BYTES:].translate(_SIGNS).decode()


async def find_pgvector(connection: AsyncConnection[Row]) -> str | None:
    """The quoted schema of pgvector's operators; None if it is unavailable or too old."""
    row = await (await connection.execute(_PGVECTOR)).fetchone()
    return sql.Identifier(row[0]).as_string(connection) if row else None


async def nearest_vectors(
    transaction: Transaction,
    key: Key,
    model: str,
    vector: Sequence[float],
    limit: int,
    operators: str,
) -> list[Vector]:
    """The vectors whose signs differ least; those of other dimensions are ignored."""
    if not vector:
        return []
    bits, size = "".join("1" if number >= 0 else "0" for number in vector), len(vector)
    rows = await transaction.rows(
        f"{_VECTORS} AND bit_length(signs) = {size} ORDER BY signs::bit({size})"
        f" OPERATOR({operators}.<~>) %(bits)s::bit({size}), seq, part LIMIT %(limit)s",
        log.here(key, model=model, bits=bits, limit=max(limit, 0)),
    )
    return [Vector(*row) for row in rows]


async def nearest_in(
    transaction: Transaction,
    tenant: str,
    model: str,
    vector: Sequence[float],
    limit: int,
    scope: Scope,
    operators: str,
) -> list[tuple[str, Vector]]:
    """The same in several conversations: the nearest of all of them, with their names."""
    bits, size = "".join("1" if number >= 0 else "0" for number in vector), len(vector)
    where, values = _in_scope(tenant, model, scope)
    rows = await transaction.rows(
        "SELECT c.name, v.seq, v.part, v.body FROM conversation c JOIN vector v"
        f" ON v.tenant = c.tenant AND v.conversation = c.id AND v.embedder = {_EMBEDDER}"
        f" WHERE {where} AND bit_length(v.signs) = {size} ORDER BY v.signs::bit({size})"
        f" OPERATOR({operators}.<~>) %(bits)s::bit({size}), c.name, v.seq, v.part LIMIT %(limit)s",
        {**values, "bits": bits, "limit": max(limit, 0)},
    )
    return [(str(name), Vector(*row)) for name, *row in rows]


async def unembedded(transaction: Transaction, tenant: str, model: str, limit: int) -> list[Key]:
    """Conversations that are not fully embedded, newest first."""
    rows = await transaction.rows(
        "SELECT c.name FROM conversation c LEFT JOIN embedded e ON e.tenant = c.tenant"
        f" AND e.conversation = c.id AND e.embedder = {_EMBEDDER}"
        " WHERE c.tenant = %(tenant)s AND c.next_seq > coalesce(e.next_seq, 0)"
        " ORDER BY c.updated_at DESC, c.id LIMIT %(limit)s",
        {"model": model, "tenant": tenant, "limit": max(limit, 0)},
    )
    return [Key(tenant, name) for (name,) in rows]
