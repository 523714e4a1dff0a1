"""`FirnlineHistory`: history for Microsoft's Agent Framework. Needs ``firnline[agent-framework]``.

Every message is stored in the log, the input before the agent runs. The agent gets a context of the
past within a budget.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextvars import ContextVar
from typing import Any

from firnline.adapters import missing_extra
from firnline.context.budget import BudgetLike, as_budget, less
from firnline.context.plan import UNANSWERED, units
from firnline.errors import InputError
from firnline.log.limits import TOOL_CALL_REACH
from firnline.log.message import Message, call_ids
from firnline.log.tokens import counter
from firnline.memory import Memory

try:
    from agent_framework import AgentSession, HistoryProvider, SessionContext, SupportsAgentRun
    from agent_framework import Message as FrameworkMessage

    from firnline.adapters.agent_framework_messages import (
        answered_ids,
        from_framework,
        to_framework,
    )
except ModuleNotFoundError as error:
    raise missing_extra("agent-framework", error) from error

_INPUT: ContextVar[tuple[FrameworkMessage, ...]] = ContextVar("firnline_input", default=())
"""The input of the current run: it counts toward the budget and is the recall query."""


class FirnlineHistory(HistoryProvider):
    """History in `memory`; the session's id is the conversation's name.

    `budget` limits the context including the input. Its reserve must leave room for the agent's
    instructions, its tools, and the answer, which a provider does not know. `person` is whom its
    sessions are with.
    """

    def __init__(
        self,
        memory: Memory,
        budget: BudgetLike,
        *,
        source_id: str = "firnline",
        person: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(source_id, **options)
        self._memory, self._budget, self._person = memory, as_budget(budget), person

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[FrameworkMessage]:
        """A context of the conversation, with room for the input of the current run."""
        del state, kwargs
        name, run_input = _require_session(session_id), _INPUT.get()
        head = await self._memory.head(name)
        if (head is None or not head.entries) and self._person is None:
            return []
        messages = [ours for message in run_input for ours in from_framework(message)]
        end = head.entries if head else 0
        waiting = await self._open_calls(name, end, answered_ids(run_input))
        count = counter(self._budget.model) if self._budget.model else counter()
        budget = less(self._budget, sum(map(count.message, (*messages, *waiting))))
        question = next(
            (message.text for message in reversed(messages) if message.role == "user"), None
        )
        context = await self._memory.context(name, budget, question, past=True, person=self._person)
        return [to_framework(message) for message in (*context.messages, *waiting)]

    async def _open_calls(self, name: str, end: int, answered: Collection[str]) -> list[Message]:
        """The tool calls that the input answers, with the results they have already.

        A context does not include incomplete calls, but the answer needs them.
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
        messages: Sequence[FrameworkMessage],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Store messages; durable when this returns."""
        del state, kwargs
        said = [ours for message in messages for ours in from_framework(message)]
        if said:
            await self._memory.append(_require_session(session_id), said, person=self._person)

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Add the context, and store the input before the agent runs."""
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
        """Store the answer."""
        del agent, session
        if self.store_outputs and context.response:
            await self.save_messages(context.session_id, context.response.messages, state=state)


def _require_session(session_id: str | None) -> str:
    if not session_id:
        raise InputError("the session has no id; run the agent with session=AgentSession(...)")
    return session_id
