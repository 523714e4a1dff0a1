"""Metadata of conversations and projects."""

from __future__ import annotations

import apsw

from firnline.log.entry import Head, Key, Project
from firnline.log.message import encode_json, microseconds
from firnline.log.text import Json
from firnline.store.rows import Described, projects_of
from firnline.store.sqlite import log
from firnline.store.sqlite.connection import fetch_one
from firnline.store.sqlite.seals import mark_head, project_seals
from firnline.store.sqlite.write_buffer import WriteBuffer


def describe(
    connection: apsw.Connection,
    heads: WriteBuffer,
    key: Key,
    about: Described,
    now: int,
    known: Head | None,
) -> Head:
    """Set what is given; create the conversation if needed."""
    if known is not None:
        known.check_described(log.head(connection, key))
    head = heads.find(connection, key) or heads.create(connection, key, now)
    if about.person is not None:
        heads.claim(connection, head, about.person or None)
    connection.execute(
        "UPDATE conversation SET project = coalesce(?, project), metadata = coalesce(?, metadata),"
        " strategy = coalesce(?, strategy) WHERE tenant = ? AND name = ?",
        (about.project, _json(about.metadata), _json(about.strategy), *key),
    )
    if about.created_at is not None:
        connection.execute(
            "UPDATE conversation SET created_at = ?1, updated_at = iif(next_seq, updated_at, ?1)"
            " WHERE tenant = ?2 AND name = ?3",
            (microseconds(about.created_at), *key),
        )
        mark_head(connection, head.id)
    now_described = log.head(connection, key)
    assert now_described is not None  # noqa: S101 - it was just written
    return now_described


def _json(value: dict[str, Json] | None) -> str | None:
    return None if value is None else encode_json(value)


def list_all(connection: apsw.Connection, tenant: str) -> list[Project]:
    """The tenant's projects by name."""
    rows = connection.execute(
        "SELECT name, status, schedule, task, metadata FROM project WHERE tenant = ? ORDER BY name",
        (tenant,),
    )
    return projects_of(tenant, rows.fetchall(), project_seals(connection, tenant))


def save(connection: apsw.Connection, tenant: str, project: Project) -> None:
    """Create or replace a project."""
    connection.execute(
        "INSERT INTO project VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, name) DO UPDATE SET"
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


def indexed(connection: apsw.Connection) -> tuple[int, int]:
    """The number of indexed entries, and of all entries."""
    done, all_of_them = fetch_one(
        connection, "SELECT coalesce(sum(indexed), 0), coalesce(sum(next_seq), 0) FROM conversation"
    )
    return int(done), int(all_of_them)


def tenants(connection: apsw.Connection) -> list[str]:
    """Every tenant that has a conversation, a project or a card."""
    rows = connection.execute(
        "SELECT tenant FROM conversation UNION SELECT tenant FROM project"
        " UNION SELECT tenant FROM card ORDER BY tenant"
    )
    return [tenant for (tenant,) in rows]
