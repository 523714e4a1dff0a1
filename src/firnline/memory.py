"""`Memory`: the whole flow on one page.

append   check → count tokens → Store.append (chain hash, running total, idempotency) → return
context  ContextBuilder: look → strategy → digest what is due (Digester) → assemble
turn     append the question → context → model, with tools in bounded rounds → append the answer
recall   Recaller: scope → search by words, meaning and date → rank
verify   Store.records → chain.Audit
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from dataclasses import asdict, replace
from datetime import date, datetime
from functools import partial
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, Self, Unpack
from weakref import WeakValueDictionary

from firnline.context.budget import Budget, BudgetLike, as_budget
from firnline.context.context import Context, as_system
from firnline.context.plan import Strategy
from firnline.context.tools import Toolbox, as_schemas, joined
from firnline.context.view import in_force, is_still, span_of
from firnline.digest import APPLICATION, items
from firnline.digest.fact import Fact
from firnline.engine import stats
from firnline.engine.build_request import BuildRequest
from firnline.engine.digest_history import (
    STUCK_AFTER,
    Difference,
    Lineage,
    State,
    difference,
    lineage_of,
    state_of,
)
from firnline.engine.engine import Engine
from firnline.engine.erasure import checked_rule, erase_conversation
from firnline.engine.events import of_append, of_context, of_erase, of_fold, of_recall
from firnline.engine.options import MemoryOptions, check_names
from firnline.engine.person import ErasedPerson, Person, Profile
from firnline.engine.recall import Filters, check_filters, check_time, scope_of
from firnline.engine.stats import Stats
from firnline.engine.turn import (
    Dialogue,
    Turn,
    TurnOptions,
    append_to_turn,
    check_options,
    find_answer,
    of_turn,
    repeat_turn,
    stream_turn,
)
from firnline.engine.verify import verify_conversation
from firnline.errors import BudgetError, ConflictError, InputError, ModelError, UnknownConversation
from firnline.log import limits
from firnline.log.chain import Verification
from firnline.log.draft import count_drafts, encode_messages, hash_messages, messages_size
from firnline.log.entry import (
    Appended,
    Archived,
    Digest,
    Entry,
    Erased,
    Head,
    Idempotency,
    Key,
    Project,
    ProjectEntry,
    clean_metadata,
    clean_project,
)
from firnline.log.hit import Hits
from firnline.log.message import Message, Role, check_pin, utc_now
from firnline.log.text import Json, clean_name
from firnline.log.threads import run_by_size, text_size
from firnline.log.wire import MessageLike, load_openai
from firnline.models.model_like import ModelLike
from firnline.protocols import Clock, Event, Finding, Pending, Progress, Retriever, Store
from firnline.recall.project import ProjectHistory, ProjectSize
from firnline.recall.result import ResultTokens
from firnline.recall.tools import recall_tools
from firnline.store import open_store
from firnline.store.cards import DRAFT, TenantCards
from firnline.store.files import local_path, source_path
from firnline.store.journal import record, recorded
from firnline.strategies import as_strategy
from firnline.strategies import topics as by_topics
from firnline.strategies.topics import summary_as_system
from firnline.topics import TopicMatch, TopicStats, apply_feedback, change_tags
from firnline.transfer import exporter, importer, jsonl
from firnline.transfer.branch import branch_conversation, branches_of, traces_of
from firnline.transfer.exporter import ExportFormat
from firnline.transfer.importer import Report
from firnline.transfer.jsonl import Manifest

DEFAULT_TENANT: Final = "default"
_RECALL_LIMIT: Final = 10
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
        self._engine = Engine(store, self._tenant, clock, options)
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @classmethod
    def open(
        cls,
        url: str = "sqlite:///firnline.db",
        *,
        clock: Clock = utc_now,
        **options: Unpack[MemoryOptions],
    ) -> Self:
        """Create a memory at `url` (``sqlite:///FILE`` or ``memory:``); see `MemoryOptions`.

        Nothing is opened before ``async with`` (or `start`).
        """
        return cls(open_store(url, clock=clock), clock=clock, **options)

    async def start(self) -> None:
        """Open the store; ``async with`` does this."""
        await self._engine.start()

    async def close(self) -> None:
        """Close the store and the models; ``async with`` does this."""
        await self._engine.close()

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
        """The tenant whose conversations these are."""
        return self._tenant

    @property
    def clock(self) -> Clock:
        """Where the current time comes from."""
        return self._clock

    @property
    def store(self) -> Store:
        """The store of the conversations."""
        return self._store

    @property
    def cards(self) -> TenantCards:
        """Small named values that an edge keeps next to the log."""
        return TenantCards(self._store, self._tenant)

    @property
    def events(self) -> Mapping[str, int]:
        """How often each event occurred: appends, recalls, contexts, digests, turns..."""
        return dict(self._engine.events.counts)

    def tell(self, name: str, conversation: str, values: Mapping[str, float | str]) -> None:
        """Count an event that happened elsewhere, and pass it to the observer."""
        self._engine.events(Event(name, self._tenant, conversation, values))

    def _key(self, conversation: str) -> Key:
        return Key(self._tenant, clean_name(conversation, "conversation"))

    async def _require(self, key: Key) -> Head:
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
        person: str | None = None,
    ) -> Appended:
        """Add one message or several to the end of a conversation; durable when this returns.

        Several are stored together or not at all. Messages are `Message` values or in the OpenAI
        format, as dicts or objects of the SDK; one without a time gets the current time.
        `expected_seq` is the sequence number that the first message must get, else `ConflictError`.
        Repeating an append with the same `idempotency_key` and messages returns what was stored
        the first time. `person` is whom the conversation is with, which is stored with it;
        `ConflictError` if it is with another person already.

        Concurrent appends are stored in the order in which they arrive: await one before the next
        to keep yours in order. A canceled append may have been stored.
        """
        key = self._key(conversation)
        if person is not None:
            clean_name(person, "person")
        size = messages_size(messages)
        given = await run_by_size(size, partial(load_openai, messages))
        idempotency = None
        if idempotency_key is not None:
            name = clean_name(idempotency_key, "idempotency_key")
            idempotency = Idempotency(name, await run_by_size(size, partial(hash_messages, given)))
        with self._engine.events.timed("append", conversation) as timer:
            work = partial(encode_messages, given, self._clock())
            timed, bodies, size = await run_by_size(size, work)
            counting = partial(count_drafts, self._engine.count, timed, bodies)
            drafts = await run_by_size(size, counting, limits.COUNT_INLINE_CHARS)
            appended = await self._store.append(
                key, drafts, expected_seq=expected_seq, idempotency=idempotency, person=person
            )
            timer.done(of_append, appended)
        await self._engine.on_append(key, given, appended, person)
        return appended

    async def describe(
        self,
        conversation: str,
        *,
        project: str | None = None,
        person: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        known: Head | None = None,
    ) -> Head:
        """Set the project, the person or the metadata of a conversation.

        An empty `person`: it is with no person any more, and what it stated is no fact of theirs.
        `known` is the head as you read it: `ConflictError` if it has changed since, or is erased.
        """
        for name, value in (("project", project), ("person", person)):
            if value is not None and (name, value) != ("person", ""):
                clean_name(value, name)
        key, clean = self._key(conversation), partial(clean_metadata, metadata)
        cleaned = None if metadata is None else await run_by_size(text_size(metadata), clean)
        about: dict[str, Any] = {"project": project, "person": person, "metadata": cleaned}
        if person is not None:
            await self._engine.people.leave(key, person)
        async with recorded(self._store, key, "describe", **about):
            head = await self._store.describe(key, **about, known=known)
        if person:
            await self._engine.people.reader.read(key, person)
        return head

    async def branch(self, conversation: str, seq: int, name: str) -> Head:
        """Copy the entries 0 to `seq` into a new conversation `name`.

        Times, token counts, pins, project, person, strategy, metadata, and the digests and vectors
        of these entries are copied, too; the metadata gets ``branch``: the source and the entry.
        Later changes to one do not affect the other. Repeating the call changes nothing, and
        finishes after a crash; `ConflictError` if `name` is another conversation.
        """
        source, key = self._key(conversation), self._key(name)
        head = await branch_conversation(self._store, source, seq, key)
        await self._engine.on_branch(source, seq, key)
        return await self._store.head(key) or head

    async def save_project(self, project: Project) -> None:
        """Create or replace a project."""
        cleaned = clean_project(project)
        async with recorded(self._store, Key(self._tenant, ""), "project", project=asdict(cleaned)):
            await self._store.save_project(self._tenant, cleaned)

    async def pin(self, conversation: str, seq: int) -> None:
        """Show this entry verbatim in every context from now on."""
        key = self._key(conversation)
        found = (
            await self._store.read(key, seq, seq)
            if limits.check_number("seq", seq, None) >= 0
            else []
        )
        if not found:
            raise InputError(f"{conversation} has no message {seq}")
        if found[0].erased_at is not None:
            raise InputError(f"message {seq} of {conversation} is erased")
        check_pin(found[0].message)
        async with recorded(self._store, key, "pin", seq=seq, pinned=True):
            await self._store.pin(key, seq)
        if not await is_still(self._store, key, found[0]):  # also if its name is in use again
            with suppress(InputError, UnknownConversation):
                await self._store.pin(key, seq, pinned=False)
            raise UnknownConversation(f"{conversation!r} was erased in the meantime")

    async def unpin(self, conversation: str, seq: int) -> None:
        """Unpin an entry."""
        limits.check_number("seq", seq, None)
        key = self._key(conversation)
        async with recorded(self._store, key, "pin", seq=seq, pinned=False):
            await self._store.pin(key, seq, pinned=False)

    async def pinned(self, conversation: str) -> list[Entry]:
        """The pinned entries, in order."""
        return await self._store.pinned(self._key(conversation))

    # -- contexts -----------------------------------------------------------------------------

    def budget_of(self, model: str) -> Budget:
        """The window of `model`: from the option `windows`, or by its name.

        If it is unknown, the whole conversation, of which nothing is cut, with a warning.
        """
        return self._engine.budget_of(model)

    async def context(  # noqa: PLR0913 - all by name
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
        project: bool = True,
        person: str | None = None,
    ) -> Context:
        """What a model should see of the conversation now; never more than `budget`.

        `budget` is a `Budget`, a model's name or a number of tokens. With a `question`, old entries
        that fit it are recalled. `system` comes first, `tools` are schemas in the OpenAI format
        that you will send along, `task` is the current task (else the project's), `retriever` finds
        documents for the remaining room. `BudgetError` if the minimum does not fit. Without `fold`
        this only reads: no digest is created or recorded as pending, and no event is sent. Set
        `past` if the question is not stored yet: then the user's newest message may be shortened.
        Without `project` the strategy `project` shows this conversation alone.
        `person` is whom a new conversation is with; the context says what is known of them, and
        what fits the question in their other conversations.
        """
        if not isinstance(question, str | None):
            raise InputError(f"question: expected a string, got {type(question).__name__}")
        request = BuildRequest(
            budget=as_budget(budget, self._engine.windows),
            question=question,
            system=as_system(system),
            tools=as_schemas(tools),
            task=task,
            retriever=retriever,
            fold=fold,
            past=past,
        )
        key = self._key(conversation)
        request = await self._with_person(key, request, person)
        build = partial(self._engine.contexts.build, key, project=project)
        timed = self._engine.events.timed("context", conversation) if fold else nullcontext()
        with timed as timer:
            try:
                built = await build(request)
            except BudgetError:
                if request.person is None:
                    raise
                # Where the conversation alone hardly fits, nothing is said of its person.
                built = await build(replace(request, person=None))
            if timer is not None:
                timer.done(of_context, built)
        return self._engine.with_estimate(built)

    async def _with_person(
        self, key: Key, request: BuildRequest, person: str | None
    ) -> BuildRequest:
        """The request with what is known of the conversation's person, if it is with one."""
        head = await self._store.head(key)
        known = head.person if head is not None else None
        if person is not None and known not in (None, clean_name(person, "person")):
            raise ConflictError(f"{key.conversation} is with another person")
        if known is None and person is None:
            return request
        people, name = self._engine.people, known or person or ""
        return replace(request, person=await people.material(key, name, request.question))

    async def set_strategy(
        self, conversation: str, strategy: Strategy | str, *, known: Head | None = None
    ) -> Head:
        """Set the strategy of this conversation; `known` is as in `describe`."""
        key = self._key(conversation)
        chosen = as_strategy(strategy)
        self._engine.pending.strategies.check(chosen)
        async with recorded(self._store, key, "describe", strategy=chosen.to_json()):
            head = await self._store.describe(key, strategy=chosen.to_json(), known=known)
        self._engine.pending.set_strategy(key, chosen)
        return head

    async def strategy(self, conversation: str) -> Strategy:
        """The strategy that plans this conversation's contexts."""
        head = await self._store.head(self._key(conversation))
        return self._engine.pending.strategies.strategy_of(head)

    async def turn(
        self,
        conversation: str,
        message: str | MessageLike,
        model: ModelLike | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[TurnOptions],
    ) -> Turn:
        """Store the user's message, ask the model, store its answer.

        The user's message is durable before the model is asked. `model` defaults to the memory's.
        See `TurnOptions` for the rest. If the model fails, `ModelError` is raised and the user's
        message stays stored. Repeating a turn with the same `idempotency_key` returns the same
        answer, and waits for it if the first call is still running in this memory.
        """
        turn: Turn | None = None
        async for item in self._run_turn(
            conversation, message, model, idempotency_key, options, whole=True
        ):
            turn = item if isinstance(item, Turn) else None
        if turn is None:
            raise ModelError("the model returned no answer")
        return turn

    async def stream(
        self,
        conversation: str,
        message: str | MessageLike,
        model: ModelLike | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[TurnOptions],
    ) -> AsyncIterator[str | Turn]:
        """Like `turn`: yields the answer's text in pieces as it arrives, then the `Turn`."""
        items = self._run_turn(conversation, message, model, idempotency_key, options, whole=False)
        async with aclosing(items):
            async for item in items:
                yield item

    async def _run_turn(
        self,
        conversation: str,
        message: str | MessageLike,
        model: ModelLike | None,
        idempotency_key: str | None,
        options: TurnOptions,
        *,
        whole: bool,
    ) -> AsyncGenerator[str | Turn, None]:
        dialogue, key = (
            self._dialogue(conversation, model, message, options),
            self._key(conversation),
        )
        # A repeated turn waits for the one that is running, and finds its answer.
        lock: AbstractAsyncContextManager[None] = nullcontext()
        if idempotency_key is not None:
            lock = self._turns.setdefault((conversation, idempotency_key), asyncio.Lock())
        asked = Message.user(message) if isinstance(message, str) else message
        async with lock:
            with self._engine.events.timed("turn", conversation) as timer:
                person = options.get("person")
                stored = await self.append(
                    conversation, asked, idempotency_key=idempotency_key, person=person
                )
                question = stored[-1]
                answer = await find_answer(self._store, key, question) if idempotency_key else None
                if answer is not None:
                    if not whole:
                        yield answer.message.text
                    turn = await repeat_turn(dialogue, question, answer)
                    timer.done(of_turn, turn)
                    yield turn
                    return
                async for item in stream_turn(dialogue, question, whole=whole):
                    if isinstance(item, Turn):
                        await self._engine.topics.credit(key, item)
                        timer.done(of_turn, item)
                    yield item

    def _dialogue(
        self,
        conversation: str,
        model: ModelLike | None,
        message: str | MessageLike,
        options: TurnOptions,
    ) -> Dialogue:
        check_options(options, self._engine.windows)
        chosen = self._engine.open_model(model) or self._engine.model
        if chosen is None:
            raise InputError("a turn needs a model: Memory.open(model=...) or turn(..., model)")
        if options.get("recall_tools"):
            budget = options.get("budget") or chosen.name
            found = self.tools(conversation, budget=budget, tokens_max=options.get("tool_tokens"))
            options["tools"] = joined(options.get("tools", ()), found)
        key = self._key(conversation)
        return Dialogue(
            append=lambda question, *messages: append_to_turn(
                self._store, self.append, key, question, messages, options.get("answer_key")
            ),
            build=lambda budget, **request: self.context(conversation, budget, **request),
            model=chosen,
            text=message if isinstance(message, str) else load_openai(message)[0].text,
            options=options,
            larger=self._engine.open_model(options.get("larger")),
            budget_of=self.budget_of,
            timed=lambda name: self._engine.events.timed(name, conversation),
        )

    # -- digests ------------------------------------------------------------------------------

    async def digest(self, conversation: str) -> int:
        """Create the pending digests now; returns how many were created.

        `ConflictError` if another process is creating them and does not finish soon.
        """
        key = self._key(conversation)
        for _ in range(_DIGEST_TRIES):
            try:
                return await self._engine.builder.digest_pending(key)
            except ConflictError:
                await asyncio.sleep(_DIGEST_PAUSE)
        return await self._engine.builder.digest_pending(key)

    async def digests(
        self, conversation: str, *, versions: Sequence[int] | None = None
    ) -> list[Digest]:
        """The conversation's digests in order, all or these, failed and undone ones too."""
        return await self._store.digests(self._key(conversation), versions)

    async def in_force(self, conversation: str) -> tuple[Digest, ...]:
        """The digests that contexts use now, oldest span first; by topic, the active one's."""
        key = self._key(conversation)
        by_topic = (await self.strategy(conversation)).by_topic
        active = await self._engine.topics.active(key) if by_topic else None
        found = await in_force(self._store, key, active.id if active else None)
        return tuple(d for d in found if active is None or d.version > active.outdated)

    async def lineage(self, conversation: str) -> Lineage:
        """The chain of digests, stuck ones, and how long digests took."""
        return lineage_of(await self.digests(conversation), self._clock())

    async def state(self, conversation: str) -> State:
        """The conversation's memory: important data, summary, and how far it reaches."""
        return await asyncio.to_thread(state_of, await self.in_force(conversation))

    async def remember(
        self, conversation: str, important_data: Mapping[str, Any], *, summary: str | None = None
    ) -> Digest:
        """Add to the important data; a new digest, so it can be undone.

        `summary` replaces the newest summary. Creates the conversation if there is none.
        """
        key, size = self._key(conversation), text_size(important_data)
        stated = await run_by_size(size, partial(items.items_from_data, important_data))
        listed = await run_by_size(size, lambda: items.to_json(stated)["items"])
        merge = partial(items.merge, new=stated)
        if await self._store.head(key) is None:
            await self._store.describe(key)
        async with recorded(self._store, key, "remember", items=listed, summary=summary):
            return await self._engine.digester.amend(key, merge, summary)

    async def revert(self, conversation: str, seq: int) -> Digest:
        """Restore the important data that the entry `seq` replaced (-1: that `remember` replaced).

        Both values are kept; a new version, so this can be undone, too.
        """
        key = self._key(conversation)
        async with recorded(self._store, key, "revert", seq=seq):
            return await self._engine.digester.amend(key, lambda known: items.restore(known, seq))

    async def undo(self, conversation: str, *, topic: int | None = None) -> Digest:
        """Take the newest digest (of `topic`) out of force; those before it are in force again."""
        key = self._key(conversation)
        undone = await self._engine.digester.undo(key, topic)
        if undone.made_by == APPLICATION:
            await record(self._store, key, "undo")
        await self._engine.topics.undone(key, undone)
        return undone

    async def clear(self, conversation: str) -> int:
        """Undo every digest; the messages stay, and new digests are created from them."""
        key, undone = self._key(conversation), 0
        for topic in (None, *(await self._store.topics(key)).topics):
            while await self._store.newest_digest(key, topic) is not None:
                await self.undo(conversation, topic=topic)
                undone += 1
        await record(self._store, key, "clear")
        return undone

    async def expand(self, conversation: str, version: int) -> list[Entry]:
        """The entries that a digest covers, verbatim."""
        digest = await self._digest(conversation, version)
        span = digest.first_seq, digest.last_seq
        return await span_of(self._store, self._key(conversation), *span, topic=digest.topic)

    async def diff(self, conversation: str, before: int, after: int) -> Difference:
        """What changed from one digest to another."""
        first = await self._digest(conversation, before)
        return difference(first, await self._digest(conversation, after))

    async def rebuild(self, conversation: str, *, only_offline: bool = False) -> list[Digest]:
        """Rebuild the digests in force from the log, for example with a better model.

        `only_offline`: only those that were created without a model.
        """
        key = self._key(conversation)
        made = await self._engine.digester.rebuild(key, only_offline=only_offline)
        for topic in (await self._store.topics(key)).topics.values():
            if topic.merged_into is None:
                made += await self._engine.digester.rebuild(
                    key, only_offline=only_offline, topic=topic
                )
        for version in made:
            self._engine.events.timed("fold", conversation).done(of_fold, version)
        return made

    async def work(
        self,
        *,
        once: bool = False,
        all_tenants: bool = False,
        tenants: Collection[str] | None = None,
        poll_seconds: float = 1.0,
    ) -> int:
        """Create pending digests until canceled, or `once`.

        For its own tenant, for `tenants`, whose collection you may change meanwhile, or for
        `all_tenants` of the store. Their messages then reach this memory's model, if it has one.
        It looks for work every `poll_seconds`, about, and when the store sends a notification.
        """
        worker = self._engine.worker
        own = frozenset({self._tenant}) if tenants is None else tenants
        worker.tenants = None if all_tenants else own
        if once:
            return await worker.once()
        worker.poll_seconds = poll_seconds
        await worker.run()
        return 0

    async def due(
        self, *, until: datetime | None = None, limit: int = 100, all_tenants: bool = False
    ) -> list[Key]:
        """The conversations whose digests are due by `until` (now), the longest due first."""
        tenants = None if all_tenants else (self._tenant,)
        return await self._store.due(until or self._clock(), limit, tenants)

    async def pending(self, *, all_tenants: bool = False) -> Pending:
        """What is pending now: digests that are due, in progress or stuck, and drafts."""
        now, tenant = self._clock(), None if all_tenants else self._tenant
        return await self._store.pending(
            now, stuck_before=now - STUCK_AFTER, cards=DRAFT, tenant=tenant
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
        """The entries from `first_seq` to `last_seq`, verbatim, archived or not."""
        for name, value in (("first_seq", first_seq), ("last_seq", last_seq), ("limit", limit)):
            if value is not None:
                limits.check_number(name, value, None)
        return await self._store.read(self._key(conversation), first_seq, last_seq, limit)

    async def read_at(self, conversation: str, seqs: Sequence[int]) -> list[Entry]:
        """The entries with these sequence numbers, in order; missing ones are skipped."""
        return await self._store.at(self._key(conversation), seqs)

    async def newest(self, conversation: str, *, tokens: int) -> list[Entry]:
        """The newest entries that fit into `tokens`; independent of the log's length."""
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
        """The entries dated in [since, until), by sequence number, from `first_seq` on."""
        for name, at in (("since", since), ("until", until)):
            check_time(name, at)
        limits.check_number("limit", limit, 1, limits.PAGE_MAX)
        return await self._store.dated(self._key(conversation), since, until, limit, first_seq)

    async def head(self, conversation: str) -> Head | None:
        """The newest state of the conversation, or None if it does not exist."""
        return await self._store.head(self._key(conversation))

    async def conversations(
        self,
        *,
        project: str | None = None,
        person: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Head]:
        """The conversations in order of their names, after the name `after`."""
        limits.check_number("limit", limit, 1, limits.PAGE_MAX)
        for name, value in (("project", project), ("person", person), ("after", after)):
            if value:
                clean_name(value, name)
        return await self._store.conversations(
            self._tenant, project=project, person=person, after=after, limit=limit
        )

    async def recent(
        self, *, project: str | None = None, after: Head | None = None, limit: int = 100
    ) -> list[Head]:
        """The conversations, the most recently updated first, those after `after`."""
        limits.check_number("limit", limit, 1, limits.PAGE_MAX)
        if project is not None:
            clean_name(project, "project")
        return await self._store.recent(self._tenant, project, after=after, limit=limit)

    async def projects(self) -> list[Project]:
        """The projects by name."""
        return await self._store.projects(self._tenant)

    async def project_newest(
        self, project: str, *, limit: int = 100, person: str | None = None
    ) -> list[ProjectEntry]:
        """The newest entries of a project's conversations, as one history in time order.

        Entries that branches share are in it once. `person`: only conversations with this person.
        """
        limits.check_number("limit", limit, 1, limits.PAGE_MAX)
        return await self._history(project, person).newest(limit)

    async def project_dated(
        self,
        project: str,
        since: datetime,
        until: datetime,
        *,
        limit: int = 100,
        person: str | None = None,
    ) -> list[ProjectEntry]:
        """The first entries of a project that are dated in [since, until), in time order."""
        for name, at in (("since", since), ("until", until)):
            check_time(name, at)
        limits.check_number("limit", limit, 1, limits.PAGE_MAX)
        return await self._history(project, person).dated(since, until, limit)

    async def project_size(self, project: str) -> ProjectSize:
        """How much is in all conversations of a project; what branches share counts once."""
        return await self._history(project, None).size()

    def _history(self, project: str, person: str | None) -> ProjectHistory:
        whose = None if person is None else clean_name(person, "person")
        name = clean_name(project, "project")
        return ProjectHistory(self._store, self._tenant, name, person=whose)

    # -- people -------------------------------------------------------------------------------

    async def people(self) -> list[Person]:
        """Every person that a conversation is with, by name; reads all heads."""
        return await self._engine.people.all()

    async def facts(
        self,
        *,
        person: str,
        as_of: datetime | date | str | None = None,
        known_at: datetime | date | str | None = None,
        history: bool = False,
    ) -> list[Fact]:
        """What a person stated in all their conversations, with evidence; what holds now.

        `as_of`: what held at that time. `known_at`: what was known then, from what had been said.
        A date is the end of that day in UTC. `history`: every fact, ended and reverted ones too.
        """
        clean_name(person, "person")
        return await self._engine.people.facts(
            person, as_of=as_of, known_at=known_at, history=history
        )

    async def profile(self, person: str) -> Profile:
        """What holds of a person now: the text that contexts carry, and the facts it rests on."""
        return await self._engine.people.profile(clean_name(person, "person"))

    async def revert_fact(self, person: str, fact: str) -> Fact:
        """Withdraw a fact by its id: what it replaced holds again. Both are kept."""
        return await self._engine.people.revert(clean_name(person, "person"), fact)

    async def rebuild_facts(self, person: str) -> int:
        """Read a person's facts from their messages again; returns how many hold."""
        return await self._engine.people.rebuild(clean_name(person, "person"))

    async def recall(
        self,
        conversation: str | None,
        query: str,
        *,
        limit: int | None = None,
        tokens: int | None = None,
        **filters: Unpack[Filters],
    ) -> Hits:
        """Old entries that fit `query`, best first; None searches every conversation.

        Words, meaning (with an embedder), dates and neighboring entries count together. Returns at
        most `limit` entries (default 10), or with `tokens` as many as fit into that many tokens,
        each with its speaker's name; of a long message its passage counts (`Hit.text`). A message
        that branches share is found once (`Hit.also_in`); `degraded` says if some could not be
        searched by meaning. See `Filters` for the rest.
        """
        if limit is None and tokens is None:
            limit = _RECALL_LIMIT
        if limit is not None:
            limits.check_number("limit", limit, 1, limits.PAGE_MAX)
        if tokens is not None:
            limits.check_number("tokens", tokens)
        if conversation is not None:
            clean_name(conversation, "conversation")
        with self._engine.events.timed("recall", conversation) as timer:
            if not isinstance(query, str):
                raise InputError(f"query: expected a string, got {type(query).__name__}")
            check_filters(filters)
            scope = scope_of(conversation, filters)
            if filters.get("topic") is not None or filters.get("tags"):
                scope = await self._engine.topics.narrow(self._tenant, scope, filters)
            hits = await self._engine.recaller.recall(query, scope, limit=limit, tokens=tokens)
            if scope.person and (conversation, scope.project, scope.topics) == (None, None, None):
                hits = await self._engine.people.put_facts_first(
                    query, hits, scope, (limit, tokens)
                )
            timer.done(of_recall, hits)
        return hits

    async def standalone(self, conversation: str, question: str) -> str:
        """Rewrite a question to stand alone: resolve "it" or "there" from the conversation.

        The memory's model rewrites it, if there is one, else rules; only words of the log are used.
        """
        return await self._engine.rewriter.standalone(
            self._key(conversation), question, self._engine.model
        )

    async def embed(self, conversation: str, *, progress: Progress | None = None) -> int:
        """Finish the background embedding now; returns the number of entries embedded."""
        return await self._engine.recaller.embed(self._key(conversation), progress)

    # -- topics -------------------------------------------------------------------------------

    async def topics(self, conversation: str) -> list[TopicStats]:
        """Statistics of the topics, the active one first, archived ones included."""
        return await self._engine.topics.stats(self._key(conversation))

    async def topic_stats(self, conversation: str, topic: int | None = None) -> TopicStats:
        """Statistics of one topic (default: the active one)."""
        found = await self._engine.topics.stats(self._key(conversation), topic)
        if not found:
            raise InputError(f"{conversation} has no topics yet")
        return found[0]

    async def topic_context(
        self, conversation: str, budget: BudgetLike, *, fold: bool = True
    ) -> Context:
        """The active topic: its summary as a system message, then its active messages.

        Without `fold` this only reads, as in `context`.
        """
        own, rules = await self.strategy(conversation), self._engine.topics.rules
        most, keep = rules.max_messages_per_topic, rules.recent_message_keep
        strategy = own if own.by_topic else by_topics(max_messages=most, keep=keep)
        request = BuildRequest(budget=as_budget(budget, self._engine.windows), fold=fold)
        key, chosen = self._key(conversation), summary_as_system(strategy)
        if not fold:
            return await self._engine.builder.build(key, request, chosen)
        with self._engine.events.timed("context", conversation) as timer:
            return timer.done(of_context, await self._engine.builder.build(key, request, chosen))

    async def topic_history(self, conversation: str, topic: int | None = None) -> list[Entry]:
        """Every message of a topic (default: the active one), archived or not, in order."""
        key = self._key(conversation)
        chosen = (await self.topic_stats(conversation, topic)).topic_id
        return await self._store.at(key, await self._store.members(key, chosen))

    async def topic_seqs(self, conversation: str, topic: int, *, first_seq: int = 0) -> list[int]:
        """The sequence numbers of a topic's entries, from `first_seq` on."""
        return await self._store.members(self._key(conversation), topic, first_seq)

    async def match_topic(self, conversation: str, text: str) -> TopicMatch | None:
        """The topic most similar to a text, with the cosine and the scaled similarity.

        None if there is nothing to compare: no topic, or no subject, as in "and then?".
        """
        return await self._engine.topics.match(self._key(conversation), text)

    async def merge_topics(self, conversation: str, into: int, topic: int) -> TopicStats:
        """Merge `topic` into the topic `into`."""
        key = self._key(conversation)
        merged = await self._engine.topics.merge(key, into, topic)
        await record(self._store, key, "merge", into=into, topic=topic)
        return await self.topic_stats(conversation, merged.id)

    async def tag_topic(
        self, conversation: str, topic: int, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> TopicStats:
        """Add and remove tags of a topic; `recall` can filter by tags."""
        key = self._key(conversation)
        await self._engine.topics.change(key, topic, lambda known: change_tags(known, add, remove))
        await record(self._store, key, "tag", topic=topic, add=[*add], remove=[*remove])
        return await self.topic_stats(conversation, topic)

    async def feedback(self, conversation: str, seq: int, vote: Literal[1, -1]) -> TopicStats:
        """Rate an entry as useful (1) or not (-1); its topic gains or loses importance."""
        key = self._key(conversation)
        topic = await self._engine.topics.of(key, seq)
        await self._engine.topics.change(key, topic, lambda known: apply_feedback(known, vote))
        await record(self._store, key, "feedback", seq=seq, vote=vote)
        return await self.topic_stats(conversation, topic)

    def tools(
        self,
        conversation: str,
        *,
        zone: str = "UTC",
        budget: BudgetLike | None = None,
        tokens_max: int | None = None,
    ) -> Toolbox:
        """Tools with which a model can search this conversation and its project, and no other.

        Dates and times are in `zone`. A result has up to 20,000 tokens, extended context 50,000,
        less if the window of `budget` (default: of the memory's model, if it is known) is small,
        and at most `tokens_max`.
        """
        return recall_tools(
            self,
            conversation,
            projects=self,
            zone=zone,
            tokens=ResultTokens.within(self._engine.room_of(budget), tokens_max),
            clock=self._clock,
            count=self._engine.count,
        )

    async def stats(self, conversation: str, *, price: float = stats.PRICE) -> Stats:
        """The size of the conversation, and what an answer costs at `price` per million tokens."""
        return await stats.measured(self, await self._require(self._key(conversation)), price=price)

    # -- proving ------------------------------------------------------------------------------

    async def verify(
        self, conversation: str, *, anchor: str | None = None, progress: Progress | None = None
    ) -> Verification:
        """Recompute every hash of the conversation, archived entries included.

        `anchor` is the hash of an entry that you recorded elsewhere; if it is not in the chain, the
        log was replaced, even if it is consistent.
        """
        return await verify_conversation(self._store, self._key(conversation), anchor, progress)

    async def checkpoint(self, conversation: str) -> str:
        """The log as it is now, as a short text. If you keep it, a rewritten log shows.

        A signed note (c2sp.org/tlog-checkpoint) with the root of a tree over all entries, signed
        if the memory has a `signer`. The whole log is read: `StoreCorrupt` if it is damaged or does
        not continue its last checkpoint.
        """
        return (await self._engine.prover.checkpoint(self._key(conversation))).note

    async def prove(self, conversation: str, seq: int) -> str:
        """The proof that entry `seq` is in the log, as text; ``firnline check-proof`` checks it.

        It grows with the logarithm of the log, and ends at the last checkpoint, if that has
        the signature of `signer` or was made by this memory, else at a new one. An erased entry is
        proven without its text.
        """
        return await self._engine.prover.prove(self._key(conversation), seq)

    async def prove_growth(self, conversation: str, older: str) -> str:
        """The proof that the log continues the checkpoint `older`: it only grew since."""
        return await self._engine.prover.prove_growth(self._key(conversation), older)

    async def check(self, *, thorough: bool = False) -> list[Finding]:
        """The health of the store itself."""
        return await self._store.check(thorough=thorough)

    async def repair(self, conversation: str | None = None) -> list[str]:
        """Restore damaged rows outside the log; returns what was damaged, and what became of it.

        Descriptions, pins, projects and what was remembered are restored from the journal; digests,
        topics and people's facts are made again. By default of all conversations and projects.
        """
        if conversation is not None:
            return await self._engine.repairer.repair(self._key(conversation))
        done = await self._engine.repairer.repair_all(self._tenant)
        return [*done, *await self._engine.people.repair()]

    async def rebuild_index(self, *, progress: Progress | None = None) -> None:
        """Rebuild the search index from the log, for every tenant of the store."""
        await self._store.rebuild_index(progress)

    # -- keeping and leaving ------------------------------------------------------------------

    async def archive(self, conversation: str, *, keep: int = 1_000) -> Archived:
        """Compress all but the newest `keep` entries; they stay readable and searchable."""
        limits.check_number("keep", keep)
        key = self._key(conversation)
        head = await self._require(key)
        return await self._store.archive(key, 0, head.seq - keep)

    async def restore(self, conversation: str) -> int:
        """Decompress every archived entry; returns how many there were."""
        key = self._key(conversation)
        await self._require(key)
        return await self._store.restore(key, 0, (1 << limits.SEQ_BITS) - 1)

    async def branches(self, conversation: str) -> list[str]:
        """The names of the conversations that hold copies of its messages, such as its branches."""
        return await branches_of(self._store, await traces_of(self._store, self._key(conversation)))

    async def erase(self, conversation: str, *, branches: bool = False) -> Erased:
        """Delete a conversation and everything derived from it; no byte is left on disk.

        The certificate names the conversations that still hold copies of its messages (`survives`).
        With `branches` they are erased, too.
        """
        with self._engine.events.timed("erase", conversation) as timer:
            key = self._key(conversation)
            erased, *others = await erase_conversation(
                self._store, self._engine.people, key, branches=branches
            )
            timer.done(of_erase, erased)
        self._engine.forget_all(erased, others)
        return erased

    async def erase_person(self, person: str) -> ErasedPerson:
        """Erase a person: their conversations, the branches of these, facts, profile and prompts.

        A branch that is with another person loses the copies of their messages only. One
        certificate for all; `UnknownPerson` if there is nothing of them. An interrupted call can be
        repeated.
        """
        return await self._engine.erase_person(clean_name(person, "person"))

    async def erase_messages(
        self,
        conversation: str,
        first_seq: int | None = None,
        last_seq: int | None = None,
        *,
        role: Role | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        branches: bool = False,
    ) -> Erased:
        """Erase a message, a span or by a rule, and everything derived; no byte is left on disk.

        `first_seq` alone is one message. Only messages of `role` dated in [since, until), if given.
        A call of a tool and its results are erased together. Sequence numbers and hashes stay, so
        the chain is still verified; digests that may quote the messages are withdrawn and created
        again from the rest. `branches` as in `erase`, for these messages.
        """
        rule = checked_rule(first_seq, last_seq, role, since, until)
        with self._engine.events.timed("erase", conversation) as timer:
            key = self._key(conversation)
            try:
                erased, *others = await self._engine.eraser.erase(key, rule, branches=branches)
            finally:
                await self._store.scrub()
            timer.done(of_erase, erased)
        await self._engine.after_erasing(erased, others)
        return erased

    async def erase_before(
        self,
        until: datetime,
        *,
        project: str | None = None,
        role: Role | None = None,
        branches: bool = False,
    ) -> list[Erased]:
        """Erase the messages dated before `until`, of all conversations or those of a project.

        One certificate for each conversation that had some. An interrupted call can be repeated.
        """
        check_time("until", until)
        rule = checked_rule(None, None, role, None, until)
        done: list[Erased] = []
        try:
            async for key in self._engine.eraser.matching(self._tenant, rule, project):
                with self._engine.events.timed("erase", key.conversation) as timer:
                    erased, *others = await self._engine.eraser.erase(key, rule, branches=branches)
                    timer.done(of_erase, erased)
                await self._engine.after_erasing(erased, others)
                done.append(erased)
        finally:
            await self._store.scrub()
        return done

    async def export(
        self,
        path: str | PathLike[str],
        *,
        conversations: Sequence[str] | None = None,
        as_format: ExportFormat = "jsonl",
        progress: Progress | None = None,
    ) -> Manifest:
        """Write conversations (default: all) to a JSON Lines file with a manifest.

        Other formats: ``openai`` (one line each), ``markdown`` and ``html`` (a file for a single
        conversation, else a folder). Only ``jsonl`` can be imported again without loss.
        """
        keys = None if conversations is None else [self._key(name) for name in conversations]
        where = self._store, self._tenant, local_path(path)
        return await exporter.export(*where, keys, as_format, progress)

    def export_pieces(
        self, conversations: Sequence[str] | None = None
    ) -> AsyncIterator[tuple[bytes, Manifest]]:
        """The lines of a JSON Lines export in pieces, each with the counts so far."""
        keys = None if conversations is None else [self._key(name) for name in conversations]
        return jsonl.pieces(self._store, self._tenant, keys)

    async def import_(
        self, path: str | PathLike[str], *, progress: Progress | None = None
    ) -> Manifest:
        """Import a JSON Lines export; it is checked first. Importing it again adds nothing."""
        return await jsonl.import_(self._store, self._tenant, source_path(path), progress)

    async def import_file(
        self,
        path: str | PathLike[str],
        *,
        as_format: str | None = None,
        zone: str = "UTC",
        person: str | None = None,
        progress: Progress | None = None,
    ) -> Report:
        """Import conversations of other programs from a file, zip or folder; see docs/import.md.

        The format is detected unless named; `zone` is for times without a zone. Importing again
        adds what is new. `person` is whom all of them are with. The report lists what was skipped
        and what was not understood.
        """
        where = source_path(path, folders=True)
        how = importer.ImportOptions(as_format, zone, person)
        return await importer.import_file(self, where, how, progress=progress)

    async def backup(self, path: str | PathLike[str], *, progress: Progress | None = None) -> None:
        """Write a consistent copy of the whole store to a new file, while it is in use."""
        await self._store.backup(local_path(path), progress)
