"""Known cards: which cards there are, kept by a trigger, so that none can vanish or become old."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from firnline.log.entry import Key
from firnline.protocols import Damage
from firnline.store.cards import card_damage, dropped_with
from firnline.store.postgres.connection import Row, Transaction

_MISSING: Final = (
    "SELECT k.kind, k.name FROM (SELECT * FROM known_card AS card WHERE {where}) AS k"
    " LEFT JOIN card USING (kind, tenant, name) WHERE card.checksum IS DISTINCT FROM k.checksum"
)
_OWN: Final = "card.tenant = %s AND card.conversation IS NOT DISTINCT FROM %s"


async def missing(transaction: Transaction, where: str, values: Sequence[Any] = ()) -> list[Row]:
    """The kinds and names of known cards that are missing, or not as they were written last."""
    return await transaction.rows(_MISSING.format(where=where), values)


async def damaged_cards(transaction: Transaction, key: Key, number: int | None) -> list[Damage]:
    """The missing cards of a conversation; without its number, the tenant's that have none."""
    found = await missing(transaction, _OWN, (key.tenant, number))
    return [card_damage(key.conversation, kind, name) for kind, name in found]


async def mend(transaction: Transaction, key: Key, number: int | None) -> None:
    """Forget the missing cards; see `dropped_with`."""
    found = await missing(transaction, _OWN, (key.tenant, number))
    for kind, name in (gone for one in found for gone in dropped_with(*one)):
        for table in ("card", "known_card"):
            transaction.later(
                f"DELETE FROM {table} WHERE kind = %s AND tenant = %s AND name = %s",
                (kind, key.tenant, name),
            )
