"""The interfaces that Firnline depends on, as protocols: there is no base class to inherit.

A store that passes `firnline.testing.StoreConformance` can replace the built-in ones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
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
    Erasure,
    Head,
    Idempotency,
    IndexMatch,
    Key,
    Lease,
    Project,
    Record,
    Scope,
    Topic,
    UsedKey,
)
from firnline.log.message import Message
from firnline.log.text import Json

EVERYTHING: Final = Scope()
"""The scope of a search in everything that a tenant has."""

Clock: TypeAlias = Callable[[], datetime]
"""Returns the current time in UTC."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the amount done and the total; the total is 0 while it is unknown."""


class EmbeddedTo(NamedTuple):
    """How many of a conversation's first entries an embedder has processed.

    `life` tells the conversation from an erased one with the same name.
    """

    next_seq: int
    life: int | str


class Vector(NamedTuple):
    """The vector of an entry, or of a part of a long one; `body` is packed by `embedding`."""

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


class Damage(NamedTuple):
    """Rows outside the log that were changed or are missing: which part, and what is wrong.

    The part is ``about``, ``pins``, ``digests``, ``topics``, ``keys`` or ``projects``.
    """

    part: str
    what: str

    def __str__(self) -> str:
        return self.what


class Known(NamedTuple):
    """What is known of damaged rows from elsewhere; `projects` are a tenant's.

    `end` is the last entry of the log.
    """

    project: str | None = None
    person: str | None = None
    metadata: dict[str, Json] = {}  # noqa: RUF012 - never changed
    strategy: dict[str, Json] | None = None
    pins: Sequence[int] = ()
    projects: Sequence[Project] = ()
    end: Entry | None = None


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
    """An optional part of a store: it announces pending work, so workers need not poll."""

    @property
    def listening(self) -> bool:
        """Whether it is listening now; if not, workers poll as often as without it."""
        ...

    def on_pending(
        self, callback: Callable[[], None], tenant: str | None = None
    ) -> Callable[[], None]:
        """Call `callback` when a tenant (default: any) has pending work, from any process.

        It is called in the current event loop, until the returned function is called.
        """
        ...


# -- models -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's answer and its tokens as the provider counted them (0 if it reports none)."""

    message: Message
    model: str = ""
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ChatModel(Protocol):
    """A language model that takes messages in the OpenAI chat format.

    Every failure is a `ModelError`. A model never decides what is stored, deleted or read.
    """

    @property
    def name(self) -> str:
        """The provider's name for the model; it also selects the tokenizer."""
        ...

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Return one answer. With a JSON `schema`, its text is JSON that satisfies the schema."""
        ...

    def stream(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[str | Completion]:
        """Yield the answer's text in pieces as it arrives, then the whole `Completion`."""
        ...

    async def close(self) -> None:
        """Close the connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """The task of a summarizer or an extractor.

    `entries` are the new entries. `earlier` are the texts of the digests before them that the new
    one replaces, oldest first. For a sliding window, `window` holds all entries of the span, and
    the result must omit what was said before `first_seq`. `complaint` is the reason why the last
    answer was rejected.
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
    """The result of a brief: a summary's text, or items of important data as JSON objects."""

    text: str = ""
    items: tuple[Mapping[str, Any], ...] = ()
    made_by: str = "custom"
    calls: int = 0
    spent_tokens: int = 0


Summarizer: TypeAlias = Callable[[Brief], Awaitable[Written]]
"""Writes a summary. The same code checks every summary afterwards, built-in or from a model."""

Extractor: TypeAlias = Callable[[Brief], Awaitable[Written]]
"""Finds important data in the new entries, each item with its evidence."""


class Retriever(Protocol):
    """Finds documents for a question. They are packed into the remaining tokens of the context."""

    def __call__(self, question: str, *, reserved_tokens: int) -> Awaitable[Sequence[str]]:
        """Return documents, best first; `reserved_tokens` of the model's window are in use."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors; similar texts get near vectors. Every failure is a `ModelError`.

    Vectors are a view of the log: they can be rebuilt, by this embedder or another.
    """

    @property
    def name(self) -> str:
        """The model and its version. Vectors with different names are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text, all of one dimension, without blocking the event loop."""
        ...

    async def close(self) -> None:
        """Close the connections and release the memory."""


