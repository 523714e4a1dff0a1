"""Validators of request bodies with error messages that help."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError, ValidatorFunctionWrapHandler
from pydantic_core import PydanticCustomError

from firnline.errors import InputError
from firnline.log.message import parse_time

BUDGET_HELP: Final = (
    'a budget must be a number of tokens, a model\'s name such as "gpt-4o",'
    ' or {"window_tokens": 8000, "reserve_tokens": 1000}'
)


def read_time(value: object) -> object:
    """Parse a time with its zone."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise ValueError("expected a time such as 2026-03-04T10:15:00Z")  # noqa: TRY004 - pydantic's
    try:
        return parse_time(value)
    except (ValueError, InputError):
        raise ValueError("expected a time with a time zone, such as 2026-03-04T10:15:00Z") from None


def check_not_blank(given: Any) -> Any:
    """Reject a blank message; one with images or tool calls is not blank."""
    message = getattr(given, "message", given)
    if isinstance(message, dict) and message.get("tool_calls"):
        return given
    content = message if isinstance(message, str) else message.get("content")
    parts = content if isinstance(content, list) else [{"text": content or ""}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    if all(isinstance(text, str) and not text.strip() for text in texts):
        raise PydanticCustomError("blank", "the text must not be empty or blank")
    return given


def check_budget(value: object, check: ValidatorFunctionWrapHandler) -> object:
    """Report one error instead of one for each of the three accepted types."""
    try:
        return check(value)
    except ValidationError as error:
        inside = [wrong for wrong in error.errors() if isinstance(value, dict) and wrong["loc"][1:]]
        wrong = [f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in inside]
        text = "; ".join([*wrong, BUDGET_HELP])
        raise PydanticCustomError("budget", "{text}", {"text": text}) from None
