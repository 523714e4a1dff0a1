"""The indexes of the log by word and by date; updated while the writer is idle."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import apsw

from firnline.errors import StoreCorrupt
from firnline.language.terms import WantedWord, index_entry, role_term, wanted_words
from firnline.log import limits
from firnline.log.entry import IndexMatch, Key, Record, Scope, runs
from firnline.log.message import EPOCH, Message, decode, microseconds
from firnline.store import word_scores
from firnline.store.erasure import NEVER
from firnline.store.rows import page
from firnline.store.sqlite import log
from firnline.store.sqlite.checksums import proven_reads
from firnline.store.sqlite.connection import fetch_one
from firnline.store.sqlite.write_buffer import Behind

_EVER: Final = 1 << 62
_TERMS_SINCE: Final = 10  # the schema since which terms are indexed as they are looked up
_CANDIDATES_MAX: Final = 4 * limits.SEARCH_WEIGHED_MAX
_INSERT: Final = "INSERT INTO search (rowid, terms) VALUES (?, ?)"
WRITE_NOW: Final = "INSERT INTO search (search) VALUES ('flush')"
"""FTS5 would write at the commit, which reads and merges pages."""
_TABLES: Final = "said", "search_data", "search_idx", "search_docsize"
_ENTRIES: Final = (
    "SELECT coalesce(sum(next_seq), 0) FROM (SELECT next_seq FROM conversation WHERE tenant = ?"
    " ORDER BY id LIMIT 1000)"
)


class _Additions(NamedTuple):
    """What a transaction adds to the indexes."""

    words: list[tuple[int, str]]
    dates: list[tuple[int, int, int]]
    ends: list[tuple[int, int]]


def index_page(connection: apsw.Connection, behind: list[Behind]) -> list[Behind]:
    """Index a page of entries of these conversations; returns what is left of them."""
    added, done = _Additions([], [], []), 0
    while done < len(behind) and _collect(connection, *behind[done], added):
        done += 1
    with proven_reads(connection):  # written again, a damaged page would look right
        connection.executemany(_INSERT, added.words)
        connection.execute(WRITE_NOW)
        connection.executemany("INSERT INTO said VALUES (?, ?, ?)", added.dates)
    connection.executemany("UPDATE conversation SET indexed = ? WHERE id = ?", added.ends)
    return behind[done:]


def _collect(connection: apsw.Connection, id_: int, until: int, added: _Additions) -> bool:
    """Add a conversation's entries to the page; False once it is full."""
    room = limits.INDEX_PAGE - len(added.words)
    row = fetch_one(
        connection,
        "SELECT tenant, name, indexed, id, next_seq, total, hash, genesis FROM conversation"
        " WHERE id = ? AND indexed < min(next_seq, ?)",
        (id_, until),
    )
    if not row or room <= 0:
        return not row
    tenant, name, indexed, *rest = row
    found = log.SqliteRow.of(Key(tenant, name), rest)
    stored = log.records(connection, found, indexed, found.next_seq - 1, tolerant=True)
    end = found.next_seq
    for record in page(stored, room):
        message = _message(record)
        end, rowid = record.seq + 1, found.entry_id(record.seq)
        if record.erased:
            added.words.append((rowid, ""))
            added.dates.append((found.id, NEVER, record.seq))
        if message is not None:
            added.words.append((rowid, " ".join(index_entry(message).every)))
            said = microseconds(message.created_at or EPOCH)
            added.dates.append((found.id, said, record.seq))
    added.ends.append((end, found.id))
    return end >= min(found.next_seq, until)


def forget(connection: apsw.Connection, found: log.SqliteRow, seqs: Sequence[int]) -> None:
    """Delete entries from the indexes."""
    (indexed,) = fetch_one(connection, "SELECT indexed FROM conversation WHERE id = ?", (found.id,))
    there = [seq for seq in seqs if seq < indexed]
    ids = [(found.entry_id(seq),) for seq in there]
    with proven_reads(connection):  # written again, a damaged page would look right
        connection.executemany("DELETE FROM search WHERE rowid = ?", ids)
        connection.executemany(_INSERT, [(*id_, "") for id_ in ids])
        connection.execute(WRITE_NOW)
        for first, last in runs(seqs):
            connection.execute(
                "DELETE FROM said WHERE conversation = ? AND seq BETWEEN ? AND ?",
                (found.id, first, last),
            )
            connection.executemany(
                "INSERT INTO said VALUES (?, ?, ?)",
                [(found.id, NEVER, seq) for seq in range(first, min(last + 1, indexed))],
            )


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


def read_all(connection: apsw.Connection) -> None:
    """Read the indexes, to find damaged pages."""
    for table in _TABLES:
        for _ in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608
            pass


def clear(connection: apsw.Connection) -> None:
    """Empty the indexes, so that they are rebuilt from the log."""
    connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
    connection.execute("DELETE FROM said")
    connection.execute("UPDATE conversation SET indexed = 0")


