"""`FirnlineMemoryBlock`: long-term memory for LlamaIndex. Needs ``firnline[llamaindex]``.

LlamaIndex hands over what leaves its short-term memory; that goes to the log, and what is given
back is a context of it, as text, with what fits the newest message.
"""

from __future__ import annotations

from typing import Any, Final

from firnline.adapters.extras import needs
from firnline.context.budget import Budget
from firnline.errors import InputError
from firnline.log.message import Message, Part, ToolCall
from firnline.log.tokens import counter
from firnline.memory import Memory

try:
    from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
    from llama_index.core.memory import BaseMemoryBlock
    from pydantic import Field
except ModuleNotFoundError as error:
    raise needs("llamaindex", error) from error

_ROLES: Final = {"model": "assistant", "chatbot": "assistant", "function": "tool"}
_KEPT: Final = ("session_id", "tool_call_id", "name")


class FirnlineMemoryBlock(BaseMemoryBlock[str]):
    """A block that forgets nothing and shows at most `tokens` of it."""

    name: str = "firnline"
    memory: Memory = Field(exclude=True)
    tokens: int = 2_000
    conversation: str | None = None
    """LlamaIndex's session id unless given."""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        if messages:
            name = self._name(messages[0].additional_kwargs.get("session_id"))
            await self.memory.append(name, [from_llamaindex(message) for message in messages])

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        name = self._name(block_kwargs.get("session_id"))
        head = await self.memory.head(name)
        if head is None or not head.entries:
            return ""
        asked = (m.content for m in reversed(messages or ()) if m.role == "user" and m.content)
        budget = Budget(self.tokens)
        context = await self.memory.context(name, budget, next(asked, None), past=True)
        return "\n\n".join(f"{m.role}: {m.text}" for m in context.messages if m.text)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """The end of it, by as many tokens shorter; what comes first is oldest."""
        count = counter().text
        most, parts = count(content) - tokens_to_truncate, content.split("\n\n")
        while parts and count("\n\n".join(parts)) > most:
            parts = parts[1:]
        return "\n\n".join(parts) or None

    def _name(self, session_id: object) -> str:
        if not (name := self.conversation or session_id):
            raise InputError("which conversation? FirnlineMemoryBlock(conversation=...)")
        return str(name)


def from_llamaindex(message: ChatMessage) -> Message:
    """LlamaIndex's message as ours; blocks that are not text are kept as it writes them."""
    role: Any = _ROLES.get(message.role.value, message.role.value)
    more = message.additional_kwargs
    calls = [
        ToolCall.of(block.tool_call_id or "", block.tool_name, block.tool_kwargs)
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]
    said = [block for block in message.blocks if not isinstance(block, ToolCallBlock)]
    plain = all(isinstance(block, TextBlock) for block in said)
    parts = tuple(
        Part.of_text(block.text)
        if isinstance(block, TextBlock)
        else Part({**block.model_dump(mode="json"), "type": block.block_type})
        for block in said
    )
    dumped = message.model_dump(mode="json")["additional_kwargs"]
    if not calls and (calls := _written(dumped.get("tool_calls"))):
        del dumped["tool_calls"]
    rest = {name: value for name, value in dumped.items() if name not in _KEPT}
    return Message(
        role,
        (message.content or None) if plain else parts,
        name=str(more["name"]) if more.get("name") else None,
        tool_calls=tuple(calls),
        tool_call_id=str(more.get("tool_call_id") or "") if role == "tool" else None,
        metadata={"llamaindex": rest} if rest else {},
    )


def _written(calls: object) -> list[ToolCall]:
    """Calls that a model left beside its message, in OpenAI's shape."""
    given = calls if isinstance(calls, list) else []
    return [ToolCall(call) for call in given if isinstance(call, dict) and call.get("id")]
