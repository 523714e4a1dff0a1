"""Finds the passages of long messages that answer a question (`firnline.recall.locate`)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, Protocol

from firnline.embedding.token_embedder import QuestionTokens
from firnline.log.entry import Key, Scope
from firnline.log.hit import Hit
from firnline.protocols import Embedder
from firnline.recall.limits import PASSAGE_CHARS_ALL, PASSAGE_CHARS_READ, PASSAGES_LOCATED
from firnline.recall.locate import Located, passages_of
from firnline.recall.pack import is_long, least_tokens, passage_room
from firnline.recall.passages import model_key
from firnline.recall.query import AskedQuestion

_MORE: Final = 1.25
"""How much more than fits is considered: passages can be shorter than expected."""


class NearEntry(NamedTuple):
    """An entry that is near to a question, and how near."""

    conversation: str
    seq: int
    cosine: float


class VectorSearch(Protocol):
    """Finds the nearest vectors and tokens; see `firnline.recall.vectors.NearestVectors`."""

    async def find(
        self, key: Key, model: str, vector: Sequence[float], limit: int
    ) -> Mapping[int, float]:
        """The nearest entries with their cosines."""
        ...

    async def find_in(
        self, tenant: str, model: str, vector: Sequence[float], limit: int, scope: Scope
    ) -> Sequence[NearEntry]:
        """The nearest entries of all conversations in scope, nearest first."""
        ...

    async def compare(
        self,
        key: Key,
        model: str,
        question: QuestionTokens,
        weights: Sequence[float],
        seqs: Sequence[int],
    ) -> Mapping[int, float]:
        """How near the question's tokens are to those of these entries, best first."""
        ...

    async def parts(
        self, key: Key, model: str, seqs: Sequence[int]
    ) -> Mapping[int, Sequence[tuple[bytes, bytes]]]:
        """The vectors of the parts of these entries, each with the codes of its tokens."""
        ...

    def scores(
        self,
        question: QuestionTokens,
        weights: Sequence[float],
        parts: Sequence[tuple[int, bytes, bytes]],
    ) -> Mapping[int, float]:
        """How near the question's tokens are to those of numbered parts, by number."""
        ...


class PassageFinder:
    """Finds the passages of the hits that are long, if they have a chance to be shown."""

    def __init__(self, embedder: Embedder | None, near: VectorSearch | None) -> None:
        self._embedder, self._near = embedder, near

    async def find(
        self,
        tenant: str,
        asked: AskedQuestion,
        hits: Sequence[Hit],
        *,
        limit: int | None,
        tokens: int | None,
    ) -> list[Hit]:
        """The hits, the long ones with their passages, as far as `limit` and `tokens` reach."""
        found = list(hits)
        room = passage_room(tokens)
        places = list(_long(found[:limit], tokens, room))
        vectors = await self._vectors(tenant, asked, [found[place] for place in places])
        located = [
            Located(hit.message, hit.entry.tokens, vectors.get((hit.conversation, hit.seq), ()))
            for hit in (found[place] for place in places)
        ]
        if located:
            score = self._near.scores if self._near else None
            work = partial(passages_of, asked, located, room, self._embedder, score)
            passages = await asyncio.to_thread(work)
            for place, passage in zip(places, passages, strict=True):
                found[place] = replace(found[place], passage=passage)
        return found

    async def _vectors(
        self, tenant: str, asked: AskedQuestion, hits: Sequence[Hit]
    ) -> Mapping[tuple[str, int], Sequence[tuple[bytes, bytes]]]:
        """The vectors of the parts of the hits, by conversation and number."""
        if self._near is None or self._embedder is None or asked.vector is None:
            return {}
        by_name: defaultdict[str, list[int]] = defaultdict(list)
        for hit in hits:
            by_name[hit.conversation].append(hit.seq)
        model = model_key(self._embedder, len(asked.vector))
        return {
            (name, seq): parts
            for name, seqs in by_name.items()
            for seq, parts in (
                await self._near.parts(Key(tenant, name), model, sorted(seqs))
            ).items()
        }


def _long(hits: Sequence[Hit], tokens: int | None, room: int) -> Iterator[int]:
    """The places of the long hits that may be shown."""
    left, chars, many = (tokens or 0) * _MORE, PASSAGE_CHARS_ALL, PASSAGES_LOCATED
    for place, hit in enumerate(hits):
        if is_long(hit.entry, room):
            chars -= min(len(hit.message.text), PASSAGE_CHARS_READ)
            many -= 1
            if min(chars, many) < 0:
                return
            yield place
        left -= least_tokens(hit.entry, room)
        if tokens is not None and left < 0:
            return
