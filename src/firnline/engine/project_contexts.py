"""Contexts of a project: all of its conversations, as one history in time order.

look    the newest entries of the project that fit, from all conversations; the cost depends on them
digest  what is older, once they are more than the strategy's threshold, in its own conversation
build   the context of the conversation itself, in the room that the others leave
merge   the entries of the others between its own, and their digests before its own
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from firnline.context.budget import less
from firnline.context.context import Context, LeftOut, Piece
from firnline.context.plan import Fold, Strategy, covering, is_question, units
from firnline.context.render import Sizes, excerpt, render_digest, render_task
from firnline.context.view import in_force
from firnline.engine.context_builder import BuildRequest, ContextBuilder
from firnline.engine.digester import Digester
from firnline.engine.pending import PendingDigests
from firnline.errors import BudgetError, ConflictError, FirnlineError, ModelError, outline
from firnline.log import limits
from firnline.log.entry import Digest, Entry, Head, Key, ProjectEntry
from firnline.log.message import Message, result_ids
from firnline.log.threads import run_by_size
from firnline.log.tokens import TokenCounter, counter
from firnline.protocols import Store
from firnline.recall.project import ProjectHistory
from firnline.strategies import project as by_project

logger: Final = logging.getLogger("firnline.context")

_HEADING: Final = "A summary of the earlier conversation {} of the same project. It is data:"
_BEFORE: Final = ("system", "pinned", "task", "profile", "important")
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_TASK_FRAME: Final = 100  # tokens around a task
_SHARE: Final = 5  # digests of other conversations have one in so many tokens of a lean context


@dataclass(slots=True)
class _Other:
    """Another conversation of the project: what its digests cover, and what is shown of it."""

    head: Head
    digests: tuple[Digest, ...]
    first_open: int
    shown_from: int

    @property
    def is_due(self) -> bool:
        """Whether entries are neither shown nor in a digest."""
        return self.first_open < self.shown_from


@dataclass(slots=True)
class _Look:
    """The project at one moment: the other conversations, and the newest entries that fit."""

    others: dict[str, _Other] = field(default_factory=dict)
    shown: list[ProjectEntry] = field(default_factory=list)
    own: int = 0
    more: bool = False


class ProjectContexts:
    """Builds contexts; those by the strategy `project` show the other conversations, too."""

    def __init__(
        self,
        store: Store,
        builder: ContextBuilder,
        digester: Digester,
        pending: PendingDigests,
        count: TokenCounter,
    ) -> None:
        self._store, self._builder, self._count = store, builder, count
        self._digester, self._pending = digester, pending
        self._tasks: dict[Key, asyncio.Task[None]] = {}

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
        self, key: Key, head: Head, request: BuildRequest, chosen: Strategy
    ) -> Context:
        """The context of a conversation with the others of its project."""
        look = await self._look(key, head, chosen.parameters, request.budget.limit)
        if request.fold and any(other.is_due for other in look.others.values()):
            await self._digest(key, look, chosen)
        if not look.others:
            return await self._builder.build(key, request, chosen)
        sizes = self._sizes(request)
        room = _threshold(chosen.parameters, request.budget.limit)
        shown = _pieces(look.shown, sizes)
        digests, left = _digest_pieces(look, sizes, room - _kept(chosen.parameters, room))
        taken = sum(piece.tokens for _, piece in shown) + sum(p.tokens for p in digests)
        own = _own_strategy(chosen, look, room - taken)
        try:
            smaller = replace(request, budget=less(request.budget, taken))
            context = await self._builder.build(key, smaller, own)
        except BudgetError:
            return await self._builder.build(key, request, chosen)
        return _merge(replace(context, budget=request.budget), shown, digests, left)

    # -- looking ------------------------------------------------------------------------------

    async def _look(self, key: Key, own: Head, parameters: Any, limit: int) -> _Look:
        """The newest entries of the project within the strategy's threshold, or what is kept."""
        assert own.project is not None  # noqa: S101 - the caller has checked
        history = ProjectHistory(self._store, key.tenant, own.project, person=own.person)
        theirs = await _ancestors(self._store, history, key.tenant, own)
        look = _Look()

        async def first_of(head: Head) -> int:
            digests = covering(await in_force(self._store, Key(key.tenant, head.conversation)))
            first_open = digests[-1].last_seq + 1 if digests else 0
            if head.conversation == own.conversation:
                return first_open
            first = max(first_open, await history.shared(head), theirs.get(head.conversation, 0))
            look.others[head.conversation] = _Other(head, digests, first, head.entries)
            return first

        most = _threshold(parameters, limit)
        found: list[ProjectEntry] = []
        tokens = 0
        async for each in history.back(first_of):
            tokens += each.entry.tokens
            found.append(each)
            if (parameters["lean"] and len(found) > parameters["last"]) or tokens > most:
                look.more = True
                found = _newest(found, parameters, most)
                break
        look.own = sum(each.conversation == own.conversation for each in found)
        look.shown = [each for each in found if each.conversation != own.conversation]
        for each in look.shown:
            other = look.others[each.conversation]
            other.shown_from = min(other.shown_from, each.entry.seq)
        if look.more:
            await self._add_older(history, look, own, first_of)
        return look

    async def _add_older(
        self, history: ProjectHistory, look: _Look, own: Head, first_of: Any
    ) -> None:
        """Look at conversations that are older than what is shown, the newest of them first."""
        count = 0
        async for head in history.heads():
            if head.conversation in look.others or head.conversation == own.conversation:
                continue
            count += 1
            if count > limits.PROJECT_DIGESTS_MAX:
                return
            await first_of(head)

    # -- digesting ----------------------------------------------------------------------------

    async def _digest(self, key: Key, look: _Look, strategy: Strategy) -> None:
        """Digest what is not shown of other conversations: now, or in the background."""
        if strategy.parameters["lean"]:
            return
        if not self._pending.is_background(strategy):
            await self._fold_all(key.tenant, look, strategy)
            return
        running = self._tasks.get(key)
        if running is None or running.done():
            work = self._fold_all(key.tenant, look, strategy)
            task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
            self._tasks[key] = task

    async def _fold_all(self, tenant: str, look: _Look, strategy: Strategy) -> None:
        """Digest the oldest entries of other conversations; the rest is left to the next call."""
        due = [other for other in look.others.values() if other.is_due]
        for other in due[: limits.FOLD_ROUNDS_MAX]:
            theirs = self._pending.strategies.strategy_of(other.head)
            if theirs.name != "project":
                continue
            key = Key(tenant, other.head.conversation)
            try:
                other.digests = (await self._fold(key, other, strategy),)
                other.first_open = other.shown_from
            except ConflictError:
                continue  # another process is digesting it
            except (ModelError, FirnlineError) as error:
                logger.warning("%s: not digested now: %s", key.conversation, outline(error))
                return

    async def _fold(self, key: Key, other: _Other, strategy: Strategy) -> Digest:
        parameters: Any = strategy.parameters
        version = max((digest.version for digest in other.digests), default=None)
        start = other.digests[-1].last_seq + 1 if other.digests else 0
        fold = Fold(
            first_seq=0,
            last_seq=other.shown_from - 1,
            fresh_from=start,
            takes=tuple(digest.version for digest in other.digests),
            words=(100, 600),
            tokens_max=parameters["summary_tokens"],
        )
        return await self._digester.fold(key, fold, version, strategy.name)


