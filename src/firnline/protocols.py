"""The seam between Firnline and what it is built on. No base class: these are protocols.

A store that passes `firnline.testing.StoreConformance` can be used in place of ours.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from firnline.log.entry import (
    Appended,
    Archived,
    Card,
    Digest,
    Entry,
    EntryDraft,
    Erased,
    Head,
    Idempotency,
    IndexMatch,
    Key,
    Lease,
    Project,
    Record,
    Scope,
    Topic,
)
from firnline.log.message import Message
from firnline.log.text import Json

EVERYTHING: Final = Scope()
"""The scope of a search in all that a tenant has."""

Clock: TypeAlias = Callable[[], datetime]
"""Tells the time, in UTC."""

Progress: TypeAlias = Callable[[int, int], None]
"""Told how much is done and how much there is; the second is 0 while that is not known."""


class Vector(NamedTuple):
    """The vector of an entry, or of a part of a long one; `body` is as `embedding` packs it."""

    seq: int
    part: int
    body: bytes


class TopicAssignments(NamedTuple):
    """A conversation's topics by id, how many entries were assigned to them, and the revision."""

    topics: Mapping[int, Topic]
    next_seq: int
    revision: int


class Finding(NamedTuple):
    """One line of a store's health check."""

    what: str
    state: Literal["ok", "warning", "broken"]
    detail: str


class Pending(NamedTuple):
    """How much is pending and in progress, in all conversations of all tenants or of one.

    `conversations` have pending digests, the first of them since `oldest`. `processing` digests are
    in progress: `leased` of them under a current lease, `stuck` for too long.
    """

    conversations: int = 0
    oldest: datetime | None = None
    processing: int = 0
    leased: int = 0
    stuck: int = 0
    cards: int = 0


@runtime_checkable
class PendingNotifier(Protocol):
    """An optional part of a store: it announces pending work, so that workers need not poll."""

    @property
    def listening(self) -> bool:
        """Whether it does just now; if not, workers look for work as often as without it."""
        ...

    def on_pending(
        self, callback: Callable[[], None], tenant: str | None = None
    ) -> Callable[[], None]:
        """Call `tell` whenever a tenant, or any, owes something, whichever process noted it.

        In the event loop that this was called in, until what it returns is called.
        """
        ...


