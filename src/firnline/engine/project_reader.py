"""Reads a project for a context: its newest entries, and the digests of its conversations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Final, TypeAlias

from firnline.context.marks import INTERRUPTED
from firnline.context.plan import View, covering, ends_round
from firnline.context.project import Choice, ProjectPart, ProjectView, after_torn, is_torn
from firnline.context.render import Sizes, render_data, render_digest
from firnline.context.view import is_system, newest_question
from firnline.digest import items
from firnline.log import limits
from firnline.log.entry import Digest, Entry, Head, Key, ProjectEntry
from firnline.log.message import Message
from firnline.log.threads import run_by_size, text_size
from firnline.protocols import Store
from firnline.recall.project import ProjectHistory

_LONGEST: Final = 0.25  # of the room; a longer message may be shown shortened

ReadDigests: TypeAlias = Callable[[Key], Awaitable[tuple[Digest, ...]]]
"""Reads the digests in force of a conversation."""


class ProjectReader:
    """Reads the project of the conversation `own` at one moment; the cost depends on the budget."""

    def __init__(
        self, store: Store, tenant: str, own: Head, sizes: Sizes, read_digests: ReadDigests
    ) -> None:
        self._store, self._tenant, self._own = store, tenant, own
        self._sizes, self._read_digests = sizes, read_digests
        self._history = ProjectHistory(store, tenant, own.project or "", person=own.person)
        self.view = ProjectView(own=own.conversation)
        self._shared: Mapping[str, int] = {}

    async def read(self, parameters: Mapping[str, Any], limit: int) -> ProjectView:
        """The newest entries of the project: all that could be shown in `limit`, and one more."""
        view = self.view
        self._shared = await self._ancestors()
        most, count = _most_of(parameters, limit)
        longest = int(most * _LONGEST)
        waiting: list[ProjectEntry] = []
        used = stored = 0
        async for each in self._history.back(self._first_of):
            waiting.append(each)
            stored += min(each.entry.tokens, longest)
            if used + stored > most or len(view.found) + len(waiting) > count:
                await self._add(waiting)
                used, stored = sum(min(tokens, longest) for tokens in view.tokens), 0
                waiting = []
                if used > most or len(view.found) > count:
                    break
        else:
            await self._add(waiting)
            view.complete = True
        if view.own not in view.parts:
            await self._first_of(self._own)
        if not view.complete:
            await self._add_older()
        await self._find_question()
        view.stated_tokens = await self._stated_tokens()
        return view

    async def begin(self, choice: Choice) -> list[ProjectEntry]:
        """Decide where each conversation begins; returns what is shown, in time order."""
        view = self.view
        shown = view.found[choice.count - 1 :: -1] if choice.count else []
        for name, part in view.parts.items():
            entries = [entry for at, entry in shown if at == name]
            first = part.shown_from = entries[0].seq if entries else part.head.entries
            if choice.room is None:
                part.shown_from = part.begins
            elif is_torn(entries):
                start = max(first - limits.TOOL_CALL_REACH, part.begins)
                before = await self._store.read(self._key(name), start, first - 1)
                part.shown_from = after_torn((*before, *entries), first)
        return [each for each in shown if each.entry.seq >= view.parts[each[0]].shown_from]

    # -- entries ------------------------------------------------------------------------------

    def _key(self, conversation: str) -> Key:
        return Key(self._tenant, conversation)

    async def _add(self, entries: Sequence[ProjectEntry]) -> None:
        """Add entries with their tokens.

        The instructions of other conversations have none, because they are not shown.
        """
        view, sizes = self.view, self._sizes
        said = [e if name == view.own or not is_system(e) else None for name, e in entries]

        def count() -> list[int]:
            return [0 if entry is None else sizes.entry(entry) for entry in said]

        chars = sum(uncounted(entry, sizes) for entry in said if entry is not None)
        view.found += entries
        view.tokens += await run_by_size(chars, count)

    async def _find_question(self) -> None:
        """Find the conversation's own newest question, and whether it is answered."""
        view, key = self.view, self._key(self.view.own)
        own = tuple(entry for name, entry in reversed(view.found) if name == view.own)
        last = View(next_seq=view.parts[view.own].head.entries, entries=own)
        asked = view.question = await newest_question(self._store, key, last)
        if asked is None:
            return
        count = partial(self._sizes.entry, asked)
        view.question_tokens = await run_by_size(uncounted(asked, self._sizes), count)
        if not own or asked.seq < own[0].seq:
            limit = limits.TOOL_CALL_REACH
            own = (*await self._store.read(key, asked.seq + 1, limit=limit), *own)
        later = [entry.message for entry in own if entry.seq > asked.seq]
        view.answered = any(ends_round(m) and INTERRUPTED not in m.metadata for m in later)

    # -- conversations ------------------------------------------------------------------------

    async def _first_of(self, head: Head) -> int:
        """The first entry of a conversation that is not shown as another's; it becomes a part."""
        name, begins = head.conversation, 0
        if name != self.view.own:
            begins = max(await self._history.shared(head), self._shared.get(name, 0))
        digests = await self._read_digests(self._key(name))
        version = max((digest.version for digest in digests), default=None)
        self.view.parts[name] = ProjectPart(head, begins, head.entries, covering(digests), version)
        return begins

    async def _add_older(self) -> None:
        """Look at conversations that are older than what was read, the newest of them first."""
        count = 0
        async for head in self._history.heads():
            if head.conversation in self.view.parts:
                continue
            count += 1
            if count > limits.PROJECT_DIGESTS_MAX:
                return
            await self._first_of(head)

    async def _ancestors(self) -> dict[str, int]:
        """How many first entries of other conversations this one has, too: it is a branch."""
        found: dict[str, int] = {}
        head, most = self._own, self._own.entries
        while len(found) < limits.BRANCH_DEPTH_MAX:
            shared = await self._history.shared(head)
            source = head.branch_of[0] if head.branch_of else ""
            following = await self._store.head(self._key(source)) if shared else None
            if following is None or source in found:
                break
            most = found[source] = min(most, shared)
            head = following
        return found

    async def _stated_tokens(self) -> int:
        """The tokens of what the application stated in the conversation itself."""
        digests = self.view.parts[self.view.own].digests

        def count() -> int:
            known = [item for digest in digests for item in items.from_json(digest.data)]
            data = items.important_data(item for item in known if not item.seqs)
            texts = [render_data(data)] if any(data.values()) else []
            texts += [render_digest(d) for d in digests if d.last_seq < d.first_seq]
            return sum(self._sizes.of(Message.user(text)) for text in texts)

        return await run_by_size(text_size([digest.data for digest in digests]), count)


def uncounted(entry: Entry, sizes: Sizes) -> int:
    """The characters of a message that has to be counted."""
    return 0 if sizes.knows(entry) else len(entry.message.text)


def _most_of(parameters: Mapping[str, Any], limit: int) -> tuple[int, float]:
    """The most tokens and entries that a context can show of a project."""
    if parameters["lean"]:
        return min(parameters["last_tokens"], limit), parameters["last"]
    return min(parameters["threshold_tokens"], limit), inf
