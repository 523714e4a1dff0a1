"""Creating digests: lease, read, summarize and extract, check, receipt, commit by compare-and-set.

No transaction is open while a model works, and a digester that lost its lease cannot commit. A
failure leaves the log and the digests in force unchanged, and the work pending.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar

from firnline.context.plan import Fold
from firnline.context.render import NOTHING_YET, render_digest
from firnline.context.view import in_force
from firnline.digest import APPLICATION, OFFLINE, items
from firnline.engine.digest_writer import DigestJob, DigestWriter, refuse
from firnline.errors import ConflictError, FirnlineError, InputError, ModelError
from firnline.language.prose import count_words
from firnline.log import limits
from firnline.log.entry import Digest, Key, Lease, Topic
from firnline.log.message import Message
from firnline.log.tokens import TokenCounter
from firnline.models.guard import Breaker, Spend
from firnline.protocols import Extractor, Store, Summarizer

Change: TypeAlias = Callable[[tuple[items.Item, ...]], tuple[items.Item, ...]]
"""Returns the changed important data."""

logger: Final = logging.getLogger("firnline.digest")

T = TypeVar("T")

_LOOKS: Final = 3


class DigestLease:
    """``async with`` the exclusive right to digest a conversation."""

    def __init__(self, store: Store, key: Key, owner: str, seconds: float) -> None:
        self._store, self._key, self._owner, self._seconds = store, key, owner, seconds
        self._lease: Lease | None = None

    async def __aenter__(self) -> Lease:
        # Tasks of one process exclude each other, too: each lease has its own name.
        owner = f"{self._owner}-{secrets.token_hex(4)}"
        self._lease = await self._store.lease(self._key, owner, self._seconds)
        if self._lease is None:
            name = self._key.conversation
            logger.debug("Summarization already in progress for %s", name)
            raise ConflictError(f"{name} is being digested by another process")
        return self._lease

    async def __aexit__(self, *_: object) -> None:
        if self._lease is not None:
            with suppress(FirnlineError):  # it expires
                await asyncio.shield(self._store.release(self._lease))


async def _keep_alive(store: Store, lease: Lease, seconds: float, task: asyncio.Task[T]) -> T:
    """The task's result; meanwhile the lease is renewed. If it is lost, the task is stopped."""
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=seconds / 3)
            if not task.done():
                lease = await store.renew(lease, seconds)
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError, FirnlineError):
                await task