def matches(
    connection: apsw.Connection, tenant: str, query: str, scope: Scope, limit: int
) -> list[IndexMatch]:
    """Search the index: see `word_scores` for what is found in which order."""
    wanted = wanted_words(query)
    within = _within(connection, tenant, scope)
    if not wanted or limit <= 0 or within is None:
        return []
    counts = [_entries_with(connection, tenant, word) for word in wanted]
    (total,) = fetch_one(connection, _ENTRIES, (tenant,))
    question = _Asked(wanted, word_scores.weights(counts, total), within, limit)
    leading = word_scores.leading(counts, short=within.short)
    ranked = _ranked(connection, question, _any_own(wanted, leading), leading)
    if not ranked and len(leading) < len(wanted):  # the rare words occur only outside the scope
        leading = list(range(len(wanted)))
        ranked = _ranked(connection, question, _any_own(wanted, leading), leading)
    if len(ranked) < limit:
        # A speaker's terms are in half of all entries; ranking all of them is slow.
        fact_terms = _any(term for word in wanted for term in word.facts)
        ranked |= _ranked(connection, question, fact_terms, leading, ranked)
    if len(ranked) < limit and (longer := _longer(wanted)):
        ranked |= _in_longer_words(connection, question, longer, ranked)
    return _to_matches(connection, tenant, dict(islice(ranked.items(), limit)))


class _Within(NamedTuple):
    """A scope as SQL and its values; `short`: it is a conversation of which all can be ranked."""

    where: Sequence[str]
    values: Mapping[str, Any]
    short: bool
    roles: str


class _Asked(NamedTuple):
    """What is looked for, how much each word weighs, and where."""

    wanted: Sequence[WantedWord]
    weights: Sequence[int]
    within: _Within
    limit: int


_Ranked: TypeAlias = dict[int, tuple[str, float]]
"""Found entries by their ids, best first: the conversation, and the score."""


def _any(terms: Iterable[str]) -> str:
    return " OR ".join(f'"{term}"' for term in terms)


def _any_own(wanted: Sequence[WantedWord], numbers: Iterable[int]) -> str:
    return _any(term for number in numbers for term in wanted[number].terms)


def _longer(wanted: Sequence[WantedWord]) -> list[str]:
    """For each word that can be part of a longer one, the expression that finds it there."""
    parts = (word.parts for word in wanted if word.parts)
    return [" AND ".join(f'"{part}"' for part in some) for some in parts]


def _entries_with(connection: apsw.Connection, tenant: str, word: WantedWord) -> int:
    """How many of the tenant's entries have a word; if many of the store have it, that many."""
    every, own = fetch_one(
        connection,
        "SELECT count(*), coalesce(sum(c.tenant = ?), 0) FROM"
        " (SELECT rowid AS id FROM search WHERE search MATCH ? LIMIT ?) s"
        " CROSS JOIN conversation c ON c.id = s.id >> 32",
        (tenant, _any(word.terms), limits.SEARCH_WEIGHED_MAX),
    )
    return int(every if every == limits.SEARCH_WEIGHED_MAX else own)


def _ranked(
    connection: apsw.Connection,
    asked: _Asked,
    match: str,
    led: Sequence[int],
    known: Container[int] = (),
) -> _Ranked:
    """The entries in scope that the expression finds, best first, but for the known ones."""
    entries = {
        id_: about
        for id_, *about in _candidates(connection, match, asked.within)
        if id_ not in known
    }
    if not entries:
        return {}
    points = _points(connection, asked, match, led, entries)
    scored = (
        (id_, name, word_scores.score(points[id_], _terms_in(size)))
        for id_, (name, size) in entries.items()
    )
    return _best(scored, asked.limit)


def _points(
    connection: apsw.Connection,
    asked: _Asked,
    match: str,
    led: Sequence[int],
    entries: Collection[int],
) -> dict[int, int]:
    """The points of entries that the expression finds."""
    points = dict.fromkeys(entries, 0)
    span = min(entries) - 1, max(entries)
    every_fact = _any(term for word in asked.wanted for term in word.facts)
    any_fact = any(id_ in points for id_ in _ids(connection, f"({every_fact}) AND ({match})", span))
    for number, (word, weight) in enumerate(zip(asked.wanted, asked.weights, strict=True)):
        own = _any(word.terms)
        for id_ in _ids(connection, own if number in led else f"({own}) AND ({match})", span):
            if id_ in points:
                points[id_] += word_scores.OWN * weight
            after = id_ + 1
            if number in led and after in points and after & log.SEQ_MASK:
                points[after] += word_scores.NEAR * weight
        for id_ in (
            _ids(connection, f"({_any(word.facts)}) AND ({match})", span) if any_fact else ()
        ):
            if id_ in points:
                points[id_] += word_scores.FACT * weight
    return points


