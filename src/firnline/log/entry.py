"""The values of the log and of what is derived from it: entries, heads, digests, topics, leases.

Also the hash chain: each entry's hash covers the entry before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Final, Literal, NamedTuple, TypeAlias, overload

from firnline.errors import ConflictError, InputError, StoreCorrupt
from firnline.log import limits
from firnline.log.message import Message, encode_json, format_time, parse_time
from firnline.log.text import Json, clean_fields, clean_name

HASH: Final = "sha256"
TOKENIZERS: Final = ("o200k_base", "o200k_base~", "cl100k_base", "cl100k_base~")
"""The names under which tokens are counted; ``~`` marks an estimate. Only ever add at the end."""

BRANCH: Final = "branch"
"""The metadata field that names the source of a branch."""
FAILED: Final = "failed_request"
"""The metadata field of a conversation that is only a request that failed: the hash of its end."""

_TOKENS_MAX: Final = 1 << 40


class Key(NamedTuple):
    """The tenant and the conversation under which everything of a conversation is stored."""

    tenant: str
    conversation: str


_TOMBSTONE: Final = b"erased "

ERASED: Final = Message("system", "")
"""The message of an erased entry: empty, without a time, and never shown."""


def tombstone(at: datetime) -> bytes:
    """The bytes that replace those of an entry erased at this time; never those of a message."""
    return _TOMBSTONE + format_time(at).encode()


def erased_at(body: bytes) -> datetime | None:
    """When the entry with these bytes was erased; None if it was not."""
    if not body.startswith(_TOMBSTONE):
        return None
    try:
        return parse_time(body.removeprefix(_TOMBSTONE).decode())
    except (InputError, ValueError) as error:
        raise StoreCorrupt("the stored bytes are not a message") from error


class EntryDraft(NamedTuple):
    """A message about to be appended: its canonical bytes and its token count.

    The copy of an erased entry has the `hash` of its original if its chain is the same.
    """

    message: Message
    body: bytes
    tokens: int
    tokenizer: str
    pinned: bool = False
    hash: str = ""

    @property
    def time(self) -> datetime:
        """The message's time, or when it was erased; required by now."""
        time = self.message.created_at or erased_at(self.body)
        if time is None:
            raise InputError("a message without a time cannot be stored")
        return time

    def hash_after(self, previous: str) -> str:
        """Its hash in a chain, after this one."""
        return self.hash or next_hash(previous, self.body, self.tokens, self.tokenizer)

    def check(self) -> None:
        """Raise `InputError` if no store can accept this."""
        counted = type(self.tokens) is int and 0 <= self.tokens < _TOKENS_MAX
        if not counted or self.tokenizer not in TOKENIZERS:
            raise InputError(f"{self.tokens!r} by {self.tokenizer!r} is not a token count")
        _ = self.time


class Idempotency(NamedTuple):
    """A caller's key for one append, and the fingerprint of its messages."""

    key: str
    fingerprint: str


class UsedKey(NamedTuple):
    """An idempotency key that was used, and the entries that its append stored."""

    idempotency: Idempotency
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Record:
    """An entry as stored, not yet checked. `problem` says why its bytes cannot be read."""

    seq: int
    body: bytes
    tokens: int
    total: int
    hash: str
    tokenizer: str
    archived: bool = False
    problem: str = ""

    @property
    def erased(self) -> bool:
        """Whether a tombstone is in the place of the message."""
        return self.body.startswith(_TOMBSTONE)


@dataclass(frozen=True, slots=True)
class Entry:
    """A message at a sequence number.

    `tokens` is its size by `tokenizer` (marked ``~`` if it is an estimate), `total` the running
    total including it, `hash` the chain's hash at this entry. If it was erased, its message is
    empty and has no tokens; `total` and `hash` are as before.
    """

    seq: int
    message: Message
    tokens: int
    total: int
    hash: str
    tokenizer: str
    archived: bool = False
    erased_at: datetime | None = None


def live(entries: Iterable[Entry]) -> list[Entry]:
    """The entries that are not erased."""
    return [entry for entry in entries if entry.erased_at is None]


class ProjectEntry(NamedTuple):
    """An entry of one of a project's conversations."""

    conversation: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Appended(Sequence[Entry]):
    """The entries that an append stored. `replayed` if an earlier attempt had stored them."""

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
    """The end of a conversation: its last sequence number (-1 if it is empty) and hash."""

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
    person: str | None = None

    @property
    def entries(self) -> int:
        """The number of entries."""
        return self.seq + 1

    @property
    def branch_of(self) -> tuple[str, int] | None:
        """The conversation that this is a branch of, by its metadata, and their last common entry.

        Any client can write metadata, so this is a claim.
        """
        match self.metadata.get(BRANCH):
            case {"of": str(source), "at": int(seq)}:
                return source, seq
        return None

    @property
    def has_failed(self) -> bool:
        """Whether all of it is a request that failed, by its metadata: lists leave it out.

        The metadata has the hash of its last entry. So whatever is added later shows it again.
        """
        return self.metadata.get(FAILED) == self.hash

    def check_described(self, now: Head | None) -> None:
        """Raise `ConflictError` unless `now` describes the same conversation in the same way.

        A conversation that was erased and created again is a different one.
        """
        names = "created_at", "project", "person", "metadata", "strategy"
        if any(getattr(now, name, None) != getattr(self, name) for name in names):
            raise ConflictError(f"{self.conversation} was changed or erased in the meantime")


