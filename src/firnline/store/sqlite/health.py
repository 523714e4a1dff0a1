"""The store's health: what `firnline doctor` prints."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw

from firnline.log.text import plural
from firnline.protocols import Finding
from firnline.store.limits import LOG_BYTES_HEALTHY
from firnline.store.seals import seals_finding
from firnline.store.sqlite import cards, checksums, erase, migrate, seals
from firnline.store.sqlite.commit_record import has_log, missing_commits, read_record
from firnline.store.sqlite.connection import PRAGMAS, DatabaseFile, fetch_one

_ROOM_MIN = 64 * 1024 * 1024
_CONTENT = {
    "conversation": "conversations",
    "entry": "live messages",
    "segment": "segments",
    "digest": "digests",
}


def check(connection: apsw.Connection, place: DatabaseFile, *, thorough: bool) -> list[Finding]:
    """All checks; none of them changes anything."""
    commits = _commits(connection, place)  # first: before it, nothing may have been read
    version = fetch_one(connection, "PRAGMA user_version")[0]
    counts = ", ".join(
        f"{fetch_one(connection, f'SELECT count(*) FROM {table}')[0]:,} {words}"  # noqa: S608
        for table, words in _CONTENT.items()
    )
    return [
        Finding("SQLite", "ok", f"{apsw.sqlite_lib_version()} by apsw {apsw.apsw_version()}"),
        Finding("schema", "ok", f"version {version} of {max(migrate.shipped_migrations())}"),
        Finding("content", "ok", counts),
        _settings(connection, place),
        commits,
        _pages(connection, thorough=thorough),
        _checksums(connection, place, thorough=thorough),
        _index(connection),
        _cards(connection, thorough=thorough),
        _seals(connection, thorough=thorough),
        _erasures(connection),
        _room(place.path),
        _write_ahead_log(place.path),
    ]


def _commits(connection: apsw.Connection, place: DatabaseFile) -> Finding:
    record = read_record(place.path)
    missing = missing_commits(connection, place, record)
    if record is None and not missing and has_log(place.path):
        detail = "the write-ahead log has no record next to it: whether it is whole is not known"
        return Finding("commits", "warning", detail)
    return Finding("commits", "broken" if missing else "ok", missing or "none missing")


def _settings(connection: apsw.Connection, place: DatabaseFile) -> Finding:
    if place.immutable:
        return Finding("settings", "ok", "on a read-only medium; no other process may write to it")
    wanted = {**PRAGMAS, "journal_mode": "wal", "synchronous": "2" if place.full_sync else "1"}
    found = {name: str(fetch_one(connection, f"PRAGMA {name}")[0]) for name in wanted}
    wrong = {name: value for name, value in found.items() if value != wanted[name]}
    if wrong:
        return Finding("settings", "broken", f"unexpected: {wrong}")
    if not place.full_sync:
        return Finding("settings", "warning", "durability=process: a power cut can lose messages")
    return Finding("settings", "ok", "write-ahead log, every commit synced")


def _pages(connection: apsw.Connection, *, thorough: bool) -> Finding:
    pragma = "integrity_check" if thorough else "quick_check"
    problems = [row[0] for row in connection.execute(f"PRAGMA {pragma}(10)")]
    if problems != ["ok"]:
        return Finding("pages", "broken", "; ".join(problems))
    return Finding("pages", "ok", "every page read" if thorough else "structure checked")


def damaged_pages(place: DatabaseFile) -> list[int]:
    """The pages in the file whose checksum is wrong."""
    if checksums.checksum_vfs() is None:
        return []
    return list(checksums.damaged_pages(place.path, changing=has_log(place.path)))


def lacks_checksums(connection: apsw.Connection, place: DatabaseFile) -> bool:
    """Whether pages of a database with checksums have wrong ones."""
    return checksums.has_room(connection) and bool(damaged_pages(place))


def _checksums(connection: apsw.Connection, place: DatabaseFile, *, thorough: bool) -> Finding:
    """Whether every page has its checksum, also those that no row covers."""
    name = "page checksums"
    if not has_log(place.path) and checksums.is_cut(place.path):
        return Finding(name, "broken", "the file was cut off within its last page")
    if not checksums.has_room(connection):
        detail = "none; a copy made by `firnline backup` has them"
        return Finding(name, "ok" if checksums.checksum_vfs() is None else "warning", detail)
    if checksums.checksum_vfs() is None:
        return Finding(name, "warning", "not verified: install apsw from its wheel")
    damaged = damaged_pages(place) if thorough else []
    if damaged:
        named = checksums.name_pages(connection, damaged)
        detail = f"damaged, or written by another program: {named}; `firnline verify` tells"
        return Finding(name, "broken", detail)
    return Finding(name, "ok", "every page verified" if thorough else "not read")


def _index(connection: apsw.Connection) -> Finding:
    (waiting,) = fetch_one(
        connection, "SELECT coalesce(sum(next_seq - indexed), 0) FROM conversation"
    )
    (entries,) = fetch_one(connection, "SELECT coalesce(sum(indexed), 0) FROM conversation")
    (indexed,) = fetch_one(connection, "SELECT count(*) FROM search_docsize")
    (dated,) = fetch_one(connection, "SELECT count(*) FROM said")
    if (indexed, dated) != (entries, entries):
        detail = f"{indexed:,} by word and {dated:,} by date of {entries:,}; use --rebuild-index"
        return Finding("search index", "broken", detail)
    return Finding("search index", "ok", f"{plural(indexed, 'message')}, {waiting:,} waiting")


def _cards(connection: apsw.Connection, *, thorough: bool) -> Finding:
    if not fetch_one(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'card'"):
        return Finding("cards", "ok", "none; the schema is older")
    (count,) = fetch_one(connection, "SELECT count(*) FROM card")
    damaged = list(cards.damaged_cards(connection)) if thorough else []
    if damaged:
        return Finding("cards", "broken", f"{len(damaged):,} of {count:,}: {damaged[0]}")
    return Finding("cards", "ok", f"{count:,}{', each one read' if thorough else ''}")


def _seals(connection: apsw.Connection, *, thorough: bool) -> Finding:
    (count,) = fetch_one(connection, "SELECT count(*) FROM seal")
    return seals_finding(count, seals.all_damaged_rows(connection) if thorough else None)


def _erasures(connection: apsw.Connection) -> Finding:
    if erase.scrub_pending(connection):
        return Finding("erasures", "warning", "one is unfinished; opening the store finishes it")
    return Finding("erasures", "ok", "none unfinished")


def _room(path: Path) -> Finding:
    free = shutil.disk_usage(path.parent).free
    state = "ok" if free >= _ROOM_MIN else "warning"
    return Finding("disk", state, f"{free / 1e9:,.1f} GB free")  # type: ignore[arg-type]


def _write_ahead_log(path: Path) -> Finding:
    # By name, never by open(): closing one of the database's files drops SQLite's locks.
    log = path.with_name(path.name + "-wal")
    size = log.stat().st_size if log.exists() else 0
    state = "ok" if size <= LOG_BYTES_HEALTHY else "warning"
    return Finding("write-ahead log", state, f"{size / 1e6:,.1f} MB")  # type: ignore[arg-type]
