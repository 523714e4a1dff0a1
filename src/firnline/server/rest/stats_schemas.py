"""More of what the routes answer: past turns, numbers, work, jobs, and who is asking."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from firnline.server.rest.schemas import (
    Accounting,
    Budget,
    Instant,
    LeftOut,
    MessageShape,
    Page,
    Problem,
)

# -- past turns -------------------------------------------------------------------------------


class PastTurn(BaseModel):
    """What is known of the prompt that an answer came from."""

    answer: int = Field(description="The entry that the model answered with.")
    question: int | None = Field(description="The entry that it answers.")
    asked: str = Field(description="How that begins.")
    model: str
    via: str = Field(description="How it was asked: rest, proxy or telegram.")
    strategy: str
    tokens: int = Field(description="Of the whole prompt.")
    messages: int = Field(description="In it.")
    stability: float | None = Field(description="The share of the prompt before it repeats.")
    degraded: list[str]
    recorded_at: Instant | None


class PastTurnPage(Page):
    """Part of the list of turns, the newest first."""

    data: list[PastTurn]


class SentMessage(BaseModel):
    """A message as the model got it."""

    section: str = Field(description="Why it is there.", examples=["recent"])
    tokens: int
    seq: int | None = Field(description="The entry that it shows word for word.")
    of: int | None = Field(description="The entry that it shows, whole or in part.")
    message: MessageShape


class SentSection(BaseModel):
    """A part of a prompt."""

    name: str
    tokens: int
    why: str


class PastHit(BaseModel):
    """An entry that was recalled for the question, and why."""

    conversation: str
    seq: int
    score: float
    parts: dict[str, float] = Field(description="What the score is made of.")


class Prompt(PastTurn):
    """The exact prompt that an answer came from."""

    before: int | None = Field(description="The answer of the turn before it, for comparison.")
    reason: str
    budget: Budget
    accounting: Accounting
    sections: list[SentSection]
    left_out: list[LeftOut]
    hits: list[PastHit]
    calls: int | None = Field(description="Of the model in this turn; null if it is not known.")
    prompt_tokens: int | None = Field(description="By the model's own count.")
    completion_tokens: int | None
    sha256: str = Field(description="Of the messages as they were sent.")
    proved: bool = Field(description="Whether what is shown has that hash; else it is a 500.")
    prompt: list[SentMessage] = Field(description="All messages in the order they were sent in.")


# -- important data ---------------------------------------------------------------------------


class ImportantItem(BaseModel):
    """One piece of important data and its evidence."""

    field: str = Field(examples=["user_preferences"])
    name: str = Field(description="The subject, in the fields that are objects; else empty.")
    value: Any
    seqs: list[int] = Field(description="The entries that say it; none: the application said it.")
    quote: str = Field(description="Their words.")
    superseded_by: int | None = Field(
        description="The entry whose newer value holds instead; -1: what the application said."
    )
    version: int = Field(description="The digest in force that it is in.")


class SetAside(BaseModel):
    """What was found without evidence: no model is shown it."""

    item: Any
    reason: str
    version: int


class Important(BaseModel):
    """The important data of the digests in force, with evidence and what was replaced."""

    data: list[ImportantItem]
    set_aside: list[SetAside]


# -- numbers ----------------------------------------------------------------------------------


class Cost(BaseModel):
    """The prompt of one answer."""

    tokens: int
    price: float = Field(description="In dollars.")


class Stats(BaseModel):
    """How large a conversation is, and what an answer costs in three ways."""

    conversation: str
    messages: int
    oldest: Instant | None
    newest: Instant | None
    tokens: int
    lean: Cost = Field(description="The newest messages alone.")
    with_tools: Cost = Field(description="The same, and what the recall tools return.")
    whole: Cost = Field(description="The whole history in every request.")


class TenantStats(BaseModel):
    """The same over all conversations: one answer in each of them."""

    conversations: int
    messages: int
    archived: int
    tokens: int
    oldest: Instant | None = Field(description="When the first conversation began.")
    newest: Instant | None = Field(description="When something was last stored.")
    lean: Cost
    with_tools: Cost
    whole: Cost


class Spent(BaseModel):
    """Some turns one after the other: what they sent, and what the whole history would have."""

    since: Instant | None
    until: Instant | None
    turns: int
    sent: int = Field(description="Tokens of their prompts.")
    whole: int = Field(description="Tokens of the same prompts with the whole history in each.")


class Costs(BaseModel):
    """What answers cost, and what they would have cost with the whole history in every prompt."""

    turns: int
    sent: int
    whole: int
    price: float = Field(description="Dollars for a million prompt tokens.")
    spent: float = Field(description="In dollars.")
    saved: float = Field(description="In dollars.")
    complete: bool = Field(description="False: there are older turns that are not counted.")
    data: list[Spent] = Field(description="Over time, oldest first.")


class Progress(BaseModel):
    """How far digests reach into the log."""

    entries: int
    tokens: int
    first_seq: int | None = Field(description="Where the newest digest in force begins.")
    last_seq: int | None = Field(description="The last entry that is in a digest.")
    open_entries: int = Field(description="Entries behind it, which contexts show word for word.")
    open_tokens: int


class Version(BaseModel):
    """A digest as a link of the chain."""

    version: int
    base: int | None
    first_seq: int
    last_seq: int
    status: str
    strategy: str
    made_by: str
    milliseconds: int
    created_at: Instant | None
    error: str


class Lineage(BaseModel):
    """The version chain, what is stuck, how far it got and how long it took."""

    conversation: str
    chain: list[int] = Field(description="From the newest completed version back to the first.")
    versions: list[Version]
    stuck: list[int] = Field(description="Versions in the making for more than five minutes.")
    window: Progress
    owed: bool
    mean_milliseconds: float
    max_milliseconds: int


class Stuck(BaseModel):
    """A digest that has been in the making for too long."""

    conversation: str
    version: int
    created_at: Instant | None


class Failed(BaseModel):
    """A digest that could not be made, and was not made since."""

    conversation: str
    version: int
    created_at: Instant | None
    error: str


class Work(BaseModel):
    """The digesting of all conversations."""

    conversations: int
    digests: dict[str, int] = Field(
        description="By status.", examples=[{"completed": 12, "failed": 1}]
    )
    entries: int
    covered_entries: int = Field(description="Of them, in a digest that is in force.")
    mean_milliseconds: float
    max_milliseconds: int
    stuck: list[Stuck]
    failed: list[Failed]
    owed_since: Instant | None = Field(description="From when on the first of what is owed is due.")
    due: list[str] = Field(description="Conversations that are to be digested now.")
    waiting: list[str] = Field(description="Those that are tried again later.")
    events: dict[str, int] = Field(
        description="How often what happened in this process: contexts, folds, fallbacks, turns.",
        examples=[{"append": 40, "context": 12, "fold": 2}],
    )


# -- jobs and callers -------------------------------------------------------------------------


class Noted(BaseModel):
    """Something that was not taken as it was."""

    count: int
    examples: list[str] = Field(description="Where it was the first times.")


class Report(BaseModel):
    """What an import of another program's file found."""

    formats: list[str] = Field(examples=[["chatgpt"]])
    conversations: int
    branches: int
    messages: int
    added: int
    known: int = Field(description="Messages that were here before.")
    left_out: dict[str, Noted]
    not_understood: dict[str, Noted]


