"""`FirnlineSession`: a session for the OpenAI Agents SDK. Needs ``firnline[openai-agents]``.

Every item is stored in the log; the runner reads a context within a budget. The log keeps
everything: after an item is popped or the session is cleared, it continues as a branch without it.
"""

from __future__ import annotations

import secrets
from typing import Any, Final, cast

from firnline.adapters import missing_extra
from firnline.context.budget import BudgetLike
from firnline.errors import ConflictError
from firnline.log.entry import live
from firnline.log.openai_items import items_of, messages_of, plain_calls
from firnline.memory import Memory

try:
    from agents import TResponseInputItem
    from agents.memory import SessionSettings
except ModuleNotFoundError as error:
    raise missing_extra("openai-agents", error) from error

_CONTINUES_AS: Final = "goes_on_as"


class FirnlineSession:
    """The session `session_id`, which is a conversation of `memory`.

    `budget` limits what is read. Its reserve must leave room for instructions, tools, the new
    input, and the answer, which a session does not know. `person` is whom the session is with;
    `ConflictError` if the conversation is with another person.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self, session_id: str, memory: Memory, budget: BudgetLike, *, person: str | None = None
    ) -> None:
        self.session_id, self._memory, self._budget = session_id, memory, budget
        self._person = person

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """A context of the conversation; with `limit`, its newest items, unchanged."""
        name, end = await self._current()
        if not end or limit == 0:
            return []
        if limit is not None:
            newest = await self._memory.read(name, first_seq=max(end - limit, 0))
            return _as_items(
                [item for entry in live(newest) for item in items_of(entry.message)][-limit:]
            )
        context = await self._memory.context(name, self._budget, past=True, person=self._person)
        plain = plain_calls((piece.message, piece.whole) for piece in context.pieces)
        found: list[dict[str, Any]] = []
        for piece in context.pieces:
            ids = {piece.message.tool_call_id, *(call.id for call in piece.message.tool_calls)}
            found += items_of(piece.message, whole=piece.whole and not ids & plain)
        return _as_items(found)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items; durable when this returns."""
        if items:
            name, _ = await self._current()
            messages = messages_of(cast("list[dict[str, Any]]", items))
            await self._memory.append(name, messages, person=self._person)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item from the session, and return it."""
        name, end = await self._current()
        if not end:
            return None
        (newest,) = await self._memory.read(name, first_seq=end - 1)
        *rest, popped = items_of(newest.message)
        branch = f"{self.session_id}--{secrets.token_hex(4)}"
        if end > 1:
            await self._memory.branch(name, end - 2, branch)
        if rest:
            await self._memory.append(branch, messages_of(rest), person=self._person)
        await self._continue_as(branch)
        return _as_items([popped])[0]

    async def clear_session(self) -> None:
        """Start with an empty session; old messages stay in the log until erased."""
        _, end = await self._current()
        if end:
            await self._continue_as(f"{self.session_id}--{secrets.token_hex(4)}")

    async def _current(self) -> tuple[str, int]:
        """The session's current conversation, and its number of entries."""
        head = await self._memory.head(self.session_id)
        name = str(head.metadata.get(_CONTINUES_AS) or self.session_id) if head else self.session_id
        if name != self.session_id:
            head = await self._memory.head(name)
        if (
            head is not None
            and self._person is not None
            and head.person not in (None, self._person)
        ):
            raise ConflictError(f"the session {self.session_id} is with another person")
        return name, head.entries if head else 0

    async def _continue_as(self, branch: str) -> None:
        head = await self._memory.head(self.session_id)
        known = head.metadata if head else {}
        await self._memory.describe(self.session_id, metadata={**known, _CONTINUES_AS: branch})


def _as_items(items: list[dict[str, Any]]) -> list[TResponseInputItem]:
    return cast("list[TResponseInputItem]", items)
