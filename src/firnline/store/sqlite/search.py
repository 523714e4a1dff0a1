"""The indexes of the log by word and by date; updated while the writer is idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from operator import itemgetter
from typing import Any, Final

import apsw

from firnline.errors import StoreCorrupt
from firnline.language.terms import entry_terms, fact_terms, match_score, role_term, search_terms
from firnline.log import limits
from firnline.log.entry import IndexMatch, Key, Record, Scope, runs
from firnline.log.message import EPOCH, Message, decode, microseconds
from firnline.store.erasure import NEVER
from firnline.store.rows import page
from firnline.store.sqlite import log
from firnline.store.sqlite.checksums import proven_reads
from firnline.store.sqlite.connection import fetch_one

_RANK: Final = "bm25(1.0, 0.2, 0.1)"  # own words, words of the entry before, speaker and date
_EVER: Final = 1 << 62
_TERMS_SINCE: Final = 7  # the schema since which terms are indexed as they are looked up
_INSERT: Final = "INSERT INTO search (rowid, terms, before, facts) VALUES (?, ?, ?, ?)"


def index_pending(connection: apsw.Connection, conversation: int, until: int = 1 << 32) -> bool:
    """Index the next page of entries before `until`; returns whether there may be more."""
    row = fetch_one(
        connection,
        "SELECT tenant, name, indexed, id, next_seq, total, hash, genesis FROM conversation"
        " WHERE id = ? AND indexed < min(next_seq, ?)",
        (conversation, until),
    )
    if not row:
        return False
    tenant, name, indexed, *rest = row
    found = log.SqliteRow.of(Key(tenant, name), rest)
    first = max(indexed - 1, 0)
    stored = log.records(connection, found, first, found.next_seq - 1, tolerant=True)
    words, dates, end, before = [], [], found.next_seq, ""
    for record in page(stored, limits.INDEX_PAGE + 1):
        message = _message(record)
        terms = " ".join(entry_terms(message)) if message else ""
        if record.seq >= indexed:
            end, id_ = record.seq + 1, found.entry_id(record.seq)
            if record.erased:
                words.append((id_, "", "", ""))
                dates.append((found.id, NEVER, record.seq))
            if message is not None:
                words.append((id_, terms, before, " ".join(fact_terms(message))))
                dates.append((found.id, microseconds(message.created_at or EPOCH), record.seq))
        before = terms[: limits.INDEX_BEFORE_CHARS]
    with proven_reads(connection):  # written again, a damaged page would look right
        connection.executemany(_INSERT, words)
        connection.executemany("INSERT INTO said VALUES (?, ?, ?)", dates)
    connection.execute("UPDATE conversation SET indexed = ? WHERE id = ?", (end, found.id))
    return True


def forget(connection: apsw.Connection, found: log.SqliteRow, seqs: Sequence[int]) -> None:
    """Delete entries from the indexes, and their words from the rows of the entries after them."""
    (indexed,) = fetch_one(connection, "SELECT indexed FROM conversation WHERE id = ?", (found.id,))
    there = [seq for seq in seqs if seq < indexed]
    ids = [(found.entry_id(seq),) for seq in there]
    connection.executemany("DELETE FROM search WHERE rowid = ?", ids)
    connection.executemany(_INSERT, [(*id_, "", "", "") for id_ in ids])
    for first, last in runs(seqs):
        connection.execute(
            "DELETE FROM said WHERE conversation = ? AND seq BETWEEN ? AND ?",
            (found.id, first, last),
        )
        connection.executemany(
            "INSERT INTO said VALUES (?, ?, ?)",
            [(found.id, NEVER, seq) for seq in range(first, min(last + 1, indexed))],
        )
        after = last + 1
        if after >= min(indexed, found.next_seq):
            continue
        for record in log.records(connection, found, after, after, tolerant=True):
            if message := _message(record):
                id_ = found.entry_id(after)
                terms = " ".join(entry_terms(message))
                connection.execute("DELETE FROM search WHERE rowid = ?", (id_,))
                connection.execute(_INSERT, (id_, terms, "", " ".join(fact_terms(message))))


def unindexed(
    connection: apsw.Connection,
    tenant: str | None = None,
    conversation: str | None = None,
    *,
    everything: bool = False,
) -> list[tuple[int, int]]:
    """The conversations with entries that are not indexed, or all, and where their logs end."""
    return list(
        connection.execute(
            "SELECT id, next_seq FROM conversation WHERE (?3 OR indexed < next_seq)"
            " AND (?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR name = ?2)",
            (tenant, conversation, everything),
        )
    )


def clear(connection: apsw.Connection) -> None:
    """Empty the indexes, so that they are rebuilt from the log."""
    connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
    connection.execute("DELETE FROM said")
    connection.execute("UPDATE conversation SET indexed = 0")


def matches(
    connection: apsw.Connection, tenant: str, query: str, scope: Scope, limit: int
) -> list[IndexMatch]:
    """Search the index: first entries with the words, then entries by speaker and date."""
    asked = search_terms(query)
    if not asked or limit <= 0:
        return []
    words = _or_expression(asked)
    rare = _rare_terms(connection, asked)
    said = f"(terms : ({_or_expression(rare)})) AND ({{terms before facts}} : ({words}))"
    found = _matches(connection, tenant, said, scope, limit)
    if not found and len(rare) < len(asked):  # the rare terms occur only outside the scope
        found = _matches(connection, tenant, f"terms : ({words})", scope, limit)
    if len(found) < limit:
        # A speaker's terms are in half of all entries; ranking all of them is slow.
        known = {match[:2] for match in found}
        about = _matches(connection, tenant, f"facts : ({words})", scope, limit)
        found += [match for match in about if match[:2] not in known]
    return found[:limit]


def _or_expression(terms: Sequence[str]) -> str:
    return " OR ".join(f'"{term}"' for term in terms)


def _rare_terms(connection: apsw.Connection, asked: Sequence[str]) -> Sequence[str]:
    """The rarest terms, as many as a search can rank; at least one that occurs at all.

    Entries with only common terms would rank last; next to a rare term, common ones still count.
    """
    known = sorted(((_entries_with(connection, term), term) for term in asked), key=itemgetter(0))
    chosen: list[str] = []
    weighed = 0
    for entries, term in known:
        if weighed and weighed + entries > limits.SEARCH_WEIGHED_MAX:
            break
        chosen.append(term)
        weighed += entries
    return chosen


def _entries_with(connection: apsw.Connection, term: str) -> int:
    """The number of entries in the whole store that contain a term."""
    row = fetch_one(connection, "SELECT doc FROM term WHERE term = ? AND col = 'terms'", (term,))
    return int(row[0]) if row else 0


def _matches(
    connection: apsw.Connection, tenant: str, expression: str, scope: Scope, limit: int
) -> list[IndexMatch]:
    values: dict[str, Any] = {"match": _of_roles(expression, scope), "tenant": tenant}
    where = ["search MATCH :match", f"rank MATCH '{_RANK}'", "c.tenant = :tenant"]
    if scope.conversation is not None:
        found = log.find(connection, Key(tenant, scope.conversation))
        if found is None:
            return []
        where += ["s.rowid BETWEEN :first AND :last", "c.id = :id"]
        values |= {"id": found.id, "first": found.entry_id(0), "last": found.entry_id(log.SEQ_MASK)}
    if scope.project is not None:
        where.append("c.project = :project")
        values["project"] = scope.project
    if scope.person is not None:
        where.append("c.person = :person")
        values["person"] = scope.person
    if scope.since is not None or scope.until is not None:
        where.append(_SAID)
        values["name"] = scope.conversation
        values["since"] = microseconds(scope.since) if scope.since else -_EVER
        values["until"] = microseconds(scope.until) if scope.until else _EVER
    rows = connection.execute(
        "SELECT s.rowid, -s.rank, c.name, c.id, c.next_seq, c.total, c.hash, c.genesis"  # noqa: S608
        " FROM search s CROSS JOIN conversation c ON c.id = s.rowid >> 32"
        f" WHERE {' AND '.join(where)} ORDER BY s.rank",
        values,
    )
    with closing(rows):
        return list(islice(_sound_matches(connection, tenant, rows, scope), limit))


_SAID: Final = (
    "s.rowid IN (SELECT d.conversation << 32 | d.seq FROM conversation o"
    " CROSS JOIN said d ON d.conversation = o.id WHERE o.tenant = :tenant"
    " AND (:name IS NULL OR o.name = :name) AND d.at >= :since AND d.at < :until)"
)


def _of_roles(expression: str, scope: Scope) -> str:
    if not scope.roles:
        return expression
    roles = _or_expression([role_term(role) for role in sorted(scope.roles)])
    return f"({expression}) AND (facts : ({roles}))"


def _sound_matches(
    connection: apsw.Connection, tenant: str, rows: apsw.Cursor, scope: Scope
) -> Iterator[IndexMatch]:
    """Yield the rows within the scope's topics; a damaged conversation raises `StoreCorrupt`."""
    checked: set[int] = set()
    for rowid, points, name, *about in rows:
        if about[0] not in checked:
            log.SqliteRow.of(Key(tenant, str(name)), about)
            checked.add(about[0])
        seq = rowid & log.SEQ_MASK
        if scope.topics is None or _in_topics(connection, about[0], name, seq, scope.topics):
            yield IndexMatch(name, seq, points)


