"""`FirnlineHistory`: history for Microsoft's Agent Framework. Needs ``firnline[agent-framework]``.

Everything is kept in the log, the input before the agent runs; what the agent is shown of the past
is a context within a budget.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextvars import ContextVar
from typing import Any

from firnline.adapters.extras import needs
from firnline.context.budget import BudgetLike, as_budget, less
from firnline.context.plan import UNANSWERED, units
from firnline.errors import InputError
from firnline.log.limits import TOOL_CALL_REACH
from firnline.log.message import Message, call_ids
from firnline.log.tokens import counter
from firnline.memory import Memory

try:
    from agent_framework import AgentSession, HistoryProvider, SessionContext, SupportsAgentRun
    from agent_framework import Message as Turned

    from firnline.adapters.agent_framework_messages import (
        answered_ids,
        from_framework,
        to_framework,
    )
except ModuleNotFoundError as error:
    raise needs("agent-framework", error) from error

_INPUT: ContextVar[tuple[Turned, ...]] = ContextVar("firnline_input", default=())
"""What the run that is about to begin was given: it counts, and says what to recall."""


class FirnlineHistory(HistoryProvider):
    """History from and for `memory`; the session's id is the conversation's name.

    `budget` bounds what the agent is shown, its input included; the reserve has to leave room for
    the agent's instructions, its tools and the answer, which a provider is not told of.
    """

    def __init__(
        self, memory: Memory, budget: BudgetLike, *, source_id: str = "firnline", **options: Any
    ) -> None:
        super().__init__(source_id, **options)
        self._memory, self._budget = memory, as_budget(budget)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Turned]:
        """A context of the conversation so far, beside the input of the run that asks for it."""
        del state, kwargs
        name, given = _named(session_id), _INPUT.get()
        head = await self._memory.head(name)
        if head is None or not head.entries:
            return []
        said = [ours for message in given for ours in from_framework(message)]
        waiting = await self._waiting(name, head.entries, answered_ids(given))
        count = counter(self._budget.model) if self._budget.model else counter()
        budget = less(self._budget, sum(map(count.message, (*said, *waiting))))
        asked = next((message.text for message in reversed(said) if message.role == "user"), None)
        context = await self._memory.context(name, budget, asked, past=True)
        return [to_framework(message) for message in (*context.messages, *waiting)]

    async def _waiting(self, name: str, end: int, answered: Collection[str]) -> list[Message]:
        """The calls that the input is the answer to, with the results that they have already.

        No context shows them, as they are half done; but without them the answer is to nothing.
        """
        if not answered:
            return []
        near = await self._memory.read(name, first_seq=max(end - TOOL_CALL_REACH, 0))
        return [
            entry.message
            for unit in units(near)
            if unit.problem == UNANSWERED
            and any(call in answered for e in unit.entries for call in call_ids(e.message))
            for entry in unit.entries
        ]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Turned],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep messages; durable when this returns."""
        del state, kwargs
        said = [ours for message in messages for ours in from_framework(message)]
        if said:
            await self._memory.append(_named(session_id), said)

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Show the past, and keep the input before the agent runs."""
        token = _INPUT.set(tuple(context.input_messages))
        try:
            await super().before_run(agent=agent, session=session, context=context, state=state)
        finally:
            _INPUT.reset(token)
        if self.store_inputs:
            said = [*self._get_context_messages_to_store(context), *context.input_messages]
            await self.save_messages(context.session_id, said, state=state)

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Keep the answer."""
        del agent, session
        if self.store_outputs and context.response:
            await self.save_messages(context.session_id, context.response.messages, state=state)


def _named(session_id: str | None) -> str:
    if not session_id:
        raise InputError("which conversation? run the agent with session=AgentSession(...)")
    return session_id
