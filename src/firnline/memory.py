"""`Memory`: the whole flow on one page.

append   check → count tokens → Store.append (chain hash, running total, idempotency) → ack
read     Store.read, every hash derived again on the way
verify   Store.records → proof.Audit
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from firnline import limits, transfer
from firnline.errors import InputError, MessageTooLarge, StoreCorrupt, UnknownConversation
from firnline.log import (
    Appended,
    Archived,
    Digest,
    Draft,
    Entry,
    Erased,
    Head,
    Hit,
    Idempotency,
    Key,
    Project,
    checked_project,
    fingerprint,
)
from firnline.message import Message, encode, utc_now
from firnline.proof import Audit, Problem, Verification
from firnline.protocols import Clock, Finding, Progress, Store
from firnline.store import open_store
from firnline.text import Json, clean_fields, clean_name
from firnline.tokens import DEFAULT_MODEL, TokenCounter, counter
from firnline.transfer import Manifest
from firnline.wire import MessageLike, load_openai

DEFAULT_TENANT: Final = "default"


class Memory:
    """The conversations of one tenant.

    ``async with Memory.open("sqlite:///notes.db") as memory:`` opens it and closes it again. All
    methods may be called concurrently. A message is durable when `append` returns.
    """

    def __init__(
        self,
        store: Store,
        *,
        tenant: str = DEFAULT_TENANT,
        count: TokenCounter | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self._store = store
        self._tenant = clean_name(tenant, "tenant")
        self._count = count or counter()
        self._clock = clock

    @classmethod
    def open(
        cls,
        url: str = "sqlite:///firnline.db",
        *,
        tenant: str = DEFAULT_TENANT,
        model: str = DEFAULT_MODEL,
        clock: Clock = utc_now,
    ) -> Self:
        """A memory at `url` (``sqlite:///FILE`` or ``memory:``); `model` is whose tokens count.

        Nothing is touched until it is entered with ``async with`` (or `start` is awaited).
        """
        return cls(open_store(url, clock=clock), tenant=tenant, count=counter(model), clock=clock)

    async def start(self) -> None:
        """Open the store; ``async with`` does this."""
        await self._store.open()
        # The vocabulary takes a third of a second to load; not later, on the event loop.
        await asyncio.to_thread(self._count.text, "")

    async def close(self) -> None:
        """Let go of the store; ``async with`` does this."""
        await self._store.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def tenant(self) -> str:
        """Whose conversations these are."""
        return self._tenant

    @property
    def store(self) -> Store:
        """What keeps them."""
        return self._store

    def _key(self, conversation: str) -> Key:
        return Key(self._tenant, clean_name(conversation, "conversation"))

    # -- writing ------------------------------------------------------------------------------

    async def append(
        self,
        conversation: str,
        messages: MessageLike | Iterable[MessageLike],
        *,
        expected_seq: int | None = None,
        idempotency_key: str | None = None,
    ) -> Appended:
        """Add one message or several to the end of a conversation; durable when this returns.

        Several are stored together or not at all. Messages are `Message` values or of the OpenAI
        shape, dicts or the SDK's objects; one without a time gets the present one. `expected_seq`
        is the sequence number the first of them must get, else `ConflictError`. Repeating an append
        with the same `idempotency_key` and messages returns what was stored the first time.

        Concurrent appends are ordered as they reach the store: await one before the next to keep
        yours in order. One that is cancelled may have been stored all the same.
        """
        key = self._key(conversation)
        given = load_openai(messages)
        idempotency = None
        if idempotency_key is not None:
            name = clean_name(idempotency_key, "idempotency_key")
            idempotency = Idempotency(name, fingerprint([encode(message) for message in given]))
        drafts = await self._drafts(given)
        return await self._store.append(
            key, drafts, expected_seq=expected_seq, idempotency=idempotency
        )

    async def _drafts(self, messages: Sequence[Message]) -> list[Draft]:
        """Messages with their time, their bytes and their tokens."""
        if not 1 <= len(messages) <= limits.BATCH_MESSAGES_MAX:
            raise InputError(
                f"{len(messages):,} messages at once; 1 to {limits.BATCH_MESSAGES_MAX:,} are taken"
            )
        now = self._clock()
        timed = [message if message.created_at else message.at(now) for message in messages]
        bodies = [encode(message) for message in timed]
        size = sum(map(len, bodies))
        if size > limits.BATCH_BYTES_MAX:
            raise MessageTooLarge(f"{size:,} bytes at once; {limits.BATCH_BYTES_MAX:,} are taken")
        if size > limits.COUNT_INLINE_CHARS:
            # The encoder works outside Python's lock, so the event loop goes on meanwhile.
            return await asyncio.to_thread(_counted, self._count, timed, bodies)
        return _counted(self._count, timed, bodies)

    async def describe(
        self,
        conversation: str,
        *,
        project: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> Head:
        """Say which project a conversation belongs to, or what else to remember about it."""
        if project is not None:
            clean_name(project, "project")
        cleaned = None if metadata is None else clean_fields(metadata, "metadata")
        return await self._store.describe(
            self._key(conversation), project=project, metadata=cleaned
        )

    async def save_project(self, project: Project) -> None:
        """Create a project, or replace what is known of it."""
        await self._store.save_project(self._tenant, checked_project(project))

    # -- reading ------------------------------------------------------------------------------

    async def read(
        self,
        conversation: str,
        *,
        first_seq: int = 0,
        last_seq: int | None = None,
        limit: int | None = None,
    ) -> list[Entry]:
        """The entries from `first_seq` to `last_seq`, word for word, archived or not."""
        return await self._store.read(self._key(conversation), first_seq, last_seq, limit)

    async def newest(self, conversation: str, *, tokens: int) -> list[Entry]:
        """The newest entries that fit into `tokens`; costs the same however long the log is."""
        return await self._store.newest(self._key(conversation), tokens)

    async def tokens_between(self, conversation: str, first_seq: int, last_seq: int) -> int:
        """The tokens of the entries `first_seq` to `last_seq`, both included."""
        return await self._store.tokens_between(self._key(conversation), first_seq, last_seq)

    async def dated(
        self, conversation: str, since: datetime, until: datetime, *, limit: int = 100
    ) -> list[Entry]:
        """The entries said in [since, until)."""
        if since.utcoffset() is None or until.utcoffset() is None:
            raise InputError("since and until need a time zone, for example datetime.UTC")
        if not 1 <= limit <= limits.PAGE_MAX:
            raise InputError(f"limit: {limit}; 1 to {limits.PAGE_MAX} are allowed")
        return await self._store.dated(self._key(conversation), since, until, limit)

    async def head(self, conversation: str) -> Head | None:
        """Where the conversation stands, or None if there is none."""
        return await self._store.head(self._key(conversation))

    async def conversations(
        self, *, project: str | None = None, after: str = "", limit: int = 100
    ) -> list[Head]:
        """The conversations by name, those behind `after`."""
        if not 1 <= limit <= limits.PAGE_MAX:
            raise InputError(f"limit: {limit}; 1 to {limits.PAGE_MAX} are allowed")
        for name, given in (("project", project), ("after", after)):
            if given:
                clean_name(given, name)
        return await self._store.conversations(
            self._tenant, project=project, after=after, limit=limit
        )

    async def projects(self) -> list[Project]:
        """The projects by name."""
        return await self._store.projects(self._tenant)

    async def digests(self, conversation: str) -> list[Digest]:
        """The conversation's digests by version."""
        return await self._store.digests(self._key(conversation))

    async def recall(self, conversation: str | None, query: str, *, limit: int = 10) -> list[Hit]:
        """Old entries that have words of `query`, best first; None searches every conversation."""
        if not 1 <= limit <= limits.PAGE_MAX:
            raise InputError(f"limit: {limit}; 1 to {limits.PAGE_MAX} are allowed")
        if conversation is not None:
            clean_name(conversation, "conversation")
        return await self._store.search(self._tenant, query, conversation=conversation, limit=limit)

    # -- proving ------------------------------------------------------------------------------

    async def verify(
        self, conversation: str, *, anchor: str | None = None, progress: Progress | None = None
    ) -> Verification:
        """Derive every hash of the conversation again, archived entries too.

        `anchor` is a hash of an entry that was noted elsewhere; if it is not in the chain, the log
        is not the one it was taken from, however consistent it is in itself.
        """
        key = self._key(conversation)
        try:
            head = await self._store.head(key)
        except StoreCorrupt as error:
            return Verification(conversation, 0, 0, "", (Problem(str(error)),))
        if head is None:
            raise UnknownConversation(f"there is no conversation {conversation!r}")
        audit = Audit(key, anchor)
        try:
            await _walk(self._store, audit, head, progress)
        except StoreCorrupt as error:
            audit.problems.append(Problem(str(error)))
        if audit.seq < head.entries and await self._store.head(key) is None:
            raise UnknownConversation(f"{conversation!r} was erased while it was verified")
        return audit.close(head)

    async def check(self, *, thorough: bool = False) -> list[Finding]:
        """The health of the store itself."""
        return await self._store.check(thorough=thorough)

    async def rebuild_index(self, *, progress: Progress | None = None) -> None:
        """Make the search index anew from the log, for every tenant of the store."""
        await self._store.rebuild_index(progress)

    # -- keeping and leaving ------------------------------------------------------------------

    async def archive(self, conversation: str, *, keep: int = 1_000) -> Archived:
        """Compress all but the newest `keep` entries; reading, searching, verifying go on."""
        key = self._key(conversation)
        head = await self._store.head(key)
        if head is None:
            raise UnknownConversation(f"there is no conversation {conversation!r}")
        return await self._store.archive(key, 0, head.seq - max(keep, 0))

    async def restore(self, conversation: str) -> int:
        """Take every archived entry back; returns how many there were."""
        return await self._store.restore(self._key(conversation), 0, (1 << limits.SEQ_BITS) - 1)

    async def erase(self, conversation: str) -> Erased:
        """Destroy a conversation and everything derived from it; no byte is left on disk."""
        return await self._store.erase(self._key(conversation))

    async def export(
        self,
        path: str | PathLike[str],
        *,
        conversations: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> Manifest:
        """Write conversations (all of them, unless named) to a JSON Lines file with a manifest."""
        keys = None if conversations is None else [self._key(name) for name in conversations]
        return await transfer.export(self._store, self._tenant, Path(path), keys, progress)

    async def import_(
        self, path: str | PathLike[str], *, progress: Progress | None = None
    ) -> Manifest:
        """Read such a file; all of it is checked first. Importing it again adds nothing."""
        return await transfer.import_(self._store, self._tenant, Path(path), progress)

    async def backup(self, path: str | PathLike[str], *, progress: Progress | None = None) -> None:
        """Write a consistent copy of the whole store to a new file while it goes on working."""
        await self._store.backup(Path(path), progress)


def _counted(
    count: TokenCounter, messages: Sequence[Message], bodies: Sequence[bytes]
) -> list[Draft]:
    drafts = []
    for message, body in zip(messages, bodies, strict=True):
        tokens = count.message(message)
        drafts.append(Draft(message, body, int(tokens), tokens.tokenizer))
    return drafts


async def _walk(store: Store, audit: Audit, head: Head, progress: Progress | None) -> None:
    """Take the audit over every record up to the head, and a look behind it."""
    while audit.seq < head.entries:
        page = min(limits.READ_PAGE, head.entries - audit.seq)
        records = await store.records(audit.key, audit.seq, page)
        if not records:
            break
        await asyncio.to_thread(audit.take, records)
        if progress is not None:
            progress(min(audit.seq, head.entries), head.entries)
    await store.digests(audit.key)  # each one is checked against its checksum
    if await store.records(audit.key, head.entries, 1):
        audit.beyond(await store.head(audit.key), head)
