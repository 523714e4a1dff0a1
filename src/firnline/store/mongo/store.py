"""The MongoDB store: the protocol's methods over single-document writes."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from firnline.errors import InputError, StoreCorrupt, StoreError, StoreNotOpen, StoreUnavailable
from firnline.log import limits
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
from firnline.log.message import utc_now
from firnline.log.text import Json
from firnline.protocols import (
    EVERYTHING,
    Clock,
    Damage,
    EmbeddedTo,
    Finding,
    Known,
    Pending,
    Progress,
    TopicAssignments,
    Vector,
)
from firnline.store.cards import card_query, check_card, drop_query
from firnline.store.clock_skew import Skew
from firnline.store.digests import check_lease_seconds
from firnline.store.limits import WORK_TRIES
from firnline.store.mongo import (
    archive,
    backup,
    erase,
    heads,
    health,
    intents,
    leases,
    log,
    pending,
    schema,
    seals,
    search,
    tombstones,
    vectors,
    views,
)
from firnline.store.mongo.cards import (
    card_kinds,
    drop_cards,
    finish_batches,
    put_cards,
    select_cards,
)
from firnline.store.mongo.connection import MongoDatabase
from firnline.store.mongo.heads import HeadState
from firnline.store.mongo.topics import read_topics, save_topics, topic_members, topics_of
from firnline.store.mongo.vectors import put_vectors
from firnline.store.mongo.writer import MongoWriter, pin
from firnline.store.reindex import Reindexing
from firnline.store.rows import SEQ_MAX, Described
from firnline.store.topics import TopicCache

T = TypeVar("T")


class MongoStore:
    """Stores conversations in a MongoDB database that any number of processes can share.

    Leases use the server's clock; a custom `clock` is for tests.
    """

    def __init__(
        self, url: str, *, clock: Clock = utc_now, connections: int = limits.CONNECTIONS
    ) -> None:
        self._clock = None if clock is utc_now else clock
        self._database = MongoDatabase(
            url, clock=lambda: self._clock and self._clock(), connections=connections
        )
        self._skew = Skew(self._database.time)
        self._writer = MongoWriter(self._database)
        self._topics = TopicCache()
        self._process = 0
        self._reindexing = Reindexing()

    # -- opening and closing ------------------------------------------------------------------

    async def open(self) -> None:
        """Connect, create what is missing, and finish interrupted operations."""
        if self._process:
            raise StoreError("the store is already open")
        try:
            await self._database.connect()
            await schema.prepare(self._database)
            await erase.finish(self._database)
            await finish_batches(self._database)
        except BaseException:
            await self._database.close()
            raise
        self._process = os.getpid()
        if await schema.is_owed(self._database):
            claim, done = (
                partial(schema.claim, self._database),
                partial(schema.done, self._database),
            )
            self._reindexing.start(claim, self.rebuild_index, done)

    async def close(self) -> None:
        """Finish queued appends and close all connections."""
        here, self._process = self._process == os.getpid(), 0
        if here:
            await self._reindexing.stop()
            await self._writer.close()
            await self._database.close()

    @property
    def _open_db(self) -> MongoDatabase:
        if self._process != os.getpid() and self._process:
            raise StoreError(
                "this store was opened before a fork, and its connections cannot be shared; start "
                "the child with spawn instead of fork, and open the store there"
            )
        if not self._process:
            raise StoreNotOpen
        return self._database

    async def _read(self, key: Key, work: Callable[[HeadState], Awaitable[T]], otherwise: T) -> T:
        """Run `work` on a conversation's log."""
        return await log.read(self._open_db, key, work, otherwise)

    async def _read_state(
        self, key: Key, work: Callable[[HeadState], Awaitable[T]], otherwise: T
    ) -> T:
        """Run `work` on data next to the log, after any pending change is applied."""
        for _ in range(WORK_TRIES):
            state = await intents.current(self._open_db, key)
            try:
                return otherwise if state is None else await work(state)
            except StoreCorrupt:
                now = await intents.current(self._open_db, key)
                if now is not None and state is not None and now.op == state.op:
                    raise
        raise StoreUnavailable("too many concurrent writes; retry")

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
        """See `Store.append`. An unknown outcome is looked up."""
        if not drafts:
            raise InputError("nothing to append")
        _ = self._open_db
        return await self._writer.append(key, drafts, expected_seq, idempotency, person)

    async def used_keys(self, key: Key, *, after: str = "", limit: int = 100) -> list[UsedKey]:
        """See `Store.used_keys`."""
        return await self._read(key, lambda s: log.used_keys(self._open_db, s, after, limit), [])

    async def put_used_keys(self, key: Key, used: Sequence[UsedKey]) -> None:
        """See `Store.put_used_keys`."""
        async with self._open_db.turn(key):
            await log.put_used_keys(self._open_db, key, used)

    async def read(
        self, key: Key, first_seq: int = 0, last_seq: int | None = None, limit: int | None = None
    ) -> list[Entry]:
        """See `Store.read`."""
        last = SEQ_MAX if last_seq is None else last_seq
        db = self._open_db
        return await self._read(key, lambda s: log.span(db, s, first_seq, last, limit), [])

    async def newest(self, key: Key, tokens_max: int) -> list[Entry]:
        """See `Store.newest`."""
        return await self._read(key, lambda s: log.newest(self._open_db, s, tokens_max), [])

    async def at(self, key: Key, seqs: Sequence[int]) -> list[Entry]:
        """See `Store.at`."""
        return await self._read(key, lambda s: log.at(self._open_db, s, seqs), [])

    async def dated(
        self, key: Key, since: datetime, until: datetime, limit: int, first_seq: int = 0
    ) -> list[Entry]:
        """See `Store.dated`."""
        given = (since, until), limit, first_seq
        return await self._read(key, lambda s: log.dated(self._open_db, s, *given), [])

    async def tokens_between(self, key: Key, first_seq: int, last_seq: int) -> int:
        """See `Store.tokens_between`."""
        db = self._open_db
        return await self._read(key, lambda s: log.tokens_between(db, s, first_seq, last_seq), 0)

    async def records(self, key: Key, first_seq: int, limit: int) -> list[Record]:
        """See `Store.records`."""
        database = self._open_db
        try:
            return await self._read(key, lambda s: log.records(database, s, first_seq, limit), [])
        except StoreCorrupt:
            state = await heads.find(database, key, tolerant=True)
            return await log.records(database, state, first_seq, limit) if state else []

    async def head(self, key: Key) -> Head | None:
        """See `Store.head`."""
        return await heads.head(self._open_db, key)

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
        """See `Store.conversations`."""
        return await heads.conversations(self._open_db, tenant, (project, person), after, limit)

    async def recent(
        self, tenant: str, project: str | None, *, after: Head | None = None, limit: int = 100
    ) -> list[Head]:
        """See `Store.recent`."""
        return await heads.recent(self._open_db, tenant, project, after, limit)

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
        """See `Store.describe`."""
        about = Described(project, person, metadata, strategy, created_at)
        return await heads.describe(self._open_db, key, about, known)

    async def pin(self, key: Key, seq: int, *, pinned: bool = True) -> None:
        """See `Store.pin`."""
        await pin(self._open_db, key, seq, pinned=pinned)

    async def pinned(self, key: Key) -> list[Entry]:
        """See `Store.pinned`."""
        return await self._read(key, lambda s: log.pinned(self._open_db, s), [])

    async def projects(self, tenant: str) -> list[Project]:
        """See `Store.projects`."""
        return await heads.projects(self._open_db, tenant)

    async def save_project(self, tenant: str, project: Project) -> None:
        """See `Store.save_project`."""
        await heads.save_project(self._open_db, tenant, project)

    async def tenants(self) -> list[str]:
        """See `Store.tenants`."""
        return await heads.tenants(self._open_db)

    # -- search -------------------------------------------------------------------------------

    async def search(
        self, tenant: str, query: str, *, scope: Scope = EVERYTHING, limit: int = 20
    ) -> list[IndexMatch]:
        """See `Store.search`."""
        return await search.matches(self._open_db, tenant, query, scope, limit)

    async def rebuild_index(self, progress: Progress | None = None) -> None:
        """See `Store.rebuild_index`; search by word stays complete meanwhile."""
        known = await views.every_key(self._open_db)
        done, entries = 0, sum(count for _, count in known)
        for key, count in known:
            first = 0
            while first < count:
                end = await views.index_page(self._open_db, key, first)
                first = end if end > first else count
                if progress is not None:
                    progress(done + min(first, count), entries)
            done += count

    # -- vectors and topics -------------------------------------------------------------------

    async def embedded(self, key: Key, model: str) -> int:
        """See `Store.embedded`."""
        state = await intents.current(self._open_db, key)
        return vectors.embedders(state).get(model, 0) if state else 0

    async def embedders(self, key: Key) -> dict[str, int]:
        """See `Store.embedders`."""
        state = await intents.current(self._open_db, key)
        return vectors.embedders(state) if state else {}

    async def embedded_in(self, tenant: str, model: str, scope: Scope) -> dict[str, EmbeddedTo]:
        """See `Store.embedded_in`."""
        return await vectors.embedded_in(self._open_db, tenant, model, scope)

    async def put_vectors(
        self, key: Key, model: str, vectors: Sequence[Vector], *, first_seq: int, next_seq: int
    ) -> bool:
        """See `Store.put_vectors`."""
        span = first_seq, next_seq
        async with self._open_db.turn(key):
            return await put_vectors(self._open_db, key, model, vectors, span)

    async def vectors(self, key: Key, model: str, first_seq: int, limit: int) -> list[Vector]:
        """See `Store.vectors`."""
        given = model, first_seq, limit
        return await self._read_state(
            key, lambda s: vectors.vector_page(self._open_db, s, *given), []
        )

    async def vectors_at(self, key: Key, model: str, seqs: Sequence[int]) -> list[Vector]:
        """See `Store.vectors_at`."""
        return await self._read_state(
            key, lambda s: vectors.vectors_at(self._open_db, s, model, seqs), []
        )

    async def unembedded(self, tenant: str, model: str, limit: int = 100) -> list[Key]:
        """See `Store.unembedded`."""
        return await vectors.unembedded(self._open_db, tenant, model, limit)

    async def topics(self, key: Key) -> TopicAssignments:
        """See `Store.topics`."""
        db, none = self._open_db, TopicAssignments({}, 0, 0)
        return await self._read_state(key, lambda s: read_topics(db, s, self._topics), none)

    async def assign(
        self,
        key: Key,
        topics: Sequence[Topic],
        members: Mapping[int, int | None],
        *,
        revision: int,
        next_seq: int | None = None,
    ) -> int:
        """See `Store.assign`."""
        expected = revision, next_seq
        async with self._open_db.turn(key):
            id_, saved = await save_topics(self._open_db, key, topics, members, expected)
        self._topics.update(id_, saved, topics)
        return saved

    async def members(self, key: Key, topic: int, first_seq: int = 0) -> list[int]:
        """See `Store.members`."""
        db = self._open_db
        return await self._read_state(key, lambda s: topic_members(db, s, topic, first_seq), [])

    async def topics_of(self, key: Key, seqs: Sequence[int]) -> dict[int, int]:
        """See `Store.topics_of`."""
        return await self._read_state(key, lambda s: topics_of(self._open_db, s, seqs), {})

    # -- digests and leases -------------------------------------------------------------------

    async def lease(self, key: Key, owner: str, seconds: float) -> Lease | None:
        """See `Store.lease`."""
        check_lease_seconds(seconds)
        return await leases.lease(self._open_db, key, owner, seconds)

    async def renew(self, lease: Lease, seconds: float) -> Lease:
        """See `Store.renew`."""
        check_lease_seconds(seconds)
        return await leases.renew(self._open_db, lease, seconds)

    async def release(self, lease: Lease) -> None:
        """See `Store.release`."""
        await leases.release(self._open_db, lease)

    async def begin_digest(self, lease: Lease, digest: Digest) -> Digest:
        """See `Store.begin_digest`."""
        async with self._open_db.turn(lease.key):
            return await leases.begin(self._open_db, lease, digest)

    async def finish_digest(self, lease: Lease, digest: Digest) -> Digest:
        """See `Store.finish_digest`."""
        async with self._open_db.turn(lease.key):
            return await leases.finish(self._open_db, lease, digest)

    async def undo_digest(self, lease: Lease, version: int) -> Digest:
        """See `Store.undo_digest`."""
        async with self._open_db.turn(lease.key):
            return await leases.undo(self._open_db, lease, version)

    async def fail_damaged(self, lease: Lease) -> int:
        """See `Store.fail_damaged`."""
        async with self._open_db.turn(lease.key):
            return await leases.fail_damaged(self._open_db, lease)

    async def digests(self, key: Key, versions: Sequence[int] | None = None) -> list[Digest]:
        """See `Store.digests`."""
        return await self._read_state(key, lambda s: leases.digests(self._open_db, s, versions), [])

    async def newest_digest(self, key: Key, topic: int | None = None) -> Digest | None:
        """See `Store.newest_digest`."""
        return await self._read_state(
            key, lambda s: leases.newest_of(self._open_db, s, topic), None
        )

    async def put_digests(self, key: Key, digests: Sequence[Digest]) -> None:
        """See `Store.put_digests`."""
        async with self._open_db.turn(key):
            await leases.put_all(self._open_db, key, digests)

    async def mark_pending(self, key: Key, due: datetime, *, postpone: bool = False) -> None:
        """See `Store.mark_pending`."""
        await pending.mark(self._open_db, key, due + await self._ahead(), postpone=postpone)

    async def due(
        self, now: datetime, limit: int = 100, tenants: Collection[str] | None = None
    ) -> list[Key]:
        """See `Store.due`."""
        return await pending.due(self._open_db, now + await self._ahead(), limit, tenants)

    async def _ahead(self) -> timedelta:
        """How far the server's clock, which due times use, is ahead of this machine's."""
        return timedelta() if self._clock else await self._skew.ahead()

    async def pending(
        self, now: datetime, *, stuck_before: datetime, cards: str, tenant: str | None = None
    ) -> Pending:
        """See `Store.pending`."""
        ahead = await self._ahead()
        given = now + ahead, stuck_before + ahead
        known = await pending.count(self._open_db, *given, cards, tenant)
        return known._replace(oldest=known.oldest and known.oldest - ahead)

    async def clear_pending(self, key: Key, last_seq: int) -> bool:
        """See `Store.clear_pending`."""
        return await pending.clear(self._open_db, key, last_seq)

    async def unread(self, tenant: str, person: str | None = None, limit: int = 100) -> list[Head]:
        """See `Store.unread`."""
        return await pending.unread(self._open_db, tenant, person, limit)

    async def mark_read(self, tenant: str, read: Mapping[str, int]) -> None:
        """See `Store.mark_read`."""
        await pending.mark_read(self._open_db, tenant, read)

    # -- cards --------------------------------------------------------------------------------

    async def put_cards(
        self, cards: Sequence[Card], *, absent: bool = False, keep_times: bool = False
    ) -> int:
        """See `Store.put_cards`."""
        for card in cards:
            check_card(card)
        return await put_cards(self._open_db, cards, absent=absent, keep_times=keep_times)

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
        """See `Store.cards`."""
        wanted = card_query(kind, tenant, names, prefix, after)
        return await select_cards(self._open_db, wanted, limit)

    async def kinds(self) -> list[str]:
        """See `Store.kinds`."""
        return await card_kinds(self._open_db)

    async def drop_cards(
        self,
        kind: str,
        tenant: str,
        *,
        names: Sequence[str] | None = None,
        prefix: str | None = None,
    ) -> int:
        """See `Store.drop_cards`."""
        return await drop_cards(self._open_db, drop_query(kind, tenant, names, prefix))

    # -- maintenance --------------------------------------------------------------------------

    async def archive(self, key: Key, first_seq: int, last_seq: int) -> Archived:
        """See `Store.archive`."""
        done = Archived()
        while True:
            state, runs = await archive.live(self._open_db, key, first_seq, last_seq)
            packed = await archive.pack(runs) if runs else []
            if state is None or not packed:
                return done
            for segment in packed:
                async with self._open_db.turn(key):
                    done += await archive.store(self._open_db, state, segment)
            first_seq = packed[-1].segment.last_seq + 1

    async def restore(self, key: Key, first_seq: int, last_seq: int) -> int:
        """See `Store.restore`."""
        async with self._open_db.turn(key):
            return await archive.restore(self._open_db, key, first_seq, last_seq)

    async def erase(self, key: Key) -> Erased:
        """See `Store.erase`; docs/mongo.md lists where bytes can remain."""
        return await erase.erase(self._open_db, key)

    async def erase_entries(self, key: Key, erasure: Erasure) -> Erased:
        """See `Store.erase_entries`."""
        async with self._open_db.turn(key):
            return await tombstones.erase_entries(self._open_db, key, erasure)

    async def scrub(self) -> None:
        """See `Store.scrub`; nothing is pending: docs/mongo.md lists where bytes can remain."""
        _ = self._open_db

    async def backup(self, path: Path, progress: Progress | None = None) -> None:
        """See `Store.backup`."""
        await backup.copy_to(self._open_db, path, progress)

    async def restore_backup(self, path: Path) -> None:
        """See `Restorable.restore_backup`."""
        await self.open()
        try:
            await backup.load(self._open_db, path)
        finally:
            await self.close()

    def owns(self, path: Path) -> bool:
        """See `Store.owns`; always False, the files are the server's."""
        del path
        return False

    async def damage(self, key: Key) -> list[Damage]:
        """See `Store.damage`."""
        return await seals.damage(self._open_db, key)

    async def names(self, tenant: str) -> list[str]:
        """See `Store.names`."""
        return await seals.names(self._open_db, tenant)

    async def mend(self, key: Key, parts: Collection[str], known: Known) -> None:
        """See `Store.mend`."""
        await seals.mend(self._open_db, key, parts, known)

    async def check(self, *, thorough: bool = False) -> list[Finding]:
        """See `Store.check`."""
        return await health.check(self._open_db, thorough=thorough)
