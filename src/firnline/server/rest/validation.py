"""What all request bodies share, and validators with error messages that help."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from itertools import islice
from typing import Any, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    model_validator,
)
from pydantic_core import PydanticCustomError

from firnline.errors import InputError
from firnline.log.message import parse_time
from firnline.server.bodies import NAME_SHOWN
from firnline.server.limits import UNKNOWN_FIELDS_MAX

BUDGET_HELP: Final = (
    'a budget is a number of tokens, a model\'s name such as "gpt-4o",'
    ' or {"window_tokens": 8000, "reserve_tokens": 1000}'
)


class RequestBody(BaseModel):
    """A request body: strict types, unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def __check_fields(cls, given: Any) -> Any:
        return _check_fields(given, cls.model_fields)


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


def _check_fields(given: Any, known: Collection[str]) -> Any:
    """Report many unknown fields as one error."""
    if not isinstance(given, dict) or len(given) <= len(known) + UNKNOWN_FIELDS_MAX:
        return given
    unknown = [name[:NAME_SHOWN] for name in islice(given, len(known) + UNKNOWN_FIELDS_MAX)]
    unknown = [name for name in unknown if name not in known][:UNKNOWN_FIELDS_MAX]
    facts = {"number": f"{len(given):,}", "names": ", ".join(unknown)}
    text = "{number} fields, most of them unknown, such as {names}; remove them"
    raise PydanticCustomError("extra_forbidden", text, facts)


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
