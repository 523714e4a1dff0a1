"""Seals in PostgreSQL: its triggers keep them; here they are compared with the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from firnline.errors import StoreCorrupt, UnknownConversation
from firnline.log.entry import Key
from firnline.store.digests import decode_digest
from firnline.store.postgres import log
from firnline.store.postgres.connection import Query, Row, Transaction
from firnline.store.rows import idempotency_mark
from firnline.store.seals import Seal, check_seal, describe_part, seal_of
from firnline.store.topics import decode_topic

_SEALS: Final = (
    f"SELECT part, count, mark FROM seal WHERE {log.HERE} AND part = ANY(%(parts)s::text[])"
)
# A tenant's projects are sealed under the number 0.
_WHICH: Final = f"CASE WHEN %(name)s = '' THEN 0 ELSE {log.ID} END"
_WRONG: Final = (
    "SELECT tenant, conversation, part FROM {stored} AS stored FULL JOIN {found} AS found"
    " USING (tenant, conversation, part)"
    " WHERE coalesce(stored.count, 0) != coalesce(found.count, 0)"
    " OR coalesce(stored.mark, 0) != coalesce(found.mark, 0)"
    " ORDER BY tenant, conversation, part"
)
_WRONG_HERE: Final = _WRONG.format(
    stored=f"(SELECT * FROM seal WHERE tenant = %(tenant)s AND conversation = {_WHICH})",
    found=f"sealing(%(tenant)s, {_WHICH})",
)
_WRONG_ANYWHERE: Final = _WRONG.format(stored="seal", found="sealing(NULL, NULL)")
_DIGESTS: Final = "SELECT conversation, version, body, checksum FROM digest"
_TOPICS: Final = "SELECT conversation, id, body, checksum FROM topic"
_KEYS: Final = "SELECT conversation, key, fingerprint, first_seq, last_seq, mark FROM idempotency"


def seals_query(key: Key, *parts: str) -> Query:
    """The query for the seals of these parts of a conversation."""
    return _SEALS, log.here(key, parts=list(parts))


def check_part(key: Key, part: str, seals: Sequence[Row], rows: Iterable[Sequence[Any]]) -> None:
    """Raise `StoreCorrupt` unless these rows are what the seal of this part says."""
    check_seal(key.conversation, part, seal_in(seals, part), seal_of(rows))


def seal_in(seals: Sequence[Row], part: str) -> Seal | None:
    """The seal of a part among the rows of `seals_query`."""
    return next((Seal(count, mark) for of, count, mark in seals if of == part), None)


async def damaged_rows(transaction: Transaction, key: Key) -> list[str]:
    """The damaged rows of a conversation outside the log; those of a tenant's projects if ''."""
    if not key.conversation:
        wrong = await transaction.rows(_WRONG_HERE, log.here(key))
        return [f"{describe_part(part)} does not match its seal" for *_, part in wrong]
    found = await log.must_find(transaction, key)
    wrong, *stored = await transaction.each(
        (_WRONG_HERE, log.here(key)),
        *((f"{query} WHERE {log.HERE}", log.here(key)) for query in (_DIGESTS, _TOPICS, _KEYS)),
    )
    return _problems(wrong, stored, {found.id: key.conversation})


async def all_damaged_rows(transaction: Transaction) -> list[str]:
    """The damaged rows of every tenant, outside the logs."""
    wrong, names, *stored = await transaction.each(
        (_WRONG_ANYWHERE, ()),
        ("SELECT id, name FROM conversation", ()),
        *((query, ()) for query in (_DIGESTS, _TOPICS, _KEYS)),
    )
    return _problems(wrong, stored, dict(map(tuple, names)))


def _problems(wrong: Sequence[Row], stored: list[list[Row]], names: dict[int, str]) -> list[str]:
    digests, topics, keys = stored
    problems = [
        f"{names.get(id_, tenant)}: {describe_part(part)} does not match its seal"
        for tenant, id_, part in wrong
    ]
    for what, rows, decode in (("digest", digests, decode_digest), ("topic", topics, decode_topic)):
        for id_, number, body, checksum in rows:
            try:
                decode(body, checksum)
            except StoreCorrupt as error:
                problems.append(f"{names.get(id_)}: {what} {number}: {error}")
    for id_, *columns, mark in keys:
        if mark is not None and mark != idempotency_mark(id_, *columns):
            problems.append(f"{names.get(id_)}: an idempotency key does not match its mark")
    return problems


async def reseal(transaction: Transaction, key: Key, parts: str = "%") -> None:
    """Seal the rows of a conversation as they are now; a tenant's projects if it has no name."""
    if key.conversation and await log.find(transaction, key, log.CHANGE) is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    values = log.here(key, parts=parts)
    transaction.later(
        f"DELETE FROM seal WHERE tenant = %(tenant)s AND conversation = {_WHICH}"
        " AND part LIKE %(parts)s",
        values,
    )
    transaction.later(
        f"INSERT INTO seal SELECT * FROM sealing(%(tenant)s, {_WHICH}) WHERE part LIKE %(parts)s",
        values,
    )
