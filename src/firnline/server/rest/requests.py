"""What clients may ask for: the bodies and queries of requests, with their bounds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import Header, Query
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    WrapValidator,
)

from firnline.language.dates import TEXT_CHARS_MAX
from firnline.log import limits
from firnline.log.message import ROLES, Role
from firnline.server.rest.validation import as_time, is_budget, says_something

TOKENS_MAX: Final = 100_000_000
SEQ_MAX: Final = (1 << limits.SEQ_BITS) - 1
_QUERY_CHARS_MAX: Final = 10_000
_CURSOR_CHARS_MAX: Final = 20 * limits.NAME_CHARS_MAX
_TAGS_MAX: Final = 50
_TOOLS_MAX: Final = 256

Time = Annotated[
    datetime,
    BeforeValidator(as_time),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-03-04T10:15:00Z"]}),
]
Seq = Annotated[int, Field(ge=0, le=SEQ_MAX, examples=[0])]
"""An entry's sequence number; a topic's number is one, too."""
Version = Annotated[int, Field(ge=1, le=SEQ_MAX, examples=[1])]
"""A digest's number."""
Tokens = Annotated[int, Field(ge=1, le=TOKENS_MAX, examples=[8_000])]
Count = Annotated[int, Field(ge=1, le=limits.PAGE_MAX, examples=[20])]
Name = Annotated[str, Field(min_length=1, max_length=limits.NAME_CHARS_MAX)]
Words = Annotated[str, Field(max_length=_QUERY_CHARS_MAX)]
Metadata = Annotated[dict[str, Any], Field(examples=[{"customer": "4711"}])]

Limit = Annotated[Count, Query(description="The most that one page holds.")]
Cursor = Annotated[
    str | None,
    Query(
        max_length=_CURSOR_CHARS_MAX,
        description="`next_cursor` of the page before; none for the first.",
    ),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=limits.NAME_CHARS_MAX,
        description="Your name for this request: sent again with it, nothing happens twice.",
        examples=["order-4711-confirm"],
    ),
]


class Ask(BaseModel):
    """A request's body: nothing is converted, and nothing unknown is passed over in silence."""

    model_config = ConfigDict(extra="forbid", strict=True)


# -- messages ---------------------------------------------------------------------------------

_TEXT_OR_NONE: Final = {"anyOf": [{"type": "string"}, {"type": "null"}]}
MESSAGE: Final[dict[str, Any]] = {
    "type": "object",
    "title": "Message",
    "description": "A message in the OpenAI chat shape; unknown fields are kept.",
    "required": ["role"],
    "properties": {
        "role": {"type": "string", "enum": list(ROLES)},
        "content": {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "object"}},
                {"type": "null"},
            ]
        },
        "name": _TEXT_OR_NONE,
        "tool_call_id": _TEXT_OR_NONE,
        "tool_calls": {"anyOf": [{"type": "array", "items": {"type": "object"}}, {"type": "null"}]},
    },
    "additionalProperties": True,
    "examples": [{"role": "user", "content": "We land in Lisbon on 3 March."}],
}
MessageBody = Annotated[dict[str, Any], WithJsonSchema(MESSAGE)]
"""A message as it came; the library checks it, so that nothing in it is lost on the way."""


class Said(Ask):
    """A message with what it has beside it: when it was said, and what to keep with it."""

    message: MessageBody
    created_at: Time | None = Field(None, description="When it was said; now unless given.")
    metadata: Metadata = Field(default={}, description="Kept with it, never shown to a model.")


def _kind(item: object) -> str:
    wrapped = isinstance(item, Said) or (
        isinstance(item, dict) and "message" in item and "role" not in item
    )
    return "said" if wrapped else "message"


_Wrapped = Annotated[Said, Tag("said")]
_Bare = Annotated[MessageBody, Tag("message")]
Item = Annotated[_Wrapped | _Bare, Discriminator(_kind)]
Spoken = Annotated[
    Annotated[str, Tag("text")] | _Wrapped | _Bare,
    Discriminator(lambda item: "text" if isinstance(item, str) else _kind(item)),
    AfterValidator(says_something),
]


