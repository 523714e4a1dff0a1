"""Seals in SQLite: the function that its triggers use, and the comparison with the rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import apsw

from firnline.errors import StoreCorrupt, UnknownConversation
from firnline.log.entry import Entry, Key
from firnline.log.message import encode_json
from firnline.protocols import Damage, Known
from firnline.store.digests import decode_digest
from firnline.store.rows import ConversationRow, end_of, idempotency_mark
from firnline.store.seals import (
    ABOUT,
    CARDS,
    HEAD,
    KEYS,
    PINS,
    PROJECTS,
    TOPICS,
    Seal,
    check_seal,
    damage_of,
    patterns,
    project_part,
    seal_of,
)
from firnline.store.sqlite import known_cards
from firnline.store.sqlite.connection import fetch_one
from firnline.store.topics import decode_topic

_SEQ_MASK: Final = (1 << 32) - 1
_WRONG: Final = (
    "SELECT part FROM (SELECT * FROM seal WHERE {which}) AS stored"
    " FULL JOIN (SELECT * FROM sealing WHERE {which}) AS found USING (conversation, part)"
    " WHERE coalesce(stored.count, 0) != coalesce(found.count, 0)"
    " OR coalesce(stored.mark, 0) != coalesce(found.mark, 0) ORDER BY part"
)
_HEAD_MARK: Final = "seal_mark(hex(next_seq), hex(total), hex(hash), hex(updated_at), hex(unread))"
IS_MARKED: Final = f"(mark IS NULL OR mark = {_HEAD_MARK})"
"""The condition that a conversation's head is not damaged."""
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


def mark_head(connection: apsw.Connection, id_: int) -> None:
    """Mark a conversation's head after it was changed otherwise than by an append."""
    connection.execute(f"UPDATE conversation SET mark = {_HEAD_MARK} WHERE id = ?", (id_,))  # noqa: S608


def project_seals(connection: apsw.Connection, tenant: str) -> dict[str, Seal]:
    """The seals of a tenant's projects by name."""
    start = project_part(f"{tenant}\x1f")
    rows = connection.execute(
        "SELECT part, count, mark FROM seal WHERE conversation = 0 AND part >= ? AND part < ?",
        (start, project_part(f"{tenant}\x20")),
    )
    return {_text(part).removeprefix(start): Seal(*seal) for part, *seal in rows}


def damaged_rows(connection: apsw.Connection, key: Key) -> list[Damage]:
    """What is wrong with a conversation's rows outside the log; with a tenant's projects if ''."""
    if not key.conversation:
        which = "conversation = 0 AND part >= ? AND part < ?"
        span = project_part(f"{key.tenant}\x1f"), project_part(f"{key.tenant}\x20")
        projects = [damage_of("", part) for (part,) in _wrong(connection, which, span)]
        return projects + known_cards.damaged_cards(connection, key, None)
    id_ = _id_of(connection, key)
    return _damaged(connection, key.conversation, id_) + known_cards.damaged_cards(
        connection, key, id_
    )


def all_damaged_rows(connection: apsw.Connection) -> list[Damage]:
    """What is wrong with any row outside the log, of any tenant."""
    problems = [damage_of("", part) for (part,) in _wrong(connection, "conversation = 0")]
    for id_, tenant, name in connection.execute(
        "SELECT id, CAST(tenant AS BLOB), CAST(name AS BLOB) FROM conversation"
    ):
        key = Key(*(text.decode(errors="replace") for text in (tenant, name)))
        problems += _damaged(connection, key.conversation, id_)
    strays = connection.execute(
        "SELECT conversation FROM (SELECT conversation FROM seal WHERE conversation != 0"
        " UNION SELECT conversation FROM idempotency)"
        " WHERE conversation NOT IN (SELECT id FROM conversation)"
    )
    lost = "there are rows of a conversation with the number {}, which does not exist"
    return problems + [Damage(ABOUT, lost.format(id_)) for (id_,) in strays]


def _damaged(connection: apsw.Connection, name: str, id_: int) -> list[Damage]:
    """What is wrong with the rows of one conversation."""
    head = f"SELECT 1 FROM conversation WHERE id = ? AND NOT {IS_MARKED}"  # noqa: S608
    parts = [HEAD] if fetch_one(connection, head, (id_,)) else []
    parts += [part for (part,) in _wrong(connection, "conversation = ?", (id_,))]
    return [*(damage_of(name, part) for part in parts), *_unreadable(connection, name, id_)]


def names(connection: apsw.Connection, tenant: str) -> list[str]:
    """See `Store.names`."""
    found = connection.execute(
        "SELECT name FROM conversation WHERE tenant = ? ORDER BY name", (tenant,)
    )
    return [name for (name,) in found]


def mend(connection: apsw.Connection, key: Key, parts: Collection[str], known: Known) -> None:
    """See `Store.mend`."""
    id_ = _id_of(connection, key) if key.conversation else None
    if CARDS in parts:
        known_cards.mend(connection, key, id_)
    if id_ is not None:
        _mend_rows(connection, id_, parts, known)
    elif PROJECTS in parts:
        _mend_projects(connection, key.tenant, known)


