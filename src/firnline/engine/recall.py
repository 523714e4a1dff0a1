"""Recall: filters, the search, and the embedding in the background that it needs."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypedDict

from firnline.context.plan import is_of_tool, units
from firnline.context.render import is_quotable
from firnline.digest.replies import asks, is_bare_answer
from firnline.embedding import MiniLM, default_embedder, open_embedder
from firnline.engine.options import check_names
from firnline.errors import FirnlineError, InputError, ModelError, StoreCorrupt, outline
from firnline.log import limits
from firnline.log.entry import Entry, Key, Scope, live
from firnline.log.hit import Hit, Hits
from firnline.log.message import Message
from firnline.log.text import clean_name, clean_text
from firnline.log.tokens import TokenCounter
from firnline.protocols import Clock, Embedder, Progress, Store
from firnline.recall.chance import count_earned
from firnline.recall.search import EntryFinder

if TYPE_CHECKING:
    from firnline.engine.embedding_indexer import EmbeddingIndexer, NearestVectors

logger: Final = logging.getLogger("firnline")

AUTO: Final = "auto"
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})
_SPEAKERS: Final = ("user", "assistant")


class Filters(TypedDict, total=False):
    """Restricts `Memory.recall`."""

    roles: Collection[str]
    """Only messages in these roles."""
    since: datetime
    """Only messages from then on."""
    until: datetime
    """Only messages before then."""
    project: str
    """Only conversations of this project."""
    person: str
    """Only conversations with this person."""
    topic: int
    """Only entries of this topic of the conversation."""
    tags: Collection[str]
    """Only entries of topics that have all of these tags."""


class Recaller:
    """Finds old entries in the conversations of a tenant, and keeps their vectors up to date."""

    def __init__(
        self,
        store: Store,
        *,
        tenant: str,
        clock: Clock,
        count: TokenCounter,
        embedder: Embedder | None,
    ) -> None:
        self._store, self._tenant, self._count = store, tenant, count
        self._embedder = embedder
        self._near, self._indexer = _vector_search(store, embedder, tenant)
        self._finder = EntryFinder(store, clock=clock, embedder=embedder, near=self._near)

    def poke(self, key: Key | None = None) -> None:
        """There are new entries, in this conversation or in any."""
        if self._indexer is not None:
            self._indexer.poke(key)

    async def close(self) -> None:
        """Stop embedding and close the embedder."""
        try:
            if self._indexer is not None:
                await self._indexer.stop()
        finally:
            if self._embedder is not None:
                await self._embedder.close()

    def forget(self, key: Key) -> None:
        """Drop what is cached for an erased conversation."""
        if self._near is not None:
            self._near.forget(key)

    async def on_branch(self, source: Key, seq: int, branch: Key) -> None:
        """A branch has the entries of `source` up to `seq`, so it gets their vectors, too."""
        if self._indexer is not None:
            await self._indexer.copy(source, seq, branch)

    async def embed(self, key: Key, progress: Progress | None = None) -> int:
        """Finish the pending embedding; returns the number of entries."""
        return await self._indexer.embed(key, progress) if self._indexer else 0

    async def recall(
        self, query: str, scope: Scope, *, limit: int | None, tokens: int | None
    ) -> Hits:
        """The entries in `scope` that fit the query, best first."""
        if not await self._belongs(scope):
            return Hits()
        if self._indexer is not None and self._indexer.begun:
            # Entries that other processes have appended may not be embedded yet.
            name = scope.conversation
            self._indexer.poke(None if name is None else Key(self._tenant, name))
        return await self._finder.find(
            self._tenant, clean_text(query), scope, limit=limit, tokens=tokens, size=self._size
        )

    async def for_context(
        self, key: Key, question: str, tokens: int, shown_from: int, scope: Scope | None = None
    ) -> Hits:
        """Entries of up to `tokens` that a context may show for a question, best first.

        They are of this conversation, or in `scope`.
        Repeats are left out. The first `Hits.earned` are enough for a context that stays small.
        Those from `shown_from` on are shown anyway, so it does not matter if they have no vectors.
        If an index or an entry is damaged, the context does without, and says so.
        """
        scope = scope or Scope(conversation=key.conversation)
        try:
            found = await self._finder.find(
                key.tenant, clean_text(question), scope, tokens=tokens, shown_from=shown_from
            )
            return (
                found
                if scope.conversation != key.conversation
                else await self._with_current(key, found)
            )
        except StoreCorrupt as error:
            logger.warning("%s: nothing is recalled: %s", key.conversation, outline(error))
            return Hits(degraded=[f"nothing is recalled: {outline(error)}"])

    async def _with_current(self, key: Key, found: Hits) -> Hits:
        """The hits, with what outdates one of them in front of it."""
        there = {hit.seq for hit in found}
        newer = {h.superseded_by for h in found if h.superseded_by is not None} - there
        if not newer:
            return found
        entries = {entry.seq: entry for entry in live(await self._store.at(key, sorted(newer)))}
        hits: list[Hit] = []
        for hit in found:
            current = entries.pop(-1 if hit.superseded_by is None else hit.superseded_by, None)
            hits += [replace(hit, entry=current, passage=(), superseded_by=None)] if current else []
            hits.append(hit)
        return Hits(hits, found.degraded, count_earned([hit.chance for hit in hits]))

    async def units(self, key: Key, hits: Sequence[Hit]) -> dict[int, tuple[Entry, ...]]:
        """What is quoted together with hits, by their numbers.

        All of a tool call with its results, and the question of a short answer.
        """
        torn = [hit.seq for hit in hits if is_of_tool(hit.message)][: limits.RECALL_UNITS_MAX]
        bare = [hit for hit in hits if not is_of_tool(hit.message) and is_bare_answer(hit.message)]
        bare = bare[: limits.RECALL_UNITS_MAX]
        reach = range(-limits.RECALL_CALL_REACH, limits.RECALL_CALL_REACH + 1)
        around = {seq + step for seq in torn for step in reach if seq + step >= 0}
        before = {seq for hit in bare for seq in _before(hit.seq)}
        if not around | before:
            return {}
        there = live(await self._store.at(key, sorted(around | before)))
        found: dict[int, tuple[Entry, ...]] = {}
        for unit in units(entry for entry in there if entry.seq in around):
            if not unit.problem:
                found |= {entry.seq: unit.entries for entry in unit.entries}
        by_number = {entry.seq: entry for entry in there}
        for hit in bare:
            near = (by_number[seq] for seq in _before(hit.seq) if seq in by_number)
            question = _question(near, hit.message)
            found |= {hit.seq: (question, hit.entry)} if question else {}
        return found

    async def _belongs(self, scope: Scope) -> bool:
        """Whether the scope's conversation, if there is one, is of its project and person."""
        if scope.conversation is None or (scope.project, scope.person) == (None, None):
            return True
        head = await self._store.head(Key(self._tenant, scope.conversation))
        return head is not None and scope.describes(head)

    def _size(self, hit: Hit) -> int:
        message = hit.message
        return int(self._count.text(f"{message.name or message.role}: {hit.text}"))


