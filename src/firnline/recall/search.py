"""Finds old entries for a question by words, meaning and date, and ranks them together.

words     the store's index: entries with the question's words, and the entries after them
meaning   the nearest vectors, if there is an embedder
date      entries of the days that the question names
copies    of the same message in several branches, one (`copies`)
updates   what newer messages outdate is marked, and comes after them (`updates`)
rank      all of them and their neighbors, one conversation at a time (`rank`), pure
tokens    the best are compared with the question token by token, if the embedder has such vectors,
          and ranked again
chance    of each to be evidence (`chance`), pure; a context leaves out repeats (`repeats`)
pack      the best for their length (`pack`) that fit into a number of tokens, or of entries
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from firnline.context.context import BY_WORDS_ONLY
from firnline.embedding.likeness import likeness_of
from firnline.embedding.token_embedder import TokenEmbedder
from firnline.errors import FirnlineError, outline
from firnline.log import limits
from firnline.log.entry import Entry, IndexMatch, Key, Scope, live
from firnline.log.hit import Hit, Hits
from firnline.log.threads import run_by_size
from firnline.models.guard import Breaker
from firnline.protocols import Clock, Embedder, Store
from firnline.recall.chance import chances, count_earned
from firnline.recall.copies import Copies, EntryPlace
from firnline.recall.limits import BEHIND_MAX, WORDS_SECONDS
from firnline.recall.pack import by_value, pack, passage_room, shown_tokens
from firnline.recall.passage_finder import NearEntry, PassageFinder, VectorSearch
from firnline.recall.passages import model_key
from firnline.recall.query import AskedQuestion, RecallQuery, parse_question, token_weights
from firnline.recall.rank import features, order, token_feature
from firnline.recall.repeats import without_repeats
from firnline.recall.tools import find_recalled
from firnline.recall.updates import put_current_first

logger: Final = logging.getLogger("firnline.recall")


_Found = TypeVar("_Found")

_NOT_INDEXED: Final = (
    "old messages are not found by their words yet: the log is still being indexed"
)
_TOKENS_EACH: Final = 20
_TOKEN_CHARS: Final = 4
_ALIKE: Final = 0.75  # a question is less like its answer than a message is like its topic
_WIDER: Final = 20  # more vectors are compared if filters leave only some of them
_MORE: Final = 4  # times as many candidates are read if some are copies of others


@dataclass(slots=True)
class _Candidates:
    """The entries found in one conversation, by sequence number."""

    words: dict[int, float] = field(default_factory=dict)
    near: dict[int, float] = field(default_factory=dict)
    dated: list[int] = field(default_factory=list)
    near_enough: float = 1.0

    @property
    def seqs(self) -> set[int]:
        """Every entry found."""
        return {*self.words, *self.near, *self.dated}

    @property
    def sure(self) -> set[int]:
        """Those that have a word of the question, are near enough to it, or match its date."""
        near = {seq for seq, cosine in self.near.items() if cosine >= self.near_enough}
        return {*self.words, *near, *self.dated}

    @property
    def promise(self) -> tuple[float, float]:
        """The best scores found in this conversation."""
        return max(self.words.values(), default=0.0), max(self.near.values(), default=0.0)


class EntryFinder:
    """Finds entries for questions, in one conversation or in all of a tenant's."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        embedder: Embedder | None = None,
        near: VectorSearch | None = None,
        conversations: int = limits.RECALL_CONVERSATIONS,
    ) -> None:
        self._store, self._clock, self._conversations = store, clock, conversations
        self._embedder, self._near = embedder, near
        self._passages = PassageFinder(embedder, near)
        self._breaker = Breaker(failures=3)  # do not wait for an embedder that keeps failing
        self._near_enough = _ALIKE * likeness_of(embedder.name) if embedder else 1.0

    async def find(
        self,
        tenant: str,
        question: str,
        scope: Scope,
        *,
        limit: int | None = None,
        tokens: int | None = None,
        size: Callable[[Hit], int] = shown_tokens,
        shown_from: int | None = None,
    ) -> Hits:
        """The entries that match the question best, best first.

        Either at most `limit` of the found entries, or as many as fit into `tokens` by `size`: then
        their neighbors are candidates, too, because the answer is often there. If the embedder
        fails, or has not processed all entries in scope, the search goes on by words, and the
        result says so; no text of a question raises an error. Calls and results of recall tools
        come last. With `shown_from` it is for a context that shows the entries from there on: they
        need no vectors, and repeats and calls and results of recall tools are left out. It does not
        wait for long until the words of a log are indexed, but says that they are not.
        """
        parsed = parse_question(question, self._clock())
        breadth, reach = _breadth(limit, tokens)
        copies = Copies(self._store, tenant) if scope.conversation is None else None
        for_context = shown_from is not None
        words = self._by_words(tenant, parsed.query, scope, breadth, copies)
        timely = _within(WORDS_SECONDS if for_context else None, words)
        matches, asked = await asyncio.gather(timely, self._ask(question, parsed))
        indexed, vector = matches is not None, asked.vector
        near = await self._by_meaning(tenant, vector, scope, breadth // 2, copies)
        given = parsed if indexed else parsed._replace(days=None)
        matched = matches or [], near
        found = await self._candidates(tenant, given, matched, scope, breadth, copies)
        nearest = (cosine for there in found.values() for cosine in there.near.values())
        floor = min(nearest, default=None)
        sure = {(name, seq) for name, there in found.items() for seq in there.sure}
        hits, echoes = await self._all_ranked(tenant, asked, found, scope, reach, floor)
        role = None if tokens is None else parsed.role
        room = None if for_context else passage_room(tokens)  # a context quotes whole messages
        hits = _order(hits, echoes, packed_for=role, room=room, for_context=for_context)
        if tokens is None:
            hits = [hit for hit in hits if (hit.conversation, hit.seq) in sure]
        if copies is not None:
            hits = await copies.unite(hits)
        if indexed:
            hits = await put_current_first(self._store, tenant, question, parsed, hits, scope)
        if room is not None:
            hits = await self._passages.find(tenant, asked, hits, limit=limit, tokens=tokens)
        if tokens is not None:
            packing = partial(pack, hits, size, tokens)
            hits = await run_by_size(_chars(hit.entry for hit in hits), packing)
        missing = await self._missing_vectors(tenant, question, vector, scope, shown_from)
        hits, missing = hits[:limit], missing if indexed else [_NOT_INDEXED, *missing]
        return Hits(hits, missing, count_earned([hit.chance for hit in hits]))

    # -- candidates ---------------------------------------------------------------------------

    async def _candidates(
        self,
        tenant: str,
        parsed: RecallQuery,
        matched: tuple[Sequence[IndexMatch], Sequence[NearEntry]],
        scope: Scope,
        breadth: int,
        copies: Copies | None,
    ) -> dict[str, _Candidates]:
        """The entries found by words, meaning and dates, by conversation; of copies, one."""
        places = [EntryPlace(*item[:2]) for items in matched for item in items]
        if copies is not None:
            await copies.distinct(places)
            places = [copies.original(place) for place in places]
        scores = [item[2] for items in matched for item in items]
        of_words = len(matched[0])
        found: defaultdict[str, _Candidates] = defaultdict(_Candidates)
        for number, ((name, seq), score) in enumerate(zip(places, scores, strict=True)):
            there = found[name]
            by_seq = there.words if number < of_words else there.near
            by_seq[seq] = max(score, by_seq.get(seq, score))
            if number >= of_words:
                there.near_enough = self._near_enough
        if scope.conversation is not None and parsed.days is not None:
            key = Key(tenant, scope.conversation)
            found[scope.conversation].dated = await self._said(key, parsed.days, breadth)
        best_first = sorted(found, key=lambda name: found[name].promise, reverse=True)
        return {name: found[name] for name in best_first[: self._conversations]}

    async def _by_words(
        self, tenant: str, query: str, scope: Scope, wanted: int, copies: Copies | None
    ) -> list[IndexMatch]:
        """Entries with the question's words: more than `wanted`, if some are copies of others."""
        limit = wanted
        while True:
            matches = await self._store.search(tenant, query, scope=scope, limit=limit)
            if copies is None or len(matches) < limit or limit >= limits.RECALL_COPIES_MAX:
                return matches
            if await copies.distinct(EntryPlace(*match[:2]) for match in matches) >= wanted:
                return matches
            limit *= _MORE

    async def _ask(self, question: str, parsed: RecallQuery) -> AskedQuestion:
        """The question with its vectors, or without if there is no embedder or it fails."""
        words = AskedQuestion(question, parsed)
        if self._embedder is None or self._near is None or not question.strip():
            return words
        if self._breaker.allow():
            return words
        try:
            async with asyncio.timeout(limits.EMBED_SECONDS):
                asked = await _vectors(self._embedder, words)
        except (FirnlineError, TimeoutError) as error:
            self._breaker.failed()
            logger.warning("search by words only: the embedder failed: %s", outline(error))
            return words
        self._breaker.succeeded()
        return asked

    async def _by_meaning(
        self,
        tenant: str,
        vector: Sequence[float] | None,
        scope: Scope,
        wanted: int,
        copies: Copies | None,
    ) -> Sequence[NearEntry]:
        """The nearest entries: more than `wanted`, if some are copies of others."""
        limit = wanted
        while True:
            nearest = await self._nearest(tenant, vector, scope, limit)
            if copies is None or len(nearest) < limit or limit >= limits.RECALL_COPIES_MAX:
                return nearest
            if await copies.distinct(EntryPlace(*near[:2]) for near in nearest) >= wanted:
                return nearest
            limit *= _MORE

    async def _nearest(
        self, tenant: str, vector: Sequence[float] | None, scope: Scope, limit: int
    ) -> Sequence[NearEntry]:
        """The nearest entries in scope, nearest first."""
        if self._embedder is None or self._near is None or vector is None:
            return []
        model = model_key(self._embedder, len(vector))
        narrow = bool(scope.roles or scope.since or scope.until) or scope.topics is not None
        wanted = limit * (_WIDER if narrow else 1)
        if scope.conversation is None:
            near = await self._near.find_in(tenant, model, vector, wanted, scope)
        else:
            key = Key(tenant, scope.conversation)
            there = await self._near.find(key, model, vector, wanted)
            near = [NearEntry(key.conversation, *item) for item in there.items()]
        return await self._in_scope(tenant, near, scope) if narrow else near

    async def _in_scope(
        self, tenant: str, near: Sequence[NearEntry], scope: Scope
    ) -> list[NearEntry]:
        """Those that the scope's roles, times and topics allow."""
        by_name: defaultdict[str, list[int]] = defaultdict(list)
        for name, seq, _ in near:
            by_name[name].append(seq)
        allowed: set[tuple[str, int]] = set()
        for name, seqs in by_name.items():
            key = Key(tenant, name)
            pool = {entry.seq: entry for entry in await self._store.at(key, sorted(seqs))}
            allowed |= {(name, seq) for seq in await self._allowed(key, pool, scope)}
        return [item for item in near if item[:2] in allowed]

    async def _missing_vectors(
        self,
        tenant: str,
        question: str,
        vector: Sequence[float] | None,
        scope: Scope,
        shown_from: int | None,
    ) -> list[str]:
        """Why entries may be missing that are like the question, but have none of its words."""
        if self._embedder is None or self._near is None or not question.strip():
            return []
        if vector is None:
            return [f"the embedder failed, so old messages are {BY_WORDS_ONLY}"]
        model = model_key(self._embedder, len(vector))
        names = [scope.conversation]
        if scope.conversation is None:
            names = [
                key.conversation
                for key in await self._store.unembedded(tenant, model, BEHIND_MAX + 1)
            ]
        counts = await asyncio.gather(
            *(
                self._unembedded(Key(tenant, name), model, scope, shown_from)
                for name in names[:BEHIND_MAX]
                if name is not None
            )
        )
        missing, more = sum(counts), "more than " if len(names) > BEHIND_MAX else ""
        why = f"{more}{missing:,} messages have no vectors yet and are {BY_WORDS_ONLY}"
        return [why] if missing else []

    async def _unembedded(self, key: Key, model: str, scope: Scope, shown_from: int | None) -> int:
        """How many entries of a conversation in scope (before `shown_from`) have no vectors."""
        head, done = await asyncio.gather(self._store.head(key), self._store.embedded(key, model))
        if head is None or not scope.describes(head):
            return 0
        return max(min(head.entries, shown_from or head.entries) - done, 0)

    async def _said(self, key: Key, days: tuple[datetime, datetime], limit: int) -> list[int]:
        entries = await self._store.dated(key, *days, limit)
        return [entry.seq for entry in entries]

    # -- ranking ------------------------------------------------------------------------------

    async def _all_ranked(
        self,
        tenant: str,
        asked: AskedQuestion,
        found: Mapping[str, _Candidates],
        scope: Scope,
        reach: int,
        floor: float | None,
    ) -> tuple[list[Hit], set[tuple[str, int]]]:
        """The entries of all conversations, and which of them are what a tool recalled."""
        hits: list[Hit] = []
        echoes: set[tuple[str, int]] = set()
        for conversation, there in found.items():
            key = Key(tenant, conversation)
            ranked = await self._ranked(key, asked, there, scope, reach, floor)
            hits += ranked
            recalled = await find_recalled([h.entry for h in ranked], partial(self._store.at, key))
            echoes |= {(conversation, seq) for seq in recalled}
        return hits, echoes

    async def _ranked(
        self,
        key: Key,
        asked: AskedQuestion,
        found: _Candidates,
        scope: Scope,
        reach: int,
        floor: float | None,
    ) -> list[Hit]:
        """The entries found in one conversation and their neighbors, ranked."""
        steps = range(-reach, reach + 1)
        wanted = sorted({seq + step for seq in found.seqs for step in steps})
        pool = {entry.seq: entry for entry in live(await self._store.at(key, wanted))}
        arguments = (asked.parsed, pool, found.near, floor)
        most = limits.LOOP_CHARS_MAX if len(pool) <= limits.RECALL_INLINE else 0
        known = await run_by_size(_chars(pool.values()), partial(features, *arguments), most)
        ranked = order(known, pool, found.words)
        best = [item.seq for item in ranked[: limits.RECALL_COMPARED]]
        if tokens := await self._compared(key, asked, pool, best):
            ranked = order({**known, "tokens": tokens}, pool, found.words)
        allowed = await self._allowed(key, pool, scope)
        return [
            Hit(key.conversation, pool[item.seq], item.score, item.parts)
            for item in ranked
            if item.seq in allowed
        ]

    async def _compared(
        self, key: Key, asked: AskedQuestion, pool: Mapping[int, Entry], best: Sequence[int]
    ) -> Mapping[int, float]:
        """How near the question's tokens are to those of the pool; empty if that is not known."""
        if self._embedder is None or self._near is None or asked.tokens is None:
            return {}
        names = {entry.message.name or "" for entry in pool.values()}
        weights = token_weights(asked.text, asked.tokens.spans, asked.parsed, names)
        model = model_key(self._embedder, len(asked.tokens.vector))
        scores = await self._near.compare(key, model, asked.tokens, weights, best)
        return token_feature(scores, best, pool) if scores else {}

    async def _allowed(self, key: Key, pool: Mapping[int, Entry], scope: Scope) -> set[int]:
        """The entries that are in scope: neighbors and vectors need not be."""
        allowed = {seq for seq, entry in pool.items() if scope.has(entry.message)}
        if scope.topics is not None:
            of = await self._store.topics_of(key, sorted(allowed))
            allowed = {
                seq for seq, topic in of.items() if (key.conversation, topic) in scope.topics
            }
        return allowed


async def _within(seconds: float | None, found: Awaitable[_Found]) -> _Found | None:
    """What is found, or None if that takes longer."""
    try:
        async with asyncio.timeout(seconds):
            return await found
    except TimeoutError:
        return None


async def _vectors(embedder: Embedder, asked: AskedQuestion) -> AskedQuestion:
    """The question with its vector, and with its tokens if the embedder compares them."""
    text = asked.text[: limits.PASSAGE_CHARS]
    if isinstance(embedder, TokenEmbedder):
        tokens = await embedder.read_question(text)
        return asked._replace(vector=tokens.vector, tokens=tokens)
    (vector,) = await embedder.embed([text])
    return asked._replace(vector=vector)


def _order(
    hits: Sequence[Hit],
    echoes: Collection[tuple[str, int]],
    *,
    packed_for: str | None,
    room: int | None,
    for_context: bool,
) -> list[Hit]:
    """The hits of all conversations with their chances, best first.

    The result of an earlier search only repeats what it found: it comes last, with no chance. A
    context has neither those nor messages that repeat a better one. To be packed into a number of
    tokens, for a question about the role `packed_for`, they are ordered by value. `room` are the
    tokens of a passage.
    """
    ordered = sorted(hits, key=lambda hit: (-hit.score, hit.conversation, hit.seq))
    found = [hit for hit in ordered if (hit.conversation, hit.seq) not in echoes]
    if for_context:
        found = without_repeats(found)
    found = [replace(hit, chance=chance) for hit, chance in zip(found, chances(found), strict=True)]
    if packed_for is not None:
        found = by_value(found, packed_for, room)
    if for_context:
        return found
    return found + [hit for hit in ordered if (hit.conversation, hit.seq) in echoes]


def _chars(entries: Iterable[Entry]) -> int:
    """About how many characters entries have."""
    return _TOKEN_CHARS * sum(entry.tokens for entry in entries)


def _breadth(limit: int | None, tokens: int | None) -> tuple[int, int]:
    """The number of candidates, and of neighbors on each side that are ranked with them."""
    if tokens is None:
        return min(max((limit or 0) * 3, limits.RECALL_LEAST), limits.RECALL_MOST), 1
    return min(100 + tokens // _TOKENS_EACH, limits.RECALL_MOST), limits.RECALL_REACH
