"""The SQLite store: one writer, a few readers, and the protocol's methods over both."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from firnline.errors import (
    InputError,
    StoreCorrupt,
    StoreError,
    StoreNotOpen,
    StoreReadOnly,
    StoreUnavailable,
)
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
from firnline.log.message import microseconds, utc_now
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
from firnline.store.digests import check_lease_seconds
from firnline.store.rows import Described, page
from firnline.store.sqlite import (
    archive,
    checksums,
    erase,
    health,
    leases,
    log,
    pending,
    projects,
    seals,
    search,
    vectors,
)
from firnline.store.sqlite.backup import copy_to, files_of, load
from firnline.store.sqlite.cards import card_kinds, drop_cards, put_cards, select_cards
from firnline.store.sqlite.commit_record import CommitCounter
from firnline.store.sqlite.connection import (
    DatabaseFile,
    check_filesystem,
    check_library,
    translate_errors,
)
from firnline.store.sqlite.migrate import open_file
from firnline.store.sqlite.readers import Readers
from firnline.store.sqlite.topics import read_topics, save_topics, topic_members, topics_of
from firnline.store.sqlite.transactions import Work
from firnline.store.sqlite.vectors import put_vectors
from firnline.store.sqlite.write_buffer import WriteBuffer
from firnline.store.sqlite.writer import LARGE, Writer
from firnline.store.topics import TopicCache

T = TypeVar("T")

logger = logging.getLogger("firnline")

_open_here: Counter[Path] = Counter()
_open_before_fork: set[Path] = set()


def _after_fork() -> None:
    _open_before_fork.update(+_open_here)
    _open_here.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class SqliteStore:
    """Keeps conversations in one SQLite file that several processes may share.

    With `full_sync=False`, a power cut may lose the newest messages; a crash of the process does
    not. `vfs` names a SQLite VFS registered with apsw.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        read_only: bool = False,
        full_sync: bool = True,
        vfs: str | None = None,
        busy_seconds: float = limits.BUSY_SECONDS,
        clock: Clock = utc_now,
    ) -> None:
        self._place = DatabaseFile(Path(path), read_only, full_sync, vfs, busy_seconds)
        self._clock = clock
        self._heads = WriteBuffer(search.index_page, CommitCounter(self._place))
        self._topics = TopicCache()
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._process = 0

    # -- opening and closing ------------------------------------------------------------------

    async def open(self) -> None:
        """Create or migrate the file, and finish what a crash interrupted."""
        if self._readers is not None:
            raise StoreError("the store is already open")
        self._process = os.getpid()
        if self._place.path in _open_before_fork:
            raise StoreError(
                f"{self._place.path} was open when this process was forked, and SQLite's locks do "
                "not survive that; start the child with spawn instead of fork"
            )
        check_library()
        check_filesystem(self._place.path)
        self._place, connection = await asyncio.to_thread(open_file, self._place)
        self._readers = Readers(self._place)
        _open_here[self._place.path] += 1
        if connection is None:
            return
        try:
            with translate_errors(self._place.path):
                self._heads.fell_behind(id_ for id_, _ in search.unindexed(connection))
            self._writer = Writer(self._place, connection, self._heads)
            if await self._read(erase.scrub_pending):
                await self._write(self._scrub, alone=True)
        except StoreUnavailable as error:
            # Still pending: `check` reports it, and the next erasure or open retries.
            logger.warning("erasure could not be finished: %s", error)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Write what is queued, then close the file."""
        readers, self._readers = self._readers, None
        writer, self._writer = self._writer, None
        if readers is not None and self._process == os.getpid():
            await asyncio.shield(asyncio.to_thread(self._let_go, readers, writer))

    def _let_go(self, readers: Readers, writer: Writer | None) -> None:
        try:
            readers.close()
        finally:  # on a failing disk, close the writer even if the readers fail
            if writer is not None:
                writer.close()
                self._heads.close()
            _open_here[self._place.path] -= 1

    def _scrub(self, connection: apsw.Connection) -> None:
        erase.scrub(connection)
        self._heads.erased(connection)

    def _write(self, work: Work[T], *, alone: bool = False, size: float = LARGE) -> Awaitable[T]:
        self._check_process()
        if self._place.read_only:
            raise StoreReadOnly(f"{self._place.path} is open read-only")
        if self._writer is None:
            raise StoreNotOpen
        return self._writer.run(work, alone=alone, size=size)

    async def _change(self, work: Work[T]) -> T:
        """Like `_write`, for work that reads entries appended earlier in the transaction."""

        def after_appends(connection: apsw.Connection) -> T:
            self._heads.write_entries(connection)
            return work(connection)

        return await self._write(after_appends)

    async def _read(self, work: Work[T], *, glance: bool = False, proven: bool = False) -> T:
        """Return what `work` reads; `glance` is for a row or two found by an index.

        `proven` is for what no row proves, such as what an index says; see `Readers.run`.
        """
        readers = self._open_readers()
        return await (readers.glance(work) if glance else readers.run(work, proven=proven))

    def _open_readers(self) -> Readers:
        self._check_process()
        if self._readers is None:
            raise StoreNotOpen
        return self._readers

    async def _read_of(
        self,
        key: Key,
        work: Callable[[apsw.Connection, log.SqliteRow], T],
        otherwise: T,
        *,
        glance: bool = False,
        proven: bool = False,
        tolerant: bool = False,
    ) -> T:
        """Return what `work` reads of a conversation; `otherwise` if it is proven to be missing."""

        def sure(connection: apsw.Connection) -> tuple[T] | None:
            there = log.find(connection, key, tolerant=tolerant)
            return None if there is None else (work(connection, there),)

        readers, found = self._open_readers(), None
        if not proven:
            found = await (readers.glance(sure) if glance else readers.run(sure))
        found = found or await readers.run(sure, proven=True)
        return found[0] if found else otherwise

    def _check_process(self) -> None:
        if self._process != os.getpid() and self._process:
            raise StoreError(
                "this store was opened before a fork, which SQLite's connections must not cross; "
                "start the child with spawn instead of fork, and open it there"
            )

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
        """See `Store.append`."""
        if not drafts:
            raise InputError("nothing to append")
        return await self._write(
            lambda con: log.append(
                con, self._heads, key, drafts, expected_seq, idempotency, person
            ),
            size=sum([len(draft.body) for draft in drafts]),
        )

    async def used_keys(self, key: Key, *, after: str = "", limit: int = 100) -> list[UsedKey]:
        """See `Store.used_keys`."""
        work = partial(log.used_keys, after=after, limit=limit)
        return await self._read_of(key, work, [], proven=True)

    async def put_used_keys(self, key: Key, used: Sequence[UsedKey]) -> None:
        """See `Store.put_used_keys`."""
        await self._change(lambda con: log.put_used_keys(con, key, used))

    async def read(
        self, key: Key, first_seq: int = 0, last_seq: int | None = None, limit: int | None = None
    ) -> list[Entry]:
        """See `Store.read`."""

        def work(connection: apsw.Connection, found: log.SqliteRow) -> list[Entry]:
            first = max(first_seq, 0)
            last = found.next_seq - 1 if last_seq is None else min(last_seq, found.next_seq - 1)
            if limit is not None:
                last = min(last, first + limit - 1)
            return log.span(connection, found, first, last)

        return await self._read_of(key, work, [])

    async def newest(self, key: Key, tokens_max: int) -> list[Entry]:
        """See `Store.newest`."""
        return await self._read_of(key, lambda con, found: log.newest(con, found, tokens_max), [])

    async def at(self, key: Key, seqs: Sequence[int]) -> list[Entry]:
        """See `Store.at`."""

        def work(connection: apsw.Connection, found: log.SqliteRow) -> list[Entry]:
            there = sorted({seq for seq in seqs if 0 <= seq < found.next_seq})
            return log.at(connection, found, there)

        return await self._read_of(key, work, [])

    async def dated(
        self, key: Key, since: datetime, until: datetime, limit: int, first_seq: int = 0
    ) -> list[Entry]:
        """See `Store.dated`."""
        if not self._place.read_only:
            await self._catch_up(*key)
        work = partial(log.dated, since=since, until=until, limit=limit, first_seq=first_seq)
        return await self._read_of(key, work, [], proven=True)

    async def tokens_between(self, key: Key, first_seq: int, last_seq: int) -> int:
        """See `Store.tokens_between`."""

        def work(connection: apsw.Connection, found: log.SqliteRow) -> int:
            first, last = max(first_seq, 0), min(last_seq, found.next_seq - 1)
            if first > last:
                return 0
            before = log.total_at(connection, found, first - 1)
            return log.total_at(connection, found, last) - before

        return await self._read_of(key, work, 0)

    async def records(self, key: Key, first_seq: int, limit: int) -> list[Record]:
        """See `Store.records`."""

        def work(connection: apsw.Connection, found: log.SqliteRow) -> list[Record]:
            to_the_end = log.SEQ_MASK  # includes records after the recorded head
            return page(log.records(connection, found, first_seq, to_the_end, tolerant=True), limit)

        return await self._read_of(key, work, [], tolerant=True)

    async def head(self, key: Key) -> Head | None:
        """See `Store.head`."""
        found = await self._read(lambda con: log.head(con, key), glance=True)
        return found or await self._read(lambda con: log.head(con, key), proven=True)

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
        asked = tenant, (project, person), after, limit
        return await self._read(lambda con: log.conversations(con, *asked), proven=True)

    async def recent(
        self, tenant: str, project: str | None, *, after: Head | None = None, limit: int = 100
    ) -> list[Head]:
        """See `Store.recent`."""
        asked = tenant, project, after, limit
        return await self._read(lambda con: log.recent(con, *asked), proven=True)

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
        now = microseconds(self._clock())
        about = Described(project, person, metadata, strategy, created_at)
        return await self._change(
            lambda con: projects.describe(con, self._heads, key, about, now, known)
        )

    async def pin(self, key: Key, seq: int, *, pinned: bool = True) -> None:
        """See `Store.pin`."""
        work = log.pin if pinned else log.unpin
        await self._change(lambda con: work(con, key, seq))

    async def pinned(self, key: Key) -> list[Entry]:
        """See `Store.pinned`."""
        return await self._read_of(key, log.pinned, [])

    async def projects(self, tenant: str) -> list[Project]:
        """See `Store.projects`."""
        return await self._read(lambda con: projects.list_all(con, tenant))

    async def save_project(self, tenant: str, project: Project) -> None:
        """See `Store.save_project`."""
        await self._change(lambda con: projects.save(con, tenant, project))

    async def tenants(self) -> list[str]:
        """See `Store.tenants`."""
        return await self._read(projects.tenants, proven=True)

    # -- search -------------------------------------------------------------------------------

    async def search(
        self, tenant: str, query: str, *, scope: Scope = EVERYTHING, limit: int = 20
    ) -> list[IndexMatch]:
        """See `Store.search`."""
        if not self._place.read_only:
            await self._catch_up(tenant, scope.conversation)

        def work(connection: apsw.Connection) -> list[IndexMatch]:
            asked = connection, tenant, query, scope
            if self._place.read_only and search.is_outdated(connection):
                return search.unindexed_matches(*asked, limit)
            found = search.matches(*asked, limit)
            if self._place.read_only and len(found) < limit:
                room = limit - len(found)
                found += search.unindexed_matches(*asked, room)
            return found

        return await self._read(work, proven=True)

    async def _catch_up(self, tenant: str | None = None, conversation: str | None = None) -> None:
        """Index the present entries in bounded transactions, so that appends can run in between."""
        behind = await self._read(lambda con: search.unindexed(con, tenant, conversation))
        while behind:
            behind = await self._change(partial(search.index_page, behind=behind))

    async def rebuild_index(self, progress: Progress | None = None) -> None:
        """See `Store.rebuild_index`."""
        await self.scrub()  # else readers find the index corrupt, for what they cached of it
        await self._change(search.clear)
        behind = await self._read(search.unindexed)
        while behind:
            behind = await self._change(partial(search.index_page, behind=behind))
            if progress is not None:
                progress(*await self._read(projects.indexed))
        if await self._read(lambda con: health.lacks_checksums(con, self._place)):
            await self._write(vectors.drop_damaged, alone=True)
            await self._write(checksums.rewrite, alone=True)

    # -- vectors and topics -------------------------------------------------------------------

    async def embedded(self, key: Key, model: str) -> int:
        """See `Store.embedded`."""
        return await self._read_of(key, partial(vectors.embedded_to, model=model), 0, proven=True)

    async def embedders(self, key: Key) -> dict[str, int]:
        """See `Store.embedders`."""
        return await self._read(_on_conversation(key, vectors.embedders, {}))

    async def embedded_in(self, tenant: str, model: str, scope: Scope) -> dict[str, EmbeddedTo]:
        """See `Store.embedded_in`."""
        work = partial(vectors.embedded_in, tenant=tenant, model=model, scope=scope)
        return await self._read(work, proven=True)

    async def put_vectors(
        self, key: Key, model: str, vectors: Sequence[Vector], *, first_seq: int, next_seq: int
    ) -> bool:
        """See `Store.put_vectors`."""
        work = partial(put_vectors, model=model, vectors=vectors, span=(first_seq, next_seq))
        return await self._change(_on_conversation(key, work, otherwise=False))

    async def vectors(self, key: Key, model: str, first_seq: int, limit: int) -> list[Vector]:
        """See `Store.vectors`."""
        work = partial(vectors.vector_page, model=model, first_seq=first_seq, limit=limit)
        return await self._read_of(key, work, [], proven=True)

    async def vectors_at(self, key: Key, model: str, seqs: Sequence[int]) -> list[Vector]:
        """See `Store.vectors_at`."""
        work = partial(vectors.vectors_at, model=model, seqs=seqs)
        return await self._read_of(key, work, [], proven=True)

    async def unembedded(self, tenant: str, model: str, limit: int = 100) -> list[Key]:
        """See `Store.unembedded`."""
        work = partial(vectors.unembedded, tenant=tenant, model=model, limit=limit)
        return await self._read(work, proven=True)

    async def topics(self, key: Key) -> TopicAssignments:
        """See `Store.topics`."""
        work = partial(read_topics, cache=self._topics)
        return await self._read_of(key, work, TopicAssignments({}, 0, 0))

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
        id_, saved = await self._change(
            lambda con: save_topics(con, key, topics, members, (revision, next_seq))
        )
        self._topics.update(id_, saved, topics)
        return saved

    async def members(self, key: Key, topic: int, first_seq: int = 0) -> list[int]:
        """See `Store.members`."""
        work = partial(topic_members, topic=topic, first_seq=first_seq)
        return await self._read_of(key, work, [])

    async def topics_of(self, key: Key, seqs: Sequence[int]) -> dict[int, int]:
        """See `Store.topics_of`."""
        return await self._read_of(key, partial(topics_of, seqs=seqs), {}, proven=True)

    # -- digests and leases -------------------------------------------------------------------

    async def lease(self, key: Key, owner: str, seconds: float) -> Lease | None:
        """See `Store.lease`."""
        check_lease_seconds(seconds)
        return await self._change(lambda con: leases.lease(con, key, owner, self._clock(), seconds))

    async def renew(self, lease: Lease, seconds: float) -> Lease:
        """See `Store.renew`."""
        check_lease_seconds(seconds)
        return await self._change(lambda con: leases.renew(con, lease, self._clock(), seconds))

    async def release(self, lease: Lease) -> None:
        """See `Store.release`."""
        await self._change(lambda con: leases.release(con, lease))

    async def begin_digest(self, lease: Lease, digest: Digest) -> Digest:
        """See `Store.begin_digest`."""
        return await self._change(lambda con: leases.begin(con, lease, digest, self._clock()))

    async def finish_digest(self, lease: Lease, digest: Digest) -> Digest:
        """See `Store.finish_digest`."""
        return await self._change(lambda con: leases.finish(con, lease, digest))

    async def undo_digest(self, lease: Lease, version: int) -> Digest:
        """See `Store.undo_digest`."""
        return await self._change(lambda con: leases.undo(con, lease, version))

    async def fail_damaged(self, lease: Lease) -> int:
        """See `Store.fail_damaged`."""
        return await self._change(lambda con: leases.fail_damaged(con, lease))

    async def digests(self, key: Key, versions: Sequence[int] | None = None) -> list[Digest]:
        """See `Store.digests`."""
        return await self._read_of(key, partial(leases.digests, versions=versions), [])

    async def newest_digest(self, key: Key, topic: int | None = None) -> Digest | None:
        """See `Store.newest_digest`."""
        work = partial(leases.newest_digest, topic=topic)
        return await self._read_of(key, work, None, glance=True)

    async def put_digests(self, key: Key, digests: Sequence[Digest]) -> None:
        """See `Store.put_digests`."""
        await self._change(lambda con: leases.put_all(con, key, digests))

    async def mark_pending(self, key: Key, due: datetime, *, postpone: bool = False) -> None:
        """See `Store.mark_pending`."""
        await self._write(lambda con: pending.mark(con, key, due, postpone=postpone))

    async def due(
        self, now: datetime, limit: int = 100, tenants: Collection[str] | None = None
    ) -> list[Key]:
        """See `Store.due`."""
        return await self._read(lambda con: pending.due(con, now, limit, tenants))

    async def pending(
        self, now: datetime, *, stuck_before: datetime, cards: str, tenant: str | None = None
    ) -> Pending:
        """See `Store.pending`."""
        return await self._read(lambda con: pending.count(con, now, stuck_before, cards, tenant))

    async def clear_pending(self, key: Key, last_seq: int) -> bool:
        """See `Store.clear_pending`."""
        return await self._change(lambda con: pending.clear(con, key, last_seq))

    async def unread(self, tenant: str, person: str | None = None, limit: int = 100) -> list[Head]:
        """See `Store.unread`."""
        return await self._read(lambda con: pending.unread(con, tenant, person, limit))

    async def mark_read(self, tenant: str, read: Mapping[str, int]) -> None:
        """See `Store.mark_read`."""
        await self._change(lambda con: pending.mark_read(con, tenant, read))

    # -- cards --------------------------------------------------------------------------------

    async def put_cards(
        self, cards: Sequence[Card], *, absent: bool = False, keep_times: bool = False
    ) -> int:
        """See `Store.put_cards`."""
        for card in cards:
            check_card(card)
        now = microseconds(self._clock())
        how = {"absent": absent, "keep_times": keep_times}
        return await self._write(lambda con: put_cards(con, self._heads, cards, now, **how))

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
        work = partial(select_cards, asked=wanted, limit=limit)
        if names is not None and len(found := await self._read(work)) == len({*names}):
            return found
        return await self._read(work, proven=True)

    async def kinds(self) -> list[str]:
        """See `Store.kinds`."""
        return await self._read(card_kinds, proven=True)

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
        return await self._write(lambda con: drop_cards(con, unwanted))

    # -- maintenance --------------------------------------------------------------------------

    async def archive(self, key: Key, first_seq: int, last_seq: int) -> Archived:
        """See `Store.archive`."""
        done = Archived()
        found = await self._read(lambda con: log.find(con, key))
        while found is not None:
            span = partial(archive.pack, found=found, first=first_seq, last=last_seq)
            packed = await self._read(span)
            if not packed:
                break
            for segment in packed:
                done += await self._change(partial(archive.store, found=found, packed=segment))
            first_seq = packed[-1].segment.last_seq + 1
        return done

    async def restore(self, key: Key, first_seq: int, last_seq: int) -> int:
        """See `Store.restore`."""
        return await self._change(
            _on_conversation(key, lambda con, f: archive.restore(con, f, first_seq, last_seq), 0)
        )

    async def erase(self, key: Key) -> Erased:
        """See `Store.erase`."""

        def work(connection: apsw.Connection) -> Erased:
            try:
                return erase.erase(connection, key, self._clock())
            finally:
                self._heads.erased(connection)

        return await self._write(work, alone=True)

    async def erase_entries(self, key: Key, erasure: Erasure) -> Erased:
        """See `Store.erase_entries`."""
        now = self._clock()

        async def attempt() -> Erased:
            return await self._change(lambda con: erase.erase_entries(con, key, erasure, now))

        try:
            return await attempt()
        except StoreCorrupt:
            if not await self._write(erase.drop_damaged, alone=True):
                raise
        return await attempt()

    async def scrub(self) -> None:
        """See `Store.scrub`."""
        if await self._read(erase.scrub_pending):
            await self._write(erase.scrub, alone=True)

    async def backup(self, path: Path, progress: Progress | None = None) -> None:
        """See `Store.backup`."""
        await self._read(lambda _: None)  # raises unless it is open in this process
        await copy_to(self._place, path, progress)

    async def restore_backup(self, path: Path) -> None:
        """See `Restorable.restore_backup`."""
        await load(self._place, path)

    def owns(self, path: Path) -> bool:
        """See `Store.owns`."""
        # By name and inode, never by opening the file: that would drop SQLite's locks.
        there = [file for file in files_of(self._place.path) if file.exists()]
        return path.exists() and any(path.samefile(file) for file in there)

    async def damage(self, key: Key) -> list[Damage]:
        """See `Store.damage`."""
        return await self._read(lambda con: seals.damaged_rows(con, key))

    async def names(self, tenant: str) -> list[str]:
        """See `Store.names`."""
        return await self._read(lambda con: seals.names(con, tenant))

    async def mend(self, key: Key, parts: Collection[str], known: Known) -> None:
        """See `Store.mend`."""
        await self._change(lambda con: seals.mend(con, key, parts, known))

    async def check(self, *, thorough: bool = False) -> list[Finding]:
        """See `Store.check`."""
        try:
            return await self._read(lambda con: health.check(con, self._place, thorough=thorough))
        except StoreCorrupt as error:
            return [Finding("pages", "broken", str(error))]


def _on_conversation(
    key: Key, work: Callable[[apsw.Connection, log.SqliteRow], T], otherwise: T
) -> Work[T]:
    """Run `work` on the conversation; returns `otherwise` if there is none."""

    def on_connection(connection: apsw.Connection) -> T:
        found = log.find(connection, key)
        return otherwise if found is None else work(connection, found)

    return on_connection