def _mend_rows(connection: apsw.Connection, id_: int, parts: Collection[str], known: Known) -> None:
    own = [(id_, pattern) for pattern in patterns(parts)]
    connection.executemany("DELETE FROM seal WHERE conversation = ? AND part LIKE ?", own)
    if ABOUT in parts:
        _mend_about(connection, id_, known)
    if HEAD in parts and known.end is not None:
        _mend_head(connection, id_, known.end)
    if PINS in parts:
        connection.execute("DELETE FROM pin WHERE conversation = ?", (id_,))
        rows = [(id_, seq) for seq in known.pins]
        connection.executemany("INSERT INTO pin VALUES (?, ?)", rows)
    if TOPICS in parts:
        _drop_topics(connection, id_)
    if KEYS in parts:
        damaged = [(id_, name) for name in _damaged_keys(connection, id_)]
        connection.executemany(
            "DELETE FROM idempotency WHERE conversation = ? AND key = ?", damaged
        )
    # What is not mended keeps its seal: with another one it would look right.
    connection.executemany(
        "INSERT OR REPLACE INTO seal SELECT * FROM sealing WHERE conversation = ? AND part LIKE ?",
        own,
    )


def _mend_about(connection: apsw.Connection, id_: int, known: Known) -> None:
    strategy = None if known.strategy is None else encode_json(known.strategy)
    connection.execute(
        "UPDATE conversation SET project = ?2, metadata = ?3, strategy = ?4, person = ?5,"
        " fence = fence + 1, lease_owner = NULL, lease_until = NULL, owed_at = NULL,"
        " archived = (SELECT coalesce(sum(last_seq - (id & 4294967295) + 1), 0)"
        " FROM segment WHERE id BETWEEN ?1 << 32 AND (?1 << 32) | 4294967295) WHERE id = ?1",
        (id_, known.project, encode_json(known.metadata), strategy, known.person),
    )


def _mend_head(connection: apsw.Connection, id_: int, last: Entry) -> None:
    """Make the head that of a log with this end, if that much of it is undamaged."""
    connection.execute(
        "UPDATE conversation SET next_seq = ?1, total = ?2, hash = ?3, updated_at = ?4,"
        " unread = person IS NOT NULL WHERE id = ?5"
        " AND (next_seq = ?1) + (total = ?2) + (hash = ?3) >= 2",
        (*end_of(last), id_),
    )
    if connection.changes():
        mark_head(connection, id_)


def _drop_topics(connection: apsw.Connection, id_: int) -> None:
    span = id_ << 32, id_ << 32 | _SEQ_MASK
    connection.execute("DELETE FROM topic WHERE id BETWEEN ? AND ?", span)
    connection.execute("DELETE FROM member WHERE conversation = ?", (id_,))
    connection.execute(
        "UPDATE assigned SET next_seq = 0, revision = revision + 1 WHERE conversation = ?", (id_,)
    )


def _mend_projects(connection: apsw.Connection, tenant: str, known: Known) -> None:
    connection.execute("DELETE FROM project WHERE tenant = ?", (tenant,))
    for one in known.projects:
        values = one.name, one.status, one.schedule, one.task, encode_json(one.metadata)
        connection.execute("INSERT INTO project VALUES (?, ?, ?, ?, ?, ?)", (tenant, *values))
    span = project_part(f"{tenant}\x1f"), project_part(f"{tenant}\x20")
    _reseal(connection, "conversation = 0 AND part >= ? AND part < ?", span)


def _reseal(connection: apsw.Connection, which: str, values: tuple[Any, ...]) -> None:
    """Seal rows as they are now."""
    connection.execute(f"DELETE FROM seal WHERE {which}", values)  # noqa: S608
    connection.execute(f"INSERT INTO seal SELECT * FROM sealing WHERE {which}", values)  # noqa: S608


def reseal_digests(connection: apsw.Connection, found: ConversationRow) -> None:
    """Seal a conversation's digests as they are now."""
    _reseal(
        connection, "conversation = ? AND (part = 'digests' OR part LIKE 'newest:%')", (found.id,)
    )


def _wrong(
    connection: apsw.Connection, which: str, values: tuple[Any, ...] = ()
) -> list[tuple[str]]:
    # A damaged row can have another type than its column.
    found = connection.execute(_WRONG.format(which=which), values * 2).fetchall()
    return [(_text(part),) for (part,) in found]


def _text(value: object) -> str:
    """A value that should be a text."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _unreadable(connection: apsw.Connection, name: str, id_: int) -> list[Damage]:
    """Digests and topics that cannot be decoded, and idempotency keys with a wrong mark."""
    problems: list[Damage] = []
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
                what = f"{name}: {table} {number & _SEQ_MASK}: {error}"
                problems.append(Damage(f"{table}s", what))
    for key in _damaged_keys(connection, id_):
        what = f"{name}: the idempotency key {key!r} does not match its mark"
        problems.append(Damage(KEYS, what))
    return problems


def _damaged_keys(connection: apsw.Connection, id_: int) -> list[str]:
    rows = connection.execute(
        "SELECT key, fingerprint, first_seq, last_seq, mark FROM idempotency"
        " WHERE conversation = ?",
        (id_,),
    )
    return [
        key
        for key, *columns, mark in rows
        if mark not in (None, idempotency_mark(id_, key, *columns))
    ]


def _id_of(connection: apsw.Connection, key: Key) -> int:
    row = fetch_one(connection, "SELECT id FROM conversation WHERE tenant = ? AND name = ?", key)
    if not row:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    return int(row[0])