class Job(BaseModel):
    """Work that goes on."""

    id: str = Field(examples=["5f1c0a52b7d94e6f"])
    url: str
    kind: Literal["export", "import"]
    state: Literal["running", "done", "failed"]
    done: int = Field(description="Entries of an export, bytes of an import.")
    total: int = Field(description="0 while it is not known.")
    created_at: Instant
    finished_at: Instant | None
    file: str | None = Field(description="Where an export can be had.")
    result: dict[str, Any] | None = Field(description="The manifest.")
    report: Report | None = Field(description="Of an import by name.")
    error: Problem | None


class Jobs(BaseModel):
    """The tenant's jobs, the newest first."""

    data: list[Job]


class Limits(BaseModel):
    """What one request or one minute may hold; 0 is no limit."""

    body_bytes: int
    import_bytes: int
    message_bytes: int
    messages_per_append: int
    page: int
    requests_per_minute: int
    tokens_per_minute: int


class About(BaseModel):
    """What the server is."""

    version: str
    store: str = Field(examples=["sqlite"])
    answers: str | None = Field(description="The model for turns; null: quotes from memory.")
    proxy: bool = Field(description="Whether /v1 has a model behind it.")
    embedder: str = Field(description="Who finds entries by meaning; none: words alone.")
    worker: bool = Field(description="Whether this process makes the digests that are owed.")


class Me(BaseModel):
    """Who is asking."""

    key: str = Field(description="The API key's id; `local` without one.")
    tenant: str
    scopes: list[str]
    limits: Limits
    server: About
