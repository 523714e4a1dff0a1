"""What is asked for, as the JSON that the server takes. Pure."""

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
    """What can be chosen for a context, all of it by name."""

    system: str
    """What the application tells the model."""
    tools: Sequence[Mapping[str, Any]]
    """Schemas in the OpenAI shape that will be sent along; they take tokens."""
    task: str
    """The task at hand; else the project's."""
    format: Literal["openai", "anthropic"]
    """The shape of the messages."""
    fold: bool
    """False: only look; nothing is digested or owed for it."""


class TurnOptions(TypedDict, total=False):
    """What can be chosen for a turn, all of it by name."""

    budget: BudgetLike
    """For the context; the window of the server's model if it is not given."""
    system: str
    """What the application tells the model."""
    task: str
    """The task at hand; else the project's."""
    recall: bool
    """Whether old entries that fit are recalled; they are."""
    recall_tools: bool
    """Whether the model gets tools to look into this conversation; by default not."""
    max_tokens: int
    """The longest answer."""


def plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request's fields as JSON: budgets as objects, times as text.

    A field that is None was not given. What lies deeper is the caller's own, its nulls too.
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
    """One message or several, each with its time and what is kept with it."""
    several: Any = given
    if isinstance(given, Message | Mapping) or hasattr(given, "model_dump"):
        several = [given]
    if isinstance(several, str | bytes) or not isinstance(several, Iterable):
        raise _no_message(several)
    return [_said(message) for message in several]


def message_of(given: str | MessageLike) -> str | dict[str, Any]:
    """What the user says, as text or as a message with what is kept with it."""
    return given if isinstance(given, str) else _said(given)


def _said(given: MessageLike) -> dict[str, Any]:
    said: dict[str, Any] = {"message": _message(given)}
    if isinstance(given, Message):
        said["metadata"] = given.metadata
        if given.created_at is not None:
            said["created_at"] = format_time(given.created_at)
    return said


def _message(given: MessageLike) -> dict[str, Any]:
    """The message's shape; the server looks at what is in it, so that it does so once."""
    if isinstance(given, Message):
        return given.to_openai()
    if isinstance(given, Mapping):
        return dict(given)
    if not hasattr(given, "model_dump"):
        raise _no_message(given)
    return given.model_dump(mode="json", exclude_unset=True)


def _no_message(given: object) -> InputError:
    kind = type(given).__name__
    return InputError(f"expected messages, got {kind}; try Message.user(text)")


def keyed(key: str | None) -> dict[str, str]:
    """The header by which a request may be sent again without happening twice."""
    chosen = uuid4().hex if key is None else key
    if not chosen or not chosen.isascii() or not chosen.isprintable():
        raise InputError("idempotency_key: visible ASCII characters, at least one")
    return {"idempotency-key": chosen}