class Digester:
    """Creates digests for any tenant of a store; many may run at once, in any process."""

    def __init__(
        self,
        store: Store,
        *,
        summarizer: Summarizer,
        extractor: Extractor,
        count: TokenCounter,
        spend: Spend | None = None,
        breaker: Breaker | None = None,
        lease_seconds: float = limits.LEASE_SECONDS,
    ) -> None:
        self._store = store
        self._count = count
        self.spend = spend
        self._breaker = breaker or Breaker()
        self._writer = DigestWriter(
            store,
            summarizer=summarizer,
            extractor=extractor,
            count=count,
            spend=spend,
            breaker=self._breaker,
        )
        self._lease_seconds = lease_seconds
        self._owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        self.made = 0
        self.failed = 0

    # -- folding ------------------------------------------------------------------------------

    async def fold(
        self, key: Key, fold: Fold, base: int | None, strategy: str, topic: Topic | None = None
    ) -> Digest:
        """Create the digest of a plan; `base` and `topic` are as they were when it was planned.

        `ConflictError` if another process is digesting the conversation or has just done so,
        `ModelError` if the model failed or must not be called now. Neither changes the digests.
        """
        self._check_allowed(key)
        async with DigestLease(self._store, key, self._owner, self._lease_seconds) as lease:
            force = {d.version: d for d in await in_force(self._store, key, fold.topic)}
            if max(force, default=None) != base or set(fold.takes) - set(force):
                raise ConflictError(f"{key.conversation}: a newer digest is in force already")
            takes = tuple(force[version] for version in fold.takes)
            draft = Digest(
                version=0,
                first_seq=fold.first_seq,
                last_seq=fold.last_seq,
                base=base,
                layer=1 + max(digest.layer for digest in takes) if takes else 0,
                beside=_beside(force.values(), fold),
                parts=fold.takes,
                topic=fold.topic,
                strategy=strategy,
            )
            job = DigestJob(fold, takes, fold.fresh_from, fold.words, fold.tokens_max, topic)
            return await self._carry_out(lease, draft, job)

    async def rebuild(
        self, key: Key, *, only_offline: bool = False, topic: Topic | None = None
    ) -> list[Digest]:
        """Rebuild every digest in force from the entries it covers.

        With `only_offline` only those created without a model, so that a model improves them.
        """
        made = []
        of, outdated = (topic.id, topic.outdated) if topic else (None, 0)
        for old in await in_force(self._store, key, of):
            if old.version <= outdated or (only_offline and old.made_by != OFFLINE):
                continue
            async with DigestLease(self._store, key, self._owner, self._lease_seconds) as lease:
                force = {d.version: d for d in await in_force(self._store, key, of)}
                if old.version not in force:
                    raise ConflictError(f"{key.conversation}: digest {old.version} is gone")
                beside = tuple(sorted(version for version in force if version != old.version))
                draft = Digest(
                    version=0,
                    first_seq=old.first_seq,
                    last_seq=old.last_seq,
                    base=max(force),
                    layer=old.layer,
                    beside=beside,
                    topic=of,
                    strategy=old.strategy,
                )
                words = max(count_words(old.text), 1)
                fold = Fold(
                    first_seq=old.first_seq, last_seq=old.last_seq, fresh_from=old.first_seq
                )
                job = DigestJob(
                    fold, (), old.first_seq, (words * 3 // 4, words * 5 // 4), None, topic
                )
                made.append(await self._carry_out(lease, draft, job))
        return made

    async def amend(self, key: Key, change: Change, summary: str | None = None) -> Digest:
        """A new version of the newest digest, its important data changed by the application."""
        async with DigestLease(self._store, key, self._owner, self._lease_seconds) as lease:
            force = await in_force(self._store, key)
            last = force[-1] if force else Digest(version=0, first_seq=0, last_seq=-1)
            known = await asyncio.to_thread(lambda: change(items.from_json(last.data)))
            beside = tuple(sorted(d.version for d in force if d is not last))
            draft = replace(
                last,
                base=max((d.version for d in force), default=None),
                beside=beside,
                parts=(last.version,) if force else (),
                made_by=APPLICATION,
                calls=0,
                spent_tokens=0,
                milliseconds=0,
                text=summary or last.text or NOTHING_YET,
                data=items.to_json(known, items.set_aside(last.data)),
                receipt=last.receipt if summary is None else {},
            )
            begun = await self._store.begin_digest(lease, draft)
            tokens = await asyncio.to_thread(self._tokens_of, begun)
            done = replace(begun, status="completed", tokens=tokens)
            return _log_status(await self._store.finish_digest(lease, done))

    def _tokens_of(self, digest: Digest) -> int:
        return int(self._count.message(Message.user(render_digest(digest))))

    async def undo(self, key: Key, topic: int | None = None) -> Digest:
        """Take the newest digest out of force; those before it are in force again."""
        async with DigestLease(self._store, key, self._owner, self._lease_seconds) as lease:
            newest = await self._store.newest_digest(key, topic)
            if newest is None:
                raise InputError(f"{key.conversation} has no digest to undo")
            return _log_status(await self._store.undo_digest(lease, newest.version))

    async def set_damaged_aside(self, key: Key) -> int:
        """Mark digests that cannot be read as failed; returns how many there were."""
        async with DigestLease(self._store, key, self._owner, self._lease_seconds) as lease:
            damaged = await self._store.fail_damaged(lease)
        if damaged:
            logger.error("%s: %d damaged digests are set aside", key.conversation, damaged)
        return damaged

    def _check_allowed(self, key: Key) -> None:
        """Raise `ModelError` while the breaker is open or the spending limit is reached."""
        # The breaker comes last: it admits one caller, which must not be stopped afterwards.
        refuse(key, (self.spend.wait(key, 0) if self.spend else 0.0) or self._breaker.allow())

    async def _carry_out(self, lease: Lease, draft: Digest, job: DigestJob) -> Digest:
        """Begin the digest, write it while the lease is renewed, and commit it."""
        begun = await self._store.begin_digest(lease, draft)
        _log_status(begun)
        started = time.perf_counter()
        try:
            # Not earlier: from now on, a merge of topics sees this digest.
            await self._check_same(lease.key, job.topic)
            writing = asyncio.create_task(self._writer.write(lease.key, begun, job))
            made = await _keep_alive(self._store, lease, self._lease_seconds, writing)
            milliseconds = round((time.perf_counter() - started) * 1e3)
            made = replace(made, status="completed", milliseconds=milliseconds)
            made = await self._store.finish_digest(lease, made)
        except BaseException as error:
            self.failed += 1
            await self._fail(lease, begun, error)
            raise
        self.made += 1
        _log_made(lease.key, made, job.fold)
        return made

    async def _check_same(self, key: Key, topic: Topic | None) -> None:
        """Raise `ConflictError` if other topics were merged into it since it was read."""
        if topic is None:
            return
        for _ in range(_LOOKS):  # an entry may join it between the two reads
            now = (await self._store.topics(key)).topics.get(topic.id)
            new = await self._store.members(key, topic.id, topic.last_seq + 1)
            if now is not None and now.entries == topic.entries + len(new):
                return
        raise ConflictError(f"{key.conversation}: topic {topic.id} was merged in the meantime")

    async def _fail(self, lease: Lease, begun: Digest, error: BaseException) -> None:
        """Mark the digest as failed; if that fails, too, its lease expires."""
        if isinstance(error, ModelError) and error.retryable:
            self._breaker.failed()
        why = f"{type(error).__name__}: {error}"[: limits.ERROR_CHARS_MAX]
        with suppress(FirnlineError):
            failed = replace(begun, status="failed", error=why)
            _log_status(await asyncio.shield(self._store.finish_digest(lease, failed)))


def _beside(force: Iterable[Digest], fold: Fold) -> tuple[int, ...]:
    """The versions that stay in force with the new one: their spans do not overlap it."""
    if fold.slides or fold.topic is not None:
        return ()
    apart = [d for d in force if d.last_seq < fold.first_seq or d.first_seq > fold.last_seq]
    return tuple(sorted(d.version for d in apart if d.version not in fold.takes))


def _log_made(key: Key, digest: Digest, fold: Fold) -> None:
    logger.info(
        "Summarized messages %d-%d for %s in %dms",
        digest.first_seq,
        digest.last_seq,
        key.conversation,
        digest.milliseconds,
    )
    if fold.slides and digest.first_seq:
        before = digest.first_seq - 1
        logger.info("Sliding window: dropping seq 0-%d for %s", before, key.conversation)
    _log_status(digest)


def _log_status(digest: Digest) -> Digest:
    logger.debug("Memory %d status updated to %s", digest.version, digest.status)
    return digest
