"""Other people's shapes, in and out without loss. Pure.

Firnline's own message is the OpenAI chat shape, so that is the short way; `load_json` is for text
that comes from outside.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, Protocol, TypeAlias

from firnline.errors import InputError
from firnline.message import Message, Part, ToolCall
from firnline.text import Json, clean_json


class SdkObject(Protocol):
    """What the OpenAI SDK hands out: an object that can be turned into a dict."""

    def model_dump(self, *, mode: str, exclude_unset: bool) -> dict[str, Any]:
        """Its fields."""
        ...


MessageLike: TypeAlias = "Message | Mapping[str, Any] | SdkObject"
"""A message: ours, or in the OpenAI chat shape, as a dict or as the SDK's object."""


def load_openai(messages: object) -> list[Message]:
    """Messages from a list of the OpenAI chat shape, or from one such message, or a mixture.

    Takes dicts, the SDK's objects and `Message` values; anything else raises `InputError`.
    """
    if isinstance(messages, Message | Mapping) or hasattr(messages, "model_dump"):
        messages = [messages]
    if isinstance(messages, str | bytes) or not isinstance(messages, Iterable):
        kind = type(messages).__name__
        raise InputError(f"expected messages, got {kind}; try Message.user(text)")
    return [item if isinstance(item, Message) else Message.from_openai(item) for item in messages]


def dump_openai(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages in the OpenAI chat shape."""
    return [message.to_openai() for message in messages]


# -- Anthropic --------------------------------------------------------------------------------

OPENING = "(The conversation goes on here; what came before it is not shown.)"


def dump_anthropic(messages: Iterable[Message]) -> dict[str, Any]:
    """``system`` and ``messages`` in Anthropic's shape, by its rules for their order.

    The system's text in front becomes ``system``; later system messages become marked text of the
    user. Neighbours of one role are joined, tool results come first in what answers a call, and the
    first message is the user's.
    """
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role in ("system", "developer") and not turns:
            system.append(message.text)
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [_text_block(OPENING)]})
    for turn in turns:
        # A stable sort: tool results in front, everything else as it was.
        turn["content"].sort(key=lambda block: block.get("type") != "tool_result")
    return {"system": "\n\n".join(text for text in system if text), "messages": turns}


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _blocks(message: Message) -> list[dict[str, Any]]:
    """The message's content as Anthropic's blocks."""
    if message.role == "tool":
        content = [_block(part) for part in _content_parts(message)]
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id or ""}
        return [{**result, "content": [block for block in content if block]}]
    blocks = [block for part in _content_parts(message) if (block := _block(part))]
    if message.role in ("system", "developer"):
        blocks = [_text_block(f"[{message.role}] {message.text}")] if message.text else []
    blocks += [_call_block(call) for call in message.tool_calls]
    return blocks


def _content_parts(message: Message) -> tuple[Part, ...]:
    if isinstance(message.content, str):
        return (Part.of_text(message.content),) if message.content.strip() else ()
    return message.content or ()


def _block(part: Part) -> dict[str, Any] | None:
    """A part as a block; Anthropic's own blocks as they are, what it has no word for not at all."""
    if part.type in _ANTHROPIC_BLOCKS:
        return dict(part.fields)
    if part.kind == "text":
        return _text_block(part.text) if part.text.strip() else None
    image = part.fields.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    if part.kind == "image" and isinstance(url, str):
        return {"type": "image", "source": _image_source(url)}
    return None


_ANTHROPIC_BLOCKS = frozenset(
    ["image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking"]
)


def _image_source(url: str) -> dict[str, Any]:
    if url.startswith("data:") and ";base64," in url:
        kind, data = url.removeprefix("data:").split(";base64,", 1)
        return {"type": "base64", "media_type": kind, "data": data}
    return {"type": "url", "url": url}


def _call_block(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = None
    given = arguments if isinstance(arguments, dict) else {"arguments": call.arguments}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


# -- JSON -------------------------------------------------------------------------------------


def load_json(text: str | bytes) -> Json:
    """Strict JSON from outside: no NaN, no endless numbers, no bottomless nesting."""
    try:
        return clean_json(json.loads(text, parse_constant=_no_constant))
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
