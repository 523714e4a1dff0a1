"""`FirnlineCapability`: a memory for pydantic-ai agents. Needs ``firnline[pydantic-ai]``.

Each request to the model is a context of the log; the run's own history stays whole. What was said
is stored before the model is asked, before tools run, and before the caller has the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from firnline.adapters.extras import needs
from firnline.adapters.history_sync import Keeper
from firnline.context.budget import Budget, BudgetLike
from firnline.errors import InputError
from firnline.memory import Memory

try:
    from pydantic_ai import ModelRequestNode, RunContext
    from pydantic_ai.capabilities import AbstractCapability, AgentNode, NodeResult
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
    from pydantic_ai.run import AgentRunResult

    from firnline.adapters.pydantic_messages import Place, message_of, places_of, shown
except ModuleNotFoundError as error:
    raise needs("pydantic-ai", error) from error


@dataclass(eq=False)
class FirnlineCapability(AbstractCapability[Any]):
    """Stores what is said in `memory` and fits each request into `budget`.

    The conversation is the run's ``conversation_id`` unless given, the budget the model's own.
    """

    memory: Memory
    budget: BudgetLike | None = None
    conversation: str | None = None
    recall: bool = True
    _keeper: Keeper = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._keeper = Keeper(self.memory)

    async def after_node_run(
        self, ctx: RunContext[Any], *, node: AgentNode[Any], result: NodeResult[Any]
    ) -> NodeResult[Any]:
        """Calls are durable before their tools run."""
        newest = ctx.messages[-1] if ctx.messages else None
        if isinstance(node, ModelRequestNode) and isinstance(newest, ModelResponse):
            await self._held(self._name(ctx), ctx.messages)
        return result

    async def after_run(
        self, ctx: RunContext[Any], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        """The answer is durable before the caller has it."""
        await self._held(self._name(ctx), result.all_messages())
        return result

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The model sees a context of the conversation in place of all of it."""
        name, said = self._name(ctx), request_context.messages
        held = await self._held(name, said)
        told = request_context.model_request_parameters
        system = "\n\n".join(part.content for part in told.instruction_parts or ())
        asked = (m.text for m in map(message_of, reversed(places_of(said))) if m.role == "user")
        context = await self.memory.context(
            name,
            self.budget or Budget.of(request_context.model.model_name),
            next(asked, None) if self.recall else None,
            system=system or None,
            tools=_schemas(told),
        )
        request_context.messages = shown(context, held)
        return request_context

    async def _held(self, name: str, history: Sequence[ModelMessage]) -> dict[int, Place]:
        """Store what is new in the history; its places by their entries."""
        places = places_of(history)
        found = await self._keeper.keep(name, [""] * len(places), lambda at: message_of(places[at]))
        return {seq: places[at] for seq, at in found.items()}

    def _name(self, ctx: RunContext[Any]) -> str:
        if not (name := self.conversation or ctx.conversation_id):
            raise InputError("which conversation? FirnlineCapability(..., conversation=...)")
        return name


def _schemas(told: ModelRequestParameters) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description or "",
                "parameters": tool.parameters_json_schema,
            },
        }
        for tool in (*told.function_tools, *told.output_tools)
    ]
