"""What the server answers, where it is not a value of the library itself.

Whatever it can be is: an entry is `firnline.Entry`, a digest `firnline.Digest`, and so on. These
are the rest, with the fields that the OpenAPI document names.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from firnline.context.budget import Budget
from firnline.context.context import Accounting, LeftOut
from firnline.engine.digest_history import State
from firnline.engine.stats import Cost
from firnline.errors import FirnlineError
from firnline.log.entry import Entry, Head, Hit
from firnline.log.message import Message
from firnline.transfer.importer import Report
from firnline.transfer.jsonl import Manifest

# -- conversations and projects ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """How contexts are planned; `own`: by this conversation's own choice."""

    name: str
    parameters: dict[str, Any]
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """All about a conversation: its head, strategy, state, digests in force and pins."""

    head: Head
    strategy: Planning
    state: State
    digests: int
    in_force: tuple[int, ...]
    pinned: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A conversation with what its memory holds."""

    conversation: str
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A project on the dashboard; `newest` are some of its conversations, the newest first."""

    name: str
    status: str
    schedule: str
    task: str
    metadata: dict[str, Any]
    conversations: int
    entries: int
    tokens: int
    owed: int
    last_activity: datetime | None
    newest: tuple[Head, ...]
    context: Situation | None


# -- contexts and turns -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a context; `seqs` are the entries that are in it word for word."""

    name: str
    tokens: int
    messages: int
    seqs: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a model should see of a conversation: `messages` are to be sent as they are.

    In Anthropic's shape, `system` goes beside them.
    """

    conversation: str
    strategy: str
    reason: str
    budget: Budget
    tokens: int
    system: str | list[dict[str, Any]] | None
    messages: list[dict[str, Any]]
    accounting: Accounting
    sections: tuple[Section, ...]
    seqs: tuple[int, ...]
    left_out: tuple[LeftOut, ...]
    degraded: tuple[str, ...]
    crowded: bool
    stability: float | None
    hits: tuple[Hit, ...]
    explain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A question and its answer, both stored; `calls` is 0 if an earlier try had the answer."""

    conversation: str
    question: Entry
    answer: Entry
    text: str
    calls: int
    model: str
    prompt_tokens: int
    completion_tokens: int
    degraded: tuple[str, ...]
    tool_results: tuple[Entry, ...]
    context_tokens: int
    accounting: Accounting


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTurn:
    """What is known of the prompt that an answer came from; both are numbers of entries."""

    answer: int
    question: int | None
    asked: str
    model: str
    via: str
    strategy: str
    tokens: int
    messages: int
    stability: float | None
    degraded: tuple[str, ...]
    recorded_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """A message as the model got it: the entry `seq` word for word, or `of` in part."""

    section: str
    tokens: int
    seq: int | None
    of: int | None
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class SentSection:
    """A part of a prompt."""

    name: str
    tokens: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PastHit:
    """An entry that was recalled for the question, and what its score is made of."""

    conversation: str
    seq: int
    score: float
    parts: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The exact prompt that an answer came from; `proved`: it has the hash that was recorded."""

    answer: int
    question: int | None
    asked: str
    model: str
    via: str
    strategy: str
    tokens: int
    messages: int
    stability: float | None
    degraded: tuple[str, ...]
    recorded_at: datetime | None
    before: int | None
    reason: str
    budget: Budget
    accounting: Accounting
    sections: tuple[SentSection, ...]
    left_out: tuple[LeftOut, ...]
    hits: tuple[PastHit, ...]
    calls: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    sha256: str
    proved: bool
    prompt: tuple[SentMessage, ...]


# -- what memory holds ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportantItem:
    """One piece of important data, its evidence, and the digest `version` that it is in."""

    field: str
    name: str
    value: Any
    seqs: tuple[int, ...]
    quote: str
    superseded_by: int | None
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """What was found without evidence: no model is shown it."""

    item: Any
    reason: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Important:
    """The important data of the digests in force, with evidence and what was replaced."""

    data: tuple[ImportantItem, ...]
    set_aside: tuple[SetAside, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """How many digests were made, and whether more may be to do."""

    digests: int
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
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
class Progress:
    """How far digests reach into the log; what is open is shown word for word."""

    entries: int
    tokens: int
    first_seq: int | None
    last_seq: int | None
    open_entries: int
    open_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The version chain, what is stuck, how far it got and how long it took."""

    conversation: str
    chain: tuple[int, ...]
    versions: tuple[Version, ...]
    stuck: tuple[int, ...]
    window: Progress
    owed: bool
    mean_milliseconds: float
    max_milliseconds: int


# -- numbers ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantStats:
    """How large all conversations are, and what one answer in each of them costs."""

    conversations: int
    messages: int
    archived: int
    tokens: int
    oldest: datetime | None
    newest: datetime | None
    lean: Cost
    with_tools: Cost
    whole: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Some turns one after the other: what they sent, and what the whole history would have."""

    since: datetime | None
    until: datetime | None
    turns: int
    sent: int
    whole: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What answers cost in dollars, and what they would have with the whole history each time."""

    turns: int
    sent: int
    whole: int
    price: float
    spent: float
    saved: float
    complete: bool
    data: tuple[Spent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A digest that has been in the making for too long, or that failed: `error` says why."""

    conversation: str
    version: int
    created_at: datetime | None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The digesting of all conversations."""

    conversations: int
    digests: dict[str, int]
    entries: int
    covered_entries: int
    mean_milliseconds: float
    max_milliseconds: int
    stuck: tuple[Trouble, ...]
    failed: tuple[Trouble, ...]
    owed_since: datetime | None
    due: tuple[str, ...]
    waiting: tuple[str, ...]
    events: dict[str, int]


# -- jobs and callers -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work that goes on: so much is `done`, entries of an export, bytes of an import."""

    id: str
    kind: Literal["export", "import"]
    state: Literal["running", "done", "failed"]
    done: int
    total: int
    created_at: datetime
    finished_at: datetime | None
    file: str | None
    result: Manifest | None
    error: FirnlineError | None
    report: Report | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one request or one minute may hold; 0 is no limit."""

    body_bytes: int
    import_bytes: int
    message_bytes: int
    messages_per_append: int
    page: int
    requests_per_minute: int
    tokens_per_minute: int


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the server is."""

    version: str
    store: str
    answers: str | None
    proxy: bool
    embedder: str
    worker: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Who is asking: the key, its tenant and scopes, the limits, and what the server is."""

    key: str
    tenant: str
    scopes: tuple[str, ...]
    limits: Limits
    server: About
