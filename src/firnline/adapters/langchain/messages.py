"""Converts LangChain's messages, models, and tools from and to ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from langchain.agents.structured_output import (
    AutoStrategy,
    OutputToolBinding,
    ProviderStrategy,
    ToolStrategy,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from firnline.context.budget import Budget, budget_of_model
from firnline.context.context import Context, Piece
from firnline.log.message import Message, Part

_SAID: Final = ("role", "content", "name", "tool_calls", "tool_call_id")


def from_langchain(message: BaseMessage) -> Message:
    """LangChain's message as ours; blocks that OpenAI's format does not have stay unchanged."""
    fields = (None if _has_tool_result(message) else _convert(message)) or _convert_blocks(message)
    fields["content"] = _without_calls(fields)
    thought = message.additional_kwargs.get("reasoning_content")  # many models put it there
    if isinstance(thought, str) and thought:
        said = fields.get("content") or []
        parts = [Part.of_text(said).fields] if isinstance(said, str) else said
        fields = {**fields, "content": [Part.reasoning(thought).fields, *parts]}
    return Message.from_openai({name: fields[name] for name in _SAID if name in fields})


def _without_calls(fields: Mapping[str, Any]) -> Any:
    """The content without blocks that repeat the calls, as in the Responses API."""
    content, ids = fields.get("content"), {call["id"] for call in fields.get("tool_calls") or ()}
    if not isinstance(content, list) or not ids:
        return content
    return [
        block
        for block in content
        if Part(block).kind != "tool_call" or not ids & {block.get("call_id"), block.get("id")}
    ]


def _convert(message: BaseMessage) -> dict[str, Any] | None:
    """Convert with LangChain's function; None if it does not support a block."""
    try:
        return convert_to_openai_messages(message)
    except (ValueError, TypeError, KeyError):
        return None


def _has_tool_result(message: BaseMessage) -> bool:
    """Whether the message has a tool result among others, which LangChain would drop."""
    blocks = [block for block in message.content if isinstance(block, dict)]
    return len(message.content) > 1 and any(block.get("type") == "tool_result" for block in blocks)


def _convert_blocks(message: BaseMessage) -> dict[str, Any]:
    """Convert block by block."""
    fields = _convert(message.model_copy(update={"content": ""})) or {}
    parts: list[Any] = []
    for block in message.content:
        one = _convert(HumanMessage([block])) if _is_plain(block) else None
        said = (one or {}).get("content")
        parts += (
            said if isinstance(said, list) else [Part.of_text(said).fields] if said else [block]
        )
    return {**fields, "content": parts}


def _is_plain(block: str | dict[Any, Any]) -> bool:
    """Whether a block is neither a call nor a result, which are separate messages here."""
    kind = block.get("type") if isinstance(block, dict) else "text"
    return kind not in ("tool_use", "tool_call", "function_call", "tool_result")


def to_langchain(message: Message) -> AnyMessage:
    """Our message as LangChain's."""
    fields = message.to_openai()
    (converted,) = convert_to_messages([{**fields, "content": fields.get("content") or ""}])
    return converted  # type: ignore[return-value] # typed as its base class


def to_history(context: Context, stored: Mapping[int, AnyMessage]) -> list[AnyMessage]:
    """The context's messages without the system prompt, which the request has already.

    Messages that the context includes unchanged are the agent's own objects, with all their fields.
    """
    system = {id(piece.message) for piece in context["system"].pieces if piece.entry is None}
    pieces = [piece for piece in context.pieces if id(piece.message) not in system]
    return [_original(piece, stored) or to_langchain(piece.message) for piece in pieces]


def _original(piece: Piece, stored: Mapping[int, AnyMessage]) -> AnyMessage | None:
    own = stored.get(piece.entry.seq) if piece.entry and piece.whole else None
    if own is None:
        return None
    calls = own.tool_calls if isinstance(own, AIMessage) else ()
    # If the agent changed its message, the stored one is used, which was counted.
    same = from_langchain(own) if calls else None
    if same is not None and same.to_openai() != piece.message.to_openai():
        return None
    return own if str(own.text) == piece.message.text else None


def schemas(tools: Iterable[BaseTool | dict[str, Any]], answer: object) -> list[dict[str, Any]]:
    """The schemas sent with the messages: tools, and the format of the answer."""
    strategy = ToolStrategy(answer.schema) if isinstance(answer, AutoStrategy) else answer
    forms: list[Any] = getattr(strategy, "schema_specs", [])  # sent as tools, or
    if isinstance(strategy, ProviderStrategy):  # handled by the provider
        forms = [strategy.schema_spec]
    bound = [OutputToolBinding.from_schema_spec(form).tool for form in forms]
    return [convert_to_openai_tool(tool) for tool in (*tools, *bound)]


def budget_of(model: BaseChatModel, by_name: Callable[[str], Budget] = budget_of_model) -> Budget:
    """The model's window: from LangChain's profile, or from its name."""
    name = str(getattr(model, "model_name", None) or getattr(model, "model", None) or "")
    window = (model.profile or {}).get("max_input_tokens")
    if not window:
        return by_name(name)
    return Budget(window, model=name or None)


def name_of(model: BaseChatModel) -> str:
    """The name of a model."""
    return budget_of(model).model or type(model).__name__


def question_of(messages: Sequence[AnyMessage]) -> str | None:
    """The user's newest message."""
    return next((str(m.text) for m in reversed(messages) if isinstance(m, HumanMessage)), None)