def _in_longer_words(
    connection: apsw.Connection, asked: _Asked, longer: Sequence[str], known: Container[int]
) -> _Ranked:
    """The entries in scope with words of which the wanted ones are parts, but for the known."""
    counts: Counter[int] = Counter()
    entries: dict[int, tuple[str, bytes]] = {}
    for expression in longer:
        for id_, name, size in _candidates(connection, expression, asked.within):
            if id_ not in known:
                counts[id_] += 1
                entries[id_] = name, size
    scored = (
        (id_, name, word_scores.score(counts[id_], _terms_in(size)))
        for id_, (name, size) in entries.items()
    )
    return _best(scored, asked.limit)


def _best(entries: Iterable[tuple[int, str, float]], limit: int) -> _Ranked:
    order = ((-score, name, -id_) for id_, name, score in entries)
    return {-id_: (name, -score) for score, name, id_ in nsmallest(limit, order)}


def _ids(connection: apsw.Connection, match: str, span: tuple[int, int]) -> Iterator[int]:
    """The newest entries that an expression finds, in a range of ids."""
    rows = connection.execute(
        "SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ?"
        " ORDER BY rowid DESC LIMIT ?",
        (match, *span, _CANDIDATES_MAX),
    )
    return (id_ for (id_,) in rows)


def _candidates(connection: apsw.Connection, match: str, within: _Within) -> list[Any]:
    """The newest entries in scope that an expression finds: id, conversation and size."""
    return list(
        connection.execute(
            "SELECT s.rowid, c.name, z.sz FROM search s"  # noqa: S608
            " CROSS JOIN conversation c ON c.id = s.rowid >> 32"
            " CROSS JOIN search_docsize z ON z.id = s.rowid"
            f" WHERE search MATCH :match AND {' AND '.join(within.where)}"
            f" ORDER BY s.rowid DESC LIMIT {_CANDIDATES_MAX}",
            {**within.values, "match": f"({match}){within.roles}"},
        )
    )


def _terms_in(size: bytes) -> int:
    """The number of an entry's terms, as FTS5 writes it: seven bits to a byte."""
    number = 0
    for byte in size:
        number = number << 7 | byte & 0x7F
    return number


def _within(connection: apsw.Connection, tenant: str, scope: Scope) -> _Within | None:
    """The scope; None if nothing can be in it."""
    values: dict[str, Any] = {"tenant": tenant}
    where, short = ["c.tenant = :tenant"], False
    if scope.topics == ():
        return None
    if scope.conversation is not None:
        found = log.find(connection, Key(tenant, scope.conversation))
        if found is None:
            return None
        short = found.next_seq <= limits.SEARCH_WEIGHED_MAX
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
    if scope.topics is not None:
        where.append(_IN_TOPICS)
        values["topics"] = json.dumps([list(topic) for topic in scope.topics])
    roles = _any(role_term(role) for role in sorted(scope.roles))
    return _Within(where, values, short, f" AND ({roles})" if roles else "")


_SAID: Final = (
    "s.rowid IN (SELECT d.conversation << 32 | d.seq FROM conversation o"
    " CROSS JOIN said d ON d.conversation = o.id WHERE o.tenant = :tenant"
    " AND (:name IS NULL OR o.name = :name) AND d.at >= :since AND d.at < :until)"
)
_IN_TOPICS: Final = (
    "(c.name, (SELECT m.topic FROM member m WHERE m.conversation = c.id"
    " AND m.seq = s.rowid & 4294967295)) IN"
    " (SELECT value ->> 0, value ->> 1 FROM json_each(:topics))"
)


def _to_matches(connection: apsw.Connection, tenant: str, found: _Ranked) -> list[IndexMatch]:
    """The found entries; raises `StoreCorrupt` if the row of a conversation is damaged."""
    for name in {name for name, _ in found.values()}:
        log.find(connection, Key(tenant, name))
    return [IndexMatch(name, id_ & log.SEQ_MASK, score) for id_, (name, score) in found.items()]


def is_outdated(connection: apsw.Connection) -> bool:
    """Whether an older Firnline made the index; only a store that may write can rebuild it."""
    return int(fetch_one(connection, "PRAGMA user_version")[0]) < _TERMS_SINCE


def unindexed_matches(
    connection: apsw.Connection, tenant: str, query: str, scope: Scope, limit: int
) -> list[IndexMatch]:
    """Search unindexed entries by reading them: a read-only store cannot update its index."""
    wanted = wanted_words(query)
    topics = None if scope.topics is None else set(scope.topics)
    found: list[IndexMatch] = []
    for id_, name, seq, message in _unindexed_entries(connection, tenant, scope):
        terms = index_entry(message)
        if any(map(terms.have, wanted)) and (
            topics is None or (name, _topic_of(connection, id_, seq)) in topics
        ):
            found.append(IndexMatch(name, seq, 0.0))
        if len(found) >= limit:
            break
    return found


def _topic_of(connection: apsw.Connection, conversation: int, seq: int) -> int:
    row = fetch_one(
        connection,
        "SELECT topic FROM member WHERE conversation = ? AND seq = ?",
        (conversation, seq),
    )
    return int(row[0]) if row else -1


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
