"""`Engine`: the parts behind a memory, composed from its options, and their lifetime."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import Final

from firnline import digest
from firnline.context.budget import (
    NO_WINDOWS,
    Budget,
    BudgetLike,
    as_budget,
    budget_of_model,
    check_windows,
)
from firnline.context.context import Context
from firnline.digest import model_extractor, model_summarizer, offline_extractor, offline_summarizer
from firnline.embedding import embedder_beside
from firnline.embedding.words import WordEmbedder
from firnline.engine.context_builder import ContextBuilder
from firnline.engine.digester import Digester
from firnline.engine.erasure import MessageEraser, erase_conversations_of
from firnline.engine.events import Events, of_erase
from firnline.engine.fact_proposer import FactProposer
from firnline.engine.limits import FACTS_WAIT_SECONDS
from firnline.engine.options import MemoryOptions
from firnline.engine.pending import PendingDigests, StrategyRegistry
from firnline.engine.people import People
from firnline.engine.person import ErasedPerson
from firnline.engine.project_contexts import ProjectContexts
from firnline.engine.prover import ORIGIN, Prover
from firnline.engine.question import QuestionRewriter
from firnline.engine.recall import AUTO, Recaller, as_embedder
from firnline.engine.repair import Repairer
from firnline.engine.topic_assigner import TopicAssigner
from firnline.engine.worker import Worker
from firnline.errors import FirnlineError, ModelError, UnknownPerson, outline
from firnline.log import limits
from firnline.log.entry import Appended, Erased, Key
from firnline.log.message import Message
from firnline.log.tokens import DEFAULT_MODEL, TokenCounter, counter
from firnline.models import open_model
from firnline.models.guard import Spend
from firnline.models.model_like import ModelLike, as_model
from firnline.protocols import ChatModel, Clock, Store
from firnline.strategies import as_strategy, layered

logger: Final = logging.getLogger("firnline.context")


class Engine:
    """The parts of a memory."""

    def __init__(self, store: Store, tenant: str, clock: Clock, options: MemoryOptions) -> None:
        self._store, self._tenant, self._clock = store, tenant, clock
        self._opened: dict[str, ChatModel] = {}
        self.model = self.open_model(options.get("model"))
        name = options.get("tokens_of") or (self.model.name if self.model else DEFAULT_MODEL)
        self.count = counter(name)
        self.windows = check_windows(options.get("windows", NO_WINDOWS))
        self.events = Events(tenant, options.get("observer"))
        self.digester = _digester(store, self.model, self.count, options)
        asked = options.get("embedder", AUTO)
        embedder = as_embedder(asked)
        self.topics = TopicAssigner(
            store,
            embedder or WordEmbedder(),
            beside=embedder_beside(embedder) if embedder and asked == AUTO else None,
            clock=clock,
            rules=options.get("topic_rules"),
        )
        self.people = People(store, tenant, clock)
        self.eraser = MessageEraser(store, self.topics, self.people, count=self.count, clock=clock)
        self.rewriter = QuestionRewriter(store, self.topics)
        self.recaller = Recaller(
            store, tenant=tenant, clock=clock, count=self.count, embedder=embedder
        )
        default = as_strategy(options.get("strategy") or layered())
        self._background = options.get("background")
        self.pending = PendingDigests(
            store,
            StrategyRegistry(default, options.get("strategies", ())),
            budget=budget_of_model(name, self.windows),
            background=self._background,
            clock=clock,
        )
        self.prover = _prover(store, options)
        self.repairer = Repairer(store, self.digester, self.topics)
        self.builder = ContextBuilder(
            store,
            self.digester,
            repairer=self.repairer,
            pending=self.pending,
            topics=self.topics,
            recaller=self.recaller,
            rewriter=self.rewriter,
            events=self.events,
            count=self.count,
        )
        self.contexts = ProjectContexts(
            store, self.builder, self.pending, self.repairer, self.count
        )
        # Only this tenant's digests: its messages must not reach another tenant's model.
        own = frozenset({tenant})
        self.proposer = _proposer(store, self.people, self.model, self.digester)
        self.worker = Worker(store, self._do_pending, clock=clock, tenants=own)
        self.pending.listeners.append(self._wake_worker)
        self._works = self._may_work = options.get("worker", True)

    def open_model(self, model: ModelLike | None) -> ChatModel | None:
        """The model; one that is named is opened once, and closed with the engine."""
        if not isinstance(model, str):
            return as_model(model)
        if model not in self._opened:
            self._opened[model] = open_model(model)
        return self._opened[model]

    def budget_of(self, model: str) -> Budget:
        """The model's window; if it is unknown, the whole conversation, with a warning once."""
        budget = budget_of_model(model, self.windows)
        if budget.is_whole:
            _warn_unknown(model)
        return budget

    def room_of(self, budget: BudgetLike | None) -> int | None:
        """The tokens of a request with this budget, by default the model's; None if unknown."""
        if budget is None and self.model is None:
            return None
        if budget is None or isinstance(budget, str):
            name = budget or (self.model.name if self.model else "")
            found = budget_of_model(name, self.windows)
        else:
            found = as_budget(budget, self.windows)
        return None if found.is_whole else found.limit

    def with_estimate(self, context: Context) -> Context:
        """The context, which says how its tokens are estimated unless they are exact."""
        model = context.budget.model
        estimate = (counter(model) if model else self.count).estimate
        return replace(context, estimate=estimate) if estimate else context

    async def start(self) -> None:
        """Open the store, and start what runs in the background."""
        self._works = self._may_work
        await self._store.open()
        # Loading the vocabulary takes a third of a second; do it now, in a thread.
        await asyncio.to_thread(self.count.text, "")
        if self._works:
            self.recaller.poke()  # entries that other processes left without vectors
            self.people.start()
        if self._background and self._works:
            self.worker.start()

    async def close(self) -> None:
        """Stop the background work; close the store and the models."""
        self._works = False  # nothing starts that would not be stopped
        async with AsyncExitStack() as closing:  # each is closed, even if others fail
            closing.push_async_callback(self._store.close)
            closing.push_async_callback(self.people.close)
            for model in {*self._opened.values(), *filter(None, [self.model])}:
                closing.push_async_callback(model.close)
            closing.push_async_callback(self.recaller.close)
            closing.push_async_callback(self.topics.embedders.close)
            closing.push_async_callback(self.worker.stop)
            closing.push_async_callback(self.contexts.close)

    async def on_append(
        self, key: Key, messages: Sequence[Message], appended: Appended, person: str | None
    ) -> None:
        """After an append: new entries get vectors and digests in the background.

        What its person states is read. A failure is logged and not raised: the messages are
        stored, and a caller that is told otherwise would store them again. The next append or
        context makes up for it.
        """
        name = f"{key.conversation} (tenant {key.tenant})"
        try:
            if self._works:
                self.recaller.poke(key)
            await self.pending.on_append(key, messages)
        except Exception as error:
            self.pending.forget(key)
            if not isinstance(error, FirnlineError):
                logger.exception("%s: internal error after an append", name)
            logger.warning("%s: its digests are not recorded as pending: %s", name, outline(error))
        try:
            if person is not None or key in self.people.known:  # else it is read when needed
                await self.people.on_append(key, appended, person)
                if any(message.role == "user" for message in messages):
                    await self.ask_for_facts(key)
        except Exception as error:
            self.people.forget(key)
            if not isinstance(error, FirnlineError):
                logger.exception("%s: internal error after an append", name)
            logger.warning("%s: its facts are read later: %s", name, outline(error))

    async def ask_for_facts(self, key: Key) -> None:
        """Let a worker ask the model, if there is one, what the person has stated."""
        if self.proposer is not None:
            due = self._clock() + timedelta(seconds=FACTS_WAIT_SECONDS)
            await self._store.mark_pending(key, due)
            self._wake_worker()

    async def _do_pending(self, key: Key) -> int:
        """What a worker does for a conversation; returns how many digests were created."""
        failure = None
        if self.proposer is not None:
            try:
                await self.proposer.propose(key)
            except ModelError as error:  # its digests do not wait for its facts
                failure = error
        made = await self.builder.digest_pending(key)
        if failure is not None:
            raise failure
        return made

    async def on_branch(self, source: Key, seq: int, key: Key) -> None:
        """After a branch was written: vectors as its source has them, and digests."""
        await self.recaller.on_branch(source, seq, key)
        self.pending.forget(key)
        await self.pending.on_round(key)
        if self._works:
            self.recaller.poke(key)

    def forget(self, key: Key) -> None:
        """Drop everything that is cached for an erased conversation."""
        self.pending.forget(key)
        self.builder.forget(key)
        self.recaller.forget(key)
        self.people.forget(key)
        digest.clear_caches()

    def forget_all(self, erased: Erased, others: Sequence[Erased]) -> None:
        """After an erasure, of branches too: count them, and drop what is cached."""
        for one in others:
            self.events.timed("erase", one.conversation).done(of_erase, one)
        for one in (erased, *others):
            self.forget(Key(self._tenant, one.conversation))

    async def after_erasing(self, erased: Erased, others: Sequence[Erased]) -> None:
        """After messages were erased: digests of what is left may be due."""
        self.forget_all(erased, others)
        for one in (erased, *others):
            key = Key(self._tenant, one.conversation)
            if await self.people.reader.read(key) is not None:
                await self.ask_for_facts(key)
            if one.digests:
                await self.pending.on_round(key)

    async def erase_person(self, person: str) -> ErasedPerson:
        """Erase a person; see `Memory.erase_person`."""
        facts = await self.people.count(person)
        known = await self.people.drop(person)
        where = self._store, self.people, self.eraser, self._tenant, person
        try:
            done, survives = await erase_conversations_of(*where)
        finally:
            await self._store.scrub()
        if not (done or known):
            raise UnknownPerson(f"there is no person {person!r}")
        await self.people.drop(person)
        for one in done:
            self.events.timed("erase", one.conversation).done(of_erase, one)
            self.forget(Key(self._tenant, one.conversation))
        return ErasedPerson(
            person=person,
            conversations=tuple(done),
            facts=facts,
            erased_at=self._clock(),
            survives=tuple(survives),
        )

    def _wake_worker(self) -> None:
        if self._works:
            self.worker.start()
            self.worker.wake()