class AppendAsk(Ask):
    """Messages to add to the end of a conversation, all or none."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"messages": [{"role": "user", "content": "We land in Lisbon on 3 March."}]},
                {
                    "messages": [
                        {
                            "message": {"role": "user", "content": "And back on the 9th."},
                            "created_at": "2026-03-01T09:00:00Z",
                            "metadata": {"channel": "mail"},
                        }
                    ],
                    "expected_seq": 1,
                },
            ]
        }
    )

    messages: list[Item] = Field(
        min_length=1,
        max_length=limits.BATCH_MESSAGES_MAX,
        description="In the OpenAI shape; or each as `message` with `created_at` and `metadata`.",
    )
    expected_seq: Seq | None = Field(
        None, description="The number that the first must get; else nothing is stored, and 409."
    )


# -- contexts and turns -----------------------------------------------------------------------


class BudgetAsk(Ask):
    """A window, and how much of it is kept free."""

    window_tokens: Tokens
    reserve_tokens: Annotated[int, Field(ge=0, le=TOKENS_MAX)] = Field(
        0, description="Kept free for the answer."
    )
    recall_tokens: Annotated[int, Field(ge=0, le=TOKENS_MAX)] | None = Field(
        None, description="Kept for recalled entries; chosen unless given."
    )
    model: Name | None = Field(None, description="Whose tokenizer counts.")


BudgetLike: TypeAlias = Annotated[Tokens | Name | BudgetAsk, WrapValidator(is_budget)]
_BUDGET: Final = "Tokens, a model's name, or an object; else the window of the server's model."


class ContextAsk(Ask):
    """What a model is to be asked with."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"budget": 8_000, "question": "When do we land?", "system": "Be brief."}]
        }
    )

    budget: BudgetLike | None = Field(None, description=_BUDGET, examples=[8_000, "gpt-4o"])
    question: Words | None = Field(None, description="Old entries that fit it are recalled.")
    system: str | None = Field(None, description="What the application tells the model.")
    tools: list[dict[str, Any]] = Field(
        default=[],
        max_length=_TOOLS_MAX,
        description="Schemas in the OpenAI shape that will be sent along; they take tokens.",
    )
    task: str | None = Field(None, description="The task at hand; else the project's.")
    format: Literal["openai", "anthropic"] = Field(
        "openai", description="The shape of the messages."
    )
    fold: bool = Field(True, description="False: only look; nothing is digested or owed for it.")


class TopicContextAsk(Ask):
    """How large the active topic's context may be."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"budget": 4_000}]})

    budget: BudgetLike | None = Field(None, description=_BUDGET)


class TurnAsk(Ask):
    """What the user says, and how it is to be answered."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"message": "When do we land?", "budget": 8_000}]}
    )

    message: Spoken = Field(
        description="Text that is not blank, or a message, which is given as in an append."
    )
    budget: BudgetLike | None = Field(None, description=_BUDGET)
    system: str | None = Field(None, description="What the application tells the model.")
    task: str | None = Field(None, description="The task at hand; else the project's.")
    recall: bool = Field(True, description="Whether old entries that fit are recalled.")
    recall_tools: bool = Field(
        False, description="Whether the model gets tools to look into this conversation."
    )
    max_tokens: Tokens | None = Field(None, description="The longest answer.")
    stream: bool = Field(
        False, description="Events instead of one answer; `Accept: text/event-stream` is the same."
    )


# -- conversations and projects ---------------------------------------------------------------


class StrategyAsk(Ask):
    """How contexts are planned."""

    name: Name = Field(description="layered, progressive, project, topics, window or rolling.")
    parameters: dict[str, Any] = Field(default={}, description="Its own; the rest as by default.")


class ConversationAsk(Ask):
    """What is to change about a conversation; what is not given stays."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"project": "garden", "metadata": {"customer": "4711"}},
                {"strategy": {"name": "window", "parameters": {"keep_last": 6}}},
            ]
        }
    )

    project: Name | None = Field(None, description="The project that it belongs to.")
    metadata: Metadata | None = Field(None, description="Replaces what was there.")
    strategy: StrategyAsk | None = Field(None, description="How its contexts are planned.")


class ProjectAsk(Ask):
    """All that is to be known of a project."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "status": "active",
                    "schedule": "Mondays",
                    "task": "Plant the beans. Blocker: no poles yet.",
                }
            ]
        }
    )

    status: str = Field("active", max_length=1_000, examples=["active"])
    schedule: str = Field("", max_length=10_000, examples=["Mondays"])
    task: str = Field("", max_length=100_000, description="The task at hand; in every context.")
    metadata: Metadata = Field(default={})


