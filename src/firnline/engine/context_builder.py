"""Building a context: read, plan, create the digests that are due, assemble what fits.

look      the digests in force and the newest entries (`context.view`)
plan      what the conversation's strategy returns (`context.plan`)
digest    inline, while there is something to digest, within bounds (`engine.digester`)
assemble  sections within the budget (`context.assemble`)
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from firnline.context import quote
from firnline.context.assemble import assemble, assemble_whole, check_room
from firnline.context.budget import Budget, less
from firnline.context.context import (
    MORE_TO_FOLD,
    Context,
    LeftOut,
    Piece,
    Prompt,
    Section,
    prompt_of,
    repeated,
)
from firnline.context.material import Material
from firnline.context.person import person_sections, with_person
from firnline.context.plan import Fold, Plan, Strategy, View, check, scaled
from firnline.context.render import Sizes, render_document
from firnline.context.verbatim import holds_whole_log
from firnline.context.view import look, newest_question, read_frame, without_torn_start
from firnline.engine.build_request import BuildRequest, without_beside
from firnline.engine.digester import Digester
from firnline.engine.events import Events, milliseconds_since, of_fold
from firnline.engine.important_data import ImportantDataCache
from firnline.engine.pending import PendingDigests
from firnline.engine.question import QuestionRewriter
from firnline.engine.recall import Recaller
from firnline.engine.repair import Repairer
from firnline.engine.topic_assigner import TopicAssigner
from firnline.errors import ConflictError, ModelError, StoreCorrupt, outline
from firnline.language.questions import states_only
from firnline.log import limits
from firnline.log.draft import messages_size
from firnline.log.entry import Digest, Entry, Head, Key, Scope, Topic, live
from firnline.log.hit import Hits
from firnline.log.threads import run_by_size, text_size
from firnline.log.tokens import TokenCounter, counter
from firnline.protocols import Event, Store
from firnline.strategies import layered

logger: Final = logging.getLogger("firnline.context")

T = TypeVar("T")

_MARGIN: Final = 1.25  # of the limit is read
_FREE_SHARE: Final = 10
"""If more than one in so many tokens is free, older messages are read."""
_FURTHER: Final = (3, 9)  # budgets
_ENTRIES_INLINE: Final = 500  # more are assembled in a thread
_TOKENS_INLINE: Final = 32_000
_QUOTES_SHARE: Final = 16  # of a prompt's limit is kept for quotes if there is a question


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """The conversation at one moment, and the plan for it."""

    strategy: Strategy
    view: View
    material: Material
    plan: Plan
    whole_tokens: int

    @property
    def fits(self) -> bool:
        """Whether the whole log is shown, so that nothing has to be found."""
        limit = self.plan.limit_tokens
        return limit is not None and self.whole_tokens <= limit

    @property
    def first_fold(self) -> tuple[Fold, int | None, str, Topic | None]:
        """The first digest of the plan, as `ContextBuilder.fold` creates it."""
        return self.plan.folds[0], self.view.version, self.strategy.name, self.view.topic


class ContextBuilder:
    """Builds contexts for any conversation of a store."""

    def __init__(  # noqa: PLR0913 - the parts it is composed of, by name
        self,
        store: Store,
        digester: Digester,
        *,
        repairer: Repairer,
        pending: PendingDigests,
        topics: TopicAssigner,
        recaller: Recaller,
        rewriter: QuestionRewriter,
        events: Events,
        count: TokenCounter,
    ) -> None:
        self._store, self._digester, self._pending = store, digester, pending
        self._repairer = repairer
        self._topics, self._recaller, self._rewriter = topics, recaller, rewriter
        self._events, self._count = events, count
        self._sizes: dict[str | None, Sizes] = {None: Sizes(count)}
        self._prompts: OrderedDict[Key, Prompt] = OrderedDict()
        self._data = ImportantDataCache()

    # -- the flow -----------------------------------------------------------------------------

    async def build(
        self, key: Key, request: BuildRequest, strategy: Strategy | None = None
    ) -> Context:
        """The context for a request; digests first what the strategy wants digested now.

        `strategy` replaces the conversation's strategy for this call.
        """
        problems = list(request.person.problems) if request.person else []
        asked, sizes = request, self._sizes_for(request.budget.model)
        about = request.person and person_sections(request.person, request.budget, sizes)
        request = replace(request, budget=about.budget) if about else request
        request = without_beside(request)
        scene = await self._digested(key, request, strategy, problems)
        recalled = await self._recall(key, request, scene)
        problems += recalled.degraded
        material = replace(
            scene.material,
            problems=tuple(problems),
            recalled=tuple(recalled),
            earned=recalled.earned,
            asks=not states_only(request.question or ""),
            units=await self._recaller.units(key, recalled),
        )
        scene = replace(scene, material=material)
        context = await self._assembled(assemble, scene, request)
        context = await self._filled(context, key, scene, request)
        if request.beside is not None:
            context = request.beside.merge(context)
        elif context.tokens > context.whole_tokens or (
            scene.fits and not holds_whole_log(scene.view)
        ):
            context = await self._or_whole_log(context, key, scene, request)
        context = with_person(context, about) if about else context
        context = await self._retrieve(replace(context, budget=asked.budget), request)
        return self._compare(key, context, remember=request.fold)

    async def _digested(
        self, key: Key, request: BuildRequest, strategy: Strategy | None, problems: list[str]
    ) -> _Scene:
        """The conversation after the digests that a context waits for; the others are recorded."""
        conflicts = 0
        for round_ in range(limits.FOLD_ROUNDS_MAX + 1):
            scene = await self._look(key, request, strategy, problems)
            background = self._pending.is_background(scene.strategy)
            if not (scene.plan.folds and request.fold):
                break
            calm = None if background else await self._not_due(scene, request)
            if calm is not None:
                return calm
            # A context that cannot be shown leaves no digest behind.
            await self._assembled(check_room, scene, request)
            if background or round_ == limits.FOLD_ROUNDS_MAX:
                problems += [] if background else [MORE_TO_FOLD]
                await self._postpone(key, scene, request.budget)
                break
            try:
                await self.fold(key, *scene.first_fold)
            except ConflictError:
                # Another process is digesting it, or just did: read it once more, do not wait.
                conflicts += 1
                if conflicts > 1:
                    break
            except ModelError as error:
                problems.append(str(error))
                await self._postpone(key, scene, request.budget)
                break
        return scene

    async def _not_due(self, scene: _Scene, request: BuildRequest) -> _Scene | None:
        """The scene if no digest is due: a plan estimates a prompt, and here it is counted.

        For strategies that digest when a prompt is more than their limit.
        """
        plan, view = scene.plan, scene.view
        if scene.fits:
            return scene
        if not scene.strategy.waits or plan.limit_tokens is None or plan.open_max is not None:
            return None
        calm = replace(scene, plan=replace(plan, folds=()))
        context = await self._assembled(assemble, calm, request)
        seqs = {e.seq for u in view.open_units() if not u.problem for e in live(u.entries)}
        quotes = plan.limit_tokens // _QUOTES_SHARE if scene.material.recall_tokens else 0
        fits = context.tokens + quotes <= plan.limit_tokens and seqs <= set(context.seqs)
        return calm if fits else None

    async def _assembled(self, build: Callable[..., T], scene: _Scene, request: BuildRequest) -> T:
        """What `build`, one of `context.assemble`, returns for the scene."""
        sizes = self._sizes_for(request.budget.model)
        args = (scene.view, scene.plan, request.budget, scene.material, sizes)
        large = len(scene.view.entries) > _ENTRIES_INLINE or _is_long(scene)
        return await asyncio.to_thread(build, *args) if large else build(*args)

    async def _filled(
        self, context: Context, key: Key, scene: _Scene, request: BuildRequest
    ) -> Context:
        """The context with older messages, if it has room because large ones do not fit."""
        limit = min(request.budget.limit, scene.plan.limit_tokens or request.budget.limit)
        for factor in _FURTHER:
            first = scene.view.entries[0].seq if scene.view.entries else 0
            free = limit - context.tokens
            if scene.plan.open_max is None or first == 0 or free * _FREE_SHARE <= limit:
                break
            entries = await self._store.newest(key, request.budget.limit * factor)
            older = tuple(entry for entry in entries if entry.seq < first)
            if not older:
                continue
            view = replace(scene.view, entries=(*without_torn_start(older, 0), *scene.view.entries))
            scene = replace(scene, view=view)
            context = await self._assembled(assemble, scene, request)
        return context

    async def _or_whole_log(
        self, context: Context, key: Key, scene: _Scene, request: BuildRequest
    ) -> Context:
        """The whole log instead of a context that is larger, or that has no need for digests."""
        if not holds_whole_log(scene.view):
            limit = request.budget.limit
            if scene.fits:  # by the tokens of the budget's model, whatever was stored
                limit = max(limit, scene.view.covered_tokens + scene.view.open_tokens)
            found = await look(self._store, key, layered(), tail_tokens=limit, fold_tokens=limit)
            view = replace(scene.view, entries=found.entries, next_seq=found.next_seq, topic=None)
            scene = replace(scene, view=view)
        whole = await self._assembled(assemble_whole, scene, request)
        if whole is None:
            return context
        if scene.fits or whole.tokens < context.tokens:
            return whole
        return replace(context, log_tokens=whole.log_tokens)

    async def digest_pending(self, key: Key) -> int:
        """Create the pending digests of a conversation; returns how many were created.

        Stops after as many as one context would wait for; the rest stays pending.
        """
        head = await self._store.head(key)
        if head is None:
            return 0
        request = BuildRequest(budget=self._pending.budget_of(head))
        for made in range(limits.FOLD_ROUNDS_MAX):
            scene = await self._look(key, request, None, [], planned=True)
            if not scene.plan.folds:
                logger.debug("No new messages to summarize for %s", key.conversation)
                await self._pending.settle(key, scene.view.next_seq - 1, head)
                return made
            await self.fold(key, *scene.first_fold)
        return limits.FOLD_ROUNDS_MAX

    def forget(self, key: Key) -> None:
        """Drop what is cached for an erased conversation."""
        self._prompts.pop(key, None)
        self._data.forget(key)

    # -- the steps ----------------------------------------------------------------------------

    async def _look(
        self,
        key: Key,
        request: BuildRequest,
        strategy: Strategy | None,
        problems: list[str],
        *,
        planned: bool = False,
    ) -> _Scene:
        head = await self._store.head(key)
        strategy = strategy or self._pending.strategies.strategy_of(head, planned=planned)
        view, task = await asyncio.gather(
            self._view(key, strategy, request, problems), self._task(key, head, request)
        )
        sizes = self._sizes_for(request.budget.model)
        frame, question = await asyncio.gather(
            read_frame(
                self._store,
                key,
                sizes,
                system=request.system,
                tools=request.tools,
                task=task,
                next_seq=view.next_seq,
            ),
            newest_question(self._store, key, view),
        )
        view, log_tokens = await self._measured(key, head, strategy, view, request)
        stored = text_size([digest.data for digest in view.digests])
        data = await run_by_size(
            stored, partial(self._data.of, key, view.digests, request.budget.model, sizes)
        )
        material = Material(
            conversation=key.conversation,
            strategy=strategy.name,
            system=frame.system,
            pinned=frame.pinned,
            task=frame.task,
            data=data.not_shown_from,
            question=question,
            past=request.past,
            tools_tokens=frame.tools_tokens,
            log_tokens=log_tokens,
        )
        view = replace(
            view,
            pinned=frame.pins,
            fixed_tokens=frame.fixed_tokens,
            data_tokens=data.tokens[request.budget.model],
        )
        whole = material.log_tokens + frame.given_tokens
        planning = partial(self._plan_with_recall, strategy, view, request, whole)
        if len(view.entries) > _ENTRIES_INLINE:
            plan, kept = await asyncio.to_thread(planning)
        else:
            plan, kept = planning()
        material = replace(material, recall_tokens=kept)
        return _Scene(
            strategy=strategy, view=view, material=material, plan=plan, whole_tokens=whole
        )

    def _plan_with_recall(
        self, strategy: Strategy, view: View, request: BuildRequest, whole: int
    ) -> tuple[Plan, int | None]:
        """The plan, and the tokens that are kept for recalled entries; None without a question.

        None are kept if the `whole` log fits.
        """
        plan = self._plan(strategy, view, request.budget)
        if request.question is None:
            return plan, None
        fits = plan.limit_tokens is not None and whole <= plan.limit_tokens
        if plan.open_max is not None or fits:
            return plan, request.budget.recall_room
        kept = _kept_for_recall(plan, view, request)
        if not kept:
            return plan, kept
        smaller = self._plan(strategy, view, less(request.budget, kept))
        return replace(smaller, limit_tokens=plan.limit_tokens), kept  # quotes are within it

    async def _view(
        self, key: Key, strategy: Strategy, request: BuildRequest, problems: list[str]
    ) -> View:
        least = request.beside.tail_tokens if request.beside else 0
        look_at = partial(look, self._store, key, strategy)
        if strategy.by_topic:
            look_at = partial(self._topics.look, key)
        tail_tokens = max(request.budget.limit, least)
        tokens = {"tail_tokens": tail_tokens, "fold_tokens": limits.FOLD_TOKENS_MAX}
        try:
            return await look_at(**tokens)
        except StoreCorrupt:
            return await self._repairer.look_again(key, partial(look_at, **tokens), problems)

    def _plan(self, strategy: Strategy, view: View, budget: Budget) -> Plan:
        """The strategy's plan, made in the tokens with which the entries were counted."""
        factor = self._factor(budget)
        counted = budget
        if factor != 1.0:
            window = max(int(budget.window_tokens / factor), 1)
            reserve = min(int(budget.reserve_tokens / factor), window - 1)
            counted = replace(budget, window_tokens=window, reserve_tokens=reserve)
        plan = strategy(view, counted)
        check(view, plan)
        if factor == 1.0:
            return plan
        limit = budget.limit if plan.limit_tokens == counted.limit else None
        plan = scaled(plan, factor)
        return replace(plan, limit_tokens=limit or plan.limit_tokens)

    def _factor(self, budget: Budget) -> float:
        """The tokens that the budget's model takes for one that was counted when it was stored."""
        return self._sizes_for(budget.model).count.factor / self._count.factor

    async def _measured(
        self, key: Key, head: Head | None, strategy: Strategy, view: View, request: BuildRequest
    ) -> tuple[View, int]:
        """The view with all that fits by the tokens of the budget's model, and those of the log.

        A model can count images and other files quite differently from the one by which they were
        stored. What is not read is about as large as its text.
        """
        sizes, limit = self._sizes_for(request.budget.model), request.budget.limit
        if head is None or sizes.count.is_like(self._count):
            return view, head.tokens if head else 0
        factor, more = self._factor(request.budget), sizes.count.factor > self._count.factor
        if view.topic is not None or not view.entries:
            return view, int(head.tokens * factor) + head.entries * more
        entries, total = view.entries, await _counted(view.entries, sizes)
        while entries[0].seq > 0 and total <= limit * _MARGIN:
            first = entries[0].seq
            page = await self._store.read(key, max(first - limits.BACKLOG_PAGE, 0), first - 1)
            entries, total = (*page, *entries), total + await _counted(page, sizes)
        before = entries[0].total - entries[0].tokens
        total += int(before * factor) + entries[0].seq * more
        if not strategy.opens:
            return view, total
        return replace(view, entries=entries), total

    async def fold(
        self, key: Key, fold: Fold, base: int | None, strategy: str, topic: Topic | None = None
    ) -> Digest:
        """Create a digest, as `Digester.fold` does, and send an event of it."""
        started = time.perf_counter()
        try:
            digest = await self._digester.fold(key, fold, base, strategy, topic)
        except ModelError as error:
            asked = error.context.get("asked", True)
            what = "the model failed" if asked else "not digested now"
            level = logging.ERROR if asked else logging.INFO
            logger.log(level, "%s: %s: %s", key.conversation, what, outline(error))
            self._emit(
                "fold_failed" if asked else "fold_held_back",
                key,
                {
                    "strategy": strategy,
                    "error": error.code,
                    "milliseconds": milliseconds_since(started),
                },
            )
            raise
        await self._topics.folded(key, digest)
        self._emit("fold", key, of_fold(digest))
        return digest

    def _emit(self, name: str, key: Key, values: Mapping[str, float | str]) -> None:
        self._events(Event(name, key.tenant, key.conversation, values))

    async def _postpone(self, key: Key, scene: _Scene, budget: Budget) -> None:
        """Leave the plan's digests to a worker."""
        if scene.plan.open_max is None and scene.material.recall_tokens:
            budget = less(budget, scene.material.recall_tokens)
        await self._pending.add(key, scene.strategy, budget)

    async def _task(self, key: Key, head: Head | None, request: BuildRequest) -> str:
        if request.task is not None or head is None or head.project is None:
            return request.task or ""
        projects = await self._store.projects(key.tenant)
        return next((p.task for p in projects if p.name == head.project), "")

    async def _recall(self, key: Key, request: BuildRequest, scene: _Scene) -> Hits:
        """Old entries for the question; none if the whole log is shown."""
        if not request.question or not scene.material.recall_tokens or scene.fits:
            return Hits()
        # Some of them are already in the context, so request more than fits.
        limit, stated = request.budget.limit, request.budget.recall_tokens
        most = quote.most_quotes(limit) if stated is None else stated
        room = most if scene.plan.open_max is not None else scene.material.recall_tokens
        tokens = 2 * room
        newest = scene.view.entries
        shown_from = newest[0].seq if newest else scene.view.next_seq
        return await self.recall(key, request.question, tokens, shown_from)

    async def recall(
        self, key: Key, question: str, tokens: int, shown_from: int = 0, scope: Scope | None = None
    ) -> Hits:
        """Entries for a question in the conversation, or in `scope`."""
        asked = await self._rewriter.standalone(key, question)
        return await self._recaller.for_context(key, asked, tokens, shown_from, scope)

    async def _retrieve(self, context: Context, request: BuildRequest) -> Context:
        """The context with the documents of the retriever, as many as fit."""
        if request.retriever is None:
            return context
        sizes = self._sizes_for(request.budget.model)
        recent = reversed(context["recent"].pieces)
        newest = (piece.message.text for piece in recent if piece.message.role == "user")
        question = request.question or next(newest, "")
        returned = await request.retriever(question, reserved_tokens=context.reserved_tokens)
        documents = [returned] if isinstance(returned, str) else returned or ()
        room = context.room_for_retrieval()
        pieces: list[Piece] = []
        left: list[LeftOut] = []
        for number, text in enumerate(documents, 1):
            piece = sizes.piece(render_document(number, text))
            if piece.tokens > room:
                left.append(LeftOut(f"document {number}", f"{piece.tokens:,} tokens, no room"))
                continue
            room -= piece.tokens
            pieces.append(piece)
        return context.with_section(Section("retrieved", tuple(pieces)), left)

    def _compare(self, key: Key, context: Context, *, remember: bool) -> Context:
        """The context with its stability; `remember` it as the last prompt and log it."""
        last = self._prompts.get(key)
        if last is not None:
            context = replace(context, stability=repeated(last, prompt_of(context)))
        if remember:
            self._prompts.pop(key, None)
            self._prompts[key] = prompt_of(context)
            if len(self._prompts) > limits.PROMPTS_REMEMBERED:
                self._prompts.popitem(last=False)
            logger.debug("%s: %s", key.conversation, context.accounting)
        return context

    def _sizes_for(self, model: str | None) -> Sizes:
        if model not in self._sizes:
            self._sizes[model] = Sizes(counter(model or ""))
        return self._sizes[model]


