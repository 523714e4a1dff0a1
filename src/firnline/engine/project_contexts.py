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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, Final, TypeAlias

from firnline.context.context import Context, LeftOut
from firnline.context.marks import INTERRUPTED
from firnline.context.person import person_sections
from firnline.context.plan import FOLD_TOKENS_MIN, Fold, Strategy, View, covering, ends_round
from firnline.context.project import (
    Choice,
    Part,
    ProjectView,
    after_torn,
    choose,
    is_torn,
    merged,
    own_strategy,
    show_others,
)
from firnline.context.render import Sizes, excerpt, render_data, render_digest, render_task
from firnline.context.view import in_force, is_system, newest_question, read_frame
from firnline.digest import items
from firnline.engine.context_builder import Beside, BuildRequest, ContextBuilder
from firnline.engine.pending import PendingDigests
from firnline.errors import BudgetError, ConflictError, FirnlineError, ModelError, outline
from firnline.log import limits
from firnline.log.entry import Entry, Head, Key, ProjectEntry
from firnline.log.message import Message
from firnline.log.threads import run_by_size, text_size
from firnline.log.tokens import TokenCounter, counter
from firnline.protocols import Store
from firnline.recall.project import ProjectHistory

logger: Final = logging.getLogger("firnline.context")

_Place: TypeAlias = tuple[str, int]
_Size: TypeAlias = tuple[Key, int, str | None, tuple[Any, ...]]
_TASK_FRAME: Final = 100  # tokens around a task
_WORDS: Final = (100, 600)  # of a digest


