"""The arguments of the tools, with their limits and descriptions for the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from firnline.errors import InputError
from firnline.language.dates import DATE_CHARS_MAX
from firnline.log import limits

T = TypeVar("T", bound=BaseModel)

_STRICT: Final = ConfigDict(extra="forbid")  # an unknown argument is an error
_SEQ_MAX: Final = (1 << limits.SEQ_BITS) - 1
_PROBLEMS_MAX: Final = 5
_NAMED_CHARS: Final = 60


def _parse_json(value: object) -> object:
    """Parse a string; some clients send lists as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _required_name(text: str) -> Any:
    return Field(min_length=1, max_length=limits.NAME_CHARS_MAX, description=text)


def _optional_name(text: str) -> Any:
    return Field(default="", max_length=limits.NAME_CHARS_MAX, description=text)


def _date(text: str) -> Any:
    return Field(max_length=DATE_CHARS_MAX, description=f"A date such as 2026-03-04. {text}")


Conversation: TypeAlias = Annotated[str, _required_name("The conversation's name.")]
FirstSeq: TypeAlias = Annotated[
    int, Field(ge=0, le=_SEQ_MAX, description="Only messages with this number or higher.")
]
Limit: TypeAlias = Annotated[
    int, Field(ge=1, le=limits.QUOTED_MAX, description="The maximum number to return.")
]
Tokens: TypeAlias = Annotated[
    int,
    Field(
        ge=limits.RECALL_TOKENS_MIN,
        le=limits.QUOTED_TOKENS_MAX,
        description="The maximum tokens of the result.",
    ),
]
Zone: TypeAlias = Annotated[
    str, _optional_name("The user's time zone, such as Europe/Berlin (default: the server's).")
]
Number: TypeAlias = Annotated[int, Field(ge=0, le=_SEQ_MAX)]


class NewMessage(BaseModel):
    """A message to store."""

    model_config = _STRICT

    role: Literal["user", "assistant"] = Field(description="Who said it.")
    text: str = Field(min_length=1, description="The text of the message, unchanged.")
    name: str = _optional_name("The speaker's name.")


class AppendArguments(BaseModel):
    """The arguments of `append`."""

    model_config = _STRICT

    conversation: Annotated[str, _required_name("The conversation's name; a new name creates one.")]
    messages: Annotated[
        list[NewMessage],
        BeforeValidator(_parse_json),
        Field(min_length=1, max_length=limits.AGENT_APPENDS_MAX, description="In order."),
    ]
    idempotency_key: str = _optional_name(
        "A name for this call: a retry with it stores nothing twice."
    )


class ConversationsArguments(BaseModel):
    """The arguments of `conversations`."""

    model_config = _STRICT

    project: str = _optional_name("Only conversations of this project.")
    after: str = _optional_name("Continue after this conversation: next_after of the last result.")
    limit: int = Field(
        default=50, ge=1, le=limits.LISTED_MAX, description="The maximum number to return."
    )


class ReadArguments(BaseModel):
    """The arguments of `read`: a conversation, or a project."""

    model_config = _STRICT

    conversation: str = _optional_name("The conversation's name.")
    project: str = _optional_name(
        "Instead: the newest messages of all its conversations, in order of time."
    )
    first_seq: FirstSeq | None = Field(
        default=None, description="Read from this message on (default: the newest messages)."
    )
    offset: Number = Field(
        default=0, description="Skip this many characters of the first message: its next_offset."
    )
    limit: Limit = 20
    tokens: Tokens = limits.QUOTED_TOKENS


class SearchArguments(BaseModel):
    """The arguments of `search`."""

    model_config = _STRICT

    query: str = Field(
        min_length=1, max_length=10_000, description="Words or a question, in any language."
    )
    conversation: str = _optional_name("Only this conversation (default: all).")
    project: str = _optional_name("Only conversations of this project.")
    date: str = Field(
        default="",
        max_length=DATE_CHARS_MAX,
        description="Only messages of this time, such as 'last week'; see by_date.",
    )
    zone: Zone = ""
    limit: int = Field(
        default=5, ge=1, le=limits.RECALL_HITS_MAX, description="The maximum number of messages."
    )
    tokens: Tokens = limits.QUOTED_TOKENS


