"""Seals in PostgreSQL: its triggers keep them; here they are compared with the rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from firnline.errors import StoreCorrupt
from firnline.log.entry import Key
from firnline.log.message import encode_json
from firnline.protocols import Damage, Known
from firnline.store.digests import decode_digest
from firnline.store.postgres import known_cards, log
from firnline.store.postgres.connection import Query, Row, Transaction
from firnline.store.rows import end_of, idempotency_mark
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
    seal_of,
)
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
_OWN: Final = "tenant = %s AND conversation = %s"
_DESCRIBE: Final = (
    "UPDATE conversation SET project = %s, person = %s, metadata = %s::json, strategy = %s::json,"
    " fence = fence + 1, lease_owner = NULL, lease_until = NULL, owed_at = NULL,"
    " archived = (SELECT coalesce(sum(last_seq - first_seq + 1), 0) FROM segment s"
    " WHERE s.tenant = conversation.tenant AND s.conversation = conversation.id)"
    " WHERE tenant = %s AND id = %s"
)
_HEADS: Final = f"SELECT tenant, id, '{HEAD}' FROM conversation c WHERE mark != head_mark(c)"
_ENDS_SO: Final = (
    "WHERE tenant = %s AND id = %s"
    " AND (next_seq = %s)::int + (total = %s)::int + (hash = %s)::int >= 2"
)
_UNMARK: Final = f"UPDATE conversation SET mark = NULL {_ENDS_SO}"
_MEND_HEAD: Final = (
    "UPDATE conversation SET next_seq = %s, total = %s, hash = %s, updated_at = %s,"
    f" unread = person IS NOT NULL {_ENDS_SO}"
)
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


async def damaged_rows(transaction: Transaction, key: Key) -> list[Damage]:
    """The damaged rows of a conversation outside the log; those of a tenant's projects if ''."""
    if not key.conversation:
        wrong = await transaction.rows(_WRONG_HERE, log.here(key))
        projects = [damage_of("", part) for *_, part in wrong]
        return projects + await known_cards.damaged_cards(transaction, key, None)
    found = await log.must_find(transaction, key, tolerant=True)
    heads, wrong, *stored = await transaction.each(
        (f"{_HEADS} AND tenant = %(tenant)s AND name = %(name)s", log.here(key)),
        (_WRONG_HERE, log.here(key)),
        *((f"{query} WHERE {log.HERE}", log.here(key)) for query in (_DIGESTS, _TOPICS, _KEYS)),
    )
    problems = _problems([*heads, *wrong], stored, {found.id: key.conversation})
    return problems + await known_cards.damaged_cards(transaction, key, found.id)


async def all_damaged_rows(transaction: Transaction) -> list[Damage]:
    """The damaged rows of every tenant, outside the logs."""
    heads, wrong, names, *stored = await transaction.each(
        (_HEADS, ()),
        (_WRONG_ANYWHERE, ()),
        ("SELECT id, name FROM conversation", ()),
        *((query, ()) for query in (_DIGESTS, _TOPICS, _KEYS)),
    )
    return _problems([*heads, *wrong], stored, dict(map(tuple, names)))


def _problems(wrong: Sequence[Row], stored: list[list[Row]], names: dict[int, str]) -> list[Damage]:
    digests, topics, keys = stored
    problems = [damage_of(names.get(id_) or str(tenant), part) for tenant, id_, part in wrong]
    for what, rows, decode in (("digest", digests, decode_digest), ("topic", topics, decode_topic)):
        for id_, number, body, checksum in rows:
            try:
                decode(body, checksum)
            except StoreCorrupt as error:
                text = f"{names.get(id_)}: {what} {number}: {error}"
                problems.append(Damage(f"{what}s", text))
    for id_, *columns in keys:
        if id_ not in names or not _is_sealed(id_, *columns):
            text = f"{names.get(id_)}: an idempotency key does not match its mark"
            problems.append(Damage(KEYS, text))
    return problems


