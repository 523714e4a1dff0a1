"""Request bodies and query parameters, with their limits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

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
    model_validator,
)

from firnline.language.dates import DATE_CHARS_MAX
from firnline.log import limits
from firnline.log.message import ROLES, Role
from firnline.server.limits import (
    CURSOR_CHARS_MAX,
    QUERY_CHARS_MAX,
    TAGS_MAX,
    TOKENS_MAX,
    TOOLS_MAX,
)
from firnline.server.rest.validation import RequestBody, check_budget, check_not_blank, read_time
from firnline.store.rows import SEQ_MAX

Time = Annotated[
    datetime,
    BeforeValidator(read_time),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-03-04T10:15:00Z"]}),
]
Seq = Annotated[int, Field(ge=0, le=SEQ_MAX, examples=[0])]
"""The sequence number of a message, or of the message that opened a topic."""
Version = Annotated[int, Field(ge=1, le=SEQ_MAX, examples=[1])]
"""The number of a digest."""
Tokens = Annotated[int, Field(ge=1, le=TOKENS_MAX, examples=[8_000])]
Count = Annotated[int, Field(ge=1, le=limits.PAGE_MAX, examples=[20])]
Name = Annotated[str, Field(min_length=1, max_length=limits.NAME_CHARS_MAX)]
QueryText = Annotated[str, Field(max_length=QUERY_CHARS_MAX)]
Metadata = Annotated[dict[str, Any], Field(examples=[{"customer": "4711"}])]

Limit = Annotated[Count, Query(description="Maximum number of items per page.")]
Cursor = Annotated[
    str | None,
    Query(
        max_length=CURSOR_CHARS_MAX,
        description="`next_cursor` of the previous page; omit it for the first.",
    ),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=limits.NAME_CHARS_MAX,
        description="Unique name of this request; a retry with it has no further effect.",
        examples=["order-4711-confirm"],
    ),
]


# -- messages ---------------------------------------------------------------------------------

_TEXT_OR_NONE: Final = {"anyOf": [{"type": "string"}, {"type": "null"}]}
MESSAGE: Final[dict[str, Any]] = {
    "type": "object",
    "title": "Message",
    "description": "A message in the OpenAI chat format; unknown fields are kept.",
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
"""A message as it was sent; the library validates it, so nothing is lost."""


class TimedMessage(RequestBody):
    """A message with its time and metadata."""

    message: MessageBody
    created_at: Time | None = Field(None, description="When it was sent; default: now.")
    metadata: Metadata = Field(default={}, description="Stored with it, never shown to a model.")


def _kind(item: object) -> str:
    wrapped = isinstance(item, TimedMessage) or (
        isinstance(item, dict) and "message" in item and "role" not in item
    )
    return "timed" if wrapped else "message"


_Wrapped = Annotated[TimedMessage, Tag("timed")]
_Bare = Annotated[MessageBody, Tag("message")]
Item = Annotated[_Wrapped | _Bare, Discriminator(_kind)]
TurnMessage = Annotated[
    Annotated[str, Tag("text")] | _Wrapped | _Bare,
    Discriminator(lambda item: "text" if isinstance(item, str) else _kind(item)),
    AfterValidator(check_not_blank),
]


class AppendRequest(RequestBody):
    """Messages to append to a conversation, all or none."""

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
        fail_fast=True,
        description="In the OpenAI format; or objects with `message`, `created_at` and `metadata`.",
    )
    expected_seq: Seq | None = Field(
        None, description="Sequence number that the first message must get; otherwise 409."
    )
    person: Name | None = Field(
        None, description="Whom it is with; 409 if it is with another person."
    )


# -- contexts and turns -----------------------------------------------------------------------


class BudgetRequest(RequestBody):
    """A context window and what is reserved in it."""

    window_tokens: Tokens
    reserve_tokens: Annotated[int, Field(ge=0, le=TOKENS_MAX)] = Field(
        0, description="Tokens reserved for the answer."
    )
    recall_tokens: Annotated[int, Field(ge=0, le=TOKENS_MAX)] | None = Field(
        None, description="Tokens for recalled messages; default: chosen automatically."
    )
    model: Name | None = Field(None, description="Model whose tokenizer counts.")


BudgetLike: TypeAlias = Annotated[Tokens | Name | BudgetRequest, WrapValidator(check_budget)]
_BUDGET: Final = "Tokens, a model name, or an object; default: the window of the server's model."


class ContextRequest(RequestBody):
    """Options of a context."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"budget": 8_000, "question": "When do we land?", "system": "Be brief."}]
        }
    )

    budget: BudgetLike | None = Field(None, description=_BUDGET, examples=[8_000, "gpt-4o"])
    question: QueryText | None = Field(None, description="Old messages that match it are recalled.")
    system: str | None = Field(None, description="The application's system prompt.")
    tools: list[dict[str, Any]] = Field(
        default=[],
        max_length=TOOLS_MAX,
        description="Tool schemas in the OpenAI format that will be sent too; they use tokens.",
    )
    task: str | None = Field(None, description="The current task; default: the project's.")
    format: Literal["openai", "anthropic"] = Field("openai", description="Format of the messages.")
    fold: bool = Field(True, description="False: do not create or schedule digests.")
    person: Name | None = Field(
        None, description="Whom it is with; also of a conversation that does not exist yet."
    )


