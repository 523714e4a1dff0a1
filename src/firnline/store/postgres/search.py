"""Word search: candidates from the index, ranked by how rare their words are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from firnline.language.terms import search_terms
from firnline.log import limits
from firnline.log.entry import IndexMatch, Key, Scope
from firnline.log.message import microseconds
from firnline.store.postgres import log, words
from firnline.store.postgres.connection import Query, Row, Transaction
from firnline.store.rows import USUAL_WORDS, ConversationRow

# PostgreSQL samples very frequent words. Sequential scans are off, because the planner chooses one
# for words without statistics. Sorts are off, because under a row-level policy the planner
# underestimates a tenant's conversations a hundredfold and sorts all to find the first.
_BOUNDED: Final = (
    f"SELECT set_config('gin_fuzzy_search_limit', '{limits.SEARCH_WEIGHED_MAX}', true),"
    " set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)"
)
_ENTRIES_WITH: Final = (
    "SELECT (SELECT count(*) FROM search WHERE words @@ asked.term)"
    " FROM unnest(%(own)s::tsquery[]) WITH ORDINALITY AS asked (term, place) ORDER BY place"
)
_ENTRIES: Final = (
    "SELECT coalesce(sum(next_seq), 0)::bigint FROM"
    " (SELECT next_seq FROM conversation WHERE tenant = %(tenant)s"
    " ORDER BY id LIMIT 1000) AS counted"
)
# BM25 without term frequencies: an entry's own words count most, then those of the previous entry,
# then speaker and date. OFFSET 0: the previous entry is looked up once.
_RANKED: Final = (
    "SELECT c.name, ranked.seq, ranked.score, c.id, c.next_seq, c.total, c.hash, c.genesis FROM"
    " (SELECT conversation, seq, weight"
    " / (1 + 1.2::float8 * (0.25::float8 + 0.75::float8 * length(words) / %(usual)s)) AS score FROM"
    " (SELECT conversation, seq, words, (SELECT b.words FROM search b WHERE b.tenant = s.tenant"
    " AND b.conversation = s.conversation AND b.seq = s.seq - 1 AND b.part = 0) AS before"
    " FROM search s WHERE tenant = %(tenant)s AND words @@ %(match)s::tsquery{where} OFFSET 0)"
    " AS found CROSS JOIN LATERAL (SELECT sum(weight * (2.2::float8 * (words @@ own)::int"
    " + 0.44::float8 * coalesce((before @@ own)::int, 0) + 0.22::float8 * (words @@ fact)::int))"
    " AS weight FROM unnest(%(own)s::tsquery[], %(facts)s::tsquery[], %(weights)s::float8[])"
    " AS asked (own, fact, weight)) AS weighed"
    " ORDER BY score DESC, conversation, seq DESC LIMIT %(limit)s) AS ranked"
    " JOIN conversation c ON c.tenant = %(tenant)s AND c.id = ranked.conversation"
    " ORDER BY ranked.score DESC, ranked.conversation, ranked.seq DESC"
)


class _PostgresTerms(NamedTuple):
    """The indexed terms of a query, and how many entries contain each."""

    own: list[str]
    facts: list[str]
    counts: list[int]
    entries: int


async def matches(
    transaction: Transaction, tenant: str, query: str, scope: Scope, limit: int
) -> list[IndexMatch]:
    """Entries that contain the words, then those whose speaker or date the query names."""
    terms = search_terms(query)
    if not terms or limit <= 0 or scope.topics == ():
        return []
    transaction.later(_BOUNDED)
    own = [words.lexeme(tenant, term) for term in terms]
    facts = [words.of_fact(tenant, term) for term in terms]
    found, asked = await _count_terms(transaction, tenant, scope, own, facts)
    if scope.conversation is not None and found is None:
        return []
    selective = _rare_terms(asked, found)
    done = await _rank(transaction, tenant, asked, selective, scope, limit)
    if not done and len(selective) < len(own):  # the rare terms are only in other scopes
        done = await _rank(transaction, tenant, asked, own, scope, limit)
    if len(done) < limit:
        known = {match[:2] for match in done}
        about = await _rank(transaction, tenant, asked, facts, scope, limit)
        done += [match for match in about if match[:2] not in known]
    return done[:limit]


async def _count_terms(
    transaction: Transaction, tenant: str, scope: Scope, own: list[str], facts: list[str]
) -> tuple[ConversationRow | None, _PostgresTerms]:
    """The searched conversation, if it is a single one, and the frequencies of the terms."""
    values = {"tenant": tenant, "own": [words.any_of([item]) for item in own]}
    queries: list[Query] = [(_ENTRIES_WITH, values), (_ENTRIES, values)]
    if scope.conversation is None:
        found, answers = None, await transaction.each(*queries)
    else:
        key = Key(tenant, scope.conversation)
        found, answers = await log.find_with(transaction, key, *queries)
    counts, ((entries,),) = answers
    return found, _PostgresTerms(own, facts, [count for (count,) in counts], entries)


def _rare_terms(asked: _PostgresTerms, found: ConversationRow | None) -> list[str]:
    """The rarest terms, as many as a search can rank; at least one that occurs.

    Entries with only the other terms would rank last; the others still add to the score. All terms
    if the conversation is short.
    """
    if found is not None and found.next_seq <= limits.SEARCH_WEIGHED_MAX:
        return asked.own
    chosen: list[str] = []
    weighed = 0
    for count, term in sorted(zip(asked.counts, asked.own, strict=True)):
        if weighed and weighed + count > limits.SEARCH_WEIGHED_MAX:
            break
        chosen.append(term)
        weighed += count
    return chosen


async def _rank(
    transaction: Transaction,
    tenant: str,
    asked: _PostgresTerms,
    leading: Sequence[str],
    scope: Scope,
    limit: int,
) -> list[IndexMatch]:
    """The best entries that contain any of the `leading` terms."""
    where, values = _within(tenant, scope)
    match = words.any_of(leading)
    if scope.roles:
        roles = words.any_of(words.of_role(tenant, role) for role in sorted(scope.roles))
        match = f"({match}) & ({roles})"
    entries = max(asked.entries, *asked.counts) + 1
    weights = [math.log(1 + (entries - n + 0.5) / (n + 0.5)) for n in asked.counts]
    rows = await transaction.rows(
        _RANKED.format(where=where),
        {
            **values,
            "match": match,
            "own": [words.any_of([item]) for item in asked.own],
            "facts": [words.any_of([item]) for item in asked.facts],
            "weights": weights,
            "usual": USUAL_WORDS,
            "limit": limit,
        },
    )
    return _to_matches(tenant, rows)


def _to_matches(tenant: str, rows: Sequence[Row]) -> list[IndexMatch]:
    """The rows as matches, each entry once; raises if a conversation is damaged."""
    best: dict[tuple[str, int], IndexMatch] = {}
    checked: set[int] = set()
    for name, seq, score, *about in rows:
        if about[0] not in checked:
            ConversationRow.of(Key(tenant, name), about)
            checked.add(about[0])
        best.setdefault((name, seq), IndexMatch(name, seq, score))
    return list(best.values())


def _within(tenant: str, scope: Scope) -> tuple[str, Mapping[str, Any]]:
    """The scope as a condition and its values."""
    parts: list[str] = []
    values: dict[str, Any] = {"tenant": tenant, "name": scope.conversation}
    if scope.conversation is not None:
        parts.append(f" AND conversation = {log.ID}")
    if scope.project is not None:
        parts.append(
            " AND conversation IN (SELECT id FROM conversation"
            " WHERE tenant = %(tenant)s AND project = %(project)s)"
        )
        values["project"] = scope.project
    if scope.person is not None:
        parts.append(
            " AND conversation IN (SELECT id FROM conversation"
            " WHERE tenant = %(tenant)s AND person = %(person)s)"
        )
        values["person"] = scope.person
    if scope.since is not None:
        parts.append(" AND at >= %(since)s")
        values["since"] = microseconds(scope.since)
    if scope.until is not None:
        parts.append(" AND at < %(until)s")
        values["until"] = microseconds(scope.until)
    if scope.topics is not None:
        parts.append(
            " AND EXISTS (SELECT FROM member m WHERE m.tenant = %(tenant)s"
            " AND m.conversation = s.conversation AND m.seq = s.seq"
            " AND (m.conversation, m.topic) IN (SELECT c.id, t.topic"
            " FROM unnest(%(names)s::text[], %(topics)s::bigint[])"
            " AS t (name, topic) JOIN conversation c"
            " ON c.tenant = %(tenant)s AND c.name = t.name))"
        )
        values["names"] = [name for name, _ in scope.topics]
        values["topics"] = [topic for _, topic in scope.topics]
    return "".join(parts), values