def _before(seq: int) -> range:
    """The numbers before an answer's, the nearest first."""
    return range(seq - 1, max(seq - 1 - limits.QUESTION_BACK, -1), -1)


def _question(near: Iterable[Entry], answer: Message) -> Entry | None:
    """The question of an answer: the last message of another speaker, if that asks."""
    for entry in near:
        message = entry.message
        if message.role in _SPEAKERS and message.text and not is_of_tool(message):
            answered = message.role != answer.role and is_quotable(message) and asks(message)
            return entry if answered else None
    return None


def as_embedder(embedder: Embedder | str | None) -> Embedder | None:
    """The embedder of this name, the installed one for "auto", or a checked one."""
    if embedder == AUTO:
        return default_embedder()
    if isinstance(embedder, str):
        return open_embedder(embedder)
    if embedder is None or isinstance(embedder, MiniLM):  # which fails with a ModelError itself
        return embedder
    return _CheckedEmbedder(embedder)


def scope_of(conversation: str | None, filters: Filters) -> Scope:
    """The scope of a recall, without its topics; the filters are checked already."""
    project, person = filters.get("project"), filters.get("person")
    return Scope(
        conversation=conversation,
        project=None if project is None else clean_name(project, "project"),
        person=None if person is None else clean_name(person, "person"),
        roles=frozenset(filters.get("roles") or ()),
        since=filters.get("since"),
        until=filters.get("until"),
    )


def check_filters(filters: Filters) -> None:
    """Raise `InputError` for unknown or invalid filters."""
    check_names(filters, Filters, "filter")
    for name in ("roles", "tags"):
        if isinstance(filters.get(name), str):
            raise InputError(f"{name}: expected a list of strings, got a string")
    if unknown := set(filters.get("roles") or ()) - _ROLES:
        raise InputError(
            f"roles: unknown role {min(map(str, unknown))!r}; use {', '.join(sorted(_ROLES))}"
        )
    for name in ("since", "until"):
        if (at := filters.get(name)) is not None:
            check_time(name, at)


def check_time(name: str, at: object) -> None:
    """Raise `InputError` unless `at` is a datetime with a time zone."""
    if not isinstance(at, datetime):
        raise InputError(f"{name}: expected a datetime, got {type(at).__name__}")
    if at.utcoffset() is None:
        raise InputError(f"{name} needs a time zone, for example datetime.UTC")


def _vector_search(
    store: Store, embedder: Embedder | None, tenant: str
) -> tuple[NearestVectors | None, EmbeddingIndexer | None]:
    """The parts that search by meaning needs."""
    if embedder is None:
        return None, None
    try:
        from firnline.engine.embedding_indexer import EmbeddingIndexer, NearestVectors  # noqa: PLC0415 - numpy is an optional extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        raise FirnlineError('an embedder needs an extra: pip install "firnline[recall]"') from error
    return NearestVectors(store), EmbeddingIndexer(store, embedder, tenant)


class _CheckedEmbedder:
    """The caller's embedder; every failure of it is a `ModelError`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        try:
            returned = await self._embedder.embed(texts)
            vectors = [[float(number) for number in vector] for vector in returned]
        except FirnlineError:
            raise
        except Exception as error:
            raise self._failed(f"failed: {type(error).__name__}: {error}") from error
        if len(vectors) != len(texts):
            raise self._failed(f"returned {len(vectors)} vectors for {len(texts)} texts")
        if len({len(vector) for vector in vectors}) > 1 or not all(vectors):
            raise self._failed("returned vectors of different dimensions, or empty ones")
        if not all(map(math.isfinite, (number for vector in vectors for number in vector))):
            raise self._failed("returned a number that is not finite")
        return vectors

    async def close(self) -> None:
        await self._embedder.close()

    def _failed(self, how: str) -> ModelError:
        return ModelError(f"the embedder {self.name} {how}", code="embedder")
