"""Cards: small named values that edges store next to the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import apsw

from firnline.errors import StoreCorrupt
from firnline.log.entry import Card, Key
from firnline.log.message import encode_json
from firnline.store.cards import CardQuery, card_checksum, card_time, missing_card, verify_card
from firnline.store.sqlite import known_cards
from firnline.store.sqlite.write_buffer import WriteBuffer

# Cast to bytes: invalid UTF-8 in a damaged text would raise in the code that looks for damage.
_COLUMNS: Final = (
    "SELECT CAST(card.kind AS BLOB), CAST(card.tenant AS BLOB), CAST(card.name AS BLOB),"
    " card.conversation, card.updated_at, CAST(checksum AS BLOB), CAST(body AS BLOB),"
    " CAST(c.tenant AS BLOB), CAST(c.name AS BLOB), CAST(c.genesis AS BLOB)"
    " FROM card LEFT JOIN conversation c ON c.id = card.conversation"
)
_INSERT: Final = "INSERT OR IGNORE INTO card VALUES (?, ?, ?, ?, ?, ?, ?)"
_REPLACE: Final = "INSERT OR REPLACE INTO card VALUES (?, ?, ?, ?, ?, ?, ?)"
_PAGE: Final = "{where} ORDER BY card.tenant, card.name LIMIT ?"
_LAST: Final = "\U0010ffff"  # sorts after every character that a name can contain


def put_cards(
    connection: apsw.Connection,
    heads: WriteBuffer,
    cards: Sequence[Card],
    now: int,
    *,
    absent: bool,
    keep_times: bool,
) -> int:
    """Write the cards whose conversation exists, or that have none."""
    rows = []
    for card in cards:
        number = None
        if card.conversation is not None:
            head = heads.find(connection, Key(card.tenant, card.conversation))
            if head is None:
                continue
            number = head.id
        at = card_time(card, now, keep_times=keep_times)
        checksum = card_checksum(card, number, at)
        rows.append((card.kind, card.tenant, card.name, number, at, checksum, card.body))
    written = connection.executemany(f"{_INSERT if absent else _REPLACE} RETURNING 1", rows)
    return sum(1 for _ in written)


def select_cards(connection: apsw.Connection, asked: CardQuery, limit: int) -> list[Card]:
    """The matching cards, each one verified."""
    where, values = _where(asked)
    rows = connection.execute(
        f"{_COLUMNS} WHERE {_PAGE.format(where=where)}", (*values, max(limit, 0))
    )
    cards = [_card(row) for row in rows]
    if not all(asked.has(card) for card in cards):
        # A bit flip in a type can misplace a row while its checksum still matches.
        raise StoreCorrupt(f"a row among the cards of the kind {asked.kind!r} is misplaced")
    # A page of known cards reaches no further than one of cards if none of them is missing.
    page = _PAGE.format(where=where), (*values, max(limit, 0))
    for kind, name in known_cards.missing(connection, *page):
        raise missing_card(kind, name)
    return cards


def card_kinds(connection: apsw.Connection) -> list[str]:
    """Every kind; one index lookup per kind, however many cards it has."""
    rows = connection.execute(
        "WITH RECURSIVE known (kind) AS (SELECT min(kind) FROM card UNION ALL"
        " SELECT (SELECT min(kind) FROM card WHERE kind > known.kind) FROM known"
        " WHERE known.kind IS NOT NULL) SELECT kind FROM known WHERE kind IS NOT NULL"
    )
    return [kind for (kind,) in rows]


def drop_cards(connection: apsw.Connection, asked: CardQuery) -> int:
    """Delete the matching cards; returns the number deleted."""
    where, values = _where(asked)
    # Compared again without the index: a damaged index must not lead to other rows.
    own = " AND +kind = ? AND +tenant = ?"
    connection.execute(
        f"DELETE FROM card WHERE {where}{own}",  # noqa: S608
        (*values, asked.kind, asked.tenant),
    )
    dropped = connection.changes()
    connection.execute(
        f"DELETE FROM known_card AS card WHERE {where}{own}",  # noqa: S608 - those that are missing
        (*values, asked.kind, asked.tenant),
    )
    return dropped


def damaged_cards(connection: apsw.Connection) -> Iterator[str]:
    """Yield the problem of each damaged or missing card."""
    for row in connection.execute(_COLUMNS):
        try:
            _card(row)
        except StoreCorrupt as error:
            yield str(error)
    for kind, name in known_cards.missing(connection, "true"):
        yield str(missing_card(kind, name))


def _where(asked: CardQuery) -> tuple[str, tuple[Any, ...]]:
    """A condition and its values; every part of it can use the primary key."""
    parts: dict[str, Any] = {"card.kind = ?": asked.kind}
    if asked.tenant is not None:
        parts["card.tenant = ?"] = asked.tenant
    if asked.names is not None:
        parts["card.name IN (SELECT value FROM json_each(?))"] = encode_json([*asked.names])
    if asked.prefix:
        parts["card.name >= ?"] = asked.prefix
        parts["card.name < ?"] = asked.prefix + _LAST
    if asked.after:
        parts["card.name > ?"] = asked.after
    return " AND ".join(parts), tuple(parts.values())


def _card(row: tuple[Any, ...]) -> Card:
    """The card of a row; raises `StoreCorrupt` if the row is damaged."""
    *names, number, updated_at, checksum, body, of_tenant, of_name, start = row
    try:
        kind, tenant, name = (text.decode() for text in names)
        of = None
        if number is not None:
            of = Key(of_tenant.decode(), of_name.decode()), start.decode()
        card = Card(tenant=tenant, kind=kind, name=name, body=body)
        return verify_card(card, number, of, updated_at, checksum)
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreCorrupt("the row of a card is damaged") from error
