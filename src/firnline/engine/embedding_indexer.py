"""Embedding in the background: append never waits for it.

Entries without vectors are found by their words. Several processes may embed at once; if two embed
the same entries, the vectors of one are stored. A new embedder starts at the first entry, while
search continues.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

from firnline.context.view import is_still
from firnline.embedding.quantize import join_tokens, pack
from firnline.embedding.token_embedder import EncodedText, TokenEmbedder
from firnline.engine.background import BackgroundTask
from firnline.engine.limits import (
    EMBED_FAILURES_MAX,
    EMBED_POLL_SECONDS,
    EMBED_REPORTED_MAX,
    EMBED_STOP_SECONDS,
)
from firnline.errors import FirnlineError, ModelRefused, StoreReadOnly, outline
from firnline.log import limits
from firnline.log.entry import Entry, Key, live
from firnline.models.guard import Backoff
from firnline.protocols import Embedder, Progress, Store, Vector
from firnline.recall.passages import is_key_of, model_key, passages
from firnline.recall.tools import find_recalled
from firnline.recall.vectors import NearestVectors

__all__ = ["EmbeddingIndexer", "NearestVectors"]

_PROBE: Final = "dimension"
_CONVERSATIONS: Final = 20
_REST: Final = 50  # multiples of the time that the last lookup took

logger: Final = logging.getLogger("firnline.recall")


class EmbeddingIndexer(BackgroundTask):
    """Embeds the entries of a tenant's conversations."""

    def __init__(self, store: Store, embedder: Embedder, tenant: str) -> None:
        super().__init__(logger, poll_seconds=EMBED_POLL_SECONDS, stop_seconds=EMBED_STOP_SECONDS)
        self._store, self._embedder, self._tenant = store, embedder, tenant
        self._reported: dict[Key, None] = {}
        self._anywhere, self._rested_at = False, 0.0
        self._waking: asyncio.TimerHandle | None = None
        self._read_only = False
        self._dimension = self._failures = 0
        self._backoff = Backoff()

    @property
    def begun(self) -> bool:
        """Whether this process embeds in the background."""
        return self._task is not None

    def poke(self, key: Key | None = None) -> None:
        """There are new entries, in this conversation or in any; they are embedded soon.

        Searching all conversations of a large tenant is slow, so the longer it takes, the less
        often it is done.
        """
        if self._read_only:
            return
        if key is not None and len(self._reported) < EMBED_REPORTED_MAX:
            self._reported[key] = None
        self._anywhere = True
        self.wake()
        self.start()

    async def step(self) -> float:
        """Embed what is new; what is left at the end is embedded by the next process."""
        await asyncio.sleep(limits.EMBED_IDLE_SECONDS)  # appends come in groups
        if self._read_only:  # found while it was asked again
            return self.poll_seconds
        try:
            await self._catch_up()
            self._failures = 0
        except StoreReadOnly:
            self._read_only = True  # a process that can write embeds them
        except Exception as error:
            if not isinstance(error, FirnlineError):
                logger.exception("internal error while embedding")
            self._failures += 1
            self._anywhere = True
            wait, why = self._backoff.delay(self._failures), outline(error)
            logger.warning("messages are not embedded: %s; retrying in %.0f s", why, wait)
            await asyncio.sleep(wait)
            self.wake()
        return self.poll_seconds

    async def embed(self, key: Key, progress: Progress | None = None) -> int:
        """Embed all current entries; returns how many were embedded."""
        head = await self._store.head(key)
        if head is None:
            return 0
        done, end, model = 0, head.entries, await self._model()
        while (first := await self._store.embedded(key, model)) < end:
            page = await self._store.read(key, first, limit=limits.EMBED_PAGE)
            if not page:
                break
            # Recalled text is embedded where it was first written.
            recalled = await find_recalled(page, partial(self._store.at, key))
            vectors = await self._vectors([e for e in live(page) if e.seq not in recalled])
            if not await is_still(self._store, key, page[-1]):
                break  # erased; a new conversation of its name is embedded next time
            span = {"first_seq": first, "next_seq": page[-1].seq + 1}
            if await self._store.put_vectors(key, model, vectors, **span):
                done += len(page)
            if progress is not None:
                progress(min(page[-1].seq + 1, end), end)
        return done

    async def copy(self, source: Key, seq: int, branch: Key) -> None:
        """Give a branch the vectors that its source has for the entries up to `seq`.

        What is missing afterwards is embedded like new entries. The embedder is not asked: loading
        or reaching it may take long, and the source may have no vectors.
        """
        entries = await self._store.at(source, [seq])
        reached = await self._store.embedders(source) if entries else {}
        # A complete embedder first: where one completes the branch, those before it are dropped.
        for model in sorted(reached, key=lambda model: -reached[model]):
            if is_key_of(model, self._embedder.name):
                end = min(reached[model], seq + 1)
                await self._copy(source, entries[0], branch, model, end)

    async def _copy(self, source: Key, last: Entry, branch: Key, model: str, end: int) -> None:
        while (first := await self._store.embedded(branch, model)) < end:
            page = await self._store.vectors(source, model, first, limits.VECTORS_COPIED)
            if not await is_still(self._store, source, last):
                break  # erased; the vectors may be those of a new conversation of its name
            upto = page[-1].seq + 1 if len(page) >= limits.VECTORS_COPIED else end
            upto = min(upto, end)
            vectors = [vector for vector in page if vector.seq < upto]
            span = {"first_seq": first, "next_seq": upto}
            if not await self._store.put_vectors(branch, model, vectors, **span):
                break  # another process was faster, or it was erased

    async def _model(self) -> str:
        """The name under which vectors are stored; another dimension is another model."""
        if not self._dimension:
            (vector,) = await self._embedder.embed([_PROBE])
            self._dimension = len(vector)
        return model_key(self._embedder, self._dimension)

    async def _vectors(self, page: Sequence[Entry]) -> list[Vector]:
        parts = [
            (entry.seq, part, text)
            for entry in page
            for part, text in enumerate(passages(entry.message))
        ]
        encoded = await self._encoded([text for _, _, text in parts]) if parts else []
        if any(len(vector) != self._dimension for vector, _ in encoded):
            self._dimension = 0  # measured again next time
            raise ModelRefused(
                f"the embedder {self._embedder.name} has changed its dimension", code="dimension"
            )
        return [
            Vector(seq, part, join_tokens(pack(_unit(vector)), codes))
            for (seq, part, _), (vector, codes) in zip(parts, encoded, strict=True)
        ]

    async def _encoded(self, texts: Sequence[str]) -> Sequence[EncodedText]:
        """The vectors, with the codes of tokens if the embedder makes some."""
        if isinstance(self._embedder, TokenEmbedder):
            return await self._embedder.encode(texts)
        return [EncodedText(vector, b"") for vector in await self._embedder.embed(texts)]

    async def _catch_up(self) -> None:
        """Embed everything new; a failing conversation does not block the others."""
        failed: dict[Key, FirnlineError] = {}
        while behind := await self._behind(failed):
            for key in behind:
                try:
                    await self.embed(key)
                except FirnlineError as error:
                    failed[key] = error
                    if len(failed) >= EMBED_FAILURES_MAX:
                        raise
        if failed:
            raise next(iter(failed.values()))

    async def _behind(self, failed: Collection[Key]) -> list[Key]:
        """Conversations with new entries; then those of other processes, if a lookup is due."""
        reported, self._reported = self._reported, {}
        if known := [key for key in reversed(reported) if key not in failed]:
            return known
        if not self._anywhere or self._rests():
            return []
        return await self._left(failed)

    def _rests(self) -> bool:
        """Whether the next lookup is not due yet; then a timer is set."""
        rest, loop = self._rested_at - time.monotonic(), asyncio.get_running_loop()
        if rest > 0 and (self._waking is None or self._waking.when() <= loop.time()):
            self._waking = loop.call_later(rest, self.wake)
        return rest > 0

    async def _left(self, failed: Collection[Key]) -> list[Key]:
        limit, model, began = _CONVERSATIONS + len(failed), await self._model(), time.monotonic()
        behind = await self._store.unembedded(self._tenant, model, limit)
        if len(behind) < limit:  # those are all
            self._anywhere = False
            self._rested_at = time.monotonic() + _REST * (time.monotonic() - began)
        return [key for key in behind if key not in failed]


def _unit(vector: Sequence[float]) -> list[float]:
    """The vector scaled to length one, so that dot products are cosines."""
    length = math.hypot(*vector) or 1.0
    return [number / length for number in vector]
