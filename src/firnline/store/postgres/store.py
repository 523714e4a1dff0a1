"""The PostgreSQL store: the protocol's methods over transactions."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

import psycopg

from firnline.errors import InputError, StoreError, StoreTimeout
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
from firnline.store.postgres import (
    append,
    archive,
    backup,
    erase,
    health,
    leases,
    log,
    migrate,
    pending,
    projects,
    seals,
    search,
    vectors,
    views,
)
from firnline.store.postgres.cards import card_kinds, drop_cards, put_cards, select_cards
from firnline.store.postgres.connection import ALL_TENANTS, PostgresDatabase, Transaction, Work
from firnline.store.postgres.errors import translate_error
from firnline.store.postgres.listen import PendingListener
from firnline.store.postgres.topics import read_topics, save_topics, topic_members, topics_of
from firnline.store.postgres.vectors import put_vectors
from firnline.store.reindex import Reindexing
from firnline.store.rows import SEQ_MAX, Described, page
from firnline.store.topics import TopicCache

T = TypeVar("T")


class PostgresStore:
    """Stores conversations in a PostgreSQL database that any number of processes share.

    Leases use the database's clock; `clock` is for tests.
    """

    def __init__(
        self, url: str, *, clock: Clock = utc_now, connections: int = limits.CONNECTIONS
    ) -> None:
        self._clock = None if clock is utc_now else clock
        self._database = PostgresDatabase(
            url, clock=lambda: self._clock and self._clock(), connections=connections
        )
        self._listener = PendingListener(self._database)
        self._topics = TopicCache()
        self._appender = append.Appender(self._open_db)
        self._skew = Skew(self._now)
        self._vacuum = erase.Vacuum(self._open_db)
        self._vectors_in: str | None = None  # the schema of pgvector's operators
        self._process = 0
        self._reindexing = Reindexing()

    # -- opening and closing ------------------------------------------------------------------

    async def open(self) -> None:
        """Create or migrate the schema, and open the connection pool."""
        if self._process:
            raise StoreError("the store is already open")
        connection = await self._database.connect()
        try:
            await migrate.migrate(connection, migrate.shipped_migrations())
            self._vectors_in = await vectors.find_pgvector(connection)
        except psycopg.Error as error:
            raise translate_error(error, self._database.place) from error
        finally:
            await connection.close()
        await self._database.open()
        self._process = os.getpid()
        if await self._read(ALL_TENANTS, views.is_owed):
            self._reindexing.start(
                lambda: self._write(ALL_TENANTS, views.claim),
                self.rebuild_index,
                lambda: self._write(ALL_TENANTS, views.done),
            )

    async def close(self) -> None:
        """Close all connections."""
        here, self._process = self._process == os.getpid(), 0
        if here:
            await self._reindexing.stop()
            await self._listener.close()
            await self._database.close()

    def _open_db(self) -> PostgresDatabase:
        if self._process != os.getpid() and self._process:
            raise StoreError(
                "this store was opened before a fork, and its connections cannot be used after it; "
                "start the child with spawn instead of fork, and open the store there"
            )
        return self._database

    async def _read(self, tenant: str | None, work: Work[T], *, brief: bool = True) -> T:
        return await self._open_db().read(tenant, work, brief=brief)

    async def _write(self, tenant: str | None, work: Work[T]) -> T:
        return await self._open_db().write(tenant, work)

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
        """See `Store.append`. With an idempotency key, an unknown outcome is looked up."""
        if not drafts:
            raise InputError("nothing to append")
        sizes = [(draft.message, len(draft.body)) for draft in drafts]
        found = await append.analyze(key.tenant, sizes)
        first, again = append.AppendTry(), append.AppendTry()
        given = append.QueuedAppend(key, drafts, found, expected_seq, idempotency, first, person)
        try:
            return await self._appender.append(given)
        except StoreTimeout as doubt:
            if idempotency is None:
                raise
            try:
                stored = await self._appender.append(given._replace(newest=again))
            except StoreError:
                raise doubt from None  # the first attempt may have been written
            return replace(stored, replayed=stored.replayed and not first.stored(stored))

    async def used_keys(self, key: Key, *, after: str = "", limit: int = 100) -> list[UsedKey]:
        """See `Store.used_keys`."""
        return await self._read(key.tenant, lambda tx: log.used_keys(tx, key, after, limit))

    async def put_used_keys(self, key: Key, used: Sequence[UsedKey]) -> None:
        """See `Store.put_used_keys`."""
        await self._write(key.tenant, lambda tx: log.put_used_keys(tx, key, used))

    async def read(
        self, key: Key, first_seq: int = 0, last_seq: int | None = None, limit: int | None = None
    ) -> list[Entry]:
        """See `Store.read`."""
        last = SEQ_MAX if last_seq is None else last_seq
        return await self._read(key.tenant, lambda tx: log.span(tx, key, first_seq, last, limit))

    async def newest(self, key: Key, tokens_max: int) -> list[Entry]:
        """See `Store.newest`."""
        return await self._read(key.tenant, lambda tx: log.newest(tx, key, tokens_max))

    async def at(self, key: Key, seqs: Sequence[int]) -> list[Entry]:
        """See `Store.at`."""
        return await self._read(key.tenant, lambda tx: log.at(tx, key, seqs))

    async def dated(
        self, key: Key, since: datetime, until: datetime, limit: int, first_seq: int = 0
    ) -> list[Entry]:
        """See `Store.dated`."""
        given = since, until, limit, first_seq
        return await self._read(key.tenant, lambda tx: log.dated(tx, key, *given))

    async def tokens_between(self, key: Key, first_seq: int, last_seq: int) -> int:
        """See `Store.tokens_between`."""
        return await self._read(
            key.tenant, lambda tx: log.tokens_between(tx, key, first_seq, last_seq), brief=False
        )

    async def records(self, key: Key, first_seq: int, limit: int) -> list[Record]:
        """See `Store.records`."""

        async def work(transaction: Transaction) -> list[Record]:
            # Not limited by the head, so that records after it are found, too.
            taken: list[Record] = []
            at = first_seq
            while at <= SEQ_MAX and len(taken) < limit:
                found, stored, at = await log.page(
                    transaction, key, at, SEQ_MAX, limit=limit, tolerant=True
                )
                if found is None:
                    return []
                taken += stored
                if sum(len(record.body) for record in taken) >= limits.PAGE_BYTES_MAX:
                    break
            return page(taken, limit)

        return await self._read(key.tenant, work)

    async def head(self, key: Key) -> Head | None:
        """See `Store.head`."""
        return await self._read(key.tenant, lambda tx: log.head(tx, key))

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
        return await self._read(
            tenant, lambda tx: log.conversations(tx, tenant, (project, person), after, limit)
        )

    async def recent(
        self, tenant: str, project: str | None, *, after: Head | None = None, limit: int = 100
    ) -> list[Head]:
        """See `Store.recent`."""
        return await self._read(tenant, lambda tx: log.recent(tx, tenant, project, after, limit))

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
        return await self._write(key.tenant, lambda tx: projects.describe(tx, key, about, known))

    async def pin(self, key: Key, seq: int, *, pinned: bool = True) -> None:
        """See `Store.pin`."""
        await self._write(key.tenant, lambda tx: log.pin(tx, key, seq, pinned=pinned))

    async def pinned(self, key: Key) -> list[Entry]:
        """See `Store.pinned`."""
        return await self._read(key.tenant, lambda tx: log.pinned(tx, key))

    async def projects(self, tenant: str) -> list[Project]:
        """See `Store.projects`."""
        return await self._read(tenant, lambda tx: projects.list_all(tx, tenant))

    async def save_project(self, tenant: str, project: Project) -> None:
        """See `Store.save_project`."""
        await self._write(tenant, lambda tx: projects.save(tx, tenant, project))

    async def tenants(self) -> list[str]:
        """See `Store.tenants`."""
        return await self._read(None, projects.tenants)

    # -- search -------------------------------------------------------------------------------

    async def search(
        self, tenant: str, query: str, *, scope: Scope = EVERYTHING, limit: int = 20
    ) -> list[IndexMatch]:
        """See `Store.search`."""
        given = tenant, query, scope, limit
        return await self._read(tenant, lambda tx: search.matches(tx, *given), brief=False)

    async def rebuild_index(self, progress: Progress | None = None) -> None:
        """See `Store.rebuild_index`; word search finds everything meanwhile."""
        known = await self._read(ALL_TENANTS, views.every_key)
        done, entries = 0, sum(count for _, count in known)
        for key, count in known:
            first = 0
            while first < count:
                first = await self._index_page(key, first) or count
                if progress is not None:
                    progress(done + min(first, count), entries)
            done += count

    async def _index_page(self, key: Key, first: int) -> int:
        found, readable, end = await self._read(
            key.tenant, lambda tx: views.read_page(tx, key, first)
        )
        if found is None:
            return 0
        rows = await views.analyze(key, first, readable)
        await self._write(key.tenant, lambda tx: views.write_page(tx, found, (first, end), rows))
        return end

    # -- vectors and topics -------------------------------------------------------------------

    async def embedded(self, key: Key, model: str) -> int:
        """See `Store.embedded`."""
        return await self._read(key.tenant, lambda tx: vectors.embedded_to(tx, key, model))

    async def embedders(self, key: Key) -> dict[str, int]:
        """See `Store.embedders`."""
        return await self._read(key.tenant, lambda tx: vectors.embedders(tx, key))

    async def embedded_in(self, tenant: str, model: str, scope: Scope) -> dict[str, EmbeddedTo]:
        """See `Store.embedded_in`."""
        return await self._read(tenant, lambda tx: vectors.embedded_in(tx, tenant, model, scope))

    async def put_vectors(
        self, key: Key, model: str, vectors: Sequence[Vector], *, first_seq: int, next_seq: int
    ) -> bool:
        """See `Store.put_vectors`."""
        span = first_seq, next_seq
        return await self._write(key.tenant, lambda tx: put_vectors(tx, key, model, vectors, span))

    async def vectors(self, key: Key, model: str, first_seq: int, limit: int) -> list[Vector]:
        """See `Store.vectors`."""
        return await self._read(
            key.tenant, lambda tx: vectors.vector_page(tx, key, model, first_seq, limit)
        )

    async def vectors_at(self, key: Key, model: str, seqs: Sequence[int]) -> list[Vector]:
        """See `Store.vectors_at`."""
        return await self._read(key.tenant, lambda tx: vectors.vectors_at(tx, key, model, seqs))

    async def nearest(
        self, key: Key, model: str, vector: Sequence[float], limit: int
    ) -> list[Vector] | None:
        """See `recall.vectors.SignSearch`; with pgvector, if it was installed at opening."""
        given = key, model, vector, limit
        return await self._with_pgvector(
            key.tenant, lambda tx, place: vectors.nearest_vectors(tx, *given, place)
        )

    async def nearest_in(
        self, tenant: str, model: str, vector: Sequence[float], limit: int, scope: Scope
    ) -> list[tuple[str, Vector]] | None:
        """See `recall.vectors.SignSearch`."""
        given = tenant, model, vector, limit, scope
        return await self._with_pgvector(
            tenant, lambda tx, place: vectors.nearest_in(tx, *given, place)
        )

    async def _with_pgvector(
        self, tenant: str, search: Callable[[Transaction, str], Awaitable[list[T]]]
    ) -> list[T] | None:
        place = self._vectors_in
        if place is None:
            return None
        try:
            return await self._read(tenant, lambda tx: search(tx, place))
        except StoreError as error:
            if not isinstance(error.__cause__, vectors.GONE):
                raise
            self._vectors_in = None  # dropped, moved or forbidden since
            return None

    async def unembedded(self, tenant: str, model: str, limit: int = 100) -> list[Key]:
        """See `Store.unembedded`."""
        return await self._read(tenant, lambda tx: vectors.unembedded(tx, tenant, model, limit))

    async def topics(self, key: Key) -> TopicAssignments:
        """See `Store.topics`."""
        return await self._read(key.tenant, lambda tx: read_topics(tx, key, self._topics))

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
        id_, saved = await self._write(
            key.tenant, lambda tx: save_topics(tx, key, topics, members, (revision, next_seq))
        )
        self._topics.update(id_, saved, topics)
        return saved

    async def members(self, key: Key, topic: int, first_seq: int = 0) -> list[int]:
        """See `Store.members`."""
        return await self._read(key.tenant, lambda tx: topic_members(tx, key, topic, first_seq))

    async def topics_of(self, key: Key, seqs: Sequence[int]) -> dict[int, int]:
        """See `Store.topics_of`."""
        return await self._read(key.tenant, lambda tx: topics_of(tx, key, seqs))

    # -- digests and leases -------------------------------------------------------------------

    async def lease(self, key: Key, owner: str, seconds: float) -> Lease | None:
        """See `Store.lease`."""
        check_lease_seconds(seconds)
        return await self._write(key.tenant, lambda tx: leases.lease(tx, key, owner, seconds))

    async def renew(self, lease: Lease, seconds: float) -> Lease:
        """See `Store.renew`."""
        check_lease_seconds(seconds)
        return await self._write(lease.key.tenant, lambda tx: leases.renew(tx, lease, seconds))

    async def release(self, lease: Lease) -> None:
        """See `Store.release`."""
        await self._write(lease.key.tenant, lambda tx: leases.release(tx, lease))

    async def begin_digest(self, lease: Lease, digest: Digest) -> Digest:
        """See `Store.begin_digest`."""
        return await self._write(lease.key.tenant, lambda tx: leases.begin(tx, lease, digest))

    async def finish_digest(self, lease: Lease, digest: Digest) -> Digest:
        """See `Store.finish_digest`."""
        return await self._write(lease.key.tenant, lambda tx: leases.finish(tx, lease, digest))

    async def undo_digest(self, lease: Lease, version: int) -> Digest:
        """See `Store.undo_digest`."""
        return await self._write(lease.key.tenant, lambda tx: leases.undo(tx, lease, version))

    async def fail_damaged(self, lease: Lease) -> int:
        """See `Store.fail_damaged`."""
        return await self._write(lease.key.tenant, lambda tx: leases.fail_damaged(tx, lease))

    async def digests(self, key: Key, versions: Sequence[int] | None = None) -> list[Digest]:
        """See `Store.digests`."""
        return await self._read(key.tenant, lambda tx: leases.digests(tx, key, versions))

    async def newest_digest(self, key: Key, topic: int | None = None) -> Digest | None:
        """See `Store.newest_digest`."""
        return await self._read(key.tenant, lambda tx: leases.newest_digest(tx, key, topic))

    async def put_digests(self, key: Key, digests: Sequence[Digest]) -> None:
        """See `Store.put_digests`."""
        await self._write(key.tenant, lambda tx: leases.put_all(tx, key, digests))

    async def mark_pending(self, key: Key, due: datetime, *, postpone: bool = False) -> None:
        """See `Store.mark_pending`."""
        when = due + await self._ahead()
        await self._write(key.tenant, lambda tx: pending.mark(tx, key, when, postpone=postpone))

    async def due(
        self, now: datetime, limit: int = 100, tenants: Collection[str] | None = None
    ) -> list[Key]:
        """See `Store.due`."""
        shared = now + await self._ahead()
        one = next(iter(tenants)) if tenants and len(tenants) == 1 else ALL_TENANTS
        return await self._read(one, lambda tx: pending.due(tx, shared, limit, tenants))

    async def _ahead(self) -> timedelta:
        """The offset to add to this machine's times: due times use the database's clock."""
        return timedelta() if self._clock else await self._skew.ahead()

    async def _now(self) -> int:
        (now,) = await self._read(ALL_TENANTS, lambda tx: tx.row(f"SELECT {tx.now}"))
        return int(now)

    def on_pending(self, tell: Callable[[], None], tenant: str | None = None) -> Callable[[], None]:
        """See `PendingNotifier.on_pending`."""
        return self._listener.add(tell, tenant)

    @property
    def listening(self) -> bool:
        """See `PendingNotifier.listening`."""
        return self._listener.listening

    async def pending(
        self, now: datetime, *, stuck_before: datetime, cards: str, tenant: str | None = None
    ) -> Pending:
        """See `Store.pending`."""
        ahead = await self._ahead()
        given = now + ahead, stuck_before + ahead, cards, tenant
        known = await self._read(tenant, lambda tx: pending.count(tx, *given))
        return known._replace(oldest=known.oldest and known.oldest - ahead)

    async def clear_pending(self, key: Key, last_seq: int) -> bool:
        """See `Store.clear_pending`."""
        return await self._write(key.tenant, lambda tx: pending.clear(tx, key, last_seq))

    async def unread(self, tenant: str, person: str | None = None, limit: int = 100) -> list[Head]:
        """See `Store.unread`."""
        return await self._read(tenant, lambda tx: pending.unread(tx, tenant, person, limit))

    async def mark_read(self, tenant: str, read: Mapping[str, int]) -> None:
        """See `Store.mark_read`."""
        await self._write(tenant, lambda tx: pending.mark_read(tx, tenant, read))

    # -- cards --------------------------------------------------------------------------------

    async def put_cards(
        self, cards: Sequence[Card], *, absent: bool = False, keep_times: bool = False
    ) -> int:
        """See `Store.put_cards`."""
        for card in cards:
            check_card(card)
        tenants = {card.tenant for card in cards}
        whose = tenants.pop() if len(tenants) == 1 else ALL_TENANTS
        how = {"absent": absent, "keep_times": keep_times}
        return await self._write(whose, lambda tx: put_cards(tx, cards, **how))

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
        return await self._read(tenant, lambda tx: select_cards(tx, wanted, limit))

    async def kinds(self) -> list[str]:
        """See `Store.kinds`."""
        return await self._read(None, card_kinds)

    async def drop_cards(
        self,
        kind: str,
        tenant: str,
        *,
        names: Sequence[str] | None = None,
        prefix: str | None = None,
    ) -> int:
        """See `Store.drop_cards`."""
        unwanted = drop_query(kind, tenant, names, prefix)
        return await self._write(tenant, lambda tx: drop_cards(tx, unwanted))

    # -- maintenance --------------------------------------------------------------------------

    async def archive(self, key: Key, first_seq: int, last_seq: int) -> Archived:
        """See `Store.archive`."""
        done = Archived()
        while True:
            live = partial(archive.live, key=key, first=first_seq, last=last_seq)
            found, runs = await self._read(key.tenant, live, brief=False)
            packed = await archive.pack(runs) if runs else []
            if found is None or not packed:
                return done
            for segment in packed:
                swap = partial(archive.store, found=found, packed=segment)
                done += await self._write(key.tenant, swap)
            first_seq = packed[-1].segment.last_seq + 1

    async def restore(self, key: Key, first_seq: int, last_seq: int) -> int:
        """See `Store.restore`."""
        return await self._write(
            key.tenant, lambda tx: archive.restore(tx, key, first_seq, last_seq)
        )

    async def erase(self, key: Key) -> Erased:
        """See `Store.erase`; docs/postgres.md lists where bytes can remain."""
        erased = await self._write(key.tenant, lambda tx: erase.erase(tx, key))
        await self._vacuum.vacuum()
        return erased

    async def erase_entries(self, key: Key, erasure: Erasure) -> Erased:
        """See `Store.erase_entries`."""
        return await self._write(key.tenant, lambda tx: erase.erase_entries(tx, key, erasure))

    async def scrub(self) -> None:
        """See `Store.scrub`."""
        await self._vacuum.vacuum()

    async def backup(self, path: Path, progress: Progress | None = None) -> None:
        """See `Store.backup`; the backup is an SQL file for `psql`."""
        await self._read(ALL_TENANTS, lambda tx: tx.row("SELECT 1"))  # fails if closed or forked
        await backup.copy_to(self._database, path, progress)

    async def restore_backup(self, path: Path) -> None:
        """See `Restorable.restore_backup`."""
        await backup.load(self._database, path)

    def owns(self, path: Path) -> bool:
        """See `Store.owns`; always False: the data is on the server."""
        del path
        return False

    async def damage(self, key: Key) -> list[Damage]:
        """See `Store.damage`."""
        work = partial(seals.damaged_rows, key=key)
        return await self._read(key.tenant, work, brief=False)

    async def names(self, tenant: str) -> list[str]:
        """See `Store.names`."""
        return await self._read(tenant, lambda tx: seals.names(tx, tenant))

    async def mend(self, key: Key, parts: Collection[str], known: Known) -> None:
        """See `Store.mend`."""
        await self._write(key.tenant, lambda tx: seals.mend(tx, key, parts, known))

    async def check(self, *, thorough: bool = False) -> list[Finding]:
        """See `Store.check`."""
        return await self._read(ALL_TENANTS, partial(health.check, thorough=thorough), brief=False)
