"""Embedding in the background: append never waits for it.

What is not embedded yet is found by its words. Any number of processes may do this at once; of two
that embed the same entries, one keeps its vectors. Another embedder begins again at the first
entry, while search goes on.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import time
from collections.abc import Collection, Sequence
from typing import Final

from firnline.context.view import is_still
from firnline.embedding.quantize import pack
from firnline.errors import FirnlineError, ModelRefused, StoreReadOnly, outline
from firnline.log import limits
from firnline.log.entry import Entry, Key
from firnline.models.guard import Backoff
from firnline.protocols import Embedder, Progress, Store, Vector
from firnline.recall.passages import model_key, passages
from firnline.recall.tools import is_recalled
from firnline.recall.vectors import NearestVectors

__all__ = ["EmbeddingIndexer", "NearestVectors"]

_FAILURES_MAX: Final = 3  # conversations in a row; then it is not they that are to blame
_PROBE: Final = "dimension"
_CONVERSATIONS: Final = 20
_TOLD_MAX: Final = 1_000
_REST: Final = 50  # times as long as it took to look
_STOP_SECONDS: Final = 5.0  # for an embedder that does not let itself be cancelled

logger: Final = logging.getLogger("firnline.recall")


class EmbeddingIndexer:
    """Takes the entries of a tenant's conversations through an embedder."""

    def __init__(self, store: Store, embedder: Embedder, tenant: str) -> None:
        self._store, self._embedder, self._tenant = store, embedder, tenant
        self._poked = asyncio.Event()
        self._told: dict[Key, None] = {}
        self._anywhere, self._rested_at = False, 0.0
        self._waking: asyncio.TimerHandle | None = None
        self._in_vain = False
        self._dimension = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def begun(self) -> bool:
        """Whether this process embeds in the background."""
        return self._task is not None

    def poke(self, key: Key | None = None) -> None:
        """There are new entries, in this conversation or in any; embedded a moment later.

        In a large tenant that makes a difference: looking for what others have left walks through
        all of its conversations, and is done the less often the longer it takes.
        """
        if self._in_vain:
            return
        if key is not None and len(self._told) < _TOLD_MAX:
            self._told[key] = None
        self._anywhere = True
        self._poked.set()
        if self._task is None or self._task.done():
            own = contextvars.Context()  # whoever has poked it first, this is nobody's request
            self._task = asyncio.get_running_loop().create_task(self._run(), context=own)

    async def stop(self) -> None:
        """Stop; what was not embedded is taken up by whoever opens the store next."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=_STOP_SECONDS)

    async def embed(self, key: Key, progress: Progress | None = None) -> int:
        """Embed all that is there now; returns how many entries that were."""
        head = await self._store.head(key)
        if head is None:
            return 0
        done, end, model = 0, head.entries, await self._model()
        while (first := await self._store.embedded(key, model)) < end:
            page = await self._store.read(key, first, limit=limits.EMBED_PAGE)
            if not page:
                break
            vectors = await self._vectors(page)
            if not await is_still(self._store, key, page[-1]):
                break  # erased: what others have begun under its name is embedded the next time
            span = {"first_seq": first, "next_seq": page[-1].seq + 1}
            if await self._store.put_vectors(key, model, vectors, **span):
                done += len(page)
            if progress is not None:
                progress(min(page[-1].seq + 1, end), end)
        return done

    async def _model(self) -> str:
        """Under what vectors are kept: an embedder that changes its dimension is another one."""
        if not self._dimension:
            (vector,) = await self._embedder.embed([_PROBE])
            self._dimension = len(vector)
        return model_key(self._embedder.name, self._dimension)

    async def _vectors(self, page: Sequence[Entry]) -> list[Vector]:
        # What was recalled is in the log already, where it was said.
        said = [entry for entry in page if not is_recalled(entry.message)]
        parts = [
            (entry.seq, part, text)
            for entry in said
            for part, text in enumerate(passages(entry.message))
        ]
        vectors = await self._embedder.embed([text for _, _, text in parts]) if parts else []
        if any(len(vector) != self._dimension for vector in vectors):
            self._dimension = 0  # looked at anew the next time
            raise ModelRefused(
                f"the embedder {self._embedder.name} has changed its dimension", code="dimension"
            )
        return [
            Vector(seq, part, pack(_unit(vector)))
            for (seq, part, _), vector in zip(parts, vectors, strict=True)
        ]

    async def _run(self) -> None:
        """Embed what is behind, newest conversation first, for ever."""
        backoff, failures = Backoff(), 0
        while True:
            await self._poked.wait()
            await asyncio.sleep(limits.EMBED_IDLE_SECONDS)
            self._poked.clear()
            try:
                await self._catch_up()
                failures = 0
            except StoreReadOnly:
                self._in_vain = True  # who can write embeds what is there
                return
            except Exception as error:
                if not isinstance(error, FirnlineError):
                    logger.exception("a mistake in what embeds")
                failures += 1
                self._anywhere = True
                wait = backoff.delay(failures)
                why = outline(error)
                logger.warning("entries are not embedded: %s; again in %.0f s", why, wait)
                await asyncio.sleep(wait)
                self._poked.set()

    async def _catch_up(self) -> None:
        """Embed all that is behind; a conversation that fails does not hold up the others."""
        failed: dict[Key, FirnlineError] = {}
        while behind := await self._behind(failed):
            for key in behind:
                try:
                    await self.embed(key)
                except FirnlineError as error:
                    failed[key] = error
                    if len(failed) >= _FAILURES_MAX:
                        raise
        if failed:
            raise next(iter(failed.values()))

    async def _behind(self, failed: Collection[Key]) -> list[Key]:
        """What is known to have new entries; then what others have left, if it is time to look."""
        told, self._told = self._told, {}
        if known := [key for key in reversed(told) if key not in failed]:
            return known
        if not self._anywhere or self._rests():
            return []
        return await self._left(failed)

    def _rests(self) -> bool:
        """Whether it is too early to look again; then it wakes up in time."""
        rest, loop = self._rested_at - time.monotonic(), asyncio.get_running_loop()
        if rest > 0 and (self._waking is None or self._waking.when() <= loop.time()):
            self._waking = loop.call_later(rest, self._poked.set)
        return rest > 0

    async def _left(self, failed: Collection[Key]) -> list[Key]:
        limit, model, began = _CONVERSATIONS + len(failed), await self._model(), time.monotonic()
        behind = await self._store.unembedded(self._tenant, model, limit)
        if len(behind) < limit:  # those are all
            self._anywhere = False
            self._rested_at = time.monotonic() + _REST * (time.monotonic() - began)
        return [key for key in behind if key not in failed]


def _unit(vector: Sequence[float]) -> list[float]:
    """The vector at length one: dot products of such ones are cosines."""
    length = math.hypot(*vector) or 1.0
    return [number / length for number in vector]
