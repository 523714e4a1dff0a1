"""Vectors of entries, by embedder; and how far each embedder has come.

Beside each vector lie the signs of its numbers as a string of bits. Where the extension pgvector is
installed, it compares them with a question's: exactly, entry by entry of the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from psycopg import AsyncConnection, sql
from psycopg import errors as pg

from firnline.log.entry import Key
from firnline.protocols import Vector
from firnline.store.postgres import log
from firnline.store.postgres.connection import Row, Transaction
from firnline.store.rows import SEQ_MAX

_EMBEDDER: Final = "(SELECT id FROM embedder WHERE name = %(model)s)"
_REACH: Final = f"SELECT next_seq FROM embedded WHERE {log.HERE} AND embedder = {_EMBEDDER}"
_PGVECTOR: Final = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
    " WHERE e.extname = 'vector' AND EXISTS (SELECT FROM pg_operator o"
    " WHERE o.oprnamespace = n.oid AND o.oprname = '<~>')"
    " AND has_schema_privilege(n.oid, 'USAGE')"
)
GONE: Final = (pg.UndefinedFunction, pg.InvalidSchemaName, pg.InsufficientPrivilege)
"""What the server says if pgvector is not where it was."""

_SCALE_BYTES: Final = 4
_SIGNS: Final = b"1" * 128 + b"0" * 128  # of a signed byte
_VECTORS: Final = f"SELECT seq, part, body FROM vector WHERE {log.HERE} AND embedder = {_EMBEDDER}"


async def embedded_to(transaction: Transaction, key: Key, model: str) -> int:
    """How many of the first entries have been through the embedder."""
    row = await transaction.row(_REACH, log.here(key, model=model))
    return int(row[0]) if row else 0


async def put_vectors(
    transaction: Transaction,
    key: Key,
    model: str,
    vectors: Sequence[Vector],
    span: tuple[int, int],
) -> bool:
    """Keep the vectors of a span that begins where this embedder had come to."""
    first_seq, next_seq = span
    found, (reach,) = await log.find_with(
        transaction, key, (_REACH, log.here(key, model=model)), lock=log.CHANGE
    )
    had_come = reach[0][0] if reach else 0
    if found is None or had_come != first_seq or next_seq > found.next_seq:
        return False
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
        # Once one embedder has been through all, nobody asks for what others made of it.
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
    """Vectors from `first_seq` on; the parts of the last entry are all there."""
    first = min(max(first_seq, 0), SEQ_MAX)
    some = f"{_VECTORS} AND seq >= %(first)s ORDER BY seq, part LIMIT %(limit)s"
    rows = await transaction.rows(
        # The last one's other parts come with it, if it was cut in the middle.
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
    """The signs of an 8-bit code's numbers, 1 from zero up."""
    return body[_SCALE_BYTES:].translate(_SIGNS).decode()


async def find_pgvector(connection: AsyncConnection[Row]) -> str | None:
    """The schema of pgvector's operators, quoted; None if it is not to be used, or too old."""
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
    """The vectors whose signs differ least; those of another dimension cannot be compared."""
    if not vector:
        return []
    bits, size = "".join("1" if number >= 0 else "0" for number in vector), len(vector)
    rows = await transaction.rows(
        f"{_VECTORS} AND bit_length(signs) = {size} ORDER BY signs::bit({size})"
        f" OPERATOR({operators}.<~>) %(bits)s::bit({size}), seq, part LIMIT %(limit)s",
        log.here(key, model=model, bits=bits, limit=max(limit, 0)),
    )
    return [Vector(*row) for row in rows]


async def unembedded(transaction: Transaction, tenant: str, model: str, limit: int) -> list[Key]:
    """Conversations that the embedder has not come to the end of, newest first."""
    rows = await transaction.rows(
        "SELECT c.name FROM conversation c LEFT JOIN embedded e ON e.tenant = c.tenant"
        f" AND e.conversation = c.id AND e.embedder = {_EMBEDDER}"
        " WHERE c.tenant = %(tenant)s AND c.next_seq > coalesce(e.next_seq, 0)"
        " ORDER BY c.updated_at DESC, c.id LIMIT %(limit)s",
        {"model": model, "tenant": tenant, "limit": max(limit, 0)},
    )
    return [Key(tenant, name) for (name,) in rows]