@dataclass(frozen=True, slots=True)
class Project:
    """A project that conversations can belong to: name, status, schedule and current task."""

    name: str
    status: str = "active"
    schedule: str = ""
    task: str = ""
    metadata: dict[str, Json] = field(default_factory=dict)


def clean_project(project: Project) -> Project:
    """The project with clean text; `InputError` if it cannot be stored."""
    if not isinstance(project, Project):
        raise InputError(f"project: expected a Project, got {type(project).__name__}")
    texts = {name: getattr(project, name) for name in ("status", "schedule", "task")}
    fields = clean_fields({**texts, "metadata": project.metadata}, "project")
    if not all(isinstance(fields[name], str) for name in texts):
        raise InputError("project: status, schedule and task must be strings")
    clean_metadata(fields["metadata"])
    return Project(clean_name(project.name, "project"), **fields)  # type: ignore[arg-type]


def clean_metadata(metadata: object) -> dict[str, Json]:
    """The metadata of a conversation or a project; `InputError` if it cannot be stored."""
    cleaned = clean_fields(metadata, "metadata")
    limits.check_size("metadata", len(encode_json(cleaned)))
    return cleaned


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The filters of a search; None or empty means no filter.

    `topics` are pairs of a conversation and one of its topics; an empty tuple matches nothing.
    """

    conversation: str | None = None
    project: str | None = None
    person: str | None = None
    roles: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None
    topics: tuple[tuple[str, int], ...] | None = None

    def describes(self, head: Head) -> bool:
        """Whether the conversation passes the filters by project and person."""
        own = self.project in (None, head.project)
        return own and self.person in (None, head.person)

    def has(self, message: Message) -> bool:
        """Whether the message's role and time pass the filters."""
        at = message.created_at
        early = self.since is not None and (at is None or at < self.since)
        late = self.until is not None and (at is None or at >= self.until)
        return not early and not late and (not self.roles or message.role in self.roles)


class IndexMatch(NamedTuple):
    """An entry that a store's index found for a query, and its score."""

    conversation: str
    seq: int
    score: float


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to digest one conversation until `expires_at`.

    The fence makes it safe: it grows with every lease, and a digest is accepted only from the
    holder of the newest one, however late a paused holder comes back.
    """

    key: Key
    owner: str
    fence: int
    expires_at: datetime


DigestStatus: TypeAlias = Literal["processing", "completed", "failed", "undone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A summary and important data of a span of entries; it never replaces the entries.

    `base` is the newest version when it was created, and `receipt` lists what it kept and lost.
    `beside` are the versions of other spans that are in force together with it, `parts` the
    versions whose texts it includes, and `layer` counts how often a text in it was digested before.
    The newest completed digest thus leads to all that are in force; undoing it restores those
    before it. A digest with a `topic` covers only that topic's entries in its span; each topic has
    its own chain of versions.
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
    """A topic of a conversation; a view derived from the log and stored next to it.

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
    """A small named value that is stored next to the log: a key, a draft of an answer, a job.

    Tenant, kind and name identify it; the tenant is empty if it belongs to none. A card of a
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
    """The entries that archiving moved, and their bytes before and after."""

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
    """The certificate of an erasure: what was erased, the head hash it had, and what survives.

    If only some messages were erased, `spans` are their first and last sequence numbers, `digests`
    the withdrawn ones, `topics` the changed ones, `segments` those that were rewritten, and `head`
    is still the conversation's. `cards` counts the erased cards by kind: recorded prompts, drafts
    of answers and the like. `branches` are the conversations that held copies of the messages and
    whose copies were erased, too; `survives` are those that still hold some.
    """

    conversation: str
    entries: int
    digests: int
    segments: int
    tokens: int
    head: str
    erased_at: datetime
    vectors: int = 0
    topics: int = 0
    cards: Mapping[str, int] = field(default_factory=dict)
    branches: tuple[str, ...] = ()
    survives: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What `Store.erase_entries` erases, and what it writes in the same step.

    `digests` and `topics` replace those of the same version or id; they were decided when `version`
    was the newest digest and `revision` that of the topics. `cards` are ranges of names: kind,
    first and last name.
    """

    seqs: tuple[int, ...]
    digests: tuple[Digest, ...] = ()
    version: int = 0
    topics: tuple[Topic, ...] = ()
    revision: int = 0
    cards: tuple[tuple[str, str, str], ...] = ()


def runs(seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ascending sequence numbers as spans of neighbors: (first, last)."""
    for _, group in groupby(enumerate(seqs), lambda pair: pair[1] - pair[0]):
        run = [seq for _, seq in group]
        yield run[0], run[-1]


# -- the chain --------------------------------------------------------------------------------


def genesis(key: Key) -> str:
    """The hash before the first entry; it binds the chain to its tenant and conversation."""
    name = encode_json([key.tenant, key.conversation]).encode()
    return f"{HASH}:{hashlib.sha256(b'firnline 1 ' + name).hexdigest()}"


def next_hash(previous: str, body: bytes, tokens: int, tokenizer: str) -> str:
    """The hash of an entry: over the hash before it, its token count and its canonical bytes."""
    start = f"{previous} {tokens} {tokenizer} ".encode()
    return f"{HASH}:{hashlib.sha256(start + body).hexdigest()}"


def fingerprint(bodies: Sequence[bytes]) -> str:
    """A hash of an append's messages: equal messages have equal fingerprints."""
    digest = hashlib.sha256()
    for body in bodies:
        digest.update(len(body).to_bytes(8, "big") + body)
    return f"{HASH}:{digest.hexdigest()}"
