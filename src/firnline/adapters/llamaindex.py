"""`FirnlineMemoryBlock`: long-term memory for LlamaIndex. Needs ``firnline[llamaindex]``.

LlamaIndex passes the messages that leave its short-term memory. They are stored in the log, and a
context of it is returned as text, with old messages that match the newest one.
"""

from __future__ import annotations

from typing import Any, Final

from firnline.adapters import missing_extra
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
    raise missing_extra("llamaindex", error) from error

_ROLES: Final = {"model": "assistant", "chatbot": "assistant", "function": "tool"}
_KEPT: Final = ("session_id", "tool_call_id", "name")


class FirnlineMemoryBlock(BaseMemoryBlock[str]):
    """A memory block that keeps everything and returns at most `tokens`."""

    name: str = "firnline"
    memory: Memory = Field(exclude=True)
    tokens: int = 2_000
    conversation: str | None = None
    """The conversation; default: LlamaIndex's session id."""
    person: str | None = None
    """Whom the conversation is with: what they said in others is known, too."""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        if messages:
            name = self._name(messages[0].additional_kwargs.get("session_id"))
            said = [from_llamaindex(message) for message in messages]
            await self.memory.append(name, said, person=self.person)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        name = self._name(block_kwargs.get("session_id"))
        head = await self.memory.head(name)
        if (head is None or not head.entries) and self.person is None:
            return ""
        questions = (m.content for m in reversed(messages or ()) if m.role == "user" and m.content)
        budget = Budget(self.tokens)
        question = next(questions, None)
        context = await self.memory.context(name, budget, question, past=True, person=self.person)
        return "\n\n".join(f"{m.role}: {m.text}" for m in context.messages if m.text)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Remove at least so many tokens from the start, which is the oldest."""
        count = counter().text
        most, parts = count(content) - tokens_to_truncate, content.split("\n\n")
        while parts and count("\n\n".join(parts)) > most:
            parts = parts[1:]
        return "\n\n".join(parts) or None

    def _name(self, session_id: object) -> str:
        if not (name := self.conversation or session_id):
            raise InputError("no conversation; set FirnlineMemoryBlock(conversation=...)")
        return str(name)


def from_llamaindex(message: ChatMessage) -> Message:
    """LlamaIndex's message as ours; other blocks than text are kept unchanged."""
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
    if not calls and (calls := _extra_calls(dumped.get("tool_calls"))):
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


def _extra_calls(calls: object) -> list[ToolCall]:
    """Tool calls in OpenAI's format from the additional fields of a message."""
    given = calls if isinstance(calls, list) else []
    return [ToolCall(call) for call in given if isinstance(call, dict) and call.get("id")]
