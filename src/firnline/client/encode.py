"""Requests as JSON. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict
from uuid import uuid4

from firnline.context.budget import Budget, BudgetLike
from firnline.errors import InputError
from firnline.log.message import Message, format_time
from firnline.log.wire import MessageLike


class ContextOptions(TypedDict, total=False):
    """Options of a context."""

    system: str
    """The application's system prompt."""
    tools: Sequence[Mapping[str, Any]]
    """Tool schemas in the OpenAI format that will be sent too; they use tokens."""
    task: str
    """The current task; default: the project's."""
    format: Literal["openai", "anthropic"]
    """Format of the messages."""
    fold: bool
    """False: do not create or schedule digests."""
    person: str
    """Whom a new conversation is with."""


class TurnOptions(TypedDict, total=False):
    """Options of a turn."""

    model: str
    """A model behind the server's `/v1` that answers; default: the server's model."""
    budget: BudgetLike
    """For the context; default: the window of the server's model."""
    system: str
    """The application's system prompt."""
    task: str
    """The current task; default: the project's."""
    recall: bool
    """Whether to recall old entries that match; default: True."""
    recall_tools: bool
    """Whether the model gets tools to search this conversation; default: False."""
    tool_tokens: int
    """Maximum tokens of one result of these tools; default: as the window allows."""
    max_tokens: int
    """Maximum length of the answer."""
    person: str
    """Whom the conversation is with."""


def plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request as JSON: budgets as objects, times as text.

    Fields that are None are omitted; nulls inside of values are kept.
    """
    return {name: _plain(value) for name, value in body.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Budget):
        return value.to_json()
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value


def messages_of(given: MessageLike | Iterable[MessageLike]) -> list[dict[str, Any]]:
    """One message or several, each with its time and metadata."""
    several: Any = given
    if isinstance(given, Message | Mapping) or hasattr(given, "model_dump"):
        several = [given]
    if isinstance(several, str | bytes) or not isinstance(several, Iterable):
        raise _not_a_message(several)
    return [_with_metadata(message) for message in several]


def message_of(given: str | MessageLike) -> str | dict[str, Any]:
    """A user message: text, or a message with its time and metadata."""
    return given if isinstance(given, str) else _with_metadata(given)


def _with_metadata(given: MessageLike) -> dict[str, Any]:
    item: dict[str, Any] = {"message": _message(given)}
    if isinstance(given, Message):
        item["metadata"] = given.metadata
        if given.created_at is not None:
            item["created_at"] = format_time(given.created_at)
    return item


def _message(given: MessageLike) -> dict[str, Any]:
    """The message in the OpenAI format; only the server validates its contents."""
    if isinstance(given, Message):
        return given.to_openai()
    if isinstance(given, Mapping):
        return dict(given)
    if not hasattr(given, "model_dump"):
        raise _not_a_message(given)
    return given.model_dump(mode="json", exclude_unset=True)


def _not_a_message(given: object) -> InputError:
    kind = type(given).__name__
    return InputError(
        f"messages: expected a message or a list of messages, got {kind}; try Message.user(text)"
    )


def idempotency_header(key: str | None) -> dict[str, str]:
    """The header that makes a request safe to retry."""
    chosen = uuid4().hex if key is None else key
    if not chosen or not chosen.isascii() or not chosen.isprintable():
        raise InputError("idempotency_key: must be visible ASCII characters, at least one")
    return {"idempotency-key": chosen}
