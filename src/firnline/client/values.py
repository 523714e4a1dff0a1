"""The values that the server returns, where the library has no class of its own for them.

An entry is `firnline.Entry`, a digest `firnline.Digest`, and so on; the rest is here. The server
derives the schemas of its OpenAPI document from the same classes, so each field is listed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from firnline.client.wire import Doc
from firnline.context.budget import Budget
from firnline.context.context import Accounting, LeftOut
from firnline.engine.digest_history import State
from firnline.engine.stats import Cost
from firnline.errors import FirnlineError
from firnline.log.entry import Entry, Head
from firnline.log.hit import Hit
from firnline.log.message import Message
from firnline.transfer.importer import Report
from firnline.transfer.jsonl import Manifest

# -- conversations and projects ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyInfo:
    """How contexts are planned."""

    name: Annotated[str, Doc("", "layered")]
    parameters: dict[str, Any]
    own: Annotated[bool, Doc("Whether the conversation has its own; false: the default.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation: its head, strategy, state, digests in force and pins."""

    head: Head
    strategy: StrategyInfo
    state: State
    digests: Annotated[int, Doc("Number of digests ever created.")]
    in_force: Annotated[tuple[int, ...], Doc("Digests that contexts are built from now.")]
    pinned: Annotated[tuple[int, ...], Doc("Messages that are in every context.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationState:
    """A conversation and the state of its memory."""

    conversation: str
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A project on the dashboard."""

    name: str
    status: str
    schedule: str
    task: str
    metadata: dict[str, Any]
    conversations: int
    entries: int
    tokens: int
    pending: Annotated[int, Doc("Conversations with pending digests.")]
    last_activity: datetime | None
    newest: Annotated[tuple[Head, ...], Doc("Its newest conversations, newest first.")]
    context: Annotated[
        ConversationState | None,
        Doc("State of its newest conversations; in a list, for the active project only."),
    ]


# -- contexts and turns -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a context."""

    name: Annotated[str, Doc("", "recent")]
    tokens: int
    messages: int
    seqs: Annotated[tuple[int, ...], Doc("Messages that it contains word for word.")]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a model should see of a conversation; send `messages` as they are."""

    conversation: str
    strategy: str
    reason: str
    budget: Budget
    tokens: int
    system: Annotated[
        str | list[dict[str, Any]] | None,
        Doc("The system prompt in Anthropic's format: text or blocks."),
    ]
    messages: list[dict[str, Any]]
    accounting: Accounting
    sections: tuple[Section, ...]
    seqs: tuple[int, ...]
    left_out: tuple[LeftOut, ...]
    degraded: Annotated[
        tuple[str, ...], Doc("Why the context has less than requested; empty if it has not.")
    ]
    crowded: bool
    stability: Annotated[
        float | None, Doc("Share of the previous prompt that this one repeats (cacheable).")
    ]
    hits: tuple[Hit, ...]
    estimate: Annotated[
        str, Doc("How tokens are estimated, such as `o200k_base x 1.25`; empty if they are exact.")
    ]
    explain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A question and its answer, both stored."""

    conversation: str
    question: Entry
    answer: Entry
    text: str
    calls: Annotated[int, Doc("Model calls; 0 if an earlier request had stored the answer.")]
    model: str
    prompt_tokens: int
    completion_tokens: int
    degraded: tuple[str, ...]
    tool_results: tuple[Entry, ...]
    context_tokens: int
    accounting: Accounting


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTurn:
    """A recorded turn and its prompt."""

    answer: Annotated[int, Doc("Sequence number of the model's answer.")]
    question: Annotated[int | None, Doc("Sequence number of the question.")]
    asked: Annotated[str, Doc("The first words of the question.")]
    model: str
    via: Annotated[str, Doc("Where the question came from: rest, proxy or telegram.")]
    strategy: str
    tokens: Annotated[int, Doc("Tokens of the whole prompt.")]
    whole: Annotated[int | None, Doc("Tokens of it with the full history; null if unknown.")]
    window: Annotated[int, Doc("The window that it was built for, in tokens.")]
    messages: Annotated[int, Doc("Messages in the prompt.")]
    stability: Annotated[float | None, Doc("Share of the previous prompt that it repeats.")]
    degraded: tuple[str, ...]
    recorded_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """A message as it was sent to the model."""

    section: Annotated[str, Doc("The section that it belongs to.", "recent")]
    tokens: int
    seq: Annotated[int | None, Doc("The message that it contains word for word.")]
    of: Annotated[int | None, Doc("The message that it contains, in full or in part.")]
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class SentSection:
    """A part of a prompt."""

    name: str
    tokens: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PastHit:
    """A message that was recalled for a question, and its score."""

    conversation: str
    seq: int
    score: float
    parts: Annotated[dict[str, float], Doc("The parts of the score.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(PastTurn):
    """The exact prompt behind an answer."""

    before: Annotated[int | None, Doc("The previous turn's answer, for comparison.")]
    reason: str
    budget: Budget
    accounting: Accounting
    sections: tuple[SentSection, ...]
    left_out: tuple[LeftOut, ...]
    hits: tuple[PastHit, ...]
    calls: Annotated[int | None, Doc("Model calls in this turn; null if unknown.")]
    prompt_tokens: Annotated[int | None, Doc("As counted by the model.")]
    completion_tokens: int | None
    sha256: Annotated[str, Doc("SHA-256 of the messages as they were sent.")]
    proved: Annotated[bool, Doc("Whether the messages match that hash; if not, the status is 500.")]
    prompt: Annotated[tuple[SentMessage, ...], Doc("All messages in the order they were sent.")]


# -- digests ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportantItem:
    """One item of important data and its evidence."""

    field: Annotated[str, Doc("", "user_preferences")]
    name: Annotated[str, Doc("The key, in fields that are objects; otherwise empty.")]
    value: Any
    seqs: Annotated[
        tuple[int, ...], Doc("Messages that state it; empty if the application supplied it.")
    ]
    quote: Annotated[str, Doc("Quotes from these messages.")]
    superseded_by: Annotated[
        int | None, Doc("The message with the newer value; -1 if the application supplied it.")
    ]
    version: Annotated[int, Doc("The digest in force that contains it.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedItem:
    """An item without evidence; it is never shown to a model."""

    item: Any
    reason: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Important:
    """The important data of the digests in force: evidence, replaced and rejected items."""

    data: tuple[ImportantItem, ...]
    set_aside: tuple[RejectedItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestCount:
    """How many digests were created or undone."""

    digests: int
    more: Annotated[bool, Doc("Whether more may be pending.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestVersion:
    """A digest as a link of the chain."""

    version: int
    base: int | None
    first_seq: int
    last_seq: int
    status: str
    strategy: str
    made_by: str
    milliseconds: int
    created_at: datetime | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the log the digests in force cover."""

    entries: int
    tokens: int
    first_seq: Annotated[int | None, Doc("First message of the newest digest in force.")]
    last_seq: Annotated[int | None, Doc("Last message that a digest covers.")]
    open_entries: Annotated[int, Doc("Messages after it, which are in contexts word for word.")]
    open_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The chain of digests, stuck ones, coverage and durations."""

    conversation: str
    chain: Annotated[tuple[int, ...], Doc("From the newest completed digest back to the first.")]
    versions: tuple[DigestVersion, ...]
    stuck: Annotated[tuple[int, ...], Doc("Digests in progress for more than five minutes.")]
    window: Coverage
    pending: Annotated[bool, Doc("Whether a digest is pending.")]
    mean_milliseconds: float
    max_milliseconds: int


# -- statistics -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantStats:
    """The size of all conversations, and the cost of one answer in each."""

    conversations: int
    messages: int
    archived: int
    tokens: int
    oldest: Annotated[datetime | None, Doc("When the first conversation began.")]
    newest: Annotated[datetime | None, Doc("When something was last stored.")]
    lean: Cost
    with_tools: Cost
    whole: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPoint:
    """Consecutive turns and digests, compared with sending the full history."""

    since: datetime | None
    until: datetime | None
    turns: int
    sent: Annotated[int, Doc("Tokens of the turns' prompts.")]
    repeated: Annotated[int, Doc("Those of `sent` that repeat the start of the prompt before.")]
    digest_tokens: Annotated[int, Doc("Tokens that models read and wrote for digests.")]
    whole: Annotated[int, Doc("Tokens of the same prompts with the full history.")]
    whole_repeated: Annotated[int, Doc("Those of `whole` that the prompt before would have had.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What answers cost, compared with sending the full history in every prompt."""

    turns: int
    sent: Annotated[int, Doc("Tokens of all prompts.")]
    repeated: Annotated[
        int, Doc("Those of `sent` that repeat the start of the prompt before: a cache can hold it.")
    ]
    digest_tokens: Annotated[int, Doc("Tokens that models read and wrote for digests.")]
    whole: Annotated[int, Doc("Tokens of the same prompts with the full history.")]
    whole_repeated: Annotated[int, Doc("Those of `whole` that the prompt before would have had.")]
    price: Annotated[float, Doc("US dollars per million tokens.")]
    spent: Annotated[float, Doc("US dollars for `sent` and `digest_tokens`.")]
    saved: Annotated[float, Doc("US dollars; negative if the full history would cost less.")]
    complete: Annotated[bool, Doc("False if there are older turns that are not counted.")]
    data: Annotated[tuple[CostPoint, ...], Doc("Over time, oldest first.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckDigest:
    """A digest that has been in progress for too long."""

    conversation: str
    version: int
    created_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedDigest(StuckDigest):
    """A digest that failed, with no later success."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The digests of all conversations: pending, stuck, failed, and how long they take."""

    conversations: int
    digests: Annotated[dict[str, int], Doc("By status.", {"completed": 12, "failed": 1})]
    entries: int
    covered_entries: Annotated[int, Doc("Messages that a digest in force covers.")]
    mean_milliseconds: float
    max_milliseconds: int
    stuck: tuple[StuckDigest, ...]
    failed: tuple[FailedDigest, ...]
    pending_since: Annotated[datetime | None, Doc("When the oldest pending digest was due.")]
    due: Annotated[tuple[str, ...], Doc("Conversations whose digests are due now.")]
    waiting: Annotated[tuple[str, ...], Doc("Conversations that are retried later.")]
    events: Annotated[
        dict[str, int],
        Doc(
            "Number of events in this process: contexts, digests (`fold`), fallbacks, turns.",
            {"append": 40, "context": 12, "fold": 2},
        ),
    ]


# -- jobs and the caller ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An export or import in the background."""

    id: Annotated[str, Doc("", "5f1c0a52b7d94e6f")]
    kind: Literal["export", "import"]
    state: Literal["running", "done", "failed"]
    done: Annotated[int, Doc("Messages exported, or bytes imported.")]
    total: Annotated[int, Doc("0 while unknown.")]
    created_at: datetime
    finished_at: datetime | None
    file: Annotated[str | None, Doc("Path of the exported file.")]
    result: Annotated[Manifest | None, Doc("The manifest.")]
    error: FirnlineError | None
    report: Annotated[Report | None, Doc("What was found in another program's file.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits per request or per minute; 0 means no limit."""

    body_bytes: int
    import_bytes: int
    message_bytes: int
    messages_per_append: int
    page: int
    requests_per_minute: int
    tokens_per_minute: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """The server's version and configuration."""

    version: str
    store: Annotated[str, Doc("", "sqlite")]
    answers: Annotated[str | None, Doc("The model for turns; null: quotes from memory.")]
    proxy: Annotated[bool, Doc("Whether /v1 forwards to a model.")]
    upstream: Annotated[bool, Doc("Whether a turn can name a model of the endpoint behind /v1.")]
    embedder: Annotated[str, Doc("The embedder for search by meaning; none: words only.")]
    worker: Annotated[bool, Doc("Whether this process creates pending digests.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The caller's key, tenant and scopes, and the server's limits."""

    key: Annotated[str, Doc("The API key's id; `local` without a key.")]
    tenant: str
    scopes: tuple[str, ...]
    limits: ServerLimits
    server: ServerInfo