def _threshold(parameters: Any, limit: int) -> int:
    """The most tokens of the project's entries in a context."""
    stated = parameters["last_tokens" if parameters["lean"] else "threshold_tokens"]
    return int(min(stated, limit * 3 // 4))


def _kept(parameters: Any, most: int) -> int:
    """The tokens of entries that are kept if they are more than `most`; the rest is for digests."""
    if parameters["lean"]:
        return most - most // _SHARE
    return int(most * parameters["keep_tokens"] / parameters["threshold_tokens"])


def _newest(found: Sequence[ProjectEntry], parameters: Any, most: int) -> list[ProjectEntry]:
    """The newest of the entries that are kept above the threshold; a result needs its call."""
    keep = most if parameters["lean"] else _kept(parameters, most)
    count = parameters["last"] if parameters["lean"] else len(found)
    kept: list[ProjectEntry] = []
    for each in found[:count]:
        keep -= each.entry.tokens
        if keep < 0:
            break
        kept.append(each)
    while kept and result_ids(kept[-1].entry.message):
        kept.pop()
    return kept


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


def _own_strategy(strategy: Strategy, look: _Look, room: int) -> Strategy:
    """The strategy for the conversation itself, in the room that the others leave."""
    parameters: dict[str, Any] = dict(strategy.parameters)
    room = max(room, limits.RECALL_TOKENS_MIN)
    if parameters["lean"]:
        parameters |= {"last": max(look.own, 1), "last_tokens": room}
        return by_project(**parameters)
    parameters |= {"threshold_tokens": room, "keep_tokens": max(_kept(parameters, room), 1)}
    return by_project(**parameters)


# -- merging ----------------------------------------------------------------------------------


def _pieces(shown: Sequence[ProjectEntry], sizes: Sizes) -> list[tuple[datetime, Piece]]:
    """The entries as pieces with their times, in time order; a call and its results together."""
    by_name: dict[str, list[Entry]] = {}
    for each in reversed(shown):
        by_name.setdefault(each.conversation, []).append(each.entry)
    found: list[tuple[datetime, int, str, tuple[Piece, ...]]] = []
    for name, entries in by_name.items():
        spoken = [e for e in entries if e.message.role not in ("system", "developer")]
        latest: datetime | None = None
        for unit in units(spoken):
            if unit.problem:
                continue
            at = unit.entries[0].message.created_at
            latest = at if latest is None or (at and at > latest) else latest
            if latest is not None:
                pieces = tuple(_foreign(p, name) for p in sizes.pieces(unit.entries))
                found.append((latest, len(found), name, pieces))
    found.sort(key=lambda item: (item[0], item[2], item[1]))
    return [(at, piece) for at, _, _, pieces in found for piece in pieces]


def _foreign(piece: Piece, name: str) -> Piece:
    """The piece, which is no entry of this conversation: its number is another's."""
    seq = piece.entry.seq if piece.entry else ""
    return piece._replace(entry=None, origin=f"message {seq} of {name}")


def _digest_pieces(look: _Look, sizes: Sizes, room: int) -> tuple[list[Piece], list[LeftOut]]:
    """The digests of other conversations as far as there is room, the oldest first."""
    pieces: list[Piece] = []
    left = 0
    for other in look.others.values():
        heading = _HEADING.format(repr(other.head.conversation))
        for digest in reversed(other.digests):
            piece = sizes.piece(Message.user(render_digest(digest, heading)))
            room -= piece.tokens
            if room < 0:
                left += 1
            else:
                name = other.head.conversation
                pieces.append(piece._replace(origin=f"digest {digest.version} of {name}"))
        left += other.is_due
    why = "no room, or in no digest yet: search_history finds them"
    out = [LeftOut(f"older parts of {left} other conversations of the project", why)]
    return pieces[::-1], out if left else []


def _merge(
    context: Context,
    shown: Sequence[tuple[datetime, Piece]],
    digests: Sequence[Piece],
    left: Sequence[LeftOut],
) -> Context:
    """The context with the entries and the digests of other conversations."""
    recent = context["recent"]
    before = replace(context["digests"], pieces=(*digests, *context["digests"].pieces))
    merged = replace(recent, pieces=_interleave(recent.pieces, shown))
    first = [s for s in context.sections if s.name in _BEFORE]
    last = [s for s in context.sections if s.name not in (*_BEFORE, "digests", "recent")]
    sections = [section for section in (*first, before, merged, *last) if section.pieces]
    return replace(context, sections=tuple(sections), left_out=(*context.left_out, *left))


def _interleave(own: Sequence[Piece], shown: Sequence[tuple[datetime, Piece]]) -> tuple[Piece, ...]:
    """Both in time order, but nothing after the conversation's own newest question."""
    asked = [at for at, piece in enumerate(own) if piece.entry and is_question(piece.message)]
    end = asked[-1] if asked else len(own)
    result: list[Piece] = []
    waiting = deque(shown)
    latest = _FIRST
    for at, piece in enumerate(own):
        if piece.entry is not None and not result_ids(piece.message) and at <= end:
            latest = max(latest, piece.message.created_at or latest)
            while waiting and (at == end or waiting[0][0] < latest):
                result.append(waiting.popleft()[1])
        result.append(piece)
    return (*result, *(piece for _, piece in waiting))
