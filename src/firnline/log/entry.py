"""What the log holds and what lies beside it: entries, heads, digests, leases, projects.

And the chain that proves the log whole: each entry's hash covers the entry before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Final, Literal, NamedTuple, TypeAlias, overload

from firnline.errors import ConflictError, InputError
from firnline.log.message import Message, encode_json
from firnline.log.text import Json, clean_fields, clean_name

HASH: Final = "sha256"
TOKENIZERS: Final = ("o200k_base", "o200k_base~", "cl100k_base", "cl100k_base~")
"""The names under which tokens are counted; ``~`` marks an estimate. Only ever add at the end."""


_TOKENS_MAX: Final = 1 << 40


class Key(NamedTuple):
    """Whose conversation: everything a conversation owns is kept under these two."""

    tenant: str
    conversation: str


class EntryDraft(NamedTuple):
    """A message on its way into the log: its canonical bytes and its token count."""

    message: Message
    body: bytes
    tokens: int
    tokenizer: str
    pinned: bool = False

    @property
    def time(self) -> datetime:
        """When the message was said; what is on its way into the log has a time."""
        if self.message.created_at is None:
            raise InputError("a message without a time cannot be stored")
        return self.message.created_at

    def check(self) -> None:
        """Raise `InputError` if no store could keep this."""
        counted = type(self.tokens) is int and 0 <= self.tokens < _TOKENS_MAX
        if not counted or self.tokenizer not in TOKENIZERS:
            raise InputError(f"{self.tokens!r} by {self.tokenizer!r} is not a count of tokens")
        _ = self.time


class Idempotency(NamedTuple):
    """A caller's name for one append, and the fingerprint of what it held."""

    key: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Record:
    """An entry as it is stored, not yet checked. `problem` says why the bytes cannot be had."""

    seq: int
    body: bytes
    tokens: int
    total: int
    hash: str
    tokenizer: str
    archived: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message at a sequence number.

    `tokens` is its size by `tokenizer` (marked ``~`` if it is an estimate), `total` the running
    total up to and including it, `hash` the chain's value here.
    """

    seq: int
    message: Message
    tokens: int
    total: int
    hash: str
    tokenizer: str
    archived: bool = False


@dataclass(frozen=True, slots=True)
class Appended(Sequence[Entry]):
    """What an append stored: its entries. `replayed` if an earlier try had stored them."""

    entries: tuple[Entry, ...]
    replayed: bool = False

    @property
    def seq(self) -> int:
        """The sequence number of the last entry."""
        return self.entries[-1].seq

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Entry, ...]: ...
    def __getitem__(self, index: int | slice) -> Entry | tuple[Entry, ...]:
        return self.entries[index]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)


@dataclass(frozen=True, slots=True)
class Head:
    """Where a conversation stands: its last sequence number (-1 if it is empty) and hash."""

    conversation: str
    seq: int
    hash: str
    tokens: int
    created_at: datetime
    updated_at: datetime
    project: str | None = None
    metadata: dict[str, Json] = field(default_factory=dict)
    archived: int = 0
    strategy: dict[str, Json] | None = None

    @property
    def entries(self) -> int:
        """How many entries there are."""
        return self.seq + 1

    def check_described(self, now: Head | None) -> None:
        """Raise `ConflictError` unless `now` is of the same conversation, described as here.

        One that was erased and begun anew is another.
        """
        names = "created_at", "project", "metadata", "strategy"
        if any(getattr(now, name, None) != getattr(self, name) for name in names):
            raise ConflictError(f"{self.conversation} was described or erased in the meantime")


@dataclass(frozen=True, slots=True)
class Project:
    """What conversations can belong to: a name, a status, a schedule and the task at hand."""

    name: str
    status: str = "active"
    schedule: str = ""
    task: str = ""
    metadata: dict[str, Json] = field(default_factory=dict)


def clean_project(project: Project) -> Project:
    """The project with clean text; what cannot be stored raises `InputError`."""
    if not isinstance(project, Project):
        raise InputError(f"project: expected a Project, got {type(project).__name__}")
    texts = {name: getattr(project, name) for name in ("status", "schedule", "task")}
    fields = clean_fields({**texts, "metadata": project.metadata}, "project")
    if not all(isinstance(fields[name], str) for name in texts):
        raise InputError("project: status, schedule and task are texts")
    return Project(clean_name(project.name, "project"), **fields)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which entries a search is about; what is None or empty is not asked for.

    `topics` are pairs of a conversation and a topic of it; an empty tuple leaves nothing.
    """

    conversation: str | None = None
    project: str | None = None
    roles: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None
    topics: tuple[tuple[str, int], ...] | None = None

    def has(self, message: Message) -> bool:
        """Whether the message's role and time are asked for."""
        at = message.created_at
        early = self.since is not None and (at is None or at < self.since)
        late = self.until is not None and (at is None or at >= self.until)
        return not early and not late and (not self.roles or message.role in self.roles)


