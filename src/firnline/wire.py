"""Other people's shapes, in and out without loss. Pure.

Firnline's own message is the OpenAI chat shape, so that is the short way; `load_json` is for text
that comes from outside.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, Protocol, TypeAlias

from firnline.errors import InputError
from firnline.message import Message
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


def load_json(text: str | bytes) -> Json:
    """Strict JSON from outside: no NaN, no endless numbers, no bottomless nesting."""
    try:
        return clean_json(json.loads(text, parse_constant=_no_constant))
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
