"""The indexes of the log by word and by date; updated while the writer is idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from operator import itemgetter
from typing import Any, Final

import apsw

from firnline.errors import StoreCorrupt
from firnline.language.stems import stem
from firnline.language.terms import (
    all_fact_terms,
    all_terms,
    fact_terms,
    index_terms,
    match_score,
    query_terms,
    role_term,
    searchable_text,
)
from firnline.log import limits
from firnline.log.entry import IndexMatch, Key, Record, Scope
from firnline.log.message import EPOCH, Message, decode, microseconds
from firnline.store.rows import page
from firnline.store.sqlite import log
from firnline.store.sqlite.connection import fetch_one

_RANK: Final = "bm25(1.0, 0.2, 0.1)"  # own words, words of the entry before, speaker and date
_EVER: Final = 1 << 62


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
        terms = " ".join(index_terms(searchable_text(message))) if message else ""
        if record.seq >= indexed:
            end = record.seq + 1
            if message is not None:
                id_ = found.entry_id(record.seq)
                words.append((id_, terms, before, " ".join(fact_terms(message))))
                dates.append((found.id, microseconds(message.created_at or EPOCH), record.seq))
        before = terms[: limits.INDEX_BEFORE_CHARS]
    insert = "INSERT INTO search (rowid, terms, before, facts) VALUES (?, ?, ?, ?)"
    connection.executemany(insert, words)
    connection.executemany("INSERT INTO said VALUES (?, ?, ?)", dates)
    connection.execute("UPDATE conversation SET indexed = ? WHERE id = ?", (end, found.id))
    return True


def unindexed(
    connection: apsw.Connection, tenant: str | None = None, conversation: str | None = None
) -> list[tuple[int, int]]:
    """The conversations with entries that are not indexed, and where their logs end."""
    return list(
        connection.execute(
            "SELECT id, next_seq FROM conversation WHERE indexed < next_seq"
            " AND (?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR name = ?2)",
            (tenant, conversation),
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
    asked = query_terms(query)
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


def _or_expression(terms: Sequence[tuple[str, ...]]) -> str:
    return " OR ".join('"' + " ".join(term) + '"' for term in terms)


def _rare_terms(
    connection: apsw.Connection, asked: Sequence[tuple[str, ...]]
) -> Sequence[tuple[str, ...]]:
    """The rarest terms, as many as a search can rank; at least one that occurs at all.

    Entries with only common terms would rank last; next to a rare term, common ones still count.
    """
    known = sorted(((_entries_with(connection, term), term) for term in asked), key=itemgetter(0))
    chosen: list[tuple[str, ...]] = []
    weighed = 0
    for entries, term in known:
        if weighed and weighed + entries > limits.SEARCH_WEIGHED_MAX:
            break
        chosen.append(term)
        weighed += entries
    return chosen


def _entries_with(connection: apsw.Connection, term: tuple[str, ...]) -> int:
    """The number of entries in the whole store that contain a term, at most."""
    counts = connection.executemany(
        "SELECT doc FROM term WHERE term = ? AND col = 'terms'", [(stem(word),) for word in term]
    )
    found = [int(count) for (count,) in counts]
    return min(found) if len(found) == len(term) else 0


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
    roles = " OR ".join(f'"{role_term(role)}"' for role in sorted(scope.roles))
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


def unindexed_matches(
    connection: apsw.Connection, tenant: str, query: str, scope: Scope, limit: int
) -> list[IndexMatch]:
    """Search unindexed entries by reading them: a read-only store cannot update its index."""
    found: list[IndexMatch] = []
    asked = set(query_terms(query))
    for id_, _ in unindexed(connection, tenant, scope.conversation):
        name, project, first = fetch_one(
            connection, "SELECT name, project, indexed FROM conversation WHERE id = ?", (id_,)
        )
        place = log.find(connection, Key(tenant, name))
        if place is None or scope.project not in (None, project) or scope.topics is not None:
            continue  # an unindexed entry has no topic
        if first < 0:
            raise StoreCorrupt(f"the row of the conversation {name!r} is damaged")
        for record in log.records(connection, place, first, place.next_seq - 1, tolerant=True):
            message = _message(record)
            if message is None or not scope.has(message):
                continue
            if match_score(asked, all_terms(message), all_fact_terms(message), set()):
                found.append(IndexMatch(name, record.seq, 0.0))
            if len(found) >= limit:
                return found
    return found


def _message(record: Record) -> Message | None:
    try:
        return None if record.problem else decode(record.body)
    except StoreCorrupt:
        return None  # it matches nothing; reading or verifying it reports the damage
