"""`FirnlineCapability`: a memory for pydantic-ai agents. Needs ``firnline[pydantic-ai]``.

Each request to the model is a context of the log; the run's own history stays complete. Messages
are stored before the model is called, before tools run, and before the caller gets the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from firnline.adapters import missing_extra
from firnline.adapters.history_sync import HistorySync
from firnline.context.budget import BudgetLike
from firnline.errors import InputError
from firnline.memory import Memory

try:
    from pydantic_ai import ModelRequestNode, RunContext
    from pydantic_ai.capabilities import AbstractCapability, AgentNode, NodeResult
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
    from pydantic_ai.run import AgentRunResult

    from firnline.adapters.pydantic_messages import HistoryItem, items_of, message_of, to_history
except ModuleNotFoundError as error:
    raise missing_extra("pydantic-ai", error) from error


@dataclass(eq=False)
class FirnlineCapability(AbstractCapability[Any]):
    """Stores messages in `memory` and fits each request into `budget`.

    `conversation` defaults to the run's ``conversation_id``, `budget` to the model's window.
    `person` is whom the conversation is with: a name, or a function that finds it in the run, such
    as ``lambda run: run.deps.user_id``.
    """

    memory: Memory
    budget: BudgetLike | None = None
    conversation: str | None = None
    recall: bool = True
    person: str | Callable[[RunContext[Any]], str | None] | None = None
    _history: HistorySync = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._history = HistorySync(self.memory)

    async def after_node_run(
        self, ctx: RunContext[Any], *, node: AgentNode[Any], result: NodeResult[Any]
    ) -> NodeResult[Any]:
        """Store calls before their tools run."""
        newest = ctx.messages[-1] if ctx.messages else None
        if isinstance(node, ModelRequestNode) and isinstance(newest, ModelResponse):
            await self._store_history(ctx, ctx.messages)
        return result

    async def after_run(
        self, ctx: RunContext[Any], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        """Store the answer before the caller gets it."""
        await self._store_history(ctx, result.all_messages())
        return result

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Replace the history by a context of the conversation."""
        history = request_context.messages
        stored = await self._store_history(ctx, history)
        parameters = request_context.model_request_parameters
        system = "\n\n".join(part.content for part in parameters.instruction_parts or ())
        questions = (
            m.text for m in map(message_of, reversed(items_of(history))) if m.role == "user"
        )
        context = await self.memory.context(
            self._name(ctx),
            self.budget or self.memory.budget_of(request_context.model.model_name),
            next(questions, None) if self.recall else None,
            system=system or None,
            tools=_schemas(parameters),
            person=self._person(ctx),
        )
        request_context.messages = to_history(context, stored)
        return request_context

    async def _store_history(
        self, ctx: RunContext[Any], history: Sequence[ModelMessage]
    ) -> dict[int, HistoryItem]:
        """Store what is new in the history; returns its items by entry."""
        items = items_of(history)
        found = await self._history.store_new(
            self._name(ctx),
            [""] * len(items),
            lambda at: message_of(items[at]),
            person=self._person(ctx),
        )
        return {seq: items[at] for seq, at in found.items()}

    def _name(self, ctx: RunContext[Any]) -> str:
        if not (name := self.conversation or ctx.conversation_id):
            raise InputError("no conversation; set FirnlineCapability(..., conversation=...)")
        return name

    def _person(self, ctx: RunContext[Any]) -> str | None:
        return self.person(ctx) if callable(self.person) else self.person


def _schemas(parameters: ModelRequestParameters) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description or "",
                "parameters": tool.parameters_json_schema,
            },
        }
        for tool in (*parameters.function_tools, *parameters.output_tools)
    ]