async def _counted(entries: Sequence[Entry], sizes: Sizes) -> int:
    """The tokens of entries for a model."""
    there = live(entries)
    chars = messages_size([entry.message for entry in there if not sizes.knows(entry)])
    return await run_by_size(chars, lambda: sum(map(sizes.entry, there)))


def _is_long(scene: _Scene) -> bool:
    """Whether assembling it counts or shortens long texts."""
    material = scene.material
    tokens = scene.view.fixed_tokens + scene.view.data_tokens
    tokens += sum(entry.tokens for entry in scene.view.entries)
    tokens += material.question.tokens if material.question else 0
    return tokens > _TOKENS_INLINE


def _kept_for_recall(plan: Plan, view: View, request: BuildRequest) -> int:
    """The tokens kept for recalled entries by a strategy that opens no digests.

    0 while the whole log is shown. Little is enough: only what earns its place is recalled.
    """
    free = max(request.budget.limit - view.fixed_tokens, 0)
    some = plan.recent_count is not None and plan.recent_count < view.next_seq
    little = plan.recent_tokens is not None and plan.recent_tokens < view.open_tokens
    partly = view.first_open or plan.folds or plan.recent_from or some or little
    if not (partly or view.open_tokens > free):
        return 0
    return min(request.budget.recall_room, free * 3 // 5)