class TopicContextRequest(RequestBody):
    """Options of a context of the active topic."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"budget": 4_000}]})

    budget: BudgetLike | None = Field(None, description=_BUDGET)


class TurnRequest(RequestBody):
    """A user message, and how to answer it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"message": "When do we land?", "budget": 8_000}]}
    )

    message: TurnMessage = Field(
        description="Text that is not blank, or a message as in an append."
    )
    model: Name | None = Field(
        None, description="A model behind `/v1` that answers; default: the server's."
    )
    budget: BudgetLike | None = Field(None, description=_BUDGET)
    system: str | None = Field(None, description="The application's system prompt.")
    task: str | None = Field(None, description="The current task; default: the project's.")
    recall: bool = Field(True, description="Whether to recall old messages that match.")
    recall_tools: bool = Field(
        False, description="Whether the model gets tools to search this conversation."
    )
    tool_tokens: int | None = Field(
        None,
        ge=limits.RECALL_TOKENS_MIN,
        le=limits.RECALL_NEWEST_TOKENS,
        description="Maximum tokens of one result of these tools; default: as the window allows.",
    )
    max_tokens: Tokens | None = Field(None, description="Maximum length of the answer.")
    person: Name | None = Field(None, description="Whom the conversation is with.")
    stream: bool = Field(
        False, description="Stream events; the same as `Accept: text/event-stream`."
    )


# -- conversations and projects ---------------------------------------------------------------


class StrategyRequest(RequestBody):
    """How contexts are planned."""

    name: Name = Field(description="layered, progressive, project, topics, window or rolling.")
    parameters: dict[str, Any] = Field(
        default={}, description="Its parameters; the others keep their defaults."
    )


class ConversationRequest(RequestBody):
    """Changes to a conversation; omitted fields stay as they are."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"project": "garden", "metadata": {"customer": "4711"}},
                {"strategy": {"name": "window", "parameters": {"keep_last": 6}}},
            ]
        }
    )

    project: Name | None = Field(None, description="The project it belongs to.")
    person: Name | None = Field(None, description="Whom it is with.")
    metadata: Metadata | None = Field(None, description="Replaces the metadata.")
    strategy: StrategyRequest | None = Field(None, description="How its contexts are planned.")


class ProjectRequest(RequestBody):
    """All fields of a project."""

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
    task: str = Field("", max_length=100_000, description="The current task; in every context.")
    metadata: Metadata = Field(default={})


class VerifyRequest(RequestBody):
    """Options of a verification."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}]})

    anchor: str | None = Field(
        None, max_length=200, description="A hash recorded earlier; it must be in the chain."
    )


