"""Accepts a model as a name, a `ChatModel`, or a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

from firnline.errors import InputError
from firnline.models import open_model
from firnline.models.function import callable_model
from firnline.protocols import ChatModel

ModelLike: TypeAlias = "ChatModel | str | Callable[[list[dict[str, Any]]], Awaitable[Any]]"
"""A `ChatModel`, a name for `open_model`, or an async function of messages."""


def as_model(model: ModelLike | None) -> ChatModel | None:
    """The model for a name, a `ChatModel` or a function; None stays None."""
    if model is None:
        return None
    if isinstance(model, str):
        return open_model(model)
    if hasattr(model, "complete"):
        return cast("ChatModel", model)
    if not callable(model):
        wanted = "a name such as 'openai/gpt-4o-mini', a ChatModel or an async function"
        raise InputError(f"model: expected {wanted}, got {type(model).__name__}")
    return callable_model(cast("Any", model))