def _in_topics(
    connection: apsw.Connection,
    conversation: int,
    name: str,
    seq: int,
    topics: tuple[tuple[str, int], ...],
) -> bool:
    row = fetch_one(
        connection,
        "SELECT topic FROM member WHERE conversation = ? AND seq = ?",
        (conversation, seq),
    )
    return bool(row) and (name, row[0]) in topics


def is_outdated(connection: apsw.Connection) -> bool:
    """Whether an older Firnline made the index; only a store that may write can rebuild it."""
    return int(fetch_one(connection, "PRAGMA user_version")[0]) < _TERMS_SINCE


def unindexed_matches(
    connection: apsw.Connection, tenant: str, query: str, scope: Scope, limit: int
) -> list[IndexMatch]:
    """Search unindexed entries by reading them: a read-only store cannot update its index."""
    asked = frozenset(search_terms(query))
    found: list[IndexMatch] = []
    for id_, name, seq, message in _unindexed_entries(connection, tenant, scope):
        own, facts = frozenset(entry_terms(message)), frozenset(fact_terms(message))
        if not match_score(asked, own, facts, frozenset()):
            continue
        if scope.topics is None or _in_topics(connection, id_, name, seq, scope.topics):
            found.append(IndexMatch(name, seq, 0.0))
        if len(found) >= limit:
            break
    return found


def _unindexed_entries(
    connection: apsw.Connection, tenant: str, scope: Scope
) -> Iterator[tuple[int, str, int, Message]]:
    """Entries that are not indexed and in scope, but for its topics: conversation and message."""
    outdated = is_outdated(connection)
    for id_, _ in unindexed(connection, tenant, scope.conversation, everything=outdated):
        name, project, person, first = fetch_one(
            connection,
            "SELECT name, project, person, indexed FROM conversation WHERE id = ?",
            (id_,),
        )
        place = log.find(connection, Key(tenant, name))
        if place is None or scope.project not in (None, project):
            continue
        if scope.person not in (None, person):
            continue
        if first < 0:
            raise StoreCorrupt(f"the row of the conversation {name!r} is damaged")
        start = 0 if outdated else first
        for record in log.records(connection, place, start, place.next_seq - 1, tolerant=True):
            message = _message(record)
            if message is not None and scope.has(message):
                yield id_, name, record.seq, message


def _message(record: Record) -> Message | None:
    try:
        return None if record.problem else decode(record.body)
    except StoreCorrupt:
        return None  # it matches nothing; reading or verifying it reports the damage
