"""Word search: candidates from the index, ranked by how rare their words are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Self

from firnline.language.terms import wanted_words
from firnline.log import limits
from firnline.log.entry import IndexMatch, Key, Scope
from firnline.log.message import microseconds
from firnline.store import word_scores
from firnline.store.postgres import log, words
from firnline.store.postgres.connection import Query, Row, Transaction
from firnline.store.rows import ConversationRow

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
# OFFSET 0: the previous entry is looked up once. A short conversation is read without the index,
# because PostgreSQL samples what a common word leads to.
_SAMPLED: Final = limits.SEARCH_WEIGHED_MAX // 2
_MATCHES: Final = "words @@ %(match)s::tsquery"
_READ_ALL: Final = f"({_MATCHES}) IS TRUE"
_RANKED: Final = (
    "WITH found AS MATERIALIZED (SELECT conversation, seq, words, (SELECT b.words FROM search b"
    " WHERE b.tenant = s.tenant AND b.conversation = s.conversation AND b.seq = s.seq - 1"
    " AND b.part = 0) AS before FROM search s WHERE tenant = %(tenant)s AND {match}{where}),"
    " ranked AS MATERIALIZED (SELECT conversation, seq, (SELECT sum(one * (words @@ own)::int"
    " + two * coalesce((before @@ own)::int, 0) + three * coalesce((words @@ fact)::int, 0))"
    " FROM unnest(%(own)s::tsquery[], %(facts)s::tsquery[], %(of_own)s::bigint[],"
    " %(of_near)s::bigint[], %(of_facts)s::bigint[]) AS asked (own, fact, one, two, three)"
    ")::float8 / (%(length)s + %(each)s * length(words)) AS score FROM found)"
    " SELECT c.name, ranked.seq, ranked.score, c.id, c.next_seq, c.total, c.hash, c.genesis"
    " FROM ranked JOIN conversation c ON c.tenant = %(tenant)s AND c.id = ranked.conversation"
    " ORDER BY ranked.score DESC, c.name, ranked.seq DESC LIMIT %(limit)s"
)


class _PostgresWords(NamedTuple):
    """Tsqueries for the words of a query, and the points for what they find.

    By their own terms, here and in the entry before, and by speakers and dates.
    """

    own: Sequence[str]
    facts: Sequence[str]
    of_own: Sequence[int]
    of_near: Sequence[int]
    of_facts: Sequence[int]

    @classmethod
    def weighed(cls, own: Sequence[str], facts: Sequence[str], weights: Sequence[int]) -> Self:
        """The points of word search."""
        factors = word_scores.OWN, word_scores.NEAR, word_scores.FACT
        return cls(own, facts, *([factor * weight for weight in weights] for factor in factors))

    @classmethod
    def parts(cls, longer: Sequence[str]) -> Self:
        """One point for each word that is part of a longer one."""
        none = [0] * len(longer)
        return cls(longer, [], [1] * len(longer), none, none)


class _Place(NamedTuple):
    """Where to search, and whether it is a conversation of which all entries can be ranked."""

    tenant: str
    scope: Scope
    short: bool


class _Lead(NamedTuple):
    """What leads to entries: a tsquery, about how many there are, and for which words they lead."""

    match: str
    entries: int
    words: Sequence[int]


async def matches(
    transaction: Transaction, tenant: str, query: str, scope: Scope, limit: int
) -> list[IndexMatch]:
    """See `word_scores` for what is found in which order."""
    wanted = wanted_words(query)
    if not wanted or limit <= 0 or scope.topics == ():
        return []
    transaction.later(_BOUNDED)
    own_terms = [words.of_any(tenant, word.terms) for word in wanted]
    fact_terms = [words.of_any(tenant, word.facts) for word in wanted]
    part_terms = [words.of_all(tenant, word.parts) for word in wanted if word.parts]
    fallbacks = [_any(fact_terms), _any(part_terms) or words.of_any(tenant, [""])]
    head, (*counts, by_facts, by_parts), entries = await _count_words(
        transaction, tenant, scope, [*own_terms, *fallbacks]
    )
    if scope.conversation is not None and head is None:
        return []
    short = head is not None and head.next_seq <= limits.SEARCH_WEIGHED_MAX
    if not by_facts:
        fact_terms = []
    query_words = _PostgresWords.weighed(
        own_terms, fact_terms, word_scores.weights(counts, entries)
    )
    leading = word_scores.leading(counts, short=short)
    rank = partial(_rank, transaction, _Place(tenant, scope, short=short))
    lead = _Lead(_any(own_terms[n] for n in leading), sum(counts[n] for n in leading), leading)
    matched = await rank(query_words, lead, limit)
    if not matched and len(leading) < len(own_terms):  # the rare words are only in other scopes
        leading = list(range(len(own_terms)))
        matched = await rank(query_words, _Lead(_any(own_terms), sum(counts), leading), limit)
    if len(matched) < limit and by_facts:
        _add(matched, await rank(query_words, _Lead(fallbacks[0], by_facts, leading), limit))
    if len(matched) < limit and by_parts:
        parts = _PostgresWords.parts(part_terms)
        _add(matched, await rank(parts, _Lead(fallbacks[1], by_parts, ()), limit + len(matched)))
    return matched[:limit]


def _any(expressions: Iterable[str]) -> str:
    """A tsquery for what any of them finds."""
    return " | ".join(f"({expression})" for expression in expressions)


def _add(found: list[IndexMatch], more: Sequence[IndexMatch]) -> None:
    known = {match[:2] for match in found}
    found += [match for match in more if match[:2] not in known]


async def _count_words(
    transaction: Transaction, tenant: str, scope: Scope, own: list[str]
) -> tuple[ConversationRow | None, list[int], int]:
    """The searched conversation, if it is a single one; how many entries have each word, of all."""
    queries: list[Query] = [(_ENTRIES_WITH, {"own": own}), (_ENTRIES, {"tenant": tenant})]
    if scope.conversation is None:
        found, answers = None, await transaction.each(*queries)
    else:
        key = Key(tenant, scope.conversation)
        found, answers = await log.find_with(transaction, key, *queries)
    counts, ((entries,),) = answers
    return found, [count for (count,) in counts], entries


async def _rank(
    transaction: Transaction, place: _Place, asked: _PostgresWords, lead: _Lead, limit: int
) -> list[IndexMatch]:
    """The best entries to which it leads."""
    tenant, scope, short = place
    where, values = _within(tenant, scope)
    match = lead.match
    if scope.roles:
        roles = words.any_of(words.of_role(tenant, role) for role in sorted(scope.roles))
        match = f"({match}) & ({roles})"
    read_all = short and lead.entries > _SAMPLED
    rows = await transaction.rows(
        _RANKED.format(where=where, match=_READ_ALL if read_all else _MATCHES),
        {
            **values,
            "match": match,
            **asked._asdict(),
            "of_near": [points * (n in lead.words) for n, points in enumerate(asked.of_near)],
            "length": word_scores.LENGTH[0],
            "each": word_scores.LENGTH[1],
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
