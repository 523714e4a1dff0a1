"""The vectors of a conversation's topics, by an embedder for its language."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from firnline import topics
from firnline.context.plan import is_question
from firnline.embedding.words import WordEmbedder
from firnline.errors import ModelTimeout
from firnline.language.stop_words import is_english
from firnline.log import limits
from firnline.log.entry import Entry, Topic
from firnline.protocols import Embedder
from firnline.topics import Rules

logger: Final = logging.getLogger("firnline.topics")

_LANGUAGE_CHARS: Final = 400  # of a message show its language


class TopicVectors(NamedTuple):
    """The vectors of messages, and of answered questions, by sequence number."""

    model: str
    messages: Mapping[int, Sequence[float]]
    answered: Mapping[int, Sequence[Sequence[float]]]


class TopicEmbedders:
    """A memory's embedder, and one `beside` it for conversations that are not in English."""

    def __init__(self, embedder: Embedder, beside: Embedder | None, rules: Rules) -> None:
        self._embedder, self._beside, self._rules = embedder, beside, rules

    async def close(self) -> None:
        """Close the embedder for other languages; the caller closes its own."""
        if self._beside is not None:
            await self._beside.close()

    def choose(
        self, known: Collection[Topic], entries: Sequence[Entry]
    ) -> tuple[Embedder, Sequence[Entry]]:
        """The embedder for the first of these entries, and the entries that it is for.

        It stays the same until a message is clearly in another language. The one for English comes
        back only to a conversation that has been in no other.
        """
        now = self._current(known)
        foreign = any(is_english(topic.title) is False for topic in known)
        for at, entry in enumerate(entries):
            if not is_question(entry.message):
                continue
            english = is_english(entry.message.text[:_LANGUAGE_CHARS])
            foreign = foreign or english is False
            wanted = self._for(english, now, foreign=foreign)
            if at and now not in (None, wanted):
                return now or wanted, entries[:at]
            now = wanted
        return now or self._embedder, entries

    def of(self, known: Collection[Topic], text: str) -> Embedder:
        """The embedder of a conversation; if it has none yet, the one for a text."""
        now = self._current(known)
        return now or self._for(is_english(text[:_LANGUAGE_CHARS]), now, foreign=False)

    def _current(self, known: Collection[Topic]) -> Embedder | None:
        """The embedder of the newest topic that has one; None if there is no such topic."""
        there = {one.name: one for one in (self._beside, self._embedder) if one is not None}
        newest = max((t for t in known if t.model in there), key=_last_seq, default=None)
        return None if newest is None else there[newest.model]

    def _for(self, english: bool | None, now: Embedder | None, *, foreign: bool) -> Embedder:
        """The embedder after a message that is in English or not, or does not show it (None)."""
        beside = self._beside
        if beside is None:
            return self._embedder
        words = isinstance(beside, WordEmbedder)
        if english is False:
            if words:
                _warn()
            return beside
        if english is None:  # words alone are no gain, if it is English after all
            return now or (self._embedder if words else beside)
        return beside if foreign and now is beside else self._embedder

    async def vectors(self, embedder: Embedder, entries: Sequence[Entry]) -> TopicVectors:
        """The vectors of the messages that need one, and of the answered questions among them."""
        texts = {
            entry.seq: entry.message.text
            for entry in entries
            if topics.needs_vector(entry.message, embedder.name, self._rules)
        }
        replies = {q: a for q, a in topics.answers(entries).items() if a.seq in texts}
        there = {entry.seq: entry.message.text for entry in entries}
        both = [topics.answered_text(there[q], there[a.seq]) for q, a in replies.items()]
        found = await embed_texts(embedder, [*texts.values(), *both])
        messages = dict(zip(texts, found[: len(texts)], strict=True))
        rounds = zip(replies.items(), found[len(texts) :], strict=True)
        answered = {q: (messages[answer.seq], vector) for (q, answer), vector in rounds}
        return TopicVectors(embedder.name, messages, answered)


async def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """The vectors of the beginnings of texts; `ModelTimeout` if that takes too long."""
    start = [text[: limits.PASSAGE_CHARS] for text in texts]
    if not start:
        return []
    try:
        async with asyncio.timeout(limits.ASSIGN_SECONDS):
            return await embedder.embed(start)
    except TimeoutError as error:
        late = f"has not answered in {limits.ASSIGN_SECONDS:g} s"
        raise ModelTimeout(f"the embedder {embedder.name} {late}") from error


def _last_seq(topic: Topic) -> int:
    return topic.last_seq


@lru_cache(maxsize=1)
def _warn() -> None:
    logger.warning(
        "topics of conversations that are not in English are compared by their words only; install"
        ' "firnline[multilingual]" to compare them by meaning'
    )
