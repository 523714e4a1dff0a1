"""Appends: each conversation has a queue, and queued appends share one write.

That write is the commit: it requires the head that it was planned on, adds messages, pins and
idempotency keys, and updates the head. If another writer came first, it changes nothing and is
planned again. Every write has a unique token: after a lost connection, the log is searched for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from firnline.errors import (
    FirnlineError,
    InputError,
    MessageTooLarge,
    StoreError,
    StoreTimeout,
    StoreUnavailable,
)
from firnline.log import limits
from firnline.log.entry import Appended, Entry, EntryDraft, Idempotency, Key, genesis
from firnline.log.message import microseconds
from firnline.store import rows
from firnline.store.mongo import log
from firnline.store.mongo.connection import Doc, MongoDatabase, is_in_doubt, is_transient, pause
from firnline.store.mongo.flush import MESSAGE_BYTES, drop_staged, flush, put_new
from firnline.store.mongo.heads import (
    INLINE_BYTES,
    HeadState,
    find,
    find_sound,
    new_head,
    state_of,
    twin_of,
    unknown_conversation,
    with_twin,
)
from firnline.store.rows import SEQ_MAX

BODY_MAX: Final = limits.MESSAGE_BYTES_MAX - 64 * 1024
"""Maximum bytes of a message: a MongoDB document is limited to 16 MiB in all."""
TAIL_ENTRIES: Final = 48
TAIL_BYTES: Final = 32 * 1024
_PINS_MAX: Final = 100_000
_REMEMBERED: Final = 256
_UNKNOWN: Final = "outcome unknown; retry with the same idempotency key"

logger: Final = logging.getLogger("firnline")


@dataclass(eq=False)
class PendingAppend:
    """One queued append."""

    drafts: Sequence[EntryDraft]
    expected_seq: int | None
    idempotency: Idempotency | None
    person: str | None
    done: asyncio.Future[Appended]
    size: int = 0

    def __post_init__(self) -> None:
        self.size = sum(len(draft.body) for draft in self.drafts)


@dataclass
class _WritePlan:
    """What one write would do: the entries, and the result or error of each job."""

    docs: list[Doc] = field(default_factory=list)
    pins: list[int] = field(default_factory=list)
    results: list[tuple[PendingAppend, Appended | FirnlineError]] = field(default_factory=list)
    head: tuple[int, int, str] = (0, 0, "")
    times: tuple[int, int] = (0, 0)
    refuses: bool = False
    person: str | None = None


class MongoWriter:
    """The queues of one store, and a cache of recent heads."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._waiting: dict[Key, list[PendingAppend]] = {}
        self._pumps: dict[Key, asyncio.Task[None]] = {}
        self._known: OrderedDict[Key, HeadState] = OrderedDict()
        self._count = 0

    async def append(
        self,
        key: Key,
        drafts: Sequence[EntryDraft],
        expected_seq: int | None,
        idempotency: Idempotency | None,
        person: str | None = None,
    ) -> Appended:
        """Queue an append and wait for it."""
        if self._count >= limits.WRITES_WAITING_MAX:
            raise StoreUnavailable("too many queued writes; slow down and retry")
        done: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(
            PendingAppend(drafts, expected_seq, idempotency, person, done)
        )
        if key not in self._pumps:
            self._pumps[key] = asyncio.create_task(self._pump(key))
        self._count += 1
        try:
            return await done
        finally:
            self._count -= 1

    async def close(self) -> None:
        """Finish all queued appends."""
        while self._pumps:
            await asyncio.gather(*self._pumps.values(), return_exceptions=True)
        self._known.clear()

    async def _pump(self, key: Key) -> None:
        try:
            while self._waiting.get(key):
                jobs = self._next(key)
                failure: FirnlineError = StoreTimeout(f"append interrupted: {_UNKNOWN}")
                try:
                    await self._commit(key, jobs)
                except FirnlineError as error:
                    failure = error
                finally:
                    _fail(jobs, failure)
                await self._tidy(key)
        finally:
            self._pumps.pop(key, None)
            _fail(self._waiting.pop(key, []), StoreUnavailable("the store was closed"))

    def _next(self, key: Key) -> list[PendingAppend]:
        """The jobs that share the next write; a large one gets its own."""
        waiting = self._waiting[key]
        taken, size = 0, 0
        for job in waiting:
            size += job.size
            if taken and (size > INLINE_BYTES // 4 or taken >= limits.BATCH_WRITES_MAX):
                break
            taken += 1
        jobs = [job for job in waiting[:taken] if not job.done.done()]
        del waiting[:taken]
        return jobs

    async def _commit(self, key: Key, jobs: Sequence[PendingAppend]) -> None:
        """Retry until all jobs have a result; raises if they all fail."""
        doubtful: list[_WritePlan] = []
        tries = 0
        deadline = time.monotonic() + limits.BUSY_SECONDS
        while jobs:
            try:
                if await self._try(key, jobs, doubtful):
                    return
            except FirnlineError as error:
                tries += 1
                if tries >= limits.STORE_TRIES_MAX or not is_transient(error):
                    if doubtful and not is_in_doubt(error):
                        raise StoreTimeout(f"{_UNKNOWN}: {error}") from error
                    raise
            if time.monotonic() > deadline and doubtful:  # it may have been applied
                raise StoreTimeout(f"timed out: {_UNKNOWN}")
            if time.monotonic() > deadline:
                raise StoreUnavailable("too many concurrent writes, nothing was written; retry")
            await pause(tries)

    async def _try(
        self, key: Key, jobs: Sequence[PendingAppend], doubtful: list[_WritePlan]
    ) -> bool:
        """One attempt; False if another writer came first. Doubtful writes are checked first."""
        state = self._known.pop(key, None)
        fresh = state is None or bool(doubtful)
        if fresh:
            state = await find_sound(self._database, key)
        if state is not None and await self._was_written(state, doubtful):
            return True
        if state is not None and not _has_room(state, jobs):
            await flush(self._database, state)
            return False
        plan = await self._plan(key, state, jobs)
        if plan.refuses and not fresh:  # the cached head may be stale
            return False
        try:
            written = await self._write(key, state, plan)
        except FirnlineError as error:
            if is_in_doubt(error):
                doubtful.append(plan)
            raise
        if written:
            _resolve(plan)
        return written

    async def _was_written(self, state: HeadState, doubtful: Sequence[_WritePlan]) -> bool:
        """Whether a doubtful write is in the log; if so, its jobs are resolved."""
        for plan in doubtful:
            token = plan.docs[0]["batch"]
            found = any(row.get("batch") == token for row in state.tail)
            at = {**state.own, "seq": plan.docs[0]["seq"], "batch": token}
            doc = await self._database.read(partial(self._database["entries"].find_one, at))
            if found or doc is not None:
                _resolve(plan)
                return True
        return False

    async def _plan(
        self, key: Key, state: HeadState | None, jobs: Sequence[PendingAppend]
    ) -> _WritePlan:
        """Plan one write for all jobs, in order."""
        names = [job.idempotency.key for job in jobs if job.idempotency]
        known = await log.find_keys(self._database, state, names) if state and names else {}
        found = state.found if state else None
        plan = _WritePlan(
            head=(found.next_seq, found.total, found.hash) if found else (0, 0, genesis(key)),
            person=state.doc.get("person") if state else None,
        )
        done: dict[str, tuple[str, Appended]] = {}
        for job in jobs:
            name = job.idempotency
            try:
                rows.check_person(key, plan.person, job.person)
                if name and name.key in done:
                    rows.check_repeat(name, done[name.key][0])
                    earlier = Appended(done[name.key][1].entries, replayed=True)
                    plan.results.append((job, earlier))
                elif state and name and name.key in known:
                    plan.refuses = True
                    fingerprint, first, last = known[name.key]
                    rows.check_repeat(name, fingerprint)
                    entries = await self._span(key, first, last)
                    plan.results.append((job, Appended(entries, replayed=True)))
                else:
                    added = _add(plan, key, job, state)
                    plan.results.append((job, added))
                    if name:
                        done[name.key] = name.fingerprint, added
            except FirnlineError as error:
                plan.refuses = True
                plan.results.append((job, error))
        return plan

    async def _span(self, key: Key, first: int, last: int) -> tuple[Entry, ...]:
        """Entries of an earlier append, wherever they are stored now."""
        none: list[Entry] = []
        entries = await log.read(
            self._database, key, lambda s: log.span(self._database, s, first, last), none
        )
        if not entries:
            name = key.conversation
            raise StoreUnavailable(f"{name} was erased in the meantime; nothing was written")
        return tuple(entries)

    async def _write(self, key: Key, state: HeadState | None, plan: _WritePlan) -> bool:
        """Commit the plan; False if another writer came first."""
        if not plan.docs:
            if state is not None:
                self._remember(key, state)
            return True
        plan.docs[0]["batch"] = token = ObjectId()
        tail = plan.docs
        life = state.life if state else ObjectId()
        if sum(len(doc["body"]) for doc in tail) > INLINE_BYTES:
            tail = [await self._stage({**key._asdict(), "life": life}, plan.docs, token)]
        doc = await self._move_head(key, state, life, plan, tail)
        if doc is not None:
            self._remember(key, state_of(key, doc))
        elif tail is not plan.docs:
            await drop_staged(self._database, {**key._asdict(), "life": life}, [tail[0]["staged"]])
        return doc is not None

    async def _move_head(
        self, key: Key, state: HeadState | None, life: ObjectId, plan: _WritePlan, tail: list[Doc]
    ) -> Doc | None:
        """Write the head; returns the new one, or None if it has changed."""
        next_seq, total, hash_ = plan.head
        new = {"next_seq": next_seq, "total": total, "hash": hash_, "updated_at": plan.times[1]}
        new["unflushed"] = True
        if plan.person is not None:
            new["unread"] = True
        if state is None:
            return await self._create_head(key, life, plan, {**new, "tail": tail})
        same = {**key._asdict(), "_id": life}
        same |= {"next_seq": state.found.next_seq, "hash": state.found.hash}
        named: Doc = {}
        if plan.person is not None:
            same["person"] = state.doc.get("person")  # None also finds heads without the field
            named["person"] = plan.person
        push: Doc = {"tail": {"$each": tail}}
        twin = state.doc.get("twin")
        if plan.pins:
            push["pins"] = {"$each": plan.pins}
            if twin is not None:
                push["twin.pins"] = push["pins"]
        sets = {**new, **named}
        sets = sets if twin is None else with_twin(sets)
        change = {"$set": sets, "$push": push}
        heads = self._database["conversations"]
        done = await self._database.write(lambda: heads.update_one(same, change))
        if not done.matched_count:
            return None
        named["pins"] = [*state.doc.get("pins", ()), *plan.pins]
        done_doc = {**state.doc, **new, **named, "tail": [*state.tail, *tail]}
        return done_doc if twin is None else {**done_doc, "twin": twin_of(done_doc)}

    async def _create_head(
        self, key: Key, life: ObjectId, plan: _WritePlan, new: Doc
    ) -> Doc | None:
        """Write the head of a new conversation; None if another writer came first."""
        doc = {**new_head(key, plan.times[0]), **new, "_id": life}
        doc |= {"pins": plan.pins, "person": plan.person}
        doc["twin"] = twin_of(doc)
        heads = self._database["conversations"]
        try:
            await self._database.write(lambda: heads.insert_one(dict(doc)))
        except StoreError as error:
            if isinstance(error.__cause__, DuplicateKeyError):
                return None
            raise
        return doc

    async def _stage(self, own: Doc, docs: Sequence[Doc], token: ObjectId) -> Doc:
        """Stage entries that are too large for a head; returns the tail row that refers to them."""
        place = ObjectId()
        page: list[Doc] = []
        size = 0
        for n, doc in enumerate(docs):
            page.append({**own, "token": place, "n": n, "row": doc})
            size += len(doc["body"])
            if size > MESSAGE_BYTES or n == len(docs) - 1:
                await put_new(self._database, "staged", page)
                page, size = [], 0
        return {
            "seq": docs[0]["seq"],
            "staged": place,
            "count": len(docs),
            "batch": token,
            "body": b"",
        }

    def _remember(self, key: Key, state: HeadState) -> None:
        self._known[key] = state
        self._known.move_to_end(key)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    async def _tidy(self, key: Key) -> None:
        """Flush a long tail; if that fails, it is flushed later."""
        state = self._known.get(key)
        if state is None or not (state.staged or _tail_is_long(state)):
            return
        self._known.pop(key)
        try:
            state = await flush(self._database, state)
        except FirnlineError as error:
            logger.warning("conversation head: cannot flush the tail, will retry later: %s", error)
            return
        if state is not None:
            self._remember(key, state)


def _add(plan: _WritePlan, key: Key, job: PendingAppend, state: HeadState | None) -> Appended:
    """Add the job's entries to the plan; if it raises, the plan is unchanged."""
    next_seq, total, hash_ = plan.head
    rows.check_append(key, next_seq, job.drafts, job.expected_seq)
    if max(len(draft.body) for draft in job.drafts) > BODY_MAX:
        raise MessageTooLarge(f"message too large: with MongoDB the limit is {BODY_MAX:,} bytes")
    pins = [seq for seq, draft in enumerate(job.drafts, next_seq) if draft.pinned]
    _check_pins(state, len(plan.pins) + len(pins))
    entries = rows.next_entries(next_seq, total, hash_, job.drafts)
    docs = [_row(entry, draft) for entry, draft in zip(entries, job.drafts, strict=True)]
    last = entries[-1]
    if job.idempotency:
        docs[0] |= {**job.idempotency._asdict(), "last": last.seq}
    times = [microseconds(draft.time) for draft in (job.drafts[0], job.drafts[-1])]
    plan.times = (times[0] if not plan.docs else plan.times[0], times[1])
    plan.docs += docs
    plan.person = plan.person or job.person
    plan.pins += pins
    plan.head = last.seq + 1, last.total, last.hash
    return Appended(entries)


def _check_pins(state: HeadState | None, more: int) -> None:
    """Enforce the limit of pins in a head."""
    if more and state and len(state.doc.get("pins", ())) + more > _PINS_MAX:
        raise MessageTooLarge(f"too many pins: the limit is {_PINS_MAX:,} per conversation")


async def pin(database: MongoDatabase, key: Key, seq: int, *, pinned: bool) -> None:
    """Pin or unpin an entry; does nothing if there is nothing to change."""
    if pinned:
        _check_pins(await find(database, key), 1)
    there: Doc = {**key._asdict(), "next_seq": {"$gt": min(max(seq, -1), SEQ_MAX)}}
    change = {"$addToSet" if pinned else "$pull": with_twin({"pins": seq})}
    if 0 <= seq <= SEQ_MAX:
        done = await database.read(lambda: database["conversations"].update_one(there, change))
        if done.matched_count:
            return
    if await find(database, key) is None:
        raise unknown_conversation(key)
    raise InputError(f"{key.conversation} has no message {seq}")


def _row(entry: Entry, draft: EntryDraft) -> Doc:
    return {
        "seq": entry.seq,
        "body": draft.body,
        "tokens": entry.tokens,
        "total": entry.total,
        "hash": entry.hash,
        "tokenizer": entry.tokenizer,
    }


def _has_room(state: HeadState, jobs: Sequence[PendingAppend]) -> bool:
    """Whether the tail has room for the jobs."""
    size = sum(len(row["body"]) for row in state.tail) + sum(job.size for job in jobs)
    return not state.staged and (not state.tail or size <= 2 * INLINE_BYTES)


def _tail_is_long(state: HeadState) -> bool:
    size = sum(len(row["body"]) for row in state.tail)
    return len(state.tail) >= TAIL_ENTRIES or size >= TAIL_BYTES


def _fail(jobs: Sequence[PendingAppend], error: FirnlineError) -> None:
    """Fail the jobs that have no result yet."""
    for job in jobs:
        if not job.done.done():
            job.done.set_exception(error)


def _resolve(plan: _WritePlan) -> None:
    for job, result in plan.results:
        if job.done.done():
            continue
        if isinstance(result, Appended):
            job.done.set_result(result)
        else:
            job.done.set_exception(result)
