"""What the routes answer, as the OpenAPI document tells it; `showing` makes it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, WithJsonSchema

from firnline.server.rest.requests import MESSAGE

MessageShape = Annotated[dict[str, Any], WithJsonSchema(MESSAGE)]
Instant = Annotated[datetime, Field(examples=["2026-03-04T10:15:00.000000Z"])]
Hash = Annotated[str, Field(examples=["sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd1"])]


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field(examples=["urn:firnline:UnknownConversation"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["there is no conversation 'support-4711'"])
    instance: str = Field(examples=["/api/v1/conversations/support-4711"])
    code: str = Field(description="For machines.", examples=["UnknownConversation"])
    retryable: bool = Field(description="Whether trying again can help.")
    floor: int | None = Field(None, description="Tokens that a context would take at least.")
    available: int | None = Field(None, description="Tokens that there are for it.")
    blockers: dict[str, Any] | None = Field(None, description="What takes them.")
    retry_after: float | None = Field(None, description="Seconds to wait.")


# -- the log ----------------------------------------------------------------------------------


class Entry(BaseModel):
    """A message at a sequence number."""

    seq: int = Field(examples=[0])
    created_at: Instant | None = Field(description="When it was said.")
    tokens: int = Field(examples=[14])
    total: int = Field(description="Tokens of this entry and all before it.", examples=[14])
    tokenizer: str = Field(description="`~` at its end: an estimate.", examples=["o200k_base"])
    hash: Hash = Field(description="Covers this entry and all before it.")
    archived: bool = Field(description="Whether it lies in a compressed segment.")
    normalised: bool = Field(description="Whether its text was altered to be storable.")
    metadata: dict[str, Any]
    message: MessageShape


class Page(BaseModel):
    """Part of a list."""

    next_cursor: str | None = Field(description="For the next page; null on the last.")
    has_more: bool


class EntryPage(Page):
    """Part of a conversation, word for word."""

    data: list[Entry]


class Span(BaseModel):
    """What words for a time mean."""

    since: Instant
    until: Instant
    when: str = Field(examples=["yesterday"])


class DatedPage(EntryPage, Span):
    """What was said in a span of time."""


class Appended(BaseModel):
    """What an append stored."""

    data: list[Entry]
    seq: int = Field(description="The last entry's number.")
    replayed: bool = Field(description="Whether an earlier try had stored them.")


class Strategy(BaseModel):
    """How contexts are planned."""

    name: str = Field(examples=["layered"])
    parameters: dict[str, Any]
    own: bool = Field(description="False: the server's default.")


class Head(BaseModel):
    """Where a conversation stands."""

    conversation: str = Field(examples=["support-4711"])
    url: str = Field(examples=["/api/v1/conversations/support-4711"])
    seq: int = Field(description="The last entry's number; -1 if it is empty.")
    hash: Hash
    entries: int
    archived: int
    tokens: int
    created_at: Instant
    updated_at: Instant
    project: str | None
    metadata: dict[str, Any]


class HeadPage(Page):
    """Part of the list of conversations."""

    data: list[Head]


class State(BaseModel):
    """What a conversation's memory holds: the digests in force as one record."""

    important_data: dict[str, Any]
    conversation_summary: str
    summary_version: int
    last_summarized_at: Instant | None
    messages_summarized_count: int
    last_keep_window_index: int = Field(description="The first entry behind the summary.")


class Conversation(Head):
    """All about a conversation."""

    strategy: Strategy
    state: State
    digests: int = Field(description="Digests ever made.")
    in_force: list[int] = Field(description="Those that contexts are made of now.")
    pinned: list[int] = Field(description="Entries that every context shows.")


class Verified(BaseModel):
    """Every hash was derived again."""

    conversation: str
    ok: bool
    entries: int
    tokens: int
    head: Hash
    problems: list[str]


class Archived(BaseModel):
    """What archiving moved."""

    entries: int
    segments: int
    plain_bytes: int
    stored_bytes: int


class Restored(BaseModel):
    """What was taken back."""

    entries: int


class Erased(BaseModel):
    """The certificate of an erasure."""

    conversation: str
    entries: int
    digests: int
    segments: int
    tokens: int
    head: Hash
    erased_at: Instant


class Pinned(BaseModel):
    """Whether an entry is in every context."""

    conversation: str
    seq: int
    pinned: bool


class Project(BaseModel):
    """What conversations belong to."""

    name: str = Field(examples=["garden"])
    url: str = Field(examples=["/api/v1/projects/garden"])
    status: str = Field(examples=["active"])
    schedule: str = Field(examples=["Mondays"])
    task: str
    metadata: dict[str, Any]


