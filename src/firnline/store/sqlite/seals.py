"""Seals in SQLite: the function that its triggers use, and the comparison with the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import apsw

from firnline.errors import StoreCorrupt, UnknownConversation
from firnline.log.entry import Key
from firnline.store.digests import decode_digest
from firnline.store.rows import ConversationRow, idempotency_mark
from firnline.store.seals import Seal, check_seal, describe_part, project_part, seal_of
from firnline.store.sqlite.connection import fetch_one
from firnline.store.topics import decode_topic

_SEQ_MASK: Final = (1 << 32) - 1
_WRONG: Final = (
    "SELECT part FROM (SELECT * FROM seal WHERE {which}) AS stored"
    " FULL JOIN (SELECT * FROM sealing WHERE {which}) AS found USING (conversation, part)"
    " WHERE coalesce(stored.count, 0) != coalesce(found.count, 0)"
    " OR coalesce(stored.mark, 0) != coalesce(found.mark, 0) ORDER BY part"
)
_TEXTS: Final = {"digest": decode_digest, "topic": decode_topic}


def check_part(
    connection: apsw.Connection, found: ConversationRow, part: str, rows: Iterable[Sequence[Any]]
) -> None:
    """Raise `StoreCorrupt` unless these rows are what the seal of this part says."""
    check_seal(found.key.conversation, part, stored_seal(connection, found.id, part), seal_of(rows))


def stored_seal(connection: apsw.Connection, id_: int, part: str) -> Seal | None:
    """The stored seal of a part, or None."""
    row = fetch_one(
        connection, "SELECT count, mark FROM seal WHERE conversation = ? AND part = ?", (id_, part)
    )
    return Seal(*row) if row else None


def project_seals(connection: apsw.Connection, tenant: str) -> dict[str, Seal]:
    """The seals of a tenant's projects by name."""
    start = project_part(f"{tenant}\x1f")
    rows = connection.execute(
        "SELECT part, count, mark FROM seal WHERE conversation = 0 AND part >= ? AND part < ?",
        (start, project_part(f"{tenant}\x20")),
    )
    return {part.removeprefix(start): Seal(*seal) for part, *seal in rows}


def damaged_rows(connection: apsw.Connection, key: Key) -> list[str]:
    """What is wrong with a conversation's rows outside the log; with a tenant's projects if ''."""
    if not key.conversation:
        which = "conversation = 0 AND part >= ? AND part < ?"
        span = project_part(f"{key.tenant}\x1f"), project_part(f"{key.tenant}\x20")
        return [_named(key, part) for (part,) in _wrong(connection, which, span)]
    id_ = _id_of(connection, key)
    wrong = _wrong(connection, "conversation = ?", (id_,))
    return [
        *(_named(key, part) for (part,) in wrong),
        *_unreadable(connection, key.conversation, id_),
    ]


def all_damaged_rows(connection: apsw.Connection) -> list[str]:
    """What is wrong with any row outside the log, of any tenant."""
    problems = [_named(Key("", ""), part) for (part,) in _wrong(connection, "conversation = 0")]
    for id_, tenant, name in connection.execute(
        "SELECT id, CAST(tenant AS BLOB), CAST(name AS BLOB) FROM conversation"
    ):
        key = Key(*(text.decode(errors="replace") for text in (tenant, name)))
        wrong = _wrong(connection, "conversation = ?", (id_,))
        problems += [_named(key, part) for (part,) in wrong]
        problems += _unreadable(connection, key.conversation, id_)
    strays = connection.execute(
        "SELECT DISTINCT conversation FROM seal WHERE conversation != 0"
        " AND conversation NOT IN (SELECT id FROM conversation)"
    )
    return problems + [f"the conversation with the number {id_} is missing" for (id_,) in strays]


def reseal(connection: apsw.Connection, key: Key) -> None:
    """Seal the rows of a conversation as they are now; a tenant's projects if it has no name."""
    if key.conversation:
        which, values = "conversation = ?", (_id_of(connection, key),)
    else:
        which = "conversation = 0 AND part >= ? AND part < ?"
        values = project_part(f"{key.tenant}\x1f"), project_part(f"{key.tenant}\x20")
    connection.execute(f"DELETE FROM seal WHERE {which}", values)  # noqa: S608
    connection.execute(f"INSERT INTO seal SELECT * FROM sealing WHERE {which}", values)  # noqa: S608


def reseal_digests(connection: apsw.Connection, found: ConversationRow) -> None:
    """Seal a conversation's digests as they are now."""
    which = "conversation = ? AND (part = 'digests' OR part LIKE 'newest:%')"
    connection.execute(f"DELETE FROM seal WHERE {which}", (found.id,))  # noqa: S608
    connection.execute(f"INSERT INTO seal SELECT * FROM sealing WHERE {which}", (found.id,))  # noqa: S608


def _wrong(
    connection: apsw.Connection, which: str, values: tuple[Any, ...] = ()
) -> list[tuple[Any, ...]]:
    return connection.execute(_WRONG.format(which=which), values * 2).fetchall()


def _named(key: Key, part: str) -> str:
    of = f"{key.conversation}: " if key.conversation else ""
    return f"{of}{describe_part(part)} does not match its seal"


def _unreadable(connection: apsw.Connection, name: str, id_: int) -> list[str]:
    """Digests and topics that cannot be decoded, and idempotency keys with a wrong mark."""
    problems = []
    for table, decode in _TEXTS.items():
        rows = connection.execute(
            f"SELECT id, CAST(body AS BLOB), CAST(checksum AS BLOB) FROM {table}"  # noqa: S608
            " WHERE id BETWEEN ? AND ?",
            (id_ << 32, id_ << 32 | _SEQ_MASK),
        )
        for number, body, checksum in rows:
            try:
                decode(body, checksum)
            except StoreCorrupt as error:
                problems.append(f"{name}: {table} {number & _SEQ_MASK}: {error}")
    for key, *columns, mark in connection.execute(
        "SELECT key, fingerprint, first_seq, last_seq, mark FROM idempotency"
        " WHERE conversation = ?",
        (id_,),
    ):
        if mark is not None and mark != idempotency_mark(id_, key, *columns):
            problems.append(f"{name}: the idempotency key {key!r} does not match its mark")
    return problems


def _id_of(connection: apsw.Connection, key: Key) -> int:
    row = fetch_one(connection, "SELECT id FROM conversation WHERE tenant = ? AND name = ?", key)
    if not row:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    return int(row[0])
