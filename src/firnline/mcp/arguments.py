"""What the tools take: each argument with its bounds, and a sentence for the model that chooses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from firnline.errors import InputError
from firnline.language.dates import DATE_CHARS_MAX
from firnline.log import limits

T = TypeVar("T", bound=BaseModel)

_STRICT: Final = ConfigDict(extra="forbid")  # a misspelt argument must not be ignored
_SEQ_MAX: Final = (1 << limits.SEQ_BITS) - 1
_PROBLEMS_MAX: Final = 5
_NAMED_CHARS: Final = 60


def _parsed(value: object) -> object:
    """Some clients send lists as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _name(text: str) -> Any:
    return Field(min_length=1, max_length=limits.NAME_CHARS_MAX, description=text)


def _maybe(text: str) -> Any:
    return Field(default="", max_length=limits.NAME_CHARS_MAX, description=text)


Conversation: TypeAlias = Annotated[str, _name("The conversation's name.")]
FirstSeq: TypeAlias = Annotated[
    int, Field(ge=0, le=_SEQ_MAX, description="Only messages with this number or a higher one.")
]
Limit: TypeAlias = Annotated[
    int, Field(ge=1, le=limits.QUOTED_MAX, description="The most to return.")
]
Tokens: TypeAlias = Annotated[
    int,
    Field(
        ge=limits.RECALL_TOKENS_MIN,
        le=limits.QUOTED_TOKENS_MAX,
        description="The most tokens that they may take together.",
    ),
]
Zone: TypeAlias = Annotated[
    str, _maybe("The user's time zone, such as Europe/Berlin; else the server's.")
]
Number: TypeAlias = Annotated[int, Field(ge=0, le=_SEQ_MAX)]


class NewMessage(BaseModel):
    """A message to be stored."""

    model_config = _STRICT

    role: Literal["user", "assistant"] = Field(description="Who said it.")
    text: str = Field(min_length=1, description="What was said, word for word.")
    name: str = _maybe("The speaker's name.")


class Append(BaseModel):
    """The arguments of `append`."""

    model_config = _STRICT

    conversation: Annotated[str, _name("The conversation's name; a new name begins a new one.")]
    messages: Annotated[
        list[NewMessage],
        BeforeValidator(_parsed),
        Field(min_length=1, max_length=limits.AGENT_APPENDS_MAX, description="In order."),
    ]
    idempotency_key: str = _maybe("A name for this append: repeating it stores nothing twice.")


class Conversations(BaseModel):
    """The arguments of `conversations`."""

    model_config = _STRICT

    project: str = _maybe("Only conversations of this project.")
    after: str = _maybe("Go on behind this conversation: next_after of the last result.")
    limit: int = Field(default=50, ge=1, le=limits.LISTED_MAX, description="The most to return.")


class Read(BaseModel):
    """The arguments of `read`."""

    model_config = _STRICT

    conversation: Conversation
    first_seq: FirstSeq | None = Field(
        default=None, description="Read from this message on; without it, the newest messages."
    )
    offset: Number = Field(
        default=0, description="Leave out so many characters of the first message: its next_offset."
    )
    limit: Limit = 20
    tokens: Tokens = limits.RECALL_TOKENS


class Search(BaseModel):
    """The arguments of `search`."""

    model_config = _STRICT

    query: str = Field(
        min_length=1, max_length=10_000, description="Words or a question, in any language."
    )
    conversation: str = _maybe("Only this conversation; without it, all of them.")
    date: str = Field(
        default="",
        max_length=DATE_CHARS_MAX,
        description="Only what was said then, such as 'last week'; see by_date.",
    )
    zone: Zone = ""
    limit: int = Field(
        default=5, ge=1, le=limits.RECALL_HITS_MAX, description="The most messages to return."
    )
    tokens: Tokens = limits.RECALL_TOKENS


class ByDate(BaseModel):
    """The arguments of `by_date`."""

    model_config = _STRICT

    date: str = Field(
        min_length=1,
        max_length=DATE_CHARS_MAX,
        description="Such as today, last tuesday, 3 days ago, last week, in March, 2026-03-04, "
        "since Monday, between 3 March and 5 March.",
    )
    conversation: str = _maybe("Only this conversation; without it, all of them.")
    zone: Zone = ""
    first_seq: FirstSeq = 0
    after: str = _maybe("Go on behind this conversation: next_after of the last result.")
    limit: Limit = 20
    tokens: Tokens = limits.RECALL_TOKENS


class Context(BaseModel):
    """The arguments of `context`."""

    model_config = _STRICT

    conversation: Conversation
    question: str = Field(
        default="",
        max_length=100_000,
        description="Also recall old messages that bear on this question.",
    )
    tokens: int = Field(
        default=4_000,
        ge=limits.RECALL_TOKENS_MIN,
        le=limits.AGENT_BUDGET_MAX,
        description="The most tokens that the context may take.",
    )


class Topics(BaseModel):
    """The arguments of `topics`."""

    model_config = _STRICT

    conversation: Conversation
    topic: Number | None = Field(default=None, description="Show this topic's messages, too.")
    first_seq: FirstSeq = 0
    skip: Number = Field(
        default=0, description="Leave out so many topics: next_skip of the last result."
    )
    limit: Limit = 20
    tokens: Tokens = limits.RECALL_TOKENS


class Digests(BaseModel):
    """The arguments of `digests`."""

    model_config = _STRICT

    conversation: Conversation
    version: Number | None = Field(
        default=None,
        description="Show this version, what it lost, and the messages that it covers.",
    )
    first_seq: FirstSeq = 0
    before: Number | None = Field(default=None, description="Only versions before: next_before.")
    limit: Limit = 20
    tokens: Tokens = limits.RECALL_TOKENS


class State(BaseModel):
    """The arguments of `state`."""

    model_config = _STRICT

    conversation: Conversation
    skip: Number = Field(
        default=0, description="Leave out so many facts: next_skip of the last result."
    )
    limit: Limit = limits.QUOTED_MAX
    tokens: Tokens = limits.RECALL_TOKENS


def taken(kind: type[T], arguments: Mapping[str, Any]) -> T:
    """The arguments as a `kind`; what is wrong with them raises `InputError`, naming each one.

    An argument that is null is one that is not given: many models write them so.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise InputError(_told(error, list(kind.model_fields))) from None


def _told(error: ValidationError, known: list[str]) -> str:
    wrong = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [
        f"{'.'.join(map(str, problem['loc']))[:_NAMED_CHARS]}: {_said(problem, known)}"
        for problem in wrong[:_PROBLEMS_MAX]
    ]
    return "; ".join(lines)


def _said(problem: Any, known: list[str]) -> str:
    if problem["type"] == "extra_forbidden":
        top = len(problem["loc"]) == 1
        return f"no such argument{'; there are ' + ', '.join(known) if top else ''}"
    if problem["type"] == "missing":
        return "is required"
    return str(problem["msg"])
