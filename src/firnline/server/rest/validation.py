"""What a request's body may not say, told in words that help."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError, ValidatorFunctionWrapHandler
from pydantic_core import PydanticCustomError

from firnline.errors import InputError
from firnline.log.message import parse_time

BUDGET_IS: Final = (
    'a budget is a number of tokens, a model\'s name such as "gpt-4o",'
    ' or {"window_tokens": 8000, "reserve_tokens": 1000}'
)


def as_time(value: object) -> object:
    """A time as text, with its zone."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise ValueError("expected a time such as 2026-03-04T10:15:00Z")  # noqa: TRY004 - pydantic's
    try:
        return parse_time(value)
    except (ValueError, InputError):
        raise ValueError("expected a time with its zone, as 2026-03-04T10:15:00Z") from None


def says_something(spoken: Any) -> Any:
    """Refuse a blank text: a model has nothing to answer to it. Pictures are no blank."""
    message = getattr(spoken, "message", spoken)
    if isinstance(message, dict) and message.get("tool_calls"):
        return spoken
    content = message if isinstance(message, str) else message.get("content")
    parts = content if isinstance(content, list) else [{"text": content or ""}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    if all(isinstance(text, str) and not text.strip() for text in texts):
        raise PydanticCustomError("blank", "nothing is said: the text is empty or blank")
    return spoken


def is_budget(value: object, check: ValidatorFunctionWrapHandler) -> object:
    """One sentence in place of what each of the three shapes has to say against it."""
    try:
        return check(value)
    except ValidationError as error:
        inside = [wrong for wrong in error.errors() if isinstance(value, dict) and wrong["loc"][1:]]
        wrong = [f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in inside]
        told = "; ".join([*wrong, BUDGET_IS])
        raise PydanticCustomError("budget", "{told}", {"told": told}) from None
