"""LangChain's messages, models and tools in our words, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

from firnline.context.budget import Budget
from firnline.context.context import Context, Piece
from firnline.log.message import Message, Part

_SAID: Final = ("role", "content", "name", "tool_calls", "tool_call_id")


def from_langchain(message: BaseMessage) -> Message:
    """The message in the OpenAI shape, which is ours; blocks without a place in it stay as is."""
    fields = (None if _shares(message) else _converted(message)) or _by_block(message)
    fields["content"] = _without_calls(fields)
    thought = message.additional_kwargs.get("reasoning_content")  # where many models leave it
    if isinstance(thought, str) and thought:
        said = fields.get("content") or []
        parts = [Part.of_text(said).fields] if isinstance(said, str) else said
        fields = {**fields, "content": [Part.reasoning(thought).fields, *parts]}
    return Message.from_openai({name: fields[name] for name in _SAID if name in fields})


def _without_calls(fields: Mapping[str, Any]) -> Any:
    """The content but for blocks that repeat the calls, as those of the Responses API do."""
    content, ids = fields.get("content"), {call["id"] for call in fields.get("tool_calls") or ()}
    if not isinstance(content, list) or not ids:
        return content
    return [
        block
        for block in content
        if Part(block).kind != "tool_call" or not ids & {block.get("call_id"), block.get("id")}
    ]


def _converted(message: BaseMessage) -> dict[str, Any] | None:
    """The message by LangChain's own conversion; None if that does not know a block's form."""
    try:
        return convert_to_openai_messages(message)
    except (ValueError, TypeError, KeyError):
        return None


def _shares(message: BaseMessage) -> bool:
    """Whether a tool's result shares the message; of such a one LangChain converts nothing else."""
    blocks = [block for block in message.content if isinstance(block, dict)]
    return len(message.content) > 1 and any(block.get("type") == "tool_result" for block in blocks)


def _by_block(message: BaseMessage) -> dict[str, Any]:
    """The message, converted block by block."""
    fields = _converted(message.model_copy(update={"content": ""})) or {}
    parts: list[Any] = []
    for block in message.content:
        one = _converted(HumanMessage([block])) if _is_plain(block) else None
        said = (one or {}).get("content")
        parts += (
            said if isinstance(said, list) else [Part.of_text(said).fields] if said else [block]
        )
    return {**fields, "content": parts}


def _is_plain(block: str | dict[Any, Any]) -> bool:
    """Whether a block is no call and no result, which are messages of their own in our shape."""
    kind = block.get("type") if isinstance(block, dict) else "text"
    return kind not in ("tool_use", "tool_call", "function_call", "tool_result")


def to_langchain(message: Message) -> AnyMessage:
    """The message as LangChain's, by LangChain's own conversion."""
    fields = message.to_openai()
    (converted,) = convert_to_messages([{**fields, "content": fields.get("content") or ""}])
    return converted  # type: ignore[return-value] # it promises its base class only


def shown(context: Context, held: Mapping[int, AnyMessage]) -> list[AnyMessage]:
    """The context's messages but for the system prompt, which the request has already.

    What the agent holds and the context shows word for word is the agent's own object, with all
    that our shape has no place for.
    """
    system = {id(piece.message) for piece in context["system"].pieces if piece.entry is None}
    pieces = [piece for piece in context.pieces if id(piece.message) not in system]
    return [_own(piece, held) or to_langchain(piece.message) for piece in pieces]


def _own(piece: Piece, held: Mapping[int, AnyMessage]) -> AnyMessage | None:
    own = held.get(piece.entry.seq) if piece.entry and piece.whole else None
    if own is None:
        return None
    calls = own.tool_calls if isinstance(own, AIMessage) else ()
    # An agent may alter what it holds; then what was said, and counted, is shown.
    same = from_langchain(own) if calls else None
    if same is not None and same.to_openai() != piece.message.to_openai():
        return None
    return own if str(own.text) == piece.message.text else None


def schemas(tools: Iterable[BaseTool | dict[str, Any]], answer: object) -> list[dict[str, Any]]:
    """What is sent along with the messages: tools, and the form that the answer is to have."""
    strategy = ToolStrategy(answer.schema) if isinstance(answer, AutoStrategy) else answer
    forms: list[Any] = getattr(strategy, "schema_specs", [])  # LangChain sends them as tools, or
    if isinstance(strategy, ProviderStrategy):  # leaves them to the provider
        forms = [strategy.schema_spec]
    bound = [OutputToolBinding.from_schema_spec(form).tool for form in forms]
    return [convert_to_openai_tool(tool) for tool in (*tools, *bound)]


def budget_of(model: BaseChatModel) -> Budget:
    """The model's window: as LangChain knows it, else as Firnline knows its name."""
    name = str(getattr(model, "model_name", None) or getattr(model, "model", None) or "")
    window = (model.profile or {}).get("max_input_tokens")
    if not window:
        return Budget.of(name or "unknown")
    return Budget(window, model=name or None)


def name_of(model: BaseChatModel) -> str:
    """What a model is called."""
    return budget_of(model).model or type(model).__name__


def question_of(messages: Sequence[AnyMessage]) -> str | None:
    """What the user said last."""
    return next((str(m.text) for m in reversed(messages) if isinstance(m, HumanMessage)), None)
