"""Cards: small named values that integrations store next to the log."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final

from firnline.errors import StoreCorrupt
from firnline.log.entry import Card, Key
from firnline.store.cards import CardQuery, card_checksum, card_time, missing_card, verify_card
from firnline.store.postgres import known_cards
from firnline.store.postgres.connection import Row, Transaction

_COLUMNS: Final = (
    "SELECT card.kind, card.tenant, card.name, card.conversation, card.updated_at, card.checksum,"
    " card.body, c.tenant, c.name, c.genesis FROM card LEFT JOIN conversation c"
    " ON c.tenant = card.tenant AND c.id = card.conversation"
)
_INSERT: Final = (
    "INSERT INTO card (kind, tenant, name, conversation, updated_at, checksum, body) SELECT * FROM"
    " unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bytea[],"
    " %s::bytea[]) ON CONFLICT (kind, tenant, name) DO"
)
_REPLACE: Final = (
    " UPDATE SET conversation = excluded.conversation, updated_at = excluded.updated_at,"
    " checksum = excluded.checksum, body = excluded.body"
)


async def put_cards(
    transaction: Transaction, cards: Sequence[Card], *, absent: bool, keep_times: bool
) -> int:
    """Write the cards whose conversation exists, or that have none."""
    keys = sorted({(card.tenant, card.conversation) for card in cards if card.conversation})
    known, ((now,),) = await transaction.each(
        (
            (
                # Locked in one order, so that concurrent calls do not deadlock.
                "SELECT tenant, name, id FROM conversation WHERE (tenant, name) IN"
                " (SELECT * FROM unnest(%s::text[], %s::text[])) ORDER BY id FOR KEY SHARE"
            ),
            ([tenant for tenant, _ in keys], [name for _, name in keys]),
        ),
        (f"SELECT {transaction.now}", ()),
    )
    numbers = {(tenant, name): number for tenant, name, number in known}
    there = [card for card in cards if not card.conversation or _key(card) in numbers]
    chosen: dict[tuple[str, str, str], Card] = {}
    for card in there:
        at = card.kind, card.tenant, card.name
        chosen[at] = chosen.get(at, card) if absent else card
    rows = [
        _row(card, numbers.get(_key(card)), card_time(card, now, keep_times=keep_times))
        for _, card in sorted(chosen.items(), key=itemgetter(0))
    ]
    if not rows:
        return 0
    columns = [list(column) for column in zip(*rows, strict=True)]
    written = await transaction.changed(_INSERT + (" NOTHING" if absent else _REPLACE), columns)
    return written if absent else len(there)


def _key(card: Card) -> tuple[str, str]:
    return card.tenant, card.conversation or ""


def _row(card: Card, number: int | None, now: int) -> tuple[Any, ...]:
    checksum = card_checksum(card, number, now)
    return card.kind, card.tenant, card.name, number, now, checksum, card.body


async def select_cards(transaction: Transaction, asked: CardQuery, limit: int) -> list[Card]:
    """The matching cards, each verified."""
    where, values = _where(asked)
    rows = await transaction.rows(
        f"{_COLUMNS} WHERE {where} ORDER BY card.tenant, card.name LIMIT %s",
        (*values, max(limit, 0)),
    )
    cards = [_card(row) for row in rows]
    # A page of known cards reaches no further than one of cards if none of them is missing.
    page = f"{where} ORDER BY card.tenant, card.name LIMIT %s", (*values, max(limit, 0))
    for kind, name in await known_cards.missing(transaction, *page):
        raise missing_card(kind, name)
    return cards


async def card_kinds(transaction: Transaction) -> list[str]:
    """All kinds that exist."""
    rows = await transaction.rows("SELECT DISTINCT kind FROM card")
    return sorted((kind for (kind,) in rows), key=str.encode)


async def drop_cards(transaction: Transaction, asked: CardQuery) -> int:
    """Delete the matching cards; returns how many there were."""
    where, values = _where(asked)
    dropped = await transaction.changed(f"DELETE FROM card WHERE {where}", values)
    transaction.later(f"DELETE FROM known_card AS card WHERE {where}", values)  # those missing
    return dropped


async def damaged_cards(transaction: Transaction) -> list[str]:
    """The problem of each damaged or missing card."""
    problems = []
    for row in await transaction.rows(_COLUMNS):
        try:
            _card(row)
        except StoreCorrupt as error:
            problems.append(str(error))
    missing = await known_cards.missing(transaction, "true")
    return problems + [str(missing_card(kind, name)) for kind, name in missing]


def _where(asked: CardQuery) -> tuple[str, tuple[Any, ...]]:
    """The condition and its values; the primary key covers every part."""
    parts: dict[str, Any] = {"card.kind = %s": asked.kind}
    if asked.tenant is not None:
        parts["card.tenant = %s"] = asked.tenant
    if asked.names is not None:
        parts["card.name = ANY(%s::text[])"] = sorted(asked.names)
    if asked.prefix:
        parts["card.name >= %s"] = asked.prefix
        parts["card.name < %s"] = asked.prefix + "\U0010ffff"
    if asked.after:
        parts["card.name > %s"] = asked.after
    return " AND ".join(parts), tuple(parts.values())


def _card(row: Row) -> Card:
    kind, tenant, name, number, updated_at, checksum, body, of_tenant, of_name, start = row
    of = None if of_name is None else (Key(of_tenant, of_name), start)
    card = Card(tenant=tenant, kind=kind, name=name, body=body)
    return verify_card(card, number, of, updated_at, checksum)
