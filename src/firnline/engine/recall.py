"""Recall, put together: search, embedding in the background, topics, questions made to stand alone.

Thin: what is found is decided in `recall`, what topics are in `topics`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from firnline import topics
from firnline.embedding import default_embedder, open_embedder
from firnline.embedding.words import WordEmbedder
from firnline.engine.options import check_names
from firnline.engine.topic_assigner import Assigner
from firnline.engine.turn import Turn
from firnline.errors import FirnlineError, InputError, ModelError, outline
from firnline.log import limits
from firnline.log.entry import Entry, Head, Hit, Key, Scope, Topic
from firnline.log.text import clean_name, clean_text
from firnline.log.tokens import TokenCounter
from firnline.protocols import ChatModel, Clock, Embedder, Progress, Store
from firnline.recall.search import EntryFinder, scope_conversations
from firnline.recall.tools import is_recalled

if TYPE_CHECKING:
    from firnline.engine.embedding_indexer import Indexer, NearestVectors

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
        rules: topics.Rules | None = None,
    ) -> None:
        self._store, self._tenant, self._count = store, tenant, count
        self.embedder = _meant(embedder)
        self._near, self._indexer = _by_meaning(store, self.embedder, tenant)
        self._finder = EntryFinder(store, clock=clock, embedder=self.embedder, near=self._near)
        self.topics = Assigner(store, self.embedder or WordEmbedder(), clock=clock, rules=rules)

    def poke(self, key: Key | None = None) -> None:
        """Something was appended there, or anywhere."""
        if self._indexer is not None:
            self._indexer.poke(key)

    async def close(self) -> None:
        """Stop embedding, and let go of the embedder."""
        try:
            if self._indexer is not None:
                await self._indexer.stop()
        finally:
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
        if not isinstance(query, str):
            raise InputError(f"query: expected a text, got {type(query).__name__}")
        scope = await self._scope(conversation, filters)
        if not await self._belongs(conversation, scope.project):
            return []
        if self._indexer is not None and self._indexer.begun:
            # What others have appended or imported is not embedded yet.
            asked = scope.conversation
            self._indexer.poke(None if asked is None else Key(self._tenant, asked))
        return await self._finder.find(
            self._tenant, clean_text(query), scope, limit=limit, tokens=tokens, size=self._size
        )

    async def for_context(self, key: Key, question: str, tokens: int) -> list[Hit]:
        """What a context may show for a question in so many tokens; best first."""
        asked = await self.standalone(key, question, None)
        scope = Scope(conversation=key.conversation)
        hits = await self._finder.find(key.tenant, clean_text(asked), scope, tokens=tokens)
        return [hit for hit in hits if not is_recalled(hit.message)]

    async def _belongs(self, conversation: str | None, project: str | None) -> bool:
        """Whether a conversation that is named is one of the project that is named, too."""
        if conversation is None or project is None:
            return True
        head = await self._store.head(Key(self._tenant, conversation))
        return head is not None and head.project == project

    def _size(self, entry: Entry) -> int:
        message = entry.message
        return int(self._count.text(f"{message.name or message.role}: {message.text}"))

    async def _scope(self, conversation: str | None, filters: Filters) -> Scope:
        _check(filters)
        project = filters.get("project")
        return Scope(
            conversation=conversation,
            project=None if project is None else clean_name(project, "project"),
            roles=frozenset(filters.get("roles") or ()),
            since=filters.get("since"),
            until=filters.get("until"),
            topics=await self._topics(conversation, filters),
        )

    async def _topics(
        self, conversation: str | None, filters: Filters
    ) -> tuple[tuple[str, int], ...] | None:
        """The topics that the filters ask for; None if they ask for none."""
        topic = filters.get("topic")
        wanted = {clean_name(tag, "tag") for tag in filters.get("tags") or ()}
        if topic is None and not wanted:
            return None
        if topic is not None and conversation is None:
            raise InputError("topic: say of which conversation")
        found: list[tuple[str, int]] = []
        within = Scope(conversation=conversation, project=filters.get("project"))
        for name in await scope_conversations(self._store, self._tenant, within):
            key = Key(self._tenant, name)
            known = await self._store.topics(key)
            # Tags are given to topics that are there; for others nothing need be assigned now.
            if topic is not None or any(wanted <= set(t.tags) for t in known.topics.values()):
                known = await self.topics.at_hand(key)
            state = topics.TopicState(known.topics)
            if topic is not None and topic not in known.topics:
                raise InputError(f"{name} has no topic {topic}")
            chosen = None if topic is None else state.current(topic).id
            found += [
                (name, t.id)
                for t in known.topics.values()
                if chosen in (None, t.id) and wanted <= set(t.tags)
            ]
        return tuple(found)

    async def credit(self, key: Key, turn: Turn) -> None:
        """Give a little importance to the topics of which a turn's answer made use.

        Only topics that are there already; whatever goes wrong, the turn is none the worse.
        """
        shown = [hit.entry for hit in turn.context.hits]
        if not shown or turn.degraded:
            return
        known = [m.text for s in turn.context.sections if s.name != "recalled" for m in s.messages]
        used = topics.used_entries(turn.text, shown, [turn.question.message.text, *known])
        try:
            found = await self._store.topics_of(key, [entry.seq for entry in used])
            for topic in sorted(set(found.values())):
                await self.topics.change(key, topic, topics.apply_use)
        except FirnlineError as error:
            logger.warning("%s: what was used is not noted: %s", key.conversation, outline(error))

    # -- questions ----------------------------------------------------------------------------

    async def standalone(self, key: Key, question: str, model: ChatModel | None) -> str:
        """The question with what it leaves to the conversation; itself if that is nothing."""
        if not topics.depends_on_context(question):
            return question
        entries, title = await self._before(key, question)
        if model is None:
            return topics.standalone(question, entries, title)
        try:
            messages = topics.standalone_messages(question, entries)
            answer = (await model.complete(messages, max_tokens=200)).message.text
        except ModelError as error:
            logger.warning("rewritten by rules, the model failed: %s", outline(error))
            answer = ""
        return topics.check_rewrite(answer, question, entries, title)

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
            logger.warning("%s: no topic for the question: %s", key.conversation, outline(error))
            return None


def _meant(embedder: Embedder | str | None) -> Embedder | None:
    if embedder == AUTO:
        return default_embedder()
    if isinstance(embedder, str):
        return open_embedder(embedder)
    return None if embedder is None else _Checked(embedder)


def _by_meaning(
    store: Store, embedder: Embedder | None, tenant: str
) -> tuple[NearestVectors | None, Indexer | None]:
    """What search by meaning needs."""
    if embedder is None:
        return None, None
    try:
        from firnline.engine.embedding_indexer import Indexer, NearestVectors  # noqa: PLC0415 - numpy is an optional extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        raise FirnlineError('an embedder needs an extra: pip install "firnline[recall]"') from error
    return NearestVectors(store), Indexer(store, embedder, tenant)


class _Checked:
    """An embedder that was given: whatever goes wrong in it is a `ModelError`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        try:
            given = await self._embedder.embed(texts)
            vectors = [[float(number) for number in vector] for vector in given]
        except FirnlineError:
            raise
        except Exception as error:
            raise self._failed(f"failed: {type(error).__name__}: {error}") from error
        if len(vectors) != len(texts):
            raise self._failed(f"gave {len(vectors)} vectors for {len(texts)} texts")
        if len({len(vector) for vector in vectors}) > 1 or not all(vectors):
            raise self._failed("gave vectors of different dimensions, or empty ones")
        if not all(map(math.isfinite, (number for vector in vectors for number in vector))):
            raise self._failed("gave a number that is not finite")
        return vectors

    async def close(self) -> None:
        await self._embedder.close()

    def _failed(self, how: str) -> ModelError:
        return ModelError(f"the embedder {self.name} {how}", code="embedder")


def check_time(name: str, at: object) -> None:
    """Raise `InputError` for what is no moment."""
    if not isinstance(at, datetime):
        raise InputError(f"{name}: expected a datetime, got {type(at).__name__}")
    if at.utcoffset() is None:
        raise InputError(f"{name} needs a time zone, for example datetime.UTC")


def _check(filters: Filters) -> None:
    """Raise `InputError` for what cannot be meant."""
    check_names(filters, Filters, "filter")
    for name in ("roles", "tags"):
        if isinstance(filters.get(name), str):
            raise InputError(f"{name}: several are meant, in a list; got a text")
    if unknown := set(filters.get("roles") or ()) - _ROLES:
        raise InputError(
            f"roles: {min(map(str, unknown))!r}; there are {', '.join(sorted(_ROLES))}"
        )
    for name in ("since", "until"):
        if (at := filters.get(name)) is not None:
            check_time(name, at)
