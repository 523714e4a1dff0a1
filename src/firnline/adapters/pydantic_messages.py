"""Converts pydantic-ai's messages from and to ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias, cast

from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from firnline.context.context import Context, Piece
from firnline.log.message import Message, Part, ToolCall

RequestPart: TypeAlias = SystemPromptPart | UserPromptPart | ToolReturnPart | RetryFeedbackPart


class HistoryItem(NamedTuple):
    """A message of the run's history, and a part of it; a response has no part."""

    message: ModelMessage
    part: RequestPart | None = None


def items_of(history: Sequence[ModelMessage]) -> list[HistoryItem]:
    """The items of a history that are messages; parts that control the framework are not."""
    found: list[HistoryItem] = []
    for message in history:
        if isinstance(message, ModelResponse):
            found.append(HistoryItem(message))
        else:
            found += [HistoryItem(message, p) for p in message.parts if isinstance(p, RequestPart)]
    return found


def message_of(item: HistoryItem) -> Message:
    """The item as a message."""
    match item:
        case HistoryItem(ModelResponse() as response):
            calls = [p for p in response.parts if isinstance(p, ToolCallPart)]
            parts, text = _other_parts(response), response.text or None
            return Message.assistant(
                [*parts, Part.of_text(text or "")] if parts else text,
                tool_calls=[
                    ToolCall.of(p.tool_call_id, p.tool_name, p.args_as_json_str()) for p in calls
                ],
            )
        case HistoryItem(part=SystemPromptPart(content=text)):
            return Message.system(text)
        case HistoryItem(part=ToolReturnPart() as part):
            text, files = part.model_response_str(), _files(part.files)
            content = [*([Part.of_text(text)] if text else []), *files] if files else text
            return Message.tool(content, tool_call_id=part.tool_call_id, name=part.tool_name)
        case HistoryItem(part=RetryFeedbackPart() as part):
            return Message.user(part.model_response())
        case HistoryItem(part=UserPromptPart(content=content)) if isinstance(content, str):
            return Message.user(content)
        case HistoryItem(part=UserPromptPart() as part):
            return Message.user(_parts(part))
    raise TypeError(f"not a message: {item}")


def _other_parts(response: ModelResponse) -> list[Part]:
    """The parts of a response other than text and calls: thoughts, files, provider tools."""
    (dumped,) = ModelMessagesTypeAdapter.dump_python([response], mode="json")
    found: list[Part] = []
    for part, fields in zip(response.parts, dumped["parts"], strict=True):
        if isinstance(part, ThinkingPart):
            found += [Part.reasoning(part.content)] if part.content else []
        elif isinstance(part, FilePart):
            found += _files([part.content])
        elif not isinstance(part, TextPart | ToolCallPart):
            found.append(Part({**fields, "type": part.part_kind}))
    return found


def _files(files: Sequence[Any]) -> list[Part]:
    return _parts(UserPromptPart(list(files))) if files else []


def _parts(part: UserPromptPart) -> list[Part]:
    """The parts of a prompt: texts, pictures, and other files as pydantic-ai writes them."""
    (dumped,) = ModelMessagesTypeAdapter.dump_python([ModelRequest([part])], mode="json")
    found: list[Part] = []
    for item, fields in zip(part.content, dumped["parts"][0]["content"], strict=True):
        if isinstance(item, str):
            found.append(Part.of_text(item))
        elif isinstance(item, ImageUrl):
            found.append(Part.image(item.url))
        elif isinstance(item, BinaryContent) and item.is_image:
            found.append(Part.image(item.data_uri))
        else:
            found.append(Part({**fields, "type": "file"}))
    return found


def to_history(context: Context, stored: Mapping[int, HistoryItem]) -> list[ModelMessage]:
    """The context as pydantic-ai's messages: the run's own objects where they are complete.

    Without instructions: the request has them already.
    """
    instructions = {id(piece.message) for piece in context["system"].pieces if piece.entry is None}
    pieces = [
        (stored.get(piece.entry.seq) if piece.entry else None, piece)
        for piece in context.pieces
        if id(piece.message) not in instructions
    ]
    history: list[ModelMessage] = []
    for _, run in groupby(pieces, key=lambda pair: id(pair[0].message if pair[0] else pair[1])):
        pairs = list(run)
        place, piece = pairs[0]
        if place is None or isinstance(place.message, ModelResponse):
            original = place.message if place and piece.whole else None
            history.append(original or _new_message(piece.message))
        else:
            history.append(_request(place.message, pairs))
    return history


def _request(
    original: ModelRequest, pairs: Sequence[tuple[HistoryItem | None, Piece]]
) -> ModelRequest:
    """A request with its parts that are in the context, and those that are not messages."""
    included = {id(place.part): piece for place, piece in pairs if place}
    parts: list[Any] = []
    for part in original.parts:
        piece = included.get(id(part))
        if piece and not piece.whole:  # shortened
            parts.append(replace(cast("Any", part), content=piece.message.text))
        elif piece or not isinstance(part, RequestPart):
            parts.append(part)
    return replace(original, parts=parts)


def _new_message(message: Message) -> ModelMessage:
    """A message that is not in the run's history."""
    match message.role:
        case "assistant":
            texts = [TextPart(message.text)] if message.text else []
            calls = [ToolCallPart(c.name, c.arguments, c.id) for c in message.tool_calls]
            return ModelResponse([*texts, *calls])
        case "tool":
            called = message.tool_call_id or ""
            return ModelRequest([ToolReturnPart(message.name or "tool", message.text, called)])
        case "user":
            return ModelRequest([UserPromptPart(message.text)])
        case _:
            return ModelRequest([SystemPromptPart(message.text)])
