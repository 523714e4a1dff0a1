"""Contexts of a project: all of its conversations, as one history in time order.

look    the newest entries of the project, from all conversations; the cost depends on them
choose  those that are shown: all while they fit, else the newest (`context.project`)
digest  what is older, in its own conversation
build   the context of the conversation itself, in the room that the others leave
merge   the entries of the others between its own, and their digests before its own
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

from firnline.context.budget import Budget
from firnline.context.context import Context, LeftOut
from firnline.context.person import person_sections
from firnline.context.plan import FOLD_TOKENS_MIN, Fold, Strategy
from firnline.context.project import (
    QUOTES_HEADING,
    Choice,
    Others,
    ProjectPart,
    ProjectView,
    choose,
    merged,
    own_strategy,
    show_others,
)
from firnline.context.quote import elsewhere_section
from firnline.context.render import Sizes, excerpt, render_task
from firnline.context.view import in_force, read_frame
from firnline.engine.build_request import Beside, BuildRequest
from firnline.engine.context_builder import ContextBuilder
from firnline.engine.pending import PendingDigests
from firnline.engine.project_reader import ProjectReader, uncounted
from firnline.engine.repair import Repairer
from firnline.errors import (
    BudgetError,
    ConflictError,
    FirnlineError,
    ModelError,
    StoreCorrupt,
    outline,
)
from firnline.log import limits
from firnline.log.entry import Digest, Head, Key, ProjectEntry, Scope
from firnline.log.message import Message
from firnline.log.threads import run_by_size
from firnline.log.tokens import TokenCounter, counter
from firnline.protocols import Store

logger: Final = logging.getLogger("firnline.context")

_Place: TypeAlias = tuple[str, str | None, str | None, int, str | None, tuple[Any, ...]]
"""What the first entry shown is remembered for: tenant, project, person, limit, model, parameters.
"""
_TASK_FRAME: Final = 100  # tokens around a task
_WORDS: Final = (100, 600)  # of a digest


@dataclass(frozen=True, slots=True)
class _ProjectJob:
    """A context to build, and the problems on the way."""

    key: Key
    request: BuildRequest
    strategy: Strategy
    sizes: Sizes
    problems: list[str] = field(default_factory=list)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of the strategy."""
        return self.strategy.parameters


