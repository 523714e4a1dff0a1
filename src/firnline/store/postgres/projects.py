"""Metadata of conversations and projects."""

from __future__ import annotations

from typing import Final

from firnline.log.entry import Head, Key, Project
from firnline.log.message import encode_json, microseconds
from firnline.log.text import Json
from firnline.store.postgres import log
from firnline.store.postgres.connection import Transaction
from firnline.store.rows import Described, projects_of
from firnline.store.seals import project_part

_PROJECTS: Final = (
    "SELECT name, status, schedule, task, metadata::text FROM project"
    " WHERE tenant = %s ORDER BY name"
)
_SEALS: Final = "SELECT part, count, mark FROM seal WHERE tenant = %s AND conversation = 0"


async def describe(
    transaction: Transaction, key: Key, about: Described, known: Head | None
) -> Head:
    """Set what is given; create the conversation if needed."""
    if known is None:
        await _lock(transaction, key)
    else:
        await log.find(transaction, key, log.CHANGE)
        known.check_described(await log.head(transaction, key))
    transaction.later(
        "UPDATE conversation SET project = coalesce(%s, project),"
        " unread = CASE WHEN %s::text IS NULL THEN unread ELSE %s <> '' AND next_seq > 0 END,"
        " person = nullif(coalesce(%s, person), ''), metadata = coalesce(%s::json, metadata),"
        " strategy = coalesce(%s::json, strategy)"
        " WHERE tenant = %s AND name = %s",
        (about.project, *[about.person] * 3, *map(_json, (about.metadata, about.strategy)), *key),
    )
    if about.created_at is not None:
        at = microseconds(about.created_at)
        transaction.later(
            "UPDATE conversation SET created_at = %s, updated_at ="
            " CASE next_seq WHEN 0 THEN %s ELSE updated_at END WHERE tenant = %s AND name = %s",
            (at, at, *key),
        )
    head = await log.head(transaction, key)
    assert head is not None  # noqa: S101 - it was just written
    return head


async def _lock(transaction: Transaction, key: Key) -> None:
    """Lock the conversation, created if missing; retried if it is erased meanwhile."""
    while not await log.find(transaction, key, log.CHANGE):
        if await log.create(transaction, key, transaction.now):
            return


def _json(value: dict[str, Json] | None) -> str | None:
    return None if value is None else encode_json(value)


async def list_all(transaction: Transaction, tenant: str) -> list[Project]:
    """The tenant's projects by name."""
    found, seals = await transaction.each((_PROJECTS, (tenant,)), (_SEALS, (tenant,)))
    start = project_part("")
    return projects_of(tenant, found, {part.removeprefix(start): rest for part, *rest in seals})


async def save(transaction: Transaction, tenant: str, project: Project) -> None:
    """Create or replace a project."""
    transaction.later(
        "INSERT INTO project (tenant, name, status, schedule, task, metadata)"
        " VALUES (%s, %s, %s, %s, %s, %s::json) ON CONFLICT (tenant, name) DO UPDATE SET"
        " status = excluded.status, schedule = excluded.schedule, task = excluded.task,"
        " metadata = excluded.metadata",
        (
            tenant,
            project.name,
            project.status,
            project.schedule,
            project.task,
            encode_json(project.metadata),
        ),
    )


async def tenants(transaction: Transaction) -> list[str]:
    """All tenants that have data."""
    rows = await transaction.rows(
        "SELECT tenant FROM conversation UNION SELECT tenant FROM project"
        " UNION SELECT tenant FROM card"
    )
    return sorted((tenant for (tenant,) in rows), key=str.encode)
