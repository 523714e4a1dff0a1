"""pydantic-ai's messages in our shape, and back."""

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

Said: TypeAlias = SystemPromptPart | UserPromptPart | ToolReturnPart | RetryFeedbackPart


class Place(NamedTuple):
    """A message of the run's history, and which part of it; a response is taken as a whole."""

    message: ModelMessage
    part: Said | None = None


def places_of(history: Sequence[ModelMessage]) -> list[Place]:
    """Everything that is said in a history; parts that steer the framework are not."""
    found: list[Place] = []
    for message in history:
        if isinstance(message, ModelResponse):
            found.append(Place(message))
        else:
            found += [Place(message, p) for p in message.parts if isinstance(p, Said)]
    return found


def message_of(place: Place) -> Message:
    """What is said there, in our shape."""
    match place:
        case Place(ModelResponse() as response):
            calls = [p for p in response.parts if isinstance(p, ToolCallPart)]
            parts, text = _beside(response), response.text or None
            return Message.assistant(
                [*parts, Part.of_text(text or "")] if parts else text,
                tool_calls=[
                    ToolCall.of(p.tool_call_id, p.tool_name, p.args_as_json_str()) for p in calls
                ],
            )
        case Place(part=SystemPromptPart(content=text)):
            return Message.system(text)
        case Place(part=ToolReturnPart() as part):
            text, files = part.model_response_str(), _files(part.files)
            content = [*([Part.of_text(text)] if text else []), *files] if files else text
            return Message.tool(content, tool_call_id=part.tool_call_id, name=part.tool_name)
        case Place(part=RetryFeedbackPart() as part):
            return Message.user(part.model_response())
        case Place(part=UserPromptPart(content=content)) if isinstance(content, str):
            return Message.user(content)
        case Place(part=UserPromptPart() as part):
            return Message.user(_parts(part))
    raise TypeError(f"not said by anybody: {place}")


def _beside(response: ModelResponse) -> list[Part]:
    """What a response holds beside text and calls: thoughts, files, and tools of the provider's."""
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
    """What a prompt is made of: texts, pictures, and other files as pydantic-ai writes them."""
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


def shown(context: Context, held: Mapping[int, Place]) -> list[ModelMessage]:
    """The context as pydantic-ai's messages: the run's own objects wherever they are shown whole.

    Instructions are not among them; the request has them already.
    """
    given = {id(piece.message) for piece in context["system"].pieces if piece.entry is None}
    pieces = [
        (held.get(piece.entry.seq) if piece.entry else None, piece)
        for piece in context.pieces
        if id(piece.message) not in given
    ]
    found: list[ModelMessage] = []
    for _, run in groupby(pieces, key=lambda pair: id(pair[0].message if pair[0] else pair[1])):
        pairs = list(run)
        place, piece = pairs[0]
        if place is None or isinstance(place.message, ModelResponse):
            own = place.message if place and piece.whole else None
            found.append(own or _made(piece.message))
        else:
            found.append(_request(place.message, pairs))
    return found


def _request(original: ModelRequest, pairs: Sequence[tuple[Place | None, Piece]]) -> ModelRequest:
    """A request with those of its parts that are shown, and with all that nobody said."""
    shown = {id(place.part): piece for place, piece in pairs if place}
    parts: list[Any] = []
    for part in original.parts:
        piece = shown.get(id(part))
        if piece and not piece.whole:  # shortened, which only what is long can be
            parts.append(replace(cast("Any", part), content=piece.message.text))
        elif piece or not isinstance(part, Said):
            parts.append(part)
    return replace(original, parts=parts)


def _made(message: Message) -> ModelMessage:
    """A message that the run's history does not hold."""
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
