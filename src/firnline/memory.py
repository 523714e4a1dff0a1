"""`Memory`: the whole flow on one page.

append   check → count tokens → Store.append (chain hash, running total, idempotency) → ack
context  Builder: look → strategy → fold (Engine: lease, summarise, receipt, commit) → assemble
turn     append the question → context → model, with tools in bounded rounds → append the answer
read     Store.read, every hash derived again on the way
verify   Store.records → proof.Audit
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, Unpack
from weakref import WeakValueDictionary

from firnline import digest
from firnline.context.budget import Budget, BudgetLike, as_budget
from firnline.context.context import Context
from firnline.context.plan import Strategy, ends_round, is_question
from firnline.context.tools import Toolbox, as_schemas, joined
from firnline.context.view import in_force, is_still, span_of
from firnline.digest import (
    items,
    model_extractor,
    model_summarizer,
    offline_extractor,
    offline_summarizer,
)
from firnline.embedding.words import WordEmbedder
from firnline.engine import stats
from firnline.engine.context_builder import BuildRequest, ContextBuilder
from firnline.engine.digest_history import (
    STUCK_AFTER,
    Difference,
    Lineage,
    State,
    difference,
    lineage_of,
    state_of,
)
from firnline.engine.digester import Digester
from firnline.engine.events import Events, of_append, of_context, of_erase, of_fold, of_recall
from firnline.engine.options import MemoryOptions, check_names
from firnline.engine.pending import PendingDigests, StrategyRegistry
from firnline.engine.question import QuestionRewriter
from firnline.engine.recall import (
    AUTO,
    Filters,
    Recaller,
    as_embedder,
    check_filters,
    check_time,
    scope_of,
)
from firnline.engine.stats import Stats
from firnline.engine.topic_assigner import TopicAssigner
from firnline.engine.turn import (
    Dialogue,
    Turn,
    TurnOptions,
    answered,
    as_system,
    check_options,
    of_turn,
)
from firnline.engine.turn import run as run_turn
from firnline.engine.turn import stream as stream_turn
from firnline.engine.verify import verify_conversation
from firnline.engine.worker import Worker
from firnline.errors import ConflictError, InputError, UnknownConversation
from firnline.log import limits
from firnline.log.chain import Verification
from firnline.log.draft import count_drafts, encode_messages
from firnline.log.entry import (
    Appended,
    Archived,
    Digest,
    Entry,
    Erased,
    Head,
    Hit,
    Idempotency,
    Key,
    Project,
    clean_project,
    fingerprint,
)
from firnline.log.message import Message, check_pin, encode, utc_now
from firnline.log.text import Json, clean_fields, clean_name
from firnline.log.tokens import DEFAULT_MODEL, counter
from firnline.log.wire import MessageLike, load_openai
from firnline.models import open_model
from firnline.models.guard import Spend
from firnline.models.model_like import ModelLike, as_model
from firnline.protocols import ChatModel, Clock, Event, Finding, Pending, Progress, Retriever, Store
from firnline.recall.tools import recall_tools
from firnline.store import open_store
from firnline.store.cards import TenantCards
from firnline.strategies import as_strategy, layered
from firnline.strategies import topics as by_topics
from firnline.strategies.topics import summary_as_system
from firnline.topics import TopicMatch, TopicStats, apply_feedback, change_tags
from firnline.transfer import exporter, importer, jsonl
from firnline.transfer.branch import branch_conversation
from firnline.transfer.exporter import ExportFormat
from firnline.transfer.importer import Report
from firnline.transfer.jsonl import Manifest

DEFAULT_TENANT: Final = "default"
_RECALLED: Final = 10
_DIGEST_TRIES: Final = 20
_DIGEST_PAUSE: Final = 0.05


class Memory:
    """The conversations of one tenant.

    ``async with Memory.open("sqlite:///notes.db") as memory:`` opens it and closes it again. All
    methods may be called concurrently. A message is durable when `append` returns.
    """

    def __init__(
        self, store: Store, *, clock: Clock = utc_now, **options: Unpack[MemoryOptions]
    ) -> None:
        check_names(options, MemoryOptions)
        self._store, self._clock = store, clock
        self._tenant = clean_name(options.get("tenant", DEFAULT_TENANT), "tenant")
        self._opened: dict[str, ChatModel] = {}
        self._model = model = self._meant(options.get("model"))
        named = options.get("tokens_of") or (model.name if model else DEFAULT_MODEL)
        self._count = count = counter(named)
        self._events = Events(self._tenant, options.get("observer"))
        self._digester = Digester(
            store,
            summarizer=options.get("summarizer")
            or (model_summarizer(model, count.text) if model else offline_summarizer(count.text)),
            extractor=options.get("extractor")
            or (model_extractor(model) if model else offline_extractor()),
            count=count,
            spend=options.get("spend") or (Spend() if model else None),
            breaker=options.get("breaker"),
            lease_seconds=options.get("lease_seconds", limits.LEASE_SECONDS),
        )
        self._background = options.get("background", False)
        self._works = self._may_work = options.get("worker", True)
        embedder = as_embedder(options.get("embedder", AUTO))
        self._topics = TopicAssigner(
            store, embedder or WordEmbedder(), clock=clock, rules=options.get("topic_rules")
        )
        self._rewriter = QuestionRewriter(store, self._topics)
        self._recaller = Recaller(
            store, tenant=self._tenant, clock=clock, count=count, embedder=embedder
        )
        default = as_strategy(options.get("strategy") or layered())
        strategies = StrategyRegistry(default, options.get("strategies", ()))
        self._pending = PendingDigests(
            store,
            strategies,
            budget=Budget.of(named),
            background=self._background,
            clock=clock,
        )
        self._builder = ContextBuilder(
            store,
            self._digester,
            pending=self._pending,
            topics=self._topics,
            recaller=self._recaller,
            rewriter=self._rewriter,
            events=self._events,
            count=count,
        )
        # Only this tenant's digests: its messages must not reach another tenant's model.
        self._worker = Worker(store, self._builder.digest_pending, clock=clock, tenant=self._tenant)
        self._pending.listeners.append(self._wake_worker)
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @classmethod
    def open(
        cls,
        url: str = "sqlite:///firnline.db",
        *,
        clock: Clock = utc_now,
        **options: Unpack[MemoryOptions],
    ) -> Self:
        """A memory at `url` (``sqlite:///FILE`` or ``memory:``); see `MemoryOptions`.

        Nothing is touched until it is entered with ``async with`` (or `start` is awaited).
        """
        return cls(open_store(url, clock=clock), clock=clock, **options)

    async def start(self) -> None:
        """Open the store; ``async with`` does this."""
        self._works = self._may_work
        await self._store.open()
        # The vocabulary takes a third of a second to load; not later, on the event loop.
        await asyncio.to_thread(self._count.text, "")
        if self._works:
            self._recaller.poke()  # what others left without vectors
        if self._background and self._works:
            self._worker.start()

    async def close(self) -> None:
        """Let go of the store and of the model; ``async with`` does this."""
        self._works = False  # what still goes on starts nothing that nobody would stop
        async with AsyncExitStack() as last_things:  # each is done, whatever the others raise
            last_things.push_async_callback(self._store.close)
            for model in {*self._opened.values(), *filter(None, [self._model])}:
                last_things.push_async_callback(model.close)
            last_things.push_async_callback(self._recaller.close)
            last_things.push_async_callback(self._worker.stop)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def tenant(self) -> str:
        """Whose conversations these are."""
        return self._tenant

    @property
    def store(self) -> Store:
        """What keeps them."""
        return self._store

    @property
    def cards(self) -> TenantCards:
        """Small named values that an edge keeps next to the log."""
        return TenantCards(self._store, self._tenant)

    @property
    def events(self) -> Mapping[str, int]:
        """How often what happened: appends, recalls, contexts, folds, failed folds, turns..."""
        return dict(self._events.counts)

    def tell(self, name: str, conversation: str, values: Mapping[str, float | str]) -> None:
        """Count something that was done with a conversation elsewhere, and tell the observer."""
        self._events(Event(name, self._tenant, conversation, values))

    def _key(self, conversation: str) -> Key:
        return Key(self._tenant, clean_name(conversation, "conversation"))

    async def _known(self, key: Key) -> Head:
        head = await self._store.head(key)
        if head is None:
            raise UnknownConversation(f"there is no conversation {key.conversation!r}")
        return head

    # -- writing ------------------------------------------------------------------------------

    async def append(
        self,
        conversation: str,
        messages: MessageLike | Iterable[MessageLike],
        *,
        expected_seq: int | None = None,
        idempotency_key: str | None = None,
    ) -> Appended:
        """Add one message or several to the end of a conversation; durable when this returns.

        Several are stored together or not at all. Messages are `Message` values or of the OpenAI
        shape, dicts or the SDK's objects; one without a time gets the present one. `expected_seq`
        is the sequence number the first of them must get, else `ConflictError`. Repeating an append
        with the same `idempotency_key` and messages returns what was stored the first time.

        Concurrent appends are ordered as they reach the store: await one before the next to keep
        yours in order. One that is cancelled may have been stored all the same.
        """
        key = self._key(conversation)
        given = load_openai(messages)
        idempotency = None
        if idempotency_key is not None:
            name = clean_name(idempotency_key, "idempotency_key")
            idempotency = Idempotency(name, fingerprint([encode(message) for message in given]))
        with self._events.timed("append", conversation) as timer:
            timed, bodies, size = encode_messages(given, self._clock())
            if size > limits.COUNT_INLINE_CHARS:
                # The encoder works outside Python's lock, so the event loop goes on meanwhile.
                drafts = await asyncio.to_thread(count_drafts, self._count, timed, bodies)
            else:
                drafts = count_drafts(self._count, timed, bodies)
            appended = await self._store.append(
                key, drafts, expected_seq=expected_seq, idempotency=idempotency
            )
            timer.done(of_append, appended)
        await self._on_append(key, given)
        return appended

    async def _on_append(self, key: Key, messages: Sequence[Message]) -> None:
        """What follows an append: vectors and digests, in the background."""
        if self._works:
            self._recaller.poke(key)
        await self._pending.on_append(key, messages)

    def _wake_worker(self) -> None:
        if self._works:
            self._worker.start()
            self._worker.wake()

    async def describe(
        self,
        conversation: str,
        *,
        project: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        known: Head | None = None,
    ) -> Head:
        """Say which project a conversation belongs to, or what else to remember about it.

        `known` is how it was: `ConflictError` if it is described otherwise by now, or erased.
        """
        if project is not None:
            clean_name(project, "project")
        cleaned = None if metadata is None else clean_fields(metadata, "metadata")
        return await self._store.describe(
            self._key(conversation), project=project, metadata=cleaned, known=known
        )

    async def branch(self, conversation: str, seq: int, name: str) -> Head:
        """A new conversation `name` that begins with the entries 0 to `seq`, word for word.

        With their times, token counts and pins; with project, strategy and metadata, to which is
        added ``branch``: of which conversation, at which entry; and with the digests made of these
        entries alone. It is a copy: what becomes of one does not touch the other, not even erasing.
        The same call again changes nothing, and finishes what a crash left half done;
        `ConflictError` if `name` is another conversation.
        """
        key = self._key(name)
        head = await branch_conversation(self._store, self._key(conversation), seq, key)
        self._pending.forget(key)
        await self._pending.on_round(key)
        if self._works:
            self._recaller.poke(key)
        return await self._store.head(key) or head

    async def save_project(self, project: Project) -> None:
        """Create a project, or replace what is known of it."""
        await self._store.save_project(self._tenant, clean_project(project))

    async def pin(self, conversation: str, seq: int) -> None:
        """Show this entry in every context from now on, word for word."""
        key = self._key(conversation)
        found = (
            await self._store.read(key, seq, seq)
            if limits.check_number("seq", seq, None) >= 0
            else []
        )
        if not found:
            raise InputError(f"{conversation} has no entry {seq}")
        check_pin(found[0].message)
        await self._store.pin(key, seq)
        if not await is_still(self._store, key, found[0]):  # nor is what others began there meant
            with suppress(InputError, UnknownConversation):
                await self._store.pin(key, seq, pinned=False)
            raise UnknownConversation(f"{conversation!r} was erased meanwhile")

    async def unpin(self, conversation: str, seq: int) -> None:
        """Treat the entry like any other again."""
        limits.check_number("seq", seq, None)
        await self._store.pin(self._key(conversation), seq, pinned=False)

    async def pinned(self, conversation: str) -> list[Entry]:
        """The pinned entries, in order."""
        return await self._store.pinned(self._key(conversation))

    # -- contexts -----------------------------------------------------------------------------

    async def context(  # noqa: PLR0913 - each is asked for by name
        self,
        conversation: str,
        budget: BudgetLike,
        question: str | None = None,
        *,
        system: str | Message | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        task: str | None = None,
        retriever: Retriever | None = None,
        fold: bool = True,
        past: bool = False,
    ) -> Context:
        """What a model should see of the conversation now; never more than `budget`.

        `budget` is a `Budget`, a model's name or a number of tokens. With a `question`, old entries
        that fit it are recalled. `system` comes first, `tools` are schemas in the OpenAI shape that
        will be sent along, `task` is the task at hand (else the project's), `retriever` finds
        documents for the room that is left. What cannot fit raises `BudgetError`. Without `fold` it
        is only looked at: nothing is digested or owed for it, and nobody is told. All of it is
        `past` if the question is not stored yet: then the user's newest message may be shortened.
        """
        if not isinstance(question, str | None):
            raise InputError(f"question: expected a text, got {type(question).__name__}")
        request = BuildRequest(
            budget=as_budget(budget),
            question=question,
            system=as_system(system),
            tools=as_schemas(tools),
            task=task,
            retriever=retriever,
            fold=fold,
            past=past,
        )
        key = self._key(conversation)
        if not fold:
            return await self._builder.build(key, request)
        with self._events.timed("context", conversation) as timer:
            context = await self._builder.build(key, request)
            timer.done(of_context, context)
        return context

    async def set_strategy(
        self, conversation: str, strategy: Strategy | str, *, known: Head | None = None
    ) -> Head:
        """Plan this conversation's contexts so from now on; `known` is as in `describe`."""
        key = self._key(conversation)
        chosen = as_strategy(strategy)
        self._pending.strategies.check(chosen)
        head = await self._store.describe(key, strategy=chosen.to_json(), known=known)
        self._pending.set_strategy(key, chosen)
        return head

    async def strategy(self, conversation: str) -> Strategy:
        """How this conversation's contexts are planned."""
        head = await self._store.head(self._key(conversation))
        return self._pending.strategies.strategy_of(head)

    async def turn(
        self,
        conversation: str,
        message: str | MessageLike,
        model: ModelLike | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[TurnOptions],
    ) -> Turn:
        """Store what the user says, let the model answer, store the answer.

        The user's message is durable before the model is asked. `model` is the memory's own unless
        given. See `TurnOptions` for the rest. If the model fails, `ModelError` is raised and the
        user's message stays. The same `idempotency_key` again gives the same answer, and waits for
        it if it is still being made in this memory.
        """
        dialogue = self._dialogue(conversation, model, message, options)
        async with self._turn_of(conversation, idempotency_key):
            with self._events.timed("turn", conversation) as timer:
                question = await self._asked(conversation, message, idempotency_key)
                if idempotency_key and (answer := await self._answer_to(conversation, question)):
                    done = await answered(dialogue, question, answer)
                else:
                    done = await run_turn(dialogue, question)
                    await self._topics.credit(self._key(conversation), done)
                timer.done(of_turn, done)
        return done

    async def stream(
        self,
        conversation: str,
        message: str | MessageLike,
        model: ModelLike | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[TurnOptions],
    ) -> AsyncIterator[str | Turn]:
        """Like `turn`, with the answer's text in pieces as it comes, and then the `Turn`."""
        dialogue = self._dialogue(conversation, model, message, options)
        async with self._turn_of(conversation, idempotency_key):
            with self._events.timed("turn", conversation) as timer:
                question = await self._asked(conversation, message, idempotency_key)
                if idempotency_key and (answer := await self._answer_to(conversation, question)):
                    yield answer.message.text
                    done = await answered(dialogue, question, answer)
                    timer.done(of_turn, done)
                    yield done
                    return
                async for item in stream_turn(dialogue, question):
                    if isinstance(item, Turn):
                        await self._topics.credit(self._key(conversation), item)
                        timer.done(of_turn, item)
                    yield item

    def _turn_of(self, conversation: str, idempotency_key: str | None) -> asyncio.Lock:
        """Held while a turn is made: who repeats it meanwhile waits, and finds its answer."""
        if idempotency_key is None:
            return asyncio.Lock()
        return self._turns.setdefault((conversation, idempotency_key), asyncio.Lock())

    async def _go_on(self, question: Entry, key: Key, messages: Sequence[Message]) -> Appended:
        """Append to a turn that has begun; a conversation erased meanwhile does not come back."""
        for _ in range(limits.ANSWER_TRIES):
            head = await self._known(key)
            if not await is_still(self._store, key, question):
                raise UnknownConversation(f"{key.conversation!r} was erased meanwhile")
            # If others say something first, it is looked again whether it was erased.
            with suppress(ConflictError):
                return await self.append(key.conversation, messages, expected_seq=head.entries)
        return await self.append(key.conversation, messages)  # so busy that it is there

    async def _answer_to(self, conversation: str, question: Entry) -> Entry | None:
        """The answer that a turn stored for this question, if it did so in an earlier try."""
        later = await self.read(conversation, first_seq=question.seq + 1, limit=limits.ANSWER_REACH)
        for entry in later:
            if is_question(entry.message):
                return None
            if ends_round(entry.message):
                return entry
        return None

    async def _asked(
        self, conversation: str, message: str | MessageLike, idempotency_key: str | None
    ) -> Entry:
        given = Message.user(message) if isinstance(message, str) else message
        stored = await self.append(conversation, given, idempotency_key=idempotency_key)
        return stored[-1]

    def _dialogue(
        self,
        conversation: str,
        model: ModelLike | None,
        message: str | MessageLike,
        options: TurnOptions,
    ) -> Dialogue:
        check_options(options)
        chosen = self._meant(model) or self._model
        if chosen is None:
            raise InputError("a turn needs a model: Memory.open(model=...) or turn(..., model)")
        if options.get("recall_tools"):
            options["tools"] = joined(options.get("tools", ()), self.tools(conversation))
        return Dialogue(
            append=lambda asked, *more: self._go_on(asked, self._key(conversation), more),
            build=lambda budget, **request: self.context(conversation, budget, **request),
            model=chosen,
            text=message if isinstance(message, str) else load_openai(message)[0].text,
            options=options,
            larger=self._meant(options.get("larger")),
            timed=lambda name: self._events.timed(name, conversation),
        )

    def _meant(self, model: ModelLike | None) -> ChatModel | None:
        """The model that is meant; one that is named is opened once, and closed with the memory."""
        if not isinstance(model, str):
            return as_model(model)
        if model not in self._opened:
            self._opened[model] = open_model(model)
        return self._opened[model]

    # -- digests ------------------------------------------------------------------------------

    async def digest(self, conversation: str) -> int:
        """Make now the digests that are owed; returns how many were made.

        `ConflictError` if somebody else is making them and does not come to an end soon.
        """
        key = self._key(conversation)
        for _ in range(_DIGEST_TRIES):
            try:
                return await self._builder.digest_pending(key)
            except ConflictError:
                await asyncio.sleep(_DIGEST_PAUSE)
        return await self._builder.digest_pending(key)

    async def digests(
        self, conversation: str, *, versions: Sequence[int] | None = None
    ) -> list[Digest]:
        """The conversation's digests by version, all or these, failed and undone ones too."""
        return await self._store.digests(self._key(conversation), versions)

    async def in_force(self, conversation: str) -> tuple[Digest, ...]:
        """The digests that contexts are made of now, oldest span first.

        Where contexts are made by topic, those of the active one.
        """
        key = self._key(conversation)
        by_topic = (await self.strategy(conversation)).by_topic
        active = await self._topics.active(key) if by_topic else None
        found = await in_force(self._store, key, active.id if active else None)
        return tuple(d for d in found if active is None or d.version > active.outdated)

    async def lineage(self, conversation: str) -> Lineage:
        """The chain of versions, what is stuck, and how long digests took."""
        return lineage_of(await self.digests(conversation), self._clock())

    async def state(self, conversation: str) -> State:
        """What the conversation's memory holds: important data, summary, how far it reaches."""
        return state_of(await self.in_force(conversation))

    async def remember(
        self, conversation: str, important_data: Mapping[str, Any], *, summary: str | None = None
    ) -> Digest:
        """Add to the important data what the application knows; a new version, so it can be undone.

        With `summary` the newest summary is replaced by it.
        """
        stated = items.items_from_data(important_data)
        return await self._digester.amend(
            self._key(conversation), lambda known: items.merge(known, stated), summary
        )

    async def revert(self, conversation: str, seq: int) -> Digest:
        """Take back what the entry `seq` replaced in the important data: the old value holds again.

        Both stay in it; a new version, so this can be undone, too. -1 stands for what `remember`
        replaced.
        """
        return await self._digester.amend(
            self._key(conversation), lambda known: items.restore(known, seq)
        )

    async def undo(self, conversation: str, *, topic: int | None = None) -> Digest:
        """Take the newest digest out of force; it is kept, and those before it hold again.

        With `topic`, the newest one of that topic.
        """
        key = self._key(conversation)
        undone = await self._digester.undo(key, topic)
        await self._topics.undone(key, undone)
        return undone

    async def clear(self, conversation: str) -> int:
        """Undo every digest; the messages stay, and new digests are made from them."""
        key, undone = self._key(conversation), 0
        for topic in (None, *(await self._store.topics(key)).topics):
            while await self._store.newest_digest(key, topic) is not None:
                await self.undo(conversation, topic=topic)
                undone += 1
        return undone

    async def expand(self, conversation: str, version: int) -> list[Entry]:
        """The entries that a digest covers, word for word."""
        digest = await self._digest(conversation, version)
        span = digest.first_seq, digest.last_seq
        return await span_of(self._store, self._key(conversation), *span, topic=digest.topic)

    async def diff(self, conversation: str, before: int, after: int) -> Difference:
        """What changed from one version to another."""
        first = await self._digest(conversation, before)
        return difference(first, await self._digest(conversation, after))

    async def rebuild(self, conversation: str, *, only_offline: bool = False) -> list[Digest]:
        """Make the digests in force anew from the log, for example with a better model.

        `only_offline`: just those that no model had a hand in.
        """
        key = self._key(conversation)
        made = await self._digester.rebuild(key, only_offline=only_offline)
        for topic in (await self._store.topics(key)).topics.values():
            if topic.merged_into is None:
                made += await self._digester.rebuild(key, only_offline=only_offline, topic=topic)
        for version in made:
            self._events.timed("fold", conversation).done(of_fold, version)
        return made

    async def work(self, *, once: bool = False, all_tenants: bool = False) -> int:
        """Make the digests that are owed; for ever, or once.

        `all_tenants`: not this tenant's alone, but those of every tenant of the store. Their
        messages then reach this memory's model, if it has one.
        """
        self._worker.tenant = None if all_tenants else self._tenant
        if once:
            return await self._worker.once()
        await self._worker.run()
        return 0

    async def due(
        self, *, until: datetime | None = None, limit: int = 100, all_tenants: bool = False
    ) -> list[Key]:
        """The conversations whose digests are due by `until` (now), the longest due first."""
        tenant = None if all_tenants else self._tenant
        return await self._store.due(until or self._clock(), limit, tenant)

    async def pending(self) -> Pending:
        """What is pending now: digests that are due, in progress or stuck."""
        now = self._clock()
        return await self._store.pending(
            now, stuck_before=now - STUCK_AFTER, cards="", tenant=self._tenant
        )

    async def _digest(self, conversation: str, version: int) -> Digest:
        found = await self._store.digests(self._key(conversation), [version])
        if not found:
            raise InputError(f"{conversation} has no digest {version}")
        return found[0]

    # -- reading ------------------------------------------------------------------------------

    async def read(
        self,
        conversation: str,
        *,
        first_seq: int = 0,
        last_seq: int | None = None,
        limit: int | None = None,
    ) -> list[Entry]:
        """The entries from `first_seq` to `last_seq`, word for word, archived or not."""
        for name, given in (("first_seq", first_seq), ("last_seq", last_seq), ("limit", limit)):
            if given is not None:
                limits.check_number(name, given, None)
        return await self._store.read(self._key(conversation), first_seq, last_seq, limit)

    async def read_at(self, conversation: str, seqs: Sequence[int]) -> list[Entry]:
        """The entries with these sequence numbers, in order; missing ones are skipped."""
        return await self._store.at(self._key(conversation), seqs)

    async def newest(self, conversation: str, *, tokens: int) -> list[Entry]:
        """The newest entries that fit into `tokens`; costs the same however long the log is."""
        return await self._store.newest(
            self._key(conversation), limits.check_number("tokens", tokens)
        )

    async def tokens_between(self, conversation: str, first_seq: int, last_seq: int) -> int:
        """The tokens of the entries `first_seq` to `last_seq`, both included."""
        return await self._store.tokens_between(self._key(conversation), first_seq, last_seq)

    async def dated(
        self,
        conversation: str,
        since: datetime,
        until: datetime,
        *,
        first_seq: int = 0,
        limit: int = 100,
    ) -> list[Entry]:
        """The entries said in [since, until), by number, from `first_seq` on."""
        for name, at in (("since", since), ("until", until)):
            check_time(name, at)
        limits.check_number("limit", limit, 1, limits.PAGE_MAX)
        return await self._store.dated(self._key(conversation), since, until, limit, first_seq)

    async def head(self, conversation: str) -> Head | None:
        """Where the conversation stands, or None if there is none."""
        return await self._store.head(self._key(conversation))

    async def conversations(
        self, *, project: str | None = None, after: str = "", limit: int = 100
    ) -> list[Head]:
        """The conversations by name, those behind `after`."""
        limits.check_number("limit", limit, 1, limits.PAGE_MAX)
        for name, given in (("project", project), ("after", after)):
            if given:
                clean_name(given, name)
        return await self._store.conversations(
            self._tenant, project=project, after=after, limit=limit
        )

    async def projects(self) -> list[Project]:
        """The projects by name."""
        return await self._store.projects(self._tenant)

    async def recall(
        self,
        conversation: str | None,
        query: str,
        *,
        limit: int | None = None,
        tokens: int | None = None,
        **filters: Unpack[Filters],
    ) -> list[Hit]:
        """Old entries that fit `query`, best first; None searches every conversation.

        Words, meaning (if there is an embedder), dates and what was said around an entry count
        together. At most `limit` entries, 10 unless `tokens` is given: then as many as have at most
        so many tokens together, each with its speaker's name. See `Filters` for the rest.
        """
        if limit is None and tokens is None:
            limit = _RECALLED
        if limit is not None:
            limits.check_number("limit", limit, 1, limits.PAGE_MAX)
        if tokens is not None:
            limits.check_number("tokens", tokens)
        if conversation is not None:
            clean_name(conversation, "conversation")
        with self._events.timed("recall", conversation) as timer:
            if not isinstance(query, str):
                raise InputError(f"query: expected a string, got {type(query).__name__}")
            check_filters(filters)
            scope = scope_of(conversation, filters)
            if filters.get("topic") is not None or filters.get("tags"):
                scope = await self._topics.narrow(self._tenant, scope, filters)
            hits = await self._recaller.recall(query, scope, limit=limit, tokens=tokens)
            timer.done(of_recall, hits)
        return hits

    async def standalone(self, conversation: str, question: str) -> str:
        """The question with what it leaves to the conversation: what "it" or "there" stands for.

        By the memory's model if it has one, else by rules; never with words that were not said.
        """
        return await self._rewriter.standalone(self._key(conversation), question, self._model)

    async def embed(self, conversation: str, *, progress: Progress | None = None) -> int:
        """Finish now the embedding that goes on in the background; returns how many entries."""
        return await self._recaller.embed(self._key(conversation), progress)

    # -- topics -------------------------------------------------------------------------------

    async def topics(self, conversation: str) -> list[TopicStats]:
        """The conversation's topics in numbers, the active one first, archived ones too."""
        return await self._topics.stats(self._key(conversation))

    async def topic_stats(self, conversation: str, topic: int | None = None) -> TopicStats:
        """One topic in numbers: the active one unless given."""
        found = await self._topics.stats(self._key(conversation), topic)
        if not found:
            raise InputError(f"{conversation} has no topics yet")
        return found[0]

    async def topic_context(
        self, conversation: str, budget: BudgetLike, *, fold: bool = True
    ) -> Context:
        """The active topic: its summary as a system message, then its active messages.

        Without `fold` it is only looked at, as in `context`.
        """
        own, rules = await self.strategy(conversation), self._topics.rules
        most, keep = rules.max_messages_per_topic, rules.recent_message_keep
        strategy = own if own.by_topic else by_topics(max_messages=most, keep=keep)
        request = BuildRequest(budget=as_budget(budget), fold=fold)
        key, chosen = self._key(conversation), summary_as_system(strategy)
        if not fold:
            return await self._builder.build(key, request, chosen)
        with self._events.timed("context", conversation) as timer:
            context = await self._builder.build(key, request, chosen)
            timer.done(of_context, context)
        return context

    async def topic_history(self, conversation: str, topic: int | None = None) -> list[Entry]:
        """Every message of a topic, the active one unless given, archived or not, in order."""
        key = self._key(conversation)
        chosen = (await self.topic_stats(conversation, topic)).topic_id
        return await self._store.at(key, await self._store.members(key, chosen))

    async def topic_seqs(self, conversation: str, topic: int, *, first_seq: int = 0) -> list[int]:
        """The sequence numbers of a topic's entries, from `first_seq` on."""
        return await self._store.members(self._key(conversation), topic, first_seq)

    async def match_topic(self, conversation: str, text: str) -> TopicMatch | None:
        """The topic that a text is most like: the raw cosine, and the similarity on our scale.

        None if there is nothing to compare: no topic, or no subject, as in "and then?".
        """
        return await self._topics.match(self._key(conversation), text)

    async def merge_topics(self, conversation: str, into: int, topic: int) -> TopicStats:
        """Put the messages of `topic` into the topic `into`."""
        merged = await self._topics.merge(self._key(conversation), into, topic)
        return await self.topic_stats(conversation, merged.id)

    async def tag_topic(
        self, conversation: str, topic: int, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> TopicStats:
        """Add tags to a topic, and remove some; search can keep to topics with a tag."""
        await self._topics.change(
            self._key(conversation), topic, lambda known: change_tags(known, add, remove)
        )
        return await self.topic_stats(conversation, topic)

    async def feedback(self, conversation: str, seq: int, vote: Literal[1, -1]) -> TopicStats:
        """Say that an entry was of use (1) or not (-1); its topic gains or loses importance."""
        topic = await self._topics.of(self._key(conversation), seq)
        await self._topics.change(
            self._key(conversation), topic, lambda known: apply_feedback(known, vote)
        )
        return await self.topic_stats(conversation, topic)

    def tools(
        self, conversation: str, *, zone: str = "UTC", tokens_max: int = limits.RECALL_TOKENS
    ) -> Toolbox:
        """Tools by which a model can look into this conversation, and into no other.

        Dates are understood and times written in `zone`; a result takes at most `tokens_max`.
        """
        return recall_tools(
            self,
            conversation,
            zone=zone,
            tokens_max=tokens_max,
            clock=self._clock,
            count=self._count,
        )

    async def stats(self, conversation: str, *, price: float = stats.PRICE) -> Stats:
        """How large the conversation is, and what an answer costs at `price` a million tokens."""
        return await stats.measured(self, await self._known(self._key(conversation)), price=price)

    # -- proving ------------------------------------------------------------------------------

    async def verify(
        self, conversation: str, *, anchor: str | None = None, progress: Progress | None = None
    ) -> Verification:
        """Derive every hash of the conversation again, archived entries too.

        `anchor` is a hash of an entry that was noted elsewhere; if it is not in the chain, the log
        is not the one it was taken from, however consistent it is in itself.
        """
        return await verify_conversation(self._store, self._key(conversation), anchor, progress)

    async def check(self, *, thorough: bool = False) -> list[Finding]:
        """The health of the store itself."""
        return await self._store.check(thorough=thorough)

    async def rebuild_index(self, *, progress: Progress | None = None) -> None:
        """Make the search index anew from the log, for every tenant of the store."""
        await self._store.rebuild_index(progress)

    # -- keeping and leaving ------------------------------------------------------------------

    async def archive(self, conversation: str, *, keep: int = 1_000) -> Archived:
        """Compress all but the newest `keep` entries; reading, searching, verifying go on."""
        limits.check_number("keep", keep)
        key = self._key(conversation)
        head = await self._known(key)
        return await self._store.archive(key, 0, head.seq - keep)

    async def restore(self, conversation: str) -> int:
        """Take every archived entry back; returns how many there were."""
        key = self._key(conversation)
        await self._known(key)
        return await self._store.restore(key, 0, (1 << limits.SEQ_BITS) - 1)

    async def erase(self, conversation: str) -> Erased:
        """Destroy a conversation and everything derived from it; no byte is left on disk."""
        key = self._key(conversation)
        with self._events.timed("erase", conversation) as timer:
            erased = await self._store.erase(key)
            timer.done(of_erase, erased)
        self._pending.forget(key)
        self._builder.forget(key)
        self._recaller.forget(key)
        digest.clear_caches()
        return erased

    async def export(
        self,
        path: str | PathLike[str],
        *,
        conversations: Sequence[str] | None = None,
        as_format: ExportFormat = "jsonl",
        progress: Progress | None = None,
    ) -> Manifest:
        """Write conversations (all of them, unless named) to a JSON Lines file with a manifest.

        For others to read: ``openai`` (a line each), ``markdown`` and ``html`` (a file for one that
        is named, else a folder). Only ``jsonl`` can be imported again without loss.
        """
        keys = None if conversations is None else [self._key(name) for name in conversations]
        where = self._store, self._tenant, Path(path)
        return await exporter.export(*where, keys, as_format, progress)

    def export_pieces(
        self, conversations: Sequence[str] | None = None
    ) -> AsyncIterator[tuple[bytes, Manifest]]:
        """The lines of such a file in pieces, each with the counts so far; the manifest is last."""
        keys = None if conversations is None else [self._key(name) for name in conversations]
        return jsonl.pieces(self._store, self._tenant, keys)

    async def import_(
        self, path: str | PathLike[str], *, progress: Progress | None = None
    ) -> Manifest:
        """Read such a file; all of it is checked first. Importing it again adds nothing."""
        return await jsonl.import_(self._store, self._tenant, Path(path), progress)

    async def import_file(
        self,
        path: str | PathLike[str],
        *,
        as_format: str | None = None,
        zone: str = "UTC",
        progress: Progress | None = None,
    ) -> Report:
        """Take conversations of other programs, from a file, a zip or a folder; see docs/import.md.

        The format is recognised unless named; `zone` is that of times that name none. Importing
        again adds what is new. The report says what was not taken, and what was not understood.
        """
        return await importer.import_file(
            self, Path(path), as_format=as_format, zone=zone, progress=progress
        )

    async def backup(self, path: str | PathLike[str], *, progress: Progress | None = None) -> None:
        """Write a consistent copy of the whole store to a new file while it goes on working."""
        await self._store.backup(Path(path), progress)