def _digester(
    store: Store, model: ChatModel | None, count: TokenCounter, options: MemoryOptions
) -> Digester:
    """The digester: with the caller's writers, the model's, or the offline ones."""
    summarizer, extractor = offline_summarizer(count.text), offline_extractor()
    if model is not None:
        summarizer, extractor = model_summarizer(model, count.text), model_extractor(model)
    return Digester(
        store,
        summarizer=options.get("summarizer") or summarizer,
        extractor=options.get("extractor") or extractor,
        count=count,
        spend=options.get("spend") or (Spend() if model else None),
        breaker=options.get("breaker"),
        lease_seconds=options.get("lease_seconds", limits.LEASE_SECONDS),
    )


def _proposer(
    store: Store, people: People, model: ChatModel | None, digester: Digester
) -> FactProposer | None:
    """What asks the model for facts, within what digests may spend, too."""
    return FactProposer(store, people.chain, model, digester.spend) if model else None


def _prover(store: Store, options: MemoryOptions) -> Prover:
    """The prover: it signs checkpoints if there is a key."""
    origin = options.get("log_origin", ORIGIN)
    if (key := options.get("signer")) is None:
        return Prover(store, None, origin)
    try:
        from firnline.engine.signer import Signer  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        raise FirnlineError('signing needs an extra: pip install "firnline[proof]"') from error
    return Prover(store, Signer.of(key), origin)


@lru_cache(maxsize=limits.UNKNOWN_MODELS_MAX)
def _warn_unknown(model: str) -> None:
    logger.warning(
        "the window of model %r is unknown: contexts have the whole conversation, until it no"
        " longer fits; set Memory.open(..., windows={%r: TOKENS})",
        model,
        model,
    )