# -- models and what is asked of them ---------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's answer, and what it cost by the provider's own count (0 if it does not say)."""

    message: Message
    model: str = ""
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ChatModel(Protocol):
    """A language model that takes messages in the OpenAI chat shape.

    Every failure is a `ModelError`. A model never decides what is stored, deleted or read.
    """

    @property
    def name(self) -> str:
        """The model's name, as its provider spells it; it also picks the tokenizer."""
        ...

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """One answer. With a JSON `schema` the answer's text is JSON that satisfies it."""
        ...

    def stream(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[str | Completion]:
        """The answer's text in pieces as it comes, and the whole `Completion` as the last item."""
        ...

    async def close(self) -> None:
        """Let go of connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """The task of a summarizer or an extractor.

    `entries` are the new ones; `earlier` the texts of the digests that come before them and go on
    in the new one, oldest first. `window` holds all entries of the span when it slides along the
    log; then what was said before `first_seq` is to be left out. `complaint` says why the last
    answer was not taken.
    """

    entries: tuple[Entry, ...]
    earlier: tuple[str, ...] = ()
    window: tuple[Entry, ...] = ()
    first_seq: int = 0
    words_min: int = 0
    words_max: int = 150
    tokens_max: int | None = None
    prompt: str = ""
    complaint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What came of a brief: a summary's text, or items of important data as JSON objects."""

    text: str = ""
    items: tuple[Mapping[str, Any], ...] = ()
    made_by: str = "custom"
    calls: int = 0
    spent_tokens: int = 0


Summarizer: TypeAlias = Callable[[Brief], Awaitable[Written]]
"""Writes a summary. Ours and models' are checked by the same code afterwards."""

Extractor: TypeAlias = Callable[[Brief], Awaitable[Written]]
"""Finds important data in the new entries, each item with its evidence."""


class Retriever(Protocol):
    """Finds documents for a question. What it returns is packed into the room that is left."""

    def __call__(self, question: str, *, reserved_tokens: int) -> Awaitable[Sequence[str]]:
        """Documents, best first; `reserved_tokens` of the model's window are taken already."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors of which near ones mean the same. Every failure is a `ModelError`.

    What it makes is a view of the log: it can be made again, by this embedder or by another.
    """

    @property
    def name(self) -> str:
        """Model and version. Vectors of different names are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector for each text, all of one dimension; the event loop is not blocked."""
        ...

    async def close(self) -> None:
        """Let go of connections and memory."""


class Event(NamedTuple):
    """Something that happened: ``append``, ``context``, ``fold``, ``fold_failed``, ``turn``...

    Names and numbers, never a word of a message. See docs/observability.md for the list.
    """

    name: str
    tenant: str
    conversation: str
    values: Mapping[str, float | str]


Observer: TypeAlias = Callable[[Event], None]
"""Is told of events as they happen; must be quick. What it raises is logged and harms nothing."""


# -- the store --------------------------------------------------------------------------------


class Store(Protocol):
    """A place that keeps every message of every conversation, in order, for good.

    What every store promises:

    - An append is all or nothing, and durable when it returns.
    - Sequence numbers start at 0 and have no holes; concurrent appends are all kept, each batch
      together, and one caller's appends stay in its order.
    - What was acknowledged is read back byte for byte or not at all: damage raises `StoreCorrupt`.
    - Digests lie beside entries and never replace or remove one. Only `erase` destroys.
    - Nothing is ever seen under another tenant or another conversation than it was written under.
    - A store counts no tokens, plans nothing and calls no model; it keeps the counts it is given.

    Every failure is a `StoreError`; every refusal an `InputError` or a `ConflictError`.
    """

    async def open(self) -> None:
        """Make the store ready: create or migrate it. A newer one raises `StoreTooNew`."""

    async def close(self) -> None:
        """Finish what is under way and let go of everything. May be called twice."""

    # -- the log ------------------------------------------------------------------------------

    async def append(
        self,
        key: Key,
        drafts: Sequence[EntryDraft],
        *,
        expected_seq: int | None = None,
        idempotency: Idempotency | None = None,
    ) -> Appended:
        """Add messages to the end of a conversation; the first append creates it.

        `expected_seq` is the sequence number the first new message must get; if it would get
        another, nothing is written and `ConflictError` is raised. An idempotency key seen before
        gives back what was stored then (`replayed`), or raises `KeyReused` if the fingerprint is
        another; the key is written in the same transaction as the messages.
        """
        ...

    async def read(
        self, key: Key, first_seq: int = 0, last_seq: int | None = None, limit: int | None = None
    ) -> list[Entry]:
        """Entries from `first_seq` to `last_seq`, both included, at most `limit`, in order.

        Archived ones among them. A conversation that does not exist has no entries.
        """
        ...

    async def newest(self, key: Key, tokens_max: int) -> list[Entry]:
        """The longest run of newest entries whose tokens add up to at most `tokens_max`, in order.

        Costs what it returns, not what the conversation holds.
        """
        ...

    async def at(self, key: Key, seqs: Sequence[int]) -> list[Entry]:
        """The entries at these sequence numbers, in order; those that do not exist are left out."""
        ...

    async def dated(
        self, key: Key, since: datetime, until: datetime, limit: int, first_seq: int = 0
    ) -> list[Entry]:
        """Entries from `first_seq` on whose messages were said in [since, until), by number."""
        ...

    async def tokens_between(self, key: Key, first_seq: int, last_seq: int) -> int:
        """Tokens of the entries from `first_seq` to `last_seq`, both included: two lookups."""
        ...

    async def records(self, key: Key, first_seq: int, limit: int) -> list[Record]:
        """Entries as they are stored, unchecked, for `verify`; what is damaged says so in them."""
        ...

    async def head(self, key: Key) -> Head | None:
        """Where the conversation stands, or None if there is none."""
        ...

    # -- conversations and projects -----------------------------------------------------------

    async def conversations(
        self, tenant: str, *, project: str | None = None, after: str = "", limit: int = 100
    ) -> list[Head]:
        """The tenant's conversations by name, those behind `after`."""
        ...

    async def describe(
        self,
        key: Key,
        *,
        project: str | None = None,
        metadata: dict[str, Json] | None = None,
        strategy: dict[str, Json] | None = None,
        known: Head | None = None,
    ) -> Head:
        """Set what is not None; creates the conversation if there is none.

        `known` is the head by which the caller decided: `ConflictError`, and nothing is set or
        created, if the conversation is another one or described otherwise by now, or no more.
        """
        ...

    async def pin(self, key: Key, seq: int, *, pinned: bool = True) -> None:
        """Mark an entry as one that every context shows, or take the mark away.

        Entries whose draft is `pinned` are marked in the append's own transaction. `InputError` if
        there is no such entry.
        """

    async def pinned(self, key: Key) -> list[Entry]:
        """The pinned entries in order; costs what it returns."""
        ...

    async def projects(self, tenant: str) -> list[Project]:
        """The tenant's projects by name."""
        ...

    async def save_project(self, tenant: str, project: Project) -> None:
        """Create the project, or replace what is known of it."""

    async def tenants(self) -> list[str]:
        """Every tenant that has a conversation, a project or a card, in the order of its bytes.

        For work on the whole store, never on a caller's behalf. The empty name is of no tenant: it
        is there if cards belong to none.
        """
        ...

    # -- search -------------------------------------------------------------------------------

    async def search(
        self, tenant: str, query: str, *, scope: Scope = EVERYTHING, limit: int = 20
    ) -> list[IndexMatch]:
        """Where any of the query's words were said, best first, among the tenant's entries.

        The words of the entry itself count most; those of the entry before it count, too, as do
        month, year and weekday if the query names a date. The query is plain text: no character in
        it has a meaning of its own. Every acknowledged entry can be found, archived or not;
        Chinese, Japanese and Korean from two characters on.
        """
        ...

    async def rebuild_index(self, progress: Progress | None = None) -> None:
        """Make the search index anew from the log."""

    # -- vectors: a view of the log, made by an embedder --------------------------------------

    async def embedded(self, key: Key, model: str) -> int:
        """How many of the conversation's first entries have been through this embedder."""
        ...

    async def put_vectors(
        self, key: Key, model: str, vectors: Sequence[Vector], *, first_seq: int, next_seq: int
    ) -> bool:
        """Keep the vectors of the entries from `first_seq` to before `next_seq`.

        False, and nothing kept, unless `first_seq` is where this embedder had come to: somebody
        else was faster, or the conversation was erased. When the end of the log is reached, what
        other embedders left behind is dropped.
        """
        ...

    async def vectors(self, key: Key, model: str, first_seq: int, limit: int) -> list[Vector]:
        """Vectors from `first_seq` on, by sequence number; of an entry all or none."""
        ...

    async def vectors_at(self, key: Key, model: str, seqs: Sequence[int]) -> list[Vector]:
        """The vectors of these entries, by sequence number."""
        ...

    async def unembedded(self, tenant: str, model: str, limit: int = 100) -> list[Key]:
        """Conversations of the tenant with entries that have not been through this embedder."""
        ...

    # -- topics: a view of the log, too -------------------------------------------------------

    async def topics(self, key: Key) -> TopicAssignments:
        """The conversation's topics, and how many of its first entries have been assigned."""
        ...

    async def assign(
        self,
        key: Key,
        topics: Sequence[Topic],
        members: Mapping[int, int | None],
        *,
        revision: int,
        next_seq: int | None = None,
    ) -> int:
        """Save topics and the topics of entries, in one step; returns the new revision.

        `members` maps sequence numbers to topics; None takes an entry out. Entries up to before
        `next_seq` are assigned then. `ConflictError` unless `revision` is the one that `topics`
        gave: whoever decided by an older state must look again.
        """
        ...

    async def members(self, key: Key, topic: int, first_seq: int = 0) -> list[int]:
        """The sequence numbers of a topic's entries from `first_seq` on."""
        ...

    async def topics_of(self, key: Key, seqs: Sequence[int]) -> dict[int, int]:
        """The topics of entries that have one."""
        ...

    # -- digests and leases -------------------------------------------------------------------

    async def lease(self, key: Key, owner: str, seconds: float) -> Lease | None:
        """Take the right to digest the conversation, or None while somebody else holds it.

        A lease past its time is taken over. Each one has a greater fence than all before it.
        """
        ...

    async def renew(self, lease: Lease, seconds: float) -> Lease:
        """Extend a lease; `ConflictError` if it was taken over or released."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give a lease back; nothing happens if it is no longer held."""

    async def begin_digest(self, lease: Lease, digest: Digest) -> Digest:
        """Record that a digest is being made: status processing, the next version.

        Whatever an earlier holder left processing becomes failed. `ConflictError` if the lease is
        no longer the newest, or if `digest.base` is not the newest completed version (of the
        digest's topic, if it has one).
        """
        ...

    async def finish_digest(self, lease: Lease, digest: Digest) -> Digest:
        """Complete or fail a digest that this lease began; `ConflictError` if it was overtaken."""
        ...

    async def undo_digest(self, lease: Lease, version: int) -> Digest:
        """Take the newest completed digest out of force; it stays, with the status undone.

        `ConflictError` if the lease is no longer the newest, or the version is not the newest
        completed one (of its topic, if it has one).
        """
        ...

    async def fail_damaged(self, lease: Lease) -> int:
        """Mark the conversation's digests that cannot be read as failed; returns how many.

        They can be made again from the log; until then those before them are in force.
        """
        ...

    async def digests(self, key: Key, versions: Sequence[int] | None = None) -> list[Digest]:
        """The conversation's digests by version: all of them, or those asked for that exist."""
        ...

    async def newest_digest(self, key: Key, topic: int | None = None) -> Digest | None:
        """The newest completed digest, of a topic or of none; costs the same for many or few."""
        ...

    async def mark_pending(self, key: Key, due: datetime, *, postpone: bool = False) -> None:
        """Note that the conversation is to be digested from `due` on.

        What is owed already keeps its time, unless it is to be postponed. Nothing happens if there
        is no such conversation.
        """

    async def due(self, now: datetime, limit: int = 100, tenant: str | None = None) -> list[Key]:
        """The conversations of a tenant, or of all, whose digesting is due, longest due first."""
        ...

    async def pending(
        self, now: datetime, *, stuck_before: datetime, cards: str, tenant: str | None = None
    ) -> Pending:
        """What there is to do at `now`, for whoever watches the store; cheap enough for that.

        Of one tenant, if it is named. Stuck is what was begun before `stuck_before`; `cards` is the
        kind of card that is counted.
        """
        ...

    async def clear_pending(self, key: Key, last_seq: int) -> bool:
        """Nothing is owed any more, unless there are entries behind `last_seq`; then False."""
        ...

    async def put_digests(self, key: Key, digests: Sequence[Digest]) -> None:
        """Write digests as they are into a conversation that has none: import and migration."""

    # -- cards: what edges keep beside the log ------------------------------------------------

    async def put_cards(self, cards: Sequence[Card], *, absent: bool = False) -> int:
        """Write cards in one transaction, all or none; returns how many were written.

        A card of the same tenant, kind and name is replaced, or with `absent` left as it is. A card
        of a conversation that its tenant does not have is not written, so that nothing of an erased
        one comes back. Each gets the store's time, whatever its `updated_at` says. Kinds and names
        are names as conversations have; a body has up to `limits.CARD_BYTES_MAX` bytes.
        """
        ...

    async def cards(
        self,
        kind: str,
        *,
        tenant: str | None = None,
        names: Sequence[str] | None = None,
        prefix: str = "",
        after: str = "",
        limit: int = 100,
    ) -> list[Card]:
        """Cards of a kind, by tenant and name, at most `limit`.

        Of these names, if any are given, that begin with `prefix` and come behind `after`. Without
        a tenant, those of all, for work on the server's own behalf, never on a caller's; then
        `after` is an `InputError`, for a name alone is not a place to go on from.
        """
        ...

    async def kinds(self) -> list[str]:
        """Every kind of which any tenant has a card, in the order of its bytes."""
        ...

    async def drop_cards(
        self,
        kind: str,
        tenant: str,
        *,
        names: Sequence[str] | None = None,
        prefix: str | None = None,
    ) -> int:
        """Drop a tenant's cards of a kind by names or by prefix; returns how many there were.

        ``prefix=""`` drops them all; `InputError` if neither is given. Bytes of what was dropped or
        replaced can be left in the store's files until they are used again; `erase` leaves none.
        """
        ...

    # -- keeping ------------------------------------------------------------------------------

    async def archive(self, key: Key, first_seq: int, last_seq: int) -> Archived:
        """Move live entries of the span into compressed segments; readers see no change."""
        ...

    async def restore(self, key: Key, first_seq: int, last_seq: int) -> int:
        """Move the segments that touch the span back; returns how many entries became live."""
        ...

    async def erase(self, key: Key) -> Erased:
        """Destroy a conversation and all that is derived from it; no byte of it is left on disk.

        Raises `UnknownConversation` if there is none. If a byte may be left (a full disk, a reader
        that does not let go), raises `StoreUnavailable`; erasing again or reopening finishes it.
        """
        ...

    async def backup(self, path: Path, progress: Progress | None = None) -> None:
        """Write a consistent copy of the whole store to a new file while it goes on working."""

    def owns(self, path: Path) -> bool:
        """Whether `path` is one of the store's own files, which nobody else may open."""
        ...

    async def check(self, *, thorough: bool = False) -> list[Finding]:
        """The store's health; `thorough` reads every page."""
        ...
