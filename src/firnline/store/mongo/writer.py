"""Appends: each conversation's wait in a queue, and those that wait share one write.

That write is the commit: it names the head it was decided on, carries messages, pins and
idempotency keys, and moves the head. If somebody else was faster it changes nothing, and all is
decided anew. If the connection is lost, the head tells whether it was done: every write has a token
of its own.
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
from firnline.store.mongo.heads import HeadState, find, new_head, state_of, unknown_conversation
from firnline.store.rows import SEQ_MAX

BODY_MAX: Final = limits.MESSAGE_BYTES_MAX - 64 * 1024
"""Bytes of one message: a document of MongoDB has 16 MiB, with all that is in it."""
TAIL_ENTRIES: Final = 48
TAIL_BYTES: Final = 32 * 1024
_INLINE: Final = 1024 * 1024  # bytes of messages that fit into a head
_PINS_MAX: Final = 100_000
_REMEMBERED: Final = 256

logger: Final = logging.getLogger("firnline")


@dataclass(eq=False)
class PendingAppend:
    """One append that waits."""

    drafts: Sequence[EntryDraft]
    expected_seq: int | None
    idempotency: Idempotency | None
    done: asyncio.Future[Appended]
    size: int = 0

    def __post_init__(self) -> None:
        self.size = sum(len(draft.body) for draft in self.drafts)


@dataclass
class _WritePlan:
    """What one write would do: the entries, and what each job gets or why it is refused."""

    docs: list[Doc] = field(default_factory=list)
    pins: list[int] = field(default_factory=list)
    results: list[tuple[PendingAppend, Appended | FirnlineError]] = field(default_factory=list)
    head: tuple[int, int, str] = (0, 0, "")
    times: tuple[int, int] = (0, 0)
    refuses: bool = False


class MongoWriter:
    """The queues of one store, and the heads that it has seen last."""

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
    ) -> Appended:
        """Queue an append and wait for it."""
        if self._count >= limits.WRITES_WAITING_MAX:
            raise StoreUnavailable("too many writes are waiting; slow down")
        done: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(
            PendingAppend(drafts, expected_seq, idempotency, done)
        )
        if key not in self._pumps:
            self._pumps[key] = asyncio.create_task(self._pump(key))
        self._count += 1
        try:
            return await done
        finally:
            self._count -= 1

    async def close(self) -> None:
        """Finish what is under way."""
        while self._pumps:
            await asyncio.gather(*self._pumps.values(), return_exceptions=True)
        self._known.clear()

    async def _pump(self, key: Key) -> None:
        try:
            while self._waiting.get(key):
                jobs = self._next(key)
                told: FirnlineError = StoreTimeout("the append was interrupted")
                try:
                    await self._commit(key, jobs)
                except FirnlineError as error:
                    told = error
                finally:
                    _refuse(jobs, told)
                await self._tidy(key)
        finally:
            self._pumps.pop(key, None)
            _refuse(self._waiting.pop(key, []), StoreUnavailable("the store was closed"))

    def _next(self, key: Key) -> list[PendingAppend]:
        """The jobs that share the next write; a large one has it for itself."""
        waiting = self._waiting[key]
        taken, size = 0, 0
        for job in waiting:
            size += job.size
            if taken and (size > _INLINE // 4 or taken >= limits.BATCH_WRITES_MAX):
                break
            taken += 1
        jobs = [job for job in waiting[:taken] if not job.done.done()]
        del waiting[:taken]
        return jobs

    async def _commit(self, key: Key, jobs: Sequence[PendingAppend]) -> None:
        """Try until it is done or refused; or raise, for all of them."""
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
                        raise StoreTimeout(f"it is not known what was written: {error}") from error
                    raise
            if time.monotonic() > deadline and doubtful:  # it may have been done
                raise StoreTimeout("it is not known what was written: it took too long to find out")
            if time.monotonic() > deadline:
                raise StoreUnavailable("others are in the way, nothing was written")
            await pause(tries)

    async def _try(
        self, key: Key, jobs: Sequence[PendingAppend], doubtful: list[_WritePlan]
    ) -> bool:
        """One try; False if somebody else was faster. What is in doubt is looked up first."""
        state = self._known.pop(key, None)
        sure = state is None or bool(doubtful)
        if sure:
            state = await find(self._database, key)
        if state is not None and await self._was_written(state, doubtful):
            return True
        if state is not None and not _has_room(state, jobs):
            await flush(self._database, state)
            return False
        plan = await self._plan(key, state, jobs)
        if plan.refuses and not sure:  # by a head that may be an old one
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
        """Whether a write of which no answer came is in the log; then those who wait are told."""
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
        """What one write would do for all of them, one after the other."""
        names = [job.idempotency.key for job in jobs if job.idempotency]
        known = await log.find_keys(self._database, state, names) if state and names else {}
        found = state.found if state else None
        plan = _WritePlan(
            head=(found.next_seq, found.total, found.hash) if found else (0, 0, genesis(key))
        )
        done: dict[str, tuple[str, Appended]] = {}
        for job in jobs:
            name = job.idempotency
            try:
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
        """Entries that were stored before, wherever they have been moved."""
        none: list[Entry] = []
        entries = await log.read(
            self._database, key, lambda s: log.span(self._database, s, first, last), none
        )
        if not entries:
            raise StoreUnavailable(f"{key.conversation} was erased meanwhile; nothing was written")
        return tuple(entries)

    async def _write(self, key: Key, state: HeadState | None, plan: _WritePlan) -> bool:
        """The commit; False if somebody else was faster."""
        if not plan.docs:
            if state is not None:
                self._remember(key, state)
            return True
        plan.docs[0]["batch"] = token = ObjectId()
        tail = plan.docs
        life = state.life if state else ObjectId()
        if sum(len(doc["body"]) for doc in tail) > _INLINE:
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
        """The head as it is after the commit, or None if it is another one."""
        next_seq, total, hash_ = plan.head
        new = {"next_seq": next_seq, "total": total, "hash": hash_, "updated_at": plan.times[1]}
        new["unflushed"] = True
        heads = self._database["conversations"]
        if state is None:
            doc = {**new_head(key, plan.times[0]), **new, "_id": life, "tail": tail}
            doc["pins"] = plan.pins
            try:
                await self._database.write(lambda: heads.insert_one(dict(doc)))
            except StoreError as error:
                if isinstance(error.__cause__, DuplicateKeyError):
                    return None
                raise
            return doc
        same = {**key._asdict(), "_id": life}
        same |= {"next_seq": state.found.next_seq, "hash": state.found.hash}
        push: Doc = {"tail": {"$each": tail}}
        if plan.pins:
            push["pins"] = {"$each": plan.pins}
        change = {"$set": new, "$push": push}
        done = await self._database.write(lambda: heads.update_one(same, change))
        if not done.matched_count:
            return None
        pins = [*state.doc.get("pins", ()), *plan.pins]
        return {**state.doc, **new, "tail": [*state.tail, *tail], "pins": pins}

    async def _stage(self, own: Doc, docs: Sequence[Doc], token: ObjectId) -> Doc:
        """Put what is too large for a head where nobody sees it; returns what stands for it."""
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
        """Move a long tail; if that fails, somebody does it later."""
        state = self._known.get(key)
        if state is None or not (state.staged or _tail_is_long(state)):
            return
        self._known.pop(key)
        try:
            state = await flush(self._database, state)
        except FirnlineError as error:
            logger.warning("entries wait in the head of their conversation: %s", error)
            return
        if state is not None:
            self._remember(key, state)


def _add(plan: _WritePlan, key: Key, job: PendingAppend, state: HeadState | None) -> Appended:
    """Take the job's entries into the plan; or raise, and the plan is as it was."""
    next_seq, total, hash_ = plan.head
    rows.check_append(key, next_seq, job.drafts, job.expected_seq)
    if max(len(draft.body) for draft in job.drafts) > BODY_MAX:
        raise MessageTooLarge(f"a message of more than {BODY_MAX:,} bytes; MongoDB takes no more")
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
    plan.pins += pins
    plan.head = last.seq + 1, last.total, last.hash
    return Appended(entries)