async def reseal(transaction: Transaction, key: Key, groups: Collection[str]) -> None:
    """Seal these rows of a conversation as they are now; a tenant's projects if it has no name."""
    if key.conversation:
        await log.must_find(transaction, key, log.CHANGE, tolerant=True)
    values = log.here(key, parts=patterns(groups))
    transaction.later(
        f"DELETE FROM seal WHERE tenant = %(tenant)s AND conversation = {_WHICH}"
        " AND part LIKE ANY(%(parts)s::text[])",
        values,
    )
    transaction.later(
        f"INSERT INTO seal SELECT * FROM sealing(%(tenant)s, {_WHICH})"
        " WHERE part LIKE ANY(%(parts)s::text[])",
        values,
    )


async def names(transaction: Transaction, tenant: str) -> list[str]:
    """See `Store.names`."""
    found = await transaction.rows(
        "SELECT name FROM conversation WHERE tenant = %s ORDER BY name", (tenant,)
    )
    return [name for (name,) in found]


async def mend(transaction: Transaction, key: Key, parts: Collection[str], known: Known) -> None:
    """See `Store.mend`."""
    if not key.conversation:
        if PROJECTS in parts:
            _mend_projects(transaction, key.tenant, known)
            await reseal(transaction, key, [PROJECTS])
        if CARDS in parts:
            await known_cards.mend(transaction, key, None)
        return
    found = await log.must_find(transaction, key, log.CHANGE, tolerant=True)
    if CARDS in parts:
        await known_cards.mend(transaction, key, found.id)
    await _mend_rows(transaction, key, found.id, parts, known)


async def _mend_rows(
    transaction: Transaction, key: Key, id_: int, parts: Collection[str], known: Known
) -> None:
    own = key.tenant, id_
    sealed = f"DELETE FROM seal WHERE {_OWN} AND part LIKE ANY(%s::text[])"
    transaction.later(sealed, (*own, patterns(parts)))  # otherwise it is not changed
    if ABOUT in parts:
        strategy = None if known.strategy is None else encode_json(known.strategy)
        described = known.project, known.person, encode_json(known.metadata), strategy
        transaction.later(_DESCRIBE, (*described, *own))
    if HEAD in parts and known.end is not None:
        end = end_of(known.end)
        transaction.later(_UNMARK, (*own, *end[:3]))  # otherwise it is not changed
        transaction.later(_MEND_HEAD, (*end, *own, *end[:3]))
    if PINS in parts:
        transaction.later(f"DELETE FROM pin WHERE {_OWN}", own)
        transaction.insert("pin (tenant, conversation, seq)", [(*own, seq) for seq in known.pins])
    if TOPICS in parts:
        _drop_topics(transaction, own)
    if KEYS in parts:
        await _drop_keys(transaction, key, own)
    await reseal(transaction, key, parts)


def _drop_topics(transaction: Transaction, own: tuple[str, int]) -> None:
    for table in ("topic", "member"):
        transaction.later(f"DELETE FROM {table} WHERE {_OWN}", own)
    restart = "UPDATE assigned SET next_seq = 0, revision = revision + 1"
    transaction.later(f"{restart} WHERE {_OWN}", own)


async def _drop_keys(transaction: Transaction, key: Key, own: tuple[str, int]) -> None:
    """Delete the damaged idempotency keys."""
    rows = await transaction.rows(f"{_KEYS} WHERE {log.HERE}", log.here(key))
    damaged = [name for id_, name, *rest in rows if not _is_sealed(id_, name, *rest)]
    transaction.later(
        f"DELETE FROM idempotency WHERE {_OWN} AND key = ANY(%s::text[])", (*own, damaged)
    )


def _mend_projects(transaction: Transaction, tenant: str, known: Known) -> None:
    transaction.later("DELETE FROM project WHERE tenant = %s", (tenant,))
    transaction.insert(
        "project (tenant, name, status, schedule, task, metadata)",
        [
            (tenant, one.name, one.status, one.schedule, one.task, encode_json(one.metadata))
            for one in known.projects
        ],
    )


def _is_sealed(id_: int, key: str, *rest: Any) -> bool:
    *columns, mark = rest
    return mark in (None, idempotency_mark(id_, key, *columns))
