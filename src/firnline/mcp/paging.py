"""Pages of messages for an agent, within a token limit.

Messages without room are listed, and a long message is cut where the next page continues, so that
paging reaches every character. Pure, except `quote_page`, which may use a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel

from firnline.errors import InputError
from firnline.language import prose
from firnline.log import limits
from firnline.log.entry import Entry
from firnline.log.hit import TextSpan, excerpt
from firnline.log.message import encode_json
from firnline.log.tokens import TokenCounter
from firnline.mcp.results import QuotedMessage
from firnline.recall.result import RecallWriter, readable_text

_TOKEN_CHARS_MAX: Final = 128  # the longest token of both vocabularies
_TOKEN_CHARS: Final = 8  # more than the average token of readable text
_LEAST_CHARS: Final = 40  # always shown, so that every page makes progress

T = TypeVar("T", bound=BaseModel)


class FoundEntry(NamedTuple):
    """An entry to quote, and its conversation if the reader does not know it."""

    entry: Entry
    conversation: str = ""
    score: float | None = None
    also_in: tuple[str, ...] = ()
    chance: float | None = None
    superseded_by: int | None = None
    passage: tuple[TextSpan, ...] = ()
    """What is quoted of it if it takes more than its share."""


class QuotedPage(NamedTuple):
    """The messages that fit, in order, and those that do not."""

    shown: list[QuotedMessage]
    left: list[FoundEntry]


@dataclass(frozen=True, slots=True)
class Quoter:
    """Quotes messages within `tokens` by `count`, with times in `zone`."""

    zone: tzinfo
    tokens: int
    count: TokenCounter

    def quote(
        self, entries: Sequence[FoundEntry], *, offset: int = 0, ranked: bool = False
    ) -> QuotedPage:
        """As many messages as fit, at least the first one, which may be cut.

        `ranked`: a message that does not fit is skipped; otherwise it ends the page. `offset` is
        the first character of the first message.
        """
        room, quoted, unshown = self.tokens, list[QuotedMessage](), list[FoundEntry]()
        for at, one in enumerate(entries):
            share = room if offset or not one.passage else min(room, self.tokens // len(entries))
            row = self._row(one, 0 if at else offset, share)
            if row is None and one.passage and not offset:
                row = self._passage(one, room)
            if row is None and not quoted:
                alone = not ranked or len(entries) == 1
                row = self._cut(one, 0 if at else offset, room if alone else room // 2)
            if row is None:
                unshown += [one] if ranked else entries[at:]
            else:
                quoted.append(row)
                room -= self.size(row)
            if unshown and not ranked:
                break
        return QuotedPage(quoted, unshown)

    def fit_rows(self, rows: Sequence[T]) -> list[T]:
        """The first rows that fit, at least one."""
        room, kept = self.tokens, list[T]()
        for row in rows:
            room -= self.size(row)
            if room < 0 and kept:
                break
            kept.append(row)
        return kept

    def size(self, row: BaseModel) -> int:
        """The tokens of a row, as JSON or as text, whichever is more."""
        dumped = encode_json(row.model_dump(mode="json", exclude_defaults=True))
        return max(self.count.text(dumped), self.count.text(str(row))) + 1

    def shorten(self, text: str) -> str:
        """The text, or as much of its start as fits."""
        if len(text) <= self.tokens * _TOKEN_CHARS_MAX and self.count.text(text) <= self.tokens:
            return text
        fits = _most(
            min(len(text), self.tokens * _TOKEN_CHARS),
            lambda chars: self.count.text(text[:chars]) <= self.tokens,
        )
        return f"{prose.beginning(text, fits)} [cut]"

    def time(self, at: datetime | None) -> str:
        """A time in the reader's zone."""
        return "" if at is None else RecallWriter(self.zone, self.tokens, self.count).time(at)

    def _row(self, one: FoundEntry, offset: int, room: int) -> QuotedMessage | None:
        """The message from `offset` on, or None if it does not fit."""
        text = self._text(one, offset)
        if len(text) > room * _TOKEN_CHARS_MAX:
            return None
        row = self._quote(one, text, None)
        return row if self.size(row) <= room else None

    def _passage(self, one: FoundEntry, room: int) -> QuotedMessage | None:
        """The passage of the message, or None if it does not fit."""
        row = self._quote(one, excerpt(readable_text(one.entry.message), one.passage), 0)
        return row if self.size(row) <= room else None

    def _cut(self, one: FoundEntry, offset: int, room: int) -> QuotedMessage:
        text = self._text(one, offset)

        def row(chars: int) -> QuotedMessage:
            return self._quote(one, text[:chars], offset + chars if chars < len(text) else None)

        most = min(len(text), room * _TOKEN_CHARS)
        fits = _most(most, lambda chars: self.size(row(chars)) <= room)
        return row(max(fits, min(_LEAST_CHARS, len(text))))

    def _text(self, one: FoundEntry, offset: int) -> str:
        text = readable_text(one.entry.message)
        if offset and offset >= len(text):
            raise InputError(
                f"offset: must be less than {len(text)}, the length of message {one.entry.seq}"
            )
        return text[offset:]

    def _quote(self, one: FoundEntry, text: str, next_offset: int | None) -> QuotedMessage:
        message = one.entry.message
        return QuotedMessage(
            conversation=one.conversation,
            seq=one.entry.seq,
            role=message.role,
            name=(message.name or "")[: limits.NAME_CHARS_MAX],
            time=self.time(message.created_at),
            text=text,
            next_offset=next_offset,
            score=None if one.score is None else round(one.score, 3),
            chance=None if one.chance is None else round(one.chance, 3),
            also_in=list(one.also_in[: limits.AGENT_COPIES]),
            superseded_by=one.superseded_by,
        )


async def quote_page(
    quoter: Quoter, found: Sequence[FoundEntry], *, offset: int = 0, ranked: bool = False
) -> QuotedPage:
    """`Quoter.quote`, in a thread if there is much to count."""
    chars = sum(len(one.entry.message.text) for one in found)
    if chars <= limits.COUNT_INLINE_CHARS:
        return quoter.quote(found, offset=offset, ranked=ranked)
    return await asyncio.to_thread(quoter.quote, found, offset=offset, ranked=ranked)


def next_seq(left: Sequence[FoundEntry]) -> int | None:
    """The first entry of the next page, if there is one."""
    return left[0].entry.seq if left else None


def _most(high: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `high` that fits, by bisection; 0 if none does."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