class VerifyAsk(Ask):
    """What to verify against."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}]})

    anchor: str | None = Field(
        None, max_length=200, description="A hash noted earlier; it must be in the chain."
    )


class ArchiveAsk(Ask):
    """How much stays live."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"keep": 1_000}]})

    keep: Seq = Field(1_000, description="So many of the newest entries are not compressed.")


class BranchAsk(Ask):
    """Where the new conversation parts from the old one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "plan-b", "seq": 0}]})

    name: Name = Field(description="The new conversation's name.")
    seq: Seq = Field(description="The last entry that both have.")


# -- recall -----------------------------------------------------------------------------------


class SearchQuery(BaseModel):
    """What is looked for, and where."""

    query: Words = Field(description="Words or a question, in any language.", examples=["Lisbon"])
    limit: Count | None = Field(None, description="The most entries: 10, unless tokens are given.")
    tokens: Tokens | None = Field(None, description="As many entries as fit into so many tokens.")
    roles: list[Role] = Field(default=[], max_length=len(ROLES), description="Only what they said.")
    since: Time | None = Field(None, description="Only what was said then or later.")
    until: Time | None = Field(None, description="Only what was said before.")
    project: Name | None = Field(None, description="Only conversations of this project.")
    topic: Seq | None = Field(None, description="Only this topic of the conversation.")
    tags: list[Name] = Field(
        default=[], max_length=_TAGS_MAX, description="Only topics that have all of these tags."
    )


class SearchAsk(SearchQuery):
    """What is looked for, and where."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"query": "When do we land?", "limit": 5}]},
    )


When = Annotated[
    str,
    Query(
        min_length=1,
        max_length=TEXT_CHARS_MAX,
        description="Words for a time: yesterday, last tuesday, 2026-03, 3 days ago, since Monday.",
        examples=["yesterday"],
    ),
]
Zone = Annotated[
    str,
    Query(
        min_length=1,
        max_length=100,
        description="The time zone that the words are meant in.",
        examples=["Europe/Berlin"],
    ),
]


class MatchAsk(Ask):
    """A text to compare with the topics."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "What about the beans?"}]})

    text: Words


class MergeAsk(Ask):
    """The topic whose messages are taken over."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"topic": 4}]})

    topic: Seq


class TagsAsk(Ask):
    """Tags that a topic gets and loses."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"add": ["garden"], "remove": []}]})

    add: list[Name] = Field(default=[], max_length=_TAGS_MAX)
    remove: list[Name] = Field(default=[], max_length=_TAGS_MAX)


class FeedbackAsk(Ask):
    """Whether an entry was of use."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"seq": 0, "vote": 1}]})

    seq: Seq
    vote: Literal[1, -1] = Field(description="1: it was of use; -1: it was not.")


# -- digests ----------------------------------------------------------------------------------


class UndoAsk(Ask):
    """Whose newest digest."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}]})

    topic: Seq | None = Field(None, description="A topic's; else the conversation's.")


class RebuildAsk(Ask):
    """Which digests are made anew."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"only_offline": True}]})

    only_offline: bool = Field(False, description="Just those that no model had a hand in.")


class RememberAsk(Ask):
    """What the application knows."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"important_data": {"user_preferences": {"diet": "vegan"}}}]
        }
    )

    important_data: dict[str, Any] = Field(
        description="user_preferences, document_structure and custom_fields are objects; "
        "key_decisions, important_facts, source_urls and entities are lists."
    )
    summary: str | None = Field(None, description="Replaces the newest summary.")


class RevertAsk(Ask):
    """Whose replacement is taken back."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"seq": 3}]})

    seq: Annotated[int, Field(ge=-1, le=SEQ_MAX)] = Field(
        description="The entry that replaced something; -1 for what the application replaced."
    )


class ExportAsk(Ask):
    """What is exported."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"conversations": ["support-4711"]}]})

    conversations: list[Name] | None = Field(
        None, max_length=limits.PAGE_MAX, description="These; all of them unless given."
    )