def _check_pins(state: HeadState | None, more: int) -> None:
    """A head holds so many."""
    if more and state and len(state.doc.get("pins", ())) + more > _PINS_MAX:
        raise MessageTooLarge(f"more than {_PINS_MAX:,} pinned entries in one conversation")


async def pin(database: MongoDatabase, key: Key, seq: int, *, pinned: bool) -> None:
    """Mark an entry or take the mark away; nothing happens if it is so already."""
    if pinned:
        _check_pins(await find(database, key), 1)
    there: Doc = {**key._asdict(), "next_seq": {"$gt": min(max(seq, -1), SEQ_MAX)}}
    change = {"$addToSet" if pinned else "$pull": {"pins": seq}}
    if 0 <= seq <= SEQ_MAX:
        done = await database.read(lambda: database["conversations"].update_one(there, change))
        if done.matched_count:
            return
    if await find(database, key) is None:
        raise unknown_conversation(key)
    raise InputError(f"{key.conversation} has no entry {seq}")


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
    """Whether the tail has room for more, whatever was left in it."""
    size = sum(len(row["body"]) for row in state.tail) + sum(job.size for job in jobs)
    return not state.staged and (not state.tail or size <= 2 * _INLINE)


def _tail_is_long(state: HeadState) -> bool:
    size = sum(len(row["body"]) for row in state.tail)
    return len(state.tail) >= TAIL_ENTRIES or size >= TAIL_BYTES


def _refuse(jobs: Sequence[PendingAppend], error: FirnlineError) -> None:
    """Tell those that have not been told."""
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