class Situation(BaseModel):
    """A conversation with what its memory holds."""

    conversation: str
    state: State


class ProjectBoard(Project):
    """A project on the dashboard."""

    conversations: int
    entries: int
    tokens: int
    owed: int = Field(description="Conversations that are to be digested.")
    last_activity: Instant | None
    newest: list[Head] = Field(description="Its conversations, the newest first; some of many.")
    context: Situation | None = Field(
        description="What is known in its newest conversation; on the list, of the active project."
    )


class ProjectPage(Page):
    """The dashboard: every project."""

    data: list[ProjectBoard]
    active: str | None = Field(description="The active project that something happened in last.")


# -- contexts and turns -----------------------------------------------------------------------


class Budget(BaseModel):
    """What a context had to fit into."""

    window_tokens: int
    reserve_tokens: int
    recall_tokens: int | None
    model: str | None


class Accounting(BaseModel):
    """Where the tokens went; but for the window, they add up to it."""

    window: int
    reserve: int
    tools: int
    system: int
    pinned: int
    task: int
    important: int
    digests: int
    history: int
    recalled: int
    retrieved: int
    framing: int
    free: int


class Section(BaseModel):
    """A part of a context."""

    name: str = Field(examples=["recent"])
    tokens: int
    messages: int
    seqs: list[int] = Field(description="Entries that are in it word for word.")
    why: str


class LeftOut(BaseModel):
    """What is not in the context."""

    what: str
    why: str


class Hit(BaseModel):
    """An entry that was found, and why."""

    conversation: str
    score: float
    parts: dict[str, float] = Field(description="What the score is made of.")
    explanation: str = Field(examples=["score 2.10: words +1.40, meaning +0.70"])
    entry: Entry


class Context(BaseModel):
    """What a model should see of a conversation."""

    conversation: str
    strategy: str
    reason: str
    budget: Budget
    tokens: int
    system: str | list[dict[str, Any]] | None = Field(
        description="In Anthropic's shape, what goes beside the messages: text, or blocks."
    )
    messages: list[dict[str, Any]]
    accounting: Accounting
    sections: list[Section]
    seqs: list[int]
    left_out: list[LeftOut]
    degraded: list[str] = Field(description="Why this is less than was wanted; empty if it is not.")
    crowded: bool
    stability: float | None = Field(description="The share of the last prompt that is repeated.")
    hits: list[Hit]
    explain: str


class Turn(BaseModel):
    """A question and its answer, both stored."""

    conversation: str
    question: Entry
    answer: Entry
    text: str
    calls: int = Field(description="Of the model; 0 if an earlier try had the answer.")
    model: str
    prompt_tokens: int
    completion_tokens: int
    degraded: list[str]
    tool_results: list[Entry]
    context_tokens: int
    accounting: Accounting


class Stopped(BaseModel):
    """How many answers were ended."""

    stopped: int


# -- recall -----------------------------------------------------------------------------------


class Hits(BaseModel):
    """What was found, best first."""

    data: list[Hit]


class Topic(BaseModel):
    """A topic in numbers at this moment."""

    topic_id: int
    title: str
    active_messages: int
    archived_messages: int
    total_messages: int
    has_summary: bool
    importance: float
    access_count: int
    memory_type: str
    half_life_days: float
    age_seconds: float
    inactive_seconds: float
    priority: float
    tags: list[str]
    dormant: bool


class Topics(BaseModel):
    """The topics, the active one first."""

    data: list[Topic]


class Match(BaseModel):
    """The topic that a text is most like; all null if there is nothing to compare."""

    topic: int | None
    raw: float | None
    similarity: float | None


# -- digests ----------------------------------------------------------------------------------


class Digest(BaseModel):
    """A summary and important data over a span of entries."""

    version: int
    first_seq: int
    last_seq: int
    base: int | None
    layer: int
    beside: list[int]
    parts: list[int]
    topic: int | None
    status: Literal["processing", "completed", "failed", "undone"]
    text: str
    data: dict[str, Any]
    receipt: dict[str, Any]
    strategy: str
    made_by: str
    tokens: int
    calls: int
    spent_tokens: int
    milliseconds: int
    error: str
    created_at: Instant | None
    in_force: bool


class DigestPage(Page):
    """Part of the chain of versions."""

    data: list[Digest]


class Digests(BaseModel):
    """Some digests."""

    data: list[Digest]


class Made(BaseModel):
    """How many digests were made or undone."""

    digests: int
    more: bool = Field(description="Whether more may be to do.")


class Difference(BaseModel):
    """What one version says that another does not."""

    before: int
    after: int
    text: str = Field(description="A unified diff of the summaries.")
    added: list[dict[str, Any]]
    removed: list[dict[str, Any]]