class Event(NamedTuple):
    """Something that happened: ``append``, ``context``, ``fold``, ``fold_failed``, ``turn``...

    It has names and numbers, never message text. See docs/observability.md for the list.
    """

    name: str
    tenant: str
    conversation: str
    values: Mapping[str, float | str]


Observer: TypeAlias = Callable[[Event], None]
"""Called with each event; must be fast. Its exceptions are logged and otherwise ignored."""


# -- the store --------------------------------------------------------------------------------


class Store(Protocol):
    """Stores every message of every conversation, in order, permanently.

    Every store guarantees:

    - An append is all or nothing, and durable when it returns.
    - Sequence numbers start at 0 and have no gaps. Concurrent appends are all stored, each batch
      contiguous, and one caller's appends stay in their order.
    - Acknowledged data is read back byte for byte, or the read raises `StoreCorrupt`.
    - Digests are stored next to entries and never replace or remove one. Only `erase` deletes.
    - Data is never visible under another tenant or conversation than it was written under.
    - A store counts no tokens, plans nothing and calls no model; it stores the counts it is given.

    Every failure is a `StoreError`; invalid calls raise `InputError`, conflicts `ConflictError`.
    """

    async def open(self) -> None:
        """Open the store; create or migrate it first. A newer schema raises `StoreTooNew`."""

    async def close(self) -> None:
        """Finish running operations and release all resources. May be called twice."""

    # -- the log ------------------------------------------------------------------------------

    async def append(
        self,
        key: Key,
        drafts: Sequence[EntryDraft],
        *,
        expected_seq: int | None = None,
        idempotency: Idempotency | None = None,
        person: str | None = None,
    ) -> Appended:
        """Add messages to the end of a conversation; the first append creates it.

        `expected_seq` is the sequence number that the first new message must get; otherwise
        nothing is written and `ConflictError` is raised. A repeated idempotency key returns what
        was stored the first time (`replayed`), or raises `KeyReused` if the fingerprint differs.
        The key is written in the same transaction as the messages, and so is `person`, if the
        conversation has none yet: if it is with another person, `ConflictError` is raised.
        """
        ...

    async def used_keys(self, key: Key, *, after: str = "", limit: int = 100) -> list[UsedKey]:
        """Return the idempotency keys of a conversation in byte order, those after `after`."""
        ...

    async def put_used_keys(self, key: Key, used: Sequence[UsedKey]) -> None:
        """Write idempotency keys unchanged: migration. Those that are known already are kept.

        `InputError` if entries of a key do not exist.
        """

    async def read(
        self, key: Key, first_seq: int = 0, last_seq: int | None = None, limit: int | None = None
    ) -> list[Entry]:
        """Return entries from `first_seq` to `last_seq`, inclusive, at most `limit`, in order.

        Archived entries are included. A conversation that does not exist has no entries.
        """
        ...

    async def newest(self, key: Key, tokens_max: int) -> list[Entry]:
        """Return as many of the newest entries as fit into `tokens_max` tokens, in order.

        The cost depends on the result, not on the length of the conversation.
        """
        ...

    async def at(self, key: Key, seqs: Sequence[int]) -> list[Entry]:
        """Return the entries at these sequence numbers, in order; missing ones are skipped."""
        ...

    async def dated(
        self, key: Key, since: datetime, until: datetime, limit: int, first_seq: int = 0
    ) -> list[Entry]:
        """Return entries from `first_seq` on that are dated in [since, until), in order."""
        ...

    async def tokens_between(self, key: Key, first_seq: int, last_seq: int) -> int:
        """Return the tokens of the entries `first_seq` to `last_seq`, inclusive: two lookups."""
        ...

    async def records(self, key: Key, first_seq: int, limit: int) -> list[Record]:
        """Return raw records for `verify`, unchecked; damaged ones are marked as such."""
        ...

    async def head(self, key: Key) -> Head | None:
        """Return the state of the conversation, or None if it does not exist."""
        ...

    # -- conversations and projects -----------------------------------------------------------

    async def conversations(
        self,
        tenant: str,
        *,
        project: str | None = None,
        person: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Head]:
        """Return the tenant's conversations by name, those after `after`."""
        ...

    async def recent(
        self, tenant: str, project: str | None, *, after: Head | None = None, limit: int = 100
    ) -> list[Head]:
        """Return conversations, the most recently updated first, those after `after`.

        Those of a project, or without one all of the tenant's.
        Those that were updated at the same time are in order of their names.
        """
        ...

    async def describe(
        self,
        key: Key,
        *,
        project: str | None = None,
        person: str | None = None,
        metadata: dict[str, Json] | None = None,
        strategy: dict[str, Json] | None = None,
        created_at: datetime | None = None,
        known: Head | None = None,
    ) -> Head:
        """Set the values that are not None; creates the conversation if it does not exist.

        An empty `person` means none.

        `created_at` is for a conversation that was created elsewhere: import and migration. Without
        entries, it is also when the conversation was updated.
        `known` is the head that the caller has read. If the conversation was described again,
        erased or recreated since, `ConflictError` is raised and nothing is set or created.
        """
        ...

    async def pin(self, key: Key, seq: int, *, pinned: bool = True) -> None:
        """Pin an entry, so that every context shows it, or unpin it.

        Entries whose draft is `pinned` are pinned in the transaction of the append. `InputError`
        if there is no such entry.
        """

    async def pinned(self, key: Key) -> list[Entry]:
        """Return the pinned entries in order; the cost depends on their number."""
        ...

    async def projects(self, tenant: str) -> list[Project]:
        """Return the tenant's projects by name."""
        ...

    async def save_project(self, tenant: str, project: Project) -> None:
        """Create or replace the project."""

    async def tenants(self) -> list[str]:
        """Return every tenant that has a conversation, a project or a card, in byte order.

        For work on the whole store, never on behalf of a caller. The empty name stands for cards
        that belong to no tenant.
        """
        ...

    # -- search -------------------------------------------------------------------------------

    async def search(
        self, tenant: str, query: str, *, scope: Scope = EVERYTHING, limit: int = 20
    ) -> list[IndexMatch]:
        """Return the tenant's entries that match any word of the query, best first.

        The words of the entry itself count most. The words of the entry before it count, too, as
        do month, year and weekday if the query names a date. The query is plain text without
        operators. Every acknowledged entry can be found, archived or not; Chinese, Japanese and
        Korean by two or more characters.
        """
        ...

    async def rebuild_index(self, progress: Progress | None = None) -> None:
        """Rebuild the search index from the log."""

    # -- vectors: a view of the log, made by an embedder --------------------------------------

    async def embedded(self, key: Key, model: str) -> int:
        """Return how many of the conversation's first entries this embedder has processed."""
        ...

    async def embedders(self, key: Key) -> dict[str, int]:
        """Return the same for each embedder that has processed entries of the conversation."""
        ...

    async def embedded_in(self, tenant: str, model: str, scope: Scope) -> dict[str, EmbeddedTo]:
        """Return the same for one embedder and the conversations in scope that have any.

        Only the scope's conversation, project and person count.
        """
        ...

    async def put_vectors(
        self, key: Key, model: str, vectors: Sequence[Vector], *, first_seq: int, next_seq: int
    ) -> bool:
        """Store the vectors of the entries from `first_seq` up to `next_seq`, exclusive.

        Returns False and stores nothing unless this embedder's progress is at `first_seq`: another
        process was faster, or the conversation was erased. At the end of the log, the vectors of
        other embedders are deleted.
        """
        ...

    async def vectors(self, key: Key, model: str, first_seq: int, limit: int) -> list[Vector]:
        """Return vectors from `first_seq` on, by sequence number; an entry's parts together."""
        ...

    async def vectors_at(self, key: Key, model: str, seqs: Sequence[int]) -> list[Vector]:
        """Return the vectors of these entries, by sequence number."""
        ...

    async def unembedded(self, tenant: str, model: str, limit: int = 100) -> list[Key]:
        """Return the tenant's conversations with entries that this embedder has not processed."""
        ...

    # -- topics: also a view of the log -------------------------------------------------------

    async def topics(self, key: Key) -> TopicAssignments:
        """Return the conversation's topics, and how many of its first entries are assigned."""
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
        """Save topics and the topics of entries atomically; returns the new revision.

        `members` maps sequence numbers to topics; None removes an entry from its topic. After
        this, the entries before `next_seq` are assigned. `ConflictError` unless `revision` is the
        current one: a caller with an older state must read `topics` again.
        """
        ...

    async def members(self, key: Key, topic: int, first_seq: int = 0) -> list[int]:
        """Return the sequence numbers of a topic's entries from `first_seq` on."""
        ...

    async def topics_of(self, key: Key, seqs: Sequence[int]) -> dict[int, int]:
        """Return the topics of these entries; entries without one are skipped."""
        ...

    # -- digests and leases -------------------------------------------------------------------

    async def lease(self, key: Key, owner: str, seconds: float) -> Lease | None:
        """Acquire the right to digest the conversation; None while another process holds it.

        One that is expired or of a wrong clock is taken over. A lease's fence exceeds all earlier.
        """
        ...

    async def renew(self, lease: Lease, seconds: float) -> Lease:
        """Extend a lease; `ConflictError` if it was taken over or released."""
        ...

    async def release(self, lease: Lease) -> None:
        """Release a lease; does nothing if it is no longer held."""

    async def begin_digest(self, lease: Lease, digest: Digest) -> Digest:
        """Record that a digest is in progress: status ``processing``, the next version.

        Digests that an earlier holder left in progress become ``failed``. `ConflictError` if the
        lease is no longer the newest, or if `digest.base` is not the newest completed version (of
        the digest's topic, if it has one).
        """
        ...

    async def finish_digest(self, lease: Lease, digest: Digest) -> Digest:
        """Complete or fail a digest that this lease began; `ConflictError` if it was lost."""
        ...

    async def undo_digest(self, lease: Lease, version: int) -> Digest:
        """Take the newest completed digest out of force; it is kept with the status ``undone``.

        `ConflictError` if the lease is no longer the newest, or the version is not the newest
        completed one (of its topic, if it has one).
        """
        ...

    async def fail_damaged(self, lease: Lease) -> int:
        """Mark the conversation's unreadable digests as failed; returns how many there were.

        They can be rebuilt from the log; until then the digests before them are in force.
        """
        ...

    async def digests(self, key: Key, versions: Sequence[int] | None = None) -> list[Digest]:
        """Return the conversation's digests by version: all, or the existing ones of `versions`."""
        ...

    async def newest_digest(self, key: Key, topic: int | None = None) -> Digest | None:
        """Return the newest completed digest, of a topic or without one, in constant time."""
        ...

    async def mark_pending(self, key: Key, due: datetime, *, postpone: bool = False) -> None:
        """Record that the conversation has pending digests, due at `due`.

        A conversation that is pending already keeps its time, unless `postpone` is set. Does
        nothing if the conversation does not exist.
        """

    async def due(
        self, now: datetime, limit: int = 100, tenants: Collection[str] | None = None
    ) -> list[Key]:
        """Return conversations (of all tenants) with digests that are due, or marked too late."""
        ...

    async def pending(
        self, now: datetime, *, stuck_before: datetime, cards: str, tenant: str | None = None
    ) -> Pending:
        """Return what is pending at `now`, for monitoring; cheap enough to be polled.

        For one tenant, or for all. Digests that began before `stuck_before` are stuck; `cards` is
        the kind of card to count.
        """
        ...

    async def clear_pending(self, key: Key, last_seq: int) -> bool:
        """Clear the pending mark; returns False if there are entries after `last_seq`."""
        ...

    async def unread(self, tenant: str, person: str | None = None, limit: int = 100) -> list[Head]:
        """Return conversations of a person that `mark_read` does not know to be read, by name.

        Of any person if it is None. An append, or a description with a person, makes a conversation
        with entries unread, in the same transaction.
        """
        ...

    async def mark_read(self, tenant: str, read: Mapping[str, int]) -> None:
        """Conversations are read, unless they have more entries than is said here by now."""

    async def put_digests(self, key: Key, digests: Sequence[Digest]) -> None:
        """Write digests unchanged into a conversation without digests: import and migration."""

    # -- cards: data of edges next to the log -------------------------------------------------

    async def put_cards(
        self, cards: Sequence[Card], *, absent: bool = False, keep_times: bool = False
    ) -> int:
        """Write cards in one transaction, all or none; returns how many were written.

        A card of the same tenant, kind and name is replaced, or kept if `absent` is set. A card of
        a conversation that does not exist is not written, so nothing of an erased conversation
        comes back. The store sets `updated_at`, unless `keep_times` is set: migration. Kinds and
        names follow the rules of conversation names; a body has up to `limits.CARD_BYTES_MAX`
        bytes.
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
        """Return cards of a kind, by tenant and name, at most `limit`.

        `names` selects these cards, `prefix` those whose names begin with it, `after` those that
        sort after it. Without a tenant, the cards of all tenants are returned, for the server's
        own work, never on behalf of a caller; then `after` raises `InputError`.
        """
        ...

    async def kinds(self) -> list[str]:
        """Return every kind of card that any tenant has, in byte order."""
        ...

    async def drop_cards(
        self,
        kind: str,
        tenant: str,
        *,
        names: Sequence[str] | None = None,
        prefix: str | None = None,
    ) -> int:
        """Delete a tenant's cards of a kind by names or prefix; returns how many there were.

        ``prefix=""`` deletes all of them; `InputError` if neither is given. Bytes of deleted or
        replaced cards can remain in the store's files until overwritten; `erase` leaves none.
        """
        ...

    # -- keeping ------------------------------------------------------------------------------

    async def archive(self, key: Key, first_seq: int, last_seq: int) -> Archived:
        """Move live entries of the span into compressed segments; readers see no change."""
        ...

    async def restore(self, key: Key, first_seq: int, last_seq: int) -> int:
        """Move segments that overlap the span back; returns how many entries became live."""
        ...

    async def erase(self, key: Key) -> Erased:
        """Delete a conversation and all that is derived from it; no byte is left on disk.

        Raises `UnknownConversation` if it does not exist, and `StoreUnavailable` if bytes may
        remain (full disk, long-running reader); erasing again or reopening finishes it.
        """
        ...

    async def erase_entries(self, key: Key, erasure: Erasure) -> Erased:
        """Replace entries by tombstones and delete all that an index or a card holds of them.

        Pins, vectors, words, dates and topic memberships of these entries go; segments are
        rewritten, idempotency fingerprints emptied, and the erasure's digests and topics written,
        all in one step. Entries that are erased already are skipped. `ConflictError` if digests or
        topics have changed since the erasure was decided. `scrub` must follow.
        """
        ...

    async def scrub(self) -> None:
        """Remove the bytes of erased entries from the store's files; opening does it, too.

        `StoreUnavailable` as in `erase`.
        """

    async def backup(self, path: Path, progress: Progress | None = None) -> None:
        """Write a consistent copy of the whole store to a new file, while it is in use."""

    def owns(self, path: Path) -> bool:
        """Return whether `path` is one of the store's own files, which no other code may open."""
        ...

    async def check(self, *, thorough: bool = False) -> list[Finding]:
        """Check the store's health; `thorough` reads every page and every row."""
        ...

    async def damage(self, key: Key) -> list[Damage]:
        """Compare every row of a conversation, outside its entries, with its seal or checksum.

        An empty conversation name stands for the tenant's projects and cards.
        """
        ...

    async def names(self, tenant: str) -> list[str]:
        """Return the names of all conversations, even of damaged ones: for repairs."""
        ...

    async def mend(self, key: Key, parts: Collection[str], known: Known) -> None:
        """Replace the damaged `parts` of a conversation by what is known, and seal all its rows.

        Topics, leases and pending marks are removed: they are made again. An empty conversation
        name stands for the tenant's projects. Digests are mended by `fail_damaged`.
        """
