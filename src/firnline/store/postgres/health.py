"""The store's health: what `firnline doctor` prints."""

from __future__ import annotations

from typing import Final, Literal

from firnline.log.text import plural
from firnline.protocols import Finding
from firnline.store.postgres import cards, migrate, seals
from firnline.store.postgres.connection import SCHEMA, Row, Transaction
from firnline.store.seals import seals_finding

_SERVER: Final = (
    "SELECT current_setting('server_version'), current_setting('fsync'),"
    " current_setting('full_page_writes'), current_setting('data_checksums'),"
    " pg_database_size(current_database()), pg_is_in_recovery()"
)
_ROLE: Final = "SELECT rolname, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
_UNFORCED: Final = (
    "SELECT coalesce(string_agg(relname, ', ' ORDER BY relname), '') FROM pg_class"
    f" WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind IN ('r', 'p')"
    " AND NOT (relrowsecurity AND relforcerowsecurity)"
    " AND relname NOT IN ('installed', 'embedder', 'owed')"
)
_PGVECTOR: Final = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
_CONTENT: Final = (
    "SELECT (SELECT count(*) FROM conversation), (SELECT count(*) FROM entry),"
    " (SELECT count(*) FROM segment), (SELECT count(*) FROM digest)"
)
_INDEX: Final = (
    "SELECT (SELECT coalesce(sum(next_seq), 0) FROM conversation)::bigint,"
    " (SELECT count(*) FROM search WHERE part = 0), (SELECT count(*) FROM said)"
)
_STRAY: Final = (
    "SELECT count(*) FROM (SELECT tenant, conversation FROM search UNION SELECT tenant,"
    " conversation FROM entry UNION SELECT tenant, conversation FROM segment UNION SELECT tenant,"
    " conversation FROM digest UNION SELECT tenant, conversation FROM vector) AS used"
    " WHERE NOT EXISTS (SELECT FROM conversation c WHERE c.tenant = used.tenant"
    " AND c.id = used.conversation)"
)


async def check(transaction: Transaction, *, thorough: bool) -> list[Finding]:
    """The findings; nothing is changed."""
    stray = _STRAY if thorough else "SELECT 0"
    answers = await transaction.each(
        (_SERVER, ()),
        ("SELECT max(version) FROM installed", ()),
        (_ROLE, ()),
        (_UNFORCED, ()),
        (_PGVECTOR, ()),
        (_CONTENT, ()),
        (_INDEX, ()),
        (stray, ()),
        ("SELECT (SELECT count(*) FROM card), (SELECT count(*) FROM seal)", ()),
    )
    server, version, role, unforced, vectors, content, index, ((strays,),), counts = answers
    ((count, sealed),) = counts
    damaged = await cards.damaged_cards(transaction) if thorough else []
    unsealed = await seals.all_damaged_rows(transaction) if thorough else None
    return [
        *_server(server[0]),
        Finding("schema", "ok", f"version {version[0][0]} of {max(migrate.shipped_migrations())}"),
        _policies(role[0], unforced[0][0]),
        Finding("vectors", "ok", _vectors(vectors)),
        _content(content[0], strays),
        _index(index[0]),
        _cards(count, damaged, thorough=thorough),
        seals_finding(sealed, unsealed),
    ]


def _server(row: Row) -> list[Finding]:
    version, fsync, pages, checksums, size, standby = row
    state: Literal["ok", "warning"] = "ok" if (fsync, pages) == ("on", "on") else "warning"
    settings = "every commit is durable"
    if state == "warning":
        settings = "fsync or full_page_writes is off: a power failure can lose or corrupt data"
    role = "a read-only standby" if standby else "read-write"
    sums = "page checksums on" if checksums == "on" else "page checksums off"
    return [
        Finding("PostgreSQL", "ok", f"{version}, {size / 1e6:,.1f} MB; {role}; {sums}"),
        Finding("settings", state, settings),
    ]


def _policies(role: Row, unforced: str) -> Finding:
    name, exempt = role
    if unforced:
        return Finding("tenants", "broken", f"no row-level security on {unforced}")
    if exempt:
        detail = f"policies do not apply to the role {name}; use one that is not a superuser"
        return Finding("tenants", "warning", detail)
    return Finding("tenants", "ok", f"row-level security applies to the role {name}")


def _vectors(found: list[Row]) -> str:
    if found:
        return f"compared in the database by pgvector {found[0][0]}"
    return "compared in each process; install pgvector to compare them in the database"


def _content(row: Row, stray: int) -> Finding:
    names = "conversations", "live messages", "segments", "digests"
    counts = ", ".join(f"{count:,} {name}" for count, name in zip(row, names, strict=True))
    if stray:
        return Finding("content", "broken", f"{counts}; rows of {stray:,} missing conversations")
    return Finding("content", "ok", counts)


def _index(row: Row) -> Finding:
    entries, indexed, dated = row
    if (indexed, dated) != (entries, entries):
        detail = f"{indexed:,} by word and {dated:,} by date of {entries:,}; use --rebuild-index"
        return Finding("search index", "broken", detail)
    return Finding("search index", "ok", f"{plural(indexed, 'message')}")


def _cards(count: int, damaged: list[str], *, thorough: bool) -> Finding:
    if damaged:
        return Finding("cards", "broken", f"{len(damaged):,} of {count:,}: {damaged[0]}")
    return Finding("cards", "ok", f"{count:,}{', all verified' if thorough else ''}")