class ProofRequest(RequestBody):
    """What to prove: a message, or growth since a checkpoint."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"seq": 0}]})

    seq: Seq | None = Field(None, description="The message to prove.")
    since: str | None = Field(
        None, max_length=10_000, description="An older checkpoint; the log only grew since."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.seq is None) == (self.since is None):
            raise ValueError("expected either seq or since")
        return self


class ArchiveRequest(RequestBody):
    """Options of archiving."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"keep": 1_000}]})

    keep: Seq = Field(1_000, description="Number of newest messages that are not compressed.")


class BranchRequest(RequestBody):
    """The name of a branch, and where it starts."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "plan-b", "seq": 0}]})

    name: Name = Field(description="The new conversation's name.")
    seq: Seq = Field(description="Last message that both conversations share.")


# -- recall -----------------------------------------------------------------------------------


class SearchQuery(BaseModel):
    """A search."""

    query: QueryText = Field(
        description="Words or a question, in any language.", examples=["Lisbon"]
    )
    limit: Count | None = Field(
        None, description="Maximum number of messages; default: 10, or no limit if `tokens` is set."
    )
    tokens: Tokens | None = Field(
        None,
        description="Return as many messages as fit into this many tokens; of long ones, passages.",
    )
    roles: list[Role] = Field(
        default=[], max_length=len(ROLES), description="Only messages with these roles."
    )
    since: Time | None = Field(None, description="Only messages sent at or after this time.")
    until: Time | None = Field(None, description="Only messages sent before this time.")
    project: Name | None = Field(None, description="Only conversations of this project.")
    person: Name | None = Field(None, description="Only conversations with this person.")
    topic: Seq | None = Field(None, description="Only this topic of the conversation.")
    tags: list[Name] = Field(
        default=[], max_length=TAGS_MAX, description="Only topics with all of these tags."
    )


class SearchRequest(SearchQuery):
    """A search."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"query": "When do we land?", "limit": 5}]},
    )


When = Annotated[
    str,
    Query(
        min_length=1,
        max_length=DATE_CHARS_MAX,
        description="A date: yesterday, last tuesday, 2026-03, 3 days ago, since Monday.",
        examples=["yesterday"],
    ),
]
Zone = Annotated[
    str,
    Query(
        min_length=1,
        max_length=100,
        description="Time zone of the expression.",
        examples=["Europe/Berlin"],
    ),
]


class MatchRequest(RequestBody):
    """A text to compare with the topics."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "What about the beans?"}]})

    text: QueryText


class MergeRequest(RequestBody):
    """The topic to merge."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"topic": 4}]})

    topic: Seq


class TagsRequest(RequestBody):
    """Tags to add to a topic and to remove from it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"add": ["garden"], "remove": []}]})

    add: list[Name] = Field(default=[], max_length=TAGS_MAX)
    remove: list[Name] = Field(default=[], max_length=TAGS_MAX)


class FeedbackRequest(RequestBody):
    """A vote on whether a message was useful."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"seq": 0, "vote": 1}]})

    seq: Seq
    vote: Literal[1, -1] = Field(description="1: useful; -1: not useful.")


# -- digests ----------------------------------------------------------------------------------


class UndoRequest(RequestBody):
    """Which digest to undo."""

    model_config = ConfigDict(json_schema_extra={"examples": [{}]})

    topic: Seq | None = Field(
        None, description="Undo the newest digest of this topic; default: of the conversation."
    )


class RebuildRequest(RequestBody):
    """Which digests to rebuild."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"only_offline": True}]})

    only_offline: bool = Field(False, description="Only digests that were created without a model.")


class RememberRequest(RequestBody):
    """Important data from the application."""

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


class RevertRequest(RequestBody):
    """Which replacement to revert."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"seq": 3}]})

    seq: Annotated[int, Field(ge=-1, le=SEQ_MAX)] = Field(
        description="The message that replaced a value; -1: the application."
    )


class ExportRequest(RequestBody):
    """Options of an export."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"conversations": ["support-4711"]}]})

    conversations: list[Name] | None = Field(
        None, max_length=limits.PAGE_MAX, description="Conversations to export; default: all."
    )