class IndexMatch(NamedTuple):
    """Where a store's index found words of a query, and how well they matched."""

    conversation: str
    seq: int
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """What recall found: an entry, whose conversation it is in, and how well it fits.

    `parts` says what the score is made of.
    """

    conversation: str
    entry: Entry
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def seq(self) -> int:
        """The entry's sequence number."""
        return self.entry.seq

    @property
    def time(self) -> datetime | None:
        """When it was said."""
        return self.entry.message.created_at

    @property
    def archived(self) -> bool:
        """Whether the entry lies in a compressed segment."""
        return self.entry.archived

    @property
    def message(self) -> Message:
        """The message, word for word."""
        return self.entry.message


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to digest one conversation until `expires_at`.

    The fence is what makes it safe: it grows with every lease, and a digest is only taken from the
    holder of the newest one, however late a paused holder comes back.
    """

    key: Key
    owner: str
    fence: int
    expires_at: datetime


DigestStatus: TypeAlias = Literal["processing", "completed", "failed", "undone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A summary and important data over a span of entries; it lies beside them, never instead.

    `base` is the newest version when it was made, and `receipt` says what it kept and what it
    lost. `beside` are the versions of other spans that are in force together with it, `parts` those
    whose texts it took in, and `layer` is how often a text in it was digested before. So the newest
    completed digest leads to all that are in force, and undoing it to those in force before it.
    A digest with a `topic` covers the entries of that topic in its span alone; each topic has a
    chain of versions of its own.
    """

    version: int
    first_seq: int
    last_seq: int
    base: int | None = None
    layer: int = 0
    beside: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()
    topic: int | None = None
    status: DigestStatus = "processing"
    text: str = ""
    data: dict[str, Json] = field(default_factory=dict)
    receipt: dict[str, Json] = field(default_factory=dict)
    strategy: str = ""
    made_by: str = ""
    tokens: int = 0
    calls: int = 0
    spent_tokens: int = 0
    milliseconds: int = 0
    error: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What part of a conversation is about; a view of the log, kept beside it.

    `id` is the sequence number of the message that opened it. `vector` is the mean of its
    messages' vectors by `model`, as float32 bytes. Its entries before `active_from` are digested
    and archived. `dormant`: it has left the working set and comes back when a message fits it.
    `restored_by` is the message that last brought its archived entries back, -1 if none did.
    `merged_into` is the topic that took its entries over; its own digests up to version `outdated`
    lack what it took over itself.
    """

    id: int
    title: str
    created_at: datetime
    last_active_at: datetime
    importance: float = 1.0
    access_count: int = 0
    entries: int = 0
    archived: int = 0
    last_seq: int = -1
    active_from: int = 0
    restored_by: int = -1
    dormant: bool = False
    merged_into: int | None = None
    outdated: int = 0
    tags: tuple[str, ...] = ()
    model: str = ""
    vectors: int = 0
    vector: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A small named value that an edge keeps beside the log: a key, a draft of an answer, a job.

    It is known by tenant, kind and name; the tenant is empty for what belongs to none. A card of a
    `conversation` is erased with it. `updated_at` is when it was written, by the store's clock.
    """

    tenant: str
    kind: str
    name: str
    body: bytes = b""
    conversation: str | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Archived:
    """What archiving moved: entries, and their bytes before and after."""

    entries: int = 0
    segments: int = 0
    plain_bytes: int = 0
    stored_bytes: int = 0

    def __add__(self, other: Archived) -> Archived:
        return Archived(
            self.entries + other.entries,
            self.segments + other.segments,
            self.plain_bytes + other.plain_bytes,
            self.stored_bytes + other.stored_bytes,
        )


@dataclass(frozen=True, slots=True)
class Erased:
    """The certificate of an erasure: what is gone, and the head hash that it had."""

    conversation: str
    entries: int
    digests: int
    segments: int
    tokens: int
    head: str
    erased_at: datetime


def runs(seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ascending sequence numbers as spans of neighbours: (first, last)."""
    for _, group in groupby(enumerate(seqs), lambda pair: pair[1] - pair[0]):
        run = [seq for _, seq in group]
        yield run[0], run[-1]


# -- the chain --------------------------------------------------------------------------------


def genesis(key: Key) -> str:
    """The hash before the first entry; it binds the chain to its tenant and conversation."""
    name = encode_json([key.tenant, key.conversation]).encode()
    return f"{HASH}:{hashlib.sha256(b'firnline 1 ' + name).hexdigest()}"


def chain(previous: str, body: bytes, tokens: int, tokenizer: str) -> str:
    """The hash of an entry: over the hash before it, its token count and its canonical bytes."""
    start = f"{previous} {tokens} {tokenizer} ".encode()
    return f"{HASH}:{hashlib.sha256(start + body).hexdigest()}"


def fingerprint(bodies: Sequence[bytes]) -> str:
    """What an idempotency key stands for: equal messages have equal fingerprints."""
    digest = hashlib.sha256()
    for body in bodies:
        digest.update(len(body).to_bytes(8, "big") + body)
    return f"{HASH}:{digest.hexdigest()}"
