"""Known cards: which cards there are, kept by triggers, so that none can vanish or become old."""

from __future__ import annotations

from typing import Any, Final

import apsw

from firnline.log.entry import Key
from firnline.protocols import Damage
from firnline.store.cards import card_damage, dropped_with

_MISSING: Final = (
    "SELECT k.kind, k.name FROM (SELECT * FROM known_card AS card WHERE {where}) AS k"
    " LEFT JOIN card USING (kind, tenant, name) WHERE card.checksum IS NOT k.checksum"
)
_OWN: Final = "card.tenant = ? AND card.conversation IS ?"
_THIS: Final = "kind = ? AND tenant = ? AND name = ?"


def missing(
    connection: apsw.Connection, where: str, values: tuple[Any, ...] = ()
) -> list[tuple[str, str]]:
    """The kinds and names of known cards that are missing, or not as they were written last."""
    rows = connection.execute(_MISSING.format(where=where), values).fetchall()
    return [(str(kind), str(name)) for kind, name in rows]


def damaged_cards(connection: apsw.Connection, key: Key, number: int | None) -> list[Damage]:
    """The missing cards of a conversation; without its number, the tenant's that have none."""
    found = missing(connection, _OWN, (key.tenant, number))
    return [card_damage(key.conversation, kind, name) for kind, name in found]


def mend(connection: apsw.Connection, key: Key, number: int | None) -> None:
    """Forget the missing cards; see `dropped_with`."""
    for found in missing(connection, _OWN, (key.tenant, number)):
        for kind, name in dropped_with(*found):
            for table in ("card", "known_card"):
                connection.execute(
                    f"DELETE FROM {table} WHERE {_THIS}",  # noqa: S608
                    (kind, key.tenant, name),
                )
