"""What is owed: the conversations that are to be digested, and from when on."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from firnline.log import limits
from firnline.log.entry import Key
from firnline.log.message import from_microseconds, microseconds
from firnline.protocols import Pending
from firnline.store.digests import digest_created_at
from firnline.store.postgres import log, words
from firnline.store.postgres.connection import Transaction

CHANNEL: Final = "firnline_owed"

_OWED: Final = "SELECT count(*), min(owed_at) FROM conversation WHERE owed_at IS NOT NULL"
_MAKING: Final = (
    "SELECT d.body, c.lease_until FROM digest d JOIN conversation c"
    " ON c.tenant = d.tenant AND c.id = d.conversation WHERE d.status = 'processing'"
)


async def mark(transaction: Transaction, key: Key, due: datetime, *, postpone: bool) -> None:
    """Note when it is due, and tell workers; nothing is written if there is a note to be kept."""
    transaction.later(
        "WITH noted AS (UPDATE conversation SET owed_at = %(due)s"
        " WHERE tenant = %(tenant)s AND name = %(name)s AND (owed_at IS NULL"
        " OR (%(postpone)s AND owed_at != %(due)s)) RETURNING owed_at)"
        # Whoever puts something off comes back to it; nobody else has to be woken for it.
        f" SELECT pg_notify('{CHANNEL}', %(whose)s) FROM noted"
        f" WHERE owed_at <= {transaction.now} + 1000000",
        log.here(key, due=microseconds(due), postpone=postpone, whose=tenant_token(key.tenant)),
    )


def tenant_token(tenant: str) -> str:
    """What stands for a tenant in a notification, which everybody in the database can hear."""
    return words.lexeme(tenant, "")


async def due(transaction: Transaction, now: datetime, limit: int, tenant: str | None) -> list[Key]:
    """The conversations that are due, longest due first."""
    found = await transaction.rows(
        "SELECT tenant, name FROM conversation WHERE owed_at <= %(now)s"
        f"{'' if tenant is None else ' AND tenant = %(tenant)s'}"
        " ORDER BY owed_at, id LIMIT %(limit)s",
        {"now": microseconds(now), "tenant": tenant, "limit": max(limit, 0)},
    )
    return [Key(*row) for row in found]


async def count(
    transaction: Transaction,
    now: datetime,
    stuck_before: datetime,
    cards: str,
    tenant: str | None,
) -> Pending:
    """What is owed and under way: counted in indexes that hold only that."""
    own = "" if tenant is None else " AND {}tenant = %(tenant)s"
    values = {"tenant": tenant, "cards": cards, "limit": limits.WATCHED_MAX}
    ((owed, oldest),), rows, ((kept,),) = await transaction.each(
        (_OWED + own.format(""), values),
        (f"{_MAKING}{own.format('d.')} LIMIT %(limit)s", values),
        (f"SELECT count(*) FROM card WHERE kind = %(cards)s{own.format('')}", values),
    )
    making = [(digest_created_at(body), lease) for body, lease in rows]
    return Pending(
        conversations=owed,
        oldest=None if oldest is None else from_microseconds(oldest),
        processing=len(making),
        leased=sum(lease is not None and lease > microseconds(now) for _, lease in making),
        stuck=sum(begun is not None and begun < stuck_before for begun, _ in making),
        cards=kept,
    )


async def clear(transaction: Transaction, key: Key, last_seq: int) -> bool:
    """Forget the note, unless there are entries that whoever settles has not seen."""
    found = await log.find(transaction, key, log.CHANGE)
    if found is not None and found.next_seq > last_seq + 1:
        return False
    if found is not None:
        transaction.later(
            "UPDATE conversation SET owed_at = NULL WHERE tenant = %s AND id = %s",
            (key.tenant, found.id),
        )
    return True
