"""Pending work: which conversations are to be digested, from when, and which are to be read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from firnline.log import limits
from firnline.log.entry import Head, Key
from firnline.log.message import from_microseconds, microseconds
from firnline.protocols import Pending
from firnline.store.digests import POSTPONE_MAX, digest_created_at, is_leased
from firnline.store.postgres import log, words
from firnline.store.postgres.connection import Query, Transaction
from firnline.store.rows import head_of

CHANNEL: Final = "firnline_owed"

_PENDING: Final = "SELECT count(*), min(owed_at) FROM conversation WHERE owed_at IS NOT NULL"
_PROCESSING: Final = (
    "SELECT d.body, c.lease_until FROM digest d JOIN conversation c"
    " ON c.tenant = d.tenant AND c.id = d.conversation WHERE d.status = 'processing'"
)


async def mark(transaction: Transaction, key: Key, due: datetime, *, postpone: bool) -> None:
    """Set the due time and notify workers; an earlier one is kept, unless `postpone`."""
    transaction.later(
        "WITH noted AS (UPDATE conversation SET owed_at = %(due)s"
        " WHERE tenant = %(tenant)s AND name = %(name)s AND (owed_at IS NULL"
        " OR (%(postpone)s AND owed_at != %(due)s)) RETURNING owed_at)"
        # Only if it is due: a worker that postpones work returns to it by itself.
        f" SELECT pg_notify('{CHANNEL}', %(whose)s) FROM noted"
        f" WHERE owed_at <= {transaction.now} + 1000000",
        log.here(key, due=microseconds(due), postpone=postpone, whose=tenant_token(key.tenant)),
    )


def tenant_token(tenant: str) -> str:
    """The tenant's hash for notifications, which every role in the database can receive."""
    return words.lexeme(tenant, "")


async def due(
    transaction: Transaction, now: datetime, limit: int, tenants: Collection[str] | None
) -> list[Key]:
    """The due conversations, longest due first; last, those marked with a wrong clock."""
    limit, at = max(limit, 0), microseconds(now)
    own = "" if tenants is None else " AND tenant = ANY(%(tenants)s)"
    names = sorted(tenants or ())

    def marked(sign: str, bound: int) -> Query:
        sql = (
            f"SELECT tenant, name FROM conversation WHERE owed_at {sign} %(bound)s{own}"
            " ORDER BY owed_at, id LIMIT %(limit)s"
        )
        return sql, {"bound": bound, "tenants": names, "limit": limit}

    now_due, wrong = await transaction.each(marked("<=", at), marked(">", at + POSTPONE_MAX))
    return [Key(*row) for row in (*now_due, *wrong)][:limit]


async def count(
    transaction: Transaction, now: datetime, stuck_before: datetime, cards: str, tenant: str | None
) -> Pending:
    """Pending and processing work, counted in partial indexes."""
    own = "" if tenant is None else " AND {}tenant = %(tenant)s"
    values = {"tenant": tenant, "cards": cards, "limit": limits.WATCHED_MAX}
    ((total, oldest),), rows, ((card_count,),) = await transaction.each(
        (_PENDING + own.format(""), values),
        (f"{_PROCESSING}{own.format('d.')} LIMIT %(limit)s", values),
        (f"SELECT count(*) FROM card WHERE kind = %(cards)s{own.format('')}", values),
    )
    started = [(digest_created_at(body), lease) for body, lease in rows]
    return Pending(
        conversations=total,
        oldest=None if oldest is None else from_microseconds(oldest),
        processing=len(started),
        leased=sum(is_leased(lease, microseconds(now)) for _, lease in started),
        stuck=sum(begun is not None and begun < stuck_before for begun, _ in started),
        cards=card_count,
    )


async def clear(transaction: Transaction, key: Key, last_seq: int) -> bool:
    """Clear the due time, unless there are entries after `last_seq`."""
    found = await log.find(transaction, key, log.CHANGE)
    if found is not None and found.next_seq > last_seq + 1:
        return False
    if found is not None:
        transaction.later(
            "UPDATE conversation SET owed_at = NULL WHERE tenant = %s AND id = %s",
            (key.tenant, found.id),
        )
    return True


async def unread(
    transaction: Transaction, tenant: str, person: str | None, limit: int
) -> list[Head]:
    """The conversations of a person, or of any, that were not read to their end, by name."""
    own = "" if person is None else " AND person = %(person)s"
    rows = await transaction.rows(
        f"{log.HEAD} WHERE tenant = %(tenant)s AND unread{own} ORDER BY name LIMIT %(limit)s",
        {"tenant": tenant, "person": person, "limit": max(limit, 0)},
    )
    return [head_of(row) for row in rows]


async def mark_read(transaction: Transaction, tenant: str, read: Mapping[str, int]) -> None:
    """Conversations are read, unless they have more entries by now."""
    names = sorted(read)  # locked in one order, so that concurrent calls do not deadlock
    transaction.later(
        "UPDATE conversation SET unread = false WHERE unread AND (tenant, id) IN ("
        "SELECT c.tenant, c.id FROM conversation c"
        " JOIN unnest(%s::text[], %s::bigint[]) AS seen (name, entries) ON c.name = seen.name"
        " WHERE c.tenant = %s AND c.next_seq <= seen.entries ORDER BY c.id FOR UPDATE OF c)",
        (names, [read[name] for name in names], tenant),
    )