class ProjectContexts:
    """Builds contexts; those by the strategy `project` show the other conversations, too."""

    def __init__(
        self, store: Store, builder: ContextBuilder, pending: PendingDigests, count: TokenCounter
    ) -> None:
        self._store, self._builder, self._count = store, builder, count
        self._pending = pending
        self._tasks: dict[Key, asyncio.Task[list[str]]] = {}
        self._first_shown: OrderedDict[_Size, _Place] = OrderedDict()

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
        sizes, problems = self._sizes(request), list[str]()
        view = await self._look(key, head, strategy, request, sizes, problems)
        if len(view.parts) == 1:
            return await self._builder.build(key, request, strategy)
        choice = await self._choose(key, view, strategy, request, sizes)
        shown = await self._begin(key.tenant, view, choice)
        if request.fold:
            problems += await self._digest(key, view, choice, strategy)
        try:
            context = await self._merge(key, view, choice, shown, strategy, request, sizes)
        except BudgetError:
            context = await self._builder.build(key, request, strategy)
            alone = LeftOut("the other conversations of the project", "no room")
            context = replace(context, left_out=(*context.left_out, alone))
        return replace(context, degraded=(*problems, *context.degraded))

    # -- looking ------------------------------------------------------------------------------

    async def _look(
        self,
        key: Key,
        own: Head,
        strategy: Strategy,
        request: BuildRequest,
        sizes: Sizes,
        problems: list[str],
    ) -> ProjectView:
        """The newest entries of the project: all that could be shown, and one more."""
        assert own.project is not None  # noqa: S101 - the caller has checked
        history = ProjectHistory(self._store, key.tenant, own.project)
        theirs = await _ancestors(self._store, history, key.tenant, own)
        view = ProjectView(own=key.conversation)

        async def first_of(head: Head) -> int:
            name = head.conversation
            begins = max(await history.shared(head), theirs.get(name, 0)) if name != view.own else 0
            view.parts[name] = await self._part(Key(key.tenant, name), head, begins, problems)
            return begins

        most, count = _most_of(strategy.parameters, request.budget.limit)
        waiting: list[ProjectEntry] = []
        used = stored = 0
        async for each in history.back(first_of):
            waiting.append(each)
            stored += each.entry.tokens
            if used + stored > most or len(view.found) + len(waiting) > count:
                used, stored = await _measure(view, waiting, sizes), 0
                waiting = []
                if used > most or len(view.found) > count:
                    break
        else:
            await _measure(view, waiting, sizes)
            view.complete = True
        if view.own not in view.parts:
            await first_of(own)
        if not view.complete:
            await _add_older(history, view, first_of)
        return view

    async def _part(self, key: Key, head: Head, begins: int, problems: list[str]) -> Part:
        """A conversation of which nothing is shown yet."""
        read = partial(in_force, self._store, key)
        digests = await self._builder.read_repaired(key, read, problems)
        version = max((digest.version for digest in digests), default=None)
        return Part(head, begins, head.entries, covering(digests), version)

    # -- choosing -----------------------------------------------------------------------------

    async def _choose(
        self, key: Key, view: ProjectView, strategy: Strategy, request: BuildRequest, sizes: Sizes
    ) -> Choice:
        """How many of the newest entries are shown."""
        await self._find_question(key, view, sizes)
        view.stated_tokens = await _stated_tokens(view, sizes)
        frame = await read_frame(
            self._store,
            key,
            sizes,
            system=request.system,
            tools=request.tools,
            task=request.task or "",
            next_seq=view.parts[view.own].head.entries,
        )
        about = request.person and person_sections(request.person, request.budget, sizes)
        limit = (about.budget if about else request.budget).limit
        quotes = request.budget.recall_tokens if request.question is not None else None
        size = key, limit, request.budget.model, tuple(strategy.parameters.values())
        choice = choose(
            view, strategy.parameters, frame, limit, quotes, self._shown_before(size, view)
        )
        if request.fold and choice.room is not None and choice.count:
            name, entry = view.found[choice.count - 1]
            self._first_shown[size] = (name, entry.seq)
            self._first_shown.move_to_end(size)
            if len(self._first_shown) > limits.PROMPTS_REMEMBERED:
                self._first_shown.popitem(last=False)
        return choice

    async def _find_question(self, key: Key, view: ProjectView, sizes: Sizes) -> None:
        """Find the conversation's own newest question, and whether it is answered."""
        mine = tuple(entry for name, entry in reversed(view.found) if name == view.own)
        last = View(next_seq=view.parts[view.own].head.entries, entries=mine)
        asked = view.question = await newest_question(self._store, key, last)
        if asked is None:
            return
        count = partial(sizes.entry, asked)
        view.question_tokens = await run_by_size(_uncounted(asked, sizes), count)
        if not mine or asked.seq < mine[0].seq:
            limit = limits.TOOL_CALL_REACH
            mine = (*await self._store.read(key, asked.seq + 1, limit=limit), *mine)
        later = [entry.message for entry in mine if entry.seq > asked.seq]
        view.answered = any(ends_round(m) and INTERRUPTED not in m.metadata for m in later)

    def _shown_before(self, size: _Size, view: ProjectView) -> int | None:
        """The position of the entry that was shown first the last time; None if there is none."""
        place = self._first_shown.get(size)
        if place is None:
            return None
        places = ((name, entry.seq) for name, entry in view.found)
        return next((at for at, each in enumerate(places) if each == place), len(view.found))

    async def _begin(self, tenant: str, view: ProjectView, choice: Choice) -> list[ProjectEntry]:
        """Where each conversation begins; returns the entries that are shown, in time order."""
        shown = view.found[choice.count - 1 :: -1] if choice.count else []
        for name, part in view.parts.items():
            entries = [entry for at, entry in shown if at == name]
            part.shown_from = entries[0].seq if entries else part.head.entries
            if choice.room is None:
                part.shown_from = part.begins
            elif is_torn(entries):
                first = part.shown_from
                start = max(first - limits.TOOL_CALL_REACH, part.begins)
                before = await self._store.read(Key(tenant, name), start, first - 1)
                part.shown_from = after_torn((*before, *entries), first)
        return [each for each in shown if each.entry.seq >= view.parts[each[0]].shown_from]

    # -- digesting ----------------------------------------------------------------------------

    async def _digest(
        self, key: Key, view: ProjectView, choice: Choice, strategy: Strategy
    ) -> list[str]:
        """Digest what is not shown, now or in the background; returns what failed."""
        due = [part for part in view.parts.values() if part.is_due]
        if choice.room is None or choice.room.count is not None or not due:
            return []
        work = partial(self._fold_all, key, due, strategy, choice.room.memory)
        if not self._pending.is_background(strategy):
            return await work()
        running = self._tasks.get(key)
        if running is None or running.done():
            loop = asyncio.get_running_loop()
            self._tasks[key] = loop.create_task(work(), context=contextvars.Context())
        return []

    async def _fold_all(
        self, own: Key, due: Sequence[Part], strategy: Strategy, memory: int
    ) -> list[str]:
        """Digest the oldest entries of conversations; the rest is left to the next call."""
        made = 0
        for part in due:
            key = Key(own.tenant, part.head.conversation)
            theirs = self._pending.strategies.strategy_of(part.head)
            if key != own and theirs.name != "project":
                continue
            try:
                made += await self._fold(key, part, strategy, memory)
            except ConflictError:
                continue  # another process is digesting it
            except (ModelError, FirnlineError) as error:
                logger.warning("%s: not digested now: %s", key.conversation, outline(error))
                return [str(error)]
            if made == limits.FOLD_ROUNDS_MAX:
                break
        return []

    async def _fold(self, key: Key, part: Part, strategy: Strategy, memory: int) -> bool:
        """Digest what is not shown of a conversation, unless that is too little."""
        parameters: Any = strategy.parameters
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
            tokens_max=min(parameters["summary_tokens"], max(memory // 2, FOLD_TOKENS_MIN)),
        )
        digest = await self._builder.fold(key, fold, part.version, strategy.name)
        part.digests, part.version = (digest,), digest.version
        return True

    # -- merging ------------------------------------------------------------------------------

    async def _merge(
        self,
        key: Key,
        view: ProjectView,
        choice: Choice,
        shown: list[ProjectEntry],
        strategy: Strategy,
        request: BuildRequest,
        sizes: Sizes,
    ) -> Context:
        """The context of the conversation, with what is shown of the others."""
        own = view.parts[view.own]
        needs = own.shown_from > 0 and bool(own.digests)
        others_need = any(part.needed for part in view.parts.values() if part is not own)
        mine = choice.memory // 2 if needs and others_need else choice.memory * needs
        text = sum(_uncounted(each.entry, sizes) for each in shown)
        text += sum(len(d.text) for part in view.parts.values() for d in part.needed)
        memory = choice.memory - mine
        others = await run_by_size(text, partial(show_others, view, choice, shown, memory, sizes))
        spare = 0
        if choice.room is not None:
            spare = choice.room.total - choice.tokens - mine
            spare -= sum(piece.tokens for piece in others.digests)
        stated = request.budget.recall_tokens
        spare = max(spare, 0) if stated is None else min(stated, spare)
        beside = Beside(
            tokens=others.tokens,
            recall_tokens=max(spare, 0),
            tail_tokens=sum(e.tokens for name, e in shown if name == view.own),
            merge=partial(merged, view=view, shown=shown, others=others),
        )
        factor = sizes.count.factor / self._count.factor
        planned = own_strategy(strategy.parameters, own, choice.room, mine, factor)
        return await self._builder.build(key, replace(request, beside=beside), planned)


def _most_of(parameters: Mapping[str, Any], limit: int) -> tuple[int, float]:
    """The most tokens and entries that a context can show of a project."""
    if parameters["lean"]:
        return min(parameters["last_tokens"], limit), parameters["last"]
    return min(parameters["threshold_tokens"], limit), inf


def _uncounted(entry: Entry, sizes: Sizes) -> int:
    """The characters of a message that has to be counted."""
    return 0 if sizes.knows(entry) else len(entry.message.text)


async def _measure(view: ProjectView, entries: Sequence[ProjectEntry], sizes: Sizes) -> int:
    """Add entries with their tokens; returns the tokens of all. Others' instructions have none."""
    said = [entry if name == view.own or not is_system(entry) else None for name, entry in entries]
    chars = sum(_uncounted(entry, sizes) for entry in said if entry is not None)

    def count() -> list[int]:
        return [0 if entry is None else sizes.entry(entry) for entry in said]

    view.found += entries
    view.tokens += await run_by_size(chars, count)
    return sum(view.tokens)


async def _stated_tokens(view: ProjectView, sizes: Sizes) -> int:
    """The tokens of what the application stated in the conversation itself."""
    digests = view.parts[view.own].digests
    if not digests:
        return 0

    def count() -> int:
        known = tuple(item for digest in digests for item in items.from_json(digest.data))
        data = items.important_data([item for item in known if not item.seqs])
        texts = [render_data(data)] if any(data.values()) else []
        texts += [render_digest(d) for d in digests if d.last_seq < d.first_seq]
        return sum(sizes.of(Message.user(text)) for text in texts)

    return await run_by_size(text_size([digest.data for digest in digests]), count)


async def _add_older(
    history: ProjectHistory, view: ProjectView, first_of: Callable[[Head], Awaitable[int]]
) -> None:
    """Look at conversations that are older than what was read, the newest of them first."""
    count = 0
    async for head in history.heads():
        if head.conversation in view.parts:
            continue
        count += 1
        if count > limits.PROJECT_DIGESTS_MAX:
            return
        await first_of(head)


async def _ancestors(
    store: Store, history: ProjectHistory, tenant: str, own: Head
) -> dict[str, int]:
    """How many first entries of other conversations the conversation has, too: it is a branch."""
    found: dict[str, int] = {}
    head, most = own, own.entries
    while len(found) < limits.BRANCH_DEPTH_MAX and (shared := await history.shared(head)):
        source = head.branch_of[0] if head.branch_of else ""
        most = min(most, shared)
        following = await store.head(Key(tenant, source))
        if following is None or source in found:
            break
        found[source] = most
        head = following
    return found