class ProjectContexts:
    """Builds contexts; those by the strategy `project` show the other conversations, too."""

    def __init__(
        self,
        store: Store,
        builder: ContextBuilder,
        pending: PendingDigests,
        repairer: Repairer,
        count: TokenCounter,
    ) -> None:
        self._store, self._builder, self._count = store, builder, count
        self._pending, self._repairer = pending, repairer
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._first_shown: OrderedDict[_Place, tuple[str, int]] = OrderedDict()

    async def close(self) -> None:
        """Stop digesting in the background; the next context goes on with it."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def build(
        self,
        key: Key,
        request: BuildRequest,
        strategy: Strategy | None = None,
        *,
        project: bool = True,
    ) -> Context:
        """The context for a request; `project`: with the other conversations of its project."""
        head = await self._store.head(key)
        sizes = self._sizes(request)
        request, left = await self._with_task(key, head, request, sizes)
        chosen = strategy or self._pending.strategies.strategy_of(head)
        if not project or head is None or head.project is None or chosen.name != "project":
            context = await self._builder.build(key, request, strategy)
        else:
            context = await self._of_project(key, head, request, chosen)
        return replace(context, left_out=(*context.left_out, *left)) if left else context

    def _sizes(self, request: BuildRequest) -> Sizes:
        model = request.budget.model
        return Sizes(self._count if model is None else counter(model))

    async def _with_task(
        self, key: Key, head: Head | None, request: BuildRequest, sizes: Sizes
    ) -> tuple[BuildRequest, list[LeftOut]]:
        """The request with its task, or the project's, of at most so many tokens."""
        task = request.task
        if task is None and head is not None and head.project is not None:
            known = await self._store.projects(key.tenant)
            task = next((one.task for one in known if one.name == head.project), "")
        if not task:
            return replace(request, task=task), []
        whole = await run_by_size(len(task), partial(sizes.of, render_task(task)))
        most = limits.TASK_TOKENS_MAX
        if whole <= most:
            return replace(request, task=task), []
        cut = partial(excerpt, Message.user(task), most - _TASK_FRAME, sizes, None)
        piece = await run_by_size(len(task), cut)
        short = piece.message.text if piece else ""
        why = f"a task has at most {most:,} tokens; this one has {whole:,}"
        return replace(request, task=short), [LeftOut("the middle of the task", why)]

    async def _of_project(
        self, key: Key, head: Head, request: BuildRequest, strategy: Strategy
    ) -> Context:
        """The context of a conversation with the others of its project."""
        job = _ProjectJob(key, request, strategy, self._sizes(request))

        async def read_digests(of: Key) -> tuple[Digest, ...]:
            try:
                return await in_force(self._store, of)
            except StoreCorrupt:
                look = partial(in_force, self._store, of)
                return await self._repairer.look_again(of, look, job.problems)

        reader = ProjectReader(self._store, key.tenant, head, job.sizes, read_digests)
        view = await reader.read(strategy.parameters, request.budget.limit)
        choice = await self._choose(job, view)
        shown = await reader.begin(choice)
        if request.fold:
            await self._digest(job, view, choice)
        try:
            context = await self._merge(job, view, choice, shown)
        except BudgetError:
            context = await self._builder.build(key, request, strategy)
            alone = LeftOut("the other conversations of the project", "no room")
            context = replace(context, left_out=(*context.left_out, alone))
        return replace(context, degraded=(*job.problems, *context.degraded))

    # -- choosing -----------------------------------------------------------------------------

    async def _choose(self, job: _ProjectJob, view: ProjectView) -> Choice:
        """How many of the newest entries are shown."""
        request, own = job.request, view.parts[view.own].head
        frame = await read_frame(
            self._store,
            job.key,
            job.sizes,
            system=request.system,
            tools=request.tools,
            task=request.task or "",
            next_seq=own.entries,
        )
        limit = request.budget.limit
        if request.person is not None:
            limit = person_sections(request.person, request.budget, job.sizes).budget.limit
        quotes = request.budget.recall_tokens if request.question is not None else None
        model, parameters = request.budget.model, tuple(job.parameters.values())
        place = job.key.tenant, own.project, own.person, limit, model, parameters
        before = self._shown_before(place, view)
        choice = choose(view, job.parameters, frame, limit, quotes, before)
        if request.fold and choice.room is not None and choice.count:
            name, entry = view.found[choice.count - 1]
            self._first_shown[place] = (name, entry.seq)
            self._first_shown.move_to_end(place)
            if len(self._first_shown) > limits.PROMPTS_REMEMBERED:
                self._first_shown.popitem(last=False)
        return choice

    def _shown_before(self, place: _Place, view: ProjectView) -> int | None:
        """The position of the entry that was shown first the last time; None if there is none."""
        first = self._first_shown.get(place)
        if first is None:
            return None
        found = ((name, entry.seq) for name, entry in view.found)
        return next((at for at, each in enumerate(found) if each == first), len(view.found))

    # -- digesting ----------------------------------------------------------------------------

    async def _digest(self, job: _ProjectJob, view: ProjectView, choice: Choice) -> None:
        """Digest what is not shown, now or in the background."""
        due = [part for part in view.parts.values() if part.is_due]
        if choice.room is None or choice.room.count is not None or not due:
            return
        if not self._pending.is_background(job.strategy):
            await self._fold_all(job, due, choice.memory)
            return
        running = self._tasks.get(job.key)
        if running is None or running.done():
            work = self._fold_all(job, due, choice.memory)
            task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
            self._tasks[job.key] = task

    async def _fold_all(self, job: _ProjectJob, due: Sequence[ProjectPart], memory: int) -> None:
        """Digest the oldest entries of conversations; the rest is left to the next call."""
        made = 0
        for part in due:
            key = Key(job.key.tenant, part.head.conversation)
            theirs = self._pending.strategies.strategy_of(part.head)
            if key != job.key and theirs.name != "project":
                continue
            try:
                made += await self._fold(key, part, job, memory)
            except ConflictError:
                continue  # another process is digesting it
            except (ModelError, FirnlineError) as error:
                logger.warning("%s: not digested now: %s", key.conversation, outline(error))
                job.problems.append(str(error))
                return
            if made == limits.FOLD_ROUNDS_MAX:
                return

    async def _fold(self, key: Key, part: ProjectPart, job: _ProjectJob, memory: int) -> bool:
        """Digest what is not shown of a conversation, unless that is too little."""
        start = part.digests[-1].last_seq + 1 if part.digests else 0
        last = part.shown_from - 1
        if part.digests and (await self._store.tokens_between(key, start, last) < FOLD_TOKENS_MIN):
            return False
        fold = Fold(
            first_seq=0,
            last_seq=last,
            fresh_from=start,
            takes=tuple(digest.version for digest in part.digests),
            words=_WORDS,
            tokens_max=min(job.parameters["summary_tokens"], max(memory // 2, FOLD_TOKENS_MIN)),
        )
        digest = await self._builder.fold(key, fold, part.version, job.strategy.name)
        part.digests, part.version = (digest,), digest.version
        return True

    # -- merging ------------------------------------------------------------------------------

    async def _merge(
        self, job: _ProjectJob, view: ProjectView, choice: Choice, shown: list[ProjectEntry]
    ) -> Context:
        """The context of the conversation, with what is shown of the others."""
        own, parts = view.parts[view.own], view.parts.values()
        needs = own.shown_from > 0 and bool(own.digests)
        others_need = any(part.needed for part in parts if part is not own)
        memory = choice.memory // 2 if needs and others_need else choice.memory * needs
        chars = sum(uncounted(each.entry, job.sizes) for each in shown)
        chars += sum(len(digest.text) for part in parts for digest in part.needed)
        others = await run_by_size(
            chars, partial(show_others, view, choice, shown, choice.memory - memory, job.sizes)
        )
        spare = _room_for_quotes(choice, memory, others, job.request.budget)
        others = await self._with_quotes(
            job, view, others, spare if not own.shown_from else spare // 2
        )
        beside = Beside(
            tokens=others.tokens,
            recall_tokens=spare - others.quotes.tokens,
            tail_tokens=sum(e.tokens for name, e in shown if name == view.own),
            merge=partial(merged, view=view, shown=shown, others=others),
        )
        factor = job.sizes.count.factor / self._count.factor
        planned = own_strategy(job.parameters, own, choice.room, memory, factor)
        return await self._builder.build(job.key, replace(job.request, beside=beside), planned)

    async def _with_quotes(
        self, job: _ProjectJob, view: ProjectView, others: Others, tokens: int
    ) -> Others:
        """With quotes of older entries of other conversations that fit the question."""
        request, own = job.request, view.parts[view.own]
        if not request.question or not tokens:
            return others
        scope = Scope(project=own.head.project, person=own.head.person)
        hits = await self._builder.recall(job.key, request.question, 2 * tokens, scope=scope)
        known = request.person.hits if request.person else ()
        worthy = [
            hit
            for hit in hits[: hits.earned]
            if hit.message.text and view.hides(hit) and hit not in known
        ]
        chars = sum(len(hit.message.text) for hit in worthy)
        quoting = partial(elsewhere_section, worthy, tokens, job.sizes, QUOTES_HEADING, origin=True)
        if not own.shown_from:  # else the search of the conversation itself says so
            job.problems.extend(hits.degraded)
        return replace(others, quotes=await run_by_size(chars, quoting))


def _room_for_quotes(choice: Choice, memory: int, others: Others, budget: Budget) -> int:
    """The tokens for quotes; none if all of the project is shown."""
    if choice.room is None:
        return 0
    digests = sum(piece.tokens for piece in others.digests)
    spare = max(choice.room.total - choice.tokens - memory - digests, 0)
    return min(spare, budget.recall_room)
