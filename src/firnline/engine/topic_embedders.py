"""The vectors of a conversation's topics, by an embedder for its language."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final

from firnline import topics
from firnline.embedding.words import WordEmbedder
from firnline.errors import ModelTimeout
from firnline.language.stop_words import is_english
from firnline.log import limits
from firnline.log.entry import Entry, Topic
from firnline.protocols import Embedder
from firnline.topics import Rules

logger: Final = logging.getLogger("firnline.topics")

_LANGUAGE_CHARS: Final = 400  # of each message show its language


class TopicEmbedders:
    """A memory's embedder, and one `beside` it for conversations that do not begin in English."""

    def __init__(self, embedder: Embedder, beside: Embedder | None, rules: Rules) -> None:
        self._embedder, self._beside, self._rules = embedder, beside, rules

    async def close(self) -> None:
        """Close the embedder for other languages; the caller closes its own."""
        if self._beside is not None:
            await self._beside.close()

    async def vectors(
        self, page: Sequence[Entry], known: Collection[Topic]
    ) -> tuple[str, dict[int, Sequence[float]]]:
        """The model of a conversation, and the vectors of the messages that need one."""
        embedder = self._of(known, [entry.message.text for entry in page])
        texts = {
            entry.seq: entry.message.text
            for entry in page
            if topics.needs_vector(entry.message, embedder.name, self._rules)
        }
        vectors = await _embed(embedder, list(texts.values()))
        return embedder.name, dict(zip(texts, vectors, strict=True))

    async def vector(self, text: str, known: Collection[Topic]) -> tuple[str, Sequence[float]]:
        """The model of a conversation, and the vector of a text."""
        embedder = self._of(known, [text])
        (vector,) = await _embed(embedder, [text])
        return embedder.name, vector

    def _of(self, known: Collection[Topic], texts: Sequence[str]) -> Embedder:
        """The embedder that the topics have; if there are none, by the language of the texts."""
        if self._beside is None:
            return self._embedder
        newest = max((t for t in known if t.vectors), key=lambda t: t.last_seq, default=None)
        if newest is not None and newest.model in (self._embedder.name, self._beside.name):
            return self._beside if newest.model == self._beside.name else self._embedder
        if is_english("\n".join(text[:_LANGUAGE_CHARS] for text in texts)):
            return self._embedder
        if isinstance(self._beside, WordEmbedder):
            _warn()
        return self._beside


async def _embed(embedder: Embedder, texts: Sequence[str]) -> Sequence[Sequence[float]]:
    start = [text[: limits.PASSAGE_CHARS] for text in texts]
    if not start:
        return []
    try:
        async with asyncio.timeout(limits.ASSIGN_SECONDS):
            return await embedder.embed(start)
    except TimeoutError as error:
        late = f"has not answered in {limits.ASSIGN_SECONDS:g} s"
        raise ModelTimeout(f"the embedder {embedder.name} {late}") from error


@lru_cache(maxsize=1)
def _warn() -> None:
    logger.warning(
        "topics of conversations that are not in English are compared by their words only; install"
        ' "firnline[multilingual]" to compare them by meaning'
    )
