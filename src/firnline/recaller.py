"""Recall, put together: search, embedding in the background, topics, questions made to stand alone.

Thin: what is found is decided in `recall`, what topics are in `topics`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from firnline import limits, topics
from firnline.assigner import Assigner
from firnline.embedding import default_embedder, open_embedder
from firnline.embedding.words import WordEmbedder
from firnline.errors import FirnlineError, InputError, ModelError
from firnline.log import Entry, Head, Hit, Key, Scope, Topic
from firnline.protocols import ChatModel, Clock, Embedder, Progress, Store
from firnline.recall.finding import Finder
from firnline.text import clean_name
from firnline.tokens import TokenCounter

if TYPE_CHECKING:
    from firnline.indexer import Indexer, Nearest

logger: Final = logging.getLogger("firnline.recall")

AUTO: Final = "auto"
_LOOK_BACK: Final = 13
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})


class Filters(TypedDict, total=False):
    """What `Memory.recall` is to look at alone."""

    roles: Collection[str]
    """Only what was said in these roles."""
    since: datetime
    """Only what was said then or later."""
    until: datetime
    """Only what was said before."""
    project: str
    """Only conversations of this project."""
    topic: int
    """Only entries of this topic of the conversation."""
    tags: Collection[str]
    """Only entries of topics that have all of these tags."""


class Recaller:
    """Finds old entries for any conversation of a tenant, and keeps what it needs for that."""

    def __init__(
        self,
        store: Store,
        *,
        tenant: str,
        clock: Clock,
        count: TokenCounter,
        embedder: Embedder | str | None,
        model: ChatModel | None = None,
        rules: topics.Rules | None = None,
    ) -> None:
        self._store, self._tenant, self._count, self._model = store, tenant, count, model
        self.embedder = _meant(embedder)
        self._near, self._indexer = _by_meaning(store, self.embedder, tenant)
        self._finder = Finder(store, clock=clock, embedder=self.embedder, near=self._near)
        self.topics = Assigner(store, self.embedder or WordEmbedder(), clock=clock, rules=rules)

    def poke(self) -> None:
        """Something was appended."""
        if self._indexer is not None:
            self._indexer.poke()

    async def close(self) -> None:
        """Stop embedding, and let go of the embedder."""
        if self._indexer is not None:
            await self._indexer.stop()
        if self.embedder is not None:
            await self.embedder.close()

    def forget(self, key: Key) -> None:
        """Let go of a conversation that is no more."""
        if self._near is not None:
            self._near.forget(key)

    async def embed(self, key: Key, progress: Progress | None = None) -> int:
        """Finish the embedding that is owed; returns how many entries that were."""
        return await self._indexer.embed(key, progress) if self._indexer else 0

    # -- finding ------------------------------------------------------------------------------

    async def recall(
        self,
        conversation: str | None,
        query: str,
        *,
        limit: int | None,
        tokens: int | None,
        **filters: Unpack[Filters],
    ) -> list[Hit]:
        """See `Memory.recall`."""
        scope = await self._scope(conversation, filters)
        return await self._finder.find(
            self._tenant, query, scope, limit=limit, tokens=tokens, size=self._size
        )

    async def for_context(self, key: Key, question: str) -> list[Hit]:
        """What a context may show for a question; best first, some more than fit."""
        asked = await self.standalone(key, question, None)
        scope = Scope(conversation=key.conversation)
        return await self._finder.find(key.tenant, asked, scope, limit=limits.RECALL_CONTEXT_HITS)

    def _size(self, entry: Entry) -> int:
        message = entry.message
        return int(self._count.text(f"{message.name or message.role}: {message.text}"))

    async def _scope(self, conversation: str | None, filters: Filters) -> Scope:
        roles = frozenset(filters.get("roles", ()))
        if isinstance(filters.get("roles"), str) or not roles <= _ROLES:
            raise InputError(f"roles: some of {', '.join(sorted(_ROLES))} are meant")
        for name in ("since", "until"):
            at = filters.get(name)
            if isinstance(at, datetime) and at.utcoffset() is None:
                raise InputError(f"{name} needs a time zone, for example datetime.UTC")
        return Scope(
            conversation=conversation,
            project=filters.get("project"),
            roles=roles,
            since=filters.get("since"),
            until=filters.get("until"),
            topics=await self._topics(conversation, filters),
        )

    async def _topics(
        self, conversation: str | None, filters: Filters
    ) -> tuple[tuple[str, int], ...] | None:
        """The topics that the filters ask for; None if they ask for none."""
        topic, tags = filters.get("topic"), filters.get("tags")
        if topic is None and not tags:
            return None
        if topic is not None and conversation is None:
            raise InputError("topic: say of which conversation")
        wanted = {clean_name(tag, "tag") for tag in _several(tags or ())}
        found: list[tuple[str, int]] = []
        for name in await self._names(conversation, filters.get("project")):
            known = await self.topics.catch_up(Key(self._tenant, name))
            state = topics.State(known.topics)
            if topic is not None and topic not in known.topics:
                raise InputError(f"{name} has no topic {topic}")
            chosen = None if topic is None else state.current(topic).id
            found += [
                (name, t.id)
                for t in known.topics.values()
                if chosen in (None, t.id) and wanted <= set(t.tags)
            ]
        return tuple(found)

    async def _names(self, conversation: str | None, project: str | None) -> list[str]:
        if conversation is not None:
            return [conversation]
        heads = await self._store.conversations(
            self._tenant, project=project, limit=limits.PAGE_MAX
        )
        return [head.conversation for head in heads]

    # -- questions ----------------------------------------------------------------------------

    async def standalone(self, key: Key, question: str, model: ChatModel | None) -> str:
        """The question with what it leaves to the conversation; itself if that is nothing."""
        if not topics.leans(question):
            return question
        entries, title = await self._before(key, question)
        if model is None:
            return topics.standalone(question, entries, title)
        try:
            messages = topics.standalone_messages(question, entries)
            answer = (await model.complete(messages, max_tokens=200)).message.text
        except ModelError as error:
            logger.warning("rewritten by rules, the model failed: %s", error)
            answer = ""
        return topics.checked(answer, question, entries, title)

    async def _before(self, key: Key, question: str) -> tuple[list[Entry], str]:
        """The newest entries of the active topic before the question, and the topic's title."""
        head = await self._store.head(key)
        if head is None:
            return [], ""
        topic = await self._topic(key, head)
        if topic is None:
            newest = await self._store.read(key, max(head.entries - _LOOK_BACK, 0))
        else:
            first = max(head.entries - limits.QUESTION_LOOK_BACK, 0)
            seqs = await self._store.members(key, topic.id, first)
            newest = await self._store.at(key, seqs[-_LOOK_BACK:])
        if newest and newest[-1].message.text == question:
            newest = newest[:-1]
        return newest, topic.title if topic else ""

    async def _topic(self, key: Key, head: Head) -> Topic | None:
        """The active topic, if this conversation's entries are assigned to topics at all."""
        known = await self._store.topics(key)
        if not known.topics or head.entries - known.next_seq > limits.ASSIGN_PAGE:
            return None
        try:
            return await self.topics.active(key)
        except FirnlineError as error:
            logger.warning("%s: no topic for the question: %s", key.conversation, error)
            return None


def _meant(embedder: Embedder | str | None) -> Embedder | None:
    if embedder == AUTO:
        return default_embedder()
    return open_embedder(embedder) if isinstance(embedder, str) else embedder


def _by_meaning(
    store: Store, embedder: Embedder | None, tenant: str
) -> tuple[Nearest | None, Indexer | None]:
    """What search by meaning needs."""
    if embedder is None:
        return None, None
    try:
        from firnline.indexer import Indexer, Nearest  # noqa: PLC0415 - numpy is an optional extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        raise FirnlineError('an embedder needs an extra: pip install "firnline[recall]"') from error
    return Nearest(store), Indexer(store, embedder, tenant)


def _several(tags: Iterable[str]) -> Iterable[str]:
    if isinstance(tags, str):
        raise InputError("tags: expected several, got a text")
    return tags
