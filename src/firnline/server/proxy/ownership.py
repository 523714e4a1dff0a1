"""What an anonymous request may see of its conversation: what it has sent itself, and no more.

Several people may have sent the same history, and the log holds what the first of them sent and
got. A message is recognized by what clients send again of it; the rest, such as reasoning, may
differ. So the request's own version of a message is sent, and nothing is recalled that was said
behind its question or by the application.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from firnline.context.context import QUOTES, Context, Piece, Section
from firnline.context.render import render_recalled
from firnline.log.entry import Digest, Entry, Head
from firnline.log.hit import Hit
from firnline.log.message import Message, Part, ToolCall
from firnline.log.tokens import TokenCounter
from firnline.recall.tools import RecallMemory
from firnline.server.proxy.request import fingerprint, is_spoken
from firnline.topics import TopicStats


class OwnMemory:
    """A `RecallMemory` of the entries up to `question`, without what the application said."""

    def __init__(self, memory: RecallMemory, question: int) -> None:
        self._memory, self._question = memory, question

    async def recall(
        self, conversation: str, query: str, *, limit: int | None = None
    ) -> Sequence[Hit]:
        """Old entries that fit `query`, best first."""
        found = await self._memory.recall(conversation, query, limit=limit)
        return [hit for hit in found if _is_own(hit.entry, self._question)]

    async def dated(
        self, conversation: str, since: datetime, until: datetime, *, limit: int = 100
    ) -> list[Entry]:
        """The entries said in [since, until)."""
        found = await self._memory.dated(conversation, since, until, limit=limit)
        return [entry for entry in found if _is_own(entry, self._question)]

    async def read(
        self,
        conversation: str,
        *,
        first_seq: int = 0,
        last_seq: int | None = None,
        limit: int | None = None,
    ) -> list[Entry]:
        """The entries from `first_seq` to `last_seq`."""
        last = self._question if last_seq is None else min(last_seq, self._question)
        found = await self._memory.read(
            conversation, first_seq=first_seq, last_seq=last, limit=limit
        )
        return [entry for entry in found if _is_own(entry, self._question)]

    async def head(self, conversation: str) -> Head | None:
        """Where the conversation stood at the question."""
        head = await self._memory.head(conversation)
        return head and replace(head, seq=min(head.seq, self._question))

    async def digests(self, conversation: str) -> list[Digest]:
        """The conversation's digests of these entries by version."""
        found = await self._memory.digests(conversation)
        return [digest for digest in found if digest.last_seq <= self._question]

    async def topics(self, conversation: str) -> Sequence[TopicStats]:
        """The topics that these entries opened."""
        found = await self._memory.topics(conversation)
        return [topic for topic in found if topic.topic_id <= self._question]


def _is_own(entry: Entry, question: int) -> bool:
    return entry.seq <= question and is_spoken(entry.message)


def _own_hit(hit: Hit, question: int) -> Hit:
    """The hit, outdated only by a message of the request."""
    newer = hit.superseded_by
    return hit if newer is None or newer <= question else replace(hit, superseded_by=None)


def recall_own(context: Context, question: int, count: TokenCounter) -> Context:
    """The context without quoted entries that are not the request's own."""
    hits = tuple(_own_hit(hit, question) for hit in context.hits if _is_own(hit.entry, question))
    outdated = {hit.seq: hit.superseded_by for hit in hits if hit.superseded_by is not None}

    def own(piece: Piece) -> Piece | None:
        quoted = [entry for entry in piece.quoted if _is_own(entry, question)]
        message = render_recalled(quoted, outdated)
        tokens = int(count.message(message))
        made = piece._replace(message=message, tokens=tokens, quoted=tuple(quoted))
        return made if quoted else None

    sections = (
        replace(each, pieces=tuple(filter(None, map(own, each.pieces))))
        if each.name in QUOTES
        else each
        for each in context.sections
    )
    return replace(context, sections=tuple(s for s in sections if s.pieces), hits=hits)


def own_messages(
    context: Context, messages: Sequence[Message], count: TokenCounter
) -> tuple[Message, ...]:
    """The messages of the context, each entry in the version that the request itself sent."""
    versions: dict[str, list[Message]] = defaultdict(list)
    for message in messages:
        versions[fingerprint(message)].append(message)

    def own(section: Section) -> Section:
        pieces = (_own_piece(piece, versions, count) for piece in section.pieces)
        return replace(section, pieces=tuple(pieces))

    return replace(context, sections=tuple(map(own, context.sections))).messages


def _own_piece(
    piece: Piece, versions: Mapping[str, Sequence[Message]], count: TokenCounter
) -> Piece:
    if piece.entry is None:
        return piece
    if not piece.whole:  # the text is an excerpt of what was sent
        return piece._replace(message=replace(piece.message, extra={}))
    sent = versions.get(fingerprint(piece.message), ())
    shape = _shape(piece.message)
    if any(_shape(version) == shape for version in sent):
        return piece
    for version in sent:
        if count.message(version) <= piece.tokens:
            return piece._replace(message=version)
    return piece._replace(message=_plain(piece.message))


def _shape(message: Message) -> dict[str, Any]:
    """What is sent of a message, without empty fields."""
    return {name: value for name, value in message.to_openai().items() if value not in _EMPTY}


_EMPTY: tuple[Any, ...] = (None, "", [], {})


def _plain(message: Message) -> Message:
    """Only what a message is recognized by."""
    content = message.content
    if isinstance(content, tuple):
        parts = (part for part in content if part.kind != "reasoning")
        content = tuple(Part.of_text(each.text) if each.kind == "text" else each for each in parts)
    calls = (ToolCall.of(call.id, call.name, call.arguments) for call in message.tool_calls)
    return replace(message, content=content, tool_calls=tuple(calls), extra={})