class ByDateArguments(BaseModel):
    """The arguments of `by_date`."""

    model_config = _STRICT

    date: str = Field(
        min_length=1,
        max_length=DATE_CHARS_MAX,
        description="For example today, last tuesday, 3 days ago, last week, in March, 2026-03-04, "
        "since Monday, between 3 March and 5 March.",
    )
    conversation: str = _optional_name("Only this conversation (default: all).")
    project: str = _optional_name("Only this project, its conversations in order of time.")
    zone: Zone = ""
    first_seq: FirstSeq = 0
    after: str = _optional_name("Continue after this conversation: next_after of the last result.")
    limit: Limit = 20
    tokens: Tokens = limits.QUOTED_TOKENS


class ContextArguments(BaseModel):
    """The arguments of `context`."""

    model_config = _STRICT

    conversation: Conversation
    question: str = Field(
        default="",
        max_length=100_000,
        description="Add old messages that are relevant to this question.",
    )
    tokens: int = Field(
        default=4_000,
        ge=limits.RECALL_TOKENS_MIN,
        le=limits.AGENT_BUDGET_MAX,
        description="The maximum tokens of the context.",
    )


class TopicsArguments(BaseModel):
    """The arguments of `topics`."""

    model_config = _STRICT

    conversation: Conversation
    topic: Number | None = Field(
        default=None, description="Also return the messages of this topic."
    )
    first_seq: FirstSeq = 0
    skip: Number = Field(
        default=0, description="Skip this many topics: next_skip of the last result."
    )
    limit: Limit = 20
    tokens: Tokens = limits.QUOTED_TOKENS


class DigestsArguments(BaseModel):
    """The arguments of `digests`."""

    model_config = _STRICT

    conversation: Conversation
    version: Number | None = Field(
        default=None,
        description="Return this version, what it leaves out, and the messages it covers.",
    )
    first_seq: FirstSeq = 0
    before: Number | None = Field(
        default=None, description="Only versions before this one: next_before of the last result."
    )
    limit: Limit = 20
    tokens: Tokens = limits.QUOTED_TOKENS


class StateArguments(BaseModel):
    """The arguments of `state`."""

    model_config = _STRICT

    conversation: Conversation
    skip: Number = Field(
        default=0, description="Skip this many facts: next_skip of the last result."
    )
    limit: Limit = limits.QUOTED_MAX
    tokens: Tokens = limits.QUOTED_TOKENS


class ProfileArguments(BaseModel):
    """The arguments of `profile`: none."""

    model_config = _STRICT


class FactsArguments(BaseModel):
    """The arguments of `facts`; whose facts they are is not one of them."""

    model_config = _STRICT

    as_of: Annotated[str, _date("What held then (default: now).")] = ""
    known_at: Annotated[str, _date("What was known then.")] = ""
    history: bool = Field(default=False, description="Ended and reverted facts, too.")
    zone: Zone = ""
    skip: Number = Field(
        default=0, description="Skip this many facts: next_skip of the last result."
    )
    limit: Limit = 20
    tokens: Tokens = limits.QUOTED_TOKENS


def parse_arguments(kind: type[T], arguments: Mapping[str, Any]) -> T:
    """The arguments as a `kind`; `InputError` names each invalid one.

    A null argument counts as absent: many models send them.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise InputError(_describe_errors(error, list(kind.model_fields))) from None


def _describe_errors(error: ValidationError, known: list[str]) -> str:
    wrong = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [
        f"{'.'.join(map(str, problem['loc']))[:_NAMED_CHARS]}: {_describe_problem(problem, known)}"
        for problem in wrong[:_PROBLEMS_MAX]
    ]
    return "; ".join(lines)


def _describe_problem(problem: Any, known: list[str]) -> str:
    if problem["type"] == "extra_forbidden":
        top = len(problem["loc"]) == 1
        return f"no such argument{'; use ' + ', '.join(known) if top else ''}"
    if problem["type"] == "missing":
        return "is required"
    return str(problem["msg"])
